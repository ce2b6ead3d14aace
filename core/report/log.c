/* SPDX-License-Identifier: Apache-2.0 */
/* .log: the versions that led to the tip, newest first: the branch's own, then its parents' up to the forks. */
#include "report/commits.h"

errint_t lfs_report_log(struct lfs_report *report, struct lfs_error *err) {
    struct lfs_report_history history;
    const char *line = report->branch.uuid;
    uint64_t number = report->tip->number;
    lfs_report_history_init(&history, report);
    lfs_buf_printf(report->out, "# %s\n", lfs_report_commit_header);
    if (!*line)
        return lfs_fail(err, LFS_E_UNSUPPORTED,
                        "branch %s has no identifier (it was made by an old Lance), so its history cannot be told",
                        report->branch.name);
    while (line && number) {
        struct lfs_report_commit commit;
        LFS_TRY(lfs_report_commit_read(&history, line, number, &commit, err));
        lfs_report_commit_put(&commit, report->out);
        line = commit.before_line;
        number = commit.before;
    }
    return lfs_buf_check(report->out, err);
}
