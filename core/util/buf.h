/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growing byte buffer that never fails in the middle: when memory is short it drops what comes and remembers it, so
 * that a writer checks once, at the end (lfs_buf_check).
 */
#ifndef LFS_UTIL_BUF_H
#define LFS_UTIL_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/error.h"

struct lfs_buf {
    uint8_t *data; /* owned; NULL while empty */
    size_t length, capacity;
    bool failed;
};

void lfs_buf_free(struct lfs_buf *buf);
void lfs_buf_clear(struct lfs_buf *buf); /* length 0, memory kept */
void lfs_buf_add(struct lfs_buf *buf, const void *bytes, size_t length);
void lfs_buf_puts(struct lfs_buf *buf, const char *text);
void lfs_buf_printf(struct lfs_buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
void lfs_buf_u32le(struct lfs_buf *buf, uint32_t value);
void lfs_buf_u64le(struct lfs_buf *buf, uint64_t value);
/* Memory for `more` bytes, so that they come without another copy of all; the length stays. False when memory is short. */
bool lfs_buf_reserve(struct lfs_buf *buf, size_t more);
/* Room for `length` more bytes, whose start is returned; the length grows. NULL when memory is short. */
uint8_t *lfs_buf_extend(struct lfs_buf *buf, size_t length);
errint_t lfs_buf_check(const struct lfs_buf *buf, struct lfs_error *err);

#endif
