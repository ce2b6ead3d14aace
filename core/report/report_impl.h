/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of report/ share: one function a report, behind one table; nobody else includes this. */
#ifndef LFS_REPORT_REPORT_IMPL_H
#define LFS_REPORT_REPORT_IMPL_H

#include "report/line.h"
#include "report/report.h"
#include "table/lineage.h"
#include "util/cleanup.h"

struct lfs_report {
    struct lfs_dataset *dataset;
    struct lfs_arena *arena;
    struct lfs_lines lines;
    struct lfs_branch branch;
    struct lfs_version *tip;         /* of the branch; released by the caller of the report's function */
    struct lfs_report_cache *cache;  /* may be NULL */
    struct lfs_conflicts *conflicts; /* may be NULL */
    const char *ref;                 /* .diff: what it is compared with */
    struct lfs_buf *out;
    struct timespec time; /* of the newest commit in the text; the tip's to begin with */
};

errint_t lfs_report_log(struct lfs_report *report, struct lfs_error *err);
errint_t lfs_report_graph(struct lfs_report *report, struct lfs_error *err);
errint_t lfs_report_status(struct lfs_report *report, struct lfs_error *err);
errint_t lfs_report_diff(struct lfs_report *report, struct lfs_error *err);
errint_t lfs_report_list_files(struct lfs_report *report, struct lfs_error *err);
errint_t lfs_report_schema(struct lfs_report *report, struct lfs_error *err);
errint_t lfs_report_bases(struct lfs_report *report, struct lfs_error *err);
errint_t lfs_report_stale(struct lfs_report *report, struct lfs_error *err);
errint_t lfs_report_manifest(struct lfs_report *report, struct lfs_error *err);

/* A branch (or a ref with a version) that .diff may name: 0, or LFS_E_NOT_FOUND and the like. */
errint_t lfs_report_diff_check(struct lfs_dataset *dataset, const char *ref, struct lfs_error *err);

#define AUTO_VERSION LFS_CLEANUP(lfs_cleanup_version) struct lfs_version

/* When was it committed? The manifest's own time, else its file's. */
struct timespec lfs_report_time(const struct lfs_version *version);
/* Rows that a fragment holds and that are not deleted. */
uint64_t lfs_report_live(const LanceFragment *fragment);
/* The text's time is at least this. */
void lfs_report_raise_time(struct lfs_report *report, struct timespec time);

#endif
