/* SPDX-License-Identifier: Apache-2.0 */
/* Transaction files, which a manifest may name beside the copy that it holds. */
#ifndef LFS_TABLE_TRANSACTIONS_H
#define LFS_TABLE_TRANSACTIONS_H

#include "format/manifest.h"
#include "table/dataset.h"

/* The file at `path` in the data set. Errors of reading, LFS_E_TOO_BIG, LFS_E_CORRUPT. */
errint_t lfs_read_transaction(struct lfs_dataset *ds, const char *path, struct lfs_arena *arena, LanceTransaction **out,
                              struct lfs_error *err);

#endif
