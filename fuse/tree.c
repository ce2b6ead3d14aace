/* SPDX-License-Identifier: Apache-2.0 */
#include "fuse/tree.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "format/names.h"
#include "table/location.h"
#include "table/stamp.h"
#include "util/cleanup.h"
#include "verbs/verbs.h"


struct lfs_tree_cache {
    struct lfs_dataset *ds;
    pthread_mutex_t lock;
    struct lfs_tree *tree; /* the newest; NULL = none yet */
};

/* Names that a branch's directory keeps for itself: control files, reports, what opens old versions and previews
 * (interface.md section 2), whether they are there already or not. */
bool lfs_is_taken_name(const char *segment) {
    static const char *const reserved[] = {".merge",         ".cherry-pick", ".rebase",  ".revert",   ".undo",
                                           ".rehome",        ".branch",      ".tag",     ".log",      ".status",
                                           ".log.graph",     ".diff",          ".files",       ".schema",  ".bases",    ".stale",
                                           ".manifest.json", ".versions",    ".preview", ".conflicts"};
    if (lfs_is_layout_name(segment))
        return true;
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
        if (strcmp(segment, reserved[i]) == 0)
            return true;
    return false;
}

static int compare_name(const void *name, const void *shown) {
    return strcmp(name, ((const struct lfs_shown_branch *)shown)->branch->name);
}

const struct lfs_shown_branch *lfs_tree_branch(const struct lfs_tree *tree, const char *name) {
    if (tree->count && strcmp(name, tree->list[0].branch->name) == 0)
        return &tree->list[0];
    if (tree->count < 2)
        return NULL;
    return bsearch(name, tree->list + 1, tree->count - 1, sizeof *tree->list, compare_name);
}

const struct lfs_shown_branch *lfs_tree_at(const struct lfs_tree *tree, const char *path, bool *encoded) {
    const struct lfs_shown_branch *shown = lfs_tree_branch(tree, path);
    *encoded = false;
    if (shown && shown->prefix)
        return shown;
    if (shown || !strchr(path, '%') || strchr(path, '/'))
        return NULL;
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    char *name = arena ? lfs_percent_decode(arena, path) : NULL;
    char *again = name ? lfs_percent_encode(arena, name) : NULL;
    *encoded = true;
    /* one encoded name a branch, not one for every way to write it */
    return again && strcmp(again, path) == 0 ? lfs_tree_branch(tree, name) : NULL;
}

bool lfs_tree_leads_on(const struct lfs_tree *tree, const char *prefix) {
    size_t length = strlen(prefix);
    for (size_t i = 0; i < tree->count; i++) {
        const char *path = tree->list[i].path;
        if (tree->list[i].prefix && strncmp(path, prefix, length) == 0 && path[length] == '/')
            return true;
    }
    return false;
}

/* --- making a snapshot --- */

static bool has_versions(struct lfs_dataset *ds, struct lfs_arena *arena, const struct lfs_branch *branch) {
    char *path = lfs_sprintf(arena, "%s%s_versions", branch->dir, *branch->dir ? "/" : "");
    LFS_AUTO_FD fd = path ? lfs_dataset_open_beneath(ds, path, O_PATH | O_DIRECTORY) : -1;
    return fd >= 0;
}

static bool is_hidden(const struct lfs_tree *tree, const char *name, char *room) {
    for (const char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/')) {
        size_t length = strcspn(slash + 1, "/");
        memcpy(room, slash + 1, length);
        room[length] = '\0';
        if (!lfs_is_taken_name(room))
            continue;
        memcpy(room, name, (size_t)(slash - name));
        room[slash - name] = '\0';
        if (lfs_tree_branch(tree, room))
            return true;
    }
    return false;
}

static errint_t place(struct lfs_tree *tree) {
    for (size_t i = 0; i < tree->count; i++) {
        struct lfs_shown_branch *shown = &tree->list[i];
        const char *name = shown->branch->name;
        char *room = lfs_alloc(tree->arena, strlen(name) + 1);
        if (!room)
            return -ENOMEM;
        bool hidden = is_hidden(tree, name, room);
        shown->path = hidden ? lfs_percent_encode(tree->arena, name) : name;
        shown->prefix = hidden ? NULL : name;
        if (!shown->path)
            return -ENOMEM;
    }
    return 0;
}

static errint_t fill(struct lfs_dataset *ds, struct lfs_tree *tree, struct lfs_error *err) {
    struct lfs_branch *branches;
    size_t n;
    LFS_TRY(lfs_dataset_branches(ds, tree->arena, &branches, &n, NULL, err));
    tree->list = LFS_NEW_ARRAY(tree->arena, struct lfs_shown_branch, n);
    if (!tree->list)
        return lfs_fail_nomem(err);
    for (size_t i = 0; i < n; i++)
        if (has_versions(ds, tree->arena, &branches[i]))
            tree->list[tree->count++].branch = &branches[i];
    return place(tree) < 0 || !lfs_tree_name_tables(tree) ? lfs_fail_nomem(err) : 0;
}

/* The directory of refs, or the root where no branch was ever made. */
static errint_t stat_refs(struct lfs_dataset *ds, struct stat *st, struct lfs_error *err) {
    LFS_AUTO_FD fd = lfs_dataset_open_beneath(ds, "_refs/branches", O_PATH | O_DIRECTORY);
    int result = fd >= 0 ? fstat(fd, st) : fstat(lfs_dataset_root_fd(ds), st);
    return result < 0 ? lfs_fail_errno(err, errno, "cannot look at the branches") : 0;
}

static bool is_current(const struct lfs_tree *tree, const struct stat *now) {
    return tree->refs.st_dev == now->st_dev && tree->refs.st_ino == now->st_ino &&
           tree->refs.st_mtim.tv_sec == now->st_mtim.tv_sec && tree->refs.st_mtim.tv_nsec == now->st_mtim.tv_nsec &&
           lfs_is_settled(now->st_mtim, tree->looked_at);
}

static errint_t make(struct lfs_dataset *ds, const struct stat *refs, struct lfs_tree **out, struct lfs_error *err) {
    struct lfs_arena *arena = lfs_arena_new();
    struct lfs_tree *tree = arena ? LFS_NEW(arena, struct lfs_tree) : NULL;
    if (!tree) {
        lfs_arena_free(arena);
        return lfs_fail_nomem(err);
    }
    tree->arena = arena;
    tree->users = 1;
    tree->refs = *refs;
    tree->time = refs->st_mtim;
    clock_gettime(CLOCK_REALTIME, &tree->looked_at);
    errint_t result = fill(ds, tree, err);
    if (result < 0) {
        lfs_arena_free(arena);
        return result;
    }
    *out = tree;
    return 0;
}

errint_t lfs_tree_get(struct lfs_tree_cache *cache, struct lfs_tree **out, struct lfs_error *err) {
    struct stat refs;
    *out = NULL;
    LFS_TRY(stat_refs(cache->ds, &refs, err));
    pthread_mutex_lock(&cache->lock);
    if (cache->tree && is_current(cache->tree, &refs)) {
        *out = cache->tree;
        cache->tree->users++;
    }
    pthread_mutex_unlock(&cache->lock);
    if (*out)
        return 0;
    LFS_TRY(make(cache->ds, &refs, out, err));
    pthread_mutex_lock(&cache->lock);
    struct lfs_tree *old = cache->tree;
    cache->tree = *out;
    cache->tree->users++;
    pthread_mutex_unlock(&cache->lock);
    if (old)
        lfs_tree_put(cache, old);
    return 0;
}

void lfs_tree_put(struct lfs_tree_cache *cache, struct lfs_tree *tree) {
    pthread_mutex_lock(&cache->lock);
    bool last = --tree->users == 0;
    pthread_mutex_unlock(&cache->lock);
    if (last)
        lfs_arena_free(tree->arena); /* the tree itself lives in it */
}

struct lfs_tree_cache *lfs_tree_cache_new(struct lfs_dataset *ds) {
    struct lfs_tree_cache *cache = calloc(1, sizeof *cache);
    if (!cache)
        return NULL;
    cache->ds = ds;
    pthread_mutex_init(&cache->lock, NULL);
    return cache;
}

void lfs_tree_cache_free(struct lfs_tree_cache *cache) {
    if (!cache)
        return;
    if (cache->tree)
        lfs_arena_free(cache->tree->arena);
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}
