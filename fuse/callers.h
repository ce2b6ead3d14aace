/* SPDX-License-Identifier: Apache-2.0 */
/* Who makes a request, as /proc tells (proc(5)): requests name threads. */
#ifndef LFS_FUSE_CALLERS_H
#define LFS_FUSE_CALLERS_H

#include <stdbool.h>
#include <sys/types.h>

/* A process, told from a later one of its number by when it began. */
struct lfs_caller {
    pid_t pid, parent;
    unsigned long long began; /* clock ticks since the machine's start */
};

/* The text of /proc/PID/FILE, as much of it as there is room for. 0 or a negative errno. */
int lfs_proc_read(pid_t pid, const char *file, char *text, size_t size);

/* The process of a thread; 0 when it has ended. */
pid_t lfs_caller_of(pid_t tid);
/* false when there is none (any more). */
bool lfs_caller_read(pid_t pid, struct lfs_caller *out);
bool lfs_caller_is_same(const struct lfs_caller *a, const struct lfs_caller *b);
/* Do they run one program, as far as can be told? */
bool lfs_caller_runs_same(pid_t a, pid_t b);

#endif
