/* SPDX-License-Identifier: Apache-2.0 */
#include "fuse/images.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "fuse/conflicts.h"
#include "fuse/handles.h"
#include "fuse/previews.h"
#include "util/cleanup.h"
#include "util/map.h"

enum { ENTRIES_MAX = 256 };

static const struct lfs_image_source *const sources[] = {&lfs_preview_source, &lfs_conflict_rows_source};

static const struct lfs_image_source *source_of(const char *what) {
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++)
        if (strncmp(what, sources[i]->prefix, strlen(sources[i]->prefix)) == 0)
            return sources[i];
    return NULL;
}

/* --- the cache --- */

struct entry {
    struct lfs_image *image;
    uint64_t place; /* the token of the branch's node */
    char *what;
    struct lfs_stamp stamp;
    struct timespec made;
    bool stale; /* something newer was made: only for those who hold its node */
    TAILQ_ENTRY(entry) by_use;
};

TAILQ_HEAD(entries, entry);

struct lfs_images {
    pthread_mutex_t lock;
    struct entries by_use; /* the newest first */
    size_t count, bytes, bytes_max;
    uint64_t hits, misses;
};

struct lfs_images *lfs_images_new(size_t bytes_max) {
    struct lfs_images *images = calloc(1, sizeof *images);
    if (!images)
        return NULL;
    pthread_mutex_init(&images->lock, NULL);
    TAILQ_INIT(&images->by_use);
    images->bytes_max = bytes_max;
    return images;
}

static void drop(struct lfs_images *images, struct entry *e) {
    TAILQ_REMOVE(&images->by_use, e, by_use);
    images->count--;
    images->bytes -= lfs_image_size(e->image);
    lfs_image_release(e->image);
    free(e->what);
    free(e);
}

void lfs_images_free(struct lfs_images *images) {
    if (!images)
        return;
    while (!TAILQ_EMPTY(&images->by_use))
        drop(images, TAILQ_FIRST(&images->by_use));
    pthread_mutex_destroy(&images->lock);
    free(images);
}

void lfs_images_count(struct lfs_images *images, struct lfs_cache_counts *out) {
    pthread_mutex_lock(&images->lock);
    *out = (struct lfs_cache_counts){images->hits, images->misses, images->count, images->bytes};
    pthread_mutex_unlock(&images->lock);
}

struct wanted {
    uint64_t place;
    const char *what;
    const uint64_t *token;         /* that very image; NULL: the one that is good now */
    const struct lfs_stamp *stamp; /* when `token` is NULL */
};

static bool is_of(const struct entry *e, uint64_t place, const char *what) {
    return e->place == place && strcmp(e->what, what) == 0;
}

static bool matches(const struct entry *e, const struct wanted *w) {
    if (!is_of(e, w->place, w->what))
        return false;
    return w->token ? lfs_image_token(e->image) == *w->token
                    : !e->stale && e->stamp.hash == w->stamp->hash && lfs_stamp_is_settled(&e->stamp, e->made);
}

/* With the lock held; there are few. */
static struct entry *find(struct lfs_images *images, const struct wanted *w) {
    struct entry *e = TAILQ_FIRST(&images->by_use);
    while (e && !matches(e, w))
        e = TAILQ_NEXT(e, by_use);
    if (e) {
        TAILQ_REMOVE(&images->by_use, e, by_use);
        TAILQ_INSERT_HEAD(&images->by_use, e, by_use);
    }
    return e;
}

/* An image of the cache, with a user more; NULL: it has none. */
static struct lfs_image *cached(struct lfs_images *images, const struct wanted *w, bool counts) {
    pthread_mutex_lock(&images->lock);
    struct entry *e = find(images, w);
    struct lfs_image *image = e ? lfs_image_hold(e->image) : NULL;
    *(e ? &images->hits : &images->misses) += counts;
    pthread_mutex_unlock(&images->lock);
    return image;
}

/* Keep what was made; what came out the same before is used again. Without memory it is not kept. */
static void keep(struct lfs_images *images, struct entry *made) {
    uint64_t token = lfs_image_token(made->image);
    struct wanted same = {.place = made->place, .what = made->what, .token = &token};
    pthread_mutex_lock(&images->lock);
    for (struct entry *e = TAILQ_FIRST(&images->by_use); e; e = TAILQ_NEXT(e, by_use))
        if (is_of(e, made->place, made->what))
            e->stale = true;
    struct entry *e = find(images, &same);
    if (e) {
        e->stamp = made->stamp;
        e->made = made->made;
        e->stale = false;
    } else if ((e = calloc(1, sizeof *e)) && (made->what = strdup(made->what))) {
        *e = *made;
        lfs_image_hold(e->image);
        TAILQ_INSERT_HEAD(&images->by_use, e, by_use);
        images->count++;
        images->bytes += lfs_image_size(e->image);
    } else {
        free(e);
    }
    while (images->count > 1 && (images->bytes > images->bytes_max || images->count > ENTRIES_MAX))
        drop(images, TAILQ_LAST(&images->by_use, entries));
    pthread_mutex_unlock(&images->lock);
}

/* The image as it is now, with a user more. */
static errint_t image_now(struct lfs_mount *m, const struct lfs_node *place, const char *what, bool known_only,
                          struct lfs_image **out) {
    const struct lfs_image_source *source = source_of(what);
    struct lfs_stamp now = {0};
    struct entry made = {.place = place->token, .what = (char *)what};
    struct wanted w = {.place = place->token, .what = what, .stamp = &now};
    *out = NULL;
    if (!source)
        return -ENOENT;
    LFS_TRY(source->stamp(m, place, what, &now));
    if ((*out = cached(m->images, &w, !known_only)))
        return 0;
    if (known_only)
        return -EAGAIN;
    clock_gettime(CLOCK_REALTIME, &made.made);
    LFS_TRY(source->make(m, place, what, out));
    made.image = *out;
    made.stamp = now;
    keep(m->images, &made);
    return 0;
}

/* --- nodes --- */

bool lfs_is_in_image(const struct lfs_node *node) {
    return node->kind == LFS_NODE_IMAGE || node->kind == LFS_NODE_IMAGE_DIR || node->kind == LFS_NODE_IMAGE_FILE;
}

static const struct lfs_node *root_of(const struct lfs_node *node) {
    while (node->kind != LFS_NODE_IMAGE)
        node = node->parent;
    return node;
}

/* The path of a node below its image. */
static const char *path_of(const struct lfs_node *node) { return node->kind == LFS_NODE_IMAGE ? "" : node->text; }

/* The image that a node is of: from the cache, or made again. -ESTALE when it cannot be had any more. */
static errint_t image_of(struct lfs_mount *m, const struct lfs_node *node, struct lfs_image **out) {
    const struct lfs_node *root = root_of(node);
    struct wanted w = {.place = root->branch->token, .what = root->text, .token = &root->token};
    *out = cached(m->images, &w, false);
    if (*out)
        return 0;
    errint_t result = image_now(m, root->branch, root->text, false, out);
    if (result == -ENOMEM)
        return result;
    if (result == 0 && lfs_image_token(*out) == root->token)
        return 0;
    lfs_image_release(*out);
    *out = NULL;
    return -ESTALE;
}

static errint_t settle(struct lfs_mount *m, const struct lfs_image *image, const struct lfs_image_entry *entry,
                       struct lfs_node_spec *spec, struct lfs_node **out) {
    struct stat st = {0};
    off_t size = (off_t)(entry->file.size > INT64_MAX ? INT64_MAX : entry->file.size);
    LFS_TRY(lfs_image_attributes(m, spec->parent->branch, entry->file.is_dir, size, lfs_image_time(image), &st));
    spec->st = &st;
    *out = lfs_nodes_look_up(m->nodes, spec);
    return *out ? 0 : -ENOMEM;
}

errint_t lfs_image_node(struct lfs_mount *m, struct lfs_node *parent, const char *name, const char *what,
                        bool known_only, struct lfs_node **out) {
    struct lfs_image *image;
    struct lfs_image_entry top = {.file.is_dir = true};
    LFS_TRY(image_now(m, parent->branch, what, known_only, &image));
    struct lfs_node_spec spec = {
        .kind = LFS_NODE_IMAGE, .parent = parent, .name = name, .text = what, .token = lfs_image_token(image)};
    errint_t result = settle(m, image, &top, &spec, out);
    lfs_image_release(image);
    return result;
}

static uint64_t file_token(const struct lfs_image_entry *e) {
    return e->bytes ? lfs_hash(e->bytes, e->file.size, 11) : 0;
}

static errint_t settle_entry(struct lfs_mount *m, const struct lfs_image *image, const struct lfs_image_entry *entry,
                             const char *path, struct lfs_node *parent, const char *name, struct lfs_node **out) {
    if (entry->file.reached && !entry->file.is_dir) {
        *out = lfs_nodes_look_up_file(m->nodes, &entry->file.st, &entry->file.location);
        return *out ? 0 : -ENOMEM;
    }
    bool is_lost = !entry->file.is_dir && !entry->bytes;
    struct lfs_node_spec spec = {.kind = entry->file.is_dir ? LFS_NODE_IMAGE_DIR : LFS_NODE_IMAGE_FILE,
                                 .parent = parent,
                                 .name = name,
                                 .text = path,
                                 .cause = is_lost ? entry->file.cause : 0,
                                 .token = is_lost ? (uint64_t)-entry->file.cause : file_token(entry)};
    return settle(m, image, entry, &spec, out);
}

/*
 * A program that has begun with an earlier plan goes on with it: names that the image `now` has no more are found in those
 * that were shown in its place before, as long as the cache has them; but no newer version, which would be taken for a
 * commit. `token`: that very file; NULL: any. The image is to be released.
 */
static errint_t find_earlier(struct lfs_mount *m, const struct lfs_node *root, const struct lfs_image *now,
                             const char *path, const uint64_t *token, struct lfs_arena *arena, struct lfs_image **image,
                             struct lfs_image_entry *out) {
    struct lfs_image *all[ENTRIES_MAX];
    size_t n = 0;
    *image = NULL;
    pthread_mutex_lock(&m->images->lock);
    for (struct entry *e = TAILQ_FIRST(&m->images->by_use); e && n < ENTRIES_MAX; e = TAILQ_NEXT(e, by_use))
        if (is_of(e, root->branch->token, root->text) && e->image != now &&
            lfs_image_version(e->image) <= lfs_image_version(now))
            all[n++] = lfs_image_hold(e->image);
    pthread_mutex_unlock(&m->images->lock);
    for (size_t i = 0; i < n; i++) {
        if (!*image && lfs_image_find(all[i], path, arena, out, NULL) == 0 && (!token || file_token(out) == *token))
            *image = all[i];
        else
            lfs_image_release(all[i]);
    }
    return *image ? 0 : -ENOENT;
}

static errint_t look_up(struct lfs_mount *m, const struct lfs_image *image, const char *path, struct lfs_node *parent,
                        const char *name, struct lfs_arena *arena, struct lfs_node **out, double *timeout) {
    struct lfs_image *earlier = NULL;
    struct lfs_image_entry entry;
    errint_t found = lfs_image_find(image, path, arena, &entry, NULL);
    if (found == -ENOENT)
        found = find_earlier(m, root_of(parent), image, path, NULL, arena, &earlier, &entry);
    if (found == 0)
        found = settle_entry(m, earlier ? earlier : image, &entry, path, parent, name, out);
    bool lasts = !earlier && (entry.file.is_dir || entry.file.reached || entry.bytes); /* others may go, or come back */
    *timeout = lasts ? LFS_IMMUTABLE_TIMEOUT : 0;
    lfs_image_release(earlier);
    return found;
}

errint_t lfs_image_look_up(struct lfs_mount *m, struct lfs_node *parent, const char *name, struct lfs_arena *arena,
                           struct lfs_node **out, double *timeout) {
    struct lfs_image *image;
    char *path = lfs_join(arena, path_of(parent), name);
    if (!path)
        return -ENOMEM;
    LFS_TRY(image_of(m, parent, &image));
    errint_t result = look_up(m, image, path, parent, name, arena, out, timeout);
    lfs_image_release(image);
    return result;
}

errint_t lfs_image_entries(struct lfs_mount *m, const struct lfs_node *node, struct lfs_arena *arena,
                           struct lfs_view_entry **out, size_t *n_out) {
    struct lfs_image *image;
    LFS_TRY(image_of(m, node, &image));
    struct lfs_image *earlier = NULL;
    struct lfs_image_entry entry;
    errint_t result = lfs_image_list(image, path_of(node), arena, out, n_out, NULL);
    if (result == -ENOENT && find_earlier(m, root_of(node), image, path_of(node), NULL, arena, &earlier, &entry) == 0)
        result = lfs_image_list(earlier, path_of(node), arena, out, n_out, NULL);
    lfs_image_release(earlier);
    lfs_image_release(image);
    return result;
}

errint_t lfs_image_open(struct lfs_mount *m, const struct lfs_node *node, struct lfs_handle *h) {
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    struct lfs_image_entry entry;
    struct lfs_image *now;
    errint_t result = 0;
    if (!arena)
        return -ENOMEM;
    if (node->cause)
        return node->cause;
    LFS_TRY(image_of(m, node, &now));
    if (lfs_image_find(now, node->text, arena, &entry, NULL) == 0 && file_token(&entry) == node->token)
        h->image = lfs_image_hold(now); /* the handle releases it */
    else
        result = find_earlier(m, root_of(node), now, node->text, &node->token, arena, &h->image, &entry);
    lfs_image_release(now);
    if (result < 0 || !entry.bytes)
        return -ESTALE;
    h->image_bytes = entry.bytes;
    h->image_size = entry.file.size;
    return 0;
}
