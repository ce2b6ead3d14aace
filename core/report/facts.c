/* SPDX-License-Identifier: Apache-2.0 */
#include "report/facts.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct fact {
    struct stat file;
    struct lfs_report_commit commit;
};

struct lfs_report_cache {
    pthread_mutex_t lock;
    size_t bytes_max;
    struct lfs_arena *arena; /* owns the map and all that is in it; NULL while empty */
    struct lfs_map facts;
};

struct lfs_report_cache *lfs_report_cache_new(size_t bytes_max) {
    struct lfs_report_cache *cache = calloc(1, sizeof *cache);
    if (!cache)
        return NULL;
    pthread_mutex_init(&cache->lock, NULL);
    cache->bytes_max = bytes_max;
    return cache;
}

void lfs_report_cache_free(struct lfs_report_cache *cache) {
    if (!cache)
        return;
    lfs_arena_free(cache->arena);
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}

static bool is_same_file(const struct stat *a, const struct stat *b) {
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static void copy_text(struct lfs_arena *arena, const char **text) {
    if (*text)
        *text = lfs_strdup(arena, *text);
}

/* The texts of a commit, in an arena that lives as long as the copy is to. `line` and the like are the caller's. */
static bool copy_commit(struct lfs_arena *arena, const struct lfs_report_commit *from, struct lfs_report_commit *to) {
    *to = *from;
    copy_text(arena, &to->operation);
    copy_text(arena, &to->from);
    copy_text(arena, &to->message);
    copy_text(arena, &to->transaction);
    copy_text(arena, &to->merged_line);
    to->line = to->branch = to->before_line = NULL;
    return !to->operation == !from->operation && !to->from == !from->from && !to->message == !from->message &&
           !to->transaction == !from->transaction && !to->merged_line == !from->merged_line;
}

bool lfs_facts_get(struct lfs_report_cache *cache, const char *key, const struct stat *file, struct lfs_arena *arena,
                   struct lfs_report_commit *out) {
    if (!cache)
        return false;
    pthread_mutex_lock(&cache->lock);
    const struct fact *fact = cache->arena ? lfs_map_get(&cache->facts, key) : NULL;
    bool found = fact && is_same_file(&fact->file, file) && copy_commit(arena, &fact->commit, out);
    pthread_mutex_unlock(&cache->lock);
    return found;
}

/* With the lock held. What is over the bound goes as a whole: it is only there to save time. */
static bool make_room(struct lfs_report_cache *cache) {
    if (cache->arena && lfs_arena_size(cache->arena) < cache->bytes_max)
        return true;
    lfs_arena_free(cache->arena);
    cache->arena = lfs_arena_new();
    lfs_map_init(&cache->facts, cache->arena);
    return cache->arena;
}

void lfs_facts_put(struct lfs_report_cache *cache, const char *key, const struct stat *file,
                   const struct lfs_report_commit *commit) {
    if (!cache)
        return;
    pthread_mutex_lock(&cache->lock);
    struct fact *fact = make_room(cache) ? LFS_NEW(cache->arena, struct fact) : NULL;
    char *own = fact ? lfs_strdup(cache->arena, key) : NULL;
    if (own && copy_commit(cache->arena, commit, &fact->commit)) {
        fact->file = *file;
        lfs_map_put(&cache->facts, own, fact);
    }
    pthread_mutex_unlock(&cache->lock);
}
