/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fragment's bytes with other base ids. A view's manifests differ from the stored ones in nothing else, in thousands of
 * fragments, and packing those field by field costs ten times what taking a number away from their bytes does.
 */
#include <string.h>

#include "format/manifest.h"
#include "format/wire.h"

enum { FIELD_FILES = 2, FIELD_DELETION = 3, FIELD_BASE_ID = 7, VARINT = 0, LENGTH_DELIMITED = 2 };
enum { VARINT_MAX = 10, FILE_ROOM = 1 + VARINT_MAX + 1 + VARINT_MAX }; /* what a file's record may become longer by */

static uint8_t *put_varint(uint8_t *at, uint64_t value) {
    for (; value >= 0x80; value >>= 7)
        *at++ = (uint8_t)(value | 0x80);
    *at++ = (uint8_t)value;
    return at;
}

static uint8_t *put_bytes(uint8_t *at, const uint8_t *bytes, size_t length) {
    memcpy(at, bytes, length);
    return at + length;
}

/* --- is there no other difference? Every doubt is one. --- */

static bool same_text(const char *a, const char *b) { return a == b || (a && b && strcmp(a, b) == 0); }

static bool same_but_base(const LanceDataFile *a, const LanceDataFile *b) {
    LanceDataFile like = *b;
    if (a == b)
        return true;
    if (!same_text(a->path, b->path))
        return false;
    like.path = a->path;
    like.has_base_id = a->has_base_id;
    like.base_id = a->base_id;
    return memcmp(&like, a, sizeof like) == 0;
}

static bool same_deletion_but_base(const LanceDeletionFile *a, const LanceDeletionFile *b) {
    if (a == b)
        return true;
    if (!a || !b)
        return false;
    LanceDeletionFile like = *b;
    like.has_base_id = a->has_base_id;
    like.base_id = a->base_id;
    return memcmp(&like, a, sizeof like) == 0;
}

static bool same_but_bases(const LanceFragment *a, const LanceFragment *b) {
    LanceFragment like = *b;
    if (a->n_files != b->n_files || !same_deletion_but_base(a->deletion_file, b->deletion_file))
        return false;
    for (size_t i = 0; i < a->n_files; i++)
        if (!same_but_base(a->files[i], b->files[i]))
            return false;
    like.files = a->files;
    like.deletion_file = a->deletion_file;
    return memcmp(&like, a, sizeof like) == 0;
}

/* --- bytes --- */

/* A file's record, tag and length too; NULL when its bytes are no message. base_id is the last field that is known. */
static uint8_t *put_file(uint8_t *at, const struct lfs_wire_field *file, bool has_base, uint32_t base) {
    uint8_t id[1 + VARINT_MAX], *id_end = id;
    const uint8_t *end = file->bytes + file->length;
    struct lfs_wire_field field;
    size_t kept = 0;
    if (has_base) {
        *id_end++ = FIELD_BASE_ID << 3 | VARINT;
        id_end = put_varint(id_end, base);
    }
    for (const uint8_t *p = file->bytes, *next; p < end; p = next) {
        if (!(next = lfs_wire_next(p, end, &field)))
            return NULL;
        kept += field.number == FIELD_BASE_ID ? 0 : (size_t)(next - p);
    }
    *at++ = (uint8_t)(file->number << 3 | LENGTH_DELIMITED);
    at = put_varint(at, kept + (size_t)(id_end - id));
    for (const uint8_t *p = file->bytes, *next; p < end; p = next) {
        next = lfs_wire_next(p, end, &field);
        if (field.number != FIELD_BASE_ID)
            at = put_bytes(at, p, (size_t)(next - p));
    }
    return put_bytes(at, id, (size_t)(id_end - id));
}

/* The bytes of `to`, whose record differs from that of `from` in base ids alone; NULL when they cannot be made so. */
static uint8_t *put_fragment(const struct lfs_fragment_bytes *from, const LanceFragment *to, uint8_t *at) {
    const uint8_t *end = from->data + from->length;
    struct lfs_wire_field field;
    size_t files = 0, deletions = 0;
    for (const uint8_t *p = from->data, *next; at && p < end; p = next) {
        if (!(next = lfs_wire_next(p, end, &field)))
            return NULL;
        if (field.type == LENGTH_DELIMITED && field.number == FIELD_FILES && files < to->n_files) {
            const LanceDataFile *file = to->files[files++];
            at = put_file(at, &field, file->has_base_id, file->base_id);
        } else if (field.type == LENGTH_DELIMITED && field.number == FIELD_DELETION && to->deletion_file &&
                   !deletions++) {
            at = put_file(at, &field, to->deletion_file->has_base_id, to->deletion_file->base_id);
        } else if (field.number == FIELD_FILES || field.number == FIELD_DELETION) {
            return NULL;
        } else {
            at = put_bytes(at, p, (size_t)(next - p));
        }
    }
    return files == to->n_files && deletions == (to->deletion_file != NULL) ? at : NULL;
}

errint_t lfs_manifest_rebase_bytes(const struct lfs_manifest *from, struct lfs_manifest *to, struct lfs_arena *arena,
                                   struct lfs_error *err) {
    const LanceManifest *a = from->message, *b = to->message;
    if (!from->fragment_bytes || a->n_fragments != b->n_fragments)
        return 0;
    struct lfs_fragment_bytes *list = LFS_NEW_ARRAY(arena, struct lfs_fragment_bytes, b->n_fragments + 1);
    if (!list)
        return lfs_fail_nomem(err);
    for (size_t i = 0; i < b->n_fragments; i++) {
        const struct lfs_fragment_bytes *old = &from->fragment_bytes[i];
        list[i] = *old;
        if (a->fragments[i] == b->fragments[i] || old->record != a->fragments[i] ||
            !same_but_bases(a->fragments[i], b->fragments[i]))
            continue;
        uint8_t *room = lfs_alloc(arena, old->length + FILE_ROOM * (b->fragments[i]->n_files + 1));
        if (!room)
            return lfs_fail_nomem(err);
        uint8_t *end = put_fragment(old, b->fragments[i], room);
        if (end)
            list[i] = (struct lfs_fragment_bytes){b->fragments[i], room, (size_t)(end - room)};
    }
    to->fragment_bytes = list;
    return 0;
}
