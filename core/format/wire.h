/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unpacking protobuf from files that nobody vouches for. protobuf-c checks the wire, but it stores strings as C strings
 * (a NUL inside would cut them silently) and allocates whatever the bytes ask for; both are looked at before it runs.
 */
#ifndef LFS_FORMAT_WIRE_H
#define LFS_FORMAT_WIRE_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/arena.h"
#include "util/buf.h"
#include "util/error.h"

/* The message in `bytes`, in `arena`. `what` names the file for the error: LFS_E_CORRUPT when the bytes are not such a
 * message or a string holds a NUL, LFS_E_TOO_BIG over limits.h. Unknown fields are kept and packed again. */
errint_t lfs_wire_unpack(const ProtobufCMessageDescriptor *descriptor, const uint8_t *bytes, size_t length,
                         struct lfs_arena *arena, const char *what, void *out, struct lfs_error *err);

/* The same for a part of what `what` names: *elements counts what all parts together make unpacking allocate. */
errint_t lfs_wire_unpack_part(const ProtobufCMessageDescriptor *descriptor, const uint8_t *bytes, size_t length,
                              struct lfs_arena *arena, const char *what, uint64_t *elements, void *out,
                              struct lfs_error *err);

/* A field of a message as it lies there; bytes and length are the payload's for wire type 2, else not to be used. */
struct lfs_wire_field {
    unsigned number, type;
    const uint8_t *bytes;
    size_t length;
};

/* The field at `at`; where the next one begins, or NULL when the bytes are no field. */
const uint8_t *lfs_wire_next(const uint8_t *at, const uint8_t *end, struct lfs_wire_field *out);

/* The first field of that number with a payload (wire type 2), or with a varint; false: there is none, or the bytes before it
 * are no fields. */
bool lfs_wire_find(const uint8_t *at, const uint8_t *end, unsigned number, struct lfs_wire_field *out);
bool lfs_wire_varint(const uint8_t *at, const uint8_t *end, unsigned number, uint64_t *out);

/* Append the packed message; a failure is told by the buffer. */
void lfs_wire_pack(const ProtobufCMessage *message, struct lfs_buf *out);

/* A deep copy of a message into another arena. */
errint_t lfs_wire_copy(const ProtobufCMessage *message, struct lfs_arena *arena, void *out, struct lfs_error *err);

#endif
