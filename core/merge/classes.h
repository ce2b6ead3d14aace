/* SPDX-License-Identifier: Apache-2.0 */
/* How rows went away on one side: told by that side's transactions, never guessed (merge-semantics section 4). */
#ifndef LFS_MERGE_CLASSES_H
#define LFS_MERGE_CLASSES_H

#include "merge/match.h"

struct lfs_row_question {
    const char *path;             /* of a data file of the fragment */
    const roaring_bitmap_t *rows; /* offsets in it, all gone on that side since the base */
    bool absent; /* the side's tip has no fragment at all that is this one */
    bool moved; /* a compaction rewrote the fragment, and `rows` counts what is gone from where it moved them too */
};

/* Rows that one commit updated. A pick makes a commit's update on both sides: the same one is no conflict. */
struct lfs_row_update {
    const char *transaction; /* uuid; borrowed from the history */
    roaring_bitmap_t *rows;
    struct lfs_row_update *next;
};

struct lfs_row_classes {
    roaring_bitmap_t *deleted;   /* proven to be plain deletes; owned by the caller */
    roaring_bitmap_t *rewritten; /* last seen when a compaction took them along; owned by the caller */
    struct lfs_row_update *updates;
    bool unmade;                 /* `rewritten` are rows of a compaction that the side does not hold */
    bool by_merge;               /* a merge took some away, and the commits that it brought do not tell how */
    bool replaced;               /* an overwrite or a restore took part */
    bool unknown;                /* transactions are missing, and the side has new fragments */
};

/* What is neither in `deleted` nor in `rewritten` was updated (moved and changed), or counts as such. */
errint_t lfs_classify_rows(const struct lfs_merge_input *input, enum lfs_side side,
                           const struct lfs_row_question *question, struct lfs_row_classes *out, struct lfs_error *err);
/* The commit that updated a row, by its uuid; NULL when none is known. */
const char *lfs_row_update_of(const struct lfs_row_classes *classes, uint32_t row);
void lfs_row_classes_free(struct lfs_row_classes *classes);

/* Did an overwrite or a restore happen on that side since the base? */
errint_t lfs_side_was_replaced(const struct lfs_merge_input *input, enum lfs_side side, bool *out,
                               struct lfs_error *err);
/* Did that side do anything to the rows or columns since the base but compact them? Yes where nobody can tell. */
errint_t lfs_side_changed_rows(const struct lfs_merge_input *input, enum lfs_side side, bool *out,
                               struct lfs_error *err);

#endif
