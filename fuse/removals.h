/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unlink(2) below a branch's directory: what is staged goes at once, what was published when nobody needs it and a writer
 * that cleans up asks for it. Such a one has read the branch's manifests, to know which files to keep; rm -r, cp -f and tar x
 * read nothing of what they are about to remove. So only a process that has opened a manifest of the branch through this mount
 * may remove anything of its history.
 */
#ifndef LFS_FUSE_REMOVALS_H
#define LFS_FUSE_REMOVALS_H

#include "fuse/mount.h"

struct lfs_removals;
struct lfs_removals *lfs_removals_new(void); /* NULL when memory is short */
void lfs_removals_free(struct lfs_removals *removals);

/* A thread opens a manifest of a branch (by its node). */
void lfs_removals_read(struct lfs_mount *m, const struct lfs_node *branch, pid_t tid);

/* Valid replies: err. The reply may come later, from a worker. EPERM: it belongs to another branch, the branch's newest
 * version or a tag needs it, or the process has read no manifest. 0 also for what is left alone since another branch stands on it (verbs/discard.h). */
void lfs_op_unlink_in_stage(fuse_req_t req, struct lfs_node *directory, const char *name);

#endif
