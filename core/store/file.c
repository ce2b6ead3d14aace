/* SPDX-License-Identifier: Apache-2.0 */
#include "store/file.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/syscall.h>

#include "store/flush.h"
#include "store/publish.h"
#include "util/cancel.h"
#include "util/cleanup.h"

enum { OPEN_TRIES_MAX = 100, NAME_TRIES_MAX = 16, COPY_CHUNK = 1 << 20 };

int lfs_open_beneath(int dirfd, const char *path, int flags, mode_t mode) {
    struct open_how how = {
        .flags = (unsigned)flags | O_CLOEXEC,
        .mode = flags & O_CREAT ? mode : 0,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
    };
    const char *where = path && *path ? path : ".";
    for (int i = 0; i < OPEN_TRIES_MAX; i++) {
        long fd = syscall(SYS_openat2, dirfd, where, &how, sizeof how);
        if (fd >= 0)
            return (int)fd;
        if (errno == EXDEV) /* so the kernel calls a link or a ".." that leads out; to users it is about a link */
            return -ELOOP;
        if (errno != EAGAIN && errno != EINTR) /* EAGAIN: a rename raced with the walk */
            return -errno;
    }
    return -EAGAIN;
}

int lfs_open_regular(int dirfd, const char *path) {
    struct stat st;
    LFS_AUTO_FD fd = lfs_open_beneath(dirfd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
    if (fd < 0)
        return fd;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode))
        return S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
    return LFS_STEAL_FD(fd);
}

errint_t lfs_read_fd(int fd, const char *what, size_t max, struct lfs_buf *out, struct stat *st, struct lfs_error *err) {
    struct stat own;
    if (!st)
        st = &own;
    if (fstat(fd, st) < 0)
        return lfs_fail_errno(err, errno, "cannot stat %s", what);
    if ((uint64_t)st->st_size > max)
        return lfs_fail(err, LFS_E_TOO_BIG, "%s is too large: %lld bytes", what, (long long)st->st_size);
    size_t size = (size_t)st->st_size, done = 0;
    uint8_t *bytes = lfs_buf_extend(out, size);
    if (size && !bytes)
        return lfs_fail_nomem(err);
    while (done < size) {
        ssize_t n = pread(fd, bytes + done, size - done, (off_t)done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return lfs_fail_errno(err, errno, "cannot read %s", what);
        if (n == 0)
            return lfs_fail(err, LFS_E_CORRUPT, "%s became shorter while it was read", what);
        done += (size_t)n;
    }
    return 0;
}

errint_t lfs_read_file(int dirfd, const char *path, size_t max, struct lfs_buf *out, struct stat *st,
                       struct lfs_error *err) {
    LFS_AUTO_FD fd = lfs_open_regular(dirfd, path);
    if (fd < 0)
        return lfs_fail_errno(err, -fd, "cannot open %s", path);
    return lfs_read_fd(fd, path, max, out, st, err);
}

errint_t lfs_sync_dir(int dirfd, const char *directory, struct lfs_error *err) {
    LFS_AUTO_FD fd = lfs_open_beneath(dirfd, directory, O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0)
        return lfs_fail_errno(err, -fd, "cannot open %s", directory);
    if (fsync(fd) < 0 && errno != EINVAL) /* EINVAL: this file system does not flush directories */
        return lfs_fail_errno(err, errno, "cannot flush %s", directory);
    return 0;
}

/* What root makes in the directory of another user is his, with the directory's rights, as what he made there himself: he is
 * to go on reading his data set, whatever the umask of the program that root runs. Where it cannot be given away it stays. */
static void belong_as_beside(int dir, const char *name, mode_t rights) {
    struct stat st;
    if (geteuid() != 0 || fstat(dir, &st) < 0 || st.st_uid == 0)
        return;
    if (fchownat(dir, name, st.st_uid, st.st_gid, AT_SYMLINK_NOFOLLOW) == 0)
        fchmodat(dir, name, st.st_mode & rights, 0);
}

errint_t lfs_make_dirs(int dirfd, const char *path, bool sync, struct lfs_error *err) {
    char part[4096];
    size_t length = strlen(path);
    if (length >= sizeof part)
        return lfs_fail_errno(err, ENAMETOOLONG, "cannot make %s", path);
    int there = lfs_open_beneath(dirfd, path, O_PATH | O_DIRECTORY, 0);
    if (there >= 0) {
        close(there);
        return 0;
    }
    for (size_t end = 0; end < length;) {
        size_t start = end + (path[end] == '/');
        const char *slash = strchr(path + start, '/');
        end = slash ? (size_t)(slash - path) : length;
        memcpy(part, path, start);
        part[start ? start - 1 : 0] = 0;
        LFS_AUTO_FD parent = lfs_open_beneath(dirfd, part, O_RDONLY | O_DIRECTORY, 0);
        memcpy(part, path, end);
        part[end] = 0;
        if (parent < 0)
            return lfs_fail_errno(err, -parent, "cannot make %s", part);
        if (mkdirat(parent, part + start, 0777) == 0) {
            belong_as_beside(parent, part + start, 07777);
            if (sync && fsync(parent) < 0 && errno != EINVAL)
                return lfs_fail_errno(err, errno, "cannot flush the directory of %s", part);
        } else if (errno != EEXIST) {
            return lfs_fail_errno(err, errno, "cannot make %s", part);
        }
    }
    return 0;
}

static errint_t write_all(int fd, const struct lfs_buf *bytes, const char *name, struct lfs_error *err) {
    for (size_t done = 0; done < bytes->length;) {
        ssize_t n = write(fd, bytes->data + done, bytes->length - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return lfs_fail_errno(err, errno, "cannot write %s", name);
        done += (size_t)n;
    }
    return 0;
}

/* A new file with a name that no discovery of stock Lance takes for anything: it neither ends in "manifest" nor in
 * ".json", nor begins with 'd' (lance-format sections 1.1 and 2.1). */
static int stage(int dir, char name[LFS_PUBLISH_NAME_SIZE]) {
    for (int i = 0; i < NAME_TRIES_MAX; i++) {
        uint64_t random;
        if (getrandom(&random, sizeof random, 0) != sizeof random)
            return -EIO;
        snprintf(name, LFS_PUBLISH_NAME_SIZE, ".tmp-lancefs-%016llx", (unsigned long long)random);
        int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (fd < 0 && errno == EEXIST)
            continue;
        int error = errno;
        if (fd >= 0)
            belong_as_beside(dir, name, 0666);
        return fd >= 0 ? fd : -error;
    }
    return -EEXIST;
}

/* Flush and close; some file systems tell of a full disk only here. */
static errint_t finish(int *fd, bool sync, const char *name, struct lfs_error *err) {
    if (sync && fsync(*fd) < 0)
        return lfs_fail_errno(err, errno, "cannot flush %s", name);
    int open = LFS_STEAL_FD(*fd);
    if (close(open) < 0 && errno != EINTR)
        return lfs_fail_errno(err, errno, "cannot write %s", name);
    return 0;
}

/* What bucket mounts, exFAT and some containers say where a file cannot have a second name. */
static bool has_no_links(int error) {
    static const int those[] = {EPERM, EOPNOTSUPP, EMLINK, ENOSYS, EACCES, EXDEV};
    for (size_t i = 0; i < sizeof those / sizeof *those; i++)
        if (error == those[i])
            return true;
    return false;
}

/* Without links: a rename that replaces nothing is as exclusive. */
static errint_t settle_by_rename(int dir, const char *staged, const char *name, int linked, struct lfs_error *err) {
    if (syscall(SYS_renameat2, dir, staged, dir, name, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return lfs_fail_errno(err, errno, "cannot put %s in place", name);
    return lfs_fail_errno(err, -linked,
                          "cannot put %s in place: this file system has neither hard links nor renames that replace nothing, and "
                          "without one of them two writers could both win",
                          name);
}

static bool is_same_file(int a_dir, const char *a_name, int b_dir, const char *b_name) {
    struct stat a, b;
    return fstatat(a_dir, a_name, &a, AT_SYMLINK_NOFOLLOW) == 0 &&
           fstatat(b_dir, b_name, &b, AT_SYMLINK_NOFOLLOW) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static errint_t settle(int dir, const char *staged, const char *name, bool replace, bool sync, struct lfs_error *err) {
    if (replace) {
        if (renameat(dir, staged, dir, name) < 0)
            return lfs_fail_errno(err, errno, "cannot put %s in place", name);
    } else {
        /* link, not rename: an existing file is never replaced; rename without replace where links cannot be had */
        int linked = linkat(dir, staged, dir, name, 0) == 0 ? 0 : -errno;
        if (linked < 0 && is_same_file(dir, staged, dir, name))
            linked = 0; /* it was done, and the answer lost */
        if (linked == 0)
            unlinkat(dir, staged, 0);
        else if (!has_no_links(-linked))
            return lfs_fail_errno(err, -linked, "cannot put %s in place", name);
        else
            LFS_TRY(settle_by_rename(dir, staged, name, linked, err));
    }
    if (sync && fsync(dir) < 0 && errno != EINVAL)
        return lfs_fail_errno(err, errno, "cannot flush the directory of %s", name);
    return 0;
}

/* --- a new file, written aside first --- */

static errint_t begin(struct lfs_publish *staged, int dirfd, const char *directory, const char *becomes,
                      struct lfs_error *err) {
    staged->becomes = becomes;
    staged->dir = lfs_open_beneath(dirfd, directory, O_RDONLY | O_DIRECTORY, 0);
    if (staged->dir < 0)
        return lfs_fail_errno(err, -staged->dir, "cannot open %s", directory);
    staged->fd = stage(staged->dir, staged->name);
    if (staged->fd >= 0)
        return 0;
    *staged->name = 0;
    return lfs_fail_errno(err, -staged->fd, "cannot write in %s", *directory ? directory : "the data set's directory");
}

/* `flush`: the file itself, unless it was with others; `sync`: its name. */
static errint_t end(struct lfs_publish *staged, bool flush, bool replace, bool sync, struct lfs_error *err) {
    LFS_TRY(finish(&staged->fd, flush, staged->becomes, err));
    LFS_TRY(settle(staged->dir, staged->name, staged->becomes, replace, sync, err));
    *staged->name = 0;
    return 0;
}

errint_t lfs_publish_write(struct lfs_publish *staged, int dirfd, const char *directory, const char *becomes,
                           const struct lfs_buf *bytes, struct lfs_error *err) {
    LFS_TRY(begin(staged, dirfd, directory, becomes, err));
    return write_all(staged->fd, bytes, becomes, err);
}

errint_t lfs_publish_add(struct lfs_publish *staged, struct lfs_flush *flush, struct lfs_error *err) {
    int fd = fcntl(staged->fd, F_DUPFD_CLOEXEC, 0);
    return fd < 0 ? lfs_fail_errno(err, errno, "cannot flush %s", staged->becomes)
                  : lfs_flush_add(flush, fd, staged->becomes, false, err);
}

errint_t lfs_publish_name(struct lfs_publish *staged, bool sync, struct lfs_error *err) {
    return end(staged, false, false, sync, err);
}

void lfs_publish_drop(struct lfs_publish *staged) {
    if (*staged->name)
        unlinkat(staged->dir, staged->name, 0);
    if (staged->fd >= 0)
        close(staged->fd);
    if (staged->dir >= 0)
        close(staged->dir);
    *staged = (struct lfs_publish)LFS_PUBLISH_NONE;
}

static errint_t write_staged(int dirfd, const char *directory, const char *name, const struct lfs_buf *bytes,
                             bool replace, bool sync, struct lfs_error *err) {
    LFS_CLEANUP(lfs_publish_drop) struct lfs_publish staged = LFS_PUBLISH_NONE;
    LFS_TRY(lfs_publish_write(&staged, dirfd, directory, name, bytes, err));
    return end(&staged, sync, replace, sync, err);
}

errint_t lfs_write_new(int dirfd, const char *directory, const char *name, const struct lfs_buf *bytes, bool sync,
                       struct lfs_error *err) {
    return write_staged(dirfd, directory, name, bytes, false, sync, err);
}

errint_t lfs_write_new_after(int dirfd, const char *directory, const char *name, const struct lfs_buf *bytes,
                             struct lfs_flush *before, struct lfs_error *err) {
    LFS_CLEANUP(lfs_publish_drop) struct lfs_publish staged = LFS_PUBLISH_NONE;
    LFS_TRY(lfs_publish_write(&staged, dirfd, directory, name, bytes, err));
    LFS_TRY(lfs_publish_add(&staged, before, err));
    LFS_TRY(lfs_flush_run(before, err));
    return lfs_publish_name(&staged, true, err);
}

errint_t lfs_write_replace(int dirfd, const char *directory, const char *name, const struct lfs_buf *bytes, bool sync,
                           struct lfs_error *err) {
    return write_staged(dirfd, directory, name, bytes, true, sync, err);
}

int lfs_link_at(int source_dir, const char *source_name, int dir, const char *name) {
    if (linkat(source_dir, source_name, dir, name, 0) == 0) /* flags 0: a symbolic link is linked, not followed */
        return 0;
    int error = errno;
    return error == EEXIST && is_same_file(source_dir, source_name, dir, name) ? 1 : -error;
}

int lfs_link_beneath(int source_dirfd, const char *source_path, int dirfd, const char *directory, const char *name) {
    char parent[4096];
    const char *slash = strrchr(source_path, '/'), *last = slash ? slash + 1 : source_path;
    size_t length = slash ? (size_t)(slash - source_path) : 0;
    if (length >= sizeof parent)
        return -ENAMETOOLONG;
    memcpy(parent, source_path, length);
    parent[length] = 0;
    LFS_AUTO_FD from = lfs_open_beneath(source_dirfd, parent, O_PATH | O_DIRECTORY, 0);
    LFS_AUTO_FD to = lfs_open_beneath(dirfd, directory, O_PATH | O_DIRECTORY, 0);
    if (from < 0 || to < 0)
        return from < 0 ? from : to;
    return lfs_link_at(from, last, to, name);
}

/* By the kernel alone. *offset: how far it came; 0 where it cannot do that here. */
static errint_t copy_range(int source, int target, const char *name, const struct lfs_copying *c, off_t *offset,
                           struct lfs_error *err) {
    while (!lfs_is_cancelled(c->cancel)) {
        ssize_t n = copy_file_range(source, offset, target, NULL, COPY_CHUNK, 0);
        if (n == 0 || (n < 0 && errno != EINTR && *offset == 0))
            return 0;
        if (n < 0 && errno != EINTR)
            return lfs_fail_errno(err, errno, "cannot copy to %s", name);
        lfs_progress_bytes(c->progress, n > 0 ? (uint64_t)n : 0);
    }
    return lfs_fail(err, LFS_E_INTERRUPTED, "interrupted: nothing was committed");
}

static errint_t read_and_write(int source, int target, const char *name, const struct lfs_copying *c,
                               struct lfs_error *err) {
    LFS_AUTO_BUF chunk = {0};
    off_t offset = 0;
    if (!lfs_buf_extend(&chunk, COPY_CHUNK))
        return lfs_fail_nomem(err);
    while (!lfs_is_cancelled(c->cancel)) {
        ssize_t n = pread(source, chunk.data, COPY_CHUNK, offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return lfs_fail_errno(err, errno, "cannot read what is copied to %s", name);
        if (n == 0)
            return 0;
        chunk.length = (size_t)n;
        LFS_TRY(write_all(target, &chunk, name, err));
        lfs_progress_bytes(c->progress, (uint64_t)n);
        offset += n;
    }
    return lfs_fail(err, LFS_E_INTERRUPTED, "interrupted: nothing was committed");
}

static errint_t copy_bytes(int source, int target, const char *name, const struct lfs_copying *c, struct lfs_error *err) {
    struct stat st;
    off_t offset = 0;
    if (ioctl(target, FICLONE, source) == 0) {
        lfs_progress_bytes(c->progress, fstat(target, &st) == 0 ? (uint64_t)st.st_size : 0);
        return 0;
    }
    LFS_TRY(copy_range(source, target, name, c, &offset, err));
    return offset ? 0 : read_and_write(source, target, name, c, err);
}

errint_t lfs_copy_new(int source_fd, int dirfd, const char *directory, const char *name, bool sync,
                      const struct lfs_copying *copying, struct lfs_error *err) {
    LFS_CLEANUP(lfs_publish_drop) struct lfs_publish staged = LFS_PUBLISH_NONE;
    LFS_TRY(begin(&staged, dirfd, directory, name, err));
    LFS_TRY(copy_bytes(source_fd, staged.fd, name, copying, err));
    return end(&staged, sync, false, sync, err);
}

errint_t lfs_copy_once(int source_fd, int dirfd, const char *directory, const char *name, bool sync,
                       const struct lfs_copying *copying, struct lfs_error *err) {
    struct stat a, b;
    LFS_AUTO_FREE char *path = NULL;
    if (asprintf(&path, "%s/%s", directory, name) < 0)
        return lfs_fail_nomem(err);
    LFS_AUTO_FD other = lfs_open_beneath(dirfd, path, O_PATH, 0);
    if (other < 0)
        return lfs_copy_new(source_fd, dirfd, directory, name, sync, copying, err);
    if (fstat(source_fd, &a) == 0 && fstat(other, &b) == 0 && a.st_size == b.st_size)
        return 0;
    return lfs_fail(err, LFS_E_CORRUPT, "%s is in the way: another file of that name", path);
}
