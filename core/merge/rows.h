/* SPDX-License-Identifier: Apache-2.0 */
/* Rows: what became of each fragment that more than one state holds (merge-semantics sections 3 to 5). */
#ifndef LFS_MERGE_ROWS_H
#define LFS_MERGE_ROWS_H

#include "merge/match.h"
#include "merge/moves.h"
#include "merge/schema.h"

/* What a side did to a fragment since the base. */
enum lfs_change {
    LFS_UNCHANGED, /* as far as rows go */
    LFS_ROWS, /* another deletion vector */
    LFS_GONE, /* the side has no such fragment any more */
};

struct lfs_fragment_side {
    const LanceFragment *fragment; /* NULL when gone */
    enum lfs_change change;
    bool other_files;          /* its data files are not those of the base, or hold columns that are no more in the base */
    bool moved;                /* gone because a compaction rewrote it, which can be followed */
    roaring_bitmap_t *deleted; /* read when needed: all rows when gone, but of a moved one what it would have */
};

/* One fragment on three sides. */
struct lfs_fragment_state {
    const struct lfs_match *match;
    const char *path; /* of a data file: its name everywhere */
    uint64_t id;      /* for sentences: its id in ours, else in the base */
    uint64_t physical_rows;
    roaring_bitmap_t *base;
    struct lfs_fragment_side ours, theirs;
};

/* What the decision about all fragments of one merge shares. */
struct lfs_rows {
    const struct lfs_merge_input *input;
    struct lfs_plan *plan; /* conflicts and refusals go here */
    struct lfs_fragment_state *states; /* one a match */
    size_t n_states;
    struct lfs_moves moves[2]; /* ours, theirs: read when the first fragment is gone on both or gone and changed */
    bool has_moves[2];
    bool compaction_left_out; /* one of ours, and noted */
    struct lfs_map extra[2]; /* path of a side's own new fragment -> rows of it that the result deletes (bitmaps) */
};

enum lfs_fate {
    LFS_FATE_OURS,    /* rows as ours has them: kept, or gone */
    LFS_FATE_THEIRS,  /* rows as theirs has them; ours has those of the base */
    LFS_FATE_REMOVED, /* nothing of it is left to keep, or theirs' compaction holds its rows */
    LFS_FATE_UNITED,  /* ours' files with the deletion vector `deleted` */
    LFS_FATE_RETURNED, /* ours' compaction is left out: theirs' fragment comes, less the rows that `extra` deletes */
};

struct lfs_fragment_verdict {
    enum lfs_fate fate;
    roaring_bitmap_t *deleted; /* UNITED, and THEIRS when theirs deleted rows: the vector, owned by the caller */
};

/* Compares all fragments. Deletion vectors that changed on either side are read, so a damaged one is an error here. To
 * be freed by lfs_rows_free in every case. */
errint_t lfs_rows_init(struct lfs_rows *rows, const struct lfs_merge_input *input, struct lfs_plan *plan,
                       const struct lfs_schema_merge *schema, const struct lfs_match *matches, size_t n_matches,
                       struct lfs_error *err);
void lfs_rows_free(struct lfs_rows *rows);

/* Decide the i-th fragment, which the base holds, or both sides. Conflicts and refusals are reported in the plan; the
 * verdict is then without meaning. Rows of other fragments that this decides are added to `extra`. */
errint_t lfs_rows_decide(struct lfs_rows *rows, size_t i, struct lfs_fragment_verdict *out, struct lfs_error *err);

/* How rows of the i-th fragment left a side: not at all or by plain deletes, by updates (moved elsewhere), or in a way that
 * no commit at hand tells. */
enum lfs_departure { LFS_DELETED_ONLY, LFS_MOVED_AWAY, LFS_UNEXPLAINED };
errint_t lfs_rows_departure(struct lfs_rows *rows, size_t i, enum lfs_side side, enum lfs_departure *out,
                            struct lfs_error *err);

/* Rows of the i-th fragment that `side` updated (their copies stand elsewhere) and that the other side gave a value in a
 * new column: the copies have none. A conflict for each, unless the strategy lets `side` win; the column is then null
 * in them. */
errint_t lfs_rows_report_bare(struct lfs_rows *rows, size_t i, enum lfs_side side, const char *column,
                              struct lfs_error *err);

/* After all decisions: rows that the result deletes in a side's own new fragment, or NULL. Borrowed. */
const roaring_bitmap_t *lfs_rows_extra(const struct lfs_rows *rows, enum lfs_side side, const char *path);

#endif
