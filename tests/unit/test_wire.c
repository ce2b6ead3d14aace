/* SPDX-License-Identifier: Apache-2.0 */
/* Messages written by hand after the protobuf encoding: key = number << 3 | wire type. */
#include "common.h"

#include "format/messages.h"
#include "format/wire.h"
#include "util/cleanup.h"

#define MANIFEST (&lance__table__manifest__descriptor)

static errint_t unpack(const ProtobufCMessageDescriptor *descriptor, const void *bytes, size_t length,
                       struct lfs_arena *arena, void *out, struct lfs_error *err) {
    uint8_t *copy = test_copy(bytes, length);
    errint_t result = lfs_wire_unpack(descriptor, copy, length, arena, "x", out, err);
    free(copy); /* nothing in the message may point into it */
    return result;
}

static void messages_unpack(void **state) {
    (void)state;
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    struct lfs_error err;
    LanceManifest *m = NULL;
    /* 3 version = 300 (ac 02), 20 branch = "ab", 2 fragments = {1 id = 7}, 16 config = {1 "k", 2 "v"} */
    static const uint8_t bytes[] = "\x18\xac\x02\xa2\x01\x02"
                                   "ab\x12\x02\x08\x07\x82\x01\x06\x0a\x01k\x12\x01v";
    assert_ok(unpack(MANIFEST, bytes, sizeof bytes - 1, arena, &m, &err), err);
    assert_int_equal(m->version, 300);
    assert_string_equal(m->branch, "ab");
    assert_int_equal(m->n_fragments, 1);
    assert_int_equal(m->fragments[0]->id, 7);
    assert_string_equal(m->config[0]->key, "k");
    assert_string_equal(m->config[0]->value, "v");
    assert_false(m->has_index_section);
    assert_ok(unpack(MANIFEST, "", 0, arena, &m, &err), err);
    assert_false(m->has_version);
    assert_ok(unpack(MANIFEST, "\x30\x00", 2, arena, &m, &err), err); /* 6 index_section = 0: there, and 0 */
    assert_true(m->has_index_section);
    assert_int_equal(m->index_section, 0);
}

static void malformed_messages_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *bytes;
        size_t length;
    } table[] = {
        /* clang-format off */
        {"\x18", 1},                                               /* a key without a value */
        {"\x18\x80", 2},                                           /* a varint without an end */
        {"\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12}, /* a varint of 11 bytes */
        {"\xa2\x01\x03" "ab", 5},                                  /* a string longer than the message */
        {"\xa2\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12},  /* a string of 2^64 - 1 bytes */
        {"\x12\x03\x08\x07", 4},                                   /* a message longer than the message */
        {"\x12\x02\x08\x80", 4},                                   /* damage in an inner message */
        {"\x00\x01", 2},                                           /* field number 0 */
        {"\x1b", 1},                                               /* a group */
        {"\x1f\x01", 2},                                           /* wire type 7 */
        {"\x12\x05", 2},
        {"\xe1\x0c\x01\x02\x03", 5},                               /* fixed64 with 3 bytes */
        {"\xe5\x0c\x01\x02\x03", 5},                               /* fixed32 with 3 bytes */
        /* clang-format on */
    };
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    struct lfs_error err;
    LanceManifest *m = NULL;
    for (size_t i = 0; i < COUNT(table); i++)
        assert_fails(unpack(MANIFEST, table[i].bytes, table[i].length, arena, &m, &err), err, LFS_E_CORRUPT, "x");
}

static void a_nul_inside_a_string_is_refused(void **state) {
    (void)state;
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    struct lfs_error err;
    LanceManifest *m = NULL;
    LanceFragment *f = NULL;
    assert_fails(unpack(MANIFEST,
                        "\xa2\x01\x03"
                        "a\0b",
                        6, arena, &m, &err),
                 err, LFS_E_CORRUPT, "branch");
    assert_fails(unpack(MANIFEST,
                        "\xa2\x01\x02"
                        "a\0",
                        5, arena, &m, &err),
                 err, LFS_E_CORRUPT, "branch");
    /* 2 fragments = {2 files = {1 path = "a\0"}} */
    assert_fails(unpack(MANIFEST,
                        "\x12\x06\x12\x04\x0a\x02"
                        "a\0",
                        8, arena, &m, &err),
                 err, LFS_E_CORRUPT, "path");
    /* 19 table_metadata = {2 value} */
    assert_fails(unpack(MANIFEST,
                        "\x9a\x01\x04\x12\x02"
                        "v\0",
                        7, arena, &m, &err),
                 err, LFS_E_CORRUPT, "value");
    /* but not in bytes: 5 inline_row_ids */
    assert_ok(unpack(&lance__table__data_fragment__descriptor,
                     "\x2a\x03"
                     "a\0b",
                     5, arena, &f, &err),
              err);
    assert_int_equal(f->inline_row_ids.len, 3);
    assert_memory_equal(f->inline_row_ids.data, "a\0b", 3);
}

/* Fields that no .proto names come back, in the outer message and in inner ones. */
static void unknown_fields_are_kept(void **state) {
    (void)state;
    /* 3 version = 4; 17 = varint 5 (a gap between known numbers); 99 = "xy"; 2 fragments = {1 id = 7, 50 = fixed32} */
    static const uint8_t bytes[] = "\x18\x04\x88\x01\x05\x9a\x06\x02xy\x12\x08\x08\x07\x95\x03\x01\x02\x03\x04";
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    struct lfs_error err;
    LanceManifest *m = NULL, *copy = NULL, *again = NULL;
    assert_ok(unpack(MANIFEST, bytes, sizeof bytes - 1, arena, &m, &err), err);
    assert_int_equal(m->base.n_unknown_fields, 2);
    assert_int_equal(m->fragments[0]->base.n_unknown_fields, 1);
    assert_ok(lfs_wire_copy(&m->base, arena, &copy, &err), err);
    assert_ptr_not_equal(copy, m);
    const LanceManifest *both[] = {m, copy};
    for (size_t i = 0; i < COUNT(both); i++) {
        size_t size = protobuf_c_message_get_packed_size(&both[i]->base);
        assert_int_equal(size, sizeof bytes - 1);
        uint8_t *packed = lfs_alloc(arena, size);
        protobuf_c_message_pack(&both[i]->base, packed);
        /* ascending known fields first, then the unknown ones as they came */
        assert_memory_equal(packed, "\x12\x08\x08\x07\x95\x03\x01\x02\x03\x04\x18\x04\x88\x01\x05\x9a\x06\x02xy", size);
        assert_ok(unpack(MANIFEST, packed, size, arena, &again, &err), err);
        assert_int_equal(again->base.n_unknown_fields, 2);
        assert_int_equal(again->base.unknown_fields[0].tag, 17);
        assert_int_equal(again->base.unknown_fields[1].tag, 99);
    }
}

/* An operation that this program does not know is an unknown field of the transaction, and stays there. */
static void an_unknown_operation_is_kept(void **state) {
    (void)state;
    static const uint8_t bytes[] = "\x08\x04\x12\x01u\xaa\x09\x02\x08\x01"; /* arm 149 */
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    struct lfs_error err;
    LanceTransaction *t = NULL;
    assert_ok(unpack(&lance__table__transaction__descriptor, bytes, sizeof bytes - 1, arena, &t, &err), err);
    assert_int_equal(t->operation_case, 0);
    assert_int_equal(t->base.n_unknown_fields, 1);
    uint8_t packed[sizeof bytes];
    assert_int_equal(protobuf_c_message_pack(&t->base, packed), sizeof bytes - 1);
    assert_memory_equal(packed, bytes, sizeof bytes - 1);
}

static void a_copy_owns_its_memory(void **state) {
    (void)state;
    LFS_AUTO_ARENA *to = lfs_arena_new();
    struct lfs_arena *from = lfs_arena_new();
    struct lfs_error err;
    LanceManifest *m = NULL, *copy = NULL, *empty = NULL;
    LanceManifest nothing = LANCE__TABLE__MANIFEST__INIT;
    assert_ok(unpack(MANIFEST,
                     "\xa2\x01\x02"
                     "ab\x12\x02\x08\x07",
                     9, from, &m, &err),
              err);
    assert_ok(lfs_wire_copy(&m->base, to, &copy, &err), err);
    lfs_arena_free(from);
    assert_string_equal(copy->branch, "ab");
    assert_int_equal(copy->fragments[0]->id, 7);
    assert_ok(lfs_wire_copy(&nothing.base, to, &empty, &err), err);
    assert_int_equal(empty->n_fragments, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_unpack),
        cmocka_unit_test(malformed_messages_are_refused),
        cmocka_unit_test(a_nul_inside_a_string_is_refused),
        cmocka_unit_test(unknown_fields_are_kept),
        cmocka_unit_test(an_unknown_operation_is_kept),
        cmocka_unit_test(a_copy_owns_its_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
