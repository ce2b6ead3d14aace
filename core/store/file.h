/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files on the disk. Every path is relative to a directory descriptor and stays beneath it: "..", absolute links and
 * links that lead out are refused by the kernel (openat2), so what a data set says can never reach around it.
 */
#ifndef LFS_STORE_FILE_H
#define LFS_STORE_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "util/buf.h"
#include "util/error.h"
#include "util/progress.h"

/* openat2 beneath `dirfd`; "" or NULL is the directory itself. The descriptor or a negative errno: -ELOOP for a path that
 * leads out. */
int lfs_open_beneath(int dirfd, const char *path, int flags, mode_t mode);

/* A regular file, read-only; never blocks on a fifo or a device (EINVAL for those). Negative errno. */
int lfs_open_regular(int dirfd, const char *path);

/* Read a whole regular file of at most `max` bytes, appended to `out`. `st` may be NULL. */
errint_t lfs_read_file(int dirfd, const char *path, size_t max, struct lfs_buf *out, struct stat *st,
                       struct lfs_error *err);
errint_t lfs_read_fd(int fd, const char *what, size_t max, struct lfs_buf *out, struct stat *st, struct lfs_error *err);

/* Make a directory and its parents beneath `dirfd`; one that is there already is fine. With `sync` each new entry is
 * flushed. */
errint_t lfs_make_dirs(int dirfd, const char *path, bool sync, struct lfs_error *err);

/* Write a new file <directory>/<name>: staged under a name of its own beside it, flushed when `sync`, moved into place.
 * The name must be new (random ids): an existing file is EEXIST and left alone. */
errint_t lfs_write_new(int dirfd, const char *directory, const char *name, const struct lfs_buf *bytes, bool sync,
                       struct lfs_error *err);

struct lfs_flush;
/* The same: the new file and what `before` holds are flushed together, before the name is there. */
errint_t lfs_write_new_after(int dirfd, const char *directory, const char *name, const struct lfs_buf *bytes,
                             struct lfs_flush *before, struct lfs_error *err);

/* Write or replace a file atomically (temp + rename). For hints and refs, whose last writer wins. */
errint_t lfs_write_replace(int dirfd, const char *directory, const char *name, const struct lfs_buf *bytes, bool sync,
                           struct lfs_error *err);

/* Flush a directory's entries. */
errint_t lfs_sync_dir(int dirfd, const char *directory, struct lfs_error *err);

/*
 * Give a file a further name <directory>/<name>: a hard link of `source_path` (beneath `source_dirfd`).
 * 0, or 1 when that name is this very file already. -EEXIST when another file has that name; -EXDEV, -EPERM, -EMLINK,
 * ... where it cannot be linked: the caller copies instead.
 */
int lfs_link_beneath(int source_dirfd, const char *source_path, int dirfd, const char *directory, const char *name);
/* The same between two open directories; the names hold no '/'. Opens nothing. */
int lfs_link_at(int source_dir, const char *source_name, int dir, const char *name);

/* A copy of `source_fd` as a new file, sharing extents where the file system can; flushed when `sync`. How far it is, and
 * whether it is to go on, is asked for each MiB: LFS_E_INTERRUPTED leaves no file. */
struct lfs_copying {
    const atomic_bool *cancel;     /* may be NULL */
    struct lfs_progress *progress; /* may be NULL: its bytes */
};
errint_t lfs_copy_new(int source_fd, int dirfd, const char *directory, const char *name, bool sync,
                      const struct lfs_copying *copying, struct lfs_error *err);
/* The same, unless an earlier copy is there: names are unique, so a file of that name and size is this one. LFS_E_CORRUPT
 * where another file is in the way. */
errint_t lfs_copy_once(int source_fd, int dirfd, const char *directory, const char *name, bool sync,
                       const struct lfs_copying *copying, struct lfs_error *err);

#endif
