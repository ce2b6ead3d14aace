/* SPDX-License-Identifier: Apache-2.0 */
/* What the plans of one command had in conflict, and what was chosen in them: it outlives the jobs. For the files of verbs/. */
#ifndef LFS_VERBS_FOUND_H
#define LFS_VERBS_FOUND_H

#include "merge/choices.h"
#include "verbs/job.h"

/* Rows of one version. A row of a fragment stands for itself; `all` of a fragment where nobody can tell which one it is. */
struct lfs_found_row {
    uint64_t fragment;
    uint32_t row;
    bool all;
};
struct lfs_found_rows {
    bool known;      /* false: nothing can be shown */
    const char *dir; /* of the version, as in struct lfs_version ... */
    uint64_t version;
    ino_t ino;                  /* ... and which file it was */
    struct lfs_found_row *rows; /* none: the row is gone on that side */
    size_t n_rows;
};

struct lfs_found_conflict {
    struct lfs_conflict conflict; /* not `path`, `our_update`, `their_update` */
    const char *step; /* which state was merged, as "<line>@<version>": of a series each has units of its own */
    bool of_rows;
    struct lfs_found_rows rows[3]; /* by enum lfs_side */
};

struct lfs_found {
    struct lfs_arena *arena;
    const char *line, *target; /* the branch that was planned for: its uuid and name */
    struct lfs_list items; /* of struct lfs_found_conflict: the settled ones of all steps, then what is in conflict */
};

/* A choice that a command was given. */
struct lfs_chosen {
    const char *step;
    struct lfs_choice choice;
};
struct lfs_chosen_list {
    const struct lfs_chosen *items;
    size_t count;
};

/* Forget everything: all is planned again. */
void lfs_found_clear(struct lfs_found *found);
/* Add what the job's plan settled and could not. */
errint_t lfs_found_add(struct lfs_found *found, struct lfs_job *job, struct lfs_error *err);

/* The choices that are for this job; NULL in *out where there are none. */
errint_t lfs_found_choices(struct lfs_job *job, struct lfs_choices **out, struct lfs_error *err);

#endif
