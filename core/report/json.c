/* SPDX-License-Identifier: Apache-2.0 */
/*
 * .manifest.json: the tip's manifest file as it is stored, whole, by the names of the format. Walked by protobuf-c's
 * descriptors, so that a field that is added to proto/ shows by itself. Integers over 2^53, which many readers of JSON
 * would round, are texts; bytes are base64; fields that this program does not know are listed with their numbers.
 */
#include <string.h>

#include "report/report_impl.h"

#define EXACT_MAX (UINT64_C(1) << 53)
enum { DEPTH_MAX = 100 };

/* --- scalars --- */

static void put_string(struct lfs_buf *out, const char *text) {
    lfs_buf_puts(out, "\"");
    for (const uint8_t *p = (const uint8_t *)text, *end = p + strlen(text); p < end;) {
        size_t n = lfs_line_utf8_length(p, (size_t)(end - p));
        if (n == 0)
            lfs_buf_puts(out, "\\ufffd");
        else if (*p == '"' || *p == '\\')
            lfs_buf_printf(out, "\\%c", *p);
        else if (*p < 0x20 || *p == 0x7f)
            lfs_buf_printf(out, "\\u%04x", *p);
        else
            lfs_buf_add(out, p, n);
        p += n ? n : 1;
    }
    lfs_buf_puts(out, "\"");
}

static void put_base64(struct lfs_buf *out, const uint8_t *p, size_t length) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    lfs_buf_puts(out, "\"");
    for (size_t i = 0; i < length; i += 3) {
        size_t n = length - i < 3 ? length - i : 3;
        uint32_t v = (uint32_t)p[i] << 16 | (n > 1 ? (uint32_t)p[i + 1] << 8 : 0) | (n > 2 ? p[i + 2] : 0);
        char four[4] = {digits[v >> 18], digits[v >> 12 & 63], n > 1 ? digits[v >> 6 & 63] : '=',
                        n > 2 ? digits[v & 63] : '='};
        lfs_buf_add(out, four, sizeof four);
    }
    lfs_buf_puts(out, "\"");
}

static void put_unsigned(struct lfs_buf *out, uint64_t v) {
    lfs_buf_printf(out, v > EXACT_MAX ? "\"%" PRIu64 "\"" : "%" PRIu64, v);
}

static void put_signed(struct lfs_buf *out, int64_t v) {
    bool exact = v <= (int64_t)EXACT_MAX && v >= -(int64_t)EXACT_MAX;
    lfs_buf_printf(out, exact ? "%" PRId64 : "\"%" PRId64 "\"", v);
}

static void put_enum(struct lfs_buf *out, const ProtobufCFieldDescriptor *f, int value) {
    const ProtobufCEnumValue *known = protobuf_c_enum_descriptor_get_value(f->descriptor, value);
    if (known)
        put_string(out, known->name);
    else
        lfs_buf_printf(out, "%d", value);
}

/* --- messages --- */

static errint_t put_message(struct lfs_buf *out, const ProtobufCMessage *m, unsigned depth, struct lfs_error *err);

/* One value at `at`, which is an element of an array or the member itself. */
static errint_t put_value(struct lfs_buf *out, const ProtobufCFieldDescriptor *f, const void *at, unsigned depth,
                          struct lfs_error *err) {
    const ProtobufCBinaryData *bytes = at;
    switch (f->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32: put_signed(out, *(const int32_t *)at); return 0;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64: put_signed(out, *(const int64_t *)at); return 0;
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32: put_unsigned(out, *(const uint32_t *)at); return 0;
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64: put_unsigned(out, *(const uint64_t *)at); return 0;
    case PROTOBUF_C_TYPE_FLOAT: lfs_buf_printf(out, "%.9g", (double)*(const float *)at); return 0;
    case PROTOBUF_C_TYPE_DOUBLE: lfs_buf_printf(out, "%.17g", *(const double *)at); return 0;
    case PROTOBUF_C_TYPE_BOOL: lfs_buf_puts(out, *(const protobuf_c_boolean *)at ? "true" : "false"); return 0;
    case PROTOBUF_C_TYPE_ENUM: put_enum(out, f, *(const int *)at); return 0;
    case PROTOBUF_C_TYPE_STRING: put_string(out, *(char *const *)at ? *(char *const *)at : ""); return 0;
    case PROTOBUF_C_TYPE_BYTES: put_base64(out, bytes->data, bytes->len); return 0;
    case PROTOBUF_C_TYPE_MESSAGE: return put_message(out, *(ProtobufCMessage *const *)at, depth + 1, err);
    }
    return lfs_fail(err, LFS_E_UNSUPPORTED, "%s is of a kind that is not known", f->name);
}

static size_t element_size(const ProtobufCFieldDescriptor *f) {
    switch (f->type) {
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE: return 8;
    case PROTOBUF_C_TYPE_BOOL: return sizeof(protobuf_c_boolean);
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE: return sizeof(void *);
    case PROTOBUF_C_TYPE_BYTES: return sizeof(ProtobufCBinaryData);
    default: return 4;
    }
}

static bool is_there(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f) {
    const char *base = (const char *)m;
    if (f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
        return *(const uint32_t *)(base + f->quantifier_offset) == f->id;
    if (f->label == PROTOBUF_C_LABEL_REPEATED)
        return *(const size_t *)(base + f->quantifier_offset) > 0;
    if (f->type == PROTOBUF_C_TYPE_STRING || f->type == PROTOBUF_C_TYPE_MESSAGE)
        return *(void *const *)(base + f->offset) != NULL;
    return *(const protobuf_c_boolean *)(base + f->quantifier_offset);
}

static errint_t put_member(struct lfs_buf *out, const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f,
                           unsigned depth, struct lfs_error *err) {
    const char *at = (const char *)m + f->offset;
    put_string(out, f->name);
    lfs_buf_puts(out, ":");
    if (f->label != PROTOBUF_C_LABEL_REPEATED)
        return put_value(out, f, at, depth, err);
    size_t n = *(const size_t *)((const char *)m + f->quantifier_offset);
    const char *first = *(char *const *)at;
    lfs_buf_puts(out, "[");
    for (size_t i = 0; i < n; i++) {
        if (i)
            lfs_buf_puts(out, ",");
        LFS_TRY(put_value(out, f, first + i * element_size(f), depth, err));
    }
    lfs_buf_puts(out, "]");
    return 0;
}

static void put_unknown(struct lfs_buf *out, const ProtobufCMessage *m) {
    lfs_buf_puts(out, "\"unknown_fields\":[");
    for (size_t i = 0; i < m->n_unknown_fields; i++) {
        const ProtobufCMessageUnknownField *u = &m->unknown_fields[i];
        lfs_buf_printf(out, "%s{\"number\":%" PRIu32 ",\"wire_type\":%d,\"data\":", i ? "," : "", u->tag,
                       (int)u->wire_type);
        put_base64(out, u->data, u->len);
        lfs_buf_puts(out, "}");
    }
    lfs_buf_puts(out, "]");
}

static errint_t put_message(struct lfs_buf *out, const ProtobufCMessage *m, unsigned depth, struct lfs_error *err) {
    const char *comma = "";
    if (depth > DEPTH_MAX)
        return lfs_fail(err, LFS_E_TOO_BIG, "the manifest's messages are nested too deep");
    lfs_buf_puts(out, "{");
    for (unsigned i = 0; i < m->descriptor->n_fields; i++) {
        if (!is_there(m, &m->descriptor->fields[i]))
            continue;
        lfs_buf_puts(out, comma);
        LFS_TRY(put_member(out, m, &m->descriptor->fields[i], depth, err));
        comma = ",";
    }
    if (m->n_unknown_fields) {
        lfs_buf_puts(out, comma);
        put_unknown(out, m);
    }
    lfs_buf_puts(out, "}");
    return 0;
}

errint_t lfs_report_manifest(struct lfs_report *report, struct lfs_error *err) {
    const struct lfs_version *v = report->tip;
    struct lfs_buf *out = report->out;
    lfs_buf_puts(out, "{\"branch\":");
    put_string(out, report->branch.name);
    lfs_buf_puts(out, ",\"file\":");
    put_string(out, v->file_name);
    lfs_buf_puts(out, ",\n\"manifest\":");
    LFS_TRY(put_message(out, &v->manifest.message->base, 0, err));
    lfs_buf_puts(out, ",\n\"indices\":");
    if (v->manifest.indices)
        LFS_TRY(put_message(out, &v->manifest.indices->base, 0, err));
    else
        lfs_buf_puts(out, "null");
    lfs_buf_puts(out, ",\n\"transaction\":");
    if (v->manifest.transaction)
        LFS_TRY(put_message(out, &v->manifest.transaction->base, 0, err));
    else
        lfs_buf_puts(out, "null");
    lfs_buf_puts(out, "}\n");
    return lfs_buf_check(out, err);
}
