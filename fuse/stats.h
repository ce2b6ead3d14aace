/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the mount has done since it was made, for MNT/.stats (Prometheus text format 0.0.4). Counters are atomics: no
 * request waits for another to be counted.
 */
#ifndef LFS_FUSE_STATS_H
#define LFS_FUSE_STATS_H

#include "fuse/mount.h"

enum lfs_op {
    LFS_OP_LOOKUP,
    LFS_OP_FORGET,
    LFS_OP_GETATTR,
    LFS_OP_SETATTR,
    LFS_OP_READLINK,
    LFS_OP_OPEN,
    LFS_OP_READ,
    LFS_OP_WRITE,
    LFS_OP_FLUSH,
    LFS_OP_POLL,
    LFS_OP_RELEASE,
    LFS_OP_OPENDIR,
    LFS_OP_READDIR,
    LFS_OP_RELEASEDIR,
    LFS_OP_MKDIR,
    LFS_OP_RMDIR,
    LFS_OP_SYMLINK,
    LFS_OP_UNLINK,
    LFS_OP_RENAME,
    LFS_OP_CREATE,
    LFS_OP_LINK,
    LFS_OP_FSYNC,
    LFS_OP_STATFS,
    LFS_OP_XATTR,
    LFS_OPS,
};

enum lfs_read_kind {
    LFS_READ_STORED,   /* data, deletion and index files, and manifests that are shown as they lie there */
    LFS_READ_RENDERED, /* manifests and transactions without base paths */
    LFS_READ_TEXT,     /* reports */
    LFS_READ_ANSWER,   /* control files */
    LFS_READ_KINDS,
};

struct lfs_stats *lfs_stats_new(void); /* NULL when memory is short */
void lfs_stats_free(struct lfs_stats *stats);

uint64_t lfs_stats_now(void); /* nanoseconds of the monotonic clock */
/* An operation that began at `start` has been handled (the answer of a command may come later: see below). */
void lfs_stats_op(struct lfs_stats *stats, enum lfs_op op, uint64_t start);
void lfs_stats_read(struct lfs_stats *stats, enum lfs_read_kind kind, size_t bytes);
void lfs_stats_written(struct lfs_stats *stats, size_t bytes);
/* A command of control file `file` that began at `start` gave this answer. */
void lfs_stats_command(struct lfs_stats *stats, const char *file, const char *answer, size_t length, uint64_t start);

/* The text of MNT/.stats. */
errint_t lfs_stats_render(struct lfs_mount *m, struct lfs_buf *out, struct timespec *time, struct lfs_error *err);

#endif
