/* SPDX-License-Identifier: Apache-2.0 */
/* Around the mount point: what is looked at before mounting, and what is done once the mount answers. */
#ifndef LFS_FUSE_START_H
#define LFS_FUSE_START_H

#include "fuse/mount.h"

/* Is the mount point usable for this data set? A dead mount of ours on it is taken away. `*real` (to be freed, after a
 * failure too) is its path without links. LFS_E_USAGE when one of the two lies in the other. */
errint_t lfs_start_check_mountpoint(const char *mountpoint, const char *dataset, char **real, struct lfs_error *err);

/* INIT has come, so the mount answers: whoever waits for that is told. Before any other request. */
void lfs_start_ready(struct lfs_mount *m);

/* Done once, after the kernel and we agreed: larger read-ahead where this user may set it. */
void lfs_start_tune(void);

#endif
