/* SPDX-License-Identifier: Apache-2.0 */
#include "format/flatbuf.h"

/*
 * The layout, from the flatbuffers internals document: a buffer begins with the u32 offset of its root table. A table
 * begins with an i32 that, taken from its position, gives its vtable: u16 size of the vtable, u16 size of the table,
 * one u16 for each field with the field's offset inside the table (0 = absent). What is not a scalar or a struct is
 * stored as a u32 offset from where that offset stands. A vector is a u32 count and the elements.
 */
enum { OFFSET_SIZE = 4, VTABLE_HEAD = 4, SLOT_SIZE = 2 };

uint16_t lfs_get_u16le(const uint8_t *p) { return (uint16_t)(p[0] | p[1] << 8); }

uint32_t lfs_get_u32le(const uint8_t *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

uint64_t lfs_get_u64le(const uint8_t *p) { return lfs_get_u32le(p) | (uint64_t)lfs_get_u32le(p + 4) << 32; }

static bool inside(struct lfs_flat *flat, size_t at, size_t size) {
    if (at > flat->length || size > flat->length - at)
        flat->bad = true;
    return !flat->bad;
}

/* Where the u32 offset at `at` leads; 0 when that is outside. */
static size_t follow(struct lfs_flat *flat, size_t at) {
    if (!inside(flat, at, OFFSET_SIZE))
        return 0;
    uint32_t offset = lfs_get_u32le(flat->bytes + at);
    if (offset == 0 || offset > flat->length - at) {
        flat->bad = true;
        return 0;
    }
    return at + offset;
}

static struct lfs_flat_table table_at(struct lfs_flat *flat, size_t at) {
    const struct lfs_flat_table absent = {0};
    if (at == 0 || !inside(flat, at, OFFSET_SIZE))
        return absent;
    int64_t vtable = (int64_t)at - (int32_t)lfs_get_u32le(flat->bytes + at);
    if (vtable < 0 || !inside(flat, (size_t)vtable, VTABLE_HEAD)) {
        flat->bad = true;
        return absent;
    }
    size_t vtable_size = lfs_get_u16le(flat->bytes + vtable), size = lfs_get_u16le(flat->bytes + vtable + 2);
    if (vtable_size < VTABLE_HEAD || vtable_size % SLOT_SIZE || size < OFFSET_SIZE ||
        !inside(flat, (size_t)vtable, vtable_size) || !inside(flat, at, size)) {
        flat->bad = true;
        return absent;
    }
    return (struct lfs_flat_table){at, size, (size_t)vtable + VTABLE_HEAD, (vtable_size - VTABLE_HEAD) / SLOT_SIZE};
}

/* Where field `index` stands; 0 when it is absent. */
static size_t field_at(struct lfs_flat *flat, const struct lfs_flat_table *table, unsigned index, size_t size) {
    if (flat->bad || table->at == 0 || index >= table->n_fields)
        return 0;
    size_t offset = lfs_get_u16le(flat->bytes + table->vtable + (size_t)index * SLOT_SIZE);
    if (offset == 0)
        return 0;
    if (offset < OFFSET_SIZE || offset > table->size || size > table->size - offset) {
        flat->bad = true;
        return 0;
    }
    return table->at + offset;
}

struct lfs_flat_table lfs_flat_root(struct lfs_flat *flat) {
    return table_at(flat, follow(flat, 0));
}

uint8_t lfs_flat_u8(struct lfs_flat *flat, const struct lfs_flat_table *table, unsigned index, uint8_t absent) {
    size_t at = field_at(flat, table, index, 1);
    return at ? flat->bytes[at] : absent;
}

int16_t lfs_flat_i16(struct lfs_flat *flat, const struct lfs_flat_table *table, unsigned index, int16_t absent) {
    size_t at = field_at(flat, table, index, 2);
    return at ? (int16_t)lfs_get_u16le(flat->bytes + at) : absent;
}

int32_t lfs_flat_i32(struct lfs_flat *flat, const struct lfs_flat_table *table, unsigned index, int32_t absent) {
    size_t at = field_at(flat, table, index, 4);
    return at ? (int32_t)lfs_get_u32le(flat->bytes + at) : absent;
}

int64_t lfs_flat_i64(struct lfs_flat *flat, const struct lfs_flat_table *table, unsigned index, int64_t absent) {
    size_t at = field_at(flat, table, index, 8);
    return at ? (int64_t)lfs_get_u64le(flat->bytes + at) : absent;
}

struct lfs_flat_table lfs_flat_table(struct lfs_flat *flat, const struct lfs_flat_table *table, unsigned index) {
    size_t at = field_at(flat, table, index, OFFSET_SIZE);
    return table_at(flat, at ? follow(flat, at) : 0);
}

struct lfs_flat_vector lfs_flat_vector(struct lfs_flat *flat, const struct lfs_flat_table *table, unsigned index,
                                       size_t element_size) {
    const struct lfs_flat_vector absent = {0};
    size_t at = field_at(flat, table, index, OFFSET_SIZE);
    size_t head = at ? follow(flat, at) : 0;
    if (head == 0 || !inside(flat, head, OFFSET_SIZE))
        return absent;
    size_t count = lfs_get_u32le(flat->bytes + head), room = flat->length - head - OFFSET_SIZE;
    if (count > room / element_size) {
        flat->bad = true;
        return absent;
    }
    return (struct lfs_flat_vector){head + OFFSET_SIZE, count};
}

struct lfs_flat_table lfs_flat_vector_table(struct lfs_flat *flat, const struct lfs_flat_vector *vector, size_t i) {
    return table_at(flat, i < vector->count ? follow(flat, vector->at + i * OFFSET_SIZE) : 0);
}
