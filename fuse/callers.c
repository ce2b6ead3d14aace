/* SPDX-License-Identifier: Apache-2.0 */
#include "fuse/callers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int lfs_proc_read(pid_t pid, const char *file, char *text, size_t size) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/%s", (long)pid, file);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    ssize_t n = read(fd, text, size - 1);
    int error = errno;
    close(fd);
    if (n < 0)
        return -error;
    text[n] = '\0';
    return 0;
}

/* "<tid> (<name>) <state> <ppid> ... <starttime, field 22>"; the name may hold anything. */
bool lfs_caller_read(pid_t pid, struct lfs_caller *out) {
    char text[1024];
    const char *rest = pid > 0 && lfs_proc_read(pid, "stat", text, sizeof text) == 0 ? strrchr(text, ')') : NULL;
    int parent;
    if (!rest || sscanf(rest + 1, " %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
                        &parent, &out->began) != 2)
        return false;
    out->pid = pid;
    out->parent = parent;
    return true;
}

pid_t lfs_caller_of(pid_t tid) {
    char text[2048];
    const char *group =
        tid > 0 && lfs_proc_read(tid, "status", text, sizeof text) == 0 ? strstr(text, "\nTgid:") : NULL;
    return group ? (pid_t)strtol(group + strlen("\nTgid:"), NULL, 10) : 0;
}

bool lfs_caller_is_same(const struct lfs_caller *a, const struct lfs_caller *b) {
    return a->pid == b->pid && a->began == b->began;
}

static bool program_of(pid_t pid, struct stat *st) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/exe", (long)pid);
    return stat(path, st) == 0;
}

bool lfs_caller_runs_same(pid_t a, pid_t b) {
    struct stat x, y;
    return !program_of(a, &x) || !program_of(b, &y) || (x.st_dev == y.st_dev && x.st_ino == y.st_ino);
}
