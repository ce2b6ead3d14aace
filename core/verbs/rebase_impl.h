/* SPDX-License-Identifier: Apache-2.0 */
/* What rebase.c, rebase_undo.c and rebase_line.c share; nobody else includes this. */
#ifndef LFS_VERBS_REBASE_IMPL_H
#define LFS_VERBS_REBASE_IMPL_H

#include "commit/branch.h"
#include "verbs/job.h"
#include "verbs/names_impl.h"
#include "verbs/verb.h"

struct lfs_rebase {
    struct lfs_verb_context *context; /* of the command */
    struct lfs_change *change;
    struct lfs_verb_context inner; /* of the jobs: they find the new line under the branch's name */
    struct lfs_command command;
    struct lfs_aside aside;
    struct lfs_state branch, onto; /* released by release() */
    const char *source, *onto_label;
    struct lfs_commit_result last; /* restatement */
    bool again; /* what was planned holds no more: all of it anew */
};

/* The branch's tip, as it is now that the lock is held, in r->branch; and whether it can be moved at all. */
errint_t lfs_rebase_read_branch(struct lfs_verb_context *context, struct lfs_state *out, struct lfs_error *err);

/* LFS_E_BUSY, with the list in the answer, when something stands on the branch by its name. */
errint_t lfs_rebase_check_standers(struct lfs_verb_context *context, const struct lfs_branch *branch,
                                   struct lfs_error *err);

/* Restatements on the line that is made aside, until it is newer than any version of the one whose name it takes. `with_old`:
 * they hold what the branch's tip held, too. */
errint_t lfs_rebase_restate(struct lfs_rebase *r, const char *operation, bool with_old, struct lfs_error *err);
/* Take the number after the old line's newest in the new one, where that begins with a greater one. */
errint_t lfs_rebase_take_number(struct lfs_rebase *r, struct lfs_error *err);

/* Names in the branch's directory for what the old line's tip reaches elsewhere. */
errint_t lfs_rebase_link_inherited(struct lfs_rebase *r, struct lfs_error *err);

/* The end of the answer once the name has moved. */
void lfs_rebase_say_switched(const struct lfs_rebase *r);

/* Ask whoever wants to be asked (gate.h): without the lock, so that hooks can run commands. What moved meanwhile is an
 * error, and r->again. `jobs` are a rebase's steps; `line` is that of an undoing, else NULL. */
errint_t lfs_rebase_ask(struct lfs_rebase *r, struct lfs_job *const *jobs, size_t n_jobs, const char *line,
                        struct lfs_error *err);

/* Run with the data set's lock held, and again where r->again says so; what was made aside is cleared away when nothing
 * came of it. */
errint_t lfs_rebase_run_locked(struct lfs_verb_context *context,
                               errint_t (*run)(struct lfs_rebase *r, struct lfs_buf *said, struct lfs_error *err),
                               struct lfs_error *err);

#endif
