/* SPDX-License-Identifier: Apache-2.0 */
/* Records of reports: nothing that a data set can hold breaks one, and what is escaped can be told from what is not. */
#include "report/line.h"

#include <string.h>

#include "common.h"

/* The field that these bytes make; the buffer ends with its NUL. */
static void expect_field(const char *bytes, size_t length, const char *expected) {
    struct lfs_buf out = {0};
    lfs_line_bytes(&out, bytes, length);
    lfs_buf_add(&out, "", 1);
    assert_string_equal((const char *)out.data, expected);
    lfs_buf_free(&out);
}
#define EXPECT(bytes, expected) expect_field(bytes, sizeof(bytes) - 1, expected)

static void test_escapes(void **state) {
    (void)state;
    EXPECT("", "-");
    EXPECT("-", "\\-");
    EXPECT("--", "--");
    EXPECT("plain text", "plain text");
    EXPECT("a\tb\nc\rd\\e", "a\\tb\\nc\\rd\\\\e");
    EXPECT("\\t", "\\\\t");
    EXPECT("nul\0here", "nul\\x00here");
    EXPECT("\x1b[31m\x7f", "\\x1B[31m\\x7F");
    EXPECT("\xc3\xbc \xf0\x9f\x90\x9f", "\xc3\xbc \xf0\x9f\x90\x9f");
    EXPECT("\xc2\x85\xc2\x9b", "\\xC2\\x85\\xC2\\x9B");                /* C1 controls */
    EXPECT("\xe2\x80\xa8\xe2\x80\xaa", "\\xE2\\x80\\xA8\xe2\x80\xaa"); /* a line separator; its neighbour is none */
}

static void test_not_utf8(void **state) {
    (void)state;
    EXPECT("\xff", "\\xFF");
    EXPECT("\x80", "\\x80");
    EXPECT("a\xc3", "a\\xC3");        /* cut */
    EXPECT("\xc0\x8a", "\\xC0\\x8A"); /* a newline, too long */
    EXPECT("\xe0\x80\x8a", "\\xE0\\x80\\x8A");
    EXPECT("\xed\xa0\x80", "\\xED\\xA0\\x80"); /* a surrogate */
    EXPECT("\xf4\x90\x80\x80", "\\xF4\\x90\\x80\\x80");
    EXPECT("\xc3\nx", "\\xC3\\nx");
}

/* Every pair of bytes makes one field that holds no byte below a blank. */
static void test_every_pair(void **state) {
    (void)state;
    for (unsigned a = 0; a < 256; a++)
        for (unsigned b = 0; b < 256; b++) {
            const char pair[2] = {(char)a, (char)b};
            struct lfs_buf out = {0};
            lfs_line_bytes(&out, pair, 2);
            for (size_t i = 0; i < out.length; i++)
                assert_true(out.data[i] >= 0x20 && out.data[i] != 0x7f);
            for (size_t i = 0; i < out.length;) {
                size_t n = lfs_line_utf8_length(out.data + i, out.length - i);
                assert_true(n > 0);
                i += n;
            }
            lfs_buf_free(&out);
        }
}

static void test_records(void **state) {
    (void)state;
    struct lfs_buf out = {0};
    lfs_line_number(&out, UINT64_MAX);
    lfs_line_text(&out, NULL);
    lfs_line_time(&out, (struct timespec){1, 999999999});
    lfs_line_time(&out, (struct timespec){0, 0});
    lfs_line_time(&out, (struct timespec){INT64_MAX, 0});
    lfs_line_words(&out, "+%d", 3);
    lfs_line_end(&out);
    lfs_line_comment(&out, "note", "a\nb");
    lfs_buf_add(&out, "", 1);
    assert_string_equal((const char *)out.data,
                        "18446744073709551615\t-\t1970-01-01T00:00:01.999Z\t-\t-\t+3\n# note: a\\nb\n");
    lfs_buf_free(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_escapes),
        cmocka_unit_test(test_not_utf8),
        cmocka_unit_test(test_every_pair),
        cmocka_unit_test(test_records),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
