/* SPDX-License-Identifier: Apache-2.0 */
#include "fuse/callers.h"

#include <stdio.h>
#include <string.h>

/* "<tid> (<name>) <state> <ppid> ... <starttime, field 22>"; the name may hold anything. */
bool lfs_caller_read(pid_t pid, struct lfs_caller *out) {
    char path[40], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    size_t n = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file)
        fclose(file);
    text[n] = 0;
    const char *rest = strrchr(text, ')');
    int parent;
    if (!rest || sscanf(rest + 1, " %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
                        &parent, &out->began) != 2)
        return false;
    out->pid = pid;
    out->parent = parent;
    return true;
}

pid_t lfs_caller_of(pid_t tid) {
    char path[40], line[256];
    int pid = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)tid);
    FILE *file = fopen(path, "re");
    while (file && !pid && fgets(line, sizeof line, file))
        (void)sscanf(line, "Tgid: %d", &pid);
    if (file)
        fclose(file);
    return pid;
}

bool lfs_caller_is_same(const struct lfs_caller *a, const struct lfs_caller *b) {
    return a->pid == b->pid && a->began == b->began;
}
