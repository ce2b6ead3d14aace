/* SPDX-License-Identifier: Apache-2.0 */
/* One field of a schema: comparing, and merging attribute by attribute. For merge/schema.c and merge/columns.c. */
#ifndef LFS_MERGE_FIELD_H
#define LFS_MERGE_FIELD_H

#include "merge/merge3.h"

bool lfs_field_same(const LanceField *a, const LanceField *b);
bool lfs_field_same_but_id(const LanceField *a, const LanceField *b); /* parents' ids neither */

/* Where a fragment keeps the data of a field. */
struct lfs_field_place {
    const LanceDataFile *file; /* NULL: nowhere, the column is null there */
    int32_t column;            /* index in the file; -1 when the file does not say */
};
struct lfs_field_place lfs_field_place(const LanceFragment *fragment, int32_t id);

/* The same for a field with an id of its own in each; false when no fragment has it. The finder is for `b`. */
bool lfs_field_same_data(struct lfs_match_finder *finder, const LanceManifest *a, int32_t a_id, const LanceManifest *b,
                         int32_t b_id);

struct lfs_field_trio {
    const LanceField *base, *ours, *theirs;
    const char *path;
    const struct lfs_policy *policy;
};
/* Attribute by attribute: name, type, nullability, key, each metadata key. Conflicts go to the plan. The result is in
 * the plan's arena. */
errint_t lfs_merge_field(const struct lfs_field_trio *trio, struct lfs_plan *plan, LanceField **out,
                         struct lfs_error *err);

#endif
