/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a writer does to names below a branch's directory: link, rename, remove, make directories. A link of a staged file to
 * a version's name is a commit. Each returns 0 or a negative errno; none touches what is published.
 */
#ifndef LFS_FUSE_CHANGES_H
#define LFS_FUSE_CHANGES_H

#include "fuse/mount.h"

/* `node` gets the further name `name` in `directory`; `e` is the new name's entry, with one lookup counted. -EEXIST: the
 * name is taken, which is how a writer learns that another one committed first. */
errint_t lfs_change_link(struct lfs_mount *m, struct lfs_node *node, struct lfs_node *directory, const char *name,
                         struct fuse_entry_param *e);
errint_t lfs_change_rename(struct lfs_mount *m, struct lfs_node *from, const char *name, struct lfs_node *to,
                           const char *new_name, unsigned flags);
/* What is staged is removed. For what was published `*published` becomes its name in the branch's own storage, to be
 * freed: whether it may go takes longer to find out (removals.c). -EPERM when it does not lie there. */
errint_t lfs_change_unlink(struct lfs_mount *m, struct lfs_node *directory, const char *name, char **published);
errint_t lfs_change_mkdir(struct lfs_mount *m, struct lfs_node *directory, const char *name, mode_t mode,
                          struct fuse_entry_param *e);
errint_t lfs_change_rmdir(struct lfs_mount *m, struct lfs_node *directory, const char *name);
errint_t lfs_change_sync_directory(struct lfs_mount *m, const struct lfs_node *directory);

#endif
