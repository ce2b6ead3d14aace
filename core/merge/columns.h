/* SPDX-License-Identifier: Apache-2.0 */
/* Columns of fragments: which data file of which side holds which field in the result (merge-semantics sections 3, 5). */
#ifndef LFS_MERGE_COLUMNS_H
#define LFS_MERGE_COLUMNS_H

#include "merge/match.h"
#include "merge/schema.h"

struct lfs_columns {
    const struct lfs_merge_input *input;
    const struct lfs_schema_merge *schema;
    struct lfs_plan *plan;
};

/* The files of a fragment that ours and theirs (and the base) have, put into `fragment` where they differ from ours'. One
 * column of one fragment that both sides rewrote is a conflict. */
errint_t lfs_columns_merge(const struct lfs_columns *columns, const struct lfs_match *match,
                           struct lfs_plan_fragment *fragment, struct lfs_error *err);

/* The files of a new fragment of theirs, with the field ids of the result. */
errint_t lfs_columns_take(const struct lfs_columns *columns, const LanceFragment *theirs,
                          struct lfs_plan_fragment *fragment, struct lfs_error *err);

/* Rows that one side made and that lack a column which the other side added or retyped: nulls, noted as work to do; a
 * conflict where nulls must not be, for a column of the base that the other side forbade them in too. After the fragments
 * of the plan are decided; `matches` are all fragments. */
errint_t lfs_columns_check_gaps(const struct lfs_columns *columns, const struct lfs_match *matches, size_t n_matches,
                                struct lfs_error *err);

#endif
