/* SPDX-License-Identifier: Apache-2.0 */
#include "fuse/lines.h"

#include <string.h>

#include "util/limits.h"

void lfs_linebuf_free(struct lfs_linebuf *lines) {
    lfs_buf_free(&lines->line);
    lines->dropping = false;
}

void lfs_linebuf_reset(struct lfs_linebuf *lines) {
    lfs_buf_clear(&lines->line);
    lines->dropping = false;
}

bool lfs_linebuf_pending(const struct lfs_linebuf *lines) { return !lines->dropping && lines->line.length > 0; }

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

/* The line under way is complete: trim it and say what it is. Its bytes stay in the buffer until the next call. */
static enum lfs_line_event complete(struct lfs_linebuf *lines, const char **command) {
    struct lfs_buf *line = &lines->line;
    lfs_buf_add(line, "", 1);
    if (line->failed)
        return LFS_LINE_NOMEM;
    char *start = (char *)line->data, *end = start + line->length - 1;
    while (end > start && is_blank(end[-1]))
        end--;
    *end = '\0';
    while (is_blank(*start))
        start++;
    lfs_buf_clear(line); /* the memory stays: `start` is good until bytes are added */
    *command = start;
    if (!*start)
        return LFS_LINE_EMPTY;
    return *start == '#' ? LFS_LINE_COMMENT : LFS_LINE_COMMAND;
}

static enum lfs_line_event refuse(struct lfs_linebuf *lines, bool ended) {
    lfs_buf_clear(&lines->line);
    lines->dropping = !ended;
    return LFS_LINE_REFUSED;
}

enum lfs_line_event lfs_linebuf_next(struct lfs_linebuf *lines, const char **bytes, size_t *length,
                                     const char **command) {
    while (*length) {
        const char *piece = *bytes, *newline = memchr(piece, '\n', *length);
        size_t n = newline ? (size_t)(newline - piece) : *length;
        size_t used = newline ? n + 1 : n;
        *bytes += used;
        *length -= used;
        if (lines->dropping) {
            lines->dropping = !newline;
            continue;
        }
        if (n > LFS_COMMAND_BYTES_MAX - lines->line.length || memchr(piece, '\0', n))
            return refuse(lines, newline != NULL);
        lfs_buf_add(&lines->line, piece, n);
        if (lines->line.failed) {
            refuse(lines, newline != NULL);
            return LFS_LINE_NOMEM;
        }
        if (newline)
            return complete(lines, command);
    }
    return LFS_LINE_MORE;
}

enum lfs_line_event lfs_linebuf_foresee(const struct lfs_linebuf *lines, const char *bytes, size_t length) {
    struct lfs_linebuf copy = {.dropping = lines->dropping};
    const char *command;
    enum lfs_line_event event;
    lfs_buf_add(&copy.line, lines->line.data, lines->line.length);
    do
        event = copy.line.failed ? LFS_LINE_NOMEM : lfs_linebuf_next(&copy, &bytes, &length, &command);
    while (event == LFS_LINE_EMPTY || event == LFS_LINE_COMMAND);
    lfs_linebuf_free(&copy);
    return event;
}

enum lfs_line_event lfs_linebuf_end(struct lfs_linebuf *lines, const char **command) {
    bool pending = lfs_linebuf_pending(lines);
    lines->dropping = false;
    return pending ? complete(lines, command) : LFS_LINE_MORE;
}
