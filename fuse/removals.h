/* SPDX-License-Identifier: Apache-2.0 */
/* unlink(2) below a branch's directory: what is staged goes at once, what was published when nobody needs it. */
#ifndef LFS_FUSE_REMOVALS_H
#define LFS_FUSE_REMOVALS_H

#include "fuse/mount.h"

/* Valid replies: err. The reply may come later, from a worker. EPERM: it belongs to another branch, or the branch's newest
 * version or a tag needs it. 0 also for what is left alone since another branch stands on it (verbs/discard.h). */
void lfs_op_unlink_in_stage(fuse_req_t req, struct lfs_node *directory, const char *name);

#endif
