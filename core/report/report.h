/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports: what a branch is, as text for people and pipes (interface.md section 2). UTF-8, one record a line, its fields
 * separated by tabs, behind header lines that begin with '#'. Nothing in a data set can break a record: see line.h.
 *
 * A report is a function of the data set alone, but for the command that waits for choices in .status. What it was made of can be asked for, so that a caller keeps a text for
 * as long as that stays the same. Nothing is written; thread safe.
 */
#ifndef LFS_REPORT_REPORT_H
#define LFS_REPORT_REPORT_H

#include <stdbool.h>
#include <time.h>

#include "table/dataset.h"
#include "table/stamp.h"
#include "util/buf.h"
#include "verbs/conflicts.h"

#define LFS_REPORT_DIFF ".diff" /* a directory: .diff/<ref> */

/* Names of the reports that are files in a branch's directory, NULL-terminated. */
extern const char *const lfs_report_files[];

/* What reports remember between calls, to be quick; at most about `bytes_max`. NULL when memory is short. */
struct lfs_report_cache;
struct lfs_report_cache *lfs_report_cache_new(size_t bytes_max);
void lfs_report_cache_free(struct lfs_report_cache *cache); /* NULL is fine */

struct lfs_report_call {
    struct lfs_dataset *dataset;
    const char *branch;             /* its name */
    const char *what;               /* ".log", or ".diff/<ref>"; the ref as it is or percent-encoded */
    struct lfs_report_cache *cache; /* may be NULL */
    struct lfs_conflicts *conflicts; /* commands that wait for choices; NULL: none does */
};

enum lfs_report_is { LFS_REPORT_NONE, LFS_REPORT_FILE, LFS_REPORT_DIRECTORY };
/* Is there such a report? A directory below .diff leads to branches whose names hold a '/', where no branch has its name. */
enum lfs_report_is lfs_report_is(const struct lfs_report_call *call);

/* What a report is made of: the same stamp, the same text (what a clean-up takes from a line that was merged shows in
 * .log.graph at the next commit). */
errint_t lfs_report_stamp(const struct lfs_report_call *call, struct lfs_stamp *out, struct lfs_error *err);

/* Append the text. `time` is that of the newest commit in it. What cannot be told is a line in the text that begins with
 * '#': an error is only what leaves nothing to show (no such branch, no memory). */
errint_t lfs_report_render(const struct lfs_report_call *call, struct lfs_buf *out, struct timespec *time,
                           struct lfs_error *err);

#endif
