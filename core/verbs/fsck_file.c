/* SPDX-License-Identifier: Apache-2.0 */
/* What a data file says of itself. A file of format 2 ends in 40 bytes: where the metadata of its columns, the table of that
 * metadata and the table of its global buffers begin (u64 each), how many buffers and columns there are (u32 each), the
 * format's version (u16 twice), "LANC". Global buffer 0 is a message whose field 2 is the number of rows. */
#include <endian.h>
#include <string.h>
#include <unistd.h>

#include "format/wire.h"
#include "util/buf.h"
#include "util/cleanup.h"
#include "verbs/fsck_impl.h"

enum { FOOTER_SIZE = 40, DESCRIPTOR_BYTES_MAX = 16 << 20 };

static uint64_t u64_at(const uint8_t *p) {
    uint64_t n;
    memcpy(&n, p, sizeof n);
    return le64toh(n);
}

static bool read_at(int fd, void *to, size_t n, uint64_t at) { return pread(fd, to, n, (off_t)at) == (ssize_t)n; }

/* A number lies there as the rest of its field, behind the tag. */
static bool find_rows(const uint8_t *at, const uint8_t *end, uint64_t *rows) {
    struct lfs_wire_field field;
    *rows = 0; /* a number that is 0 is left out */
    while (at < end) {
        const uint8_t *next = lfs_wire_next(at, end, &field);
        if (!next)
            return false;
        if (field.number == 2 && field.type == 0) {
            *rows = 0;
            for (unsigned shift = 0; ++at < next && shift < 64; shift += 7)
                *rows |= (uint64_t)(*at & 0x7f) << shift;
        }
        at = next;
    }
    return true;
}

void lfs_fsck_look_inside(int fd, uint64_t size, struct lfs_checked *out) {
    uint8_t footer[FOOTER_SIZE], entry[16];
    LFS_AUTO_BUF descriptor = {0};
    uint16_t major;
    out->is_lance = size >= 4 && read_at(fd, footer, 4, size - 4) && memcmp(footer, "LANC", 4) == 0;
    if (!out->is_lance || size < FOOTER_SIZE || !read_at(fd, footer, sizeof footer, size - sizeof footer))
        return;
    memcpy(&major, footer + 32, sizeof major);
    uint64_t buffers = u64_at(footer + 16);
    if (le16toh(major) < 2 || buffers > size - FOOTER_SIZE || !read_at(fd, entry, sizeof entry, buffers))
        return;
    uint64_t at = u64_at(entry), length = u64_at(entry + 8);
    if (at > size || length > size - at || length > DESCRIPTOR_BYTES_MAX)
        return;
    uint8_t *bytes = lfs_buf_extend(&descriptor, length);
    out->has_rows = bytes && read_at(fd, bytes, length, at) && find_rows(bytes, bytes + length, &out->rows);
}
