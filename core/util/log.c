/* SPDX-License-Identifier: Apache-2.0 */
#include "util/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

static int log_fd = STDERR_FILENO;
static enum lfs_log_level log_level = LFS_LOG_INFO;
static char *log_path; /* absolute: who logs leaves its working directory */
static bool to_syslog, to_journal;

enum { LINE_MAX_BYTES = 2048 };

static int open_file(const char *path) {
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    return fd < 0 ? -errno : fd;
}

/* systemd says by device and inode which descriptor it reads (sd-daemon(3), JOURNAL_STREAM of systemd.exec(5)). */
static bool is_journal(int fd) {
    const char *said = getenv("JOURNAL_STREAM");
    unsigned long long device, inode;
    struct stat st;
    return said && sscanf(said, "%llu:%llu", &device, &inode) == 2 && fstat(fd, &st) == 0 && st.st_dev == device &&
           st.st_ino == inode;
}

static void open_syslog(void) {
    to_syslog = true;
    openlog("lancefs", LOG_PID, LOG_DAEMON);
}

int lfs_log_open(const char *path, enum lfs_log_level level) {
    log_level = level;
    to_journal = !path && is_journal(STDERR_FILENO);
    if (path && strcmp(path, LFS_LOG_SYSLOG) == 0)
        open_syslog();
    if (!path || to_syslog)
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

void lfs_log_leave_stderr(void) {
    if (!log_path && !to_syslog)
        open_syslog();
}

const char *lfs_log_quote(char *out, size_t size, const char *text, size_t length) {
    size_t n = 0;
    out[n++] = '"';
    for (size_t i = 0; i < length && n + 3 < size; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '"' || c == '\\')
            out[n++] = '\\';
        out[n++] = c < ' ' || c == 0x7f ? ' ' : (char)c;
    }
    out[n++] = '"';
    out[n] = '\0';
    return out;
}

/* Does it begin with "key="? Else it is a sentence. */
static bool is_pairs(const char *text) {
    size_t key = strspn(text, "abcdefghijklmnopqrstuvwxyz_");
    return key && text[key] == '=';
}

static void put(enum lfs_log_level level, const char *text) {
    static const char *const names[] = {"error", "warning", "info", "debug"};
    static const int priorities[] = {LOG_ERR, LOG_WARNING, LOG_INFO, LOG_DEBUG};
    if (to_syslog) { /* it has times of its own */
        syslog(priorities[level], "%s %s", names[level], text);
        return;
    }
    char line[LINE_MAX_BYTES + 64], when[32] = "";
    struct timespec now;
    struct tm tm;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &tm);
    if (to_journal)
        snprintf(when, sizeof when, "<%d>", priorities[level]);
    else
        strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ ", &tm);
    int n = snprintf(line, sizeof line, "%s%s %s\n", when, names[level], text);
    ssize_t written = write(log_fd, line, (size_t)n); /* one write: lines of several threads do not mix */
    (void)written;
}

void lfs_log(enum lfs_log_level level, const char *format, ...) {
    if (level > log_level)
        return;
    char text[LINE_MAX_BYTES], quoted[LINE_MAX_BYTES];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text - 8, format, args); /* room for msg= and its quotes */
    va_end(args);
    if (n < 0)
        return;
    if (is_pairs(text)) {
        for (char *p = text; *p; p++) /* one line an event, whatever a file name holds */
            if ((unsigned char)*p < ' ')
                *p = ' ';
        put(level, text);
        return;
    }
    memcpy(quoted, "msg=", 4);
    lfs_log_quote(quoted + 4, sizeof quoted - 4, text, strlen(text));
    put(level, quoted);
}
