/* SPDX-License-Identifier: Apache-2.0 */
/* Three-way merge of key-value maps (config, table metadata, schema metadata), key by key (merge-semantics section 3). */
#ifndef LFS_MERGE_MAPS_H
#define LFS_MERGE_MAPS_H

#include "merge/merge3.h"

/* Fills the plan's config, table_metadata (lancefs.* keys left out), schema_metadata and maps_changed; keys that both
 * sides gave different values become conflicts. */
errint_t lfs_merge_maps(const struct lfs_merge_input *input, struct lfs_plan *plan, struct lfs_error *err);

#endif
