/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stable row ids of a merge's result (merge-semantics section 6). A row that the base holds keeps its id as ours has it;
 * a row that only theirs has gets a new one, since both sides gave out the same next ids. A row may stand twice, dead in
 * the fragment that it left and live in the one that it moved to: both places get one id.
 */
#ifndef LFS_MERGE_ROW_IDS_H
#define LFS_MERGE_ROW_IDS_H

#include "merge/match.h"

/* Fills next_row_id of the plan, and the sequences of the fragments that the merge brings or changes. Does nothing for
 * tables without stable row ids. Where a moved row's id cannot be traced the merge is refused. */
errint_t lfs_merge_row_ids(const struct lfs_merge_input *input, const struct lfs_match *matches, size_t n_matches,
                           struct lfs_plan *plan, struct lfs_error *err);

#endif
