/* SPDX-License-Identifier: Apache-2.0 */
#include "report/report.h"

#include <string.h>

#include "format/names.h"
#include "report/report_impl.h"
#include "table/location.h"
#include "util/limits.h"
#include "util/map.h"
#include "verbs/verb.h"

/* What a report is made of. */
enum scope {
    OF_TIP,  /* the branch's newest version alone */
    OF_LINE, /* the versions of its line and of those that it comes from, and the names of branches */
    OF_ALL,  /* those of other branches too, and tags */
};

struct kind {
    const char *name;
    errint_t (*render)(struct lfs_report *report, struct lfs_error *err);
    enum scope scope;
};

static const struct kind kinds[] = {
    {".log", lfs_report_log, OF_LINE},       {".log.graph", lfs_report_graph, OF_LINE},
    {".status", lfs_report_status, OF_LINE}, {".files", lfs_report_list_files, OF_TIP},
    {".schema", lfs_report_schema, OF_TIP},  {".bases", lfs_report_bases, OF_TIP},
    {".stale", lfs_report_stale, OF_TIP},    {".manifest.json", lfs_report_manifest, OF_TIP},
};
static const struct kind diff = {LFS_REPORT_DIFF, lfs_report_diff, OF_ALL};

const char *const lfs_report_files[] = {".log",   ".log.graph", ".status",        ".files", ".schema",
                                        ".bases", ".stale",     ".manifest.json", NULL};

/* The ref of ".diff/<ref>", still encoded; NULL for what is none. */
static const char *diff_ref(const char *what) {
    size_t length = strlen(LFS_REPORT_DIFF);
    return strncmp(what, LFS_REPORT_DIFF, length) == 0 && what[length] == '/' ? what + length + 1 : NULL;
}

static const struct kind *kind_of(const char *what) {
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].name, what) == 0)
            return &kinds[i];
    return diff_ref(what) ? &diff : NULL;
}

/* No ref holds a '%' of its own. */
static char *decode_ref(struct lfs_arena *arena, const char *what) { return lfs_percent_decode(arena, diff_ref(what)); }

enum lfs_report_is lfs_report_is(const struct lfs_report_call *call) {
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    if (strcmp(call->what, LFS_REPORT_DIFF) == 0)
        return LFS_REPORT_DIRECTORY;
    if (!arena || !diff_ref(call->what))
        return kind_of(call->what) ? LFS_REPORT_FILE : LFS_REPORT_NONE;
    char *ref = decode_ref(arena, call->what);
    if (!ref)
        return LFS_REPORT_NONE;
    if (lfs_report_diff_check(call->dataset, ref, NULL) == 0)
        return LFS_REPORT_FILE;
    return lfs_verb_leads_on(call->dataset, ref, arena) ? LFS_REPORT_DIRECTORY : LFS_REPORT_NONE;
}

/* --- what a text is made of --- */

static bool is_later(struct timespec a, struct timespec b) {
    return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec > b.tv_nsec;
}

static errint_t stamp_branch(const struct lfs_report_call *call, const struct lfs_branch *branch,
                             struct lfs_stamp *out, struct lfs_error *err) {
    errint_t result = lfs_stamp_directory(call->dataset, branch->dir, "_versions", out);
    return result < 0 ? lfs_fail_errno(err, -result, "cannot look at branch %s", branch->name) : 0;
}

/* The branch and those that it comes from, as long as they are there: not all branches, whose number is anybody's. */
static errint_t stamp_line(const struct lfs_report_call *call, struct lfs_arena *arena, bool parents,
                           struct lfs_stamp *out, struct lfs_error *err) {
    struct lfs_branch branch;
    LFS_TRY(lfs_dataset_branch(call->dataset, arena, call->branch, &branch, err));
    LFS_TRY(stamp_branch(call, &branch, out, err));
    for (unsigned depth = 0; parents && branch.parent_name && depth < LFS_BRANCH_DEPTH_MAX; depth++) {
        if (lfs_dataset_branch(call->dataset, arena, branch.parent_name, &branch, NULL) < 0)
            break;
        LFS_TRY(stamp_branch(call, &branch, out, err));
    }
    return 0;
}

static void stamp_waiting(const struct lfs_report_call *call, struct lfs_stamp *out) {
    struct lfs_conflicts_at at = {call->conflicts, call->dataset, call->branch, LFS_CONFLICTS};
    uint64_t mark = call->conflicts ? lfs_conflicts_mark(&at) : 0;
    if (mark)
        out->hash = lfs_hash(&mark, sizeof mark, out->hash);
}

errint_t lfs_report_stamp(const struct lfs_report_call *call, struct lfs_stamp *out, struct lfs_error *err) {
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    const struct kind *kind = kind_of(call->what);
    struct lfs_branch *branches;
    size_t n;
    *out = (struct lfs_stamp){0};
    if (!arena || !kind)
        return kind ? lfs_fail_nomem(err) : lfs_fail(err, LFS_E_NOT_FOUND, "%s is no report", call->what);
    if (kind->render == lfs_report_status)
        stamp_waiting(call, out);
    if (kind->scope != OF_TIP && lfs_stamp_directory(call->dataset, "", "_refs/branches", out) < 0)
        return lfs_fail(err, LFS_E_CORRUPT, "cannot look at the branches");
    if (kind->scope != OF_ALL)
        return stamp_line(call, arena, kind->scope == OF_LINE, out, err);
    if (lfs_stamp_directory(call->dataset, "", "_refs/tags", out) < 0)
        return lfs_fail(err, LFS_E_CORRUPT, "cannot look at the tags");
    LFS_TRY(lfs_dataset_branches(call->dataset, arena, &branches, &n, NULL, err));
    for (size_t i = 0; i < n; i++)
        LFS_TRY(stamp_branch(call, &branches[i], out, err));
    return 0;
}

/* --- the text --- */

struct timespec lfs_report_time(const struct lfs_version *version) {
    const Lance__Table__Timestamp *t = version->manifest.message->timestamp;
    if (!t || (t->seconds == 0 && t->nanos == 0) || t->nanos < 0 || t->nanos >= 1000000000)
        return version->mtime;
    return (struct timespec){t->seconds, t->nanos};
}

uint64_t lfs_report_live(const LanceFragment *f) {
    uint64_t deleted = f->deletion_file ? f->deletion_file->num_deleted_rows : 0;
    return f->physical_rows > deleted ? f->physical_rows - deleted : 0;
}

void lfs_report_raise_time(struct lfs_report *report, struct timespec time) {
    if (is_later(time, report->time))
        report->time = time;
}

static errint_t open_tip(struct lfs_report *report, struct lfs_error *err) {
    uint64_t number;
    enum lfs_naming naming;
    LFS_TRY(lfs_dataset_tip(report->dataset, report->branch.dir, &number, &naming, err));
    LFS_TRY(lfs_dataset_version(report->dataset, report->branch.dir, number, &report->tip, err));
    report->time = lfs_report_time(report->tip);
    return 0;
}

errint_t lfs_report_render(const struct lfs_report_call *call, struct lfs_buf *out, struct timespec *time,
                           struct lfs_error *err) {
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    const struct kind *kind = kind_of(call->what);
    struct lfs_error why = {0};
    if (!arena || !kind)
        return kind ? lfs_fail_nomem(err) : lfs_fail(err, LFS_E_NOT_FOUND, "%s is no report", call->what);
    struct lfs_report report = {.dataset = call->dataset, .arena = arena, .cache = call->cache, .conflicts = call->conflicts, .out = out};
    size_t start = out->length;
    LFS_TRY(lfs_dataset_branch(call->dataset, arena, call->branch, &report.branch, err));
    if (kind->scope != OF_TIP)
        LFS_TRY(lfs_lines_read(call->dataset, arena, &report.lines, err));
    if (kind == &diff && !(report.ref = decode_ref(arena, call->what)))
        return lfs_fail_nomem(err);
    errint_t result = open_tip(&report, &why);
    if (result == 0)
        result = kind->render(&report, &why);
    lfs_version_release(report.tip);
    *time = report.time;
    if (result == -ENOMEM || out->failed)
        return lfs_fail_nomem(err);
    if (result < 0) { /* half a report would be taken for a whole one */
        out->length = start;
        if (kind->render == lfs_report_manifest)
            return err ? (*err = why, result) : result;
        lfs_line_comment(out, "cannot be told", *why.message ? why.message : strerror(-result));
    }
    return lfs_buf_check(out, err);
}
