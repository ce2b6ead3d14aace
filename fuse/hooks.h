/* SPDX-License-Identifier: Apache-2.0 */
/*
 * -o hooks=DIR: the programs DIR/pre-merge and DIR/post-merge, either of which may be missing, run around every move of a
 * branch's tip that a control file makes (core/verbs/gate.h says what they get on standard input).
 *
 * pre-merge says no by any exit status but 0, or by not ending in time; then nothing is committed, the write fails with
 * EPERM, and what it printed stands in the answer, as it does when it said yes. What post-merge says or does changes
 * nothing any more; it is in the answer too.
 *
 * A hook may look through the mount, and run commands in it; not in the control file whose command asks it, which takes
 * one at a time. It has no arguments, the directory "/", standard input (the JSON text), standard output and error (both go
 * to the answer), a session of its own, and this environment alone:
 *
 *   PATH             /usr/local/bin:/usr/bin:/bin
 *   LANCEFS_HOOK     pre-merge or post-merge
 *   LANCEFS_MOUNT    the mount point
 *   LANCEFS_TARGET   the branch whose tip moves
 *   LANCEFS_TREE     its directory in the mount
 *   LANCEFS_PREVIEW  pre-merge, one source: the directory of the data set that the merge would give, LANCEFS_TREE/.preview/...
 *
 * The last two are keys of the JSON object as well, "tree" and "preview", and "hook" and "mount" with them.
 *
 * Nothing runs that others can write to: each directory from / to DIR belongs to root or to who mounts, and nobody else can
 * write to it (one with the sticky bit above DIR is as good); so do the program, a regular file, and DIR. A link in the
 * path is followed once, when the mount is made. This is looked at each time; what does not hold is a no.
 */
#ifndef LFS_FUSE_HOOKS_H
#define LFS_FUSE_HOOKS_H

#include "fuse/mount.h"

struct lfs_hooks;

/* LFS_E_USAGE when `dir` is not to be trusted or is no directory. Lives as long as `m`. */
errint_t lfs_hooks_new(struct lfs_mount *m, const char *dir, unsigned timeout_seconds, struct lfs_hooks **out,
                       struct lfs_error *err);
void lfs_hooks_free(struct lfs_hooks *hooks); /* NULL is fine */

/* For struct lfs_verb_call; NULL gives NULL. */
const struct lfs_verb_hooks *lfs_hooks_calls(const struct lfs_hooks *hooks);

/* --- trusted.c --- */

/* Is the absolute path `dir` (without links) a directory that nobody but root and we can put anything into? LFS_E_DENIED says
 * which part is not, and what to do. */
errint_t lfs_trusted_directory(const char *dir, struct lfs_error *err);
/* The same of a program in it. -ENOENT (LFS_E_NOT_FOUND) when there is none of that name. */
errint_t lfs_trusted_program(const char *dir, const char *name, struct lfs_error *err);

/* --- process.c --- */

struct lfs_process {
    const char *path;
    char *const *environment; /* NULL-terminated */
    const char *input;        /* its standard input */
    size_t input_length;
    unsigned timeout_seconds;
    const atomic_bool *cancel; /* may be NULL */
    struct lfs_buf *output;    /* what it prints is added, at most LFS_PROCESS_OUTPUT_MAX bytes of it */
};
enum { LFS_PROCESS_OUTPUT_MAX = 65536 };

/* Run a program to its end. Its wait status in *status; LFS_E_BUSY when it took too long, LFS_E_INTERRUPTED when it was
 * cancelled: then it, and what it started in its session, has been killed. What it leaves running otherwise is let be. */
errint_t lfs_process_run(const struct lfs_process *process, int *status, struct lfs_error *err);

#endif
