/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading flatbuffers that nobody vouches for: every offset is checked against the buffer before it is followed.
 *
 * A reader turns `bad` at the first offset that leads outside and answers with absent values from then on, so that a
 * walk checks once, at its end. Positions are byte offsets into the buffer; 0 means absent (a buffer begins with the
 * offset of its root, so nothing else lies there).
 */
#ifndef LFS_FORMAT_FLATBUF_H
#define LFS_FORMAT_FLATBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lfs_flat {
    const uint8_t *bytes;
    size_t length;
    bool bad;
};

struct lfs_flat_table {
    size_t at;       /* 0: the table is absent, and so are all its fields */
    size_t size;     /* bytes of the table itself */
    size_t vtable;   /* where the slots begin */
    size_t n_fields; /* slots there */
};

struct lfs_flat_vector {
    size_t at; /* of element 0 */
    size_t count;
};

/* Little-endian numbers at any alignment, for what is known to lie inside. */
uint16_t lfs_get_u16le(const uint8_t *bytes);
uint32_t lfs_get_u32le(const uint8_t *bytes);
uint64_t lfs_get_u64le(const uint8_t *bytes);

struct lfs_flat_table lfs_flat_root(struct lfs_flat *flat);

/* Scalars of field number `index`; `absent` when the field is not there. */
uint8_t lfs_flat_u8(struct lfs_flat *flat, const struct lfs_flat_table *table, unsigned index, uint8_t absent);
int16_t lfs_flat_i16(struct lfs_flat *flat, const struct lfs_flat_table *table, unsigned index, int16_t absent);
int32_t lfs_flat_i32(struct lfs_flat *flat, const struct lfs_flat_table *table, unsigned index, int32_t absent);
int64_t lfs_flat_i64(struct lfs_flat *flat, const struct lfs_flat_table *table, unsigned index, int64_t absent);

struct lfs_flat_table lfs_flat_table(struct lfs_flat *flat, const struct lfs_flat_table *table, unsigned index);
/* A vector of `element_size` bytes each; count 0 when absent. A string is a vector of bytes. */
struct lfs_flat_vector lfs_flat_vector(struct lfs_flat *flat, const struct lfs_flat_table *table, unsigned index,
                                       size_t element_size);
/* Element `i` (< count) of a vector of tables, whose elements are 4 bytes each. */
struct lfs_flat_table lfs_flat_vector_table(struct lfs_flat *flat, const struct lfs_flat_vector *vector, size_t i);

#endif
