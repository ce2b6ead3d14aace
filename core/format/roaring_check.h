/* SPDX-License-Identifier: Apache-2.0 */
/* A look at a serialized roaring bitmap before the library reads it: CRoaring checks sizes, but not what its own
 * operations take for granted (order, cardinalities), and old releases not even all sizes. */
#ifndef LFS_FORMAT_ROARING_CHECK_H
#define LFS_FORMAT_ROARING_CHECK_H

#include <stddef.h>
#include <stdint.h>

#include "util/error.h"

/* LFS_E_CORRUPT unless the bytes are exactly one portable 32-bit bitmap; LFS_E_TOO_BIG when it names more rows than
 * limits.h allows. */
errint_t lfs_roaring_check(const uint8_t *bytes, size_t length, const char *what, struct lfs_error *err);

#endif
