/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A new file in two steps: its bytes are written under a name of their own first, so that they reach the disk together
 * with what the file tells of (flush.h); then it gets its name, at once and only if nothing has it.
 */
#ifndef LFS_STORE_PUBLISH_H
#define LFS_STORE_PUBLISH_H

#include <stdbool.h>

#include "store/flush.h"
#include "util/buf.h"
#include "util/error.h"

enum { LFS_PUBLISH_NAME_SIZE = 32 };

/* Begins as LFS_PUBLISH_NONE; end it with lfs_publish_drop. */
struct lfs_publish {
    int dir, fd;                      /* -1: not open */
    char name[LFS_PUBLISH_NAME_SIZE]; /* "" = nothing lies there any more */
    const char *becomes;              /* borrowed: the name that it is to have */
};
#define LFS_PUBLISH_NONE                                                                                               \
    { -1, -1, "", NULL }

/* Written, not flushed. `becomes` is borrowed. */
errint_t lfs_publish_write(struct lfs_publish *staged, int dirfd, const char *directory, const char *becomes,
                           const struct lfs_buf *bytes, struct lfs_error *err);
/* To be flushed with the others. */
errint_t lfs_publish_add(struct lfs_publish *staged, struct lfs_flush *flush, struct lfs_error *err);
/* Its name: -EEXIST where that is taken. With `sync` the directory is flushed. */
errint_t lfs_publish_name(struct lfs_publish *staged, bool sync, struct lfs_error *err);
/* What was not published is removed. */
void lfs_publish_drop(struct lfs_publish *staged);

#endif
