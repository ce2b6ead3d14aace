/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Indexes (merge-semantics section 7): each name is one unit, whatever number of segments it has, merged by the table of
 * section 3; what is taken over is then cut to what is true in the result (merge/index_truth.h).
 */
#ifndef LFS_MERGE_INDEXES_H
#define LFS_MERGE_INDEXES_H

#include "merge/match.h"
#include "merge/schema.h"

/* Marks the columns that one side dropped and the other one put an index on since the base. */
void lfs_indexes_mark(const struct lfs_merge_input *input, struct lfs_field_match *fields, size_t n_fields);

struct lfs_index_unit; /* one name */

struct lfs_indexes {
    const struct lfs_merge_input *input;
    const struct lfs_schema_merge *schema;
    struct lfs_plan *plan;
    enum lfs_side taken; /* OURS, THEIRS: that side replaced the table, and only its indexes tell of it; BASE: neither */
    bool keep_their_ids; /* a fast-forward: every index of theirs is true as it is */
    struct lfs_index_unit *units;
    size_t n_units;
    struct lfs_error *err;
};

/* Which side's index stands under each name; conflicts are reported in the plan. Before the fragments are final. */
errint_t lfs_indexes_decide(struct lfs_indexes *indexes);

/* The list of the result: after the plan's fragments are final and sorted, and only if nothing is in the way. */
errint_t lfs_indexes_settle(struct lfs_indexes *indexes, const struct lfs_match *matches, size_t n_matches);

#endif
