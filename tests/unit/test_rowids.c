/* SPDX-License-Identifier: Apache-2.0 */
/* What the sequences must say follows from the calls that made the tables, and the ids of the rows that are not deleted
 * are those that the engine read back (tests/unit/data/rowids.mjs). */
#include "common.h"

#include "format/manifest.h"
#include "format/rowids.h"
#include "util/cleanup.h"

typedef errint_t decoder(const uint8_t *bytes, size_t length, uint64_t physical_rows, struct lfs_arena *arena,
                         const char *what, uint64_t **out, struct lfs_error *err);
typedef errint_t encoder(const uint64_t *entries, size_t n, struct lfs_buf *out, struct lfs_error *err);
typedef errint_t reader(const LanceFragment *fragment, struct lfs_arena *arena, const char *what, uint64_t **out,
                        struct lfs_error *err);

struct loaded {
    struct test_file file;
    struct lfs_arena *arena;
    struct lfs_manifest manifest;
};

static struct loaded load(const char *engine, const char *name) {
    struct loaded l = {.arena = lfs_arena_new()};
    struct lfs_error err;
    char full[100];
    snprintf(full, sizeof full, "rowids-%s.manifest", name);
    l.file = test_read_of(engine, full);
    assert_ok(lfs_manifest_decode(l.file.bytes, l.file.length, l.arena, l.file.name, &l.manifest, &err), err);
    return l;
}

static void unload(struct loaded *l) {
    test_file_free(&l->file);
    lfs_arena_free(l->arena);
}

static void assert_entries(const uint64_t *entries, const uint64_t *expected, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (entries[i] != expected[i])
            fail_msg("entry %zu is %llu, not %llu", i, (unsigned long long)entries[i], (unsigned long long)expected[i]);
}

static const struct {
    const char *name;
    size_t fragment, rows;
    uint64_t ids[16], created[16], updated[16];
} small[] = {
    /* 1: rows 0..9; 2: 10..14 appended; 3: 2 updated; 4: 1, 2, 4, 11 updated, which leaves fragment 2 without rows;
     * 5: a merge of 12, 3, 0 and two new rows */
    {"mixed", 0, 10, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1}},
    {"mixed", 1, 5, {10, 11, 12, 13, 14}, {2, 2, 2, 2, 2}, {2, 2, 2, 2, 2}},
    {"mixed", 2, 4, {1, 4, 11, 2}, {1, 1, 2, 1}, {4, 4, 4, 4}},
    {"mixed", 3, 5, {12, 3, 0, 15, 16}, {2, 1, 1, 5, 5}, {5, 5, 5, 5, 5}},
    /* 6: 7 and 13 deleted; 8: compacted, every row with the versions that it had */
    {"compacted",
     0,
     15,
     {5, 6, 8, 9, 10, 14, 1, 4, 11, 2, 12, 3, 0, 15, 16},
     {1, 1, 1, 1, 2, 2, 1, 1, 2, 1, 2, 1, 1, 5, 5},
     {1, 1, 1, 1, 2, 2, 4, 4, 4, 4, 5, 5, 5, 5, 5}},
    /* 9: 5 and 50 (row 15) updated; 10: a column added, which updates every row */
    {"columns",
     0,
     15,
     {5, 6, 8, 9, 10, 14, 1, 4, 11, 2, 12, 3, 0, 15, 16},
     {1, 1, 1, 1, 2, 2, 1, 1, 2, 1, 2, 1, 1, 5, 5},
     {10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10}},
    {"columns", 1, 2, {5, 15}, {1, 5}, {10, 10}},
    {"sparse",
     0,
     9,
     {7001, 14001, 21001, 28001, 35001, 42001, 49001, 56001, 63001},
     {1, 1, 1, 1, 1, 1, 1, 1, 1},
     {1, 1, 1, 1, 1, 1, 1, 1, 1}},
};

static void stock_fragments(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(test_engines) * COUNT(small); i++) {
        size_t k = i / COUNT(test_engines);
        struct loaded l = load(test_engines[i % COUNT(test_engines)], small[k].name);
        const LanceFragment *f = l.manifest.message->fragments[small[k].fragment];
        uint64_t *entries;
        struct lfs_error err;
        assert_int_equal(f->physical_rows, small[k].rows);
        assert_ok(lfs_row_ids_of(f, l.arena, l.file.name, &entries, &err), err);
        assert_entries(entries, small[k].ids, small[k].rows);
        assert_ok(lfs_row_created_of(f, l.arena, l.file.name, &entries, &err), err);
        assert_entries(entries, small[k].created, small[k].rows);
        assert_ok(lfs_row_updated_of(f, l.arena, l.file.name, &entries, &err), err);
        assert_entries(entries, small[k].updated, small[k].rows);
        unload(&l);
    }
}

/* 1000 or 70000 rows of version 1 without three, then 3 rows of version 2 */
static void stock_holes(void **state) {
    (void)state;
    static const struct {
        const char *name;
        uint64_t n, holes[3];
    } table[] = {{"holes", 1000, {5, 700, 990}}, {"wide_holes", 70000, {5, 700, 69000}}};
    for (size_t i = 0; i < COUNT(test_engines) * COUNT(table); i++) {
        size_t k = i / COUNT(test_engines), at = 0;
        struct loaded l = load(test_engines[i % COUNT(test_engines)], table[k].name);
        const LanceFragment *f = l.manifest.message->fragments[0];
        uint64_t *ids, *created;
        struct lfs_error err;
        assert_int_equal(f->physical_rows, table[k].n);
        assert_ok(lfs_row_ids_of(f, l.arena, l.file.name, &ids, &err), err);
        assert_ok(lfs_row_created_of(f, l.arena, l.file.name, &created, &err), err);
        for (uint64_t id = 0; id < table[k].n + 3; id++) {
            if (id == table[k].holes[0] || id == table[k].holes[1] || id == table[k].holes[2])
                continue;
            assert_int_equal(ids[at], id);
            assert_int_equal(created[at++], id < table[k].n ? 1 : 2);
        }
        assert_int_equal(at, f->physical_rows);
        unload(&l);
    }
}

/* In an update's transaction the new fragments carry the ids of the moved rows alone, and no versions. */
static void ids_in_a_transaction(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(test_engines); i++) {
        struct loaded l = load(test_engines[i], "mixed");
        const Lance__Table__Transaction *t = l.manifest.transaction;
        assert_int_equal(t->operation_case, LANCE__TABLE__TRANSACTION__OPERATION_UPDATE);
        assert_int_equal(t->update->n_new_fragments, 1);
        const LanceFragment *f = t->update->new_fragments[0];
        static const uint64_t moved[] = {12, 3, 0};
        uint64_t *ids;
        struct lfs_error err;
        assert_ok(lfs_row_ids_decode(f->inline_row_ids.data, f->inline_row_ids.len, 3, l.arena, "x", &ids, &err), err);
        assert_entries(ids, moved, COUNT(moved));
        assert_int_equal(f->physical_rows, 5);
        assert_fails(lfs_row_ids_of(f, l.arena, "x", &ids, &err), err, LFS_E_CORRUPT, "has 3 entries for 5 rows");
        assert_null(ids);
        assert_int_equal(f->created_at_version_sequence_case, 0);
        unload(&l);
    }
}

static size_t encode_again(const ProtobufCBinaryData *bytes, size_t rows, struct lfs_arena *arena, decoder *decode,
                           encoder *encode) {
    LFS_AUTO_BUF buf = {0};
    struct lfs_error err;
    uint64_t *entries, *again;
    assert_ok(decode(bytes->data, bytes->len, rows, arena, "x", &entries, &err), err);
    assert_ok(encode(entries, rows, &buf, &err), err);
    uint8_t *copy = test_copy(buf.data, buf.length);
    assert_ok(decode(copy, buf.length, rows, arena, "again", &again, &err), err);
    assert_entries(again, entries, rows);
    size_t same = buf.length == bytes->len && memcmp(copy, bytes->data, buf.length) == 0;
    free(copy);
    return same;
}

/* Where the engines write one segment, it is the one that is written here; after a compaction theirs are those of the
 * old fragments. */
static void encoded_as_stock_does(void **state) {
    (void)state;
    static const struct {
        const char *name;
        size_t same;
    } table[] = {{"mixed", 12}, {"compacted", 0}, {"columns", 4}, {"holes", 0}, {"wide_holes", 0}, {"sparse", 1}};
    for (size_t i = 0; i < COUNT(test_engines) * COUNT(table); i++) {
        struct loaded l = load(test_engines[i % COUNT(test_engines)], table[i / COUNT(test_engines)].name);
        const LanceManifest *m = l.manifest.message;
        size_t same = 0;
        for (size_t k = 0; k < m->n_fragments; k++) {
            const LanceFragment *f = m->fragments[k];
            same += encode_again(&f->inline_row_ids, f->physical_rows, l.arena, lfs_row_ids_decode, lfs_row_ids_encode);
            same += encode_again(&f->inline_created_at_versions, f->physical_rows, l.arena, lfs_row_versions_decode,
                                 lfs_row_versions_encode);
            same += encode_again(&f->inline_last_updated_at_versions, f->physical_rows, l.arena,
                                 lfs_row_versions_decode, lfs_row_versions_encode);
        }
        assert_int_equal(same, table[i / COUNT(test_engines)].same);
        unload(&l);
    }
}

static void fragments_without_sequences(void **state) {
    (void)state;
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    LanceFragment f;
    struct lfs_error err;
    uint64_t *entries;
    lance__table__data_fragment__init(&f);
    f.id = 7;
    f.physical_rows = 3;
    assert_fails(lfs_row_ids_of(&f, arena, "m", &entries, &err), err, LFS_E_CORRUPT,
                 "fragment 7 of m: they are missing");
    static const uint64_t ones[] = {1, 1, 1};
    assert_ok(lfs_row_created_of(&f, arena, "m", &entries, &err), err);
    assert_entries(entries, ones, 3);
    assert_ok(lfs_row_updated_of(&f, arena, "m", &entries, &err), err);
    assert_entries(entries, ones, 3);
    f.physical_rows = 1ull << 40;
    assert_fails(lfs_row_updated_of(&f, arena, "m", &entries, &err), err, LFS_E_TOO_BIG, "last-updated");
    f.row_id_sequence_case = LANCE__TABLE__DATA_FRAGMENT__ROW_ID_SEQUENCE_EXTERNAL_ROW_IDS;
    f.created_at_version_sequence_case =
        LANCE__TABLE__DATA_FRAGMENT__CREATED_AT_VERSION_SEQUENCE_EXTERNAL_CREATED_AT_VERSIONS;
    f.last_updated_at_version_sequence_case =
        LANCE__TABLE__DATA_FRAGMENT__LAST_UPDATED_AT_VERSION_SEQUENCE_EXTERNAL_LAST_UPDATED_AT_VERSIONS;
    reader *const readers[] = {lfs_row_ids_of, lfs_row_created_of, lfs_row_updated_of};
    for (size_t i = 0; i < COUNT(readers); i++) {
        assert_fails(readers[i](&f, arena, "m", &entries, &err), err, LFS_E_UNSUPPORTED, "a file of their own");
        assert_null(entries);
    }
}

/* Messages by hand. */
static void add_varint(struct lfs_buf *buf, uint64_t value) {
    do {
        uint8_t byte = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        lfs_buf_add(buf, &byte, 1);
        value >>= 7;
    } while (value);
}
static void add_number(struct lfs_buf *buf, unsigned field, uint64_t value) {
    add_varint(buf, field << 3);
    add_varint(buf, value);
}
static void add_bytes(struct lfs_buf *buf, unsigned field, const void *bytes, size_t length) {
    add_varint(buf, field << 3 | 2);
    add_varint(buf, length);
    lfs_buf_add(buf, bytes, length);
}

enum { RANGE = 1, HOLES, BITMAP, SORTED, ARRAY }; /* the field numbers of the kinds of segment */

struct segment {
    unsigned kind;
    uint64_t start, end; /* or the base of an array in `start` */
    unsigned width;      /* of an array: field number 1, 2, 3 for 16, 32, 64 bits */
    const void *bytes;   /* a bitmap, or offsets, little-endian */
    size_t length;
};

static void add_array(struct lfs_buf *buf, const struct segment *s, uint64_t base) {
    LFS_AUTO_BUF inner = {0};
    if (base)
        add_number(&inner, 1, base);
    add_bytes(&inner, 2, s->bytes, s->length);
    add_bytes(buf, s->width, inner.data, inner.length);
}

static void add_segment(struct lfs_buf *buf, const struct segment *s) {
    LFS_AUTO_BUF arm = {0};
    LFS_AUTO_BUF inner = {0};
    if (s->kind >= SORTED) {
        add_array(&arm, s, s->start);
    } else {
        add_number(&arm, 1, s->start);
        add_number(&arm, 2, s->end);
        if (s->kind == BITMAP)
            add_bytes(&arm, 3, s->bytes, s->length);
        if (s->kind == HOLES) {
            LFS_AUTO_BUF holes = {0};
            add_array(&holes, s, 0);
            add_bytes(&arm, 3, holes.data, holes.length);
        }
    }
    add_bytes(&inner, s->kind, arm.data, arm.length);
    add_bytes(buf, 1, inner.data, inner.length);
}

static errint_t decode_copy(decoder *decode, const struct lfs_buf *buf, uint64_t rows, struct lfs_arena *arena,
                            uint64_t **out, struct lfs_error *err) {
    uint8_t *copy = test_copy(buf->data, buf->length);
    errint_t result = decode(copy, buf->length, rows, arena, "x", out, err);
    free(copy);
    return result;
}

#define BYTES(text) (text), sizeof(text) - 1

static void segments_by_hand(void **state) {
    (void)state;
    static const struct {
        struct segment segment;
        size_t n;
        uint64_t ids[8];
    } table[] = {
        {{RANGE, 4, 7, 0, BYTES("")}, 3, {4, 5, 6}},
        {{RANGE, 4, 4, 0, BYTES("")}, 0, {0}},
        {{RANGE, UINT64_MAX - 2, UINT64_MAX, 0, BYTES("")}, 2, {UINT64_MAX - 2, UINT64_MAX - 1}},
        {{HOLES, 10, 15, 1, BYTES("\x0a\0\x0d\0")}, 3, {11, 12, 14}},
        {{HOLES, 10, 13, 2, BYTES("\x0c\0\0\0")}, 2, {10, 11}},
        {{HOLES, 10, 13, 3, BYTES("\x0b\0\0\0\0\0\0\0")}, 2, {10, 12}},
        {{HOLES, 10, 12, 3, BYTES("")}, 2, {10, 11}},
        {{HOLES, 10, 12, 1, BYTES("\x0a\0\x0b\0")}, 0, {0}},
        {{BITMAP, 4, 11, 0, BYTES("\x43")}, 3, {4, 5, 10}}, /* the lowest bit comes first */
        {{BITMAP, 5, 18, 0, BYTES("\x01\x10")}, 2, {5, 17}},
        {{BITMAP, 8, 16, 0, BYTES("\x80")}, 1, {15}},
        {{BITMAP, 8, 8, 0, BYTES("")}, 0, {0}},
        {{SORTED, 100, 0, 1, BYTES("\0\0\x07\0\xff\xff")}, 3, {100, 107, 65635}},
        {{SORTED, 0, 0, 2, BYTES("\1\0\0\0\0\0\1\0")}, 2, {1, 65536}},
        {{ARRAY, 1, 0, 1, BYTES("\0\0\3\0\x0a\0\1\0")}, 4, {1, 4, 11, 2}},
        {{ARRAY, 5, 0, 2, BYTES("\xff\xff\xff\xff\0\0\0\0")}, 2, {4294967300, 5}},
        {{ARRAY, 0, 0, 3, BYTES("\xff\xff\xff\xff\xff\xff\xff\xff\1\0\0\0\0\0\0\0")}, 2, {UINT64_MAX, 1}},
        {{ARRAY, 7, 0, 1, BYTES("")}, 0, {0}},
    };
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    LFS_AUTO_BUF all = {0};
    struct lfs_error err;
    uint64_t *ids, expected[COUNT(table) * 8];
    size_t n = 0;
    for (size_t i = 0; i < COUNT(table); i++) {
        LFS_AUTO_BUF buf = {0};
        add_segment(&buf, &table[i].segment);
        add_segment(&all, &table[i].segment);
        assert_ok(decode_copy(lfs_row_ids_decode, &buf, table[i].n, arena, &ids, &err), err);
        assert_non_null(ids);
        assert_entries(ids, table[i].ids, table[i].n);
        assert_fails(decode_copy(lfs_row_ids_decode, &buf, table[i].n + 1, arena, &ids, &err), err, LFS_E_CORRUPT,
                     "entries for");
        if (table[i].n)
            assert_fails(decode_copy(lfs_row_ids_decode, &buf, table[i].n - 1, arena, &ids, &err), err, LFS_E_CORRUPT,
                         "more entries than");
        memcpy(expected + n, table[i].ids, table[i].n * sizeof *expected);
        n += table[i].n;
    }
    assert_ok(decode_copy(lfs_row_ids_decode, &all, n, arena, &ids, &err), err);
    assert_entries(ids, expected, n);
    assert_ok(lfs_row_ids_decode((const uint8_t *)"", 0, 0, arena, "x", &ids, &err), err);
    assert_non_null(ids);
}

static void hostile_segments(void **state) {
    (void)state;
    static const struct {
        struct segment segment;
        uint64_t rows;
        enum lfs_code code;
        const char *word;
    } table[] = {
        {{RANGE, 0, 1ull << 63, 0, BYTES("")}, 10, LFS_E_CORRUPT, "more entries than"},
        {{RANGE, 0, 1ull << 63, 0, BYTES("")}, 1ull << 63, LFS_E_TOO_BIG, "more than"},
        {{RANGE, 0, UINT64_MAX, 0, BYTES("")}, UINT64_MAX, LFS_E_TOO_BIG, "more than"},
        {{RANGE, 0, LFS_ROW_IDS_MAX + 1ull, 0, BYTES("")}, LFS_ROW_IDS_MAX + 1ull, LFS_E_TOO_BIG, "more than"},
        {{RANGE, 5, 4, 0, BYTES("")}, 10, LFS_E_CORRUPT, "ends before"},
        {{HOLES, 0, 1ull << 63, 1, BYTES("\1\0")}, 10, LFS_E_CORRUPT, "more entries than"},
        {{HOLES, 10, 9, 1, BYTES("")}, 10, LFS_E_CORRUPT, "ends before"},
        {{HOLES, 0, 10, 1, BYTES("\1\0\1\0")}, 8, LFS_E_CORRUPT, "out of order"}, /* one hole twice */
        {{HOLES, 0, 10, 1, BYTES("\2\0\1\0")}, 8, LFS_E_CORRUPT, "out of order"},
        {{HOLES, 0, 10, 1, BYTES("\x09\0\1\0\2\0\3\0\4\0\5\0\6\0")}, 3, LFS_E_CORRUPT, "out of order"},
        {{HOLES, 0, 10, 1, BYTES("\1\0\x0a\0")}, 8, LFS_E_CORRUPT, "outside"},
        {{HOLES, 5, 10, 1, BYTES("\4\0")}, 4, LFS_E_CORRUPT, "outside"},
        {{HOLES, 0, 10, 1, BYTES("\1\0\2")}, 8, LFS_E_CORRUPT, "cut short"},
        {{HOLES, 0, 0, 1, BYTES("\0\0")}, UINT64_MAX, LFS_E_CORRUPT, "outside"},
        {{HOLES, 0, 10, 4, BYTES("")}, 10, LFS_E_UNSUPPORTED, "no known width"},
        {{BITMAP, 0, 9, 0, BYTES("\xff")}, 8, LFS_E_CORRUPT, "as long as"},
        {{BITMAP, 0, 8, 0, BYTES("\xff\0")}, 8, LFS_E_CORRUPT, "as long as"},
        {{BITMAP, 0, 0, 0, BYTES("\xff")}, 8, LFS_E_CORRUPT, "as long as"},
        {{BITMAP, 0, UINT64_MAX, 0, BYTES("\xff")}, 8, LFS_E_CORRUPT, "as long as"},
        {{BITMAP, 4, 3, 0, BYTES("\xff")}, 8, LFS_E_CORRUPT, "ends before"},
        {{BITMAP, 0, 3, 0, BYTES("\x0f")}, 4, LFS_E_CORRUPT, "behind the end"},
        {{SORTED, 0, 0, 1, BYTES("\1\0\1\0")}, 2, LFS_E_CORRUPT, "out of order"},
        {{SORTED, 0, 0, 3, BYTES("\2\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0")}, 2, LFS_E_CORRUPT, "out of order"},
        {{SORTED, 0, 0, 2, BYTES("\1\0\1")}, 1, LFS_E_CORRUPT, "cut short"},
        {{ARRAY, 0, 0, 3, BYTES("\1\0\0\0\0\0\0")}, 1, LFS_E_CORRUPT, "cut short"},
        {{ARRAY, UINT64_MAX, 0, 1, BYTES("\1\0")}, 1, LFS_E_CORRUPT, "too large"},
        {{ARRAY, 0, 0, 7, BYTES("")}, 0, LFS_E_UNSUPPORTED, "no known width"},
        {{9, 0, 0, 1, BYTES("")}, 0, LFS_E_UNSUPPORTED, "no known kind"},
    };
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    struct lfs_error err;
    uint64_t *ids;
    for (size_t i = 0; i < COUNT(table); i++) {
        LFS_AUTO_BUF buf = {0};
        add_segment(&buf, &table[i].segment);
        assert_fails(decode_copy(lfs_row_ids_decode, &buf, table[i].rows, arena, &ids, &err), err, table[i].code,
                     table[i].word);
        assert_null(ids);
        /* the same as the span of a run of versions */
        LFS_AUTO_BUF runs = {0};
        buf.data[0] = 1 << 3 | 2;
        add_bytes(&runs, 1, buf.data, buf.length);
        assert_fails(decode_copy(lfs_row_versions_decode, &runs, table[i].rows, arena, &ids, &err), err, table[i].code,
                     table[i].word);
        assert_null(ids);
    }
    assert_true(lfs_arena_size(arena) < 4096); /* nothing was allocated for what was claimed */
    static const struct segment half = {RANGE, 0, 1ull << 63, 0, BYTES("")};
    LFS_AUTO_BUF twice = {0};
    add_segment(&twice, &half);
    add_segment(&twice, &half);
    assert_fails(decode_copy(lfs_row_ids_decode, &twice, 0, arena, &ids, &err), err, LFS_E_CORRUPT, "more entries");
    assert_fails(decode_copy(lfs_row_ids_decode, &twice, UINT64_MAX, arena, &ids, &err), err, LFS_E_CORRUPT, "more");
    static const struct {
        const char *word, *bytes;
        size_t length;
        decoder *decode;
    } hollow[] = {
        {"no known kind", BYTES("\x0a\0"), lfs_row_ids_decode},
        {"no known width", BYTES("\x0a\2\x22\0"), lfs_row_ids_decode},     /* a sorted array of nothing */
        {"is missing", BYTES("\x0a\4\x12\2\x10\x01"), lfs_row_ids_decode}, /* holes without holes */
        {"as long as", BYTES("\x0a\4\x1a\2\x10\x01"), lfs_row_ids_decode}, /* a bitmap without bits */
        {"no span", BYTES("\x0a\2\x10\5"), lfs_row_versions_decode},
        {"not a valid", BYTES("\x0a\5\x0a\2\x10\x01"), lfs_row_ids_decode},
    };
    for (size_t i = 0; i < COUNT(hollow); i++) {
        assert_fails(
            hollow[i].decode((const uint8_t *)hollow[i].bytes, hollow[i].length, 1, arena, "the file", &ids, &err), err,
            LFS_E_CORRUPT, hollow[i].word);
        assert_non_null(strstr(err.message, "the file"));
        assert_null(ids);
    }
}

static size_t round_trip(encoder *encode, decoder *decode, const uint64_t *entries, size_t n) {
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    LFS_AUTO_BUF buf = {0};
    struct lfs_error err;
    uint64_t *again;
    assert_ok(encode(entries, n, &buf, &err), err);
    assert_ok(decode_copy(decode, &buf, n, arena, &again, &err), err);
    assert_entries(again, entries, n);
    return buf.length;
}
static size_t ids_size(const uint64_t *ids, size_t n) {
    return round_trip(lfs_row_ids_encode, lfs_row_ids_decode, ids, n);
}
static size_t versions_size(const uint64_t *versions, size_t n) {
    return round_trip(lfs_row_versions_encode, lfs_row_versions_decode, versions, n);
}

static void assert_encoded(const uint64_t *ids, size_t n, const char *bytes, size_t length) {
    LFS_AUTO_BUF buf = {0};
    struct lfs_error err;
    lfs_buf_puts(&buf, "before");
    assert_ok(lfs_row_ids_encode(ids, n, &buf, &err), err);
    assert_int_equal(buf.length, 6 + length);
    assert_memory_equal(buf.data + 6, bytes, length);
    ids_size(ids, n);
}
#define IDS(...) (const uint64_t[]){__VA_ARGS__}, sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t)

static void ids_come_back(void **state) {
    (void)state;
    const uint64_t last = UINT64_MAX;
    assert_encoded(NULL, 0, BYTES("\x0a\2\x0a\0"));      /* as a range of nothing */
    assert_encoded(IDS(0), BYTES("\x0a\4\x0a\2\x10\1")); /* ranges */
    assert_encoded(IDS(2, 3, 4), BYTES("\x0a\6\x0a\4\x08\2\x10\5"));
    assert_encoded(IDS(4, 5, 10), BYTES("\x0a\x09\x1a\7\x08\4\x10\x0b\x1a\1\x43")); /* bitmap */
    assert_encoded(IDS(1, 4, 11, 2), BYTES("\x0a\x10\x2a\x0e\x0a\x0c\x08\1\x12\x08\0\0\3\0\x0a\0\1\0"));
    assert_encoded(IDS(0, 300), BYTES("\x0a\x0a\x22\x08\x0a\6\x12\4\0\0\x2c\1")); /* sorted array */
    ids_size(IDS(0, 65535));
    ids_size(IDS(0, 65536));
    ids_size(IDS(7, UINT32_MAX + 7ull));
    ids_size(IDS(7, UINT32_MAX + 8ull));
    ids_size(IDS(UINT32_MAX + 8ull, 7));
    ids_size(IDS(5, 5, 5));
    ids_size(IDS(3, 2, 1, 0));
    ids_size(IDS(last));
    ids_size(IDS(last - 1, last));
    ids_size(IDS(last - 1));
    ids_size(IDS(last, 0));
    ids_size(IDS(0, last));
    ids_size(IDS(last - 9, last));
}

/* Long runs are ranges, however the rest is spread. */
static void long_sequences_stay_small(void **state) {
    (void)state;
    enum { N = 100000 };
    uint64_t *ids = malloc(N * sizeof *ids);
    assert_non_null(ids);
    for (size_t i = 0; i < N; i++)
        ids[i] = i + i / 1000; /* a gap every 1000 */
    assert_true(ids_size(ids, N) < 1500);
    for (size_t i = 0; i < N; i++)
        ids[i] = i + i / 9; /* one every 9: bits */
    assert_true(ids_size(ids, N) < N / 7);
    for (size_t i = 0; i < N; i++)
        ids[i] = i * 500;
    assert_true(ids_size(ids, N) < N * 4 + 40);
    for (size_t i = 0; i < N; i++)
        ids[i] = (N - i / 100) * 1000 + i % 100; /* runs of 100, the highest first */
    assert_true(ids_size(ids, N) < 20000);
    for (unsigned seed = 0; seed < 300; seed++) { /* runs, gaps and jumps of every size */
        uint64_t next = 0, random = seed * 0x9e3779b97f4a7c15ull + 1;
        for (size_t i = 0; i < 500; i++) {
            random ^= random << 13, random ^= random >> 7, random ^= random << 17;
            next = random % 97 < seed % 40 ? random >> (random % 64) : next + 1;
            ids[i] = next;
        }
        ids_size(ids, 500);
        for (size_t i = 0; i < 500; i++)
            ids[i] = ids[i] % (seed + 1);
        versions_size(ids, 500);
    }
    free(ids);
}

static void versions_come_back(void **state) {
    (void)state;
    static const struct {
        size_t n;
        uint64_t versions[6];
        const char *bytes;
        size_t length;
    } table[] = {
        {0, {0}, BYTES("")},
        {1, {3}, BYTES("\x0a\x08\x0a\4\x0a\2\x10\1\x10\3")},
        {4,
         {1, 1, 2, 1},
         BYTES("\x0a\x08\x0a\4\x0a\2\x10\2\x10\1"
               "\x0a\x0a\x0a\6\x0a\4\x08\2\x10\3\x10\2"
               "\x0a\x0a\x0a\6\x0a\4\x08\3\x10\4\x10\1")},
        {2, {0, 0}, BYTES("\x0a\6\x0a\4\x0a\2\x10\2")},
    };
    for (size_t i = 0; i < COUNT(table); i++) {
        LFS_AUTO_BUF buf = {0};
        struct lfs_error err;
        assert_ok(lfs_row_versions_encode(table[i].versions, table[i].n, &buf, &err), err);
        assert_int_equal(buf.length, table[i].length);
        if (buf.length)
            assert_memory_equal(buf.data, table[i].bytes, buf.length);
        versions_size(table[i].versions, table[i].n);
    }
    versions_size(IDS(UINT64_MAX, UINT64_MAX, 1));
}

/* An error with a sentence, or entries that come back. */
static uint64_t damaged_rows;
static void check(decoder *decode, encoder *encode, const uint8_t *bytes, size_t length) {
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    struct lfs_error err = {0};
    uint64_t *entries = NULL;
    if (decode(bytes, length, damaged_rows, arena, "damaged", &entries, &err)) {
        assert_true(err.message[0] && !entries);
        return;
    }
    round_trip(encode, decode, entries, damaged_rows);
}
static void check_ids(const uint8_t *bytes, size_t length) {
    check(lfs_row_ids_decode, lfs_row_ids_encode, bytes, length);
}
static void check_versions(const uint8_t *bytes, size_t length) {
    check(lfs_row_versions_decode, lfs_row_versions_encode, bytes, length);
}

static void damage(const ProtobufCBinaryData *bytes, void (*check_it)(const uint8_t *, size_t)) {
    struct test_file file = {.bytes = bytes->data, .length = bytes->len};
    test_damage(&file, check_it);
}

static void damage_never_crashes(void **state) {
    (void)state;
    static const char *const names[] = {"mixed", "compacted", "holes", "sparse"};
    for (size_t i = 0; i < COUNT(test_engines) * COUNT(names); i++) {
        struct loaded l = load(test_engines[i % COUNT(test_engines)], names[i / COUNT(test_engines)]);
        const LanceManifest *m = l.manifest.message;
        for (size_t k = 0; k < m->n_fragments; k++) {
            damaged_rows = m->fragments[k]->physical_rows;
            damage(&m->fragments[k]->inline_row_ids, check_ids);
            damage(&m->fragments[k]->inline_created_at_versions, check_versions);
            damage(&m->fragments[k]->inline_last_updated_at_versions, check_versions);
        }
        unload(&l);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stock_fragments),
        cmocka_unit_test(stock_holes),
        cmocka_unit_test(ids_in_a_transaction),
        cmocka_unit_test(encoded_as_stock_does),
        cmocka_unit_test(fragments_without_sequences),
        cmocka_unit_test(segments_by_hand),
        cmocka_unit_test(hostile_segments),
        cmocka_unit_test(ids_come_back),
        cmocka_unit_test(long_sequences_stay_small),
        cmocka_unit_test(versions_come_back),
        cmocka_unit_test(damage_never_crashes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
