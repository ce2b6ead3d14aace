/* SPDX-License-Identifier: Apache-2.0 */
#include "format/arrow.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "format/flatbuf.h"
#include "util/cleanup.h"
#include "util/limits.h"

/*
 * An IPC file: "ARROW1\0\0", messages, the footer (a flatbuffer), its i32 length, "ARROW1". The footer names the schema
 * and where the record batch's message lies. Field numbers are those of Arrow's File.fbs, Schema.fbs and Message.fbs.
 */
static const char magic[6] = {'A', 'R', 'R', 'O', 'W', '1'};

enum { HEAD_SIZE = 8, TAIL_SIZE = 10 };
enum { FOOTER_VERSION, FOOTER_SCHEMA, FOOTER_DICTIONARIES, FOOTER_BATCHES };
enum { SCHEMA_ENDIANNESS, SCHEMA_FIELDS, SCHEMA_METADATA };
enum { FIELD_NAME, FIELD_NULLABLE, FIELD_TYPE_TYPE, FIELD_TYPE, FIELD_DICTIONARY, FIELD_CHILDREN, FIELD_METADATA };
enum { INT_BIT_WIDTH, INT_IS_SIGNED };
enum { MESSAGE_VERSION, MESSAGE_HEADER_TYPE, MESSAGE_HEADER, MESSAGE_BODY_LENGTH };
enum { BATCH_LENGTH, BATCH_NODES, BATCH_BUFFERS, BATCH_COMPRESSION };
enum { COMPRESSION_CODEC, COMPRESSION_METHOD };

enum { VERSION_V4 = 3, VERSION_V5 = 4 }; /* the same layout for a column of integers */
enum { TYPE_INT = 2, HEADER_RECORD_BATCH = 3, CODEC_LZ4_FRAME = 0, CODEC_ZSTD = 1, METHOD_BUFFER = 0 };
enum { OFFSET_SIZE = 4, BLOCK_SIZE = 24, NODE_SIZE = 16, BUFFER_SIZE = 16, VALUE_SIZE = 4 };
enum { BUFFER_PADDING_MAX = 63 }; /* writers pad buffers to 8 or 64 bytes */
enum { PREFIX_SIZE = 8 };         /* a compressed buffer begins with its i64 uncompressed length */

#define CONTINUATION 0xffffffffu

struct reader {
    const uint8_t *bytes;
    size_t length; /* up to where the footer begins, once that is known */
    const char *what;
    struct lfs_error *err;
};

struct span {
    const uint8_t *bytes;
    size_t length;
};

static errint_t corrupt(const struct reader *r, const char *why) {
    return lfs_fail(r->err, LFS_E_CORRUPT, "%s is not a valid Arrow deletion file: %s", r->what, why);
}

static errint_t find_footer(struct reader *r, struct lfs_flat *footer) {
    if (r->length < HEAD_SIZE + TAIL_SIZE)
        return corrupt(r, "it is too short");
    const uint8_t *tail = r->bytes + r->length - TAIL_SIZE;
    if (memcmp(r->bytes, magic, sizeof magic) || memcmp(tail + 4, magic, sizeof magic))
        return corrupt(r, "it does not begin and end with ARROW1");
    size_t size = lfs_get_u32le(tail), room = r->length - HEAD_SIZE - TAIL_SIZE;
    if (size == 0 || size > room)
        return corrupt(r, "its footer does not fit");
    *footer = (struct lfs_flat){.bytes = tail - size, .length = size};
    r->length -= TAIL_SIZE + size;
    return 0;
}

/* The type must be UInt32 exactly: both engines call anything else a corrupt file (lance-format section 1.3). */
static errint_t check_field(const struct reader *r, struct lfs_flat *flat, const struct lfs_flat_table *field) {
    static const char expected[] = "row_id";
    struct lfs_flat_vector name = lfs_flat_vector(flat, field, FIELD_NAME, 1);
    struct lfs_flat_table type = lfs_flat_table(flat, field, FIELD_TYPE);
    struct lfs_flat_table dictionary = lfs_flat_table(flat, field, FIELD_DICTIONARY);
    bool is_int = lfs_flat_u8(flat, field, FIELD_TYPE_TYPE, 0) == TYPE_INT;
    bool is_u32 = is_int && type.at && lfs_flat_i32(flat, &type, INT_BIT_WIDTH, 0) == 32 &&
                  lfs_flat_u8(flat, &type, INT_IS_SIGNED, 0) == 0;
    bool nullable = lfs_flat_u8(flat, field, FIELD_NULLABLE, 0) != 0;
    size_t children = lfs_flat_vector(flat, field, FIELD_CHILDREN, OFFSET_SIZE).count;
    size_t metadata = lfs_flat_vector(flat, field, FIELD_METADATA, OFFSET_SIZE).count;
    if (flat->bad || !field->at)
        return corrupt(r, "its schema is damaged");
    if (name.count != sizeof expected - 1 || memcmp(flat->bytes + name.at, expected, sizeof expected - 1))
        return corrupt(r, "its column is not named row_id");
    if (!is_u32 || children)
        return corrupt(r, "its column is not of type UInt32");
    if (nullable)
        return corrupt(r, "its column is nullable");
    if (dictionary.at)
        return corrupt(r, "its column has a dictionary");
    if (metadata)
        return corrupt(r, "its column has metadata");
    return 0;
}

static errint_t check_schema(const struct reader *r, struct lfs_flat *flat, const struct lfs_flat_table *schema) {
    int16_t endianness = lfs_flat_i16(flat, schema, SCHEMA_ENDIANNESS, 0);
    struct lfs_flat_vector fields = lfs_flat_vector(flat, schema, SCHEMA_FIELDS, OFFSET_SIZE);
    size_t metadata = lfs_flat_vector(flat, schema, SCHEMA_METADATA, OFFSET_SIZE).count;
    if (flat->bad || !schema->at)
        return corrupt(r, "its schema is damaged");
    if (endianness == 1)
        return lfs_fail(r->err, LFS_E_UNSUPPORTED, "%s is a big-endian Arrow file", r->what);
    if (endianness != 0)
        return corrupt(r, "its byte order is unknown");
    if (fields.count != 1)
        return corrupt(r, "it has not exactly one column");
    if (metadata)
        return corrupt(r, "its schema has metadata");
    struct lfs_flat_table field = lfs_flat_vector_table(flat, &fields, 0);
    return check_field(r, flat, &field);
}

/* The one record batch's message: its flatbuffer and its body. A block is i64 offset, i32 length of the metadata with
 * its prefix, i32 padding, i64 length of the body. */
static errint_t find_batch(const struct reader *r, const uint8_t *block, struct lfs_flat *message, struct span *body) {
    uint64_t offset = lfs_get_u64le(block), body_length = lfs_get_u64le(block + 16);
    uint32_t metadata = lfs_get_u32le(block + 8);
    if (offset < HEAD_SIZE || offset > r->length || metadata > r->length - offset ||
        body_length > r->length - offset - metadata)
        return corrupt(r, "its record batch lies outside the file");
    const uint8_t *start = r->bytes + offset;
    size_t prefix = metadata >= 8 && lfs_get_u32le(start) == CONTINUATION ? 8 : 4; /* before Arrow 0.15: length alone */
    uint32_t size = metadata >= prefix ? lfs_get_u32le(start + prefix - 4) : 0;
    if (size == 0 || size > metadata - prefix)
        return corrupt(r, "its record batch has no header");
    *message = (struct lfs_flat){.bytes = start + prefix, .length = size};
    *body = (struct span){start + metadata, (size_t)body_length};
    return 0;
}

static errint_t read_footer(struct reader *r, struct lfs_flat *message, struct span *body) {
    struct lfs_flat flat = {0};
    LFS_TRY(find_footer(r, &flat));
    struct lfs_flat_table footer = lfs_flat_root(&flat);
    int16_t version = lfs_flat_i16(&flat, &footer, FOOTER_VERSION, 0);
    struct lfs_flat_table schema = lfs_flat_table(&flat, &footer, FOOTER_SCHEMA);
    struct lfs_flat_vector dictionaries = lfs_flat_vector(&flat, &footer, FOOTER_DICTIONARIES, BLOCK_SIZE);
    struct lfs_flat_vector batches = lfs_flat_vector(&flat, &footer, FOOTER_BATCHES, BLOCK_SIZE);
    if (flat.bad)
        return corrupt(r, "its footer is damaged");
    if (version != VERSION_V4 && version != VERSION_V5)
        return lfs_fail(r->err, LFS_E_UNSUPPORTED, "%s: Arrow metadata version %d is not supported", r->what, version);
    LFS_TRY(check_schema(r, &flat, &schema));
    if (dictionaries.count)
        return corrupt(r, "it has dictionaries");
    if (batches.count != 1)
        return corrupt(r, "it has not exactly one record batch");
    return find_batch(r, flat.bytes + batches.at, message, body);
}

/* A buffer of the body: i64 offset, i64 length. */
static errint_t find_buffer(const struct reader *r, const uint8_t *entry, const struct span *body, struct span *out) {
    uint64_t offset = lfs_get_u64le(entry), length = lfs_get_u64le(entry + 8);
    if (offset > body->length || length > body->length - offset)
        return corrupt(r, "a buffer lies outside its record batch");
    *out = (struct span){body->bytes + offset, (size_t)length};
    return 0;
}

/* A compressed buffer: i64 uncompressed length and a zstd frame, or i64 -1 and the bytes as they are. */
static errint_t decompress(const struct reader *r, const struct span *buffer, size_t wanted,
                           struct lfs_arrow_column *out) {
    if (buffer->length < PREFIX_SIZE)
        return corrupt(r, "a compressed buffer is cut short");
    const uint8_t *frame = buffer->bytes + PREFIX_SIZE;
    size_t frame_size = buffer->length - PREFIX_SIZE;
    uint64_t declared = lfs_get_u64le(buffer->bytes);
    if (declared == UINT64_MAX) {
        out->values = frame;
        return frame_size < wanted ? corrupt(r, "it holds fewer values than it says") : 0;
    }
    if (declared < wanted || declared > wanted + BUFFER_PADDING_MAX)
        return corrupt(r, "a buffer's length does not fit its number of rows");
    unsigned long long content = ZSTD_getFrameContentSize(frame, frame_size);
    if (content == ZSTD_CONTENTSIZE_ERROR || (content != ZSTD_CONTENTSIZE_UNKNOWN && content != declared))
        return corrupt(r, "a compressed buffer is damaged");
    out->owned = malloc((size_t)declared);
    if (!out->owned)
        return lfs_fail_nomem(r->err);
    size_t got = ZSTD_decompress(out->owned, (size_t)declared, frame, frame_size);
    if (ZSTD_isError(got) || got != declared)
        return corrupt(r, "a compressed buffer is damaged");
    out->values = out->owned;
    return 0;
}

static errint_t read_values(const struct reader *r, struct lfs_flat *flat, const struct lfs_flat_table *compression,
                            const struct span *buffer, struct lfs_arrow_column *out) {
    size_t wanted = out->count * VALUE_SIZE;
    uint8_t codec = lfs_flat_u8(flat, compression, COMPRESSION_CODEC, CODEC_LZ4_FRAME);
    uint8_t method = lfs_flat_u8(flat, compression, COMPRESSION_METHOD, METHOD_BUFFER);
    if (flat->bad)
        return corrupt(r, "its record batch's header is damaged");
    if (out->count == 0)
        return 0;
    if (!compression->at) {
        out->values = buffer->bytes;
        return buffer->length < wanted ? corrupt(r, "it holds fewer values than it says") : 0;
    }
    if (codec != CODEC_ZSTD || method != METHOD_BUFFER)
        return lfs_fail(r->err, LFS_E_UNSUPPORTED, "%s is compressed by a method other than ZSTD (codec %u, method %u)",
                        r->what, codec, method);
    return decompress(r, buffer, wanted, out);
}

static errint_t read_batch(const struct reader *r, struct lfs_flat *flat, const struct span *body,
                           struct lfs_arrow_column *out) {
    struct lfs_flat_table message = lfs_flat_root(flat);
    uint8_t header_type = lfs_flat_u8(flat, &message, MESSAGE_HEADER_TYPE, 0);
    int64_t body_length = lfs_flat_i64(flat, &message, MESSAGE_BODY_LENGTH, 0);
    struct lfs_flat_table batch = lfs_flat_table(flat, &message, MESSAGE_HEADER);
    int64_t rows = lfs_flat_i64(flat, &batch, BATCH_LENGTH, 0);
    struct lfs_flat_vector nodes = lfs_flat_vector(flat, &batch, BATCH_NODES, NODE_SIZE);
    struct lfs_flat_vector buffers = lfs_flat_vector(flat, &batch, BATCH_BUFFERS, BUFFER_SIZE);
    struct lfs_flat_table compression = lfs_flat_table(flat, &batch, BATCH_COMPRESSION);
    if (flat->bad || header_type != HEADER_RECORD_BATCH || !batch.at || rows < 0)
        return corrupt(r, "its record batch's header is damaged");
    if ((uint64_t)body_length != body->length)
        return corrupt(r, "its record batch's length is not what the footer says");
    if (nodes.count != 1 || buffers.count != 2)
        return corrupt(r, "its record batch is not of one column");
    const uint8_t *node = flat->bytes + nodes.at; /* i64 length, i64 null count */
    if (lfs_get_u64le(node) != (uint64_t)rows)
        return corrupt(r, "its column is not as long as its record batch");
    if (lfs_get_u64le(node + 8) != 0)
        return corrupt(r, "its column holds nulls");
    if (rows > LFS_DELETION_ROWS_MAX || rows > LFS_DELETION_BYTES_MAX / VALUE_SIZE)
        return lfs_fail(r->err, LFS_E_TOO_BIG, "%s names %lld rows", r->what, (long long)rows);
    out->count = (size_t)rows;
    struct span validity = {0}, values = {0}; /* with no nulls the validity bits say nothing: they are not read */
    LFS_TRY(find_buffer(r, flat->bytes + buffers.at, body, &validity));
    LFS_TRY(find_buffer(r, flat->bytes + buffers.at + BUFFER_SIZE, body, &values));
    return read_values(r, flat, &compression, &values, out);
}

errint_t lfs_arrow_read_row_ids(const uint8_t *bytes, size_t length, const char *what, struct lfs_arrow_column *out,
                                struct lfs_error *err) {
    struct reader r = {bytes, length, what, err};
    struct lfs_flat message = {0};
    struct span body = {0};
    *out = (struct lfs_arrow_column){0};
    LFS_TRY(read_footer(&r, &message, &body));
    return read_batch(&r, &message, &body, out);
}
