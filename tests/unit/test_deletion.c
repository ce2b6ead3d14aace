/* SPDX-License-Identifier: Apache-2.0 */
/* The rows that a file must name follow from the SQL that deleted them (tests/unit/data/README.md). */
#include "common.h"

#include "format/deletion.h"
#include "util/cleanup.h"

typedef errint_t decoder(const uint8_t *bytes, size_t length, uint64_t physical_rows, const char *what,
                         roaring_bitmap_t **out, struct lfs_error *err);

static roaring_bitmap_t *must_decode(decoder *decode, const struct test_file *file, uint64_t physical_rows) {
    struct lfs_error err;
    roaring_bitmap_t *rows = NULL;
    assert_ok(decode(file->bytes, file->length, physical_rows, file->name, &rows, &err), err);
    assert_non_null(rows);
    return rows;
}

/* The set is {first, first + step, ...} below `end`. */
static void assert_progression(const roaring_bitmap_t *rows, uint32_t first, uint32_t step, uint32_t end) {
    uint64_t n = 0;
    for (uint32_t i = first; i < end; i += step, n++)
        if (!roaring_bitmap_contains(rows, i))
            fail_msg("row %u is missing", i);
    assert_int_equal(roaring_bitmap_get_cardinality(rows), n);
}

static const struct {
    const char *name;
    decoder *decode;
    uint32_t physical_rows, first, step, end;
} stock_files[] = {
    {"three.arrow", lfs_deletion_decode_arrow, 10, 1, 3, 8},             /* id IN (1, 4, 7) */
    {"quarter.arrow", lfs_deletion_decode_arrow, 4000, 0, 4, 4000},      /* id % 4 = 0: compressed */
    {"third.bin", lfs_deletion_decode_bitmap, 20000, 0, 3, 20000},       /* id % 3 = 0: bits */
    {"twentieth.bin", lfs_deletion_decode_bitmap, 140000, 1, 20, 140000} /* id % 20 = 1: three arrays */
};

static void stock_files_decode(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(stock_files) * COUNT(test_engines); i++) {
        size_t k = i / COUNT(test_engines);
        struct test_file file = test_read_of(test_engines[i % COUNT(test_engines)], stock_files[k].name);
        roaring_bitmap_t *rows = must_decode(stock_files[k].decode, &file, stock_files[k].physical_rows);
        assert_progression(rows, stock_files[k].first, stock_files[k].step, stock_files[k].end);
        uint32_t last = roaring_bitmap_maximum(rows);
        roaring_bitmap_free(rows);
        rows = must_decode(stock_files[k].decode, &file, UINT64_MAX);
        roaring_bitmap_free(rows);
        rows = must_decode(stock_files[k].decode, &file, (uint64_t)last + 1);
        roaring_bitmap_free(rows);
        struct lfs_error err;
        assert_fails(stock_files[k].decode(file.bytes, file.length, last, file.name, &rows, &err), err, LFS_E_CORRUPT,
                     "of a fragment of");
        assert_null(rows);
        test_file_free(&file);
    }
}

/* Both engines read, and refuse, these files of another writer just so (tests/unit/data/arrow_variants.mjs). */
static void arrow_files_of_other_writers(void **state) {
    (void)state;
    static const struct {
        const char *name;
        const char *word; /* of the refusal; NULL: the rows are 1, 4, 7 or, for `none`, none */
    } table[] = {
        {"js-plain.arrow", NULL},
        {"js-duplicates.arrow", NULL},
        {"js-none.arrow", NULL},
        {"js-name.arrow", "not named row_id"},
        {"js-int32.arrow", "not of type UInt32"},
        {"js-uint64.arrow", "not of type UInt32"},
        {"js-nullable.arrow", "nullable"},
        {"js-nulls.arrow", "nulls"},
        {"js-field_metadata.arrow", "metadata"},
        {"js-schema_metadata.arrow", "metadata"},
        {"js-two_batches.arrow", "one record batch"},
        {"js-no_batch.arrow", "one record batch"},
        {"js-two_columns.arrow", "one column"},
        {"js-dictionary.arrow", "dictionary"},
        {"js-behind_end.arrow", "deletes row 10 of a fragment of 10 rows"}, /* stock overlooks this one */
    };
    for (size_t i = 0; i < COUNT(table); i++) {
        struct test_file file = test_read(table[i].name);
        struct lfs_error err;
        roaring_bitmap_t *rows = NULL;
        if (table[i].word) {
            assert_fails(lfs_deletion_decode_arrow(file.bytes, file.length, 10, file.name, &rows, &err), err,
                         LFS_E_CORRUPT, table[i].word);
            assert_non_null(strstr(err.message, table[i].name));
            assert_null(rows);
        } else {
            rows = must_decode(lfs_deletion_decode_arrow, &file, 10);
            if (strstr(table[i].name, "none"))
                assert_true(roaring_bitmap_is_empty(rows));
            else
                assert_progression(rows, 1, 3, 8);
            roaring_bitmap_free(rows);
        }
        test_file_free(&file);
    }
}

/* The byte order and the codec were changed by the flatbuffers classes of the arrow package. */
static void arrow_features_that_are_not_supported(void **state) {
    (void)state;
    struct test_file big = test_read("js-big_endian.arrow");
    struct test_file lz4 = test_read("js-lz4.arrow");
    struct lfs_error err;
    roaring_bitmap_t *rows = NULL;
    assert_fails(lfs_deletion_decode_arrow(big.bytes, big.length, 10, big.name, &rows, &err), err, LFS_E_UNSUPPORTED,
                 "big-endian");
    assert_fails(lfs_deletion_decode_arrow(lz4.bytes, lz4.length, 10, lz4.name, &rows, &err), err, LFS_E_UNSUPPORTED,
                 "ZSTD");
    test_file_free(&big);
    test_file_free(&lz4);
}

/* Bitmaps written by hand after the format's specification. */
static void add_u16(struct lfs_buf *buf, unsigned value) {
    uint8_t bytes[] = {(uint8_t)value, (uint8_t)(value >> 8)};
    lfs_buf_add(buf, bytes, 2);
}

static errint_t decode_words(const unsigned *words, size_t n, uint64_t physical_rows, roaring_bitmap_t **out,
                             struct lfs_error *err) {
    LFS_AUTO_BUF buf = {0};
    for (size_t i = 0; i < n; i++)
        add_u16(&buf, words[i]);
    uint8_t *bytes = test_copy(buf.data, buf.length);
    errint_t result = lfs_deletion_decode_bitmap(bytes, buf.length, physical_rows, "x.bin", out, err);
    free(bytes);
    return result;
}

#define WORDS(...) (const unsigned[]){__VA_ARGS__}, sizeof((const unsigned[]){__VA_ARGS__}) / sizeof(unsigned)

static void bitmaps_by_hand(void **state) {
    (void)state;
    struct lfs_error err;
    roaring_bitmap_t *rows = NULL;
    /* empty: cookie 12346, no containers */
    assert_ok(decode_words(WORDS(12346, 0, 0, 0), 10, &rows, &err), err);
    assert_true(roaring_bitmap_is_empty(rows));
    roaring_bitmap_free(rows);
    /* one array {1, 4, 7} at 16 */
    assert_ok(decode_words(WORDS(12346, 0, 1, 0, 0, 2, 16, 0, 1, 4, 7), 8, &rows, &err), err);
    assert_progression(rows, 1, 3, 8);
    roaring_bitmap_free(rows);
    /* a run container 2..5 and 9..9, then an array {65536 + 3}; fewer than four containers: no offsets */
    unsigned char flags = 1; /* container 0 is runs */
    LFS_AUTO_BUF buf = {0};
    add_u16(&buf, 12347);
    add_u16(&buf, 2 - 1);
    lfs_buf_add(&buf, &flags, 1);
    static const unsigned rest[] = {0, 5 - 1, 1, 1 - 1, 2, 2, 3, 9, 0, 3};
    for (size_t i = 0; i < COUNT(rest); i++)
        add_u16(&buf, rest[i]);
    uint8_t *bytes = test_copy(buf.data, buf.length);
    assert_ok(lfs_deletion_decode_bitmap(bytes, buf.length, 65540, "x.bin", &rows, &err), err);
    static const uint32_t expected[] = {2, 3, 4, 5, 9, 65539};
    assert_int_equal(roaring_bitmap_get_cardinality(rows), COUNT(expected));
    for (size_t i = 0; i < COUNT(expected); i++)
        assert_true(roaring_bitmap_contains(rows, expected[i]));
    roaring_bitmap_free(rows);
    free(bytes);
}

static void bitmaps_that_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *word;
        unsigned words[16];
        size_t n;
    } table[] = {
        {"too short", {0}, 0},
        {"too short", {12346, 0}, 2},
        {"too short", {12346, 0, 1, 0}, 4},
        {"too short", {12346, 0, 1, 0, 0, 0}, 6},
        {"too short", {12346, 0, 0, 1}, 4}, /* 65536 containers */
        {"too many", {12346, 0, 1, 1}, 4},
        {"begin", {12345, 0, 0, 0}, 4},
        {"begin", {12346, 1, 0, 0}, 4},
        {"cut short", {12346, 0, 1, 0, 0, 2, 16, 0, 1, 4}, 10},
        {"behind its end", {12346, 0, 1, 0, 0, 2, 16, 0, 1, 4, 7, 9}, 12},
        {"out of order", {12346, 0, 1, 0, 0, 2, 16, 0, 1, 7, 4}, 11},
        {"out of order", {12346, 0, 1, 0, 0, 2, 16, 0, 1, 4, 4}, 11}, /* twice */
        {"not where", {12346, 0, 1, 0, 0, 2, 18, 0, 1, 4, 7}, 11},
        {"containers are out of order", {12346, 0, 2, 0, 1, 0, 1, 0, 24, 0, 26, 0, 1, 2}, 14},
        {"containers are out of order", {12346, 0, 2, 0, 1, 0, 0, 0, 24, 0, 26, 0, 1, 2}, 14},
        {"cut short", {12346, 0, 1, 0, 0, 4096, 16, 0, 0, 0}, 10}, /* 4097 rows: bits */
    };
    struct lfs_error err;
    roaring_bitmap_t *rows = NULL;
    for (size_t i = 0; i < COUNT(table); i++) {
        assert_fails(decode_words(table[i].words, table[i].n, UINT64_MAX, &rows, &err), err, LFS_E_CORRUPT,
                     table[i].word);
        assert_null(rows);
    }
}

/* One run container: `n` runs of start and length - 1, and what the header says of its rows. */
static errint_t decode_runs(unsigned cardinality, const unsigned *runs, size_t n, uint64_t physical_rows,
                            roaring_bitmap_t **out, struct lfs_error *err) {
    LFS_AUTO_BUF buf = {0};
    lfs_buf_u32le(&buf, 12347);
    lfs_buf_add(&buf, "\1", 1);
    add_u16(&buf, 0);
    add_u16(&buf, cardinality - 1);
    add_u16(&buf, (unsigned)n);
    for (size_t i = 0; i < 2 * n; i++)
        add_u16(&buf, runs[i]);
    uint8_t *bytes = test_copy(buf.data, buf.length);
    errint_t result = lfs_deletion_decode_bitmap(bytes, buf.length, physical_rows, "x.bin", out, err);
    free(bytes);
    return result;
}

static void run_containers(void **state) {
    (void)state;
    struct lfs_error err;
    roaring_bitmap_t *rows = NULL;
    assert_ok(decode_runs(65536, (unsigned[]){0, 65535}, 1, 65536, &rows, &err), err); /* a whole container */
    assert_progression(rows, 0, 1, 65536);
    roaring_bitmap_free(rows);
    assert_ok(decode_runs(6, (unsigned[]){2, 2, 5, 2}, 2, 8, &rows, &err), err); /* runs that touch: 2..4, 5..7 */
    assert_progression(rows, 2, 1, 8);
    roaring_bitmap_free(rows);
    assert_fails(decode_runs(6, (unsigned[]){2, 3, 5, 1}, 2, 8, &rows, &err), err, LFS_E_CORRUPT, "out of order");
    assert_fails(decode_runs(2, (unsigned[]){7, 0, 5, 0}, 2, 8, &rows, &err), err, LFS_E_CORRUPT, "out of order");
    assert_fails(decode_runs(2, (unsigned[]){65535, 1}, 1, UINT64_MAX, &rows, &err), err, LFS_E_CORRUPT, "order");
    assert_fails(decode_runs(5, (unsigned[]){2, 2}, 1, 8, &rows, &err), err, LFS_E_CORRUPT, "as many rows as it says");
    assert_fails(decode_runs(1, NULL, 0, 8, &rows, &err), err, LFS_E_CORRUPT, "as many rows as it says");
    assert_fails(decode_runs(65536, (unsigned[]){0, 65535}, 1, 65535, &rows, &err), err, LFS_E_CORRUPT, "row 65535 of");
}

static void bits_must_count_right(void **state) {
    (void)state;
    struct test_file file = test_read("lance10-third.bin");
    struct lfs_error err;
    roaring_bitmap_t *rows = NULL;
    file.bytes[file.length - 1] ^= 1; /* rows far behind the end, but the count is looked at first */
    assert_fails(lfs_deletion_decode_bitmap(file.bytes, file.length, 20000, file.name, &rows, &err), err, LFS_E_CORRUPT,
                 "as many rows as it says");
    test_file_free(&file);
}

/* Many containers and all their shapes: what the library writes comes back, and is what stock writes for such rows. */
static void encoded_bitmaps_come_back(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(test_engines) * 2; i++) {
        struct test_file file = test_read_of(test_engines[i / 2], i % 2 ? "twentieth.bin" : "third.bin");
        roaring_bitmap_t *rows = must_decode(lfs_deletion_decode_bitmap, &file, UINT64_MAX);
        struct lfs_error err;
        LFS_AUTO_BUF buf = {0};
        assert_ok(lfs_deletion_encode_bitmap(rows, &buf, &err), err);
        assert_int_equal(buf.length, file.length);
        assert_memory_equal(buf.data, file.bytes, file.length);
        roaring_bitmap_free(rows);
        test_file_free(&file);
    }
    roaring_bitmap_t *rows = roaring_bitmap_create(), *again = NULL;
    struct lfs_error err;
    LFS_AUTO_BUF buf = {0};
    for (uint32_t i = 0; i < 300000; i += i < 70000 ? 1 : 7)
        roaring_bitmap_add(rows, i);
    roaring_bitmap_add(rows, UINT32_MAX);
    roaring_bitmap_run_optimize(rows);
    assert_ok(lfs_deletion_encode_bitmap(rows, &buf, &err), err);
    assert_ok(lfs_deletion_decode_bitmap(buf.data, buf.length, 1ull << 32, "x.bin", &again, &err), err);
    assert_true(roaring_bitmap_equals(rows, again));
    roaring_bitmap_free(rows);
    roaring_bitmap_free(again);
}

static void by_type_and_by_name(void **state) {
    (void)state;
    LanceDeletionFile file = LANCE__TABLE__DELETION_FILE__INIT;
    struct test_file arrow = test_read("lance12-three.arrow"), bin = test_read("lance12-third.bin");
    struct lfs_error err;
    roaring_bitmap_t *rows = NULL;
    char name[80];
    assert_ok(lfs_deletion_decode(&file, arrow.bytes, arrow.length, 10, arrow.name, &rows, &err), err);
    roaring_bitmap_free(rows);
    file.read_version = 3;
    file.id = 17;
    lfs_deletion_file_name(0, &file, name, sizeof name);
    assert_string_equal(name, "0-3-17.arrow");
    file.file_type = LANCE__TABLE__DELETION_FILE__DELETION_FILE_TYPE__BITMAP;
    assert_ok(lfs_deletion_decode(&file, bin.bytes, bin.length, 20000, bin.name, &rows, &err), err);
    roaring_bitmap_free(rows);
    file.read_version = file.id = UINT64_MAX;
    lfs_deletion_file_name(UINT64_MAX, &file, name, sizeof name);
    assert_string_equal(name, "18446744073709551615-18446744073709551615-18446744073709551615.bin");
    int unknown = 2;
    memcpy(&file.file_type, &unknown, sizeof unknown);
    assert_fails(lfs_deletion_decode(&file, bin.bytes, bin.length, 20000, bin.name, &rows, &err), err,
                 LFS_E_UNSUPPORTED, "type 2");
    assert_null(rows);
    test_file_free(&arrow);
    test_file_free(&bin);
}

/* An error with a sentence, or a set that the library can work with and that lies inside the fragment. */
static void check(decoder *decode, const uint8_t *bytes, size_t length, uint64_t physical_rows) {
    struct lfs_error err = {0};
    roaring_bitmap_t *rows = NULL;
    if (decode(bytes, length, physical_rows, "damaged", &rows, &err)) {
        assert_true(err.message[0] && !rows);
        return;
    }
    assert_true(roaring_bitmap_is_empty(rows) || roaring_bitmap_maximum(rows) < physical_rows);
    LFS_AUTO_BUF buf = {0};
    roaring_bitmap_t *again = NULL;
    assert_ok(lfs_deletion_encode_bitmap(rows, &buf, &err), err);
    assert_ok(lfs_deletion_decode_bitmap(buf.data, buf.length, physical_rows, "again", &again, &err), err);
    assert_true(roaring_bitmap_equals(rows, again));
    roaring_bitmap_free(rows);
    roaring_bitmap_free(again);
}

static void check_arrow(const uint8_t *bytes, size_t length) {
    check(lfs_deletion_decode_arrow, bytes, length, 10);
    check(lfs_deletion_decode_arrow, bytes, length, UINT64_MAX);
}
static void check_arrow_4000(const uint8_t *bytes, size_t length) {
    check(lfs_deletion_decode_arrow, bytes, length, 4000);
}
static void check_bitmap(const uint8_t *bytes, size_t length) {
    check(lfs_deletion_decode_bitmap, bytes, length, 140000);
}

static void damage_never_crashes(void **state) {
    (void)state;
    static const struct {
        const char *name;
        void (*check)(const uint8_t *, size_t);
    } table[] = {
        {"lance10-three.arrow", check_arrow},
        {"lance12-three.arrow", check_arrow},
        {"js-plain.arrow", check_arrow},
        {"js-dictionary.arrow", check_arrow},
        {"lance10-quarter.arrow", check_arrow_4000},
        {"lance10-third.bin", check_bitmap},
    };
    for (size_t i = 0; i < COUNT(table); i++) {
        struct test_file file = test_read(table[i].name);
        test_damage(&file, table[i].check);
        test_file_free(&file);
    }
    /* every shape of container in 60 bytes: runs, arrays, offsets */
    static const uint32_t some[] = {1, 5, 65537, 131073, 131074, 200000};
    roaring_bitmap_t *rows = roaring_bitmap_of_ptr(COUNT(some), some);
    roaring_bitmap_add_range(rows, 300, 900);
    roaring_bitmap_run_optimize(rows);
    LFS_AUTO_BUF buf = {0};
    assert_int_equal(lfs_deletion_encode_bitmap(rows, &buf, NULL), 0);
    struct test_file small = {.bytes = buf.data, .length = buf.length};
    test_damage(&small, check_bitmap);
    roaring_bitmap_free(rows);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stock_files_decode),
        cmocka_unit_test(arrow_files_of_other_writers),
        cmocka_unit_test(arrow_features_that_are_not_supported),
        cmocka_unit_test(bitmaps_by_hand),
        cmocka_unit_test(bitmaps_that_are_refused),
        cmocka_unit_test(run_containers),
        cmocka_unit_test(bits_must_count_right),
        cmocka_unit_test(encoded_bitmaps_come_back),
        cmocka_unit_test(by_type_and_by_name),
        cmocka_unit_test(damage_never_crashes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
