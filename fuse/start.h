/* SPDX-License-Identifier: Apache-2.0 */
/* Around the mount point: what is looked at before mounting, and what is done once the mount answers. */
#ifndef LFS_FUSE_START_H
#define LFS_FUSE_START_H

#include "fuse/mount.h"

/* Is the mount point usable for this data set? A dead mount of ours on it is taken away. `*real` (to be freed, after a
 * failure too) is its path without links. LFS_E_USAGE when one of the two lies in the other,
 * LFS_E_BUSY when a data set is mounted there. */
errint_t lfs_start_check_mountpoint(const char *mountpoint, const char *dataset, char **real, struct lfs_error *err);

/* Nothing lies in it, or that cannot be told. */
bool lfs_start_is_empty(const char *mountpoint);

/* fuse_session_mount, whose words on standard error (its own, fusermount3's) are kept: `said` gets the first line. */
int lfs_start_mount(struct fuse_session *session, const char *mountpoint, char *said, size_t size);

/* What to do about a reason not to mount, to be put behind it: "" or ": ...". Static. */
const char *lfs_start_advice(const char *reason);

/* INIT has come, so the mount answers: whoever waits for that is told. Before any other request. */
void lfs_start_ready(struct lfs_mount *m);

/* Done once, after the kernel and we agreed: larger read-ahead where this user may set it. */
void lfs_start_tune(void);

#endif
