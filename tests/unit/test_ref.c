/* SPDX-License-Identifier: Apache-2.0 */
/* What is taken and what is refused is what both stock engines take and refuse in these files, but for three cases that
 * are marked. */
#include "common.h"

#include "format/ref.h"
#include "util/cleanup.h"
#include "util/limits.h"

static errint_t decode_branch(struct lfs_arena *arena, const char *json, struct lfs_branch_ref *out,
                              struct lfs_error *err) {
    size_t length = strlen(json);
    uint8_t *bytes = test_copy(json, length); /* no NUL behind it */
    errint_t result = lfs_branch_ref_decode(bytes, length, arena, "x.json", out, err);
    free(bytes);
    return result;
}

static errint_t decode_tag(struct lfs_arena *arena, const char *json, struct lfs_tag_ref *out, struct lfs_error *err) {
    size_t length = strlen(json);
    uint8_t *bytes = test_copy(json, length);
    errint_t result = lfs_tag_ref_decode(bytes, length, arena, "x.json", out, err);
    free(bytes);
    return result;
}

static bool is_hex32(const char *uuid) { return strlen(uuid) == 32 && strspn(uuid, "0123456789abcdef") == 32; }

static void stock_branches(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(test_engines); i++) {
        LFS_AUTO_ARENA *arena = lfs_arena_new();
        struct lfs_error err;
        struct lfs_branch_ref feature, child;
        struct test_file f = test_read_of(test_engines[i], "branch-feature.json");
        struct test_file c = test_read_of(test_engines[i], "branch-child.json");
        assert_ok(lfs_branch_ref_decode(f.bytes, f.length, arena, f.name, &feature, &err), err);
        assert_null(feature.parent_branch);
        assert_int_equal(feature.parent_version, 5);
        assert_int_equal(feature.n_forks, 1);
        assert_int_equal(feature.forks[0].version, 5);
        assert_true(is_hex32(feature.forks[0].uuid));
        assert_true(feature.create_at > 1700000000);
        assert_true(feature.manifest_size > 0);
        assert_string_equal(feature.metadata_json, "{}");
        assert_ok(lfs_branch_ref_decode(c.bytes, c.length, arena, c.name, &child, &err), err);
        assert_string_equal(child.parent_branch, "feature");
        assert_int_equal(child.parent_version, 7);
        assert_int_equal(child.n_forks, 2);
        assert_int_equal(child.forks[0].version, 5);
        assert_string_equal(child.forks[0].uuid, feature.forks[0].uuid);
        assert_int_equal(child.forks[1].version, 7);
        assert_true(is_hex32(child.forks[1].uuid));
        test_file_free(&f);
        test_file_free(&c);
    }
}

/* Decoded and encoded, a file of either engine is the same bytes. */
static void stock_branches_come_back_byte_for_byte(void **state) {
    (void)state;
    static const char *const names[] = {"branch-feature.json", "branch-child.json"};
    for (size_t i = 0; i < COUNT(test_engines) * COUNT(names); i++) {
        LFS_AUTO_ARENA *arena = lfs_arena_new();
        LFS_AUTO_BUF buf = {0};
        struct lfs_error err;
        struct lfs_branch_ref ref;
        struct test_file file = test_read_of(test_engines[i / COUNT(names)], names[i % COUNT(names)]);
        assert_ok(lfs_branch_ref_decode(file.bytes, file.length, arena, file.name, &ref, &err), err);
        assert_ok(lfs_branch_ref_encode(&ref, &buf, &err), err);
        assert_int_equal(buf.length, file.length);
        assert_memory_equal(buf.data, file.bytes, file.length);
        test_file_free(&file);
    }
}

static void stock_tags(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(test_engines); i++) {
        LFS_AUTO_ARENA *arena = lfs_arena_new();
        struct lfs_error err;
        struct lfs_tag_ref v1, on_feature;
        struct test_file a = test_read_of(test_engines[i], "tag-v1.json");
        struct test_file b = test_read_of(test_engines[i], "tag-on-feature.json");
        assert_ok(lfs_tag_ref_decode(a.bytes, a.length, arena, a.name, &v1, &err), err);
        assert_null(v1.branch);
        assert_int_equal(v1.version, 1);
        assert_int_equal(v1.manifest_size, 438); /* the size of create.manifest */
        assert_int_equal(strlen(v1.created_at), strlen("2026-11-29T17:45:21.219757787Z"));
        assert_string_equal(v1.created_at, v1.updated_at);
        assert_ok(lfs_tag_ref_decode(b.bytes, b.length, arena, b.name, &on_feature, &err), err);
        assert_string_equal(on_feature.branch, "feature");
        assert_int_equal(on_feature.version, 7);
        test_file_free(&a);
        test_file_free(&b);
    }
}

static void stock_tags_come_back_byte_for_byte(void **state) {
    (void)state;
    static const char *const names[] = {"tag-v1.json", "tag-on-feature.json"};
    for (size_t i = 0; i < COUNT(test_engines) * COUNT(names); i++) {
        LFS_AUTO_ARENA *arena = lfs_arena_new();
        LFS_AUTO_BUF buf = {0};
        struct lfs_error err;
        struct lfs_tag_ref ref;
        struct test_file file = test_read_of(test_engines[i / COUNT(names)], names[i % COUNT(names)]);
        assert_ok(lfs_tag_ref_decode(file.bytes, file.length, arena, file.name, &ref, &err), err);
        assert_ok(lfs_tag_ref_encode(&ref, &buf, &err), err);
        assert_int_equal(buf.length, file.length);
        assert_memory_equal(buf.data, file.bytes, file.length);
        test_file_free(&file);
    }
}

static void check_edit(const char *json, const char *key, const char *name, const uint64_t *size, const char *expected) {
    LFS_AUTO_BUF buf = {0};
    struct lfs_error err;
    assert_ok(lfs_ref_edit((const uint8_t *)json, strlen(json), "x.json", key, name, size, &buf, &err), err);
    lfs_buf_add(&buf, "", 1);
    assert_string_equal((const char *)buf.data, expected);
}

static void edits_leave_the_rest(void **state) {
    (void)state;
    const uint64_t size = 12;
    const char *json = "{\"branch\":\"a\",\"version\":5,\"of others\":[1,null],\"manifestSize\":7,\"metadata\":{\"k\":\"v\"}}";
    const char *rest = "  \"version\": 5,\n  \"of others\": [\n    1,\n    null\n  ],\n  \"manifestSize\": %d,\n"
                       "  \"metadata\": {\n    \"k\": \"v\"\n  }\n}";
    char expected[256], text[320];
    snprintf(expected, sizeof expected, rest, 12);
    snprintf(text, sizeof text, "{\n  \"branch\": \"b/c\",\n%s", expected);
    check_edit(json, "branch", "b/c", &size, text);
    snprintf(expected, sizeof expected, rest, 7);
    snprintf(text, sizeof text, "{\n  \"branch\": \"a\",\n%s", expected);
    check_edit(json, "branch", NULL, NULL, text);
    struct lfs_error err;
    LFS_AUTO_BUF buf = {0};
    assert_fails(lfs_ref_edit((const uint8_t *)"[]", 2, "x.json", "branch", "b", NULL, &buf, &err), err, LFS_E_CORRUPT,
                 "x.json");
}

#define REST "\"parentVersion\":5,\"createAt\":1795974173,\"manifestSize\":786"
#define UUID "094e0123456789abcdef0123456789ab"

static void branches_that_are_taken(void **state) {
    (void)state;
    static const struct {
        const char *json, *parent, *metadata;
        size_t n_forks;
    } table[] = {
        {"{" REST "}", NULL, NULL, 0}, /* the optional keys missing */
        {"{\"parentBranch\":null," REST "}", NULL, NULL, 0},
        {"{\"parentBranch\":\"main\"," REST "}", NULL, NULL, 0},
        {"{\"parentBranch\":\"a/\\u00e9\"," REST "}", "a/é", NULL, 0},
        {"{\"identifier\":{\"version_mapping\":[]}," REST "}", NULL, NULL, 0},
        {"{\"identifier\":{\"version_mapping\":[[0,\"" UUID "\"],[3,\"" UUID "\"]]}," REST "}", NULL, NULL, 2},
        {"{\"later\":[{\"x\":1.5}],\"identifier\":{\"version_mapping\":[],\"y\":0}," REST "}", NULL, NULL, 0},
        {" {\n" REST " , \"metadata\" : { \"b\" : \"\\u001f/\" , \"a\" : \"\xc3\xa9\" } }\n", NULL,
         "{\"b\":\"\\u001F/\",\"a\":\"é\"}", 0},
    };
    for (size_t i = 0; i < COUNT(table); i++) {
        LFS_AUTO_ARENA *arena = lfs_arena_new();
        struct lfs_error err;
        struct lfs_branch_ref ref, again;
        LFS_AUTO_BUF buf = {0};
        assert_ok(decode_branch(arena, table[i].json, &ref, &err), err);
        assert_int_equal(ref.parent_version, 5);
        assert_int_equal(ref.create_at, 1795974173);
        assert_int_equal(ref.manifest_size, 786);
        assert_int_equal(ref.n_forks, table[i].n_forks);
        assert_string_equal(ref.parent_branch ? ref.parent_branch : "", table[i].parent ? table[i].parent : "");
        assert_string_equal(ref.metadata_json ? ref.metadata_json : "", table[i].metadata ? table[i].metadata : "");
        assert_ok(lfs_branch_ref_encode(&ref, &buf, &err), err);
        assert_ok(lfs_branch_ref_decode(buf.data, buf.length, arena, "x.json", &again, &err), err);
        assert_int_equal(again.n_forks, table[i].n_forks);
        assert_string_equal(again.metadata_json, table[i].metadata ? table[i].metadata : "{}");
    }
}

static void branches_that_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *json, *word;
    } table[] = {
        {"", "JSON"},
        {"[]", "object"},
        {"7", "JSON"},
        {"null", "JSON"},
        {"{}", "parentVersion"},
        {"{" REST "} x", "JSON"},
        {"{" REST ",}", "JSON"},
        {"{\"createAt\":1,\"manifestSize\":1}", "parentVersion"},
        {"{\"parentVersion\":1,\"manifestSize\":1}", "createAt"},
        {"{\"parentVersion\":1,\"createAt\":1}", "manifestSize"},
        {"{\"parentVersion\":-1,\"createAt\":1,\"manifestSize\":1}", "parentVersion"},
        {"{\"parentVersion\":1,\"createAt\":1.0001,\"manifestSize\":1}", "createAt"},
        {"{\"parentVersion\":1,\"createAt\":\"1\",\"manifestSize\":1}", "createAt"},
        {"{\"parentVersion\":1,\"createAt\":1,\"manifestSize\":null}", "manifestSize"},
        {"{\"parentVersion\":99999999999999999999,\"createAt\":1,\"manifestSize\":1}", "JSON"},
        {"{\"parentVersion\":1," REST "}", "JSON"}, /* a key twice */
        {"{\"parentBranch\":1," REST "}", "parentBranch"},
        {"{\"identifier\":null," REST "}", "version_mapping"},
        {"{\"identifier\":{}," REST "}", "version_mapping"},
        {"{\"identifier\":{\"version_mapping\":{}}," REST "}", "version_mapping"},
        {"{\"identifier\":{\"version_mapping\":[1]}," REST "}", "version_mapping"},
        {"{\"identifier\":{\"version_mapping\":[[1]]}," REST "}", "version_mapping"},
        {"{\"identifier\":{\"version_mapping\":[[-1,\"" UUID "\"]]}," REST "}", "version_mapping"},
        {"{\"identifier\":{\"version_mapping\":[[1,\"" UUID "\",2]]}," REST "}", "version_mapping"},
        {"{\"identifier\":{\"version_mapping\":[[1,7]]}," REST "}", "version_mapping"},
        /* stricter than stock, which never writes such: what is no uuid must not become part of a path */
        {"{\"identifier\":{\"version_mapping\":[[1,\"zz\"]]}," REST "}", "version_mapping"},
        {"{\"identifier\":{\"version_mapping\":[[1,\"../../0123456789abcdef0123456789\"]]}," REST "}",
         "version_mapping"},
        {"{\"metadata\":null," REST "}", "metadata"},
        {"{\"metadata\":[]," REST "}", "metadata"},
        {"{\"metadata\":{\"a\":1}," REST "}", "metadata"},
        {"{\"metadata\":{\"a\":\"\\u0000\"}," REST "}", "JSON"}, /* stricter than stock */
        {"{\"parentBranch\":\"a\xff\"," REST "}", "JSON"},
        {"{\"parentBranch\":\"a", "JSON"},
    };
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    struct lfs_error err;
    struct lfs_branch_ref ref;
    for (size_t i = 0; i < COUNT(table); i++) {
        assert_fails(decode_branch(arena, table[i].json, &ref, &err), err, LFS_E_CORRUPT, table[i].word);
        assert_non_null(strstr(err.message, "x.json"));
    }
}

static void tags_that_are_refused(void **state) {
    (void)state;
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    struct lfs_error err;
    struct lfs_tag_ref ref;
    assert_ok(decode_tag(arena, "{\"version\":5,\"manifestSize\":857}", &ref, &err), err);
    assert_null(ref.branch);
    assert_null(ref.created_at);
    assert_null(ref.updated_at);
    assert_fails(decode_tag(arena, "{\"manifestSize\":857}", &ref, &err), err, LFS_E_CORRUPT, "version");
    assert_fails(decode_tag(arena, "{\"version\":5}", &ref, &err), err, LFS_E_CORRUPT, "manifestSize");
    assert_fails(decode_tag(arena, "{\"version\":true,\"manifestSize\":1}", &ref, &err), err, LFS_E_CORRUPT, "version");
    assert_fails(decode_tag(arena, "{\"branch\":[],\"version\":5,\"manifestSize\":1}", &ref, &err), err, LFS_E_CORRUPT,
                 "branch");
}

static void sizes_and_depths_are_bounded(void **state) {
    (void)state;
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    LFS_AUTO_BUF buf = {0};
    struct lfs_error err;
    struct lfs_branch_ref ref;
    memset(lfs_buf_extend(&buf, LFS_REF_BYTES_MAX + 1), ' ', LFS_REF_BYTES_MAX + 1);
    assert_fails(lfs_branch_ref_decode(buf.data, buf.length, arena, "x.json", &ref, &err), err, LFS_E_TOO_BIG, "large");
    memset(buf.data, '[', LFS_REF_BYTES_MAX); /* a million levels */
    assert_fails(lfs_branch_ref_decode(buf.data, LFS_REF_BYTES_MAX, arena, "x.json", &ref, &err), err, LFS_E_CORRUPT,
                 "depth");
    for (unsigned n = LFS_BRANCH_DEPTH_MAX; n <= LFS_BRANCH_DEPTH_MAX + 1; n++) {
        lfs_buf_clear(&buf);
        lfs_buf_puts(&buf, "{" REST ",\"identifier\":{\"version_mapping\":[");
        for (unsigned i = 0; i < n; i++)
            lfs_buf_printf(&buf, "%s[%u,\"" UUID "\"]", i ? "," : "", i);
        lfs_buf_puts(&buf, "]}}");
        if (n == LFS_BRANCH_DEPTH_MAX)
            assert_ok(lfs_branch_ref_decode(buf.data, buf.length, arena, "x.json", &ref, &err), err);
        else
            assert_fails(lfs_branch_ref_decode(buf.data, buf.length, arena, "x.json", &ref, &err), err, LFS_E_TOO_BIG,
                         "257 forks");
    }
}

static void encode_refuses_what_would_not_come_back(void **state) {
    (void)state;
    LFS_AUTO_BUF buf = {0};
    struct lfs_error err;
    struct lfs_fork fork = {(uint64_t)INT64_MAX + 1, UUID};
    struct lfs_branch_ref ref = {.create_at = UINT64_MAX};
    assert_fails(lfs_branch_ref_encode(&ref, &buf, &err), err, LFS_E_TOO_BIG, "2^63");
    ref = (struct lfs_branch_ref){.forks = &fork, .n_forks = 1};
    assert_fails(lfs_branch_ref_encode(&ref, &buf, &err), err, LFS_E_TOO_BIG, "2^63");
    ref = (struct lfs_branch_ref){.parent_branch = "\xff"};
    assert_fails(lfs_branch_ref_encode(&ref, &buf, &err), err, LFS_E_NOMEM, "UTF-8");
    assert_int_equal(buf.length, 0);
}

static void check_branch(const uint8_t *bytes, size_t length) {
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    LFS_AUTO_BUF buf = {0};
    struct lfs_error err = {0};
    struct lfs_branch_ref ref;
    if (lfs_branch_ref_decode(bytes, length, arena, "x.json", &ref, &err))
        assert_int_not_equal(err.message[0], 0);
    else
        assert_ok(lfs_branch_ref_encode(&ref, &buf, &err), err);
}

static void check_tag(const uint8_t *bytes, size_t length) {
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    struct lfs_error err = {0};
    struct lfs_tag_ref ref;
    if (lfs_tag_ref_decode(bytes, length, arena, "x.json", &ref, &err))
        assert_int_not_equal(err.message[0], 0);
}

static void damage_never_crashes(void **state) {
    (void)state;
    struct test_file branch = test_read("lance12-branch-child.json"), tag = test_read("lance12-tag-on-feature.json");
    test_damage(&branch, check_branch);
    test_damage(&tag, check_tag);
    test_file_free(&branch);
    test_file_free(&tag);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stock_branches),
        cmocka_unit_test(stock_branches_come_back_byte_for_byte),
        cmocka_unit_test(stock_tags),
        cmocka_unit_test(stock_tags_come_back_byte_for_byte),
        cmocka_unit_test(edits_leave_the_rest),
        cmocka_unit_test(branches_that_are_taken),
        cmocka_unit_test(branches_that_are_refused),
        cmocka_unit_test(tags_that_are_refused),
        cmocka_unit_test(sizes_and_depths_are_bounded),
        cmocka_unit_test(encode_refuses_what_would_not_come_back),
        cmocka_unit_test(damage_never_crashes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
