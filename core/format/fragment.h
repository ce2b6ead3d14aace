/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of fragments, which nearly all of a manifest consists of: read into a third of the memory that protobuf-c takes,
 * and written, at a tenth of its price. Pure.
 *
 * Only of plain records, as stock Lance writes them (lance-format section 3.2): fields in the order of their numbers, each
 * once, in their shortest form, none that is unknown, no sequence in a file of its own, no overlay. What a plain record is
 * read into is written as the bytes that it was read from, so those need not be kept.
 */
#ifndef LFS_FORMAT_FRAGMENT_H
#define LFS_FORMAT_FRAGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/messages.h"
#include "util/arena.h"

/* Numbers of a packed list, as they were read last. */
struct lfs_fragment_numbers {
    const uint8_t *bytes; /* borrowed from the record that they were in */
    size_t length;
    int32_t *values;
    size_t count;
};

/* What one record of a manifest has in common with others. Begins as {0}; one for all records of one buffer and arena. */
struct lfs_fragment_reader {
    const LanceFragment *like; /* whose names and sequences are taken where they are equal; NULL: nobody's */
    bool took;                 /* some of them were, by the last record: they must outlive it */
    struct lfs_arena *names;   /* where names, sequences and lists go; NULL: to the record's arena */
    struct lfs_fragment_numbers fields, columns;
};

/* The record in `arena`, or NULL: it is not plain, or memory is short, and lfs_wire_unpack_part tells what it is.
 * *elements as there. Parts may be shared with other records: nobody changes them. */
LanceFragment *lfs_fragment_read(struct lfs_fragment_reader *reader, const uint8_t *bytes, size_t length,
                                 struct lfs_arena *arena, uint64_t *elements);

/* Can it be written here? Else protobuf-c packs it. */
bool lfs_fragment_is_plain(const LanceFragment *fragment);

/* Of plain ones: the record as protobuf-c packs it, its length before it as a varint, into at least that much room; the end
 * is returned. */
size_t lfs_fragment_room(const LanceFragment *fragment);
uint8_t *lfs_fragment_write(const LanceFragment *fragment, uint8_t *out);

/* Are these a plain record's bytes? */
bool lfs_fragment_equals(const LanceFragment *fragment, const uint8_t *bytes, size_t length);

#endif
