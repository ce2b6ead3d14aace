/* SPDX-License-Identifier: Apache-2.0 */
/* A side that replaced the table, by an overwrite or a restore (merge-semantics section 5, s1). */
#ifndef LFS_MERGE_REPLACED_H
#define LFS_MERGE_REPLACED_H

#include "merge/match.h"

enum lfs_replacement {
    LFS_NOT_REPLACED,  /* in no way that a merge row by row cannot say */
    LFS_REPLACED_ONE,  /* one side replaced it, the other changed no data: `side` tells which; merged as ever, but no index of
                          the other side says anything of it */
    LFS_REPLACED_WHOLE, /* the data of `side` is taken as a whole, and what the other did to it is dropped */
    LFS_REPLACED_CLASH, /* reported as a conflict */
};

/* `matches` are those of the three states. What is dropped by a strategy is noted. */
errint_t lfs_replaced_check(const struct lfs_merge_input *input, const struct lfs_match *matches, size_t n_matches,
                            struct lfs_plan *plan, enum lfs_replacement *out, enum lfs_side *side, struct lfs_error *err);

#endif
