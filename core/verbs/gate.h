/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gate before a branch's tip: whoever runs commands may have hooks (verbs.h) that are asked what is about to be
 * committed and told what came of it. Every verb that moves a tip goes through here. Nothing is locked while a hook is
 * asked: when the tip moves meanwhile, the commit loses the race, and the new plan is asked about anew.
 *
 * What a hook is given is one JSON object. Before:
 *
 *   verb      "merge"; the control file's name without its dot
 *   command   the line as it was written
 *   operation "merge", "cherry-pick", "revert", "undo", "rehome", "rebase", "undo-rebase": what the version will say of itself
 *   target    {"branch": "main", "version": 5}: the tip that the plan was made on
 *   source    "feature@6", base "main@2": as in the answer; left out where there is none
 *   result    what it would be: "merged", "fast-forward", "empty-merge", "rehomed"
 *   version   the number of the version that would be written (the first one, of several)
 *   fragments {"added": 2, "removed": 0, "changed": 1}, rows {"added": 2, "removed": 1}, notes ["..."]
 *   steps     of a command that writes several versions: an array of objects with source, base, result, fragments, rows, notes
 *   onto      "main@7": of a rebase, what its steps are replayed on. Target is the branch as it was; which number its new
 *             line will have reached is not known yet, so that version is left out
 *   line      of the undoing of a rebase: the line that gets the branch's name back (version is left out here too)
 *   message, properties    as they were written; left out where they were not
 *
 * Afterwards the same object, in which result says what came of it (as in the answer), with answer (its whole text), and
 * version, versions and transaction only where something was committed. It is given once for a command whose plan has been
 * let pass, also when the commit failed then.
 *
 * Texts that are not UTF-8 have ? for each byte that no ASCII character is.
 */
#ifndef LFS_VERBS_GATE_H
#define LFS_VERBS_GATE_H

#include <jansson.h>

#include "verbs/job.h"

struct lfs_gate {
    json_t *facts;      /* of the newest question that was answered with yes; NULL: there was none */
    const char *target; /* its branch, and what was merged, in the command's arena */
    const char *source;
    bool whole;          /* a series was let pass as a whole: its jobs are not asked about one by one */
    struct lfs_buf said; /* by hooks, lines */
};

void lfs_gate_release(struct lfs_gate *gate);

/* May this be committed? 0; LFS_E_DENIED when a hook said no, LFS_E_INTERRUPTED. At once where nobody wants to be asked.
 * lfs_job_commit calls the first one. */
errint_t lfs_gate_ask_job(const struct lfs_job *job, struct lfs_error *err);
/* Several jobs, planned one on the other; those that write nothing are left out. `source` is for the answer. */
errint_t lfs_gate_ask_series(struct lfs_verb_context *context, struct lfs_job *const *jobs, size_t n,
                             const char *source, struct lfs_error *err);
/* A verb that is no job. */
errint_t lfs_gate_ask_rehome(struct lfs_verb_context *context, const struct lfs_state *target, struct lfs_error *err);

/* The name of a branch is to move to another line: a rebase, by `n` jobs (or none) that are planned on `onto`; or, with
 * `line`, its undoing. `target` is the branch as it is. */
struct lfs_gate_move {
    const struct lfs_state *target;
    struct lfs_job *const *jobs;
    size_t n_jobs;
    const char *source, *onto, *line;
};
errint_t lfs_gate_ask_move(struct lfs_verb_context *context, const struct lfs_gate_move *move, struct lfs_error *err);

/* The command is done: tell the hooks what the answer says, and add to it what they said. */
void lfs_gate_close(struct lfs_verb_context *context);

#endif
