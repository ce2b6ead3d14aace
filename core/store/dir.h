/* SPDX-License-Identifier: Apache-2.0 */
/* Names on the disk: moved and removed. Paths are as in store/file.h, and stay beneath `dirfd` like those. */
#ifndef LFS_STORE_DIR_H
#define LFS_STORE_DIR_H

#include <stdbool.h>

#include "util/error.h"

/* What a path is, its last component not followed. */
enum lfs_path_kind { LFS_PATH_NONE, LFS_PATH_FILE, LFS_PATH_DIR, LFS_PATH_LINK };
enum lfs_path_kind lfs_path_kind(int dirfd, const char *path);

/* Move without ever replacing: -EEXIST when `to` is there, -ENOENT when `from` is not. With `sync` both directories are
 * flushed. */
errint_t lfs_move_new(int dirfd, const char *from, const char *to, bool sync, struct lfs_error *err);

/*
 * Move the directory `from` to `to` and leave a link at `from` that leads to it, in one step, so that no reader ever
 * finds neither name. `to` may be such a link already (an earlier try); another thing there is -EEXIST. Where the file
 * system cannot exchange names these are two steps; where it has no links there is none.
 */
errint_t lfs_move_linked(int dirfd, const char *from, const char *to, bool sync, struct lfs_error *err);

/*
 * Two directories change places, in one step where the file system can; else by way of the name `aside`, which must be
 * free: then a stop in the middle leaves `a` missing and its directory at `aside`.
 */
errint_t lfs_exchange_dirs(int dirfd, const char *a, const char *b, const char *aside, bool sync, struct lfs_error *err);

/* One that is not there is fine. A directory must be empty. */
errint_t lfs_remove(int dirfd, const char *path, bool sync, struct lfs_error *err);
/* With all that is in it; links are removed, never followed. */
errint_t lfs_remove_tree(int dirfd, const char *path, struct lfs_error *err);
/* Remove the directory `path` and those above it, up to but without `top`, as long as they are empty. */
void lfs_remove_empty(int dirfd, const char *path, const char *top);

#endif
