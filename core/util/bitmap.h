/* SPDX-License-Identifier: Apache-2.0 */
/* Roaring bitmaps that free themselves at the end of their scope. */
#ifndef LFS_UTIL_BITMAP_H
#define LFS_UTIL_BITMAP_H

#include <roaring/roaring.h>

#include "util/cleanup.h"

static inline void lfs_cleanup_bitmap(roaring_bitmap_t **bitmap) {
    if (*bitmap)
        roaring_bitmap_free(*bitmap);
}
#define AUTO_BITMAP LFS_CLEANUP(lfs_cleanup_bitmap) roaring_bitmap_t

#endif
