/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of branches that the kernel remembers. Every path into a branch begins with its name (by MNT/tables with two), and
 * a writer walks dozens of them for one commit, so the kernel keeps those names. What they lead to is looked at instead by
 * every request on a node of a branch: when the branch is gone, renamed, or another by its name, the answer is ESTALE, and
 * the kernel walks the whole path anew (LOOKUP_REVAL) and asks for every name on it. So whoever deletes a branch, on the
 * mount or beside it, finds it gone at the next look.
 *
 * For that every walk into a branch has to end in a request on one of its nodes: what stands in it under the same name in
 * another branch too, and would need none, has names that the kernel does not remember (lfs_inner_timeout). main stays
 * what it is: it cannot be renamed or removed. (readlink(2) of a table's link alone may be answered by the kernel when its
 * branch is gone; whoever follows it finds nothing.)
 */
#ifndef LFS_FUSE_STANDING_H
#define LFS_FUSE_STANDING_H

#include "fuse/mount.h"

/* Is the branch that this node lies in still there, and the same? True for what lies in none. */
bool lfs_node_stands(struct lfs_mount *m, const struct lfs_node *node);

/* What a branch is, by its uuid and its directory: `token` and `salt` of its node. -ENOENT when it has no directory. */
errint_t lfs_branch_identity(struct lfs_mount *m, const struct lfs_branch *branch, uint64_t *token, uint64_t *salt);

/* Can this name in MNT/tables never come to mean another branch than that of the same name? Seconds to remember it. */
double lfs_table_timeout(struct lfs_mount *m, const char *name);

/* Seconds to remember names, in a branch's directory or below it, that the same name in another branch may stand for. */
double lfs_inner_timeout(const struct lfs_node *branch);

#endif
