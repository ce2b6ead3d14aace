/* SPDX-License-Identifier: Apache-2.0 */
#include "format/wire.h"

#include <string.h>

#include "util/cleanup.h"
#include "util/limits.h"

struct scan {
    const char *what;
    struct lfs_error *err;
    uint64_t elements; /* strings and sub-messages seen so far: what unpacking will allocate */
};

static const uint8_t *read_varint(const uint8_t *p, const uint8_t *end, uint64_t *out) {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 70 && p < end; shift += 7) {
        uint8_t byte = *p++;
        if (shift < 64)
            value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *out = value;
            return p;
        }
    }
    return NULL;
}

/* Past the value of a field of wire type `type`; *length is the payload's for length-delimited ones. */
static const uint8_t *skip_value(const uint8_t *p, const uint8_t *end, unsigned type, uint64_t *length) {
    uint64_t ignored;
    *length = 0;
    switch (type) {
    case 0: return read_varint(p, end, &ignored);
    case 1: return end - p >= 8 ? p + 8 : NULL;
    case 5: return end - p >= 4 ? p + 4 : NULL;
    case 2:
        p = read_varint(p, end, length);
        return p && *length <= (uint64_t)(end - p) ? p + *length : NULL;
    default: return NULL;
    }
}

static errint_t scan_message(struct scan *scan, const ProtobufCMessageDescriptor *d, const uint8_t *p,
                             const uint8_t *end);

static errint_t scan_payload(struct scan *scan, const ProtobufCFieldDescriptor *field, const uint8_t *payload,
                             uint64_t length) {
    if (++scan->elements > LFS_WIRE_ELEMENTS_MAX)
        return lfs_fail(scan->err, LFS_E_TOO_BIG, "%s holds more than %u parts", scan->what, LFS_WIRE_ELEMENTS_MAX);
    if (field->type == PROTOBUF_C_TYPE_STRING && memchr(payload, 0, length))
        return lfs_fail(scan->err, LFS_E_CORRUPT, "%s: a NUL byte inside %s", scan->what, field->name);
    if (field->type == PROTOBUF_C_TYPE_MESSAGE) /* the schema is not recursive, so neither is the depth unbounded */
        return scan_message(scan, field->descriptor, payload, payload + length);
    return 0;
}

static errint_t scan_message(struct scan *scan, const ProtobufCMessageDescriptor *d, const uint8_t *p,
                             const uint8_t *end) {
    while (p < end) {
        uint64_t key, length;
        p = read_varint(p, end, &key);
        const uint8_t *next = p ? skip_value(p, end, key & 7, &length) : NULL;
        if (!next || key >> 3 == 0 || key >> 3 > 0x1fffffff)
            return lfs_fail(scan->err, LFS_E_CORRUPT, "%s is not a valid %s message", scan->what, d->short_name);
        const ProtobufCFieldDescriptor *field = protobuf_c_message_descriptor_get_field(d, (unsigned)(key >> 3));
        if (field && (key & 7) == 2)
            LFS_TRY(scan_payload(scan, field, next - length, length));
        p = next;
    }
    return 0;
}

errint_t lfs_wire_unpack_part(const ProtobufCMessageDescriptor *descriptor, const uint8_t *bytes, size_t length,
                              struct lfs_arena *arena, const char *what, uint64_t *elements, void *out,
                              struct lfs_error *err) {
    struct scan scan = {what, err, *elements};
    if (length) /* no bytes may be at no address */
        LFS_TRY(scan_message(&scan, descriptor, bytes, bytes + length));
    *elements = scan.elements;
    ProtobufCMessage *message = protobuf_c_message_unpack(descriptor, lfs_arena_protobuf(arena), length, bytes);
    if (!message)
        return lfs_arena_ran_short(arena)
                   ? lfs_fail_nomem(err)
                   : lfs_fail(err, LFS_E_CORRUPT, "%s is not a valid %s message", what, descriptor->short_name);
    memcpy(out, &message, sizeof message);
    return 0;
}

errint_t lfs_wire_unpack(const ProtobufCMessageDescriptor *descriptor, const uint8_t *bytes, size_t length,
                         struct lfs_arena *arena, const char *what, void *out, struct lfs_error *err) {
    uint64_t elements = 0;
    return lfs_wire_unpack_part(descriptor, bytes, length, arena, what, &elements, out, err);
}

const uint8_t *lfs_wire_next(const uint8_t *at, const uint8_t *end, struct lfs_wire_field *out) {
    uint64_t key, length;
    const uint8_t *value = read_varint(at, end, &key), *next = value ? skip_value(value, end, key & 7, &length) : NULL;
    if (!next || key >> 3 == 0 || key >> 3 > 0x1fffffff)
        return NULL;
    *out = (struct lfs_wire_field){(unsigned)(key >> 3), key & 7, next - length, (size_t)length};
    return next;
}

bool lfs_wire_find(const uint8_t *at, const uint8_t *end, unsigned number, struct lfs_wire_field *out) {
    while (at && at < end)
        if ((at = lfs_wire_next(at, end, out)) && out->number == number && out->type == 2)
            return true;
    return false;
}

bool lfs_wire_varint(const uint8_t *at, const uint8_t *end, unsigned number, uint64_t *out) {
    struct lfs_wire_field field;
    for (const uint8_t *next; at < end && (next = lfs_wire_next(at, end, &field)); at = next) {
        uint64_t key;
        if (field.number == number && field.type == 0)
            return read_varint(read_varint(at, end, &key), end, out) != NULL;
    }
    return false;
}

void lfs_wire_pack(const ProtobufCMessage *message, struct lfs_buf *out) {
    size_t size = protobuf_c_message_get_packed_size(message);
    uint8_t *bytes = size ? lfs_buf_extend(out, size) : NULL;
    if (bytes)
        protobuf_c_message_pack(message, bytes);
}

errint_t lfs_wire_copy(const ProtobufCMessage *message, struct lfs_arena *arena, void *out, struct lfs_error *err) {
    LFS_AUTO_BUF buf = {0};
    lfs_wire_pack(message, &buf);
    LFS_TRY(lfs_buf_check(&buf, err));
    ProtobufCMessage *copy =
        protobuf_c_message_unpack(message->descriptor, lfs_arena_protobuf(arena), buf.length, buf.data);
    if (!copy)
        return lfs_fail_nomem(err);
    memcpy(out, &copy, sizeof copy);
    return 0;
}
