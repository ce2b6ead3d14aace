/* SPDX-License-Identifier: Apache-2.0 */
/* Between the two halves of rows: the comparison (rows_state.c) and the decision (rows.c). */
#ifndef LFS_MERGE_ROWS_STATE_H
#define LFS_MERGE_ROWS_STATE_H

#include "merge/rows.h"

struct lfs_fragment_side *lfs_rows_side(struct lfs_fragment_state *state, enum lfs_side side);
/* Fill `base` (empty where the base has no such fragment) or a side's `deleted`; does nothing when it is there. */
errint_t lfs_rows_load_base(struct lfs_rows *rows, struct lfs_fragment_state *state, struct lfs_error *err);
errint_t lfs_rows_load(struct lfs_rows *rows, struct lfs_fragment_state *state, enum lfs_side side,
                       struct lfs_error *err);

#endif
