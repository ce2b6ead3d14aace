/* SPDX-License-Identifier: Apache-2.0 */
/* A hash map from strings to pointers, in an arena: no removal, iteration in the order of insertion. */
#ifndef LFS_UTIL_MAP_H
#define LFS_UTIL_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/arena.h"

struct lfs_map_entry {
    const char *key; /* borrowed: must live as long as the map */
    void *value;
    uint64_t hash;
};

struct lfs_map {
    struct lfs_arena *arena;
    struct lfs_map_entry *entries; /* `count` of them, in the order of insertion */
    size_t count, capacity;
    uint32_t *slots; /* index + 1, 0 = free; a power of two */
    size_t n_slots;
};

uint64_t lfs_hash(const void *bytes, size_t length, uint64_t seed);

void lfs_map_init(struct lfs_map *map, struct lfs_arena *arena);
/* Room for `count` keys without growing. False when memory is short. */
bool lfs_map_reserve(struct lfs_map *map, size_t count);
/* False when memory is short. An existing key's value is replaced. */
bool lfs_map_put(struct lfs_map *map, const char *key, void *value);
/* The entry of a key, or NULL; its value may be set. Good until the next put. */
struct lfs_map_entry *lfs_map_find(const struct lfs_map *map, const char *key);
void *lfs_map_get(const struct lfs_map *map, const char *key); /* NULL when absent */

#endif
