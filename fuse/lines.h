/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The line discipline of control files: bytes in, complete commands out. Pure: it knows nothing of files or of what a
 * command means.
 *
 * A line ends at its newline, in however many pieces it comes. Blanks at either end and a CR before the newline mean
 * nothing. A line over LFS_COMMAND_BYTES_MAX bytes or with a NUL is refused whole, in the piece that shows it; what
 * follows up to its newline is dropped. So that a tool which pads what it writes, or an editor that writes back the text it
 * read, does nothing rather than half of it, a piece is looked at before any of its lines is run.
 */
#ifndef LFS_FUSE_LINES_H
#define LFS_FUSE_LINES_H

#include <stdbool.h>
#include <stddef.h>

#include "util/buf.h"

struct lfs_linebuf {
    struct lfs_buf line; /* what has come of the line under way */
    bool dropping;       /* the line under way was refused: its rest is dropped */
};

enum lfs_line_event {
    LFS_LINE_MORE,    /* the bytes are used up */
    LFS_LINE_EMPTY,   /* a blank line: means nothing */
    LFS_LINE_COMMAND, /* `*command` is a line, trimmed; valid until the next call on these lines */
    LFS_LINE_COMMENT, /* a line that begins with '#': text that was read from a control file, not a command */
    LFS_LINE_REFUSED, /* too long, or a NUL in it; said once a line */
    LFS_LINE_NOMEM,
};

void lfs_linebuf_free(struct lfs_linebuf *lines);
/* Forget the line under way. */
void lfs_linebuf_reset(struct lfs_linebuf *lines);

/* The next event in `*bytes`, `*length`, which are moved past what was used. Call until LFS_LINE_MORE. */
enum lfs_line_event lfs_linebuf_next(struct lfs_linebuf *lines, const char **bytes, size_t *length,
                                     const char **command);

/* What in these bytes is no command, before any of them is used: LFS_LINE_COMMENT, LFS_LINE_REFUSED or LFS_LINE_NOMEM, the
 * first that comes; LFS_LINE_MORE when nothing is. */
enum lfs_line_event lfs_linebuf_foresee(const struct lfs_linebuf *lines, const char *bytes, size_t length);

/* The file was closed: the line under way ends here. LFS_LINE_MORE when there is none. */
enum lfs_line_event lfs_linebuf_end(struct lfs_linebuf *lines, const char **command);

/* Is a line under way that lfs_linebuf_end would hand out? */
bool lfs_linebuf_pending(const struct lfs_linebuf *lines);

#endif
