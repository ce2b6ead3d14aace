/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of whole data sets into tree/ (cp -r, rsync, tar x) are refused. Such a tool begins with a mkdir, which makes a
 * branch; then it puts files under their final names into it, or sets its times, which no writer does that has just made a
 * branch: stock Lance writes every file under a name of its own first. So when the process that made a branch through this
 * mount, or one that it started, does that before the branch has anything of its own, it gets EPERM and the branch, with
 * what it made above and below, is taken back. cp -r finds the directories of the new branch in its way (EEXIST) and puts
 * nothing into it; it is known by its arguments, at its mkdir.
 */
#ifndef LFS_FUSE_COPIES_H
#define LFS_FUSE_COPIES_H

#include "fuse/mount.h"

struct lfs_copies;
struct lfs_copies *lfs_copies_new(void); /* NULL when memory is short */
void lfs_copies_free(struct lfs_copies *copies);

/* Does the process of a thread copy a data set, as its arguments say, when it makes the directory `name` (its last
 * component)? Then what it made before above `branch` is taken back. On a worker: the kernel has the directory locked, so
 * nothing below the mount is looked at. */
bool lfs_copies_begins(struct lfs_mount *m, const char *branch, const char *name, pid_t tid);

/* A process's thread (as a request names it) has made that branch. */
void lfs_copies_made(struct lfs_mount *m, const char *branch, pid_t tid);

/* Is this request one of a copy into a new branch? Then it is answered: EPERM, later, from a worker. `name` is the file
 * that is made in the branch of `node`; NULL when its directory's times are set. */
bool lfs_copies_caught(fuse_req_t req, const struct lfs_node *node, const char *name);

#endif
