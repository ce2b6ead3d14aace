/* SPDX-License-Identifier: Apache-2.0 */
#include "util/map.h"

#include <string.h>

/* FNV-1a with a final mix: keys are short names, and an attacker's flood only slows his own data set. */
uint64_t lfs_hash(const void *bytes, size_t length, uint64_t seed) {
    uint64_t h = 14695981039346656037ULL ^ (seed * 0x9E3779B97F4A7C15ULL);
    for (size_t i = 0; i < length; i++) {
        h ^= ((const uint8_t *)bytes)[i];
        h *= 1099511628211ULL;
    }
    h ^= h >> 32;
    h *= 0xD6E8FEB86659FD93ULL;
    return h ^ (h >> 32);
}

void lfs_map_init(struct lfs_map *map, struct lfs_arena *arena) { *map = (struct lfs_map){.arena = arena}; }

static uint32_t *find_slot(const struct lfs_map *map, const char *key, uint64_t hash) {
    for (size_t i = hash & (map->n_slots - 1);; i = (i + 1) & (map->n_slots - 1)) {
        uint32_t *slot = &map->slots[i];
        if (!*slot)
            return slot;
        const struct lfs_map_entry *e = &map->entries[*slot - 1];
        if (e->hash == hash && strcmp(e->key, key) == 0)
            return slot;
    }
}

/* Names are long and often many: eight bytes at a time. */
static uint64_t hash_key(const char *key) {
    size_t length = strlen(key);
    uint64_t h = length * 0x9E3779B97F4A7C15ULL, part;
    for (; length >= sizeof part; key += sizeof part, length -= sizeof part) {
        memcpy(&part, key, sizeof part);
        h = (h ^ part) * 0xD6E8FEB86659FD93ULL;
        h ^= h >> 32;
    }
    part = 0;
    memcpy(&part, key, length);
    h = (h ^ part) * 0xD6E8FEB86659FD93ULL;
    return h ^ (h >> 32);
}

static bool grow_to(struct lfs_map *map, size_t capacity) {
    struct lfs_map_entry *entries = LFS_NEW_ARRAY(map->arena, struct lfs_map_entry, capacity);
    uint32_t *slots = LFS_NEW_ARRAY(map->arena, uint32_t, capacity * 2);
    if (!entries || !slots)
        return false;
    if (map->count)
        memcpy(entries, map->entries, map->count * sizeof *entries);
    map->entries = entries;
    map->capacity = capacity;
    map->slots = slots;
    map->n_slots = capacity * 2;
    for (size_t i = 0; i < map->count; i++)
        *find_slot(map, entries[i].key, entries[i].hash) = (uint32_t)(i + 1);
    return true;
}

static bool grow(struct lfs_map *map) { return grow_to(map, map->capacity ? map->capacity * 2 : 16); }

bool lfs_map_reserve(struct lfs_map *map, size_t count) {
    size_t capacity = 16;
    while (capacity < count && capacity < SIZE_MAX / 4)
        capacity *= 2;
    return capacity <= map->capacity || grow_to(map, capacity);
}

bool lfs_map_put(struct lfs_map *map, const char *key, void *value) {
    if (map->count == map->capacity && !grow(map))
        return false;
    uint64_t hash = hash_key(key);
    uint32_t *slot = find_slot(map, key, hash);
    if (*slot) {
        map->entries[*slot - 1].value = value;
        return true;
    }
    map->entries[map->count] = (struct lfs_map_entry){key, value, hash};
    *slot = (uint32_t)++map->count;
    return true;
}

struct lfs_map_entry *lfs_map_find(const struct lfs_map *map, const char *key) {
    uint32_t slot = map->n_slots ? *find_slot(map, key, hash_key(key)) : 0;
    return slot ? &map->entries[slot - 1] : NULL;
}

void *lfs_map_get(const struct lfs_map *map, const char *key) {
    const struct lfs_map_entry *e = lfs_map_find(map, key);
    return e ? e->value : NULL;
}
