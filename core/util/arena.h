/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One arena for each operation, freed as a whole. Memory is zeroed and aligned for any type. Every function returns
 * NULL when memory is short; nothing aborts. An arena belongs to one thread at a time.
 */
#ifndef LFS_UTIL_ARENA_H
#define LFS_UTIL_ARENA_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>

struct lfs_arena;

struct lfs_arena *lfs_arena_new(void);
void lfs_arena_free(struct lfs_arena *arena); /* NULL is fine */

void *lfs_alloc(struct lfs_arena *arena, size_t size);
void *lfs_alloc_array(struct lfs_arena *arena, size_t count, size_t size); /* NULL on overflow too */
char *lfs_strdup(struct lfs_arena *arena, const char *text);
char *lfs_strndup(struct lfs_arena *arena, const char *text, size_t length);
void *lfs_memdup(struct lfs_arena *arena, const void *bytes, size_t length);
char *lfs_sprintf(struct lfs_arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
char *lfs_join(struct lfs_arena *arena, const char *a, const char *b); /* "a/b", or the other where one is "" */

/* Bytes handed out so far: what a cache charges for an object that owns this arena. */
size_t lfs_arena_size(const struct lfs_arena *arena);

/* Was memory short for this arena at any time? For callers of libraries that do not say why they failed. */
bool lfs_arena_ran_short(const struct lfs_arena *arena);

/* An allocator for protobuf-c's unpack, which sets all that it asks room for: not zeroed. It takes from the arena and frees nothing; lives as long as the arena. */
ProtobufCAllocator *lfs_arena_protobuf(struct lfs_arena *arena);

#define LFS_NEW(arena, type) ((type *)lfs_alloc((arena), sizeof(type)))
#define LFS_NEW_ARRAY(arena, type, count) ((type *)lfs_alloc_array((arena), (count), sizeof(type)))

#endif
