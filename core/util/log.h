/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log lines: one line an event, "TIME LEVEL key=value key=value ...". A value with blanks stands in double quotes, in which
 * \" is a quote, \\ a backslash, and control characters are blanks. A text that does not begin with a key is a sentence, and
 * becomes the value of msg=. Where lines go is for the program to say; until then they go to standard error.
 */
#ifndef LFS_UTIL_LOG_H
#define LFS_UTIL_LOG_H

#include <stddef.h>

enum lfs_log_level { LFS_LOG_ERROR, LFS_LOG_WARNING, LFS_LOG_INFO, LFS_LOG_DEBUG };

#define LFS_LOG_SYSLOG "syslog" /* as a path: syslog(3), which is the journal where systemd runs */

/* Lines above `level` are dropped. `path` NULL = standard error; a file is appended to. 0 or a negative errno. Not to be called
 * while other threads log. On standard error that leads to systemd's journal each line begins with "<PRIORITY>". */
int lfs_log_open(const char *path, enum lfs_log_level level);
/* Standard error is given up: what would go there goes to syslog(3). Not to be called while other threads log. */
void lfs_log_leave_stderr(void);
/* The file was moved away: go on in a new one of its name. At any time; 0 or a negative errno, after which lines go where they
 * went. Does nothing where there is no file. */
int lfs_log_reopen(void);
void lfs_log(enum lfs_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A value in quotes, cut to what `out` holds (size >= 8): returns `out`. */
const char *lfs_log_quote(char *out, size_t size, const char *text, size_t length);

#endif
