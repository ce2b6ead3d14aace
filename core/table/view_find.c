/* SPDX-License-Identifier: Apache-2.0 */
/* Names below data/, _deletions/ and _indices/ of a view, and the files behind them. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "table/dataset_impl.h"
#include "table/view_impl.h"
#include "util/cleanup.h"

struct search {
    struct lfs_views *views;
    const char *dir;
    enum lfs_file_kind kind;
    const char *path; /* as it was asked for */
    struct lfs_arena *arena;
    struct lfs_view_entry *out;
};

/* --- one place --- */

static errint_t cause_of(errint_t result) { return result == -EACCES || result == -EPERM ? -EACCES : -EIO; }

/* Is it at this place? 0 and `out` filled, -ENOENT, or why the place cannot be looked at. */
static errint_t look_at(struct search *s, const struct lfs_location *location, struct lfs_error *why) {
    errint_t result = lfs_location_stat(s->views->ds, location, &s->out->st, why);
    if (result == -ENOTDIR || result == -ENAMETOOLONG)
        return -ENOENT;
    LFS_TRY(result);
    if (!S_ISREG(s->out->st.st_mode) && !S_ISDIR(s->out->st.st_mode))
        return lfs_fail(why, LFS_E_CORRUPT, "%s/%s is neither a file nor a directory", location->directory,
                        location->name);
    s->out->location = *location;
    s->out->is_dir = S_ISDIR(s->out->st.st_mode);
    s->out->reached = true;
    s->out->size = (uint64_t)s->out->st.st_size;
    return 0;
}

static errint_t look_in_base(struct search *s, const struct lfs_version *version, int64_t base_id, const char *name,
                             struct lfs_error *why) {
    struct lfs_location location;
    LFS_TRY(lfs_locate(version, s->kind, base_id, name, s->arena, &location, why));
    return look_at(s, &location, why);
}

static errint_t look_in_own(struct search *s, struct lfs_error *why) {
    char *first = lfs_strndup(s->arena, s->path, strcspn(s->path, "/"));
    if (!first)
        return lfs_fail_nomem(why);
    if (lfs_is_layout_name(first))
        return -ENOENT; /* of a branch that is named like "f/data" and stored in the middle of f's own files */
    struct lfs_location location = {.inside = true, .name = lfs_strdup(s->arena, s->path)};
    location.directory = lfs_join(s->arena, s->dir, lfs_kind_directory[s->kind]);
    return location.directory && location.name ? look_at(s, &location, why) : lfs_fail_nomem(why);
}

/* A name whose alias says which base path it belongs to is looked for under its own name there. */
static const char *unaliased(struct search *s, const LanceBasePath *base) {
    uint64_t hash = lfs_hash(base->path, strlen(base->path), 0);
    char mark[20];
    snprintf(mark, sizeof mark, "-%016llx", (unsigned long long)hash);
    const char *at = strstr(s->path, mark);
    if (!at)
        return NULL;
    return lfs_sprintf(s->arena, "%.*s%s", (int)(at - s->path), s->path, at + strlen(mark));
}

static errint_t look_in_listed_base(struct search *s, const struct lfs_version *version, const LanceBasePath *base,
                                    struct lfs_error *why) {
    const char *plain = base->path && s->kind == LFS_FILE_DATA ? unaliased(s, base) : NULL;
    if (plain && look_in_base(s, version, base->id, plain, why) == 0)
        return 0;
    return look_in_base(s, version, base->id, s->path, why);
}

/* --- names of the newest version --- */

/* The name that `path` is, or is below: a blob side file belongs to its data file, an index file to its index. Sets
 * *stored to where it is below the name's base. */
static const struct lfs_view_name *name_of(struct search *s, const struct lfs_view *view, const char **stored) {
    const struct lfs_view_name *name = lfs_map_get(&view->by_shown[s->kind], s->path);
    if (name) {
        *stored = name->name;
        return name;
    }
    if (s->kind == LFS_FILE_DELETION)
        return NULL;
    size_t length = strcspn(s->path, "/");
    const char *rest = s->path + length;
    const char *suffix = s->kind == LFS_FILE_DATA ? ".lance" : "";
    char *first = lfs_sprintf(s->arena, "%.*s%s", (int)length, s->path, suffix);
    name = first ? lfs_map_get(&view->by_shown[s->kind], first) : NULL;
    if (!name)
        return NULL;
    size_t stem = strlen(name->name) - strlen(suffix);
    *stored = lfs_sprintf(s->arena, "%.*s%s", (int)stem, name->name, rest);
    return *stored ? name : NULL;
}

static void note_unreached(struct search *s, const struct lfs_view *view, const struct lfs_view_name *name,
                           errint_t result, const struct lfs_error *why) {
    const LanceBasePath *base =
        name->base_id < 0 ? NULL : lfs_manifest_base(view->version->manifest.message, (uint32_t)name->base_id);
    s->out->reached = false;
    s->out->cause = cause_of(result);
    s->out->size = name->size;
    lfs_views_complain(s->views, base && base->path ? base->path : s->dir, why);
}

/* By a name of the newest version. -ENOENT: it has no such name. 0: found, or known but not reached. */
static errint_t by_name(struct search *s, const struct lfs_view *view) {
    const char *stored;
    struct lfs_error why;
    const struct lfs_view_name *name = name_of(s, view, &stored);
    if (!name)
        return -ENOENT;
    errint_t result = look_in_base(s, view->version, name->base_id, stored, &why);
    if (result == 0)
        return 0;
    bool whole = strcmp(s->path, name->shown) == 0; /* the name itself, not something below it */
    if (s->kind == LFS_FILE_INDEX || !whole)
        return -ENOENT; /* stock may name a base that does not hold the index: everywhere is looked */
    note_unreached(s, view, name, result, &why);
    return 0;
}

/* An index whose files are nowhere is still known by its manifest: its directory, and files of a known size. */
static errint_t by_index_entry(struct search *s, const struct lfs_view *view) {
    size_t length = strcspn(s->path, "/");
    char *uuid = lfs_strndup(s->arena, s->path, length);
    const struct lfs_view_name *name = uuid ? lfs_map_get(&view->by_shown[LFS_FILE_INDEX], uuid) : NULL;
    if (!name)
        return -ENOENT;
    s->out->reached = false;
    s->out->cause = -EIO;
    s->out->is_dir = !s->path[length];
    struct lfs_error why;
    lfs_fail(&why, LFS_E_CORRUPT, "the index %s of version %llu of %s is in none of its base paths", uuid,
             (unsigned long long)view->version->number, *s->dir ? s->dir : "main");
    lfs_views_complain(s->views, uuid, &why);
    if (s->out->is_dir)
        return 0;
    for (size_t i = 0; i < name->index->n_files; i++)
        if (name->index->files[i]->path && strcmp(name->index->files[i]->path, s->path + length + 1) == 0) {
            s->out->size = name->index->files[i]->size_bytes;
            return 0;
        }
    return -ENOENT;
}

/* --- everywhere --- */

static errint_t in_tip_bases(struct search *s, const struct lfs_view *view) {
    const LanceManifest *m = view->version->manifest.message;
    struct lfs_error why;
    for (size_t i = 0; i < m->n_base_paths; i++)
        if (look_in_listed_base(s, view->version, m->base_paths[i], &why) == 0)
            return 0;
    return -ENOENT;
}

static errint_t in_old_bases(struct search *s, const struct lfs_view *view) {
    struct lfs_old_base *old;
    size_t n;
    struct lfs_error why;
    if (lfs_views_old_bases(s->views, s->dir, view, s->arena, &old, &n, NULL) < 0)
        return -ENOENT;
    for (size_t i = 0; i < n; i++) {
        struct lfs_version *version;
        if (lfs_dataset_version(s->views->ds, s->dir, old[i].version, &version, NULL) < 0)
            continue;
        const LanceBasePath *base = lfs_manifest_base(version->manifest.message, (uint32_t)old[i].base_id);
        errint_t result = base ? look_in_listed_base(s, version, base, &why) : -ENOENT;
        lfs_version_release(version);
        if (result == 0)
            return 0;
    }
    return -ENOENT;
}

/* `view` is NULL where the newest version cannot be read: the branch's own files are there all the same. */
static errint_t everywhere(struct search *s, const struct lfs_view *view) {
    struct lfs_error why;
    if (view && by_name(s, view) == 0)
        return 0;
    if (look_in_own(s, &why) == 0)
        return 0;
    if (!view)
        return -ENOENT;
    if (in_tip_bases(s, view) == 0 || in_old_bases(s, view) == 0)
        return 0;
    return s->kind == LFS_FILE_INDEX ? by_index_entry(s, view) : -ENOENT;
}

errint_t lfs_views_find(struct lfs_views *views, const char *dir, enum lfs_file_kind kind, const char *path,
                        struct lfs_arena *arena, struct lfs_view_entry *out, struct lfs_error *err) {
    struct search s = {views, dir, kind, path, arena, out};
    struct lfs_view *view;
    *out = (struct lfs_view_entry){.name = path, .cause = -EIO};
    if (!lfs_view_path_ok(path))
        return lfs_fail(err, LFS_E_NOT_FOUND, "%s is no name of a file", path);
    /* names that a version once had stay right, so the newest is asked for only when an older one does not do */
    if (lfs_views_get(views, dir, true, &view, NULL) == 0) {
        errint_t result = by_name(&s, view);
        lfs_views_put(views, view);
        if (result == 0 && out->reached)
            return 0;
    }
    if (lfs_views_get(views, dir, false, &view, NULL) < 0)
        view = NULL;
    errint_t result = everywhere(&s, view);
    lfs_views_put(views, view);
    return result < 0 ? lfs_fail(err, LFS_E_NOT_FOUND, "no version of %s has %s/%s", *dir ? dir : "main",
                                 lfs_kind_directory[kind], path)
                      : 0;
}

/* A file of the version's own that its directory lacks, where another may have it. */
static errint_t in_other(struct search *s, const char *other) {
    struct lfs_error why;
    if (!other)
        return -ENOENT;
    s->dir = other;
    return look_in_own(s, &why);
}

errint_t lfs_view_find(struct lfs_views *views, const struct lfs_view *view, const char *other, enum lfs_file_kind kind,
                       const char *path, struct lfs_arena *arena, struct lfs_view_entry *out, struct lfs_error *err) {
    struct search s = {views, view->version->dir, kind, path, arena, out};
    struct lfs_error why;
    const char *stored;
    *out = (struct lfs_view_entry){.name = path, .cause = -EIO};
    if (!lfs_view_path_ok(path) || !name_of(&s, view, &stored))
        return lfs_fail(err, LFS_E_NOT_FOUND, "there is no %s/%s in it", lfs_kind_directory[kind], path);
    errint_t known = by_name(&s, view);
    if ((known == 0 && out->reached) || in_other(&s, other) == 0)
        return 0;
    if (known < 0 && kind == LFS_FILE_INDEX) /* stock may name a base that does not hold the index */
        known = look_in_own(&s, &why) == 0 || in_tip_bases(&s, view) == 0 ? 0 : by_index_entry(&s, view);
    return known < 0 ? lfs_fail(err, LFS_E_NOT_FOUND, "there is no %s/%s in it", lfs_kind_directory[kind], path) : 0;
}
