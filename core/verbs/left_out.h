/* SPDX-License-Identifier: Apache-2.0 */
/* Between left_out.c and left_out_cure.c: a base that has fragments of compactions which a side does not have. */
#ifndef LFS_VERBS_LEFT_OUT_H
#define LFS_VERBS_LEFT_OUT_H

#include "merge/moves.h"
#include "util/map.h"
#include "verbs/job.h"

struct lfs_left_out_side {
    enum lfs_side which;
    const struct lfs_version *tip;
    const char *name;
    bool base_is_own;   /* the base lies on its line */
    struct lfs_map map; /* path -> index + 1 of the fragment of the tip; filled when first needed */
    size_t cursor;      /* tips mostly hold the base's fragments in the base's order */
    struct lfs_moves moves;
    bool has_moves;
};

struct lfs_left_out {
    struct lfs_job *job;
    const struct lfs_merge_input *input;
    struct lfs_left_out_side sides[2]; /* ours, theirs */
    struct lfs_error *err;

    bool by_compaction; /* what the plan is refused for is one that a side does not have */

    /* The cure: the base without the compactions that one side does not have. */
    bool whole;                              /* look at all of them, and for all that went into them */
    const struct lfs_left_out_side *lacking; /* that side */
    struct lfs_list left_out;                /* of const LanceFragment: fragments of the base that they made */
    struct lfs_list roots;                   /* of const LanceFragment: old fragments, of versions that the job holds */
    uint64_t lowest;          /* the base's line did not have the first of these compactions in the version before */
    struct lfs_vector before; /* and what that one held */
    bool impossible;
};

/* How a side came to lack a fragment: by a commit of its own, given up perhaps for what it was made of, or it never had it. */
enum lfs_left_out_absence { ABSENCE_OWN, ABSENCE_GIVEN_UP, ABSENCE_NEVER_HELD };

/* Where the base has a fragment from. */
struct lfs_left_out_origin {
    const struct lfs_history *history; /* of the side that lacks it */
    const struct lfs_left_out_side *side;
    enum lfs_left_out_absence absence;
    struct lfs_list names; /* of char: files to be found made; NULL where one has been */
    size_t n_left;
    bool compacted; /* of rows that the side has in another place */
    bool unknown;   /* versions are gone */
    bool was_there; /* the target holds the commit that made it: its rows stand there in another fragment, or stood */
};

/* The fragment of the base as it stands in the side's tip; NULL when it does not. */
errint_t lfs_left_out_find(struct lfs_left_out *s, struct lfs_left_out_side *side, const LanceFragment *base,
                           const LanceFragment **out);
/* Did the side change the fragment (of the base) since? */
errint_t lfs_left_out_changed(struct lfs_left_out *s, struct lfs_left_out_side *side, const LanceFragment *base,
                              bool *out);
enum lfs_left_out_absence lfs_left_out_absence(const struct lfs_history *history, const struct lfs_left_out_side *side,
                                               const char *path);

/* A file to be found made; and the search, down the base's line until all of them are. */
errint_t lfs_left_out_add_name(struct lfs_left_out *s, struct lfs_left_out_origin *o, const char *path);
errint_t lfs_left_out_origin(struct lfs_left_out *s, struct lfs_left_out_origin *o);

/* The line on which a version of the line `from` was made: a branch's first one is a state of its parent. */
errint_t lfs_left_out_line_at(struct lfs_left_out *s, const char *from, uint64_t number, struct lfs_branch *out);

/* From now on the side's history begins at `since` too; what was read of it is read anew. */
errint_t lfs_left_out_lengthen(struct lfs_left_out *s, enum lfs_side which, const struct lfs_vector *since);

/* Is there a base for which there is nothing to refuse, perhaps? And that base; NULL in *out where there is none. */
bool lfs_left_out_can_be_cured(const struct lfs_left_out *s);
errint_t lfs_left_out_cure(struct lfs_left_out *s, const struct lfs_version **out);

#endif
