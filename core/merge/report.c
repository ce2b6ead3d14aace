/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/report.h"

#include <stdarg.h>
#include <stdio.h>

#include "util/limits.h"

errint_t lfs_report_conflict(struct lfs_plan *plan, const struct lfs_conflict *conflict, struct lfs_error *err) {
    if (plan->n_conflicts++ >= LFS_CONFLICTS_NAMED_MAX)
        return 0;
    if (!conflict->unit || !conflict->base || !conflict->ours || !conflict->theirs)
        return lfs_fail_nomem(err);
    struct lfs_conflict *copy = lfs_memdup(plan->arena, conflict, sizeof *conflict);
    return lfs_list_add(&plan->conflicts, plan->arena, copy) ? 0 : lfs_fail_nomem(err);
}

static char *text(struct lfs_arena *arena, const char *format, va_list args) {
    char line[1024];
    int n = vsnprintf(line, sizeof line, format, args);
    return n < 0 ? NULL : lfs_strdup(arena, line);
}

errint_t lfs_report_refusal(struct lfs_plan *plan, struct lfs_error *err, const char *format, ...) {
    va_list args;
    if (plan->refusal)
        return 0;
    va_start(args, format);
    plan->refusal = text(plan->arena, format, args);
    va_end(args);
    return plan->refusal ? 0 : lfs_fail_nomem(err);
}

errint_t lfs_report_note(struct lfs_plan *plan, struct lfs_error *err, const char *format, ...) {
    va_list args;
    va_start(args, format);
    char *note = text(plan->arena, format, args);
    va_end(args);
    return lfs_list_add(&plan->notes, plan->arena, note) ? 0 : lfs_fail_nomem(err);
}
