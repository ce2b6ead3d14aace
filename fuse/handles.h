/* SPDX-License-Identifier: Apache-2.0 */
/* What an open file's handle is: fuse_file_info.fh points to one. */
#ifndef LFS_FUSE_HANDLES_H
#define LFS_FUSE_HANDLES_H

#include "fuse/mount.h"
#include "table/view.h"

struct lfs_talk;

struct lfs_handle {
    struct lfs_node *node;         /* held */
    int fd;                        /* of the real file; -1 = none */
    struct lfs_rendered *rendered; /* pinned while open; NULL = none */
    struct lfs_talk *control;      /* what is said through this open control file; NULL = it is none */
};

/* Close, and let go of the node. */
void lfs_handle_free(struct lfs_mount *m, struct lfs_handle *handle);
void lfs_talk_free(struct lfs_talk *talk); /* NULL is fine */

#endif
