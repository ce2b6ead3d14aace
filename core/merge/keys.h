/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows that both sides inserted into a table with a primary key (merge-semantics section 3). Stock Lance enforces none, so
 * one key can stand on both sides, and only the data tells, which is not read here: such a merge is refused.
 */
#ifndef LFS_MERGE_KEYS_H
#define LFS_MERGE_KEYS_H

#include "merge/match.h"
#include "merge/schema.h"

errint_t lfs_keys_check(const struct lfs_merge_input *input, const struct lfs_match *matches, size_t n_matches,
                        const struct lfs_schema_merge *schema, struct lfs_plan *plan, struct lfs_error *err);

#endif
