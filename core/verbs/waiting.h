/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that wait for choices, as the verbs see them: kept when they stop, taken up by `continue`, dropped by `abort`. */
#ifndef LFS_VERBS_WAITING_H
#define LFS_VERBS_WAITING_H

#include "verbs/conflicts.h"
#include "verbs/found.h"

/* A command that waits, while it is continued: a copy. */
struct lfs_waiting {
    const char *file, *line; /* the control file and what was written to it */
    bool by_root;            /* the last word names the target */
    const char *target;      /* the branch's name today */
    const char *uuid;        /* of its line */
    uint64_t serial;         /* tells it from others of that branch */
    struct lfs_chosen_list chosen;
    const struct lfs_list *pins;
};

/* The command of the branch that waits, in `arena`: from here on nobody else takes it up, until lfs_waiting_end.
 * LFS_E_NOT_FOUND: none does. LFS_E_BUSY: it is being continued. */
errint_t lfs_waiting_begin(struct lfs_conflicts *conflicts, const struct lfs_branch *branch, struct lfs_arena *arena,
                           struct lfs_waiting *out, struct lfs_error *err);
/* Nobody works on it any more; `done`: it is over. */
void lfs_waiting_end(struct lfs_conflicts *conflicts, const struct lfs_waiting *waiting, bool done);

/*
 * A command stopped on conflicts: it waits from now on. One that waits already and that has choices stays, but for the same
 * command (`again` or the same words): its choices are kept where the units are the same. *kept is false where this one does not
 * wait.
 */
struct lfs_stopped {
    const char *file, *line;
    bool by_root;
    const struct lfs_list *pins;
    const struct lfs_found *found;
    const struct lfs_waiting *again; /* what was continued; NULL: a new command */
};
errint_t lfs_waiting_keep(struct lfs_conflicts *conflicts, const struct lfs_stopped *stopped, bool *kept,
                          struct lfs_error *err);

#endif
