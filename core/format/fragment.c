/* SPDX-License-Identifier: Apache-2.0 */
#include "format/fragment.h"

#include <stdlib.h>
#include <string.h>

#include "util/limits.h"

/* Keys: number << 3 | wire type, all of one byte. */
enum { VARINT = 0, BYTES = 2 };
enum {
    VARINT_MAX = 10,
    FIELDS_MAX = 16
}; /* bytes of a varint; fields of a record beside its files, and of a file, at most */
#define KEY(number, type) ((uint8_t)((number) << 3 | (type)))

enum {
    FRAGMENT_ID = KEY(1, VARINT),
    FRAGMENT_FILES = KEY(2, BYTES),
    FRAGMENT_DELETION = KEY(3, BYTES),
    FRAGMENT_ROWS = KEY(4, VARINT),
    FRAGMENT_ROW_IDS = KEY(5, BYTES),
    FRAGMENT_UPDATED = KEY(7, BYTES),
    FRAGMENT_CREATED = KEY(9, BYTES),
    FILE_PATH = KEY(1, BYTES),
    FILE_FIELDS = KEY(2, BYTES),
    FILE_COLUMNS = KEY(3, BYTES),
    FILE_MAJOR = KEY(4, VARINT),
    FILE_MINOR = KEY(5, VARINT),
    FILE_SIZE = KEY(6, VARINT),
    FILE_BASE = KEY(7, VARINT),
    DELETION_TYPE = KEY(1, VARINT),
    DELETION_VERSION = KEY(2, VARINT),
    DELETION_ID = KEY(3, VARINT),
    DELETION_COUNT = KEY(4, VARINT),
    DELETION_BASE = KEY(7, VARINT),
};

/* The generated cases of the three oneofs, which are numbered alike: their inline bytes, or none. */
#define ROW_IDS_INLINE LANCE__TABLE__DATA_FRAGMENT__ROW_ID_SEQUENCE_INLINE_ROW_IDS
#define UPDATED_INLINE LANCE__TABLE__DATA_FRAGMENT__LAST_UPDATED_AT_VERSION_SEQUENCE_INLINE_LAST_UPDATED_AT_VERSIONS
#define CREATED_INLINE LANCE__TABLE__DATA_FRAGMENT__CREATED_AT_VERSION_SEQUENCE_INLINE_CREATED_AT_VERSIONS

/* --- reading --- */

/* Where a record is being read; `bad` once it has been found not to be plain. */
struct cursor {
    const uint8_t *at, *end;
    bool bad;
};

static bool is_next(struct cursor *c, uint8_t key) {
    if (c->at == c->end || *c->at != key || c->bad)
        return false;
    c->at++;
    return true;
}

static uint64_t read_varint(struct cursor *c) {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && c->at < c->end; shift += 7) {
        uint8_t byte = *c->at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte >= 0x80)
            continue;
        if ((byte == 0 && shift > 0) || (shift == 63 && byte > 1))
            break; /* not the shortest form; more than 64 bits */
        return value;
    }
    c->bad = true;
    return 0;
}

static uint64_t read_bounded(struct cursor *c, uint64_t most) {
    uint64_t value = read_varint(c);
    if (value > most)
        c->bad = true;
    return value;
}

static struct cursor read_bytes(struct cursor *c) {
    uint64_t length = read_varint(c);
    if (c->bad || length > (uint64_t)(c->end - c->at)) {
        c->bad = true;
        return (struct cursor){.at = c->end, .end = c->end, .bad = true};
    }
    struct cursor inner = {c->at, c->at + length, false};
    c->at += length;
    return inner;
}

static void optional_u64(struct cursor *c, uint8_t key, protobuf_c_boolean *has, uint64_t *out) {
    if ((*has = is_next(c, key)))
        *out = read_varint(c);
}

static void optional_u32(struct cursor *c, uint8_t key, protobuf_c_boolean *has, uint32_t *out) {
    if ((*has = is_next(c, key)))
        *out = (uint32_t)read_bounded(c, UINT32_MAX);
}

/* What all the parts of a record are to share and to live in. */
struct reading {
    struct lfs_fragment_reader *reader;
    struct lfs_arena *arena, *names;
    uint64_t elements;
};

/* A packed list; the one before it once more where it has the same bytes. */
static void read_numbers(struct cursor *c, uint8_t key, struct reading *r, struct lfs_fragment_numbers *last,
                         int32_t **out, size_t *n_out) {
    if (!is_next(c, key))
        return;
    struct cursor packed = read_bytes(c);
    size_t length = (size_t)(packed.end - packed.at), count = 0;
    r->elements++;
    if (length == 0) {
        c->bad = true;
        return;
    }
    if (length != last->length || memcmp(packed.at, last->bytes, length)) {
        const uint8_t *bytes = packed.at;
        for (size_t i = 0; i < length; i++)
            count += bytes[i] < 0x80;
        int32_t *values = lfs_alloc(r->names, count * sizeof *values);
        if (!values) {
            c->bad = true;
            return;
        }
        for (size_t i = 0; i < count; i++) {
            uint64_t value = read_varint(&packed);
            values[i] = (int32_t)value;
            c->bad |= value != (uint64_t)(int64_t)values[i];
        }
        c->bad |= packed.bad || packed.at != packed.end;
        if (c->bad)
            return;
        *last = (struct lfs_fragment_numbers){bytes, length, values, count};
    }
    *out = last->values;
    *n_out = last->count;
}

/* The path of the file of the same place in `like`, when it is this one. */
static char *path_of_like(const struct reading *r, size_t i, const struct cursor *path) {
    const LanceFragment *like = r->reader->like;
    size_t length = (size_t)(path->end - path->at);
    if (!like || i >= like->n_files || !like->files[i]->path ||
        strncmp(like->files[i]->path, (const char *)path->at, length) || like->files[i]->path[length])
        return NULL;
    r->reader->took = true;
    return like->files[i]->path;
}

static void read_path(struct cursor *c, struct reading *r, size_t i, char **out) {
    if (!is_next(c, FILE_PATH))
        return;
    struct cursor path = read_bytes(c);
    size_t length = (size_t)(path.end - path.at);
    r->elements++;
    if (memchr(path.at, 0, length)) {
        c->bad = true;
        return;
    }
    *out = path_of_like(r, i, &path);
    if (!*out && !(*out = lfs_strndup(r->names, (const char *)path.at, length)))
        c->bad = true;
}

static bool read_file(struct cursor c, struct reading *r, size_t i, LanceDataFile *out) {
    lance__table__data_file__init(out);
    read_path(&c, r, i, &out->path);
    read_numbers(&c, FILE_FIELDS, r, &r->reader->fields, &out->fields, &out->n_fields);
    read_numbers(&c, FILE_COLUMNS, r, &r->reader->columns, &out->column_indices, &out->n_column_indices);
    optional_u32(&c, FILE_MAJOR, &out->has_file_major_version, &out->file_major_version);
    optional_u32(&c, FILE_MINOR, &out->has_file_minor_version, &out->file_minor_version);
    optional_u64(&c, FILE_SIZE, &out->has_file_size_bytes, &out->file_size_bytes);
    optional_u32(&c, FILE_BASE, &out->has_base_id, &out->base_id);
    return !c.bad && c.at == c.end;
}

static bool read_deletion(struct cursor c, struct reading *r, LanceDeletionFile **out) {
    LanceDeletionFile *d = LFS_NEW(r->arena, LanceDeletionFile);
    if (!d)
        return false;
    lance__table__deletion_file__init(d);
    *out = d;
    if ((d->has_file_type = is_next(&c, DELETION_TYPE)))
        d->file_type = (Lance__Table__DeletionFile__DeletionFileType)read_bounded(&c, INT32_MAX);
    optional_u64(&c, DELETION_VERSION, &d->has_read_version, &d->read_version);
    optional_u64(&c, DELETION_ID, &d->has_id, &d->id);
    optional_u64(&c, DELETION_COUNT, &d->has_num_deleted_rows, &d->num_deleted_rows);
    optional_u32(&c, DELETION_BASE, &d->has_base_id, &d->base_id);
    return !c.bad && c.at == c.end;
}

/* An inline sequence. `like`: the same one there, NULL when it has none. */
static bool read_sequence(struct cursor *c, uint8_t key, struct reading *r, const ProtobufCBinaryData *like,
                          ProtobufCBinaryData *out) {
    if (!is_next(c, key))
        return false;
    struct cursor bytes = read_bytes(c);
    out->len = (size_t)(bytes.end - bytes.at);
    r->elements++;
    if (like && out->len > 0 && like->len == out->len && memcmp(like->data, bytes.at, out->len) == 0) {
        out->data = like->data;
        r->reader->took = true;
    } else if (!(out->data = lfs_memdup(r->names, bytes.at, out->len))) {
        c->bad = true;
    }
    return true;
}

static void read_sequences(struct cursor *c, struct reading *r, LanceFragment *f) {
    const LanceFragment *like = r->reader->like;
    bool ids = like && like->row_id_sequence_case == ROW_IDS_INLINE,
         updated = like && like->last_updated_at_version_sequence_case == UPDATED_INLINE,
         created = like && like->created_at_version_sequence_case == CREATED_INLINE;
    if (read_sequence(c, FRAGMENT_ROW_IDS, r, ids ? &like->inline_row_ids : NULL, &f->inline_row_ids))
        f->row_id_sequence_case = ROW_IDS_INLINE;
    if (read_sequence(c, FRAGMENT_UPDATED, r, updated ? &like->inline_last_updated_at_versions : NULL,
                      &f->inline_last_updated_at_versions))
        f->last_updated_at_version_sequence_case = UPDATED_INLINE;
    if (read_sequence(c, FRAGMENT_CREATED, r, created ? &like->inline_created_at_versions : NULL,
                      &f->inline_created_at_versions))
        f->created_at_version_sequence_case = CREATED_INLINE;
}

static size_t count_files(struct cursor c) {
    size_t n = 0;
    while (is_next(&c, FRAGMENT_FILES)) {
        read_bytes(&c);
        n++;
    }
    return n;
}

/* The record, its list of files and the files, in one piece. */
static LanceFragment *new_record(struct lfs_arena *arena, size_t n_files) {
    LanceFragment *f = lfs_alloc(arena, sizeof *f + n_files * (sizeof(LanceDataFile *) + sizeof(LanceDataFile)));
    if (!f)
        return NULL;
    lance__table__data_fragment__init(f);
    LanceDataFile *files = (LanceDataFile *)(f + 1);
    f->files = n_files ? (LanceDataFile **)(files + n_files) : NULL;
    f->n_files = n_files;
    for (size_t i = 0; i < n_files; i++)
        f->files[i] = &files[i];
    return f;
}

LanceFragment *lfs_fragment_read(struct lfs_fragment_reader *reader, const uint8_t *bytes, size_t length,
                                 struct lfs_arena *arena, uint64_t *elements) {
    struct reading r = {reader, arena, reader->names ? reader->names : arena, *elements};
    struct cursor c = {bytes, bytes + length, false};
    protobuf_c_boolean has_id;
    uint64_t id = 0;
    reader->took = false;
    optional_u64(&c, FRAGMENT_ID, &has_id, &id);
    LanceFragment *f = new_record(arena, count_files(c));
    if (!f)
        return NULL;
    f->has_id = has_id;
    f->id = id;
    for (size_t i = 0; i < f->n_files && is_next(&c, FRAGMENT_FILES); i++)
        if (!read_file(read_bytes(&c), &r, i, f->files[i]))
            return NULL;
    if (is_next(&c, FRAGMENT_DELETION) && !read_deletion(read_bytes(&c), &r, &f->deletion_file))
        return NULL;
    optional_u64(&c, FRAGMENT_ROWS, &f->has_physical_rows, &f->physical_rows);
    read_sequences(&c, &r, f);
    r.elements += f->n_files + (f->deletion_file != NULL);
    if (c.bad || c.at != c.end || r.elements > LFS_WIRE_ELEMENTS_MAX)
        return NULL;
    *elements = r.elements;
    return f;
}

/* --- writing --- */

static bool is_plain_sequence(int is, int is_inline) { return is == 0 || is == is_inline; }

bool lfs_fragment_is_plain(const LanceFragment *f) {
    bool plain = !f->base.n_unknown_fields && !f->n_overlays &&
                 is_plain_sequence(f->row_id_sequence_case, ROW_IDS_INLINE) &&
                 is_plain_sequence(f->last_updated_at_version_sequence_case, UPDATED_INLINE) &&
                 is_plain_sequence(f->created_at_version_sequence_case, CREATED_INLINE);
    if (f->deletion_file)
        plain &= !f->deletion_file->base.n_unknown_fields;
    for (size_t i = 0; plain && i < f->n_files; i++)
        plain = !f->files[i]->base.n_unknown_fields;
    return plain;
}

static uint8_t *put_varint(uint8_t *out, uint64_t value) {
    for (; value >= 0x80; value >>= 7)
        *out++ = (uint8_t)(value | 0x80);
    *out++ = (uint8_t)value;
    return out;
}

static uint8_t *put_field(uint8_t *out, uint8_t key, bool has, uint64_t value) {
    if (!has)
        return out;
    *out++ = key;
    return put_varint(out, value);
}

static uint8_t *put_bytes(uint8_t *out, uint8_t key, const void *bytes, size_t length) {
    *out++ = key;
    out = put_varint(out, length);
    if (length)
        memcpy(out, bytes, length);
    return out + length;
}

/* A payload was written one byte behind `at`, up to `end`: its length goes before it. That takes one byte nearly always;
 * else the payload moves. */
static uint8_t *put_length(uint8_t *at, uint8_t *end) {
    uint8_t bytes[VARINT_MAX];
    size_t length = (size_t)(end - at) - 1, n = (size_t)(put_varint(bytes, length) - bytes);
    if (n > 1)
        memmove(at + n, at + 1, length);
    memcpy(at, bytes, n);
    return at + n + length;
}

/* Negative ones take ten bytes, as in every int32 of protobuf. */
static uint8_t *put_numbers(uint8_t *out, uint8_t key, const int32_t *values, size_t n) {
    if (n == 0)
        return out;
    *out++ = key;
    uint8_t *at = out++;
    for (size_t i = 0; i < n; i++)
        out = put_varint(out, (uint64_t)(int64_t)values[i]);
    return put_length(at, out);
}

static uint8_t *put_file(uint8_t *out, const LanceDataFile *f) {
    *out++ = FRAGMENT_FILES;
    uint8_t *at = out++;
    if (f->path)
        out = put_bytes(out, FILE_PATH, f->path, strlen(f->path));
    out = put_numbers(out, FILE_FIELDS, f->fields, f->n_fields);
    out = put_numbers(out, FILE_COLUMNS, f->column_indices, f->n_column_indices);
    out = put_field(out, FILE_MAJOR, f->has_file_major_version, f->file_major_version);
    out = put_field(out, FILE_MINOR, f->has_file_minor_version, f->file_minor_version);
    out = put_field(out, FILE_SIZE, f->has_file_size_bytes, f->file_size_bytes);
    return put_length(at, put_field(out, FILE_BASE, f->has_base_id, f->base_id));
}

static uint64_t type_of(const LanceDeletionFile *d) { return (uint64_t)(int64_t)(int32_t)d->file_type; }

static uint8_t *put_deletion(uint8_t *out, const LanceDeletionFile *d) {
    *out++ = FRAGMENT_DELETION;
    uint8_t *at = out++;
    out = put_field(out, DELETION_TYPE, d->has_file_type, type_of(d));
    out = put_field(out, DELETION_VERSION, d->has_read_version, d->read_version);
    out = put_field(out, DELETION_ID, d->has_id, d->id);
    out = put_field(out, DELETION_COUNT, d->has_num_deleted_rows, d->num_deleted_rows);
    return put_length(at, put_field(out, DELETION_BASE, d->has_base_id, d->base_id));
}

size_t lfs_fragment_room(const LanceFragment *f) {
    size_t room = FIELDS_MAX * (1 + VARINT_MAX) + f->inline_row_ids.len * (f->row_id_sequence_case != 0) +
                  f->inline_last_updated_at_versions.len * (f->last_updated_at_version_sequence_case != 0) +
                  f->inline_created_at_versions.len * (f->created_at_version_sequence_case != 0);
    for (size_t i = 0; i < f->n_files; i++) {
        const LanceDataFile *file = f->files[i];
        room += FIELDS_MAX * (1 + VARINT_MAX) + (file->path ? strlen(file->path) : 0) +
                VARINT_MAX * (file->n_fields + file->n_column_indices);
    }
    return room;
}

uint8_t *lfs_fragment_write(const LanceFragment *f, uint8_t *out) {
    uint8_t *at = out++;
    out = put_field(out, FRAGMENT_ID, f->has_id, f->id);
    for (size_t i = 0; i < f->n_files; i++)
        out = put_file(out, f->files[i]);
    if (f->deletion_file)
        out = put_deletion(out, f->deletion_file);
    out = put_field(out, FRAGMENT_ROWS, f->has_physical_rows, f->physical_rows);
    if (f->row_id_sequence_case)
        out = put_bytes(out, FRAGMENT_ROW_IDS, f->inline_row_ids.data, f->inline_row_ids.len);
    if (f->last_updated_at_version_sequence_case)
        out = put_bytes(out, FRAGMENT_UPDATED, f->inline_last_updated_at_versions.data,
                        f->inline_last_updated_at_versions.len);
    if (f->created_at_version_sequence_case)
        out = put_bytes(out, FRAGMENT_CREATED, f->inline_created_at_versions.data, f->inline_created_at_versions.len);
    return put_length(at, out);
}

/* --- comparing --- */

enum { WRITTEN_MAX = 1024 }; /* nearly every record is small */

/* `bytes` are those of the record alone; what is written begins with their length. */
static bool is_written(const LanceFragment *f, uint8_t *room, const uint8_t *bytes, size_t length) {
    const uint8_t *end = lfs_fragment_write(f, room);
    struct cursor c = {room, end, false};
    return read_varint(&c) == length && (length == 0 || memcmp(c.at, bytes, length) == 0);
}

bool lfs_fragment_equals(const LanceFragment *f, const uint8_t *bytes, size_t length) {
    uint8_t small[WRITTEN_MAX];
    size_t room = lfs_fragment_room(f);
    if (room <= sizeof small)
        return is_written(f, small, bytes, length);
    uint8_t *large = malloc(room);
    bool equal = large && is_written(f, large, bytes, length); /* where memory is short nothing is shared */
    free(large);
    return equal;
}
