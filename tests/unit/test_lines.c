/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fuse/lines.h"
#include "util/limits.h"

/* Feed `bytes` and write the events down: "c:TEXT;" command, "e;" empty, "#;" comment, "r;" refused. */
static void feed(struct lfs_linebuf *lines, const char *bytes, size_t length, char *out) {
    const char *command = NULL;
    for (;;) {
        enum lfs_line_event event = lfs_linebuf_next(lines, &bytes, &length, &command);
        if (event == LFS_LINE_MORE)
            return;
        if (event == LFS_LINE_COMMAND) {
            strcat(out, "c:");
            strcat(out, strlen(command) < 100 ? command : "long");
        } else {
            strcat(out, event == LFS_LINE_EMPTY ? "e" : event == LFS_LINE_COMMENT ? "#" : "r");
        }
        strcat(out, ";");
    }
}

static void table_of_single_writes(void **state) {
    static const struct {
        const char *in, *events;
    } rules[] = {
        {"feature\n", "c:feature;"},
        {" \tfeature ff=only \t\r\n", "c:feature ff=only;"},
        {"\n", "e;"},
        {" \t\r\n", "e;"},
        {"a\nb\n", "c:a;c:b;"},
        {"a\n\nb", "c:a;e;"},
        {"# usage\n", "#;"},
        {"  # usage\n", "#;"},
        {"feature # not a comment\n", "c:feature # not a comment;"},
        {"feature", ""},
        {"", ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        struct lfs_linebuf lines = {0};
        char out[256] = "";
        feed(&lines, rules[i].in, strlen(rules[i].in), out);
        assert_string_equal(out, rules[i].events);
        lfs_linebuf_free(&lines);
    }
}

static void a_line_in_any_number_of_writes_is_one_command(void **state) {
    (void)state;
    struct lfs_linebuf lines = {0};
    char out[256] = "";
    const char *text = " feature mode=link\r\nother\n";
    for (const char *p = text; *p; p++)
        feed(&lines, p, 1, out);
    assert_string_equal(out, "c:feature mode=link;c:other;");
    assert_false(lfs_linebuf_pending(&lines));
    lfs_linebuf_free(&lines);
}

static void the_end_hands_out_an_unterminated_line_once(void **state) {
    (void)state;
    struct lfs_linebuf lines = {0};
    char out[256] = "";
    const char *command = NULL;
    assert_int_equal(lfs_linebuf_end(&lines, &command), LFS_LINE_MORE);
    feed(&lines, "fea", 3, out);
    feed(&lines, "ture ", 5, out);
    assert_true(lfs_linebuf_pending(&lines));
    assert_int_equal(lfs_linebuf_end(&lines, &command), LFS_LINE_COMMAND);
    assert_string_equal(command, "feature");
    assert_int_equal(lfs_linebuf_end(&lines, &command), LFS_LINE_MORE);
    feed(&lines, "  ", 2, out);
    assert_int_equal(lfs_linebuf_end(&lines, &command), LFS_LINE_EMPTY);
    assert_string_equal(out, "");
    lfs_linebuf_free(&lines);
}

static void a_nul_refuses_the_whole_line(void **state) {
    (void)state;
    struct lfs_linebuf lines = {0};
    char out[256] = "";
    feed(&lines, "fea\0ture\nnext\n", 14, out);
    assert_string_equal(out, "r;c:next;");
    out[0] = '\0';
    feed(&lines, "fea", 3, out);
    feed(&lines, "\0tu", 3, out);
    feed(&lines, "re\0", 3, out);
    assert_false(lfs_linebuf_pending(&lines));
    feed(&lines, "x\nok\n", 5, out);
    assert_string_equal(out, "r;c:ok;");
    lfs_linebuf_free(&lines);
}

static void what_is_no_command_is_seen_before_anything_is_used(void **state) {
    static const struct {
        const char *before, *bytes;
        size_t length;
        enum lfs_line_event event;
    } rules[] = {
        {"", "feature\n", 8, LFS_LINE_MORE},
        {"fea", "ture\n\nother", 11, LFS_LINE_MORE},
        {"", "feature\n# usage\n", 16, LFS_LINE_COMMENT},
        {"#", "feature\n", 8, LFS_LINE_COMMENT},
        {"", "feature\n# not whole", 19, LFS_LINE_MORE},
        {"", "feature\n\0\0\0", 11, LFS_LINE_REFUSED},
        {"fea", "\0ture\n", 6, LFS_LINE_REFUSED},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        struct lfs_linebuf lines = {0};
        char out[256] = "";
        feed(&lines, rules[i].before, strlen(rules[i].before), out);
        assert_int_equal(lfs_linebuf_foresee(&lines, rules[i].bytes, rules[i].length), rules[i].event);
        assert_int_equal(lines.line.length, strlen(rules[i].before));
        lfs_linebuf_free(&lines);
    }
}

static void a_line_at_the_limit_is_taken_and_one_over_it_refused(void **state) {
    (void)state;
    struct lfs_linebuf lines = {0};
    char out[256] = "";
    char *text = malloc(LFS_COMMAND_BYTES_MAX + 2);
    assert_non_null(text);
    memset(text, 'x', LFS_COMMAND_BYTES_MAX + 1);
    text[LFS_COMMAND_BYTES_MAX] = '\n';
    feed(&lines, text, LFS_COMMAND_BYTES_MAX + 1, out);
    assert_string_equal(out, "c:long;");
    text[LFS_COMMAND_BYTES_MAX] = 'x';
    text[LFS_COMMAND_BYTES_MAX + 1] = '\n';
    feed(&lines, text, LFS_COMMAND_BYTES_MAX + 2, out);
    assert_string_equal(out, "c:long;r;");
    for (int i = 0; i < 40; i++) /* in pieces: said once, the rest dropped */
        feed(&lines, text, 4096, out);
    feed(&lines, "\nok\n", 4, out);
    assert_string_equal(out, "c:long;r;r;c:ok;");
    free(text);
    lfs_linebuf_free(&lines);
}

static void reset_forgets_the_line_under_way(void **state) {
    (void)state;
    struct lfs_linebuf lines = {0};
    char out[256] = "";
    feed(&lines, "half", 4, out);
    lfs_linebuf_reset(&lines);
    assert_false(lfs_linebuf_pending(&lines));
    feed(&lines, "whole\n", 6, out);
    assert_string_equal(out, "c:whole;");
    lfs_linebuf_free(&lines);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_of_single_writes),
        cmocka_unit_test(a_line_in_any_number_of_writes_is_one_command),
        cmocka_unit_test(the_end_hands_out_an_unterminated_line_once),
        cmocka_unit_test(a_nul_refuses_the_whole_line),
        cmocka_unit_test(what_is_no_command_is_seen_before_anything_is_used),
        cmocka_unit_test(a_line_at_the_limit_is_taken_and_one_over_it_refused),
        cmocka_unit_test(reset_forgets_the_line_under_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
