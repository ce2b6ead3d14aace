/* SPDX-License-Identifier: Apache-2.0 */
/* What a plan has to tell: conflicts, refusals, notes. For the files of merge/. */
#ifndef LFS_MERGE_REPORT_H
#define LFS_MERGE_REPORT_H

#include "merge/plan.h"

/* Counts the conflict; a copy is listed while the list is short enough (limits.h). */
errint_t lfs_report_conflict(struct lfs_plan *plan, const struct lfs_conflict *conflict, struct lfs_error *err);
/* The first refusal stays; later ones add nothing that the user could act upon before the first is settled. */
errint_t lfs_report_refusal(struct lfs_plan *plan, struct lfs_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
errint_t lfs_report_note(struct lfs_plan *plan, struct lfs_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
