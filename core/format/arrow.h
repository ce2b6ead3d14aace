/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one Arrow IPC file that the table format holds: a deletion file's single record batch with the single column
 * `row_id`, non-nullable UInt32 (lance-format section 1.3). Anything else is refused.
 */
#ifndef LFS_FORMAT_ARROW_H
#define LFS_FORMAT_ARROW_H

#include <stddef.h>
#include <stdint.h>

#include "util/error.h"

struct lfs_arrow_column {
    const uint8_t *values; /* `count` little-endian u32, at any alignment; in the file's bytes or in `owned` */
    size_t count;
    uint8_t *owned; /* what was decompressed; to be freed by the caller, also after an error; may be NULL */
};

/* LFS_E_CORRUPT says what is off; LFS_E_UNSUPPORTED for big-endian files and codecs other than ZSTD; LFS_E_TOO_BIG over
 * limits.h, before anything is allocated. */
errint_t lfs_arrow_read_row_ids(const uint8_t *bytes, size_t length, const char *what, struct lfs_arrow_column *out,
                                struct lfs_error *err);

#endif
