/* SPDX-License-Identifier: Apache-2.0 */
#include "format/manifest.h"

#include <string.h>

#include "format/wire.h"
#include "util/cleanup.h"
#include "util/limits.h"

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

static errint_t check_bounds(const struct file *f, const LanceManifest *m) {
    if (m->n_fragments > LFS_FRAGMENTS_MAX)
        return lfs_fail(f->err, LFS_E_TOO_BIG, "%s has %zu fragments", f->what, m->n_fragments);
    if (m->n_base_paths > LFS_BASE_PATHS_MAX)
        return lfs_fail(f->err, LFS_E_TOO_BIG, "%s has %zu base paths", f->what, m->n_base_paths);
    return 0;
}

errint_t lfs_manifest_decode(const uint8_t *bytes, size_t length, struct lfs_arena *arena, const char *what,
                             struct lfs_manifest *out, struct lfs_error *err) {
    struct file f = {bytes, length, what, arena, err};
    uint64_t position = 0;
    *out = (struct lfs_manifest){0};
    LFS_TRY(check_footer(&f, &position));
    LFS_TRY(unpack_section(&f, "manifest", position, &lance__table__manifest__descriptor, &out->message));
    LFS_TRY(check_bounds(&f, out->message));
    if (out->message->has_index_section)
        LFS_TRY(unpack_section(&f, "index section", out->message->index_section,
                               &lance__table__index_section__descriptor, &out->indices));
    if (out->message->has_transaction_section)
        LFS_TRY(unpack_section(&f, "transaction", out->message->transaction_section,
                               &lance__table__transaction__descriptor, &out->transaction));
    return 0;
}

static void pack_section(const ProtobufCMessage *message, struct lfs_buf *out) {
    size_t size = protobuf_c_message_get_packed_size(message);
    if (size > UINT32_MAX) {
        out->failed = true;
        return;
    }
    lfs_buf_u32le(out, (uint32_t)size);
    uint8_t *bytes = lfs_buf_extend(out, size);
    if (bytes)
        protobuf_c_message_pack(message, bytes);
}

/* The message and what follows it, for a file that begins at `start` of `out`. */
static void pack_end(const LanceManifest *m, size_t start, struct lfs_buf *out) {
    uint64_t position = out->length - start;
    pack_section(&m->base, out);
    lfs_buf_u64le(out, position);
    lfs_buf_u32le(out, (uint32_t)FOOTER_MINOR << 16); /* major 0 in the low half */
    lfs_buf_add(out, magic, sizeof magic);
}

errint_t lfs_manifest_replace(const uint8_t *bytes, size_t length, const LanceManifest *message, struct lfs_buf *out,
                              struct lfs_error *err) {
    struct file f = {.bytes = bytes, .length = length, .what = "the manifest", .err = err};
    uint64_t position;
    size_t start = out->length;
    LFS_TRY(check_footer(&f, &position));
    lfs_buf_add(out, bytes, position);
    pack_end(message, start, out);
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
    pack_end(m, start, out);
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
