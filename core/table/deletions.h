/* SPDX-License-Identifier: Apache-2.0 */
/* Which rows of a version live: its deletion vectors, read. */
#ifndef LFS_TABLE_DELETIONS_H
#define LFS_TABLE_DELETIONS_H

#include <roaring/roaring.h>

#include "table/lineage.h"

/* The deletion vector of a fragment: from where its manifest says, else from its line's storage, where every merge keeps
 * those of its source. One that is gone is LFS_E_CORRUPT: rows are never taken for live because a file is missing. */
errint_t lfs_read_deletions(const struct lfs_lines *lines, const struct lfs_version *version,
                            const LanceFragment *fragment, roaring_bitmap_t **out, struct lfs_error *err);

#endif
