/* SPDX-License-Identifier: Apache-2.0 */
/* Versions of a directory, and the cache of manifests that were read. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/file.h"
#include "table/dataset.h"
#include "table/dataset_impl.h"
#include "util/cleanup.h"
#include "util/limits.h"

static errint_t versions_path(struct lfs_arena *arena, const char *dir, const char *name, char **out,
                              struct lfs_error *err) {
    *out = lfs_sprintf(arena, "%s%s_versions%s%s", dir, *dir ? "/" : "", *name ? "/" : "", name);
    return *out ? 0 : lfs_fail_nomem(err);
}

/* Calls `each` for every numbered manifest in <dir>/_versions, and finds the naming scheme. */
static errint_t walk(struct lfs_dataset *ds, const char *dir, errint_t (*each)(void *state, uint64_t version),
                     void *state, enum lfs_naming *naming, struct lfs_error *err) {
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    char *path;
    if (!arena)
        return lfs_fail_nomem(err);
    LFS_TRY(versions_path(arena, dir, "", &path, err));
    int fd = lfs_open_beneath(ds->root_fd, path, O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0)
        return lfs_fail_errno(err, -fd, "cannot open %s", path);
    DIR *list = fdopendir(fd);
    if (!list) {
        close(fd);
        return lfs_fail_nomem(err);
    }
    errint_t result = 0;
    *naming = 0;
    for (struct dirent *e; result == 0 && (e = readdir(list));) {
        uint64_t version;
        enum lfs_naming found;
        if (!lfs_manifest_name_parse(e->d_name, &version, &found))
            continue;
        if (*naming && *naming != found)
            result = lfs_fail(err, LFS_E_CORRUPT, "%s holds manifests of both naming schemes", path);
        *naming = found;
        if (result == 0 && (result = each(state, version)) < 0)
            lfs_fail_nomem(err);
    }
    closedir(list);
    if (result == 0 && !*naming)
        result = lfs_fail(err, LFS_E_NOT_FOUND, "%s holds no version", path);
    return result;
}

struct list {
    struct lfs_arena *arena;
    uint64_t *numbers;
    size_t count, capacity;
};

static errint_t add_number(void *state, uint64_t version) {
    struct list *list = state;
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? list->capacity * 2 : 64;
        uint64_t *grown = LFS_NEW_ARRAY(list->arena, uint64_t, capacity);
        if (!grown)
            return -ENOMEM;
        if (list->count)
            memcpy(grown, list->numbers, list->count * sizeof *grown);
        list->numbers = grown;
        list->capacity = capacity;
    }
    list->numbers[list->count++] = version;
    return 0;
}

static int by_number(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

errint_t lfs_dataset_versions(struct lfs_dataset *ds, const char *dir, struct lfs_arena *arena, struct lfs_versions *out,
                              struct lfs_error *err) {
    struct list list = {.arena = arena};
    LFS_TRY(walk(ds, dir, add_number, &list, &out->naming, err));
    qsort(list.numbers, list.count, sizeof *list.numbers, by_number);
    out->numbers = list.numbers;
    out->count = list.count;
    return 0;
}

static errint_t keep_largest(void *state, uint64_t version) {
    uint64_t *largest = state;
    if (version > *largest)
        *largest = version;
    return 0;
}

errint_t lfs_dataset_tip(struct lfs_dataset *ds, const char *dir, uint64_t *version, enum lfs_naming *naming,
                         struct lfs_error *err) {
    *version = 0;
    return walk(ds, dir, keep_largest, version, naming, err);
}

/* --- the cache: found by the file's identity, so that a file that was replaced is read again --- */

static size_t bucket_of(const char *dir, ino_t ino) { return lfs_hash(dir, strlen(dir), ino) % LFS_CACHE_BUCKETS; }

static bool is_same(const struct lfs_version *v, const char *dir, const struct stat *st) {
    return v->ino == st->st_ino && v->dev == st->st_dev && v->file_size == st->st_size &&
           v->mtime.tv_sec == st->st_mtim.tv_sec && v->mtime.tv_nsec == st->st_mtim.tv_nsec && strcmp(v->dir, dir) == 0;
}

/* Under the lock, like all that follows: nobody uses the version any more. */
static void free_version(struct lfs_version_cache *cache, struct lfs_cached_version *v) {
    for (size_t i = 0; i < v->n_blocks; i++) {
        struct lfs_fragment_block *block = v->blocks[i];
        if (--block->versions > 0)
            continue;
        cache->bytes -= block->bytes;
        lfs_arena_free(block->arena);
        free(block);
    }
    lfs_arena_free(v->arena);
}

static void drop_from_cache(struct lfs_version_cache *cache, struct lfs_cached_version *v) {
    struct lfs_cached_version **at = &cache->buckets[bucket_of(v->version.dir, v->version.ino)];
    while (*at != v)
        at = &(*at)->next_in_bucket;
    *at = v->next_in_bucket;
    TAILQ_REMOVE(&cache->by_use, v, by_use);
    cache->bytes -= v->bytes;
    cache->entries--;
    if (--v->users == 0)
        free_version(cache, v);
}

static struct lfs_cached_version *find(struct lfs_dataset *ds, const char *dir, const struct stat *st) {
    struct lfs_cached_version *v = ds->cache.buckets[bucket_of(dir, st->st_ino)];
    while (v && !is_same(&v->version, dir, st))
        v = v->next_in_bucket;
    ++*(v ? &ds->cache.hits : &ds->cache.misses);
    if (v) {
        v->users++;
        TAILQ_REMOVE(&ds->cache.by_use, v, by_use);
        TAILQ_INSERT_HEAD(&ds->cache.by_use, v, by_use);
    }
    return v;
}

static void insert(struct lfs_dataset *ds, struct lfs_cached_version *v) {
    struct lfs_version_cache *cache = &ds->cache;
    size_t b = bucket_of(v->version.dir, v->version.ino);
    v->next_in_bucket = cache->buckets[b];
    cache->buckets[b] = v;
    TAILQ_INSERT_HEAD(&cache->by_use, v, by_use);
    v->users++;
    cache->bytes += v->bytes;
    cache->entries++;
    for (struct lfs_cached_version *old = TAILQ_LAST(&cache->by_use, lfs_cached_versions), *newer;
         old && cache->bytes > cache->bytes_max; old = newer) {
        newer = TAILQ_PREV(old, lfs_cached_versions, by_use);
        if (old->users == 1) /* only the cache holds it */
            drop_from_cache(cache, old);
    }
}

/* --- reading: what a version shares with one that was read before is not read again --- */

enum { LIKE_TRIES_MAX = 16, OWN_RECORDS = 0, OWN_NAMES = 1, OWN_BLOCKS = 2 };

static struct lfs_cached_version *find_like(struct lfs_dataset *ds, const struct lfs_buf *bytes,
                                            enum lfs_resemblance *how_much) {
    struct lfs_cached_version *v = TAILQ_FIRST(&ds->cache.by_use), *best = NULL;
    enum lfs_resemblance most = LFS_RESEMBLES_NOT;
    for (size_t i = 0; v && i < LIKE_TRIES_MAX && most < LFS_RESEMBLES; i++, v = TAILQ_NEXT(v, by_use)) {
        if (v->n_blocks + OWN_BLOCKS > LFS_BLOCKS_MAX)
            continue;
        enum lfs_resemblance how = lfs_manifest_resembles(bytes->data, bytes->length, &v->version.manifest);
        if (how > most) {
            most = how;
            best = v;
        }
    }
    if (best)
        best->users++;
    *how_much = most;
    return best;
}

/* A version that is being read. */
struct reading {
    const struct lfs_buf *bytes;
    const char *path;
    struct lfs_cached_version *like; /* NULL: none */
    enum lfs_resemblance resemblance;
    struct lfs_arena *arena;
    struct lfs_fragment_block *own[OWN_BLOCKS];
    struct lfs_error *err;
};

static bool empty_blocks(struct reading *r) {
    for (size_t i = 0; i < OWN_BLOCKS; i++) {
        lfs_arena_free(r->own[i]->arena);
        if (!(r->own[i]->arena = lfs_arena_new()))
            return false;
    }
    return true;
}

/* *names_only: what was shared. Few records that are shared would keep many in memory, and few names as well. */
static errint_t decode(struct reading *r, struct lfs_manifest *out, bool *names_only, bool *nothing) {
    size_t half = r->like ? r->like->version.manifest.message->n_fragments / 2 : 0;
    for (int attempt = r->resemblance; attempt >= LFS_RESEMBLES_NOT; attempt--) {
        struct lfs_manifest_sharing s = {.records = r->own[OWN_RECORDS]->arena, .names = r->own[OWN_NAMES]->arena};
        *nothing = attempt == LFS_RESEMBLES_NOT;
        *names_only = s.names_only = attempt == LFS_RESEMBLES_BY_NAMES;
        s.like = *nothing ? NULL : &r->like->version.manifest;
        LFS_TRY(lfs_manifest_decode_sharing(r->bytes->data, r->bytes->length, &s, r->arena, r->path, out, r->err));
        if (*nothing || (*names_only ? s.n_names : s.n_records) >= half)
            return 0;
        if (!empty_blocks(r))
            return lfs_fail_nomem(r->err);
    }
    return 0;
}

/* The file's bytes as a version that nobody else sees yet. The blocks of `like` are not counted as its yet either. */
static errint_t make_version(struct lfs_dataset *ds, const char *dir, struct reading *r, struct lfs_cached_version **out) {
    struct lfs_cached_version *v = LFS_NEW(r->arena, struct lfs_cached_version);
    char *own_dir = lfs_strdup(r->arena, dir);
    bool names_only = false, nothing = true;
    if (!v || !own_dir)
        return lfs_fail_nomem(r->err);
    v->arena = r->arena;
    v->version.dataset = ds;
    v->version.dir = own_dir;
    LFS_TRY(decode(r, &v->version.manifest, &names_only, &nothing));
    LFS_TRY(lfs_manifest_check_features(v->version.manifest.message, false, r->path, r->err));
    for (size_t i = 0; r->like && !nothing && i < r->like->n_blocks; i++)
        if (!names_only || r->like->blocks[i]->of_names)
            v->blocks[v->n_blocks++] = r->like->blocks[i];
    v->bytes = lfs_arena_size(r->arena);
    for (size_t i = 0; i < OWN_BLOCKS; i++) {
        r->own[i]->bytes = lfs_arena_size(r->own[i]->arena);
        if (r->own[i]->bytes > 0)
            v->blocks[v->n_blocks++] = r->own[i];
    }
    v->users = 1;
    *out = v;
    return 0;
}

static bool begin_reading(struct reading *r) {
    bool good = (r->arena = lfs_arena_new()) != NULL;
    for (size_t i = 0; i < OWN_BLOCKS; i++) {
        r->own[i] = calloc(1, sizeof *r->own[i]);
        if (r->own[i])
            r->own[i]->arena = lfs_arena_new();
        good &= r->own[i] && r->own[i]->arena;
    }
    if (good)
        r->own[OWN_NAMES]->of_names = true;
    return good;
}

/* What no version has taken. */
static void end_reading(struct reading *r, bool failed) {
    for (size_t i = 0; i < OWN_BLOCKS; i++)
        if (r->own[i] && (failed || r->own[i]->bytes == 0)) {
            lfs_arena_free(r->own[i]->arena);
            free(r->own[i]);
        }
    if (failed)
        lfs_arena_free(r->arena);
}

/* What a manifest says of itself. Its branch may be an older name of this one, but a name it must be. */
static errint_t check_identity(const struct lfs_cached_version *v, uint64_t number, const char *path,
                               struct lfs_error *err) {
    const LanceManifest *m = v->version.manifest.message;
    if (m->version != number)
        return lfs_fail(err, LFS_E_CORRUPT, "%s says that it is version %llu", path, (unsigned long long)m->version);
    struct lfs_error why;
    if (m->branch && *m->branch && lfs_branch_name_check(m->branch, &why) < 0)
        return lfs_fail(err, LFS_E_CORRUPT, "%s says that its branch is '%s': %s", path, m->branch, why.message);
    return 0;
}

static errint_t read_version(struct lfs_dataset *ds, const char *dir, uint64_t number, int fd, const char *path,
                             struct lfs_cached_version **out, struct lfs_error *err) {
    LFS_AUTO_BUF bytes = {0};
    struct stat st;
    LFS_TRY(lfs_read_fd(fd, path, LFS_MANIFEST_BYTES_MAX, &bytes, &st, err));
    struct reading r = {.bytes = &bytes, .path = path, .err = err};
    struct lfs_cached_version *v = NULL;
    bool begun = begin_reading(&r);
    pthread_mutex_lock(&ds->lock);
    r.like = find_like(ds, &bytes, &r.resemblance);
    pthread_mutex_unlock(&ds->lock);
    errint_t result = begun ? make_version(ds, dir, &r, &v) : lfs_fail_nomem(err);
    if (result == 0)
        result = check_identity(v, number, path, err);
    pthread_mutex_lock(&ds->lock);
    for (size_t i = 0; result == 0 && i < v->n_blocks; i++)
        v->blocks[i]->versions++;
    for (size_t i = 0; result == 0 && i < OWN_BLOCKS; i++)
        ds->cache.bytes += r.own[i]->bytes;
    if (r.like && --r.like->users == 0)
        free_version(&ds->cache, r.like);
    pthread_mutex_unlock(&ds->lock);
    end_reading(&r, result < 0);
    if (result < 0)
        return result;
    snprintf(v->version.file_name, sizeof v->version.file_name, "%s", strrchr(path, '/') + 1);
    v->version.number = number;
    v->version.file_size = st.st_size;
    v->version.mtime = st.st_mtim;
    v->version.dev = st.st_dev;
    v->version.ino = st.st_ino;
    *out = v;
    return 0;
}

static int open_manifest(struct lfs_dataset *ds, const char *dir, uint64_t number, struct lfs_arena *arena, char **path,
                         struct lfs_error *err) {
    static const enum lfs_naming namings[] = {LFS_NAMING_V2, LFS_NAMING_V1};
    int fd = -ENOENT;
    for (size_t i = 0; i < 2 && fd == -ENOENT; i++) {
        char name[LFS_MANIFEST_NAME_SIZE];
        lfs_manifest_name(namings[i], number, name);
        LFS_TRY(versions_path(arena, dir, name, path, err));
        fd = lfs_open_regular(ds->root_fd, *path);
    }
    if (fd == -ENOENT)
        return lfs_fail(err, LFS_E_NOT_FOUND, "there is no version %llu in %s", (unsigned long long)number,
                        *dir ? dir : "main");
    return fd < 0 ? lfs_fail_errno(err, -fd, "cannot open %s", *path) : fd;
}

errint_t lfs_dataset_version(struct lfs_dataset *ds, const char *dir, uint64_t number, struct lfs_version **out,
                             struct lfs_error *err) {
    LFS_AUTO_ARENA *scratch = lfs_arena_new();
    struct stat st;
    char *path;
    *out = NULL;
    if (!scratch)
        return lfs_fail_nomem(err);
    LFS_AUTO_FD fd = open_manifest(ds, dir, number, scratch, &path, err);
    if (fd < 0)
        return fd;
    if (fstat(fd, &st) < 0)
        return lfs_fail_errno(err, errno, "cannot stat %s", path);
    pthread_mutex_lock(&ds->lock);
    struct lfs_cached_version *v = find(ds, dir, &st);
    pthread_mutex_unlock(&ds->lock);
    if (!v) {
        LFS_TRY(read_version(ds, dir, number, fd, path, &v, err));
        pthread_mutex_lock(&ds->lock);
        insert(ds, v); /* another thread may have read it too: one of the two is dropped in time */
        pthread_mutex_unlock(&ds->lock);
    }
    *out = &v->version;
    return 0;
}

void lfs_version_release(struct lfs_version *version) {
    if (!version || version->planned)
        return;
    struct lfs_cached_version *v = (struct lfs_cached_version *)version;
    struct lfs_dataset *ds = version->dataset;
    pthread_mutex_lock(&ds->lock);
    if (--v->users == 0)
        free_version(&ds->cache, v);
    pthread_mutex_unlock(&ds->lock);
}

void lfs_version_cache_free(struct lfs_version_cache *cache) {
    while (!TAILQ_EMPTY(&cache->by_use))
        drop_from_cache(cache, TAILQ_FIRST(&cache->by_use));
}

void lfs_dataset_cache_counts(struct lfs_dataset *ds, struct lfs_cache_counts *out) {
    pthread_mutex_lock(&ds->lock);
    *out = (struct lfs_cache_counts){ds->cache.hits, ds->cache.misses, ds->cache.entries, ds->cache.bytes};
    pthread_mutex_unlock(&ds->lock);
}
