/* SPDX-License-Identifier: Apache-2.0 */
/*
 * _refs/tags in a branch's directory, where stock Lance keeps tags: the data set's tags that name this branch, each as a
 * data set without branches would have it. A tag that is made, moved or removed there is one of the data set, on this
 * branch. Reachable by name, not listed, so that copies of a branch do without. Tags of other branches are not shown, but
 * their names are taken (EEXIST).
 */
#ifndef LFS_FUSE_TAG_REFS_H
#define LFS_FUSE_TAG_REFS_H

#include "fuse/mount.h"
#include "fuse/texts.h"

#define LFS_TAG_REFS "_refs/tags"

/* Is the directory _refs/tags of a branch? */
bool lfs_is_tag_refs(const struct lfs_node *directory);
/* Is it a name of a tag's file there, rather than of one that is being written? */
bool lfs_is_tag_ref_name(const char *name);

/* For texts.c: `what` is a path below the branch's directory `place`. */
enum lfs_text_is lfs_tag_ref_is(struct lfs_mount *m, const struct lfs_node *place, const char *what);
errint_t lfs_tag_ref_render(struct lfs_mount *m, const struct lfs_node *place, const char *what, struct lfs_buf *out,
                            struct timespec *time);

/* The names of their files, in `arena`. */
errint_t lfs_tag_refs_list(struct lfs_mount *m, const struct lfs_node *directory, struct lfs_arena *arena, char ***out,
                           size_t *n_out);

/* The file that lies in `fd` becomes the tag's under `name`. A tag of this branch is moved with `replace`, else -EEXIST. */
errint_t lfs_tag_refs_publish(struct lfs_mount *m, const struct lfs_node *directory, int fd, const char *name,
                              bool replace);
errint_t lfs_tag_refs_remove(struct lfs_mount *m, const struct lfs_node *directory, const char *name);

#endif
