/* SPDX-License-Identifier: Apache-2.0 */
/* Between virtual.c, take_back.c and uncompact.c: how a virtual version knows its deletion vectors. */
#ifndef LFS_MERGE_VIRTUAL_IMPL_H
#define LFS_MERGE_VIRTUAL_IMPL_H

#include "merge/virtual.h"

struct lfs_virtual_vector {
    const LanceFragment *fragment;     /* of the virtual manifest */
    const struct lfs_version *version; /* the vector is that of `record` there ... */
    const LanceFragment *record;
    const roaring_bitmap_t *deleted; /* ... or this one, which the plan or the virtual version owns */
};

/* A deletion file that stands for "ask the virtual version": it equals no real one. `identity` is the vector's own. */
LanceDeletionFile *lfs_virtual_marker(struct lfs_arena *arena, uint64_t n_deleted, const void *identity);

/* A state as it is, with room for `more` fragments: each a copy that knows where its vector is. */
errint_t lfs_virtual_copy(struct lfs_virtual *out, const struct lfs_version *version, size_t more, struct lfs_arena *arena,
                          struct lfs_error *err);
struct lfs_virtual_vector *lfs_virtual_vector_of(struct lfs_virtual *virtual_version, const LanceFragment *fragment);
/* Give a fragment of the virtual state the vector `deleted` (taken over in every case). */
errint_t lfs_virtual_set_deleted(struct lfs_virtual *virtual_version, LanceFragment *fragment, roaring_bitmap_t *deleted,
                                 struct lfs_arena *arena, struct lfs_error *err);

#endif
