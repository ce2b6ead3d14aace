/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which fields of three schemas are one column. Ids alone do not tell: both sides give the same next ids to their own new
 * columns, and a merge renumbers. What a column is, its data says: two fields that read one column of one data file are
 * one, whatever their ids and names.
 */
#ifndef LFS_MERGE_FIELD_MATCH_H
#define LFS_MERGE_FIELD_MATCH_H

#include "merge/match.h"

/* One column as it stands in each schema; NULL where a schema does not have it. Never all three. */
struct lfs_field_match {
    LanceField *base, *ours, *theirs;
    bool our_index, their_index; /* likewise, and the other one indexed it since the base (merge/indexes.h) */
    bool our_data, their_data; /* only one side dropped it, and the other one gave it new data in a fragment of the base */
    const LanceField *replaces; /* without a base: a change of type put it in the place of this one of the base, or the base's there */
    const char *path; /* "a.b.c", by the names of the newest that has it: ours, else theirs, else base */
};

/* In the order: ours' columns, columns that only the base (and theirs) has, then those that only theirs has. `fragments`
 * are the matches of the same three states. */
errint_t lfs_match_fields(const struct lfs_merge_input *input, const struct lfs_match *fragments, size_t n_fragments,
                          struct lfs_arena *arena, struct lfs_field_match **out, size_t *n_out, struct lfs_error *err);

/* "a.b.c" by the names of a schema; "" when memory is short. */
const char *lfs_field_path(struct lfs_arena *arena, const LanceManifest *manifest, const LanceField *field);
LanceField *lfs_field_by_id(const LanceManifest *manifest, int32_t id);

#endif
