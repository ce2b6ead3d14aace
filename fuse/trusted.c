/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuse/hooks.h"
#include "util/cleanup.h"

static bool is_ours(const struct stat *st) { return st->st_uid == 0 || st->st_uid == geteuid(); }

static bool others_write(const struct stat *st) { return st->st_mode & (S_IWGRP | S_IWOTH); }

/* In a directory with the sticky bit nobody renames or removes what is ours, so what stands below it is what we look at. */
static errint_t check(const struct stat *st, bool sticky_will_do, const char *path, int length, struct lfs_error *err) {
    if (!is_ours(st))
        return lfs_fail(err, LFS_E_DENIED, "hooks are not run: %.*s belongs to another user; chown it", length, path);
    if (others_write(st) && !(sticky_will_do && st->st_mode & S_ISVTX))
        return lfs_fail(err, LFS_E_DENIED, "hooks are not run: others can write to %.*s; chmod go-w it", length, path);
    return 0;
}

/* Each part is opened in the one before, so that what was looked at is what is passed through. */
errint_t lfs_trusted_directory(const char *dir, struct lfs_error *err) {
    char part[256];
    struct stat st;
    LFS_AUTO_FD at = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (const char *p = dir;;) {
        p += strspn(p, "/");
        int length = p == dir ? 1 : (int)(p - dir);
        if (at < 0 || fstat(at, &st) < 0)
            return lfs_fail_errno(err, errno, "hooks are not run: %.*s", length, dir);
        LFS_TRY(check(&st, *p, dir, length, err));
        size_t n = strcspn(p, "/");
        if (n == 0)
            return 0;
        if (n >= sizeof part)
            return lfs_fail_errno(err, ENAMETOOLONG, "hooks are not run: %s", dir);
        memcpy(part, p, n);
        part[n] = '\0';
        int next = openat(at, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (next < 0)
            return lfs_fail_errno(err, errno, "hooks are not run: %.*s", (int)(p + n - dir), dir);
        close(at);
        at = next;
        p += n;
    }
}

errint_t lfs_trusted_program(const char *dir, const char *name, struct lfs_error *err) {
    char path[4096];
    struct stat st;
    LFS_TRY(lfs_trusted_directory(dir, err));
    int length = snprintf(path, sizeof path, "%s/%s", dir, name);
    if (length < 0 || (size_t)length >= sizeof path)
        return lfs_fail_errno(err, ENAMETOOLONG, "hooks are not run: %s", dir);
    if (lstat(path, &st) < 0)
        return errno == ENOENT ? lfs_fail(err, LFS_E_NOT_FOUND, "%s is not there", path)
                               : lfs_fail_errno(err, errno, "hooks are not run: %s", path);
    if (!S_ISREG(st.st_mode))
        return lfs_fail(err, LFS_E_DENIED, "hooks are not run: %s is no regular file (a link is not followed)", path);
    LFS_TRY(check(&st, false, path, length, err));
    if (!(st.st_mode & S_IXUSR))
        return lfs_fail(err, LFS_E_DENIED, "hooks are not run: %s is not executable; chmod u+x it, or move it away",
                        path);
    return 0;
}
