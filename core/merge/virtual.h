/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual versions: a plan's result as a state that further merges can be planned with, though nothing of it is on the
 * disk. Only what a merge compares is there: schema, maps, fragments by their data files, and deletion vectors.
 */
#ifndef LFS_MERGE_VIRTUAL_H
#define LFS_MERGE_VIRTUAL_H

#include "merge/merge3.h"
#include "util/map.h"

struct lfs_virtual {
    struct lfs_version version; /* not one of the cache: never released */
    struct lfs_virtual_vector *vectors; /* where each fragment's deletion vector is found; one a fragment */
    size_t n_vectors;
};

/* `plan` (not blocked) was made of `ours` and `theirs`; all three must live as long as `out`, which keeps pointers into
 * them. */
errint_t lfs_virtual_init(struct lfs_virtual *out, const struct lfs_plan *plan, const struct lfs_version *ours,
                          const struct lfs_version *theirs, struct lfs_arena *arena, struct lfs_error *err);

/* The deletion vector of a fragment of a virtual version; `reader` is asked for those that lie in files. */
errint_t lfs_virtual_deletions(const struct lfs_virtual *virtual_version, const LanceFragment *fragment,
                               const struct lfs_merge_reader *reader, roaring_bitmap_t **out, struct lfs_error *err);

#endif
