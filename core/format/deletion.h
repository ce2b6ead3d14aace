/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deletion files (lance-format section 1.3): the physical row offsets of a fragment's deleted rows, as a one-column
 * Arrow file (.arrow, read only here) or a portable roaring bitmap (.bin). A bitmap is a deletion vector.
 */
#ifndef LFS_FORMAT_DELETION_H
#define LFS_FORMAT_DELETION_H

#include <roaring/roaring.h>
#include <stddef.h>
#include <stdint.h>

#include "format/messages.h"
#include "util/buf.h"
#include "util/error.h"

/* Decode a file's bytes. `physical_rows` bounds the offsets (UINT64_MAX = unknown): an offset at or over it is
 * LFS_E_CORRUPT, as is everything that is not exactly such a file. `*out` is to be freed by roaring_bitmap_free. */
errint_t lfs_deletion_decode_arrow(const uint8_t *bytes, size_t length, uint64_t physical_rows, const char *what,
                                   roaring_bitmap_t **out, struct lfs_error *err);
errint_t lfs_deletion_decode_bitmap(const uint8_t *bytes, size_t length, uint64_t physical_rows, const char *what,
                                    roaring_bitmap_t **out, struct lfs_error *err);
/* Either, by the deletion file's type; LFS_E_UNSUPPORTED for a type that is not known. */
errint_t lfs_deletion_decode(const LanceDeletionFile *file, const uint8_t *bytes, size_t length, uint64_t physical_rows,
                             const char *what, roaring_bitmap_t **out, struct lfs_error *err);

/* Append the .bin form (portable roaring) of a deletion vector. */
errint_t lfs_deletion_encode_bitmap(const roaring_bitmap_t *deleted, struct lfs_buf *out, struct lfs_error *err);

/* "<fragment>-<read_version>-<id>.<arrow|bin>"; `size` >= 80 always suffices. */
void lfs_deletion_file_name(uint64_t fragment_id, const LanceDeletionFile *file, char *name, size_t size);

#endif
