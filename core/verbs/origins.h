/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where columns come from. Data files tell which columns of two states are one (merge/field_match.h); where both have none
 * in common any more (all was compacted) or each side has its own, only the way that a column came does: commit by
 * commit down its line an id is one column, and a merge's own commit says where it took a column from. The same id, and
 * the same name, on two lines say nothing: stock Lance gives an id out again when no data file names it any more.
 */
#ifndef LFS_VERBS_ORIGINS_H
#define LFS_VERBS_ORIGINS_H

#include "merge/merge3.h"

/* A column as it stands in one version of a line. */
struct lfs_origin {
    const char *line;
    uint64_t version;
    int32_t id;
    bool nowhere; /* it stands in no version that is known */
};

/* Follow columns back to the commits that made them, and say in list[i] which are one (merge3.h). The first `n_first` of
 * them are compared with the others; `known` holds what the states of the first ones hold, NULL where no vector tells all
 * of that. Each version on the way is read once. */
errint_t lfs_origins_trace(const struct lfs_lines *lines, const struct lfs_origin *from, const struct lfs_vector *known,
                           struct lfs_column_trace *list, size_t n_first, size_t n, struct lfs_error *err);

#endif
