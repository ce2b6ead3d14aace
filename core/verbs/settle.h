/* SPDX-License-Identifier: Apache-2.0 */
/*
 * continue and abort (interface.md section 3): words for the control file of any verb that can stop on conflicts. What waits on a
 * branch is one command, whichever file it was written to, so each of those files takes up or drops it.
 *
 * A verb joins in by its bit in LFS_VERBS_SETTLING: its plans must go through lfs_job_plan_and_say, which asks the choices and
 * notes what is in conflict.
 */
#ifndef LFS_VERBS_SETTLE_H
#define LFS_VERBS_SETTLE_H

#include "verbs/waiting.h"

enum { LFS_VERBS_SETTLING = LFS_VERB_MERGE | LFS_VERB_PICK | LFS_VERB_REVERT | LFS_VERB_REBASE };

/* "continue" or "abort", alone (with the target behind it in a file of the mount)? A branch of such a name is written
 * tree/continue. */
bool lfs_is_settling(const struct lfs_verb_context *context);

/* Runs the control file's verb as if `context` had been given to it. */
typedef errint_t (*lfs_run_file)(const char *file, struct lfs_verb_context *context, struct lfs_error *err);
errint_t lfs_settle_run(struct lfs_verb_context *context, lfs_run_file run, struct lfs_error *err);

/* After any command: one that stopped on conflicts waits from now on. */
errint_t lfs_settle_note(const struct lfs_verb_context *context, const char *file, errint_t result,
                         struct lfs_error *err);

#endif
