/* SPDX-License-Identifier: Apache-2.0 */
#include "util/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static int log_fd = STDERR_FILENO;
static enum lfs_log_level log_level = LFS_LOG_INFO;
static char *log_path; /* absolute: who logs leaves its working directory */

static int open_file(const char *path) {
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    return fd < 0 ? -errno : fd;
}

int lfs_log_open(const char *path, enum lfs_log_level level) {
    log_level = level;
    if (!path)
        return 0;
    int fd = open_file(path);
    if (fd < 0)
        return fd;
    free(log_path);
    log_path = realpath(path, NULL);
    if (log_fd != STDERR_FILENO)
        close(log_fd);
    log_fd = fd;
    return 0;
}

/* The descriptor keeps its number, so that nobody who logs meanwhile needs a lock. */
int lfs_log_reopen(void) {
    if (!log_path)
        return 0;
    int fd = open_file(log_path);
    if (fd < 0)
        return fd;
    int result = dup3(fd, log_fd, O_CLOEXEC) < 0 ? -errno : 0;
    close(fd);
    return result;
}

void lfs_log(enum lfs_log_level level, const char *format, ...) {
    static const char *const names[] = {"error", "warning", "info", "debug"};
    if (level > log_level)
        return;
    char line[2048];
    struct timespec now;
    struct tm tm;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &tm);
    size_t n = strftime(line, sizeof line, "%Y-%m-%dT%H:%M:%SZ ", &tm);
    n += (size_t)snprintf(line + n, sizeof line - n, "%s ", names[level]);
    va_list args;
    va_start(args, format);
    int m = vsnprintf(line + n, sizeof line - n - 1, format, args);
    va_end(args);
    n += m < 0 ? 0 : (size_t)m;
    if (n > sizeof line - 2)
        n = sizeof line - 2;
    for (size_t i = 0; i < n; i++) /* one line an event, whatever a file name holds */
        if (line[i] == '\n')
            line[i] = ' ';
    line[n++] = '\n';
    ssize_t written = write(log_fd, line, n); /* one write: lines of several threads do not mix */
    (void)written;
}
