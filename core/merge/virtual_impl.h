/* SPDX-License-Identifier: Apache-2.0 */
/* Between virtual.c and take_back.c: how a virtual version knows its deletion vectors. */
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

#endif
