/* SPDX-License-Identifier: Apache-2.0 */
#include "util/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void lfs_buf_free(struct lfs_buf *buf) {
    free(buf->data);
    *buf = (struct lfs_buf){0};
}

void lfs_buf_clear(struct lfs_buf *buf) {
    buf->length = 0;
    buf->failed = false;
}

bool lfs_buf_reserve(struct lfs_buf *buf, size_t more) {
    size_t need, capacity;
    if (buf->failed || __builtin_add_overflow(buf->length, more, &need))
        return false;
    if (buf->data && need <= buf->capacity) /* also room for nothing is a place, not NULL */
        return true;
    if (__builtin_mul_overflow(buf->capacity, 2, &capacity) || capacity < need)
        capacity = need;
    if (capacity < 64)
        capacity = 64;
    uint8_t *data = realloc(buf->data, capacity);
    if (!data)
        return false;
    buf->data = data;
    buf->capacity = capacity;
    return true;
}

uint8_t *lfs_buf_extend(struct lfs_buf *buf, size_t length) {
    if (!lfs_buf_reserve(buf, length)) {
        buf->failed = true;
        return NULL;
    }
    uint8_t *start = buf->data + buf->length;
    buf->length += length;
    return start;
}

void lfs_buf_add(struct lfs_buf *buf, const void *bytes, size_t length) {
    if (!length)
        return;
    uint8_t *start = lfs_buf_extend(buf, length);
    if (start)
        memcpy(start, bytes, length);
}

void lfs_buf_puts(struct lfs_buf *buf, const char *text) { lfs_buf_add(buf, text, strlen(text)); }

void lfs_buf_printf(struct lfs_buf *buf, const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n < 0 || !lfs_buf_reserve(buf, (size_t)n + 1)) { /* vsnprintf wants room for its NUL */
        buf->failed = true;
    } else {
        vsnprintf((char *)buf->data + buf->length, (size_t)n + 1, format, again);
        buf->length += (size_t)n;
    }
    va_end(again);
}

void lfs_buf_u32le(struct lfs_buf *buf, uint32_t value) {
    uint8_t b[4];
    for (int i = 0; i < 4; i++)
        b[i] = (uint8_t)(value >> (8 * i));
    lfs_buf_add(buf, b, sizeof b);
}

void lfs_buf_u64le(struct lfs_buf *buf, uint64_t value) {
    lfs_buf_u32le(buf, (uint32_t)value);
    lfs_buf_u32le(buf, (uint32_t)(value >> 32));
}

errint_t lfs_buf_check(const struct lfs_buf *buf, struct lfs_error *err) { return buf->failed ? lfs_fail_nomem(err) : 0; }
