/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of an index stays true in a merge's result (merge-semantics section 7). An index tells rows by their addresses,
 * which hold the fragment's id (or by their stable ids), and its bitmap names the fragments that it answers for. Both
 * engines search a fragment that the bitmap leaves out themselves, whatever the index says of it, and mask a fragment that
 * the bitmap names and the table has no more; so such ids stay in the bitmap.
 */
#ifndef LFS_MERGE_INDEX_TRUTH_H
#define LFS_MERGE_INDEX_TRUTH_H

#include "merge/match.h"
#include "merge/schema.h"

/* The finished fragments of a plan, as an index is looked at against them. */
struct lfs_index_truth {
    const struct lfs_merge_input *input;
    const struct lfs_schema_merge *schema;
    struct lfs_plan *plan;             /* its fragments sorted by id */
    const struct lfs_match **by_their; /* matches that theirs holds, sorted by theirs' id */
    size_t n_theirs;
    struct lfs_error *err;
};

errint_t lfs_index_truth_init(struct lfs_index_truth *out, const struct lfs_merge_input *input,
                              const struct lfs_match *matches, size_t n_matches, const struct lfs_schema_merge *schema,
                              struct lfs_plan *plan, struct lfs_error *err);

/* One entry of a side's list: as it is, or a copy with less coverage (and, of theirs, the result's field ids); NULL when
 * nothing of it can be kept. */
errint_t lfs_index_keep(const struct lfs_index_truth *truth, const LanceIndex *index, enum lfs_side side,
                        LanceIndex **out);

/* The coverage; NULL in *out (and 0) when the entry does not tell. To be freed. */
errint_t lfs_index_coverage(const LanceIndex *index, roaring_bitmap_t **out, struct lfs_error *err);
/* A copy of the entry with that coverage. */
errint_t lfs_index_with_coverage(const LanceIndex *index, const roaring_bitmap_t *covered, struct lfs_arena *arena,
                                 LanceIndex **out, struct lfs_error *err);

#endif
