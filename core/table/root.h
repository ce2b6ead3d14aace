/* SPDX-License-Identifier: Apache-2.0 */
/* The string by which this data set's own base paths begin. */
#ifndef LFS_TABLE_ROOT_H
#define LFS_TABLE_ROOT_H

#include "table/dataset.h"

/*
 * Stock Lance compares base path strings byte for byte, so new ones are made from what the table already holds
 * (merge-semantics section 10): the part of a base path of one of the `versions` that still leads to this data set's
 * root; else the path by which the data set was opened. NULL when memory is short.
 */
const char *lfs_root_string(struct lfs_dataset *ds, const struct lfs_version *const *versions, size_t n_versions,
                            struct lfs_arena *arena);

#endif
