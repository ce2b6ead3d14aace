/* SPDX-License-Identifier: Apache-2.0 */
#include "format/roaring_check.h"

#include <stdbool.h>

#include "format/flatbuf.h"
#include "util/cleanup.h"
#include "util/limits.h"

/*
 * The portable format, from the roaring format specification (github.com/RoaringBitmap/RoaringFormatSpec):
 *   u32 cookie 12346, u32 number of containers; or u16 cookie 12347, u16 number - 1, one bit a container: is it runs?
 *   for each container u16 key, u16 cardinality - 1
 *   for each container u32 offset from the beginning; left out with cookie 12347 and fewer than 4 containers
 *   the containers: runs (u16 number, then u16 start, u16 length - 1 for each), else, with more than 4096 values, 8192
 *   bytes of bits, else u16 values
 */
enum { COOKIE_NO_RUNS = 12346, COOKIE = 12347, NO_OFFSETS_BELOW = 4, CONTAINERS_MAX = 1 << 16 };
enum { ARRAY_MAX = 4096, BITS_SIZE = 8192 };

struct walk {
    const uint8_t *bytes;
    size_t length, at;
    size_t n;              /* containers */
    const uint8_t *runs;   /* the bits that say which containers are runs, or NULL */
    const uint8_t *keys;   /* n times u16 key, u16 cardinality - 1 */
    const uint8_t *places; /* n times u32, or NULL */
    const char *what;
    struct lfs_error *err;
};

static errint_t corrupt(const struct walk *w, const char *why) {
    return lfs_fail(w->err, LFS_E_CORRUPT, "%s is not a valid bitmap deletion file: %s", w->what, why);
}

/* The next `size` bytes, or NULL when there are not as many. */
static const uint8_t *take(struct walk *w, size_t size) {
    if (size > w->length - w->at)
        return NULL;
    const uint8_t *start = w->bytes + w->at;
    w->at += size;
    return start;
}

static errint_t read_head(struct walk *w) {
    const uint8_t *head = take(w, 4);
    if (!head)
        return corrupt(w, "it is too short");
    uint32_t cookie = lfs_get_u32le(head);
    if (cookie == COOKIE_NO_RUNS) {
        const uint8_t *count = take(w, 4);
        if (!count)
            return corrupt(w, "it is too short");
        w->n = lfs_get_u32le(count);
    } else if ((cookie & 0xffff) == COOKIE) {
        w->n = (cookie >> 16) + 1;
        w->runs = take(w, (w->n + 7) / 8);
        if (!w->runs)
            return corrupt(w, "it is too short");
    } else {
        return corrupt(w, "it does not begin as one");
    }
    if (w->n > CONTAINERS_MAX)
        return corrupt(w, "it has too many containers");
    w->keys = take(w, w->n * 4);
    bool has_places = cookie == COOKIE_NO_RUNS || w->n >= NO_OFFSETS_BELOW;
    w->places = w->keys && has_places ? take(w, w->n * 4) : NULL;
    return !w->keys || (has_places && !w->places) ? corrupt(w, "it is too short") : 0;
}

static errint_t check_runs(struct walk *w, uint32_t cardinality) {
    const uint8_t *head = take(w, 2);
    size_t n = head ? lfs_get_u16le(head) : 0;
    const uint8_t *runs = take(w, n * 4);
    if (!head || !runs)
        return corrupt(w, "a run container is cut short");
    uint32_t sum = 0, least = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t start = lfs_get_u16le(runs + 4 * i), last = start + lfs_get_u16le(runs + 4 * i + 2);
        if (start < least || last > 0xffff)
            return corrupt(w, "a run container is out of order");
        sum += last - start + 1;
        least = last + 1;
    }
    return sum == cardinality ? 0 : corrupt(w, "a run container does not hold as many rows as it says");
}

static errint_t check_bits(struct walk *w, uint32_t cardinality) {
    const uint8_t *bits = take(w, BITS_SIZE);
    if (!bits)
        return corrupt(w, "a bitmap container is cut short");
    uint32_t sum = 0;
    for (size_t i = 0; i < BITS_SIZE; i += 8)
        sum += (uint32_t)__builtin_popcountll(lfs_get_u64le(bits + i));
    return sum == cardinality ? 0 : corrupt(w, "a bitmap container does not hold as many rows as it says");
}

static errint_t check_array(struct walk *w, uint32_t cardinality) {
    const uint8_t *values = take(w, (size_t)cardinality * 2);
    if (!values)
        return corrupt(w, "an array container is cut short");
    for (size_t i = 1; i < cardinality; i++)
        if (lfs_get_u16le(values + 2 * i) <= lfs_get_u16le(values + 2 * (i - 1)))
            return corrupt(w, "an array container is out of order");
    return 0;
}

static errint_t check_container(struct walk *w, size_t i, uint32_t cardinality) {
    if (i > 0 && lfs_get_u16le(w->keys + 4 * i) <= lfs_get_u16le(w->keys + 4 * (i - 1)))
        return corrupt(w, "its containers are out of order");
    if (w->places && lfs_get_u32le(w->places + 4 * i) != w->at)
        return corrupt(w, "a container is not where it says");
    if (w->runs && (w->runs[i / 8] >> (i % 8) & 1))
        return check_runs(w, cardinality);
    return cardinality > ARRAY_MAX ? check_bits(w, cardinality) : check_array(w, cardinality);
}

errint_t lfs_roaring_check(const uint8_t *bytes, size_t length, const char *what, struct lfs_error *err) {
    struct walk w = {.bytes = bytes, .length = length, .what = what, .err = err};
    uint64_t rows = 0;
    LFS_TRY(read_head(&w));
    for (size_t i = 0; i < w.n; i++) {
        uint32_t cardinality = lfs_get_u16le(w.keys + 4 * i + 2) + 1u;
        LFS_TRY(check_container(&w, i, cardinality));
        rows += cardinality;
    }
    if (w.at != length)
        return corrupt(&w, "there are bytes behind its end");
    if (rows > LFS_DELETION_ROWS_MAX)
        return lfs_fail(err, LFS_E_TOO_BIG, "%s names %llu rows", what, (unsigned long long)rows);
    return 0;
}
