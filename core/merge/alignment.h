/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Column files stand row by row beside their fragment: one that was written for the rows of one side must serve the rows of
 * the result. What cannot be so is refused, or a conflict.
 */
#ifndef LFS_MERGE_ALIGNMENT_H
#define LFS_MERGE_ALIGNMENT_H

#include "merge/rows.h"
#include "merge/schema.h"

struct lfs_alignment {
    const struct lfs_merge_input *input;
    struct lfs_plan *plan;
    const struct lfs_match *matches;
    const struct lfs_field_match *fields;
    size_t n_fields;
    struct lfs_rows *rows;
    const struct lfs_schema_merge *schema;
    struct lfs_error *err;
};

/* One side rewrote a column of the i-th fragment in place while the other moved rows of it elsewhere: those would keep the
 * old value. *keep: ours' fragment stays as it is. */
errint_t lfs_align_rewritten(const struct lfs_alignment *alignment, size_t i, bool *keep);

/* Rows of the i-th fragment that left a side in a way that nobody can tell, while the other side added columns. */
errint_t lfs_align_unexplained(const struct lfs_alignment *alignment, size_t i);

/* The files of the result's fragment `f`, the i-th match, against the rows that live in it. */
errint_t lfs_align_holes(const struct lfs_alignment *alignment, size_t i, const struct lfs_plan_fragment *f);

#endif
