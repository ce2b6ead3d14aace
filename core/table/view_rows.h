/* SPDX-License-Identifier: Apache-2.0 */
/* Some rows of a version as a data set of their own, that any Lance program opens: the rows of a conflict. */
#ifndef LFS_TABLE_VIEW_ROWS_H
#define LFS_TABLE_VIEW_ROWS_H

#include <roaring/roaring.h>

#include "table/image.h"
#include "table/lineage.h"

/* Rows of one fragment, by their physical offsets (as in deletion vectors). Each fragment stands once. */
struct lfs_view_rows_of {
    uint64_t fragment;
    const roaring_bitmap_t *rows;
};

/*
 * An image of `version` (borrowed, during the call; of any directory that the lines know) with just those rows: its schema
 * and metadata, those fragments alone under their ids, deletion vectors in memory that mask every other row, no index.
 * Rows that the version has deleted stay deleted, so rows of which none lives give a data set without rows. Without a set
 * the data set is empty too.
 *
 * LFS_E_NOT_FOUND: no such fragment, or a row that it does not have. LFS_E_CORRUPT: a deletion file is gone. A version
 * that is only planned has files of two data sets under one base table: LFS_E_UNSUPPORTED.
 */
errint_t lfs_view_rows(struct lfs_views *views, const struct lfs_lines *lines, const struct lfs_version *version,
                       const struct lfs_view_rows_of *sets, size_t n_sets, struct lfs_image **out,
                       struct lfs_error *err);

#endif
