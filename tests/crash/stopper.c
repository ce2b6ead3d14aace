// SPDX-License-Identifier: Apache-2.0
// A library for LD_PRELOAD that kills the process (SIGKILL, as a power cut would) just before its n-th call that changes
// the file system. Counting begins when the file LANCEFS_STOP_ARMED exists and starts anew whenever it is made anew; the
// file's first line is n. 0 counts without killing. Each call adds a line to LANCEFS_STOP_COUNT: its number, its name and
// the file that it is about. With LANCEFS_STOP_HOLD=PATH it is not killed but held: a
// line goes into the fifo PATH.here, and it goes on when one comes out of the fifo PATH.on. Meanwhile each call that opens a
// file adds a line to LANCEFS_STOP_OPENS, if that is set. With LANCEFS_STOP_COPIES=DIR it is neither: before each call the
// tree LANCEFS_STOP_ROOT is copied to DIR/<its number>, which is what a kill at that call leaves (but not before a flush:
// the call after it finds the same).
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#include "preload.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static ino_t armed_by;
static long count;

static long read_limit(const char *path) {
    char text[32] = {0};
    int fd = (int)raw(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    long n = raw(SYS_read, fd, text, sizeof text - 1);
    raw(SYS_close, fd);
    return n > 0 ? atol(text) : 0;
}

// The file that a descriptor stands for; empty for none.
static void name_of(int fd, char *to, size_t size) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    long n = raw(SYS_readlinkat, AT_FDCWD, link, to, size - 1);
    to[n > 0 ? n : 0] = 0;
}

// "COUNT CALL FILE", or "CALL FILE" for a count below 0, to the file that the environment names.
static void write_line(const char *variable, long number, const char *call, int dir, const char *name) {
    const char *path = getenv(variable);
    if (!path)
        return;
    char text[1200], in[512], which[24] = "";
    name_of(dir, in, sizeof in);
    if (number >= 0)
        snprintf(which, sizeof which, "%ld ", number);
    int n = snprintf(text, sizeof text, "%s%s %s%s%.512s\n", which, call, in, *in && *name ? "/" : "", name);
    int fd = (int)raw(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    raw(SYS_write, fd, text, (size_t)n);
    raw(SYS_close, fd);
}

static void hold(const char *prefix) {
    char path[512], word[16];
    snprintf(path, sizeof path, "%s.here", prefix);
    int here = (int)raw(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC);
    raw(SYS_write, here, "here\n", (size_t)5);
    raw(SYS_close, here);
    snprintf(path, sizeof path, "%s.on", prefix);
    int on = (int)raw(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    raw(SYS_read, on, word, sizeof word);
    raw(SYS_close, on);
}

static void copy_tree(const char *to) {
    char path[600];
    pid_t child;
    int status = 1;
    snprintf(path, sizeof path, "%s/%ld", to, count);
    char *const arguments[] = {"cp", "-a", getenv("LANCEFS_STOP_ROOT"), path, NULL};
    char *const environment[] = {"PATH=/usr/bin:/bin", NULL}; // without this library
    if (posix_spawnp(&child, "cp", NULL, NULL, arguments, environment) || waitpid(child, &status, 0) < 0 || status)
        abort(); // a test must not miss a state
}

// `name` in the directory `dir`, or "" for the file `dir` itself.
static void before(const char *call, int dir, const char *name) {
    const char *path = getenv("LANCEFS_STOP_ARMED");
    struct stat st;
    if (!path || stat(path, &st))
        return;
    pthread_mutex_lock(&lock);
    if (st.st_ino != armed_by) {
        armed_by = st.st_ino;
        count = 0;
    }
    count++;
    write_line("LANCEFS_STOP_COUNT", count, call, dir, name);
    if (getenv("LANCEFS_STOP_COPIES") && !strstr(call, "sync"))
        copy_tree(getenv("LANCEFS_STOP_COPIES"));
    if (count == read_limit(path) && getenv("LANCEFS_STOP_HOLD"))
        hold(getenv("LANCEFS_STOP_HOLD"));
    else if (count == read_limit(path))
        raw(SYS_kill, getpid(), SIGKILL);
    pthread_mutex_unlock(&lock);
}

static void opens(const char *call, int dir, const char *name) {
    const char *path = getenv("LANCEFS_STOP_ARMED");
    struct stat st;
    if (path && !stat(path, &st))
        write_line("LANCEFS_STOP_OPENS", -1, call, dir, name);
}

#define WRAP(name, dir, file, params, ...)                                                                             \
    int name params {                                                                                                  \
        before(#name, dir, file);                                                                                      \
        return NEXT(name)(__VA_ARGS__);                                                                                \
    }

WRAP(link, AT_FDCWD, b, (const char *a, const char *b), a, b)
WRAP(linkat, e, b, (int d, const char *a, int e, const char *b, int f), d, a, e, b, f)
WRAP(symlinkat, d, b, (const char *a, int d, const char *b), a, d, b)
WRAP(rename, AT_FDCWD, b, (const char *a, const char *b), a, b)
WRAP(renameat, e, b, (int d, const char *a, int e, const char *b), d, a, e, b)
WRAP(renameat2, e, b, (int d, const char *a, int e, const char *b, unsigned f), d, a, e, b, f)
WRAP(unlink, AT_FDCWD, a, (const char *a), a)
WRAP(unlinkat, d, a, (int d, const char *a, int f), d, a, f)
WRAP(mkdir, AT_FDCWD, a, (const char *a, mode_t m), a, m)
WRAP(mkdirat, d, a, (int d, const char *a, mode_t m), d, a, m)
WRAP(fsync, fd, "", (int fd), fd)
WRAP(fdatasync, fd, "", (int fd), fd)
WRAP(syncfs, fd, "", (int fd), fd)
WRAP(ftruncate, fd, "", (int fd, off_t n), fd, n)
WRAP(ftruncate64, fd, "", (int fd, off64_t n), fd, n)

// Writes count on regular files only: the FUSE device, the log and the kernel's settings of a mount are written too.
static int changes_file(int fd) {
    struct stat st;
    struct statfs fs;
    int flags = fcntl(fd, F_GETFL);
    return !fstat(fd, &st) && S_ISREG(st.st_mode) && flags >= 0 && !(flags & O_APPEND) && !fstatfs(fd, &fs) &&
           fs.f_type != SYSFS_MAGIC;
}

ssize_t write(int fd, const void *bytes, size_t n) {
    if (changes_file(fd))
        before("write", fd, "");
    return NEXT(write)(fd, bytes, n);
}
ssize_t pwrite(int fd, const void *bytes, size_t n, off_t at) {
    if (changes_file(fd))
        before("pwrite", fd, "");
    return NEXT(pwrite)(fd, bytes, n, at);
}
ssize_t pwrite64(int fd, const void *bytes, size_t n, off64_t at) {
    if (changes_file(fd))
        before("pwrite", fd, "");
    return NEXT(pwrite64)(fd, bytes, n, at);
}
ssize_t copy_file_range(int in, off_t *i, int out, off_t *o, size_t n, unsigned f) {
    before("copy_file_range", out, "");
    return NEXT(copy_file_range)(in, i, out, o, n, f);
}

static mode_t mode_of(int flags, va_list args) {
    return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? (mode_t)va_arg(args, int) : 0;
}

#define WRAP_OPEN(name)                                                                                                \
    int name(const char *path, int flags, ...) {                                                                       \
        va_list args;                                                                                                  \
        va_start(args, flags);                                                                                         \
        mode_t mode = mode_of(flags, args);                                                                            \
        va_end(args);                                                                                                  \
        if (flags & O_CREAT)                                                                                           \
            before(#name, AT_FDCWD, path);                                                                             \
        opens(#name, AT_FDCWD, path);                                                                                  \
        return NEXT(name)(path, flags, mode);                                                                          \
    }
#define WRAP_OPENAT(name)                                                                                              \
    int name(int dir, const char *path, int flags, ...) {                                                              \
        va_list args;                                                                                                  \
        va_start(args, flags);                                                                                         \
        mode_t mode = mode_of(flags, args);                                                                            \
        va_end(args);                                                                                                  \
        if (flags & O_CREAT)                                                                                           \
            before(#name, dir, path);                                                                                  \
        opens(#name, dir, path);                                                                                       \
        return NEXT(name)(dir, path, flags, mode);                                                                     \
    }
WRAP_OPEN(open)
WRAP_OPEN(open64)
WRAP_OPENAT(openat)
WRAP_OPENAT(openat64)

// Calls that the C library has no function for.
long syscall(long number, ...) {
    SYSCALL_ARGUMENTS(a, number);
    if (number == SYS_openat2)
        opens("openat2", (int)a[0], (const char *)a[1]);
    else if (number == SYS_renameat2)
        before("renameat2", (int)a[2], (const char *)a[3]);
    return raw_call(number, a);
}
