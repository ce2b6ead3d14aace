/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of the whole data set: MNT/.branches and MNT/.fsck, text that is made when the file is opened. */
#ifndef LFS_FUSE_REPORTS_H
#define LFS_FUSE_REPORTS_H

#include "fuse/mount.h"

extern const char *const lfs_root_reports[]; /* NULL-terminated */

bool lfs_is_report_name(const char *name);
/* How long the text is now; 0 for one that takes long to make: it is read to its end anyhow. */
errint_t lfs_report_size(struct lfs_mount *m, const struct lfs_node *node, off_t *size);
/* Replies, perhaps later, from a worker. */
void lfs_report_open(struct lfs_mount *m, fuse_req_t req, struct lfs_node *node, struct fuse_file_info *fi);

#endif
