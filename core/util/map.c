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

static bool grow(struct lfs_map *map) {
    size_t capacity = map->capacity ? map->capacity * 2 : 16;
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

bool lfs_map_put(struct lfs_map *map, const char *key, void *value) {
    if (map->count == map->capacity && !grow(map))
        return false;
    uint64_t hash = lfs_hash(key, strlen(key), 0);
    uint32_t *slot = find_slot(map, key, hash);
    if (*slot) {
        map->entries[*slot - 1].value = value;
        return true;
    }
    map->entries[map->count] = (struct lfs_map_entry){key, value, hash};
    *slot = (uint32_t)++map->count;
    return true;
}

void *lfs_map_get(const struct lfs_map *map, const char *key) {
    if (!map->n_slots)
        return NULL;
    uint32_t slot = *find_slot(map, key, lfs_hash(key, strlen(key), 0));
    return slot ? map->entries[slot - 1].value : NULL;
}
