/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files and directories that are to be on the disk before something names them: flushed at the same time, so that it
 * costs about what the slowest of them does. What must be there before another is has to be flushed before it.
 */
#ifndef LFS_STORE_FLUSH_H
#define LFS_STORE_FLUSH_H

#include <stdbool.h>
#include <stddef.h>

#include "util/error.h"
#include "util/limits.h"

struct lfs_flush_item {
    int fd;           /* owned */
    const char *name; /* borrowed; for messages */
    bool is_directory;
    int error; /* errno; 0 = flushed */
};

/* Begins as {0}; end it with lfs_flush_close. */
struct lfs_flush {
    struct lfs_flush_item items[LFS_FLUSH_TOGETHER_MAX];
    size_t count;
};

/* `fd` is taken over, also when it fails. */
errint_t lfs_flush_add(struct lfs_flush *flush, int fd, const char *name, bool is_directory, struct lfs_error *err);
/* A directory beneath `dirfd`. -ENOENT where there is none. */
errint_t lfs_flush_add_directory(struct lfs_flush *flush, int dirfd, const char *path, struct lfs_error *err);
/* The file `name` of a directory beneath `dirfd`. */
errint_t lfs_flush_add_file(struct lfs_flush *flush, int dirfd, const char *directory, const char *name,
                            struct lfs_error *err);
/* All of them are on the disk when it returns 0. */
errint_t lfs_flush_run(struct lfs_flush *flush, struct lfs_error *err);
void lfs_flush_close(struct lfs_flush *flush);

#endif
