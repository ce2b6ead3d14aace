/* SPDX-License-Identifier: Apache-2.0 */
#include "format/deletion.h"

#include <inttypes.h>
#include <stdio.h>

#include "format/arrow.h"
#include "format/flatbuf.h"
#include "format/roaring_check.h"
#include "util/cleanup.h"
#include "util/limits.h"

enum {
    TYPE_ARROW = LANCE__TABLE__DELETION_FILE__DELETION_FILE_TYPE__ARROW_ARRAY,
    TYPE_BITMAP = LANCE__TABLE__DELETION_FILE__DELETION_FILE_TYPE__BITMAP
};

static void cleanup_bitmap(roaring_bitmap_t **bitmap) {
    if (*bitmap)
        roaring_bitmap_free(*bitmap);
}
static void cleanup_column(struct lfs_arrow_column *column) { free(column->owned); }

#define AUTO_BITMAP LFS_CLEANUP(cleanup_bitmap) roaring_bitmap_t

static errint_t check_size(size_t length, const char *what, struct lfs_error *err) {
    if (length > LFS_DELETION_BYTES_MAX)
        return lfs_fail(err, LFS_E_TOO_BIG, "%s is too large for a deletion file (%zu bytes)", what, length);
    return 0;
}

static errint_t check_offsets(const roaring_bitmap_t *deleted, uint64_t physical_rows, const char *what,
                              struct lfs_error *err) {
    if (roaring_bitmap_is_empty(deleted))
        return 0;
    uint32_t last = roaring_bitmap_maximum(deleted);
    if (last >= physical_rows)
        return lfs_fail(err, LFS_E_CORRUPT, "%s deletes row %" PRIu32 " of a fragment of %" PRIu64 " rows", what, last,
                        physical_rows);
    return 0;
}

/* Stock writes the values in the order of a hash table (lance-format section 1.3): unsorted. */
static void add_values(roaring_bitmap_t *bitmap, const struct lfs_arrow_column *column) {
    uint32_t chunk[1024];
    size_t n = 0;
    for (size_t i = 0; i < column->count; i++) {
        chunk[n++] = lfs_get_u32le(column->values + sizeof(uint32_t) * i);
        if (n == sizeof chunk / sizeof chunk[0] || i + 1 == column->count) {
            roaring_bitmap_add_many(bitmap, n, chunk);
            n = 0;
        }
    }
}

errint_t lfs_deletion_decode_arrow(const uint8_t *bytes, size_t length, uint64_t physical_rows, const char *what,
                                   roaring_bitmap_t **out, struct lfs_error *err) {
    LFS_CLEANUP(cleanup_column) struct lfs_arrow_column column = {0};
    *out = NULL;
    LFS_TRY(check_size(length, what, err));
    LFS_TRY(lfs_arrow_read_row_ids(bytes, length, what, &column, err));
    AUTO_BITMAP *bitmap = roaring_bitmap_create();
    if (!bitmap)
        return lfs_fail_nomem(err);
    add_values(bitmap, &column);
    LFS_TRY(check_offsets(bitmap, physical_rows, what, err));
    *out = LFS_STEAL_PTR(bitmap);
    return 0;
}

errint_t lfs_deletion_decode_bitmap(const uint8_t *bytes, size_t length, uint64_t physical_rows, const char *what,
                                    roaring_bitmap_t **out, struct lfs_error *err) {
    *out = NULL;
    LFS_TRY(check_size(length, what, err));
    LFS_TRY(lfs_roaring_check(bytes, length, what, err));
    AUTO_BITMAP *bitmap = roaring_bitmap_portable_deserialize_safe((const char *)bytes, length);
    if (!bitmap)
        return lfs_fail_nomem(err); /* nothing else is left that it could refuse */
    LFS_TRY(check_offsets(bitmap, physical_rows, what, err));
    /* Stock writes no runs, newer CRoaring wants runs that touch to be one: neither is left to chance. After the
     * offsets were checked, so that a small file of long runs grows no further than its fragment. */
    roaring_bitmap_remove_run_compression(bitmap);
    *out = LFS_STEAL_PTR(bitmap);
    return 0;
}

errint_t lfs_deletion_decode(const LanceDeletionFile *file, const uint8_t *bytes, size_t length, uint64_t physical_rows,
                             const char *what, roaring_bitmap_t **out, struct lfs_error *err) {
    *out = NULL;
    switch ((int)file->file_type) {
    case TYPE_ARROW: return lfs_deletion_decode_arrow(bytes, length, physical_rows, what, out, err);
    case TYPE_BITMAP: return lfs_deletion_decode_bitmap(bytes, length, physical_rows, what, out, err);
    }
    return lfs_fail(err, LFS_E_UNSUPPORTED, "%s is a deletion file of unknown type %d", what, (int)file->file_type);
}

errint_t lfs_deletion_encode_bitmap(const roaring_bitmap_t *deleted, struct lfs_buf *out, struct lfs_error *err) {
    size_t size = roaring_bitmap_portable_size_in_bytes(deleted);
    uint8_t *bytes = lfs_buf_extend(out, size);
    if (!bytes)
        return lfs_fail_nomem(err);
    roaring_bitmap_portable_serialize(deleted, (char *)bytes);
    return 0;
}

void lfs_deletion_file_name(uint64_t fragment_id, const LanceDeletionFile *file, char *name, size_t size) {
    snprintf(name, size, "%" PRIu64 "-%" PRIu64 "-%" PRIu64 ".%s", fragment_id, file->read_version, file->id,
             (int)file->file_type == TYPE_ARROW ? "arrow" : "bin");
}
