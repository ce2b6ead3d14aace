/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of .diff/<ref>: the plan and the frame (diff.c), rows and fragments (diff_rows.c), what has names (diff_names.c). */
#ifndef LFS_REPORT_DIFF_H
#define LFS_REPORT_DIFF_H

#include "report/report_impl.h"
#include "verbs/job.h"

struct lfs_diff {
    struct lfs_report *report;
    struct lfs_job *job;
    struct lfs_merge_input input; /* of the job's plan; without one: theirs is the base */
    bool planned, blocked, refused;
    struct lfs_match *matches;
    size_t n_matches;
};

/* One record. `ours`, `theirs`: what that side did to the unit since the base ("added", "deleted", ...; NULL: nothing);
 * `same`: both did the same; `where` may be NULL. What a merge does with it is filled in here. */
void lfs_diff_put(struct lfs_diff *diff, const char *class, const char *unit, const char *ours, const char *theirs,
                  bool same, uint64_t count, const struct lfs_buf *where);

errint_t lfs_diff_rows(struct lfs_diff *diff, struct lfs_error *err);
errint_t lfs_diff_names(struct lfs_diff *diff, struct lfs_error *err);

#endif
