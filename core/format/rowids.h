/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stable row ids (lance-format section 3.3). In a table that has them every fragment carries three sequences, an entry
 * for each physical row, deleted ones too, in the order of the rows' offsets:
 *   row ids               which row this is, through updates and compaction; required
 *   created-at versions   the table version that brought the row in; optional, stock reads all 1 without it
 *   last-updated versions the table version that last rewrote the row; optional in the same way
 * Each is a small protobuf message inside the fragment (proto/rowids.proto). Ids come as segments (a range, a range
 * with holes or with a bitmap, a sorted or any array), versions as runs, of which only the lengths count: after a
 * compaction their spans are those of the old fragments. Here all of them are plain arrays. Pure.
 */
#ifndef LFS_FORMAT_ROWIDS_H
#define LFS_FORMAT_ROWIDS_H

#include <stddef.h>
#include <stdint.h>

#include "format/messages.h"
#include "util/arena.h"
#include "util/buf.h"
#include "util/error.h"

#define LFS_ROW_IDS_MAX (1u << 27) /* rows of one fragment whose ids are spelt out: 1 GiB */

/*
 * Decode a sequence of exactly `physical_rows` entries. `*out`, in `arena`, is never NULL after success; nothing is
 * allocated for entries before their number is known to be right. `what` names the sequence for the error:
 * LFS_E_CORRUPT when the bytes are not such a sequence or not of that length, LFS_E_UNSUPPORTED for a kind of segment
 * that is not known, LFS_E_TOO_BIG over LFS_ROW_IDS_MAX rows. That no id stands twice is not looked at.
 */
errint_t lfs_row_ids_decode(const uint8_t *bytes, size_t length, uint64_t physical_rows, struct lfs_arena *arena,
                            const char *what, uint64_t **out, struct lfs_error *err);
errint_t lfs_row_versions_decode(const uint8_t *bytes, size_t length, uint64_t physical_rows, struct lfs_arena *arena,
                                 const char *what, uint64_t **out, struct lfs_error *err);

/* The same for a fragment of a manifest, `physical_rows` entries each. `what` names the manifest. A fragment without
 * row ids is LFS_E_CORRUPT, one without versions has version 1 throughout, and a sequence in a file of its own, which
 * no stock engine writes or reads, is LFS_E_UNSUPPORTED. */
errint_t lfs_row_ids_of(const LanceFragment *fragment, struct lfs_arena *arena, const char *what, uint64_t **out,
                        struct lfs_error *err);
errint_t lfs_row_created_of(const LanceFragment *fragment, struct lfs_arena *arena, const char *what, uint64_t **out,
                            struct lfs_error *err);
errint_t lfs_row_updated_of(const LanceFragment *fragment, struct lfs_arena *arena, const char *what, uint64_t **out,
                            struct lfs_error *err);

/* Append the sequence of `n` entries: long runs of consecutive ids as ranges, the rest as the smallest of bitmap and
 * array; versions as runs whose spans are the offsets of their rows. */
errint_t lfs_row_ids_encode(const uint64_t *ids, size_t n, struct lfs_buf *out, struct lfs_error *err);
errint_t lfs_row_versions_encode(const uint64_t *versions, size_t n, struct lfs_buf *out, struct lfs_error *err);

#endif
