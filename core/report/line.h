/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of reports: fields separated by tabs, ended by a newline. An empty field is "-". In text that comes from a data
 * set a backslash is \\, a tab \t, a newline \n, a carriage return \r; every other control character and every byte that
 * is not UTF-8 is \xHH, byte by byte; a text that is just "-" is \-.
 */
#ifndef LFS_REPORT_LINE_H
#define LFS_REPORT_LINE_H

#include <inttypes.h>
#include <stdint.h>
#include <time.h>

#include "util/buf.h"

/* Each appends one field; the tab before it where one is needed. NULL or "" is an empty field. */
void lfs_line_text(struct lfs_buf *out, const char *text);
void lfs_line_bytes(struct lfs_buf *out, const void *bytes, size_t length);
void lfs_line_number(struct lfs_buf *out, uint64_t number);
void lfs_line_time(struct lfs_buf *out, struct timespec time); /* UTC, RFC 3339, milliseconds; zero is empty */
/* A field of the program's own words; arguments must not hold a data set's text. */
void lfs_line_words(struct lfs_buf *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
void lfs_line_end(struct lfs_buf *out);

/* Part of a field: text escaped as in a field, nothing before or after it. */
void lfs_line_escape(struct lfs_buf *out, const void *bytes, size_t length);

/* The length of the UTF-8 sequence at `p`, 0 when it is none (too long, a surrogate, over U+10FFFF, cut). */
size_t lfs_line_utf8_length(const uint8_t *p, size_t left);

/* A whole line "# <word>: <text>". */
void lfs_line_comment(struct lfs_buf *out, const char *word, const char *text);

#endif
