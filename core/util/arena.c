/* SPDX-License-Identifier: Apache-2.0 */
#include "util/arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK_FIRST = 4096, CHUNK_MAX = 1 << 20, ALIGN = 16 };

struct chunk {
    struct chunk *next;
    size_t size, used;
    _Alignas(ALIGN) unsigned char bytes[];
};

struct lfs_arena {
    struct chunk *chunks; /* the newest first */
    size_t next_size, total;
    bool ran_short;
    ProtobufCAllocator protobuf;
};

static void *take(struct lfs_arena *arena, size_t size);

/* Unpacking sets all that it asks room for. */
static void *protobuf_alloc(void *arena, size_t size) {
    void *p = take(arena, size);
    if (!p)
        ((struct lfs_arena *)arena)->ran_short = true;
    return p;
}
static void protobuf_free(void *arena, void *pointer) {
    (void)arena;
    (void)pointer;
}

struct lfs_arena *lfs_arena_new(void) {
    struct lfs_arena *arena = calloc(1, sizeof *arena);
    if (!arena)
        return NULL;
    arena->next_size = CHUNK_FIRST;
    arena->protobuf = (ProtobufCAllocator){protobuf_alloc, protobuf_free, arena};
    return arena;
}

void lfs_arena_free(struct lfs_arena *arena) {
    if (!arena)
        return;
    for (struct chunk *c = arena->chunks, *next; c; c = next) {
        next = c->next;
        free(c);
    }
    free(arena);
}

static struct chunk *add_chunk(struct lfs_arena *arena, size_t least) {
    size_t size = arena->next_size > least ? arena->next_size : least;
    if (size > SIZE_MAX - sizeof(struct chunk))
        return NULL;
    struct chunk *c = malloc(sizeof *c + size);
    if (!c)
        return NULL;
    c->size = size;
    c->used = 0;
    c->next = arena->chunks;
    arena->chunks = c;
    if (arena->next_size < CHUNK_MAX)
        arena->next_size *= 2;
    return c;
}

/* Whatever was there before stands in it: only what is asked for is zeroed, when it is, not a chunk as a whole. */
static void *take(struct lfs_arena *arena, size_t size) {
    if (size > SIZE_MAX - ALIGN)
        return NULL;
    size_t rounded = size ? (size + ALIGN - 1) & ~(size_t)(ALIGN - 1) : ALIGN;
    struct chunk *c = arena->chunks;
    if (!c || c->size - c->used < rounded)
        c = add_chunk(arena, rounded);
    if (!c)
        return NULL;
    void *p = c->bytes + c->used;
    c->used += rounded;
    arena->total += rounded;
    return p;
}

void *lfs_alloc(struct lfs_arena *arena, size_t size) {
    void *p = take(arena, size);
    if (p)
        memset(p, 0, size);
    return p;
}

void *lfs_alloc_array(struct lfs_arena *arena, size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        return NULL;
    return lfs_alloc(arena, bytes);
}

void *lfs_memdup(struct lfs_arena *arena, const void *bytes, size_t length) {
    void *copy = take(arena, length);
    if (copy && length)
        memcpy(copy, bytes, length);
    return copy;
}

char *lfs_strndup(struct lfs_arena *arena, const char *text, size_t length) {
    if (length == SIZE_MAX)
        return NULL;
    char *copy = take(arena, length + 1);
    if (copy) {
        memcpy(copy, text, length);
        copy[length] = '\0';
    }
    return copy;
}

char *lfs_strdup(struct lfs_arena *arena, const char *text) { return lfs_strndup(arena, text, strlen(text)); }

char *lfs_sprintf(struct lfs_arena *arena, const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *text = n < 0 ? NULL : take(arena, (size_t)n + 1);
    if (text)
        vsnprintf(text, (size_t)n + 1, format, again);
    va_end(again);
    return text;
}

char *lfs_join(struct lfs_arena *arena, const char *a, const char *b) {
    return lfs_sprintf(arena, "%s%s%s", a, *a && *b ? "/" : "", b);
}

size_t lfs_arena_size(const struct lfs_arena *arena) { return arena->total; }

bool lfs_arena_ran_short(const struct lfs_arena *arena) { return arena->ran_short; }

ProtobufCAllocator *lfs_arena_protobuf(struct lfs_arena *arena) { return &arena->protobuf; }
