/* SPDX-License-Identifier: Apache-2.0 */
#include "report/line.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

size_t lfs_line_utf8_length(const uint8_t *p, size_t left) {
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t n = p[0] < 0x80 ? 1 : p[0] >> 5 == 6 ? 2 : p[0] >> 4 == 14 ? 3 : p[0] >> 3 == 30 ? 4 : 0;
    if (n < 2 || n > left)
        return n > left ? 0 : n;
    uint32_t code = p[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if (p[i] >> 6 != 2)
            return 0;
        code = code << 6 | (p[i] & 0x3f);
    }
    return code < least[n] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? 0 : n;
}

/* U+0080 to U+009F move a terminal's cursor as well as their older relatives do; U+2028 and U+2029 end a line for some. */
static bool is_control(const uint8_t *p, size_t n) {
    if (n == 1)
        return p[0] < 0x20 || p[0] == 0x7f;
    return (n == 2 && p[0] == 0xc2 && p[1] < 0xa0) ||
           (n == 3 && p[0] == 0xe2 && p[1] == 0x80 && (p[2] == 0xa8 || p[2] == 0xa9));
}

static void put_escaped(struct lfs_buf *out, const uint8_t *p, size_t n) {
    const char *known = "\\\\\tt\nn\rr";
    for (const char *k = known; n == 1 && *k; k += 2)
        if ((uint8_t)*k == p[0]) {
            lfs_buf_printf(out, "\\%c", k[1]);
            return;
        }
    for (size_t i = 0; i < n; i++)
        lfs_buf_printf(out, "\\x%02X", p[i]);
}

void lfs_line_escape(struct lfs_buf *out, const void *bytes, size_t length) {
    const uint8_t *p = bytes;
    for (size_t i = 0, from = 0; i <= length;) {
        size_t n = i < length ? lfs_line_utf8_length(p + i, length - i) : 0;
        if (i < length && n && p[i] != '\\' && !is_control(p + i, n)) {
            i += n;
            continue;
        }
        if (i > from)
            lfs_buf_add(out, p + from, i - from);
        if (i < length)
            put_escaped(out, p + i, n ? n : 1);
        i += n ? n : 1;
        from = i;
    }
}

static void begin_field(struct lfs_buf *out) {
    if (out->length && out->data[out->length - 1] != '\n')
        lfs_buf_puts(out, "\t");
}

void lfs_line_bytes(struct lfs_buf *out, const void *bytes, size_t length) {
    begin_field(out);
    if (length == 0)
        lfs_buf_puts(out, "-");
    else if (length == 1 && *(const char *)bytes == '-')
        lfs_buf_puts(out, "\\-");
    else
        lfs_line_escape(out, bytes, length);
}

void lfs_line_text(struct lfs_buf *out, const char *text) { lfs_line_bytes(out, text, text ? strlen(text) : 0); }

void lfs_line_number(struct lfs_buf *out, uint64_t number) {
    begin_field(out);
    lfs_buf_printf(out, "%" PRIu64, number);
}

void lfs_line_time(struct lfs_buf *out, struct timespec time) {
    char text[40];
    struct tm tm;
    begin_field(out);
    if ((time.tv_sec == 0 && time.tv_nsec == 0) || !gmtime_r(&time.tv_sec, &tm) || tm.tm_year < 0 ||
        tm.tm_year > 8099) {
        lfs_buf_puts(out, "-");
        return;
    }
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm);
    lfs_buf_printf(out, "%s.%03ldZ", text, time.tv_nsec / 1000000);
}

void lfs_line_words(struct lfs_buf *out, const char *format, ...) {
    char text[256];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    begin_field(out);
    lfs_buf_puts(out, n > 0 ? text : "-");
}

void lfs_line_end(struct lfs_buf *out) { lfs_buf_puts(out, "\n"); }

void lfs_line_comment(struct lfs_buf *out, const char *word, const char *text) {
    lfs_buf_printf(out, "# %s: ", word);
    lfs_line_escape(out, text, strlen(text));
    lfs_buf_puts(out, "\n");
}
