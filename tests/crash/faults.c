// SPDX-License-Identifier: Apache-2.0
// A library for LD_PRELOAD that makes calls fail, as a full disk, a storage without hard links or a broken one would. While
// the file LANCEFS_FAULTS is there, each of its lines "CALL ERRNO TEXT" makes calls of that name fail with that number
// where the path has TEXT in it ("-": any). "CALL! ..." does the call first and then says that it failed.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "preload.h"

// The errno that this call is to fail with; 0 = none. `*done`: only after it was done.
static int fault(const char *call, int dir, const char *name, bool *done) {
    char text[1024] = "", link[64], path[8192] = "", wanted[32], what[256];
    const char *from = getenv("LANCEFS_FAULTS");
    int fd = from ? (int)raw(SYS_openat, AT_FDCWD, from, O_RDONLY | O_CLOEXEC) : -1, number;
    if (fd < 0)
        return 0;
    raw(SYS_read, fd, text, sizeof text - 1);
    raw(SYS_close, fd);
    snprintf(link, sizeof link, "/proc/self/fd/%d", dir);
    long n = raw(SYS_readlinkat, AT_FDCWD, link, path, 4095);
    snprintf(path + (n > 0 ? n : 0), 4096, "/%s", name);
    for (char *rest, *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        if (sscanf(line, "%31s %d %255s", wanted, &number, what) != 3)
            abort();
        size_t length = strcspn(wanted, "!");
        *done = wanted[length] == '!';
        if (strlen(call) == length && strncmp(wanted, call, length) == 0 && (*what == '-' || strstr(path, what)))
            return number;
    }
    return 0;
}

#define FAILING(type, call, dir, name, perform)                                                                        \
    bool done = false;                                                                                                 \
    int number = fault(call, dir, name, &done);                                                                        \
    if (number && done)                                                                                                \
        (void)!(perform);                                                                                              \
    if (!number)                                                                                                       \
        return (perform);                                                                                              \
    errno = number;                                                                                                    \
    return (type)-1

int link(const char *a, const char *b) { FAILING(int, "link", AT_FDCWD, b, NEXT(link)(a, b)); }
int linkat(int d, const char *a, int e, const char *b, int f) {
    FAILING(int, "linkat", e, b, NEXT(linkat)(d, a, e, b, f));
}
int renameat(int d, const char *a, int e, const char *b) { FAILING(int, "renameat", e, b, NEXT(renameat)(d, a, e, b)); }
int renameat2(int d, const char *a, int e, const char *b, unsigned f) {
    FAILING(int, "renameat2", e, b, NEXT(renameat2)(d, a, e, b, f));
}
int mkdirat(int d, const char *a, mode_t m) { FAILING(int, "mkdirat", d, a, NEXT(mkdirat)(d, a, m)); }
int fsync(int fd) { FAILING(int, "fsync", fd, "", NEXT(fsync)(fd)); }
int fdatasync(int fd) { FAILING(int, "fsync", fd, "", NEXT(fdatasync)(fd)); }

static bool is_file(int fd) {
    struct stat st;
    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}
ssize_t write(int fd, const void *bytes, size_t n) {
    if (!is_file(fd))
        return NEXT(write)(fd, bytes, n);
    FAILING(ssize_t, "write", fd, "", NEXT(write)(fd, bytes, n));
}
ssize_t pwrite(int fd, const void *bytes, size_t n, off_t at) {
    FAILING(ssize_t, "write", fd, "", NEXT(pwrite)(fd, bytes, n, at));
}
ssize_t pwrite64(int fd, const void *bytes, size_t n, off64_t at) {
    FAILING(ssize_t, "write", fd, "", NEXT(pwrite64)(fd, bytes, n, at));
}
int openat(int dir, const char *name, int flags, ...) {
    va_list args;
    va_start(args, flags);
    mode_t mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
    va_end(args);
    if (!(flags & O_CREAT))
        return NEXT(openat)(dir, name, flags);
    FAILING(int, "create", dir, name, NEXT(openat)(dir, name, flags, mode));
}
long syscall(long number_, ...) {
    SYSCALL_ARGUMENTS(a, number_);
    const struct open_how *how = (const struct open_how *)a[2];
    if (number_ == SYS_openat2 && how->flags & O_CREAT) {
        FAILING(long, "create", (int)a[0], (char *)a[1], raw_call(number_, a));
    }
    if (number_ == SYS_renameat2) {
        FAILING(long, "renameat2", (int)a[2], (char *)a[3], raw_call(number_, a));
    }
    return raw_call(number_, a);
}
