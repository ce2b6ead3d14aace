/* SPDX-License-Identifier: Apache-2.0 */
#include "format/manifest.h"

#include <string.h>

#include "format/fragment.h"
#include "format/wire.h"
#include "util/cleanup.h"
#include "util/limits.h"

enum { FIELD_FRAGMENTS = 2, FIELD_BASE_PATHS = 18, LENGTH_DELIMITED = 2 }; /* of a manifest */
enum { FIELD_ID = 1, FIELD_FILES = 2, FIELD_PATH = 1 };                     /* of a fragment; of a file */
enum { VARINT_MAX = 10 };
enum { SAMPLE = 64, LATER_MORE = 8, REST_SIZE = 4096 }; /* fragments; bytes of later ones' larger numbers; of what follows */

/* lance-format section 3: i64 position of the message | i16 major 0 | i16 minor 2 | "LANC" */
enum { FOOTER_SIZE = 16, LENGTH_SIZE = 4, FOOTER_MINOR = 2 };
static const uint8_t magic[4] = {'L', 'A', 'N', 'C'};

static uint32_t get_u32(const uint8_t *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint64_t get_u64(const uint8_t *p) { return get_u32(p) | (uint64_t)get_u32(p + 4) << 32; }

struct file {
    const uint8_t *bytes;
    size_t length;
    const char *what;
    struct lfs_arena *arena;
    struct lfs_error *err;
};

/* A section: u32 length and that many bytes, all before the footer. */
static errint_t unpack_section(const struct file *f, const char *name, uint64_t position,
                               const ProtobufCMessageDescriptor *descriptor, void *out) {
    size_t end = f->length - FOOTER_SIZE;
    if (position > end || end - position < LENGTH_SIZE)
        return lfs_fail(f->err, LFS_E_CORRUPT, "%s: its %s would begin behind its end", f->what, name);
    uint32_t length = get_u32(f->bytes + position);
    if (length > end - position - LENGTH_SIZE)
        return lfs_fail(f->err, LFS_E_CORRUPT, "%s: its %s is cut short", f->what, name);
    return lfs_wire_unpack(descriptor, f->bytes + position + LENGTH_SIZE, length, f->arena, f->what, out, f->err);
}

/* --- the message: fragments one by one, the rest as a message of its own --- */

static bool is_fragment(const struct lfs_wire_field *field) {
    return field->number == FIELD_FRAGMENTS && field->type == LENGTH_DELIMITED;
}

/* Counts the fragments; what is bounded is so before anything is unpacked. */
static errint_t count_parts(const struct file *f, const uint8_t *at, const uint8_t *end, size_t *n_fragments) {
    struct lfs_wire_field field;
    size_t n = 0, n_bases = 0;
    for (const uint8_t *p = at; p < end; n += is_fragment(&field), n_bases += field.number == FIELD_BASE_PATHS)
        if (!(p = lfs_wire_next(p, end, &field)))
            return lfs_fail(f->err, LFS_E_CORRUPT, "%s is not a valid Manifest message", f->what);
    if (n > LFS_FRAGMENTS_MAX)
        return lfs_fail(f->err, LFS_E_TOO_BIG, "%s has %zu fragments", f->what, n);
    if (n_bases > LFS_BASE_PATHS_MAX)
        return lfs_fail(f->err, LFS_E_TOO_BIG, "%s has %zu base paths", f->what, n_bases);
    *n_fragments = n;
    return 0;
}

/* Both lists are in the order of ids, so one walk along `like` finds what is in both. */
struct walk {
    const struct file *file;
    struct lfs_manifest_sharing *sharing;
    const struct lfs_manifest *like;
    size_t n_like, at;
    struct lfs_fragment_reader reader;
    uint64_t elements;
    LanceFragment **records; /* out: all of them */
    struct lfs_fragment_bytes *bytes; /* out: NULL as long as all are plain */
    size_t count, capacity;
};

static bool has_bytes(const struct lfs_manifest *m, size_t i, const struct lfs_wire_field *field) {
    const struct lfs_fragment_bytes *known = m->fragment_bytes ? &m->fragment_bytes[i] : NULL;
    if (known && known->data)
        return known->length == field->length && memcmp(known->data, field->bytes, field->length) == 0;
    return lfs_fragment_equals(m->message->fragments[i], field->bytes, field->length);
}

/* The bytes of the newest record, when they are to be kept; `bytes` lasts as long as the record. */
static errint_t keep_record(struct walk *walk, LanceFragment *record, const uint8_t *bytes, size_t length) {
    if (bytes && !walk->bytes) {
        walk->bytes = LFS_NEW_ARRAY(walk->file->arena, struct lfs_fragment_bytes, walk->capacity + 1);
        if (!walk->bytes)
            return lfs_fail_nomem(walk->file->err);
        for (size_t i = 0; i < walk->count; i++)
            walk->bytes[i].record = walk->records[i];
    }
    if (walk->bytes)
        walk->bytes[walk->count] = (struct lfs_fragment_bytes){record, bytes, length};
    walk->records[walk->count++] = record;
    return 0;
}

/* Takes the record of `like` that the walk has come to, if it has these bytes. */
static bool take_over(struct walk *walk, const struct lfs_wire_field *field, errint_t *result) {
    if (walk->at == walk->n_like || walk->sharing->names_only || !has_bytes(walk->like, walk->at, field))
        return false;
    const struct lfs_fragment_bytes *known = walk->like->fragment_bytes ? &walk->like->fragment_bytes[walk->at] : NULL;
    /* shared between versions: nobody changes it */
    *result = keep_record(walk, walk->like->message->fragments[walk->at++], known ? known->data : NULL,
                          known ? known->length : 0);
    walk->sharing->n_records++;
    return true;
}

static errint_t read_record(struct walk *walk, const struct lfs_wire_field *field) {
    const struct file *f = walk->file;
    LanceFragment *record = lfs_fragment_read(&walk->reader, field->bytes, field->length, walk->sharing->records,
                                              &walk->elements);
    if (record) {
        walk->sharing->n_names += walk->reader.took;
        return keep_record(walk, record, NULL, 0);
    }
    LFS_TRY(lfs_wire_unpack_part(&lance__table__data_fragment__descriptor, field->bytes, field->length,
                                 walk->sharing->records, f->what, &walk->elements, &record, f->err));
    const uint8_t *bytes = lfs_memdup(walk->sharing->records, field->bytes, field->length);
    return bytes ? keep_record(walk, record, bytes, field->length) : lfs_fail_nomem(f->err);
}

/* The id of a fragment's record, 0 where it tells none. */
static uint64_t id_of(const struct lfs_wire_field *record) {
    uint64_t id;
    return lfs_wire_varint(record->bytes, record->bytes + record->length, FIELD_ID, &id) ? id : 0;
}

static errint_t one_fragment(struct walk *walk, const struct lfs_wire_field *field) {
    LanceFragment *const *like = walk->n_like ? walk->like->message->fragments : NULL;
    errint_t result = 0;
    if (take_over(walk, field, &result))
        return result;
    uint64_t id = id_of(field);
    while (walk->at < walk->n_like && like[walk->at]->id < id)
        walk->at++;
    if (take_over(walk, field, &result))
        return result;
    bool same_id = walk->at < walk->n_like && like[walk->at]->id == id;
    walk->reader.like = same_id ? like[walk->at++] : NULL;
    return read_record(walk, field);
}

static errint_t unpack_message(const struct file *f, uint64_t position, struct lfs_manifest_sharing *sharing,
                               struct lfs_manifest *out) {
    const uint8_t *at = f->bytes + position + LENGTH_SIZE, *end = f->bytes + f->length - FOOTER_SIZE;
    LFS_AUTO_BUF rest = {0};
    struct walk walk = {.file = f, .sharing = sharing, .like = sharing->like, .reader.names = sharing->names};
    struct lfs_wire_field field;
    LFS_TRY(count_parts(f, at, end, &walk.capacity));
    walk.n_like = walk.like ? walk.like->message->n_fragments : 0;
    walk.records = LFS_NEW_ARRAY(f->arena, LanceFragment *, walk.capacity + 1);
    if (!walk.records)
        return lfs_fail_nomem(f->err);
    for (const uint8_t *p = at, *next; p < end; p = next) {
        next = lfs_wire_next(p, end, &field);
        if (is_fragment(&field))
            LFS_TRY(one_fragment(&walk, &field));
        else
            lfs_buf_add(&rest, p, (size_t)(next - p));
    }
    LFS_TRY(lfs_buf_check(&rest, f->err));
    LFS_TRY(lfs_wire_unpack_part(&lance__table__manifest__descriptor, rest.data, rest.length, f->arena, f->what,
                                 &walk.elements, &out->message, f->err));
    out->message->fragments = walk.records;
    out->message->n_fragments = walk.count;
    out->fragment_bytes = walk.bytes;
    return 0;
}

static errint_t check_footer(const struct file *f, uint64_t *position) {
    if (f->length < FOOTER_SIZE + LENGTH_SIZE)
        return lfs_fail(f->err, LFS_E_CORRUPT, "%s is too short for a manifest (%zu bytes)", f->what, f->length);
    if (f->length > LFS_MANIFEST_BYTES_MAX)
        return lfs_fail(f->err, LFS_E_TOO_BIG, "%s is too large for a manifest (%zu bytes)", f->what, f->length);
    const uint8_t *footer = f->bytes + f->length - FOOTER_SIZE;
    if (memcmp(footer + 12, magic, sizeof magic))
        return lfs_fail(f->err, LFS_E_CORRUPT, "%s does not end as a manifest does", f->what);
    *position = get_u64(footer);
    size_t end = f->length - FOOTER_SIZE;
    if (*position > end || end - *position < LENGTH_SIZE ||
        get_u32(f->bytes + *position) != end - *position - LENGTH_SIZE)
        return lfs_fail(f->err, LFS_E_CORRUPT, "%s: the manifest's length does not reach its footer", f->what);
    return 0;
}

errint_t lfs_manifest_decode_sharing(const uint8_t *bytes, size_t length, struct lfs_manifest_sharing *sharing,
                                     struct lfs_arena *arena, const char *what, struct lfs_manifest *out,
                                     struct lfs_error *err) {
    struct file f = {bytes, length, what, arena, err};
    uint64_t position = 0;
    *out = (struct lfs_manifest){0};
    sharing->n_records = sharing->n_names = 0;
    LFS_TRY(check_footer(&f, &position));
    LFS_TRY(unpack_message(&f, position, sharing, out));
    if (out->message->has_index_section)
        LFS_TRY(unpack_section(&f, "index section", out->message->index_section,
                               &lance__table__index_section__descriptor, &out->indices));
    if (out->message->has_transaction_section)
        LFS_TRY(unpack_section(&f, "transaction", out->message->transaction_section,
                               &lance__table__transaction__descriptor, &out->transaction));
    return 0;
}

errint_t lfs_manifest_decode_like(const uint8_t *bytes, size_t length, const struct lfs_manifest *like,
                                  struct lfs_arena *arena, struct lfs_arena *fragments, const char *what,
                                  struct lfs_manifest *out, size_t *n_shared, struct lfs_error *err) {
    struct lfs_manifest_sharing sharing = {.like = like, .records = fragments, .names = fragments};
    errint_t result = lfs_manifest_decode_sharing(bytes, length, &sharing, arena, what, out, err);
    *n_shared = sharing.n_records + sharing.n_names;
    return result;
}

errint_t lfs_manifest_decode(const uint8_t *bytes, size_t length, struct lfs_arena *arena, const char *what,
                             struct lfs_manifest *out, struct lfs_error *err) {
    size_t ignored;
    return lfs_manifest_decode_like(bytes, length, NULL, arena, arena, what, out, &ignored, err);
}

static bool is_path_of(const char *path, const struct lfs_wire_field *field) {
    return path && strlen(path) == field->length && memcmp(path, field->bytes, field->length) == 0;
}

/* Does a record's first file have the name of the first one of `like`? */
static bool same_first_file(const struct lfs_wire_field *record, const LanceFragment *like) {
    struct lfs_wire_field file, path;
    return like->n_files > 0 && lfs_wire_find(record->bytes, record->bytes + record->length, FIELD_FILES, &file) &&
           lfs_wire_find(file.bytes, file.bytes + file.length, FIELD_PATH, &path) && is_path_of(like->files[0]->path, &path);
}

enum lfs_resemblance lfs_manifest_resembles(const uint8_t *bytes, size_t length, const struct lfs_manifest *like) {
    struct file f = {bytes, length, "", NULL, NULL};
    struct lfs_wire_field first;
    uint64_t position;
    if (!like->message->n_fragments || check_footer(&f, &position) < 0 ||
        !lfs_wire_find(bytes + position + LENGTH_SIZE, bytes + length - FOOTER_SIZE, FIELD_FRAGMENTS, &first))
        return LFS_RESEMBLES_NOT;
    if (has_bytes(like, 0, &first))
        return LFS_RESEMBLES;
    return same_first_file(&first, like->message->fragments[0]) ? LFS_RESEMBLES_BY_NAMES : LFS_RESEMBLES_NOT;
}

errint_t lfs_manifest_keep_bytes(struct lfs_manifest *next, const struct lfs_manifest *from, struct lfs_arena *arena,
                                 struct lfs_error *err) {
    const LanceManifest *m = next->message;
    next->fragment_bytes = NULL;
    if (!from->fragment_bytes)
        return 0;
    struct lfs_fragment_bytes *list = LFS_NEW_ARRAY(arena, struct lfs_fragment_bytes, m->n_fragments + 1);
    if (!list)
        return lfs_fail_nomem(err);
    for (size_t i = 0, k = 0; i < m->n_fragments; i++) {
        while (k < from->message->n_fragments && from->message->fragments[k]->id < m->fragments[i]->id)
            k++;
        if (k < from->message->n_fragments && from->message->fragments[k] == m->fragments[i])
            list[i] = from->fragment_bytes[k];
    }
    next->fragment_bytes = list;
    return 0;
}

static void pack(const ProtobufCMessage *message, size_t size, struct lfs_buf *out) {
    uint8_t *bytes = lfs_buf_extend(out, size);
    if (bytes)
        protobuf_c_message_pack(message, bytes);
}

static void pack_section(const ProtobufCMessage *message, struct lfs_buf *out) {
    size_t size = protobuf_c_message_get_packed_size(message);
    if (size > UINT32_MAX) {
        out->failed = true;
        return;
    }
    lfs_buf_u32le(out, (uint32_t)size);
    pack(message, size, out);
}

static void put_varint(struct lfs_buf *out, uint64_t value) {
    uint8_t bytes[VARINT_MAX];
    size_t n = 0;
    for (; value >= 0x80; value >>= 7)
        bytes[n++] = (uint8_t)(value | 0x80);
    bytes[n++] = (uint8_t)value;
    lfs_buf_add(out, bytes, n);
}

/* The bytes of fragment i that were kept, or NULL: it is written anew. */
static const struct lfs_fragment_bytes *kept_bytes(const struct lfs_manifest *manifest, size_t i) {
    const struct lfs_fragment_bytes *known = manifest->fragment_bytes ? &manifest->fragment_bytes[i] : NULL;
    return known && known->data && known->record == manifest->message->fragments[i] ? known : NULL;
}

static void pack_fragment(const struct lfs_manifest *manifest, size_t i, struct lfs_buf *out) {
    const LanceFragment *f = manifest->message->fragments[i];
    const struct lfs_fragment_bytes *kept = kept_bytes(manifest, i);
    lfs_buf_add(out, (uint8_t[]){FIELD_FRAGMENTS << 3 | LENGTH_DELIMITED}, 1);
    if (!kept && lfs_fragment_is_plain(f)) {
        if (lfs_buf_reserve(out, lfs_fragment_room(f)))
            out->length = (size_t)(lfs_fragment_write(f, out->data + out->length) - out->data);
        else
            out->failed = true;
        return;
    }
    size_t size = kept ? kept->length : protobuf_c_message_get_packed_size(&f->base);
    put_varint(out, size);
    if (kept)
        lfs_buf_add(out, kept->data, size);
    else
        pack(&f->base, size, out);
}

/* The size of all is guessed by the first ones', so that memory is asked for once, or nearly. */
static void pack_fragments(const struct lfs_manifest *manifest, struct lfs_buf *out) {
    size_t start = out->length, n = manifest->message->n_fragments;
    for (size_t i = 0; i < n; i++) {
        if (i == SAMPLE)
            lfs_buf_reserve(out, ((out->length - start) / SAMPLE + LATER_MORE) * (n - SAMPLE) + REST_SIZE);
        pack_fragment(manifest, i, out);
    }
}

/* Section and order as protobuf-c packs the whole message: fields, fragments, all that has a higher number. */
static void pack_message(const struct lfs_manifest *manifest, struct lfs_buf *out) {
    LanceManifest head = LANCE__TABLE__MANIFEST__INIT, tail = *manifest->message;
    size_t start = out->length;
    head.fields = tail.fields;
    head.n_fields = tail.n_fields;
    tail.n_fields = tail.n_fragments = 0;
    lfs_buf_u32le(out, 0); /* the length is set when it is known */
    pack(&head.base, protobuf_c_message_get_packed_size(&head.base), out);
    pack_fragments(manifest, out);
    pack(&tail.base, protobuf_c_message_get_packed_size(&tail.base), out);
    size_t length = out->length - start - LENGTH_SIZE;
    if (out->failed || length > UINT32_MAX) {
        out->failed = true;
        return;
    }
    for (int i = 0; i < LENGTH_SIZE; i++)
        out->data[start + i] = (uint8_t)(length >> (8 * i));
}

/* `position`: where the message begins, in the file. */
static void pack_footer(uint64_t position, struct lfs_buf *out) {
    lfs_buf_u64le(out, position);
    lfs_buf_u32le(out, (uint32_t)FOOTER_MINOR << 16); /* major 0 in the low half */
    lfs_buf_add(out, magic, sizeof magic);
}

errint_t lfs_manifest_replace(const uint8_t *bytes, size_t length, const LanceManifest *message, struct lfs_buf *out,
                              struct lfs_error *err) {
    struct file f = {.bytes = bytes, .length = length, .what = "the manifest", .err = err};
    uint64_t position;
    LFS_TRY(check_footer(&f, &position));
    lfs_buf_add(out, bytes, position);
    pack_section(&message->base, out);
    pack_footer(position, out);
    return lfs_buf_check(out, err);
}

errint_t lfs_manifest_encode(const struct lfs_manifest *manifest, struct lfs_buf *out, struct lfs_error *err) {
    LanceManifest *m = manifest->message;
    size_t start = out->length;
    m->has_index_section = manifest->indices != NULL;
    m->has_transaction_section = manifest->transaction != NULL;
    if (manifest->indices) {
        m->index_section = out->length - start;
        pack_section(&manifest->indices->base, out);
    }
    if (manifest->transaction) {
        m->transaction_section = out->length - start;
        pack_section(&manifest->transaction->base, out);
    }
    uint64_t position = out->length - start;
    pack_message(manifest, out);
    pack_footer(position, out);
    return lfs_buf_check(out, err);
}

errint_t lfs_manifest_check_features(const LanceManifest *m, bool for_write, const char *what, struct lfs_error *err) {
    uint64_t unknown = m->reader_feature_flags & ~(uint64_t)LFS_FLAGS_KNOWN;
    if (for_write)
        unknown |= m->writer_feature_flags & ~(uint64_t)LFS_FLAGS_KNOWN;
    if (unknown)
        return lfs_fail(err, LFS_E_UNSUPPORTED,
                        "%s uses format features that this program does not know (flags 0x%llx): use a newer lancefs",
                        what, (unsigned long long)unknown);
    return 0;
}

static bool any_deletion_file(const LanceManifest *m) {
    for (size_t i = 0; i < m->n_fragments; i++)
        if (m->fragments[i]->deletion_file)
            return true;
    return false;
}

static bool any_row_ids(const LanceManifest *m) {
    for (size_t i = 0; i < m->n_fragments; i++)
        if (m->fragments[i]->row_id_sequence_case)
            return true;
    return false;
}

void lfs_manifest_set_features(LanceManifest *m) {
    const uint64_t kept = LFS_FLAG_STABLE_ROW_IDS | LFS_FLAG_V2_FORMAT;
    uint64_t reader = m->reader_feature_flags & kept;
    uint64_t writer = m->writer_feature_flags & (kept | LFS_FLAG_NO_TRANSACTION_FILES);
    uint64_t both = (any_deletion_file(m) ? LFS_FLAG_DELETION_FILES : 0) |
                    (any_row_ids(m) ? LFS_FLAG_STABLE_ROW_IDS : 0) | (m->n_base_paths ? LFS_FLAG_BASE_PATHS : 0);
    reader |= both;
    writer |= both | (m->n_config ? LFS_FLAG_CONFIG : 0);
    m->has_reader_feature_flags = reader != 0 || m->has_reader_feature_flags;
    m->has_writer_feature_flags = writer != 0 || m->has_writer_feature_flags;
    m->reader_feature_flags = reader;
    m->writer_feature_flags = writer;
}

bool lfs_manifest_has_stable_row_ids(const LanceManifest *m) {
    return (m->reader_feature_flags | m->writer_feature_flags) & LFS_FLAG_STABLE_ROW_IDS;
}

const char *lfs_entries_get(LanceStringEntry *const *entries, size_t count, const char *key) {
    const char *value = NULL;
    for (size_t i = 0; i < count; i++) /* a key that stands twice: the last one wins, as in protobuf maps */
        if (strcmp(entries[i]->key ? entries[i]->key : "", key) == 0)
            value = entries[i]->value ? entries[i]->value : "";
    return value;
}

const char *lfs_transaction_property(const LanceTransaction *t, const char *key) {
    return t ? lfs_entries_get(t->transaction_properties, t->n_transaction_properties, key) : NULL;
}

LanceIndex *lfs_index_find(const LanceIndexSection *section, const LanceIndex *like) {
    for (size_t i = 0; section && i < section->n_indices; i++) {
        LanceIndex *x = section->indices[i];
        if (x->uuid && like->uuid && x->uuid->uuid.len == like->uuid->uuid.len &&
            memcmp(x->uuid->uuid.data, like->uuid->uuid.data, x->uuid->uuid.len) == 0)
            return x;
    }
    return NULL;
}

const LanceBasePath *lfs_manifest_base(const LanceManifest *m, uint32_t id) {
    for (size_t i = m->n_base_paths; i-- > 0;)
        if (m->base_paths[i]->id == id)
            return m->base_paths[i];
    return NULL;
}

bool lfs_manifest_same_base(const LanceManifest *a, const LanceManifest *b, uint32_t id) {
    const LanceBasePath *x = lfs_manifest_base(a, id), *y = lfs_manifest_base(b, id);
    return x && y && x->path && y->path && strcmp(x->path, y->path) == 0 && x->is_dataset_root == y->is_dataset_root;
}
