/* SPDX-License-Identifier: Apache-2.0 */
/* Commits as .log and .log.graph tell them: what each version is, what it changed, where it came from. */
#ifndef LFS_REPORT_COMMITS_H
#define LFS_REPORT_COMMITS_H

#include "merge/plan.h"
#include "report/report_impl.h"
#include "util/map.h"

struct lfs_report_commit {
    const char *line, *branch; /* `branch`: its name today, else the line */
    uint64_t number, first;    /* first < number: versions first..number that are gone, in one */
    bool gone;                 /* nothing is left of it but its number */
    struct timespec time;
    const char *operation; /* "merge", "cherry-pick", ... or Lance's own word; "branch" for a branch's first version */
    const char *from;      /* "main@2": what was merged, picked or branched from; NULL */
    const char *message;   /* NULL */
    const char *transaction;
    /* The next states to look at: the version before it, and what was merged. NULL = none, or nothing known of it. */
    const char *before_line, *merged_line;
    uint64_t before, merged;
    bool counted; /* the version before it is there */
    uint64_t fragments_added, fragments_removed, fragments_changed, rows_added, rows_removed;
};

/* Versions of lines that exist, looked up once a line. */
struct lfs_report_history {
    struct lfs_report *report;
    struct lfs_map lines; /* line -> its numbers */
};
void lfs_report_history_init(struct lfs_report_history *history, struct lfs_report *report);

/* The commit that is version `number` of a line. Where that is gone: with it all the gone ones before it. */
errint_t lfs_report_commit_read(struct lfs_report_history *history, const char *line, uint64_t number,
                                struct lfs_report_commit *out, struct lfs_error *err);

/* The fields that both reports show, from the version on, and the end of the line; and their header. */
extern const char lfs_report_commit_header[];
void lfs_report_commit_put(const struct lfs_report_commit *commit, struct lfs_buf *out);

#endif
