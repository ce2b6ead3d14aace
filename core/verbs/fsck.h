/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A check of a whole data set: every manifest, transaction, ref, base path and file; what stock Lance does not notice or
 * takes without a word above all (lance-format sections 10, 13, 14). Nothing is changed unless `repair` is asked for, and
 * then only what needs no guess. A mount is not needed.
 */
#ifndef LFS_VERBS_FSCK_H
#define LFS_VERBS_FSCK_H

#include <stdatomic.h>
#include <stdbool.h>

#include "table/dataset.h"
#include "util/buf.h"
#include "util/progress.h"

struct lfs_fsck_options {
    bool repair;   /* -y: half-made files go, changes of names that stopped half-way are finished or taken back */
    bool relocate; /* with repair: base paths of a data set that was moved are rewritten */
    bool verbose;  /* name what is only counted otherwise */
    struct lfs_progress *progress; /* may be NULL */
    const atomic_bool *cancel;     /* may be NULL */
};

struct lfs_fsck_result {
    uint64_t errors; /* found, and left as they are */
    uint64_t corrected;
    uint64_t notes; /* what harms no reader of this data set, or is stock Lance's own doing */
};

/* Appends the report to `out`, a line for each finding ("error: ", "corrected: ", "note: ") and a summary. Negative only
 * when the check itself could not be made. */
errint_t lfs_fsck_run(struct lfs_dataset *ds, const struct lfs_fsck_options *options, struct lfs_buf *out,
                      struct lfs_fsck_result *result, struct lfs_error *err);

#endif
