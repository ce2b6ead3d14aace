/* SPDX-License-Identifier: Apache-2.0 */
/* Manifests and transactions as a view shows them: rendered once, their sizes remembered, their bytes kept in bounds. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>

#include "format/wire.h"
#include "store/file.h"
#include "table/dataset_impl.h"
#include "table/view_impl.h"
#include "util/cleanup.h"
#include "util/limits.h"
#include "util/log.h"

enum {
    BUCKETS = 4096,
    ENTRIES_MAX = 1 << 17, /* files whose size is remembered */
    FOOTER_SIZE = 16,
    LENGTH_SIZE = 4,
};

/* --- the cache: found by the stored file's identity --- */

struct key {
    dev_t dev;
    ino_t ino;
    off_t size;
    struct timespec mtime;
    enum lfs_rendered_kind kind;
};

struct entry {
    struct lfs_rendered rendered; /* first; bytes NULL while they are not kept */
    struct lfs_rendered_cache *cache;
    struct key key;
    struct lfs_rendered_info info;
    unsigned users; /* open files; their bytes are never let go */
    struct entry *next_in_bucket;
    TAILQ_ENTRY(entry) by_use;       /* all entries */
    TAILQ_ENTRY(entry) bytes_by_use; /* those with bytes */
};

TAILQ_HEAD(entries, entry);

struct lfs_rendered_cache {
    pthread_mutex_t lock;
    struct entry *buckets[BUCKETS];
    struct entries by_use, bytes_by_use; /* the newest first */
    size_t count, bytes, bytes_max;
    uint64_t hits, misses;
};

struct lfs_rendered_cache *lfs_rendered_cache_new(size_t bytes_max) {
    struct lfs_rendered_cache *cache = calloc(1, sizeof *cache);
    if (!cache)
        return NULL;
    pthread_mutex_init(&cache->lock, NULL);
    cache->bytes_max = bytes_max;
    TAILQ_INIT(&cache->by_use);
    TAILQ_INIT(&cache->bytes_by_use);
    return cache;
}

void lfs_rendered_cache_free(struct lfs_rendered_cache *cache) {
    if (!cache)
        return;
    for (struct entry *e; (e = TAILQ_FIRST(&cache->by_use));) {
        TAILQ_REMOVE(&cache->by_use, e, by_use);
        free((void *)e->rendered.bytes);
        free(e);
    }
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}

static struct key key_of(const struct stat *st, enum lfs_rendered_kind kind) {
    return (struct key){st->st_dev, st->st_ino, st->st_size, st->st_mtim, kind};
}

static bool is_same_key(const struct key *a, const struct key *b) {
    return a->dev == b->dev && a->ino == b->ino && a->size == b->size && a->mtime.tv_sec == b->mtime.tv_sec &&
           a->mtime.tv_nsec == b->mtime.tv_nsec && a->kind == b->kind;
}

static struct entry **bucket_of(struct lfs_rendered_cache *cache, const struct key *key) {
    return &cache->buckets[lfs_hash(&key->ino, sizeof key->ino, key->dev) % BUCKETS];
}

/* All with the lock held. */
static void drop_bytes(struct lfs_rendered_cache *c, struct entry *e) {
    TAILQ_REMOVE(&c->bytes_by_use, e, bytes_by_use);
    c->bytes -= e->rendered.size;
    free((void *)e->rendered.bytes);
    e->rendered.bytes = NULL;
}

static void drop_entry(struct lfs_rendered_cache *c, struct entry *e) {
    struct entry **at = bucket_of(c, &e->key);
    while (*at != e)
        at = &(*at)->next_in_bucket;
    *at = e->next_in_bucket;
    TAILQ_REMOVE(&c->by_use, e, by_use);
    if (e->rendered.bytes)
        drop_bytes(c, e);
    c->count--;
    free(e);
}

static void shrink(struct lfs_rendered_cache *c) {
    for (struct entry *e = TAILQ_LAST(&c->bytes_by_use, entries), *next; e && c->bytes > c->bytes_max; e = next) {
        next = TAILQ_PREV(e, entries, bytes_by_use);
        if (!e->users)
            drop_bytes(c, e);
    }
    for (struct entry *e = TAILQ_LAST(&c->by_use, entries), *next; e && c->count > ENTRIES_MAX; e = next) {
        next = TAILQ_PREV(e, entries, by_use);
        if (!e->users)
            drop_entry(c, e);
    }
}

static struct entry *find(struct lfs_rendered_cache *c, const struct key *key) {
    struct entry *e = *bucket_of(c, key);
    while (e && !is_same_key(&e->key, key))
        e = e->next_in_bucket;
    if (!e)
        return NULL;
    TAILQ_REMOVE(&c->by_use, e, by_use);
    TAILQ_INSERT_HEAD(&c->by_use, e, by_use);
    if (e->rendered.bytes) {
        TAILQ_REMOVE(&c->bytes_by_use, e, bytes_by_use);
        TAILQ_INSERT_HEAD(&c->bytes_by_use, e, bytes_by_use);
    }
    return e;
}

void lfs_rendered_release(struct lfs_rendered *rendered) {
    if (!rendered)
        return;
    struct entry *e = (struct entry *)rendered;
    pthread_mutex_lock(&e->cache->lock);
    if (--e->users == 0)
        shrink(e->cache);
    pthread_mutex_unlock(&e->cache->lock);
}

/* --- rendering --- */

struct job {
    struct lfs_views *views;
    const char *dir, *path;
    enum lfs_rendered_kind kind;
    struct lfs_arena *arena;
    struct lfs_rendered_info *info;
};

static uint64_t little_endian(const uint8_t *p, int n) {
    uint64_t value = 0;
    for (int i = n; i-- > 0;)
        value = value << 8 | p[i];
    return value;
}

static const uint8_t *varint(const uint8_t *p, const uint8_t *end, uint64_t *out) {
    *out = 0;
    for (unsigned shift = 0; p && p < end && shift < 64; shift += 7) {
        *out |= (uint64_t)(*p & 0x7f) << shift;
        if (*p++ < 0x80)
            return p;
    }
    return NULL;
}

static const uint8_t *skip_field(const uint8_t *p, const uint8_t *end, unsigned type, uint64_t *value) {
    switch (type) {
    case 0: return varint(p, end, value);
    case 1: return end - p >= 8 ? p + 8 : NULL;
    case 5: return end - p >= 4 ? p + 4 : NULL;
    case 2: p = varint(p, end, value); return p && *value <= (uint64_t)(end - p) ? p + *value : NULL;
    default: return NULL;
    }
}

static struct timespec timestamp(const uint8_t *p, const uint8_t *end) {
    struct timespec t = {0};
    for (uint64_t key, value = 0; p && p < end;) {
        p = varint(p, end, &key);
        p = p ? skip_field(p, end, key & 7, &value) : NULL;
        if (p && key == (1 << 3))
            t.tv_sec = (time_t)value;
        else if (p && key == (2 << 3) && value < 1000000000)
            t.tv_nsec = (long)value;
    }
    return t;
}

/*
 * A manifest without base paths and branch name shows as it is stored: seen from the top level of its message, without
 * decoding the fragments. Takes the timestamp on the way. False for every doubt: then it is decoded.
 */
static bool serves_as_stored(const uint8_t *bytes, size_t length, struct timespec *time) {
    enum { TIMESTAMP = 7, READER_FLAGS = 9, WRITER_FLAGS = 10, BASE_PATHS = 18, BRANCH = 20 };
    if (length < FOOTER_SIZE + LENGTH_SIZE || memcmp(bytes + length - 4, "LANC", 4) != 0)
        return false;
    const uint8_t *end = bytes + length - FOOTER_SIZE;
    uint64_t position = little_endian(end, 8);
    if (position > length - FOOTER_SIZE - LENGTH_SIZE ||
        little_endian(bytes + position, 4) != (uint64_t)(end - bytes) - position - LENGTH_SIZE)
        return false;
    for (const uint8_t *p = bytes + position + LENGTH_SIZE; p < end;) {
        uint64_t key, value = 0;
        p = varint(p, end, &key);
        p = p ? skip_field(p, end, key & 7, &value) : NULL;
        if (!p || key >> 3 == BASE_PATHS || key >> 3 == BRANCH)
            return false;
        if ((key >> 3 == READER_FLAGS || key >> 3 == WRITER_FLAGS) && value & LFS_FLAG_BASE_PATHS)
            return false;
        if (key == (TIMESTAMP << 3 | 2))
            *time = timestamp(p - value, p);
    }
    return true;
}

static errint_t check_renderable(const struct job *job, const LanceManifest *m, struct lfs_error *err) {
    LFS_TRY(lfs_manifest_check_features(m, false, job->path, err));
    for (size_t i = 0; i < m->n_fields; i++)
        if (m->fields[i]->dictionary) /* pages of the manifest file itself, found by their place in it */
            return lfs_fail(err, LFS_E_UNSUPPORTED, "%s holds dictionary pages of the oldest format", job->path);
    return 0;
}

/* The version as the data set knows it, when it is of this very file: its fragments are those of the versions beside it, and
 * need no decoding. NULL otherwise. */
static struct lfs_version *known_version(const struct job *job) {
    const char *slash = strrchr(job->path, '/');
    const struct stat *st = &job->info->st;
    struct lfs_version *v;
    uint64_t number;
    enum lfs_naming naming;
    if (!lfs_manifest_name_parse(slash ? slash + 1 : job->path, &number, &naming) ||
        lfs_dataset_version(job->views->ds, job->dir, number, &v, NULL) < 0)
        return NULL;
    if (v->dev == st->st_dev && v->ino == st->st_ino && v->file_size == st->st_size &&
        v->mtime.tv_sec == st->st_mtim.tv_sec && v->mtime.tv_nsec == st->st_mtim.tv_nsec)
        return v;
    lfs_version_release(v);
    return NULL;
}

static errint_t render_manifest(const struct job *job, const struct lfs_buf *stored, struct lfs_buf *out,
                                struct lfs_error *err) {
    LFS_CLEANUP(lfs_cleanup_version) struct lfs_version *known = NULL;
    struct lfs_version version = {.dataset = job->views->ds, .dir = job->dir};
    struct lfs_manifest flat;
    struct lfs_aliases aliases;
    struct timespec time = {0};
    bool changed;
    job->info->stored = serves_as_stored(stored->data, stored->length, &time);
    if (!job->info->stored) {
        known = known_version(job);
        if (known)
            version.manifest = known->manifest;
        else
            LFS_TRY(lfs_manifest_decode(stored->data, stored->length, job->arena, job->path, &version.manifest, err));
        LFS_TRY(check_renderable(job, version.manifest.message, err));
        version.number = version.manifest.message->version;
        LFS_TRY(lfs_aliases_find(&version, job->arena, &aliases, err));
        LFS_TRY(lfs_flatten_manifest(&version.manifest, &aliases, job->arena, &flat, &changed, err));
        job->info->stored = !changed;
        const Lance__Table__Timestamp *t = version.manifest.message->timestamp;
        if (t)
            time = (struct timespec){t->seconds, t->nanos >= 0 && t->nanos < 1000000000 ? t->nanos : 0};
        if (changed)
            LFS_TRY(lfs_manifest_encode(&flat, out, err));
    }
    if (time.tv_sec || time.tv_nsec)
        job->info->time = time;
    return 0;
}

static errint_t render_transaction(const struct job *job, const struct lfs_buf *stored, struct lfs_buf *out,
                                   struct lfs_error *err) {
    LanceTransaction *in;
    struct lfs_view *view = NULL;
    LFS_TRY(lfs_wire_unpack(&lance__table__transaction__descriptor, stored->data, stored->length, job->arena, job->path,
                            &in, err));
    lfs_views_get(job->views, job->dir, true, &view, NULL); /* for aliases: base ids keep their meaning on a branch */
    LanceTransaction *flat = lfs_flatten_transaction(in, view ? &view->aliases : NULL, job->arena);
    job->info->stored = flat == in;
    if (flat && flat != in)
        lfs_wire_pack(&flat->base, out);
    lfs_views_put(job->views, view);
    return flat ? lfs_buf_check(out, err) : lfs_fail_nomem(err);
}

/* Read and render: fills info and, unless the stored bytes serve, `out`. A file that cannot be shown is no failure of
 * this function: info->cause says so. */
static errint_t render(const struct job *job, int fd, struct lfs_buf *out, struct lfs_error *err) {
    LFS_AUTO_BUF stored = {0};
    struct lfs_error why;
    bool manifest = job->kind == LFS_RENDER_MANIFEST;
    errint_t result =
        lfs_read_fd(fd, job->path, manifest ? LFS_MANIFEST_BYTES_MAX : LFS_TRANSACTION_BYTES_MAX, &stored, NULL, &why);
    if (result == 0)
        result = manifest ? render_manifest(job, &stored, out, &why) : render_transaction(job, &stored, out, &why);
    if (result == -ENOMEM)
        return lfs_fail_nomem(err);
    if (result < 0) {
        lfs_log(LFS_LOG_WARNING, "%s", why.message);
        lfs_buf_clear(out);
        job->info->stored = false;
        job->info->cause = result == -EOPNOTSUPP ? -EOPNOTSUPP : -EIO;
    } else if (!job->info->stored) {
        job->info->size = (off_t)out->length;
    }
    return 0;
}

/* Put what was rendered into the cache, or into the entry that is there. Takes over the bytes; a user when `use`. */
static struct entry *keep(struct lfs_rendered_cache *c, const struct key *key, const struct lfs_rendered_info *info,
                          struct lfs_buf *bytes, bool use) {
    struct entry *fresh = calloc(1, sizeof *fresh);
    pthread_mutex_lock(&c->lock);
    struct entry *e = find(c, key);
    if (!e && fresh) {
        e = LFS_STEAL_PTR(fresh);
        e->cache = c;
        e->key = *key;
        e->info = *info;
        struct entry **bucket = bucket_of(c, key);
        e->next_in_bucket = *bucket;
        *bucket = e;
        TAILQ_INSERT_HEAD(&c->by_use, e, by_use);
        c->count++;
    }
    if (e && !e->rendered.bytes && !info->stored && !info->cause) {
        e->rendered = (struct lfs_rendered){LFS_STEAL_PTR(bytes->data), bytes->length};
        e->info = *info;
        *bytes = (struct lfs_buf){0};
        TAILQ_INSERT_HEAD(&c->bytes_by_use, e, bytes_by_use);
        c->bytes += e->rendered.size;
    }
    if (e) {
        e->users += use;
        shrink(c);
    }
    pthread_mutex_unlock(&c->lock);
    free(fresh);
    return e;
}

/* --- what the mount asks --- */

void lfs_views_cache_counts(struct lfs_views *views, struct lfs_cache_counts *out) {
    struct lfs_rendered_cache *c = views->rendered;
    pthread_mutex_lock(&c->lock);
    *out = (struct lfs_cache_counts){c->hits, c->misses, c->count, c->bytes};
    pthread_mutex_unlock(&c->lock);
}

/* Something else than a file under a manifest's name: shown, not opened. */
static errint_t stat_oddity(struct lfs_views *views, const char *path, struct lfs_rendered_info *info,
                            struct lfs_error *err) {
    LFS_AUTO_FD fd = lfs_dataset_open_beneath(views->ds, path, O_PATH | O_NOFOLLOW);
    if (fd < 0 || fstat(fd, &info->st) < 0)
        return fd == -ENOENT || fd == -ENOTDIR ? lfs_fail(err, LFS_E_NOT_FOUND, "there is no %s", path)
                                               : lfs_fail_errno(err, fd < 0 ? -fd : errno, "cannot look at %s", path);
    info->cause = -EIO;
    info->time = info->st.st_mtim;
    return 0;
}

static int open_stored(struct lfs_views *views, const char *path, struct lfs_rendered_info *info,
                       struct lfs_error *err) {
    *info = (struct lfs_rendered_info){0};
    LFS_AUTO_FD fd = lfs_open_regular(lfs_dataset_root_fd(views->ds), path);
    if (fd < 0) {
        errint_t result = stat_oddity(views, path, info, err);
        return result < 0 ? result : lfs_fail(err, LFS_E_CORRUPT, "%s is not a file that can be read", path);
    }
    if (fstat(fd, &info->st) < 0)
        return lfs_fail_errno(err, errno, "cannot stat %s", path);
    info->size = info->st.st_size;
    info->time = info->st.st_mtim;
    return LFS_STEAL_FD(fd);
}

static char *stored_path(struct lfs_arena *arena, const char *dir, enum lfs_rendered_kind kind, const char *name) {
    return lfs_sprintf(arena, "%s%s%s/%s", dir, *dir ? "/" : "",
                       kind == LFS_RENDER_MANIFEST ? "_versions" : "_transactions", name);
}

/* What is known of the file, with a user added when `use` and its bytes are there or not needed. */
static bool known(struct lfs_rendered_cache *c, const struct key *key, bool use, struct lfs_rendered_info *info,
                  struct entry **out) {
    pthread_mutex_lock(&c->lock);
    struct entry *e = find(c, key);
    bool enough = e && (!use || e->rendered.bytes || e->info.stored || e->info.cause);
    if (enough) {
        *info = e->info;
        *out = e;
        e->users += use;
    }
    ++*(enough ? &c->hits : &c->misses);
    pthread_mutex_unlock(&c->lock);
    return enough;
}

static errint_t look_up(struct lfs_views *views, const char *dir, enum lfs_rendered_kind kind, const char *path, int fd,
                        bool use, struct lfs_rendered_info *info, struct entry **out, struct lfs_error *err) {
    struct key key = key_of(&info->st, kind);
    struct stat st = info->st;
    if (known(views->rendered, &key, use, info, out)) {
        info->st = st; /* the entry's is of an earlier time: links, owner and mode may differ */
        return 0;
    }
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    LFS_AUTO_BUF bytes = {0};
    if (!arena)
        return lfs_fail_nomem(err);
    struct job job = {views, dir, path, kind, arena, info};
    LFS_TRY(render(&job, fd, &bytes, err));
    *out = keep(views->rendered, &key, info, &bytes, use);
    return *out ? 0 : lfs_fail_nomem(err);
}

errint_t lfs_views_stat(struct lfs_views *views, const char *dir, enum lfs_rendered_kind kind, const char *name,
                        struct lfs_rendered_info *out, struct lfs_error *err) {
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    char *path = arena ? stored_path(arena, dir, kind, name) : NULL;
    struct entry *entry;
    if (!path)
        return lfs_fail_nomem(err);
    LFS_AUTO_FD fd = open_stored(views, path, out, err);
    if (fd < 0)
        return out->cause ? 0 : fd;
    return look_up(views, dir, kind, path, fd, false, out, &entry, err);
}

errint_t lfs_views_stat_known(struct lfs_views *views, const char *dir, enum lfs_rendered_kind kind, const char *name,
                              struct lfs_rendered_info *out) {
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    char *path = arena ? stored_path(arena, dir, kind, name) : NULL;
    struct entry *entry;
    struct stat st;
    if (!path)
        return -ENOMEM;
    LFS_AUTO_FD fd = lfs_dataset_open_beneath(views->ds, path, O_PATH | O_NOFOLLOW);
    if (fd < 0 || fstat(fd, &st) < 0)
        return fd < 0 ? fd : -errno;
    struct key key = key_of(&st, kind);
    if (!S_ISREG(st.st_mode) || !known(views->rendered, &key, false, out, &entry))
        return -EAGAIN;
    out->st = st;
    return 0;
}

errint_t lfs_views_open(struct lfs_views *views, const char *dir, enum lfs_rendered_kind kind, const char *name,
                        struct lfs_rendered **rendered, int *fd, struct lfs_rendered_info *info,
                        struct lfs_error *err) {
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    char *path = arena ? stored_path(arena, dir, kind, name) : NULL;
    struct entry *entry;
    *rendered = NULL;
    *fd = -1;
    if (!path)
        return lfs_fail_nomem(err);
    LFS_AUTO_FD stored = open_stored(views, path, info, err);
    if (stored < 0)
        return info->cause ? info->cause : stored;
    LFS_TRY(look_up(views, dir, kind, path, stored, true, info, &entry, err));
    if (!info->stored && !info->cause) {
        *rendered = &entry->rendered;
        return 0;
    }
    lfs_rendered_release(&entry->rendered);
    if (info->cause)
        return lfs_fail_errno(err, -info->cause, "%s cannot be shown", path);
    *fd = LFS_STEAL_FD(stored);
    return 0;
}
