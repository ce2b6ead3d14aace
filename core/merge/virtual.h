/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual versions: a plan's result as a state that further merges can be planned with, though nothing of it is on the
 * disk. Only what a merge compares is there: schema, maps, fragments by their data files, and deletion vectors.
 */
#ifndef LFS_MERGE_VIRTUAL_H
#define LFS_MERGE_VIRTUAL_H

#include "merge/merge3.h"
#include "merge/moves.h"
#include "util/map.h"

struct lfs_virtual {
    struct lfs_version version; /* not one of the cache: never released */
    struct lfs_virtual_vector *vectors; /* where each fragment's deletion vector is found; one a fragment */
    size_t n_vectors;
    struct lfs_list owned; /* of roaring_bitmap_t */
};

/* `plan` (not blocked) was made of `ours` and `theirs`; all three must live as long as `out`, which keeps pointers into
 * them. */
errint_t lfs_virtual_init(struct lfs_virtual *out, const struct lfs_plan *plan, const struct lfs_version *ours,
                          const struct lfs_version *theirs, struct lfs_arena *arena, struct lfs_error *err);

/*
 * The state of `side` (ours or theirs) without the updates of some commits (uuids of its history): the rows that they took
 * away live where they were, and the fragments that they made are gone. False in *done when that cannot be told apart
 * from later changes. `out` is to be released by lfs_virtual_release in every case.
 */
errint_t lfs_virtual_without(struct lfs_virtual *out, const struct lfs_merge_input *input, enum lfs_side side,
                             const struct lfs_list *transactions, struct lfs_arena *arena, bool *done,
                             struct lfs_error *err);

/*
 * A state in which compactions have not happened: what they made is gone, and each of `roots` (old fragments, as they were
 * before) is there with the deletion vector that it would have today. `moves` are those of the line that led to `version`,
 * since before the compactions, and `version` is their tip. False in *done when that cannot be told: rows of other
 * fragments went into the same ones, files changed since, or a deletion file is gone. `out` is to be released by
 * lfs_virtual_release in every case.
 */
errint_t lfs_virtual_uncompacted(struct lfs_virtual *out, struct lfs_moves *moves, const struct lfs_version *version,
                                 const LanceFragment *const *roots, size_t n_roots, struct lfs_arena *arena, bool *done,
                                 struct lfs_error *err);

void lfs_virtual_release(struct lfs_virtual *virtual_version);

/* Is that deletion file a stand-in for a vector that only a virtual version knows? */
bool lfs_virtual_is_marker(const LanceDeletionFile *file);

/* The deletion vector of a fragment of a virtual version; `reader` is asked for those that lie in files. */
errint_t lfs_virtual_deletions(const struct lfs_virtual *virtual_version, const LanceFragment *fragment,
                               const struct lfs_merge_reader *reader, roaring_bitmap_t **out, struct lfs_error *err);

#endif
