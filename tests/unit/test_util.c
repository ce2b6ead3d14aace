/* SPDX-License-Identifier: Apache-2.0 */
#include "common.h"

#include <errno.h>
#include <limits.h>

#include "util/buf.h"
#include "util/cleanup.h"
#include "util/map.h"

static void arena_gives_zeroed_aligned_memory(void **state) {
    (void)state;
    static const size_t sizes[] = {0, 1, 15, 16, 17, 4095, 4096, 5000, 1 << 20, 3 << 20};
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    assert_non_null(arena);
    for (size_t round = 0; round < 3; round++)
        for (size_t i = 0; i < COUNT(sizes); i++) {
            unsigned char *p = lfs_alloc(arena, sizes[i]);
            assert_non_null(p);
            assert_int_equal((uintptr_t)p % _Alignof(max_align_t), 0);
            for (size_t j = 0; j < sizes[i]; j++)
                if (p[j])
                    fail_msg("byte %zu of %zu is not zero", j, sizes[i]);
            memset(p, 0xff, sizes[i]);
        }
    size_t sum = 0;
    for (size_t i = 0; i < COUNT(sizes); i++)
        sum += 3 * sizes[i];
    assert_true(lfs_arena_size(arena) >= sum);
}

static void arena_refuses_sizes_that_overflow(void **state) {
    (void)state;
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    assert_null(lfs_alloc_array(arena, SIZE_MAX / 2, 3));
    assert_null(lfs_alloc(arena, SIZE_MAX));
    assert_null(lfs_alloc(arena, SIZE_MAX - 15));
    assert_null(lfs_strndup(arena, "x", SIZE_MAX));
    assert_non_null(lfs_alloc(arena, 1)); /* and goes on after that */
    lfs_arena_free(NULL);
}

static void arena_copies_text(void **state) {
    (void)state;
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    const char *text = "lance";
    char *copy = lfs_strdup(arena, text);
    assert_string_equal(copy, "lance");
    assert_ptr_not_equal(copy, text);
    assert_string_equal(lfs_strndup(arena, text, 2), "la");
    assert_string_equal(lfs_sprintf(arena, "%d-%s", 7, "x"), "7-x");
    char wide[5001];
    memset(wide, 'w', 5000);
    wide[5000] = 0;
    assert_string_equal(lfs_sprintf(arena, "%s", wide), wide);
    assert_memory_equal(lfs_memdup(arena, "a\0b", 3), "a\0b", 3);
    assert_non_null(lfs_memdup(arena, NULL, 0));
}

static void arena_serves_protobuf(void **state) {
    (void)state;
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    ProtobufCAllocator *allocator = lfs_arena_protobuf(arena);
    void *p = allocator->alloc(allocator->allocator_data, 100);
    assert_non_null(p);
    allocator->free(allocator->allocator_data, p);
    memset(p, 1, 100); /* freed as a whole only */
}

static void buf_grows(void **state) {
    (void)state;
    LFS_AUTO_BUF buf = {0};
    struct lfs_error err;
    lfs_buf_add(&buf, NULL, 0);
    assert_null(buf.data);
    assert_non_null(lfs_buf_extend(&buf, 0));
    assert_int_equal(buf.length, 0);
    lfs_buf_puts(&buf, "ab");
    lfs_buf_printf(&buf, "%03d", 7);
    lfs_buf_u32le(&buf, 0x04030201);
    lfs_buf_u64le(&buf, 0x0807060504030201);
    static const uint8_t expected[] = "ab007\1\2\3\4\1\2\3\4\5\6\7\10";
    assert_int_equal(buf.length, sizeof expected - 1);
    assert_memory_equal(buf.data, expected, sizeof expected - 1);
    for (int i = 0; i < 10000; i++)
        lfs_buf_add(&buf, "x", 1);
    assert_int_equal(buf.length, sizeof expected - 1 + 10000);
    assert_ok(lfs_buf_check(&buf, &err), err);
    lfs_buf_clear(&buf);
    assert_int_equal(buf.length, 0);
    assert_true(buf.capacity > 10000);
}

static void buf_remembers_a_failure(void **state) {
    (void)state;
    LFS_AUTO_BUF buf = {0};
    struct lfs_error err;
    lfs_buf_puts(&buf, "kept");
    assert_null(lfs_buf_extend(&buf, SIZE_MAX));
    lfs_buf_puts(&buf, "dropped");
    assert_null(lfs_buf_extend(&buf, 1));
    assert_int_equal(buf.length, 4);
    assert_fails(lfs_buf_check(&buf, &err), err, LFS_E_NOMEM, "out of memory");
    lfs_buf_clear(&buf);
    lfs_buf_puts(&buf, "again");
    assert_int_equal(lfs_buf_check(&buf, NULL), 0);
}

static void map_keeps_the_order_of_insertion(void **state) {
    (void)state;
    enum { N = 5000 };
    static int values[N];
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    struct lfs_map map;
    lfs_map_init(&map, arena);
    assert_null(lfs_map_get(&map, "absent"));
    for (int i = 0; i < N; i++)
        assert_true(lfs_map_put(&map, lfs_sprintf(arena, "key-%d", i), &values[i]));
    assert_int_equal(map.count, N);
    for (int i = 0; i < N; i++) {
        assert_ptr_equal(lfs_map_get(&map, lfs_sprintf(arena, "key-%d", i)), &values[i]);
        assert_ptr_equal(map.entries[i].value, &values[i]);
    }
    assert_null(lfs_map_get(&map, "key-5000"));
    assert_null(lfs_map_get(&map, ""));
    assert_true(lfs_map_put(&map, "key-7", &values[0]));
    assert_int_equal(map.count, N);
    assert_ptr_equal(lfs_map_get(&map, "key-7"), &values[0]);
}

static void hash_depends_on_all_it_is_given(void **state) {
    (void)state;
    assert_int_equal(lfs_hash("ab", 2, 1), lfs_hash("ab", 2, 1));
    assert_true(lfs_hash("ab", 2, 1) != lfs_hash("ab", 2, 2));
    assert_true(lfs_hash("ab", 2, 1) != lfs_hash("ba", 2, 1));
    assert_true(lfs_hash("a\0", 2, 1) != lfs_hash("a", 1, 1));
}

static void errors_carry_code_errno_and_sentence(void **state) {
    (void)state;
    static const struct {
        enum lfs_code code;
        int sys_errno;
    } table[] = {/* interface: what the kernel's caller sees */
                 {LFS_E_USAGE, EINVAL},       {LFS_E_NOT_FOUND, ENOENT},
                 {LFS_E_CORRUPT, EIO},        {LFS_E_UNSUPPORTED, EOPNOTSUPP},
                 {LFS_E_CONFLICT, ECANCELED}, {LFS_E_STALE, ESTALE},
                 {LFS_E_RACE, EAGAIN},        {LFS_E_NO_BASE, ENODATA},
                 {LFS_E_DENIED, EPERM},       {LFS_E_FORBIDDEN, EACCES},
                 {LFS_E_READ_ONLY, EROFS},    {LFS_E_INTERRUPTED, EINTR},
                 {LFS_E_TOO_BIG, EFBIG},      {LFS_E_NOMEM, ENOMEM}};
    struct lfs_error err;
    for (size_t i = 0; i < COUNT(table); i++) {
        assert_int_equal(lfs_fail(&err, table[i].code, "file %d", 7), -table[i].sys_errno);
        assert_int_equal(err.code, table[i].code);
        assert_int_equal(err.sys_errno, table[i].sys_errno);
        assert_string_equal(err.message, "file 7");
        assert_int_equal(lfs_fail(NULL, table[i].code, "x"), -table[i].sys_errno);
    }
    assert_int_equal(lfs_fail_errno(&err, ENOTDIR, "cannot open %s", "a/b"), -ENOTDIR);
    assert_int_equal(err.code, LFS_E_SYSTEM);
    assert_string_equal(err.message, "cannot open a/b: Not a directory");
    char wide[4001];
    memset(wide, 'w', 4000);
    wide[4000] = 0;
    assert_int_equal(lfs_fail_errno(&err, EIO, "%s", wide), -EIO);
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
}

static int leave_a_scope(void) {
    LFS_AUTO_FREE char *text = malloc(10);
    LFS_AUTO_FD fd = dup(0);
    assert_true(fd >= 0 && text);
    errno = ENOSPC;
    return fd;
}

static void cleanup_keeps_errno(void **state) {
    (void)state;
    int fd = leave_a_scope();
    assert_int_equal(errno, ENOSPC);
    assert_int_equal(close(fd), -1); /* it was closed */
    LFS_AUTO_FREE char *owner = strdup("x");
    char *taken = LFS_STEAL_PTR(owner);
    assert_null(owner);
    free(taken);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arena_gives_zeroed_aligned_memory),
        cmocka_unit_test(arena_refuses_sizes_that_overflow),
        cmocka_unit_test(arena_copies_text),
        cmocka_unit_test(arena_serves_protobuf),
        cmocka_unit_test(buf_grows),
        cmocka_unit_test(buf_remembers_a_failure),
        cmocka_unit_test(map_keeps_the_order_of_insertion),
        cmocka_unit_test(hash_depends_on_all_it_is_given),
        cmocka_unit_test(errors_carry_code_errno_and_sentence),
        cmocka_unit_test(cleanup_keeps_errno),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
