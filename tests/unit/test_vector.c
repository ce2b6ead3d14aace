/* SPDX-License-Identifier: Apache-2.0 */
#include "common.h"

#include "format/vector.h"
#include "util/cleanup.h"

#define A "094e0123456789abcdef0123456789ab"
#define B "7b980123456789abcdef0123456789ab"

static struct lfs_vector parse(struct lfs_arena *arena, const char *text) {
    struct lfs_vector v;
    struct lfs_error err;
    lfs_vector_init(&v, arena);
    assert_ok(lfs_vector_parse(&v, text, "x", &err), err);
    return v;
}

static void assert_prints(const struct lfs_vector *v, const char *text) {
    LFS_AUTO_BUF buf = {0};
    lfs_vector_print(v, &buf);
    lfs_buf_add(&buf, "", 1);
    assert_string_equal((const char *)buf.data, text);
}

static void texts(void **state) {
    (void)state;
    static const struct {
        const char *text, *printed;
    } table[] = {
        {"", ""},
        {"main:3", "main:3"},
        {"main:3," A ":5", A ":5,main:3"}, /* sorted by line */
        {"main:3,main:7,main:5", "main:7"},
        {"main:0", ""}, /* an absent line is version 0 */
        {"main:9223372036854775807", "main:9223372036854775807"},
        {"main:007", "main:7"},
    };
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    for (size_t i = 0; i < COUNT(table); i++) {
        struct lfs_vector v = parse(arena, table[i].text);
        assert_prints(&v, table[i].printed);
    }
}

static void texts_that_are_refused(void **state) {
    (void)state;
    static const char *const table[] = {
        "main",
        "main:",
        ":3",
        "main:3;" A ":5",
        "main:-1",
        "main:+1",
        "main:1x",
        "main: 1",
        "main:1.0",
        ",main:1",
        "main:1,,main:2",
        "feature:3",
        "../x:3",
        A B "0:3",                    /* 65 digits */
        "main:9223372036854775808",   /* 2^63: a detached version */
        "main:18446744073709551616",  /* 2^64 */
        "main:99999999999999999999",  /* 20 digits, over 2^64 */
        "main:184467440737095516150", /* 21 digits */
        "main:99999999999999999999,main:1",
    };
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    struct lfs_error err;
    for (size_t i = 0; i < COUNT(table); i++) {
        struct lfs_vector v;
        lfs_vector_init(&v, arena);
        if (!lfs_vector_parse(&v, table[i], "a.manifest", &err))
            fail_msg("'%s' is taken", table[i]);
        assert_int_equal(err.code, LFS_E_CORRUPT);
        assert_non_null(strstr(err.message, "a.manifest"));
    }
}

static void order_and_lattice(void **state) {
    (void)state;
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    struct lfs_error err;
    struct lfs_vector a = parse(arena, "main:3," A ":5"), b = parse(arena, "main:4," B ":2"), meet, join;
    assert_int_equal(lfs_vector_get(&a, "main"), 3);
    assert_int_equal(lfs_vector_get(&a, A), 5);
    assert_int_equal(lfs_vector_get(&a, B), 0);
    lfs_vector_init(&meet, arena);
    assert_ok(lfs_vector_meet(&a, &b, &meet, &err), err);
    assert_prints(&meet, "main:3");
    lfs_vector_init(&join, arena);
    assert_ok(lfs_vector_join(&join, &a, &err), err);
    assert_ok(lfs_vector_join(&join, &b, &err), err);
    assert_prints(&join, A ":5," B ":2,main:4");
    assert_true(lfs_vector_within(&meet, &a) && lfs_vector_within(&meet, &b));
    assert_true(lfs_vector_within(&a, &join) && lfs_vector_within(&b, &join));
    assert_true(lfs_vector_within(&a, &a));
    assert_false(lfs_vector_within(&a, &b) || lfs_vector_within(&b, &a));
    assert_false(lfs_vector_within(&join, &a));
    assert_prints(&a, A ":5,main:3"); /* the operands stay */
}

static void many_lines(void **state) {
    (void)state;
    enum { N = 500, STEP = 7 }; /* 7 and 500 have no common factor: every number once, out of order */
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    struct lfs_error err;
    struct lfs_vector v;
    lfs_vector_init(&v, arena);
    for (unsigned i = 0; i < N; i++) {
        unsigned k = i * STEP % N;
        char line[33];
        snprintf(line, sizeof line, "%032x", k); /* the vector must copy it */
        assert_ok(lfs_vector_raise(&v, line, k + 1, &err), err);
        assert_ok(lfs_vector_raise(&v, line, 1, &err), err); /* never lowers */
    }
    assert_int_equal(v.count, N);
    for (unsigned k = 0; k < N; k++) {
        assert_int_equal(v.entries[k].version, k + 1);
        assert_int_equal(lfs_vector_get(&v, v.entries[k].line), k + 1);
    }
    LFS_AUTO_BUF buf = {0};
    lfs_vector_print(&v, &buf);
    lfs_buf_add(&buf, "", 1);
    struct lfs_vector again = parse(arena, (const char *)buf.data);
    assert_true(lfs_vector_within(&v, &again) && lfs_vector_within(&again, &v));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts),
        cmocka_unit_test(texts_that_are_refused),
        cmocka_unit_test(order_and_lattice),
        cmocka_unit_test(many_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
