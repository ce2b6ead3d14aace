// SPDX-License-Identifier: Apache-2.0
// A library for LD_PRELOAD that records what a process changes in a directory tree, and what it flushes: enough to say what
// a power cut after any of its calls may leave. LANCEFS_RECORD_ROOT is the tree; while the directory LANCEFS_RECORD_TO is
// there, each call adds lines of JSON to its file "log":
//   {"call":..,"new":INO}                               a file was made; nothing of it is on the disk
//   {"call":..,"file":INO,"copy":NAME}                  a file was flushed; NAME in LANCEFS_RECORD_TO holds its bytes
//   {"call":..,"dir":INO,"synced":BOOL,"entries":[..]}  a directory was changed or flushed; [name, "d" or "f", INO] of each
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "preload.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // one call at a time, so that the log has their order
static unsigned copies;

static const char *to(void) {
    const char *dir = getenv("LANCEFS_RECORD_TO");
    struct stat st;
    return dir && stat(dir, &st) == 0 ? dir : NULL;
}

static bool path_of(int fd, char path[4096]) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    long n = raw(SYS_readlinkat, AT_FDCWD, link, path, 4095);
    path[n > 0 ? n : 0] = 0;
    return n > 0;
}

static bool is_in_root(int fd) {
    char path[4096];
    const char *root = getenv("LANCEFS_RECORD_ROOT");
    return root && path_of(fd, path) && strncmp(path, root, strlen(root)) == 0;
}

static void add_line(const char *text, size_t size) {
    char path[4200];
    snprintf(path, sizeof path, "%s/log", to());
    int fd = (int)raw(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0 || raw(SYS_write, fd, text, size) != (long)size)
        abort(); // a test must not take half a record for a whole one
    raw(SYS_close, fd);
}

static void record_new(const char *call, int fd) {
    char line[200];
    struct stat st;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        add_line(line, (size_t)snprintf(line, sizeof line, "{\"call\":\"%s\",\"new\":%lu}\n", call,
                                        (unsigned long)st.st_ino));
}

static void record_file(const char *call, int fd) {
    char link[64], path[4200], line[200];
    static char bytes[1 << 16];
    struct stat st;
    if (fstat(fd, &st) || !S_ISREG(st.st_mode))
        return;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    snprintf(path, sizeof path, "%s/%u", to(), ++copies);
    int in = (int)raw(SYS_openat, AT_FDCWD, link, O_RDONLY | O_CLOEXEC);
    int out = (int)raw(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (in < 0 || out < 0)
        abort();
    for (long n; (n = raw(SYS_read, in, bytes, sizeof bytes)) > 0;)
        if (raw(SYS_write, out, bytes, (size_t)n) != n)
            abort();
    raw(SYS_close, in);
    raw(SYS_close, out);
    add_line(line, (size_t)snprintf(line, sizeof line, "{\"call\":\"%s\",\"file\":%lu,\"copy\":\"%u\"}\n", call,
                                    (unsigned long)st.st_ino, copies));
}

// Names in a data set need no escapes.
static void record_dir(const char *call, int fd, bool synced) {
    char path[4096], *text = NULL;
    size_t size = 0;
    struct stat st;
    if (!path_of(fd, path) || fstat(fd, &st))
        return;
    DIR *dir = opendir(path);
    FILE *line = open_memstream(&text, &size);
    if (!dir || !line)
        abort();
    fprintf(line, "{\"call\":\"%s\",\"dir\":%lu,\"synced\":%s,\"entries\":[", call, (unsigned long)st.st_ino,
            synced ? "true" : "false");
    const char *comma = "";
    for (struct dirent *e; (e = readdir(dir));) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        fprintf(line, "%s[\"%s\",\"%s\",%lu]", comma, e->d_name, e->d_type == DT_DIR ? "d" : "f",
                (unsigned long)e->d_ino);
        comma = ",";
    }
    fprintf(line, "]}\n");
    fclose(line);
    closedir(dir);
    add_line(text, size);
    free(text);
}

// The directory that holds `name` below `dir` was changed.
static void record_parent(const char *call, int dir, const char *name) {
    char parent[4096];
    const char *slash = strrchr(name, '/');
    snprintf(parent, sizeof parent, "%.*s", slash ? (int)(slash - name) : 1, slash ? name : ".");
    int fd = (int)raw(SYS_openat, dir, parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 && is_in_root(fd))
        record_dir(call, fd, false);
    if (fd >= 0)
        raw(SYS_close, fd);
}

#define RECORDED(call, perform, record)                                                                                \
    pthread_mutex_lock(&lock);                                                                                         \
    long result = (long)(perform);                                                                                     \
    if (result >= 0 && to()) {                                                                                         \
        record;                                                                                                        \
    }                                                                                                                  \
    pthread_mutex_unlock(&lock);                                                                                       \
    return (__typeof__(call))result

int linkat(int d, const char *a, int e, const char *b, int f) {
    RECORDED(0, NEXT(linkat)(d, a, e, b, f), record_parent("linkat", e, b));
}
int renameat(int d, const char *a, int e, const char *b) {
    RECORDED(0, NEXT(renameat)(d, a, e, b), record_parent("renameat", e, b); record_parent("renameat", d, a));
}
int renameat2(int d, const char *a, int e, const char *b, unsigned f) {
    RECORDED(0, NEXT(renameat2)(d, a, e, b, f), record_parent("renameat2", e, b); record_parent("renameat2", d, a));
}
int unlinkat(int d, const char *a, int f) { RECORDED(0, NEXT(unlinkat)(d, a, f), record_parent("unlinkat", d, a)); }
int mkdirat(int d, const char *a, mode_t m) { RECORDED(0, NEXT(mkdirat)(d, a, m), record_parent("mkdirat", d, a)); }

static void record_sync(const char *call, int fd) {
    struct stat st;
    if (fstat(fd, &st) || !is_in_root(fd))
        return;
    if (S_ISDIR(st.st_mode))
        record_dir(call, fd, true);
    else
        record_file(call, fd);
}
int fsync(int fd) { RECORDED(0, NEXT(fsync)(fd), record_sync("fsync", fd)); }
int fdatasync(int fd) { RECORDED(0, NEXT(fdatasync)(fd), record_sync("fdatasync", fd)); }

static void record_made(int fd, int dir, const char *name) {
    if (!is_in_root(fd))
        return;
    record_new("open", fd);
    record_parent("open", dir, name);
}

static int open_recorded(int dir, const char *name, int flags, mode_t mode) {
    if (!(flags & O_CREAT))
        return NEXT(openat)(dir, name, flags, mode);
    RECORDED(0, NEXT(openat)(dir, name, flags, mode), record_made((int)result, dir, name));
}
int openat(int dir, const char *name, int flags, ...) {
    va_list args;
    va_start(args, flags);
    mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(args, mode_t) : 0;
    va_end(args);
    return open_recorded(dir, name, flags, mode);
}
int openat64(int dir, const char *name, int flags, ...) __attribute__((alias("openat")));

static long syscall_recorded(long number, long *a) {
    const struct open_how *how = (const struct open_how *)a[2];
    bool makes = number == SYS_openat2 && how->flags & O_CREAT, moves = number == SYS_renameat2;
    if (!makes && !moves)
        return raw_call(number, a);
    RECORDED(
        0L, raw_call(number, a),
        if (makes) record_made((int)result, (int)a[0], (char *)a[1]);
        else {
            record_parent("renameat2", (int)a[2], (char *)a[3]);
            record_parent("renameat2", (int)a[0], (char *)a[1]);
        });
}
long syscall(long number, ...) {
    SYSCALL_ARGUMENTS(a, number);
    return syscall_recorded(number, a);
}
