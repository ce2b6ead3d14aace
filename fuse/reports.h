/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text that takes long to make, so that a look at its name must not make it: MNT/.fsck. A worker makes it when the file is
 * opened; its size is told as 0, and it is read to its end anyhow. What is quickly made is a text (texts.h).
 */
#ifndef LFS_FUSE_REPORTS_H
#define LFS_FUSE_REPORTS_H

#include "fuse/mount.h"

extern const char *const lfs_root_reports[]; /* NULL-terminated */

bool lfs_is_report_name(const char *name);
/* Replies, perhaps later, from a worker. */
void lfs_report_open(struct lfs_mount *m, fuse_req_t req, struct lfs_node *node, struct fuse_file_info *fi);

#endif
