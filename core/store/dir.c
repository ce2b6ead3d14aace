/* SPDX-License-Identifier: Apache-2.0 */
#include "store/dir.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "store/file.h"
#include "util/cleanup.h"

enum { DEPTH_MAX = 256 };

/* A path taken apart: its directory, opened, and its last component. */
struct place {
    int dir;
    const char *name;
};
static void close_place(struct place *p) { lfs_cleanup_fd(&p->dir); }
#define AUTO_PLACE LFS_CLEANUP(close_place) struct place

static struct place find_place(int dirfd, const char *path) {
    char parent[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) : 0;
    if (length >= sizeof parent)
        return (struct place){-ENAMETOOLONG, path};
    memcpy(parent, path, length);
    parent[length] = 0;
    return (struct place){lfs_open_beneath(dirfd, parent, O_RDONLY | O_DIRECTORY, 0), slash ? slash + 1 : path};
}

enum lfs_path_kind lfs_path_kind(int dirfd, const char *path) {
    struct stat st;
    AUTO_PLACE p = find_place(dirfd, path);
    if (p.dir < 0 || fstatat(p.dir, p.name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return LFS_PATH_NONE;
    return S_ISDIR(st.st_mode) ? LFS_PATH_DIR : S_ISLNK(st.st_mode) ? LFS_PATH_LINK : LFS_PATH_FILE;
}

static errint_t flush(int dir, bool sync, const char *what, struct lfs_error *err) {
    if (sync && fsync(dir) < 0 && errno != EINVAL) /* EINVAL: this file system does not flush directories */
        return lfs_fail_errno(err, errno, "cannot flush the directory of %s", what);
    return 0;
}

/* Where the file system cannot move without replacing: looked at first. Only lancefs moves these names, and its
 * processes lock each other out. */
static int move_plain(const struct place *from, const struct place *to) {
    struct stat st;
    if (fstatat(to->dir, to->name, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return -EEXIST;
    return renameat(from->dir, from->name, to->dir, to->name) < 0 ? -errno : 0;
}

errint_t lfs_move_new(int dirfd, const char *from, const char *to, bool sync, struct lfs_error *err) {
    AUTO_PLACE a = find_place(dirfd, from);
    AUTO_PLACE b = find_place(dirfd, to);
    if (a.dir < 0 || b.dir < 0)
        return lfs_fail_errno(err, a.dir < 0 ? -a.dir : -b.dir, "cannot move %s to %s", from, to);
    int result = renameat2(a.dir, a.name, b.dir, b.name, RENAME_NOREPLACE) < 0 ? -errno : 0;
    if (result == -EINVAL || result == -ENOSYS)
        result = move_plain(&a, &b);
    if (result == -ENOTEMPTY)
        result = -EEXIST;
    if (result < 0)
        return lfs_fail_errno(err, -result, "cannot move %s to %s", from, to);
    LFS_TRY(flush(b.dir, sync, to, err));
    return flush(a.dir, sync, from, err);
}

/* The way from the directory of `from` to `to`, both relative to one directory. False when it does not fit. */
static bool way_between(const char *from, const char *to, char *way, size_t size) {
    size_t n = 0;
    for (const char *slash = strchr(from, '/'); slash && n + 4 < size; slash = strchr(slash + 1, '/'))
        n += (size_t)snprintf(way + n, size - n, "../");
    return n + strlen(to) < size && snprintf(way + n, size - n, "%s", to) >= 0;
}

static int exchange(const struct place *a, const struct place *b, const char *way) {
    if (symlinkat(way, b->dir, b->name) < 0 && errno != EEXIST)
        return -errno;
    struct stat st;
    if (fstatat(b->dir, b->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if (!S_ISLNK(st.st_mode))
        return -EEXIST;
    if (renameat2(a->dir, a->name, b->dir, b->name, RENAME_EXCHANGE) == 0)
        return 0;
    int error = -errno;
    unlinkat(b->dir, b->name, 0);
    return error;
}

errint_t lfs_move_linked(int dirfd, const char *from, const char *to, bool sync, struct lfs_error *err) {
    char way[PATH_MAX];
    AUTO_PLACE a = find_place(dirfd, from);
    AUTO_PLACE b = find_place(dirfd, to);
    if (a.dir < 0 || b.dir < 0)
        return lfs_fail_errno(err, a.dir < 0 ? -a.dir : -b.dir, "cannot move %s to %s", from, to);
    if (!way_between(from, to, way, sizeof way))
        return lfs_fail_errno(err, ENAMETOOLONG, "cannot move %s to %s", from, to);
    int result = exchange(&a, &b, way);
    if (result == -EINVAL || result == -ENOSYS || result == -EPERM || result == -EOPNOTSUPP) {
        result = move_plain(&a, &b);
        if (result == 0 && symlinkat(way, a.dir, a.name) < 0)
            errno = 0; /* readers of the old name find nothing until all is done */
    }
    if (result < 0)
        return lfs_fail_errno(err, -result, "cannot move %s to %s", from, to);
    LFS_TRY(flush(b.dir, sync, to, err));
    return flush(a.dir, sync, from, err);
}

static int exchange_by_way(const struct place *a, const struct place *b, const struct place *aside) {
    if (renameat(a->dir, a->name, aside->dir, aside->name) < 0)
        return -errno;
    if (renameat(b->dir, b->name, a->dir, a->name) < 0) {
        int error = -errno;
        return renameat(aside->dir, aside->name, a->dir, a->name) < 0 ? -errno : error;
    }
    return renameat(aside->dir, aside->name, b->dir, b->name) < 0 ? -errno : 0;
}

errint_t lfs_exchange_dirs(int dirfd, const char *a, const char *b, const char *aside, bool sync, struct lfs_error *err) {
    AUTO_PLACE from = find_place(dirfd, a);
    AUTO_PLACE to = find_place(dirfd, b);
    AUTO_PLACE way = find_place(dirfd, aside);
    int result = from.dir < 0 ? from.dir : to.dir < 0 ? to.dir : way.dir < 0 ? way.dir : 0;
    if (result == 0)
        result = renameat2(from.dir, from.name, to.dir, to.name, RENAME_EXCHANGE) < 0 ? -errno : 0;
    if (result == -EINVAL || result == -ENOSYS || result == -EPERM || result == -EOPNOTSUPP)
        result = exchange_by_way(&from, &to, &way);
    if (result < 0)
        return lfs_fail_errno(err, -result, "cannot exchange %s and %s", a, b);
    LFS_TRY(flush(from.dir, sync, a, err));
    return flush(to.dir, sync, b, err);
}

/* --- removing --- */

static int remove_one(int dir, const char *name) {
    if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return -errno;
    return unlinkat(dir, name, AT_REMOVEDIR) == 0 || errno == ENOENT ? 0 : -errno;
}

errint_t lfs_remove(int dirfd, const char *path, bool sync, struct lfs_error *err) {
    AUTO_PLACE p = find_place(dirfd, path);
    if (p.dir == -ENOENT)
        return 0;
    int result = p.dir < 0 ? p.dir : remove_one(p.dir, p.name);
    if (result < 0)
        return lfs_fail_errno(err, -result, "cannot remove %s", path);
    return flush(p.dir, sync, path, err);
}

static int remove_below(int parent, const char *name, unsigned depth);

static int empty_dir(int fd, unsigned depth) {
    DIR *list = fdopendir(fd);
    int result = 0;
    if (!list) {
        close(fd);
        return -ENOMEM;
    }
    for (struct dirent *e; result == 0 && (e = readdir(list));)
        if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
            result = remove_below(dirfd(list), e->d_name, depth + 1);
    closedir(list);
    return result;
}

static int remove_below(int parent, const char *name, unsigned depth) {
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : errno == ENOTDIR || errno == ELOOP ? remove_one(parent, name) : -errno;
    if (depth > DEPTH_MAX) {
        close(fd);
        return -ELOOP;
    }
    int result = empty_dir(fd, depth);
    return result < 0 ? result : remove_one(parent, name);
}

errint_t lfs_remove_tree(int dirfd, const char *path, struct lfs_error *err) {
    AUTO_PLACE p = find_place(dirfd, path);
    if (p.dir == -ENOENT)
        return 0;
    int result = p.dir < 0 ? p.dir : remove_below(p.dir, p.name, 0);
    return result < 0 ? lfs_fail_errno(err, -result, "cannot remove %s", path) : 0;
}

void lfs_remove_empty(int dirfd, const char *path, const char *top) {
    char part[PATH_MAX];
    size_t length = strlen(path);
    if (length >= sizeof part)
        return;
    memcpy(part, path, length + 1);
    while (strlen(part) > strlen(top)) {
        AUTO_PLACE p = find_place(dirfd, part);
        char *slash = strrchr(part, '/');
        if (p.dir >= 0 && unlinkat(p.dir, p.name, AT_REMOVEDIR) < 0 && errno != ENOENT)
            return;
        if (!slash)
            return;
        *slash = 0;
    }
}
