/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of each branch: its tip, the name index of it, the base paths that only older versions have. */
#include "table/view.h"

#include <fcntl.h>
#include <string.h>

#include "store/file.h"
#include "table/dataset_impl.h"
#include "table/stamp.h"
#include "table/view_impl.h"
#include "util/cleanup.h"
#include "util/limits.h"

enum { VIEW_BYTES_DEFAULT = 32 << 20 };

errint_t lfs_views_new(struct lfs_dataset *ds, size_t bytes_max, struct lfs_views **out, struct lfs_error *err) {
    size_t bytes = bytes_max ? bytes_max : VIEW_BYTES_DEFAULT;
    *out = NULL;
    struct lfs_views *views = calloc(1, sizeof *views);
    if (!views)
        return lfs_fail_nomem(err);
    pthread_mutex_init(&views->lock, NULL);
    views->ds = ds;
    views->view_bytes_max = bytes / 2;
    views->arena = lfs_arena_new();
    views->rendered = lfs_rendered_cache_new(bytes / 2);
    if (!views->arena || !views->rendered) {
        lfs_views_free(views);
        return lfs_fail_nomem(err);
    }
    lfs_map_init(&views->dirs, views->arena);
    *out = views;
    return 0;
}

void lfs_views_free(struct lfs_views *views) {
    if (!views)
        return;
    for (size_t i = 0; i < views->dirs.count; i++) {
        struct lfs_view_dir *d = views->dirs.entries[i].value;
        lfs_view_destroy(d->view);
        free(d->old);
    }
    lfs_rendered_cache_free(views->rendered);
    pthread_mutex_destroy(&views->lock);
    lfs_arena_free(views->arena);
    free(views);
}

struct lfs_dataset *lfs_views_dataset(const struct lfs_views *views) {
    return views->ds;
}

void lfs_views_complain(struct lfs_views *views, const char *where, const struct lfs_error *why) {
    lfs_dataset_log_once(views->ds, where, why->message);
}

/* With the lock held. NULL when memory is short. */
static struct lfs_view_dir *dir_of(struct lfs_views *views, const char *dir) {
    struct lfs_view_dir *d = lfs_map_get(&views->dirs, dir);
    if (d)
        return d;
    d = LFS_NEW(views->arena, struct lfs_view_dir);
    if (d)
        d->dir = lfs_strdup(views->arena, dir);
    return d && d->dir && lfs_map_put(&views->dirs, d->dir, d) ? d : NULL;
}

/* --- the newest version --- */

static bool is_same_time(struct timespec a, struct timespec b) {
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static bool is_same_dir(const struct stat *a, const struct stat *b) {
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static bool is_unchanged(const struct lfs_view_dir *d, const struct stat *now) {
    return d->tip_valid && is_same_dir(&d->versions, now) && is_same_time(d->versions.st_mtim, now->st_mtim) &&
           is_same_time(d->versions.st_ctim, now->st_ctim) && lfs_is_settled(now->st_mtim, d->looked_at);
}

static errint_t stat_versions(struct lfs_views *views, const char *dir, struct stat *st, struct lfs_error *err) {
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    char *path = arena ? lfs_join(arena, dir, "_versions") : NULL;
    if (!path)
        return lfs_fail_nomem(err);
    LFS_AUTO_FD fd = lfs_dataset_open_beneath(views->ds, path, O_PATH | O_DIRECTORY);
    if (fd == -ENOENT || fd == -ENOTDIR)
        return lfs_fail(err, LFS_E_NOT_FOUND, "there is no %s", path);
    if (fd < 0 || fstat(fd, st) < 0)
        return lfs_fail_errno(err, fd < 0 ? -fd : errno, "cannot look at %s", path);
    return 0;
}

/* When was this version committed? From its manifest where that can be read, else from its file. */
struct timespec lfs_views_time(struct lfs_views *views, const char *dir, uint64_t number, enum lfs_naming naming) {
    char name[LFS_MANIFEST_NAME_SIZE];
    struct lfs_rendered_info info;
    struct lfs_version *version;
    /* decoded, which a merge needs next, rather than rendered, which only a reader needs */
    if (lfs_dataset_version(views->ds, dir, number, &version, NULL) == 0) {
        const Lance__Table__Timestamp *t = version->manifest.message->timestamp;
        bool good = t && (t->seconds || t->nanos) && t->nanos < 1000000000;
        struct timespec time = good ? (struct timespec){t->seconds, t->nanos > 0 ? t->nanos : 0} : version->mtime;
        lfs_version_release(version);
        return time;
    }
    lfs_manifest_name(naming, number, name);
    if (lfs_views_stat(views, dir, LFS_RENDER_MANIFEST, name, &info, NULL) < 0)
        return (struct timespec){0};
    return info.time;
}

static void forget_dir(struct lfs_views *views, struct lfs_view_dir *d, struct lfs_view **dropped) {
    *dropped = NULL;
    if (d->view) {
        views->view_bytes -= d->view->bytes;
        if (--d->view->users == 0)
            *dropped = d->view;
    }
    free(d->old);
    d->view = NULL;
    d->old = NULL;
    d->n_old = 0;
    d->scanned_to = 0;
    d->tip_valid = false;
}

/* The manifest that a branch's view was made from, to see whether it still stands there: a branch that was deleted and made
 * again may have its directory's inode number. */
struct origin {
    char file_name[LFS_MANIFEST_NAME_SIZE]; /* "" = there is no view */
    dev_t dev;
    ino_t ino;
    off_t size;
    struct timespec mtime;
};

/* With the lock held. */
static struct origin origin_of(const struct lfs_view_dir *d) {
    struct origin o = {.file_name = ""};
    if (d->view) {
        const struct lfs_version *v = d->view->version;
        o = (struct origin){.dev = v->dev, .ino = v->ino, .size = v->file_size, .mtime = v->mtime};
        memcpy(o.file_name, v->file_name, sizeof o.file_name);
    }
    return o;
}

static bool still_there(struct lfs_views *views, const char *dir, const struct origin *o) {
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    struct stat st;
    char *path = arena && *o->file_name ? lfs_sprintf(arena, "%s%s_versions/%s", dir, *dir ? "/" : "", o->file_name) : NULL;
    LFS_AUTO_FD fd = path ? lfs_dataset_open_beneath(views->ds, path, O_PATH) : -1;
    return fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == o->dev && st.st_ino == o->ino && st.st_size == o->size &&
           is_same_time(st.st_mtim, o->mtime);
}

errint_t lfs_views_tip(struct lfs_views *views, const char *dir, struct lfs_view_tip *out, struct lfs_error *err) {
    struct stat now;
    LFS_TRY(stat_versions(views, dir, &now, err));
    pthread_mutex_lock(&views->lock);
    struct lfs_view_dir *d = dir_of(views, dir);
    bool unchanged = d && is_unchanged(d, &now);
    struct origin origin = {.file_name = ""};
    if (d && !unchanged)
        origin = origin_of(d);
    if (unchanged)
        *out = d->tip;
    pthread_mutex_unlock(&views->lock);
    if (!d)
        return lfs_fail_nomem(err);
    if (unchanged)
        return 0;

    struct timespec looked_at;
    struct lfs_view *dropped = NULL;
    clock_gettime(CLOCK_REALTIME, &looked_at);
    LFS_TRY(lfs_dataset_tip(views->ds, dir, &out->number, &out->naming, err));
    out->time = lfs_views_time(views, dir, out->number, out->naming);
    bool replaced = *origin.file_name && !still_there(views, dir, &origin);
    pthread_mutex_lock(&views->lock);
    replaced &= d->view && d->view->version->ino == origin.ino;
    if (d->tip_valid && (replaced || !is_same_dir(&d->versions, &now) || out->number < d->tip.number))
        forget_dir(views, d, &dropped); /* another branch of that name, or one that was taken back */
    d->tip = *out;
    d->versions = now;
    d->looked_at = looked_at;
    d->tip_valid = true;
    pthread_mutex_unlock(&views->lock);
    lfs_view_destroy(dropped);
    return 0;
}

/* --- the name index of the newest version --- */

/* With the lock held: the view that the branch holds, if any, for the caller to use. */
static struct lfs_view *take(struct lfs_views *views, struct lfs_view_dir *d) {
    if (!d->view)
        return NULL;
    d->used = ++views->clock;
    d->view->users++;
    return d->view;
}

/* With the lock held: while there is too much, let go of the view not used for longest. Not of `keep`'s. */
static size_t let_go(struct lfs_views *views, const struct lfs_view_dir *keep, struct lfs_view **dropped, size_t room) {
    size_t n = 0;
    while (views->view_bytes > views->view_bytes_max && n < room) {
        struct lfs_view_dir *oldest = NULL;
        for (size_t i = 0; i < views->dirs.count; i++) {
            struct lfs_view_dir *d = views->dirs.entries[i].value;
            if (d->view && d != keep && (!oldest || d->used < oldest->used))
                oldest = d;
        }
        if (!oldest)
            break;
        views->view_bytes -= oldest->view->bytes;
        if (--oldest->view->users == 0)
            dropped[n++] = oldest->view;
        oldest->view = NULL;
    }
    return n;
}

/* Make `view` the one that the branch holds, unless a newer one got there first. */
static void hold(struct lfs_views *views, struct lfs_view_dir *d, struct lfs_view *view) {
    struct lfs_view *dropped[16];
    size_t n = 0;
    pthread_mutex_lock(&views->lock);
    if (!d->view || d->view->version->number < view->version->number) {
        if (d->view) {
            views->view_bytes -= d->view->bytes;
            if (--d->view->users == 0)
                dropped[n++] = d->view;
        }
        d->view = view;
        d->used = ++views->clock;
        view->users++;
        views->view_bytes += view->bytes;
        n += let_go(views, d, dropped + n, 16 - n);
    }
    pthread_mutex_unlock(&views->lock);
    for (size_t i = 0; i < n; i++)
        lfs_view_destroy(dropped[i]);
}

errint_t lfs_views_get(struct lfs_views *views, const char *dir, bool stale, struct lfs_view **out,
                       struct lfs_error *err) {
    struct lfs_view_tip tip = {0};
    struct lfs_version *version;
    *out = NULL;
    if (!stale)
        LFS_TRY(lfs_views_tip(views, dir, &tip, err));
    pthread_mutex_lock(&views->lock);
    struct lfs_view_dir *d = dir_of(views, dir);
    if (d && d->view && (stale || d->view->version->number == tip.number))
        *out = take(views, d);
    pthread_mutex_unlock(&views->lock);
    if (!d)
        return lfs_fail_nomem(err);
    if (*out)
        return 0;
    if (stale)
        LFS_TRY(lfs_views_tip(views, dir, &tip, err));
    LFS_TRY(lfs_dataset_version(views->ds, dir, tip.number, &version, err));
    LFS_TRY(lfs_view_build(version, out, err));
    hold(views, d, *out);
    return 0;
}

void lfs_views_put(struct lfs_views *views, struct lfs_view *view) {
    if (!view)
        return;
    pthread_mutex_lock(&views->lock);
    bool last = --view->users == 0;
    pthread_mutex_unlock(&views->lock);
    if (last)
        lfs_view_destroy(view);
}

/* --- base paths of older versions --- */

struct scan {
    struct lfs_arena *arena;
    struct lfs_map seen; /* paths of base paths that are known already */
    struct lfs_old_base *found;
    size_t n_found, capacity;
};

static errint_t note_bases(struct scan *scan, uint64_t number, const LanceManifest *m, bool keep) {
    for (size_t i = 0; i < m->n_base_paths; i++) {
        const LanceBasePath *base = m->base_paths[i];
        char *key = lfs_sprintf(scan->arena, "%d%s", base->is_dataset_root, base->path ? base->path : "");
        if (!key)
            return -ENOMEM;
        if (lfs_map_get(&scan->seen, key))
            continue;
        if (!lfs_map_put(&scan->seen, key, key))
            return -ENOMEM;
        if (!keep)
            continue;
        if (scan->n_found == scan->capacity) {
            size_t capacity = scan->capacity ? scan->capacity * 2 : 8;
            struct lfs_old_base *grown = realloc(scan->found, capacity * sizeof *grown);
            if (!grown)
                return -ENOMEM;
            scan->found = grown;
            scan->capacity = capacity;
        }
        scan->found[scan->n_found++] = (struct lfs_old_base){number, base->id};
    }
    return 0;
}

/* Look through the versions in (from, tip), newest first: what their manifests have as base paths. Versions that cannot
 * be read are passed over: a file that only they use cannot be read through them either. */
static errint_t scan_versions(struct lfs_views *views, const char *dir, uint64_t from, const struct lfs_version *tip,
                              struct scan *scan) {
    struct lfs_versions versions;
    size_t n_shared;
    if (lfs_dataset_versions(views->ds, dir, scan->arena, &versions, NULL) < 0)
        return 0;
    for (size_t i = versions.count; i-- > 0;) {
        if (versions.numbers[i] >= tip->number || versions.numbers[i] <= from)
            continue;
        LFS_AUTO_BUF bytes = {0};
        LFS_AUTO_ARENA *arena = lfs_arena_new();
        char name[LFS_MANIFEST_NAME_SIZE];
        struct lfs_manifest manifest;
        lfs_manifest_name(versions.naming, versions.numbers[i], name);
        char *path = arena ? lfs_sprintf(arena, "%s%s_versions/%s", dir, *dir ? "/" : "", name) : NULL;
        if (!path)
            return -ENOMEM;
        /* not by lfs_dataset_version: a long history would drive everything else out of the cache */
        if (lfs_read_file(lfs_dataset_root_fd(views->ds), path, LFS_MANIFEST_BYTES_MAX, &bytes, NULL, NULL) < 0 ||
            lfs_manifest_decode_like(bytes.data, bytes.length, &tip->manifest, arena, arena, path, &manifest, &n_shared,
                                     NULL) < 0)
            continue;
        LFS_TRY(note_bases(scan, versions.numbers[i], manifest.message, true));
    }
    return 0;
}

/* Join what was found with what the branch knew; hand out a copy of all of it. */
static errint_t keep_old_bases(struct lfs_views *views, const char *dir, uint64_t from, uint64_t tip, struct scan *scan,
                               struct lfs_arena *arena, struct lfs_old_base **out, size_t *n_out) {
    errint_t result = 0;
    pthread_mutex_lock(&views->lock);
    struct lfs_view_dir *d = dir_of(views, dir);
    if (d && d->scanned_to == from && tip > from + 1) { /* nobody else was quicker */
        size_t total = d->n_old + scan->n_found;
        struct lfs_old_base *grown = realloc(d->old, (total + 1) * sizeof *grown);
        if (grown) {
            if (scan->n_found)
                memcpy(grown + d->n_old, scan->found, scan->n_found * sizeof *grown);
            d->old = grown;
            d->n_old = total;
            d->scanned_to = tip - 1;
        }
    }
    *n_out = d ? d->n_old : 0;
    *out = LFS_NEW_ARRAY(arena, struct lfs_old_base, *n_out);
    if (!*out)
        result = -ENOMEM;
    else if (*n_out)
        memcpy(*out, d->old, *n_out * sizeof **out);
    pthread_mutex_unlock(&views->lock);
    return result;
}

errint_t lfs_views_old_bases(struct lfs_views *views, const char *dir, const struct lfs_view *tip,
                             struct lfs_arena *arena, struct lfs_old_base **out, size_t *n_out, struct lfs_error *err) {
    uint64_t number = tip->version->number;
    pthread_mutex_lock(&views->lock);
    struct lfs_view_dir *d = dir_of(views, dir);
    uint64_t from = d ? d->scanned_to : 0;
    pthread_mutex_unlock(&views->lock);
    struct scan scan = {.arena = lfs_arena_new()};
    if (!scan.arena)
        return lfs_fail_nomem(err);
    lfs_map_init(&scan.seen, scan.arena);
    errint_t result = note_bases(&scan, number, tip->version->manifest.message, false);
    if (result == 0 && number > from + 1)
        result = scan_versions(views, dir, from, tip->version, &scan);
    if (result == 0)
        result = keep_old_bases(views, dir, from, number, &scan, arena, out, n_out);
    free(scan.found);
    lfs_arena_free(scan.arena);
    return result < 0 ? lfs_fail_nomem(err) : 0;
}
