/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines: one line an event. Where they go is for the program to say; until then they go to standard error. */
#ifndef LFS_UTIL_LOG_H
#define LFS_UTIL_LOG_H

enum lfs_log_level { LFS_LOG_ERROR, LFS_LOG_WARNING, LFS_LOG_INFO, LFS_LOG_DEBUG };

/* Lines above `level` are dropped. `path` NULL = standard error; the file is appended to. 0 or a negative errno.
 * Not to be called while other threads log. */
int lfs_log_open(const char *path, enum lfs_log_level level);
/* The file was moved away: go on in a new one of its name. At any time; 0 or a negative errno, after which lines go where they
 * went. Does nothing where there is no file. */
int lfs_log_reopen(void);
void lfs_log(enum lfs_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
