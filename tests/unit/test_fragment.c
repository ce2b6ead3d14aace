/* SPDX-License-Identifier: Apache-2.0 */
/* Records of fragments against protobuf-c, which is told nothing of this reader and writer. */
#include "common.h"

#include "format/fragment.h"
#include "format/wire.h"
#include "util/cleanup.h"

#define DESCRIPTOR (&lance__table__data_fragment__descriptor)

/* --- random records --- */

static uint64_t seed;

static uint64_t number(uint64_t below) {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (seed >> 33) % below;
}

/* Every length of a varint is as likely. */
static uint64_t any_u64(void) {
    return number(2) ? number(128) : (number(1u << 30) << 34 | number(1u << 30)) >> number(64);
}
static uint32_t any_u32(void) { return (uint32_t)any_u64(); }

static int32_t *numbers(struct lfs_arena *arena, size_t n) {
    int32_t *values = LFS_NEW_ARRAY(arena, int32_t, n + 1);
    for (size_t i = 0; i < n; i++)
        values[i] = number(8) ? (int32_t)number(200) : -(int32_t)number(3);
    return values;
}

static LanceDataFile *any_file(struct lfs_arena *arena) {
    LanceDataFile *f = LFS_NEW(arena, LanceDataFile);
    lance__table__data_file__init(f);
    f->path = number(8) ? lfs_sprintf(arena, "%0*llx.lance", (int)number(60), (unsigned long long)any_u64()) : NULL;
    f->n_fields = number(5);
    f->n_column_indices = number(4) ? f->n_fields : number(3);
    f->fields = numbers(arena, f->n_fields);
    f->column_indices = numbers(arena, f->n_column_indices);
    if ((f->has_file_major_version = number(2)))
        f->file_major_version = any_u32();
    if ((f->has_file_minor_version = number(2)))
        f->file_minor_version = any_u32();
    if ((f->has_file_size_bytes = number(2)))
        f->file_size_bytes = any_u64();
    if ((f->has_base_id = number(2)))
        f->base_id = any_u32();
    return f;
}

static ProtobufCBinaryData any_bytes(struct lfs_arena *arena) {
    size_t length = number(8) ? number(40) : number(3000);
    uint8_t *bytes = lfs_alloc(arena, length + 1);
    for (size_t i = 0; i < length; i++)
        bytes[i] = (uint8_t)number(256);
    return (ProtobufCBinaryData){length, bytes};
}

static void add_rest(LanceFragment *f, struct lfs_arena *arena) {
    if (number(2)) {
        LanceDeletionFile *d = f->deletion_file = LFS_NEW(arena, LanceDeletionFile);
        lance__table__deletion_file__init(d);
        if ((d->has_file_type = number(2)))
            d->file_type = number(2);
        if ((d->has_read_version = number(2)))
            d->read_version = any_u64();
        if ((d->has_id = number(2)))
            d->id = any_u64();
        if ((d->has_num_deleted_rows = number(2)))
            d->num_deleted_rows = any_u64();
        if ((d->has_base_id = number(2)))
            d->base_id = any_u32();
    }
    if ((f->row_id_sequence_case = number(2) * 5))
        f->inline_row_ids = any_bytes(arena);
    if ((f->last_updated_at_version_sequence_case = number(2) * 7))
        f->inline_last_updated_at_versions = any_bytes(arena);
    if ((f->created_at_version_sequence_case = number(2) * 9))
        f->inline_created_at_versions = any_bytes(arena);
}

static LanceFragment *any_fragment(struct lfs_arena *arena) {
    LanceFragment *f = LFS_NEW(arena, LanceFragment);
    lance__table__data_fragment__init(f);
    if ((f->has_id = number(4) > 0))
        f->id = any_u64();
    f->n_files = number(4);
    f->files = LFS_NEW_ARRAY(arena, LanceDataFile *, f->n_files + 1);
    for (size_t i = 0; i < f->n_files; i++)
        f->files[i] = any_file(arena);
    if ((f->has_physical_rows = number(4) > 0))
        f->physical_rows = any_u64();
    if (number(2))
        add_rest(f, arena);
    return f;
}

/* --- the tests --- */

static LanceFragment *read_copy(struct lfs_fragment_reader *reader, const void *bytes, size_t length,
                                struct lfs_arena *arena) {
    uint64_t elements = 0;
    uint8_t *copy = test_copy(bytes, length);
    reader->fields = reader->columns = (struct lfs_fragment_numbers){0}; /* they point into the bytes */
    LanceFragment *f = lfs_fragment_read(reader, copy, length, arena, &elements);
    free(copy); /* nothing in the record may point into it */
    return f;
}

/* Written here and by protobuf-c: these bytes? */
static bool gives(const LanceFragment *f, const struct lfs_buf *bytes) {
    LFS_AUTO_BUF packed = {0};
    LFS_AUTO_BUF written = {0};
    LFS_AUTO_BUF wanted = {0};
    uint64_t length = bytes->length;
    lfs_wire_pack(&f->base, &packed);
    size_t room = lfs_fragment_room(f);
    uint8_t *at = lfs_buf_extend(&written, room), *end = lfs_fragment_write(f, at);
    assert_true(end <= at + room);
    for (; length >= 128; length /= 128)
        lfs_buf_add(&wanted, (uint8_t[]){(uint8_t)(length % 128 + 128)}, 1);
    lfs_buf_add(&wanted, (uint8_t[]){(uint8_t)length}, 1);
    if (bytes->length)
        lfs_buf_add(&wanted, bytes->data, bytes->length);
    return packed.length == bytes->length && (!packed.length || memcmp(packed.data, bytes->data, packed.length) == 0) &&
           (size_t)(end - at) == wanted.length && memcmp(at, wanted.data, wanted.length) == 0;
}

static void records_come_back(void **state) {
    (void)state;
    for (seed = 1; seed < 20000;) {
        uint64_t next = seed + 7;
        LFS_AUTO_ARENA *arena = lfs_arena_new();
        LFS_AUTO_BUF bytes = {0};
        struct lfs_fragment_reader reader = {0};
        LanceFragment *f = any_fragment(arena);
        lfs_wire_pack(&f->base, &bytes);
        assert_true(lfs_fragment_is_plain(f));
        assert_true(gives(f, &bytes));
        LanceFragment *read = read_copy(&reader, bytes.data, bytes.length, arena);
        assert_non_null(read);
        assert_false(reader.took);
        assert_true(gives(read, &bytes));
        assert_true(lfs_fragment_equals(f, bytes.data, bytes.length));
        seed = next;
    }
}

/* One byte is another one, is missing, or comes twice: what is read at all is written as it was, and is what protobuf-c reads. */
static void changed_bytes_are_kept_or_left_alone(void **state) {
    (void)state;
    size_t n_read = 0, n_left = 0;
    for (uint64_t k = 1; k < 3000; k++) {
        LFS_AUTO_ARENA *arena = lfs_arena_new();
        LFS_AUTO_BUF bytes = {0};
        LFS_AUTO_BUF changed = {0};
        struct lfs_fragment_reader reader = {0};
        seed = k * 7919;
        LanceFragment *f = any_fragment(arena), *ours, *theirs;
        lfs_wire_pack(&f->base, &bytes);
        for (size_t tries = 0; bytes.length > 0 && tries < 20; tries++) {
            size_t at = number(bytes.length), skip = number(3); /* 0: twice, 1: another, 2: missing */
            uint8_t other = (uint8_t)number(256);
            lfs_buf_clear(&changed);
            lfs_buf_add(&changed, bytes.data, at);
            lfs_buf_add(&changed, skip ? &other : &bytes.data[at], skip < 2);
            lfs_buf_add(&changed, bytes.data + at + (skip > 0), bytes.length - at - (skip > 0));
            ours = changed.length ? read_copy(&reader, changed.data, changed.length, arena) : NULL;
            if (changed.length == bytes.length)
                assert_int_equal(lfs_fragment_equals(f, changed.data, changed.length),
                                 memcmp(changed.data, bytes.data, bytes.length) == 0);
            n_left += !ours;
            if (!ours)
                continue;
            n_read++;
            struct lfs_error err;
            assert_ok(lfs_wire_unpack(DESCRIPTOR, changed.data, changed.length, arena, "x", &theirs, &err), err);
            assert_true(gives(ours, &changed));
            assert_true(gives(theirs, &changed));
        }
    }
    assert_true(n_read > 1000 && n_left > 1000);
}

/* By hand: key = number << 3 | wire type. */
static void what_is_not_plain_is_left_alone(void **state) {
    (void)state;
    static const struct {
        const char *bytes;
        size_t length;
        bool plain;
    } cases[] = {
        {"", 0, true},
        {"\x08\x07\x20\x01", 4, true},
        {"\x20\x01\x08\x07", 4, false},                                         /* the id behind the rows */
        {"\x08\x07\x08\x07", 4, false},                                         /* two ids */
        {"\x08\x87\x00", 3, false},                                             /* 7 in two bytes */
        {"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, true},             /* 2^64 - 1 */
        {"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x03", 11, false},            /* more */
        {"\x08\x80", 2, false},                                                 /* cut */
        {"\x12\x03\x0a\x01x", 5, true},                                         /* a file x */
        {"\x12\x04\x0a\x01x", 5, false},                                        /* longer than the record */
        {"\x12\x03\x0a\x01\x00", 5, false},                                     /* NUL in its name */
        {"\x12\x03\x12\x01\x02", 5, true},                                      /* fields [2] */
        {"\x12\x02\x12\x00", 4, false},                                         /* fields [], told */
        {"\x12\x02\x10\x02", 4, false},                                         /* fields not packed */
        {"\x12\x0c\x12\x0a\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", 14, true}, /* fields [-2] */
        {"\x12\x07\x12\x05\xfe\xff\xff\xff\x0f", 9, false},                     /* -2 in five bytes */
        {"\x12\x06\x38\xff\xff\xff\xff\x0f", 8, true},                          /* base id 2^32 - 1 */
        {"\x12\x06\x38\x80\x80\x80\x80\x10", 8, false},                         /* 2^32 */
        {"\x32\x00", 2, false},                                                 /* row ids in a file */
        {"\x5a\x00", 2, false},                                                 /* an overlay */
        {"\xa2\x38\x01x", 4, false},                                            /* field 900 */
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        LFS_AUTO_ARENA *arena = lfs_arena_new();
        struct lfs_fragment_reader reader = {0};
        LanceFragment *f = read_copy(&reader, cases[i].bytes, cases[i].length, arena);
        if ((f != NULL) != cases[i].plain)
            fail_msg("case %zu", i);
    }
}

static void strange_records_are_not_plain(void **state) {
    (void)state;
    ProtobufCMessageUnknownField unknown = {900, PROTOBUF_C_WIRE_TYPE_VARINT, 1, (uint8_t *)"\001"};
    LanceDataFile file = LANCE__TABLE__DATA_FILE__INIT, *files[] = {&file};
    LanceDeletionFile deletion = LANCE__TABLE__DELETION_FILE__INIT;
    LanceFragment f;
    ProtobufCMessage *parts[] = {&f.base, &file.base, &deletion.base};
    lance__table__data_fragment__init(&f);
    f.files = files;
    f.n_files = 1;
    f.deletion_file = &deletion;
    assert_true(lfs_fragment_is_plain(&f));
    for (size_t i = 0; i < COUNT(parts); i++) {
        parts[i]->unknown_fields = &unknown;
        parts[i]->n_unknown_fields = 1;
        assert_false(lfs_fragment_is_plain(&f));
        parts[i]->n_unknown_fields = 0;
    }
    f.row_id_sequence_case = LANCE__TABLE__DATA_FRAGMENT__ROW_ID_SEQUENCE_EXTERNAL_ROW_IDS;
    assert_false(lfs_fragment_is_plain(&f));
}

/* A branch's record differs from its parent's by a base id: its names are the parent's own. */
static void names_are_shared(void **state) {
    (void)state;
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    LFS_AUTO_BUF bytes = {0};
    int32_t fields[] = {0, 1};
    LanceDataFile a = LANCE__TABLE__DATA_FILE__INIT, b = a, *files[] = {&a, &b};
    LanceFragment f;
    lance__table__data_fragment__init(&f);
    a.path = (char[]){"a.lance"};
    b.path = (char[]){"b.lance"};
    a.fields = a.column_indices = b.fields = b.column_indices = fields;
    a.n_fields = a.n_column_indices = b.n_fields = b.n_column_indices = 2;
    a.has_base_id = b.has_base_id = true;
    f.files = files;
    f.n_files = 2;
    lfs_wire_pack(&f.base, &bytes);
    LanceDataFile x = a, y = b, *parents[] = {&x, &y};
    LanceFragment parent = f;
    parent.files = parents;
    x.path = (char[]){"a.lance"};
    y.path = (char[]){"b.lance.longer"};
    struct lfs_fragment_reader reader = {.like = &parent};
    uint64_t elements = 5;
    LanceFragment *read = lfs_fragment_read(&reader, bytes.data, bytes.length, arena, &elements);
    assert_non_null(read);
    assert_true(reader.took);
    assert_int_equal(elements, 5 + 2 + 2 + 4); /* files, names, lists */
    assert_ptr_equal(read->files[0]->path, x.path);
    assert_string_equal(read->files[1]->path, "b.lance");
    assert_ptr_equal(read->files[0]->fields, read->files[1]->fields); /* once for all that are alike */
    y.path[7] = 0;                                                    /* the same letters, elsewhere */
    x.path[0] = 'z';
    reader = (struct lfs_fragment_reader){.like = &parent};
    read = lfs_fragment_read(&reader, bytes.data, bytes.length, arena, &elements);
    assert_true(reader.took);
    assert_ptr_equal(read->files[1]->path, y.path);
    assert_string_equal(read->files[0]->path, "a.lance");
    assert_true(gives(read, &bytes));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_come_back),
        cmocka_unit_test(changed_bytes_are_kept_or_left_alone),
        cmocka_unit_test(what_is_not_plain_is_left_alone),
        cmocka_unit_test(strange_records_are_not_plain),
        cmocka_unit_test(names_are_shared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
