/* SPDX-License-Identifier: Apache-2.0 */
/* What the manifests must say follows from the calls that made them (tests/unit/data/make.mjs). */
#include "common.h"

#include "format/manifest.h"
#include "format/wire.h"
#include "util/cleanup.h"

static const char *const all_files[] = {"create.manifest", "delete.manifest", "append.manifest", "branch.manifest",
                                        "update.manifest", "child.manifest",  "stable.manifest"};

struct loaded {
    struct test_file file;
    struct lfs_arena *arena;
    struct lfs_manifest manifest;
};

static struct loaded load(const char *engine, const char *name) {
    struct loaded l = {.file = test_read_of(engine, name), .arena = lfs_arena_new()};
    struct lfs_error err;
    assert_ok(lfs_manifest_decode(l.file.bytes, l.file.length, l.arena, l.file.name, &l.manifest, &err), err);
    return l;
}

static void unload(struct loaded *l) {
    test_file_free(&l->file);
    lfs_arena_free(l->arena);
}

static void appended(const char *engine) {
    struct loaded l = load(engine, "append.manifest");
    const LanceManifest *m = l.manifest.message;
    static const uint64_t rows[] = {10, 10, 5};
    assert_int_equal(m->version, 5);
    assert_int_equal(m->n_fields, 2);
    assert_string_equal(m->fields[0]->name, "id");
    assert_string_equal(m->fields[1]->name, "v");
    assert_int_equal(m->n_fragments, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(m->fragments[i]->id, i);
        assert_int_equal(m->fragments[i]->physical_rows, rows[i]);
        assert_int_equal(m->fragments[i]->n_files, 1);
        assert_false(m->fragments[i]->files[0]->has_base_id);
        assert_int_equal(m->fragments[i]->files[0]->n_fields, 2);
        if (i == 2)
            assert_null(m->fragments[i]->deletion_file);
        else
            assert_int_equal(m->fragments[i]->deletion_file->num_deleted_rows, 1);
    }
    assert_int_equal(m->max_fragment_id, 2);
    assert_int_equal(m->reader_feature_flags, 1);
    assert_int_equal(m->writer_feature_flags, 1);
    assert_null(m->branch);
    assert_int_equal(m->n_base_paths, 0);
    assert_string_equal(m->data_format->version, strcmp(engine, "lance10") == 0 ? "2.1" : "2.2");
    assert_non_null(l.manifest.indices);
    assert_int_equal(l.manifest.indices->n_indices, 1);
    assert_string_equal(l.manifest.indices->indices[0]->name, "id_idx");
    assert_int_equal(l.manifest.transaction->operation_case, LANCE__TABLE__TRANSACTION__OPERATION_APPEND);
    assert_int_equal(l.manifest.transaction->read_version, 4);
    assert_int_equal(l.manifest.transaction->append->n_fragments, 1);
    assert_false(lfs_manifest_has_stable_row_ids(m));
    unload(&l);
}

/* Another branch's name in the message: the sections before it stay, byte for byte and where they are. */
static void another_message_in_its_place(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(test_engines); i++) {
        struct loaded l = load(test_engines[i], "child.manifest");
        LFS_AUTO_BUF buf = {0};
        LFS_AUTO_ARENA *arena = lfs_arena_new();
        struct lfs_error err;
        struct lfs_manifest again;
        size_t old_message = protobuf_c_message_get_packed_size(&l.manifest.message->base);
        size_t before = l.file.length - 16 - 4 - old_message; /* footer, length */
        l.manifest.message->branch = lfs_strdup(l.arena, "quite another name");
        assert_ok(lfs_manifest_replace(l.file.bytes, l.file.length, l.manifest.message, &buf, &err), err);
        assert_memory_equal(buf.data, l.file.bytes, before);
        assert_ok(lfs_manifest_decode(buf.data, buf.length, arena, "again", &again, &err), err);
        assert_string_equal(again.message->branch, "quite another name");
        assert_int_equal(again.message->version, l.manifest.message->version);
        assert_string_equal(again.transaction->uuid, l.manifest.transaction->uuid);
        assert_int_equal(again.indices->n_indices, l.manifest.indices->n_indices);
        unload(&l);
    }
}

static void branched(const char *engine) {
    struct loaded b = load(engine, "branch.manifest"), u = load(engine, "update.manifest"),
                  c = load(engine, "child.manifest");
    const LanceManifest *m = b.manifest.message;
    assert_int_equal(m->version, 5); /* the parent's number */
    assert_string_equal(m->branch, "feature");
    assert_int_equal(m->n_base_paths, 1);
    assert_string_equal(lfs_manifest_base(m, 0)->path, "./db/t.lance");
    assert_true(lfs_manifest_base(m, 0)->is_dataset_root);
    assert_null(lfs_manifest_base(m, 1));
    assert_true(m->fragments[0]->files[0]->has_base_id);
    assert_int_equal(m->reader_feature_flags, 17);
    const LanceTransaction *t = b.manifest.transaction;
    assert_int_equal(t->operation_case, LANCE__TABLE__TRANSACTION__OPERATION_CLONE);
    assert_int_equal(t->clone->ref_version, 5);
    assert_string_equal(t->clone->branch_name, "feature");

    t = u.manifest.transaction;
    assert_int_equal(u.manifest.message->version, 6);
    assert_int_equal(t->operation_case, LANCE__TABLE__TRANSACTION__OPERATION_UPDATE);
    assert_int_equal(t->update->n_updated_fragments, 1);
    assert_int_equal(t->update->n_new_fragments, 1);
    assert_int_equal(u.manifest.message->fragments[0]->deletion_file->num_deleted_rows, 2); /* 3 and the old 5 */

    m = c.manifest.message;
    assert_int_equal(m->version, 8);
    assert_string_equal(m->branch, "feature/child-é");
    assert_int_equal(m->n_base_paths, 2);
    assert_string_equal(lfs_manifest_base(m, 1)->path, "./db/t.lance/tree/feature");
    assert_string_equal(lfs_manifest_base(m, 1)->name, "feature");
    assert_int_equal(m->fragments[0]->deletion_file->num_deleted_rows, 3); /* 3, the old 5, 6 */
    assert_int_equal(m->n_fragments, 5);
    unload(&b);
    unload(&u);
    unload(&c);
}

static void stock_manifests(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(test_engines); i++) {
        appended(test_engines[i]);
        branched(test_engines[i]);
        struct loaded l = load(test_engines[i], "create.manifest");
        assert_int_equal(l.manifest.message->version, 1);
        assert_null(l.manifest.indices);
        assert_false(l.manifest.message->has_index_section);
        assert_int_equal(l.manifest.transaction->operation_case, LANCE__TABLE__TRANSACTION__OPERATION_OVERWRITE);
        unload(&l);
        l = load(test_engines[i], "delete.manifest");
        assert_int_equal(l.manifest.transaction->operation_case, LANCE__TABLE__TRANSACTION__OPERATION_DELETE);
        assert_int_equal(l.manifest.transaction->delete_->n_updated_fragments, 2);
        unload(&l);
        l = load(test_engines[i], "stable.manifest");
        assert_true(lfs_manifest_has_stable_row_ids(l.manifest.message));
        assert_int_equal(l.manifest.message->next_row_id, 13);
        assert_int_equal(l.manifest.message->fragments[1]->row_id_sequence_case,
                         LANCE__TABLE__DATA_FRAGMENT__ROW_ID_SEQUENCE_INLINE_ROW_IDS);
        unload(&l);
    }
}

/*
 * The same message with the fields of every level in ascending order of their numbers (fields of one number keep their
 * order): what protobuf calls equal, whoever wrote it in which order.
 */
struct part {
    uint64_t number;
    const uint8_t *key, *payload, *end; /* payload: of a length-delimited field, else NULL */
};

static const uint8_t *varint(const uint8_t *p, uint64_t *out) {
    *out = 0;
    for (unsigned shift = 0;; shift += 7) {
        *out |= (uint64_t)(*p & 0x7f) << shift;
        if (!(*p++ & 0x80))
            return p;
    }
}

static struct part next_part(const uint8_t *p) {
    struct part part = {.key = p};
    uint64_t key, length;
    p = varint(p, &key);
    part.number = key >> 3;
    switch (key & 7) {
    case 0: part.end = varint(p, &length); break;
    case 1: part.end = p + 8; break;
    case 5: part.end = p + 4; break;
    default: part.payload = varint(p, &length); part.end = part.payload + length;
    }
    return part;
}

static void canonical(const ProtobufCMessageDescriptor *d, const uint8_t *bytes, size_t length, struct lfs_buf *out) {
    static const unsigned number_max = 200; /* over every field number in the files */
    for (unsigned number = 1; number <= number_max; number++) {
        const ProtobufCFieldDescriptor *field = protobuf_c_message_descriptor_get_field(d, number);
        for (const uint8_t *p = bytes; p < bytes + length;) {
            struct part part = next_part(p);
            p = part.end;
            assert_true(part.number <= number_max);
            if (part.number != number)
                continue;
            if (part.payload && field && field->type == PROTOBUF_C_TYPE_MESSAGE) {
                lfs_buf_add(out, part.key, (size_t)(part.payload - part.key));
                canonical(field->descriptor, part.payload, (size_t)(part.end - part.payload), out);
            } else {
                lfs_buf_add(out, part.key, (size_t)(part.end - part.key));
            }
        }
    }
}

static uint32_t u32(const uint8_t *p) {
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static void assert_same_section(const uint8_t *stock, const uint8_t *ours, const ProtobufCMessageDescriptor *d) {
    LFS_AUTO_BUF a = {0};
    LFS_AUTO_BUF b = {0};
    uint32_t length = u32(stock);
    assert_int_equal(u32(ours), length);
    canonical(d, stock + 4, length, &a);
    canonical(d, ours + 4, length, &b);
    assert_int_equal(a.length, length);
    assert_int_equal(b.length, length);
    assert_memory_equal(a.data, b.data, length);
    if (memcmp(a.data, stock + 4, length) == 0) /* stock wrote it in ascending order: byte for byte, then */
        assert_memory_equal(ours + 4, stock + 4, length);
}

/* Decoded and encoded with nothing changed: the same sections at the same places, no field lost, none added. */
static void nothing_is_lost_on_the_way(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(test_engines) * COUNT(all_files); i++) {
        struct loaded l = load(test_engines[i % COUNT(test_engines)], all_files[i / COUNT(test_engines)]);
        LanceManifest *m = l.manifest.message;
        struct lfs_error err;
        LFS_AUTO_BUF buf = {0};
        const uint64_t index_section = m->index_section, transaction_section = m->transaction_section;
        const bool has_index = m->has_index_section;
        assert_true(m->has_transaction_section);
        assert_ok(lfs_manifest_encode(&l.manifest, &buf, &err), err);
        assert_int_equal(buf.length, l.file.length);
        assert_int_equal(m->has_index_section, has_index);
        assert_int_equal(m->index_section, index_section);
        assert_true(m->has_transaction_section);
        assert_int_equal(m->transaction_section, transaction_section);
        if (has_index)
            assert_same_section(l.file.bytes + index_section, buf.data + index_section,
                                &lance__table__index_section__descriptor);
        assert_same_section(l.file.bytes + transaction_section, buf.data + transaction_section,
                            &lance__table__transaction__descriptor);
        const uint8_t *footer = l.file.bytes + l.file.length - 16;
        assert_memory_equal(buf.data + buf.length - 16, footer, 16);
        assert_same_section(l.file.bytes + u32(footer), buf.data + u32(footer), &lance__table__manifest__descriptor);
        unload(&l);
    }
}

/* A file behind other bytes in one buffer: positions count from its own beginning. */
static void encode_appends(void **state) {
    (void)state;
    struct loaded l = load("lance12", "append.manifest");
    struct lfs_error err;
    struct lfs_manifest again;
    LFS_AUTO_BUF buf = {0};
    lfs_buf_puts(&buf, "before");
    assert_ok(lfs_manifest_encode(&l.manifest, &buf, &err), err);
    assert_ok(lfs_manifest_decode(buf.data + 6, buf.length - 6, l.arena, "x", &again, &err), err);
    assert_int_equal(again.message->version, 5);
    assert_int_equal(again.indices->n_indices, 1);
    unload(&l);
}

static void sections_come_and_go(void **state) {
    (void)state;
    struct loaded l = load("lance12", "append.manifest");
    struct lfs_error err;
    struct lfs_manifest again;
    for (unsigned mask = 0; mask < 4; mask++) {
        struct lfs_manifest some = l.manifest;
        LFS_AUTO_BUF buf = {0};
        if (!(mask & 1))
            some.indices = NULL;
        if (!(mask & 2))
            some.transaction = NULL;
        assert_ok(lfs_manifest_encode(&some, &buf, &err), err);
        assert_ok(lfs_manifest_decode(buf.data, buf.length, l.arena, "x", &again, &err), err);
        assert_int_equal(again.message->has_index_section, mask & 1);
        assert_int_equal(again.indices != NULL, mask & 1);
        assert_int_equal(again.message->has_transaction_section, mask >> 1);
        assert_int_equal(again.transaction != NULL, mask >> 1);
    }
    unload(&l);
}

static void unknown_fields_come_back(void **state) {
    (void)state;
    struct loaded l = load("lance10", "create.manifest");
    struct lfs_error err;
    struct lfs_manifest decoded, again;
    LFS_AUTO_BUF file = {0};
    LFS_AUTO_BUF buf = {0};
    /* the transaction as it is, then the message with field 150 = "later" behind it */
    size_t at = u32(l.file.bytes + l.file.length - 16), length = u32(l.file.bytes + at);
    lfs_buf_add(&file, l.file.bytes, at);
    lfs_buf_u32le(&file, (uint32_t)length + 8);
    lfs_buf_add(&file, l.file.bytes + at + 4, length);
    lfs_buf_add(&file, "\xb2\x09\x05later", 8);
    lfs_buf_add(&file, l.file.bytes + l.file.length - 16, 16);
    assert_ok(lfs_manifest_decode(file.data, file.length, l.arena, "x", &decoded, &err), err);
    assert_int_equal(decoded.message->base.n_unknown_fields, 1);
    assert_ok(lfs_manifest_encode(&decoded, &buf, &err), err);
    assert_int_equal(buf.length, file.length);
    assert_ok(lfs_manifest_decode(buf.data, buf.length, l.arena, "x", &again, &err), err);
    assert_int_equal(again.message->base.n_unknown_fields, 1);
    assert_int_equal(again.message->base.unknown_fields[0].tag, 150);
    assert_int_equal(again.message->base.unknown_fields[0].len, 6);
    assert_memory_equal(again.message->base.unknown_fields[0].data, "\5later", 6);
    unload(&l);
}

static void damaged_footers(void **state) {
    (void)state;
    struct loaded l = load("lance12", "append.manifest");
    struct lfs_error err;
    struct lfs_manifest out;
    size_t n = l.file.length;
    uint8_t *footer = l.file.bytes + n - 16;
    assert_fails(lfs_manifest_decode(l.file.bytes, 0, l.arena, "a.manifest", &out, &err), err, LFS_E_CORRUPT,
                 "a.manifest");
    assert_fails(lfs_manifest_decode(l.file.bytes, 19, l.arena, "x", &out, &err), err, LFS_E_CORRUPT, "too short");
    assert_fails(lfs_manifest_decode(l.file.bytes, n - 1, l.arena, "x", &out, &err), err, LFS_E_CORRUPT, "end");
    static const struct {
        size_t at;
        uint8_t value;
    } table[] = {{15, 'X'}, {12, 'l'}, {7, 0x80}, {7, 0x7f}, {3, 1}, {0, 0xff}, {0, 0}};
    for (size_t i = 0; i < COUNT(table); i++) {
        uint8_t old = footer[table[i].at];
        footer[table[i].at] = table[i].value;
        assert_fails(lfs_manifest_decode(l.file.bytes, n, l.arena, "x", &out, &err), err, LFS_E_CORRUPT, "x");
        footer[table[i].at] = old;
    }
    unload(&l);
}

static void sections_outside_the_file(void **state) {
    (void)state;
    static const uint64_t places[] = {UINT64_MAX, UINT64_MAX - 3, 1ull << 63, 1ull << 32, 100000};
    struct lfs_error err;
    struct lfs_manifest out;
    for (size_t i = 0; i < 2 * COUNT(places); i++) {
        struct loaded l = load("lance12", "append.manifest");
        LanceManifest *m = l.manifest.message;
        LFS_AUTO_BUF buf = {0};
        m->index_section = i % 2 ? places[i / 2] : m->index_section;
        m->transaction_section = i % 2 ? m->transaction_section : places[i / 2];
        size_t size = protobuf_c_message_get_packed_size(&m->base);
        lfs_buf_u32le(&buf, (uint32_t)size);
        protobuf_c_message_pack(&m->base, lfs_buf_extend(&buf, size));
        lfs_buf_u64le(&buf, 0);
        lfs_buf_add(&buf, "\0\0\2\0LANC", 8);
        assert_fails(lfs_manifest_decode(buf.data, buf.length, l.arena, "x", &out, &err), err, LFS_E_CORRUPT, "x");
        unload(&l);
    }
}

static void check_manifest(const uint8_t *bytes, size_t length) {
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    LFS_AUTO_BUF buf = {0};
    struct lfs_error err = {0};
    struct lfs_manifest m, again;
    if (lfs_manifest_decode(bytes, length, arena, "damaged", &m, &err)) {
        assert_int_not_equal(err.message[0], 0);
        return;
    }
    assert_non_null(m.message);
    assert_ok(lfs_manifest_encode(&m, &buf, &err), err);
    assert_ok(lfs_manifest_decode(buf.data, buf.length, arena, "again", &again, &err), err);
    lfs_manifest_check_features(m.message, true, "damaged", &err);
    lfs_manifest_set_features(m.message);
}

static void damage_never_crashes(void **state) {
    (void)state;
    static const char *const names[] = {"lance10-child.manifest", "lance12-append.manifest", "lance12-update.manifest",
                                        "lance12-stable.manifest"};
    for (size_t i = 0; i < COUNT(names); i++) {
        struct test_file file = test_read(names[i]);
        test_damage(&file, check_manifest);
        test_file_free(&file);
    }
}

/* lance-format section 4 */
static void unknown_features_are_refused(void **state) {
    (void)state;
    struct lfs_error err;
    for (unsigned bit = 0; bit < 64; bit++) {
        LanceManifest m = LANCE__TABLE__MANIFEST__INIT;
        m.reader_feature_flags = 1ull << bit;
        for (int for_write = 0; for_write < 2; for_write++) {
            if (bit < 6)
                assert_ok(lfs_manifest_check_features(&m, for_write, "x", &err), err);
            else
                assert_fails(lfs_manifest_check_features(&m, for_write, "x", &err), err, LFS_E_UNSUPPORTED, "x");
        }
        m.writer_feature_flags = m.reader_feature_flags;
        m.reader_feature_flags = 0;
        assert_ok(lfs_manifest_check_features(&m, false, "x", &err), err);
        if (bit < 6)
            assert_ok(lfs_manifest_check_features(&m, true, "x", &err), err);
        else
            assert_fails(lfs_manifest_check_features(&m, true, "x", &err), err, LFS_E_UNSUPPORTED, "x");
    }
}

/* Recomputed from the content, the flags of every stock manifest are the flags that stock wrote. */
static void features_are_those_of_stock(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(test_engines) * COUNT(all_files); i++) {
        struct loaded l = load(test_engines[i % COUNT(test_engines)], all_files[i / COUNT(test_engines)]);
        LanceManifest *m = l.manifest.message;
        const uint64_t reader = m->reader_feature_flags, writer = m->writer_feature_flags;
        m->reader_feature_flags = m->writer_feature_flags = 0;
        lfs_manifest_set_features(m);
        assert_int_equal(m->reader_feature_flags, reader);
        assert_int_equal(m->writer_feature_flags, writer);
        unload(&l);
    }
    LanceManifest m = LANCE__TABLE__MANIFEST__INIT;
    LanceStringEntry entry = LANCE__TABLE__STRING_ENTRY__INIT, *entries = &entry;
    m.config = &entries;
    m.n_config = 1;
    lfs_manifest_set_features(&m); /* config: the writer's word alone */
    assert_int_equal(m.reader_feature_flags, 0);
    assert_int_equal(m.writer_feature_flags, 8);
    m.n_config = 0;
    m.reader_feature_flags = 1 | 2 | 16;
    m.writer_feature_flags = 1 | 2 | 8 | 16 | 32;
    lfs_manifest_set_features(&m); /* what has gone goes; stable row ids and no transaction files stay */
    assert_int_equal(m.reader_feature_flags, 2);
    assert_int_equal(m.writer_feature_flags, 2 | 32);
}

static void the_last_base_path_of_an_id_wins(void **state) {
    (void)state;
    LanceBasePath a = LANCE__TABLE__BASE_PATH__INIT, b = a, c = a;
    a.id = c.id = 3;
    b.id = 4;
    LanceBasePath *paths[] = {&a, &b, &c};
    LanceManifest m = LANCE__TABLE__MANIFEST__INIT;
    m.base_paths = paths;
    m.n_base_paths = COUNT(paths);
    assert_ptr_equal(lfs_manifest_base(&m, 3), &c);
    assert_ptr_equal(lfs_manifest_base(&m, 4), &b);
    assert_null(lfs_manifest_base(&m, 0));
}

static void entries_are_found_by_key(void **state) {
    (void)state;
    LanceStringEntry a = LANCE__TABLE__STRING_ENTRY__INIT, b = a;
    a.key = (char[]){"k"};
    a.value = (char[]){"v"};
    LanceStringEntry *const entries[] = {&b, &a}; /* b has neither key nor value */
    assert_string_equal(lfs_entries_get(entries, 2, "k"), "v");
    assert_null(lfs_entries_get(entries, 2, "other"));
    assert_null(lfs_entries_get(NULL, 0, "k"));
}

/* --- fragments as they are stored, and shared between versions --- */

static void stored_fragments_are_as_packed_ones(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(test_engines) * COUNT(all_files); i++) {
        struct loaded l = load(test_engines[i % COUNT(test_engines)], all_files[i / COUNT(test_engines)]);
        struct lfs_error err;
        LFS_AUTO_BUF stored = {0};
        LFS_AUTO_BUF packed = {0};
        assert_null(l.manifest.fragment_bytes); /* what stock writes is plain */
        assert_ok(lfs_manifest_encode(&l.manifest, &stored, &err), err);
        lfs_wire_pack(&l.manifest.message->base, &packed); /* by protobuf-c, as a whole */
        assert_true(stored.length > packed.length + 16);
        assert_memory_equal(stored.data + stored.length - 16 - packed.length, packed.data, packed.length);
        unload(&l);
    }
}

/* The file of a manifest like that of `l`, with these fragments. */
static void encode_with(const struct loaded *l, LanceFragment **fragments, size_t n, struct lfs_buf *out) {
    LanceManifest message = *l->manifest.message;
    struct lfs_manifest m = {.message = &message};
    struct lfs_error err;
    message.fragments = fragments;
    message.n_fragments = n;
    assert_ok(lfs_manifest_encode(&m, out, &err), err);
}

static size_t decode_beside(const struct loaded *l, const struct lfs_buf *file, struct lfs_manifest *out) {
    struct lfs_error err;
    size_t n_shared;
    assert_ok(lfs_manifest_decode_like(file->data, file->length, &l->manifest, l->arena, l->arena, "x", out, &n_shared,
                                       &err),
              err);
    return n_shared;
}

static void equal_fragments_are_shared(void **state) {
    (void)state;
    struct loaded l = load("lance12", "append.manifest");
    LanceFragment **old = l.manifest.message->fragments, changed = *old[1], added = *old[2];
    struct lfs_manifest m;
    changed.physical_rows = 11;
    added.id = 3;
    LanceFragment *lists[][4] = {
        {old[0], old[1], old[2], &added}, {old[1], old[2]}, {old[0], old[2]}, {old[0], &changed, old[2], &added}, {&changed}};
    static const size_t count[] = {4, 2, 2, 4, 1}, shared[] = {3, 2, 2, 3, 1}; /* the name of `changed` is */
    for (size_t i = 0; i < COUNT(lists); i++) {
        LFS_AUTO_BUF file = {0};
        encode_with(&l, lists[i], count[i], &file);
        assert_int_equal(decode_beside(&l, &file, &m), shared[i]);
        assert_int_equal(m.message->n_fragments, count[i]);
        assert_int_equal(lfs_manifest_resembles(file.data, file.length, &l.manifest),
                         lists[i][0] == old[0] ? LFS_RESEMBLES : LFS_RESEMBLES_NOT);
        for (size_t k = 0; k < count[i]; k++) {
            bool is_old = lists[i][k] != &changed && lists[i][k] != &added;
            assert_int_equal(m.message->fragments[k] == lists[i][k], is_old);
            assert_int_equal(m.message->fragments[k]->id, lists[i][k]->id);
            assert_int_equal(m.message->fragments[k]->physical_rows, lists[i][k]->physical_rows);
        }
        assert_null(m.fragment_bytes);
    }
    /* A branch's records: the same files with a base id. */
    LFS_AUTO_BUF branch = {0};
    LanceDataFile first = *old[0]->files[0], *files[] = {&first};
    LanceFragment moved = *old[0];
    first.has_base_id = true;
    first.base_id = 1;
    moved.files = files;
    encode_with(&l, (LanceFragment *[]){&moved, old[1], old[2]}, 3, &branch);
    assert_int_equal(lfs_manifest_resembles(branch.data, branch.length, &l.manifest), LFS_RESEMBLES_BY_NAMES);
    assert_int_equal(decode_beside(&l, &branch, &m), 3);
    assert_ptr_not_equal(m.message->fragments[0], old[0]);
    assert_ptr_equal(m.message->fragments[0]->files[0]->path, old[0]->files[0]->path);
    assert_int_equal(m.message->fragments[0]->files[0]->base_id, 1);
    unload(&l);
}

/* A record that is kept is copied byte by byte: what this program does not know of it stays. */
static void kept_fragments_keep_what_is_unknown(void **state) {
    (void)state;
    struct loaded l = load("lance12", "append.manifest");
    uint8_t text[] = "\006future"; /* length-delimited, field 900 */
    ProtobufCMessageUnknownField unknown = {900, PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED, sizeof text - 1, text};
    LanceFragment **old = l.manifest.message->fragments, strange = *old[1];
    struct lfs_manifest from, again;
    struct lfs_error err;
    LFS_AUTO_BUF file = {0}, next = {0};
    strange.base.n_unknown_fields = 1;
    strange.base.unknown_fields = &unknown;
    encode_with(&l, (LanceFragment *[]){old[0], &strange, old[2]}, 3, &file);
    assert_int_equal(decode_beside(&l, &file, &from), 2);
    assert_null(from.fragment_bytes[0].data);
    assert_non_null(from.fragment_bytes[1].data);
    assert_null(from.fragment_bytes[2].data);

    LanceManifest message = *from.message;
    LanceFragment other = *from.message->fragments[2];
    struct lfs_manifest made = {.message = &message};
    other.physical_rows = 6;
    message.fragments = (LanceFragment *[]){from.message->fragments[1], &other};
    message.n_fragments = 2;
    assert_ok(lfs_manifest_keep_bytes(&made, &from, l.arena, &err), err);
    assert_ptr_equal(made.fragment_bytes[0].data, from.fragment_bytes[1].data);
    assert_null(made.fragment_bytes[1].data);
    assert_ok(lfs_manifest_encode(&made, &next, &err), err);
    assert_ok(lfs_manifest_decode(next.data, next.length, l.arena, "x", &again, &err), err);
    assert_int_equal(again.message->n_fragments, 2);
    assert_null(again.fragment_bytes[1].data);
    assert_int_equal(again.fragment_bytes[0].length, from.fragment_bytes[1].length);
    assert_memory_equal(again.fragment_bytes[0].data, from.fragment_bytes[1].data, from.fragment_bytes[1].length);
    assert_int_equal(again.message->fragments[0]->base.n_unknown_fields, 1);
    assert_int_equal(again.message->fragments[1]->physical_rows, 6);
    unload(&l);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stock_manifests),
        cmocka_unit_test(nothing_is_lost_on_the_way),
        cmocka_unit_test(encode_appends),
        cmocka_unit_test(another_message_in_its_place),
        cmocka_unit_test(sections_come_and_go),
        cmocka_unit_test(unknown_fields_come_back),
        cmocka_unit_test(damaged_footers),
        cmocka_unit_test(sections_outside_the_file),
        cmocka_unit_test(damage_never_crashes),
        cmocka_unit_test(unknown_features_are_refused),
        cmocka_unit_test(features_are_those_of_stock),
        cmocka_unit_test(the_last_base_path_of_an_id_wins),
        cmocka_unit_test(entries_are_found_by_key),
        cmocka_unit_test(stored_fragments_are_as_packed_ones),
        cmocka_unit_test(equal_fragments_are_shared),
        cmocka_unit_test(kept_fragments_keep_what_is_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
