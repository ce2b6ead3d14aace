/* SPDX-License-Identifier: Apache-2.0 */
/*
 * only=: classes of theirs that a merge leaves behind are taken as theirs never changed them (interface.md section 3).
 * What can only come together is refused: columns without the rows that moved, rows without the schema that they need.
 */
#ifndef LFS_MERGE_ONLY_H
#define LFS_MERGE_ONLY_H

#include "merge/field_match.h"

struct lfs_only_vector; /* where a fragment of the masked state has its deletion vector */

struct lfs_only {
    struct lfs_merge_input input; /* the masked one: theirs' rows and column data that stay behind are the base's */
    struct lfs_merge_reader reader;
    struct lfs_version theirs;
    const struct lfs_merge_input *real;
    struct lfs_only_vector *vectors;
    size_t n_vectors;
};

/* Is there anything to be left behind? */
bool lfs_only_applies(const struct lfs_policy *policy);

/* Fragments: fills `out`, which must not move. `matches` are those of `real`. Refusals are reported in the plan. */
errint_t lfs_only_mask(struct lfs_only *out, const struct lfs_merge_input *real, const struct lfs_match *matches,
                       size_t n_matches, struct lfs_plan *plan, struct lfs_error *err);

/* Columns: changes the list of the masked states. `matches` are those of `input`. */
errint_t lfs_only_mask_fields(const struct lfs_merge_input *input, const struct lfs_match *matches, size_t n_matches,
                              struct lfs_field_match *fields, size_t *n_fields, struct lfs_plan *plan,
                              struct lfs_error *err);

#endif
