/* SPDX-License-Identifier: Apache-2.0 */
#include "format/vector.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "util/cleanup.h"

void lfs_vector_init(struct lfs_vector *vector, struct lfs_arena *arena) {
    *vector = (struct lfs_vector){.arena = arena};
}

/* The index of the line, or where it belongs. */
static size_t position(const struct lfs_vector *v, const char *line, bool *found) {
    size_t low = 0, high = v->count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int order = strcmp(v->entries[mid].line, line);
        if (order == 0) {
            *found = true;
            return mid;
        }
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    *found = false;
    return low;
}

uint64_t lfs_vector_get(const struct lfs_vector *vector, const char *line) {
    bool found;
    size_t at = position(vector, line, &found);
    return found ? vector->entries[at].version : 0;
}

errint_t lfs_vector_raise(struct lfs_vector *v, const char *line, uint64_t version, struct lfs_error *err) {
    bool found;
    size_t at = position(v, line, &found);
    if (found) {
        if (version > v->entries[at].version)
            v->entries[at].version = version;
        return 0;
    }
    if (version == 0)
        return 0;
    if (v->count == v->capacity) {
        size_t capacity = v->capacity ? v->capacity * 2 : 8;
        struct lfs_vector_entry *grown = LFS_NEW_ARRAY(v->arena, struct lfs_vector_entry, capacity);
        if (!grown)
            return lfs_fail_nomem(err);
        if (v->count)
            memcpy(grown, v->entries, v->count * sizeof *grown);
        v->entries = grown;
        v->capacity = capacity;
    }
    char *copy = lfs_strdup(v->arena, line);
    if (!copy)
        return lfs_fail_nomem(err);
    memmove(v->entries + at + 1, v->entries + at, (v->count - at) * sizeof *v->entries);
    v->entries[at] = (struct lfs_vector_entry){copy, version};
    v->count++;
    return 0;
}

errint_t lfs_vector_join(struct lfs_vector *vector, const struct lfs_vector *other, struct lfs_error *err) {
    for (size_t i = 0; i < other->count; i++)
        LFS_TRY(lfs_vector_raise(vector, other->entries[i].line, other->entries[i].version, err));
    return 0;
}

errint_t lfs_vector_meet(const struct lfs_vector *a, const struct lfs_vector *b, struct lfs_vector *out,
                         struct lfs_error *err) {
    for (size_t i = 0; i < a->count; i++) {
        uint64_t other = lfs_vector_get(b, a->entries[i].line), own = a->entries[i].version;
        LFS_TRY(lfs_vector_raise(out, a->entries[i].line, own < other ? own : other, err));
    }
    return 0;
}

bool lfs_vector_within(const struct lfs_vector *a, const struct lfs_vector *b) {
    for (size_t i = 0; i < a->count; i++)
        if (a->entries[i].version > lfs_vector_get(b, a->entries[i].line))
            return false;
    return true;
}

/* "main", or the hex digits of a uuid: nothing that could be a path or break the text. */
static bool is_line(const char *text, size_t length) {
    if (length == 4 && memcmp(text, "main", 4) == 0)
        return true;
    if (length == 0 || length > 64)
        return false;
    for (size_t i = 0; i < length; i++)
        if (!strchr("0123456789abcdefABCDEF-", text[i]))
            return false;
    return true;
}

errint_t lfs_vector_parse(struct lfs_vector *vector, const char *text, const char *what, struct lfs_error *err) {
    for (const char *p = text; *p;) {
        size_t length = strcspn(p, ":,");
        char line[65];
        if (p[length] != ':' || !is_line(p, length))
            return lfs_fail(err, LFS_E_CORRUPT, "%s: %s is not a version vector", what, LFS_KEY_VECTOR);
        memcpy(line, p, length);
        line[length] = 0;
        p += length + 1;
        uint64_t version = 0;
        bool fits = *p >= '0' && *p <= '9';
        for (; *p >= '0' && *p <= '9'; p++)
            fits = fits && !__builtin_mul_overflow(version, 10, &version) &&
                   !__builtin_add_overflow(version, (uint64_t)(*p - '0'), &version);
        if (!fits || version > INT64_MAX || (*p && *p != ',')) /* bit 63 is that of detached versions */
            return lfs_fail(err, LFS_E_CORRUPT, "%s: %s is not a version vector", what, LFS_KEY_VECTOR);
        LFS_TRY(lfs_vector_raise(vector, line, version, err));
        p += *p == ',';
    }
    return 0;
}

void lfs_vector_print(const struct lfs_vector *vector, struct lfs_buf *out) {
    for (size_t i = 0; i < vector->count; i++)
        lfs_buf_printf(out, "%s%s:%" PRIu64, i ? "," : "", vector->entries[i].line, vector->entries[i].version);
}

/* One "<line>:<version>" of a list. Moves *text on; false at the end. A malformed entry has an empty line. */
static bool next_pick(const char **text, char line[65], uint64_t *version) {
    const char *p = *text;
    if (!*p)
        return false;
    size_t length = strcspn(p, ",");
    const char *colon = memchr(p, ':', length);
    line[0] = 0;
    if (colon && is_line(p, (size_t)(colon - p))) {
        memcpy(line, p, (size_t)(colon - p));
        line[colon - p] = 0;
        *version = strtoull(colon + 1, NULL, 10);
    }
    *text = p + length + (p[length] == ',');
    return true;
}

bool lfs_picked_has(const char *picked, const char *line, uint64_t version) {
    char found[65];
    uint64_t number = 0;
    while (next_pick(&picked, found, &number))
        if (number == version && strcmp(found, line) == 0)
            return true;
    return false;
}

void lfs_picked_join(struct lfs_buf *out, const char *picked, const struct lfs_vector *vector) {
    char line[65];
    uint64_t number = 0;
    while (next_pick(&picked, line, &number)) {
        if (!line[0] || lfs_vector_get(vector, line) >= number)
            continue;
        lfs_buf_add(out, "", 1); /* as a string for a moment */
        bool there = !out->failed && lfs_picked_has((const char *)out->data, line, number);
        out->length -= !out->failed;
        if (!there)
            lfs_buf_printf(out, "%s%s:%" PRIu64, out->length ? "," : "", line, number);
    }
}
