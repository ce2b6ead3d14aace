/* SPDX-License-Identifier: Apache-2.0 */
/* What the unit tests share. A program each; run from the source root, or with LFS_TEST_DATA naming tests/unit/data. */
#ifndef LFS_TESTS_UNIT_COMMON_H
#define LFS_TESTS_UNIT_COMMON_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "util/arena.h"
#include "util/error.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char *const test_engines[] = {"lance10", "lance12"};

struct test_file {
    char name[128];
    uint8_t *bytes; /* exactly `length` of them, so that a sanitizer sees the first byte read too far */
    size_t length;
};

static inline struct test_file test_read(const char *name) {
    const char *dir = getenv("LFS_TEST_DATA");
    struct test_file file = {0};
    char path[4096];
    snprintf(file.name, sizeof file.name, "%s", name);
    snprintf(path, sizeof path, "%s/%s", dir ? dir : "tests/unit/data", name);
    FILE *stream = fopen(path, "rb");
    if (!stream)
        fail_msg("cannot open %s", path);
    assert_int_equal(fseek(stream, 0, SEEK_END), 0);
    long end = ftell(stream);
    assert_true(end >= 0);
    rewind(stream);
    file.length = (size_t)end;
    file.bytes = malloc(file.length ? file.length : 1);
    assert_non_null(file.bytes);
    assert_int_equal(fread(file.bytes, 1, file.length, stream), file.length);
    fclose(stream);
    return file;
}

static inline struct test_file test_read_of(const char *engine, const char *name) {
    char full[128];
    snprintf(full, sizeof full, "%s-%s", engine, name);
    return test_read(full);
}

static inline void test_file_free(struct test_file *file) { free(file->bytes); }

static inline uint8_t *test_copy(const void *bytes, size_t length) {
    uint8_t *copy = malloc(length ? length : 1);
    assert_non_null(copy);
    if (length)
        memcpy(copy, bytes, length);
    return copy;
}

#define assert_ok(expression, err)                                                                                     \
    do {                                                                                                               \
        errint_t result_ = (expression);                                                                               \
        if (result_)                                                                                                   \
            fail_msg("%s: %d: %s", #expression, result_, (err).message);                                               \
    } while (0)

/* The code, its errno, and a sentence in which `text` stands. */
#define assert_fails(expression, err, expected, text)                                                                  \
    do {                                                                                                               \
        (err) = (struct lfs_error){0};                                                                                 \
        assert_int_equal((expression), -lfs_code_errno(expected));                                                     \
        assert_int_equal((err).code, (expected));                                                                      \
        if (!strstr((err).message, (text)))                                                                            \
            fail_msg("\"%s\" does not say \"%s\"", (err).message, (text));                                             \
    } while (0)

/* Call `check` with every truncation of the file and with every byte damaged in turn in four ways. The bytes that it
 * sees are an allocation of their own. */
static inline void test_damage(const struct test_file *file, void (*check)(const uint8_t *bytes, size_t length)) {
    for (size_t length = 0; length < file->length; length++) {
        uint8_t *copy = test_copy(file->bytes, length);
        check(copy, length);
        free(copy);
    }
    uint8_t *copy = test_copy(file->bytes, file->length);
    for (size_t i = 0; i < file->length; i++) {
        const uint8_t old = copy[i], damaged[] = {(uint8_t)(old ^ 1), (uint8_t)(old ^ 0x80), (uint8_t)~old, 0};
        for (size_t j = 0; j < COUNT(damaged); j++) {
            copy[i] = damaged[j];
            check(copy, file->length);
        }
        copy[i] = old;
    }
    free(copy);
}

#endif
