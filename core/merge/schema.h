/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schema, column by column and attribute by attribute (merge-semantics sections 3 and 6). Ids of ours never change;
 * columns that only theirs has get ids above all that either side ever gave out.
 */
#ifndef LFS_MERGE_SCHEMA_H
#define LFS_MERGE_SCHEMA_H

#include "merge/field_match.h"

enum { LFS_FIELD_TOMBSTONE = -2 }; /* a slot of a data file that holds no column any more (lance-format section 3.2) */

/* A column that one side added and the result has. */
struct lfs_new_field {
    const LanceField *field;
    const char *path;
    bool replaces; /* a change of type: it is the base's column `old`, which that side has no more */
    const LanceField *old;
};

struct lfs_schema_merge {
    const struct lfs_field_match *matches;
    size_t n_matches;
    int32_t *ids; /* for each match: its id in the result, or LFS_FIELD_TOMBSTONE */
    LanceField **fields; /* the result, in column order */
    size_t n_fields;
    bool changed; /* differs from ours */
    struct lfs_new_field *ours, *theirs;
    size_t n_ours, n_theirs;
};

/* Could theirs' ids stay as they are (a fast-forward)? Only where every column that both have has one id on both sides,
 * and none that is new was given out by ours before. */
bool lfs_schema_ids_fit(const struct lfs_merge_input *input, const struct lfs_field_match *matches, size_t n_matches);

/* Conflicts and refusals are reported in the plan. `keep_ids`: new columns of theirs keep their ids. */
errint_t lfs_merge_schema(const struct lfs_merge_input *input, const struct lfs_field_match *matches, size_t n_matches,
                          bool keep_ids, struct lfs_plan *plan, struct lfs_schema_merge *out, struct lfs_error *err);

/* The match of theirs' field id, and its id in the result; LFS_FIELD_TOMBSTONE (and NULL) for what theirs dropped. */
int32_t lfs_schema_their_id(const struct lfs_schema_merge *schema, int32_t id, const struct lfs_field_match **match);
bool lfs_schema_has(const struct lfs_schema_merge *schema, int32_t id);

#endif
