/* SPDX-License-Identifier: Apache-2.0 */
/* Listings of data/, _deletions/ and _indices/ of a view. */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "table/view_impl.h"
#include "util/cleanup.h"

struct listing {
    struct lfs_views *views;
    const char *dir;
    enum lfs_file_kind kind;
    const char *sub;
    struct lfs_arena *arena;
    bool names_only;      /* of one version: what else lies in the branch's own directory is not its */
    const struct lfs_view *only; /* an image's: what it does not name is not looked for; NULL: a branch's */
    const char *other;           /* see lfs_view_find */
    struct lfs_map names; /* component -> struct lfs_view_entry */
    struct lfs_map dirs;  /* "+directory" inside, "-directory" outside -> struct open_dir */
};

/* Directories that files were found in stay open while the listing is made: one call a file instead of three. */
struct open_dir {
    int fd; /* negative: why it cannot be opened */
    struct lfs_location location;
    struct lfs_error why;
    bool subs_known;
    struct lfs_map subs; /* names of directories in it */
};

static void close_dirs(struct listing *l) {
    for (size_t i = 0; i < l->dirs.count; i++) {
        struct open_dir *d = l->dirs.entries[i].value;
        if (d->fd >= 0)
            close(d->fd);
    }
}

static struct open_dir *dir_at(struct listing *l, const struct lfs_location *location) {
    char *key = lfs_sprintf(l->arena, "%c%s", location->inside ? '+' : '-', location->directory);
    struct open_dir *d = key ? lfs_map_get(&l->dirs, key) : NULL;
    if (d || !key)
        return d;
    d = LFS_NEW(l->arena, struct open_dir);
    if (!d)
        return NULL;
    d->location = (struct lfs_location){location->inside, location->directory, ""};
    d->fd = -ENOMEM;
    if (!lfs_map_put(&l->dirs, key, d))
        return NULL;
    d->fd = lfs_location_open_dir(l->views->ds, &d->location, &d->why);
    return d;
}

static errint_t add(struct listing *l, const struct lfs_view_entry *entry) {
    if (lfs_map_get(&l->names, entry->name))
        return 0;
    struct lfs_view_entry *copy = lfs_memdup(l->arena, entry, sizeof *entry);
    return copy && lfs_map_put(&l->names, copy->name, copy) ? 0 : -ENOMEM;
}

static errint_t find(struct listing *l, const char *path, struct lfs_view_entry *out) {
    return l->only ? lfs_view_find(l->views, l->only, l->other, l->kind, path, l->arena, out, NULL)
                   : lfs_views_find(l->views, l->dir, l->kind, path, l->arena, out, NULL);
}

/* --- names of the newest version --- */

static errint_t stat_at(struct listing *l, const struct lfs_location *location, struct stat *st,
                        struct lfs_error *why) {
    struct open_dir *d = dir_at(l, location);
    if (!d)
        return lfs_fail_nomem(why);
    if (d->fd < 0) {
        *why = d->why;
        return d->fd;
    }
    if (!strchr(location->name, '/') && fstatat(d->fd, location->name, st, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISREG(st->st_mode))
        return 0;
    return lfs_location_stat(l->views->ds, location, st, why); /* the careful way, and the error's words */
}

static void fill_file(struct listing *l, const struct lfs_view *view, const struct lfs_view_name *name,
                      struct lfs_view_entry *entry) {
    struct lfs_location location;
    struct lfs_error why;
    errint_t result = lfs_locate(view->version, l->kind, name->base_id, name->name, l->arena, &location, &why);
    if (result == 0)
        result = stat_at(l, &location, &entry->st, &why);
    if (result == 0 && S_ISREG(entry->st.st_mode)) {
        entry->reached = true;
        return;
    }
    if (result == 0)
        result = lfs_fail(&why, LFS_E_CORRUPT, "%s/%s is not a file", location.directory, location.name);
    const LanceBasePath *base =
        name->base_id < 0 ? NULL : lfs_manifest_base(view->version->manifest.message, (uint32_t)name->base_id);
    lfs_views_complain(l->views, base && base->path ? base->path : l->dir, &why);
    entry->cause = result == -EACCES || result == -EPERM ? -EACCES : -EIO;
    entry->size = name->size;
}

/* A component of a name that has more below it: a directory, looked at where the view finds it. */
static errint_t add_directory(struct listing *l, const char *component) {
    if (lfs_map_get(&l->names, component))
        return 0;
    struct lfs_view_entry entry;
    char *path = lfs_join(l->arena, l->sub, component);
    if (!path)
        return -ENOMEM;
    if (find(l, path, &entry) < 0)
        return 0;
    entry.name = component;
    return add(l, &entry);
}

/* The names of directories in one base directory, read once. */
static const struct lfs_map *subs_of(struct listing *l, struct open_dir *d) {
    if (d->subs_known)
        return &d->subs;
    d->subs_known = true;
    lfs_map_init(&d->subs, l->arena);
    int fd = d->fd < 0 ? -1 : openat(d->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = fd < 0 ? NULL : fdopendir(fd);
    if (!list) {
        if (fd >= 0)
            close(fd);
        return &d->subs;
    }
    for (struct dirent *e; (e = readdir(list));) {
        if (e->d_name[0] == '.' || (e->d_type != DT_DIR && e->d_type != DT_UNKNOWN))
            continue;
        char *name = lfs_strdup(l->arena, e->d_name);
        if (name)
            lfs_map_put(&d->subs, name, name);
    }
    closedir(list);
    return &d->subs;
}

/* A data file's side directory goes with it. */
static errint_t add_side_directory(struct listing *l, const struct lfs_view *view, const struct lfs_view_name *name) {
    struct lfs_location location;
    const char *dot = strrchr(name->name, '.');
    size_t n = strlen(name->shown), suffix = strlen(".lance");
    if ((name->base_id < 0 && !l->names_only) || !dot || strcmp(dot, ".lance") || strchr(name->name, '/') ||
        lfs_locate(view->version, l->kind, name->base_id, name->name, l->arena, &location, NULL) < 0)
        return 0; /* one of the branch's own is listed with its own directory */
    struct open_dir *d = dir_at(l, &location);
    char *stored = lfs_strndup(l->arena, name->name, (size_t)(dot - name->name));
    if (!d || !stored || !lfs_map_get(subs_of(l, d), stored))
        return 0;
    char *shown = lfs_strndup(l->arena, name->shown, n - suffix);
    return shown ? add_directory(l, shown) : -ENOMEM;
}

static errint_t add_shown(struct listing *l, const struct lfs_view *view, const struct lfs_view_name *name) {
    size_t skip = strlen(l->sub);
    const char *rest = name->shown;
    if (skip) {
        if (strncmp(rest, l->sub, skip) != 0 || rest[skip] != '/')
            return 0;
        rest += skip + 1;
    }
    const char *slash = strchr(rest, '/');
    if (slash || l->kind == LFS_FILE_INDEX) {
        char *component = lfs_strndup(l->arena, rest, slash ? (size_t)(slash - rest) : strlen(rest));
        return component ? add_directory(l, component) : -ENOMEM;
    }
    struct lfs_view_entry entry = {.name = rest, .cause = -EIO};
    if (lfs_map_get(&l->names, rest))
        return 0; /* known already: of an image, in memory */
    fill_file(l, view, name, &entry);
    if (!entry.reached && l->other)
        LFS_TRY(find(l, name->shown, &entry));
    entry.name = lfs_strdup(l->arena, rest); /* the listing outlives the view */
    if (!entry.name)
        return -ENOMEM;
    LFS_TRY(add(l, &entry));
    return l->kind == LFS_FILE_DATA && !skip ? add_side_directory(l, view, name) : 0;
}

static errint_t add_names(struct listing *l, const struct lfs_view *view) {
    for (size_t i = 0; i < view->n_names[l->kind]; i++)
        LFS_TRY(add_shown(l, view, &view->names[l->kind][i]));
    return 0;
}

/* Files of an index whose directory is nowhere, as its manifest knows them. */
static errint_t add_index_files(struct listing *l, const struct lfs_view *view) {
    const struct lfs_view_name *name = lfs_map_get(&view->by_shown[LFS_FILE_INDEX], l->sub);
    for (size_t i = 0; name && i < name->index->n_files; i++) {
        const Lance__Table__IndexFile *file = name->index->files[i];
        if (!file->path || !lfs_view_path_ok(file->path) || strchr(file->path, '/'))
            continue;
        struct lfs_view_entry entry = {.cause = -EIO, .size = file->size_bytes};
        entry.name = lfs_strdup(l->arena, file->path);
        if (!entry.name || add(l, &entry) < 0)
            return -ENOMEM;
    }
    return 0;
}

/* --- what lies on the disk --- */

/* A branch named like "f/data" is stored in the middle of f's own files: what is another branch's is not f's. */
static bool is_other_branch(const struct listing *l, int dir, const char *name) {
    struct stat st;
    char path[NAME_MAX + sizeof "/_versions"];
    if (*l->sub)
        return false;
    snprintf(path, sizeof path, "%s/_versions", name);
    return lfs_is_layout_name(name) || fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static errint_t add_disk_directory(struct listing *l, const struct lfs_location *location) {
    int fd = lfs_location_open_dir(l->views->ds, location, NULL);
    DIR *list = fd < 0 ? NULL : fdopendir(fd);
    if (!list) {
        if (fd >= 0)
            close(fd);
        return fd < 0 ? fd : -ENOMEM;
    }
    errint_t result = 0;
    for (struct dirent *e; result == 0 && (e = readdir(list));) {
        struct lfs_view_entry entry = {.reached = true};
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 || lfs_map_get(&l->names, e->d_name) ||
            fstatat(dirfd(list), e->d_name, &entry.st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        entry.is_dir = S_ISDIR(entry.st.st_mode);
        if (!entry.is_dir && !S_ISREG(entry.st.st_mode))
            continue; /* a link or a device is nothing that a data set holds */
        if (entry.is_dir && is_other_branch(l, dirfd(list), e->d_name))
            continue;
        entry.name = lfs_strdup(l->arena, e->d_name);
        result = entry.name ? add(l, &entry) : -ENOMEM;
    }
    closedir(list);
    return result;
}

static errint_t list_top(struct listing *l, const struct lfs_view *view) {
    struct lfs_location location = {.inside = true, .name = ""};
    location.directory = lfs_join(l->arena, l->dir, lfs_kind_directory[l->kind]);
    if (!location.directory || (view && add_names(l, view) < 0))
        return -ENOMEM;
    if (l->names_only)
        return 0;
    return add_disk_directory(l, &location) == -ENOMEM ? -ENOMEM : 0; /* one that is not there holds nothing */
}

static errint_t list_below(struct listing *l, const struct lfs_view *view) {
    struct lfs_view_entry entry;
    LFS_TRY(find(l, l->sub, &entry));
    if (!entry.is_dir)
        return -ENOTDIR;
    if (entry.reached)
        LFS_TRY(add_disk_directory(l, &entry.location));
    if (!view)
        return 0;
    if (l->kind == LFS_FILE_INDEX)
        return entry.reached ? 0 : add_index_files(l, view);
    return add_names(l, view);
}

static void start(struct listing *l) {
    lfs_map_init(&l->names, l->arena);
    lfs_map_init(&l->dirs, l->arena);
}

static errint_t list_view(struct listing *l, const struct lfs_view *view, struct lfs_view_entry **out, size_t *n_out,
                          struct lfs_error *err) {
    errint_t result = *l->sub ? list_below(l, view) : list_top(l, view);
    close_dirs(l);
    if (result < 0)
        return result == -ENOMEM ? lfs_fail_nomem(err)
                                 : lfs_fail_errno(err, -result, "cannot list %s of %s", l->sub, l->dir);
    *out = LFS_NEW_ARRAY(l->arena, struct lfs_view_entry, l->names.count);
    if (!*out)
        return lfs_fail_nomem(err);
    for (size_t i = 0; i < l->names.count; i++)
        (*out)[i] = *(const struct lfs_view_entry *)l->names.entries[i].value;
    *n_out = l->names.count;
    return 0;
}

errint_t lfs_views_list(struct lfs_views *views, const char *dir, enum lfs_file_kind kind, const char *sub,
                        struct lfs_arena *arena, struct lfs_view_entry **out, size_t *n_out, struct lfs_error *err) {
    struct listing l = {.views = views, .dir = dir, .kind = kind, .sub = sub, .arena = arena};
    struct lfs_view *view;
    if (lfs_views_get(views, dir, false, &view, NULL) < 0)
        view = NULL; /* the branch's own files are there all the same */
    start(&l);
    errint_t result = list_view(&l, view, out, n_out, err);
    lfs_views_put(views, view);
    return result;
}

errint_t lfs_views_list_version(struct lfs_views *views, const char *dir, uint64_t version, enum lfs_file_kind kind,
                                const char *sub, struct lfs_arena *arena, struct lfs_view_entry **out, size_t *n_out,
                                struct lfs_error *err) {
    struct listing l = {.views = views, .dir = dir, .kind = kind, .sub = sub, .arena = arena, .names_only = true};
    struct lfs_version *state;
    struct lfs_view *view;
    LFS_TRY(lfs_dataset_version(views->ds, dir, version, &state, err));
    LFS_TRY(lfs_view_build(state, &view, err));
    start(&l);
    errint_t result = list_view(&l, view, out, n_out, err);
    lfs_view_destroy(view);
    return result;
}

errint_t lfs_view_list(struct lfs_views *views, const struct lfs_view *view, const char *other, enum lfs_file_kind kind,
                       const char *sub, const struct lfs_view_entry *more, size_t n_more, struct lfs_arena *arena,
                       struct lfs_view_entry **out, size_t *n_out, struct lfs_error *err) {
    struct listing l = {.views = views, .dir = view->version->dir, .kind = kind, .sub = sub, .arena = arena,
                        .names_only = true, .only = view, .other = other};
    start(&l);
    for (size_t i = 0; i < n_more; i++)
        if (add(&l, &more[i]) < 0)
            return lfs_fail_nomem(err);
    return list_view(&l, view, out, n_out, err);
}
