/* SPDX-License-Identifier: Apache-2.0 */
/* The names that one version shows, and aliases where several of its files would have one name. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "format/deletion.h"
#include "table/view_impl.h"
#include "util/cleanup.h"

enum { UUID_BYTES = 16, DELETION_NAME_SIZE = 80 };

bool lfs_view_path_ok(const char *path) {
    for (const char *part = path;; part++) {
        size_t length = strcspn(part, "/");
        if (length == 0 || length > NAME_MAX || (length == 1 && part[0] == '.') ||
            (length == 2 && part[0] == '.' && part[1] == '.'))
            return false;
        part += length;
        if (!*part)
            return true;
    }
}

/* --- every file that a version names --- */

struct named_file {
    enum lfs_file_kind kind;
    const char *name;
    int64_t base_id;
    uint64_t size;
    uint64_t deletion_id;
};

typedef errint_t (*each_file)(void *state, const struct named_file *file);

static errint_t visit_data(const LanceDataFile *file, each_file each, void *state) {
    if (!file || !file->path)
        return 0;
    struct named_file named = {LFS_FILE_DATA, file->path, file->has_base_id ? (int64_t)file->base_id : LFS_NO_BASE,
                               file->file_size_bytes, 0};
    return each(state, &named);
}

static errint_t visit_files(const LanceManifest *m, struct lfs_arena *arena, each_file each, void *state) {
    for (size_t i = 0; i < m->n_fragments; i++) {
        const LanceFragment *fragment = m->fragments[i];
        for (size_t j = 0; j < fragment->n_files; j++)
            LFS_TRY(visit_data(fragment->files[j], each, state));
        for (size_t j = 0; j < fragment->n_overlays; j++)
            LFS_TRY(visit_data(fragment->overlays[j]->data_file, each, state));
        const LanceDeletionFile *deletion = fragment->deletion_file;
        if (!deletion)
            continue;
        char *name = lfs_alloc(arena, DELETION_NAME_SIZE);
        if (!name)
            return -ENOMEM;
        lfs_deletion_file_name(fragment->id, deletion, name, DELETION_NAME_SIZE);
        struct named_file named = {LFS_FILE_DELETION, name,
                                   deletion->has_base_id ? (int64_t)deletion->base_id : LFS_NO_BASE, 0, deletion->id};
        LFS_TRY(each(state, &named));
    }
    return 0;
}

/* --- aliases --- */

char *lfs_alias_data_name(struct lfs_arena *arena, const char *name, const char *base_path) {
    const char *slash = strrchr(name, '/'), *last = slash ? slash + 1 : name, *dot = strrchr(last, '.');
    if (!dot || dot == last)
        dot = last + strlen(last);
    return lfs_sprintf(arena, "%.*s-%016" PRIx64 "%s", (int)(dot - name), name,
                       lfs_hash(base_path, strlen(base_path), 0), dot);
}

/* Files that share one name, by base id. */
struct same_name {
    struct named_file file;
    struct same_name *next;
};

struct collect {
    const struct lfs_version *version;
    struct lfs_arena *arena;
    struct lfs_map names[2]; /* data, deletion: name -> struct same_name, lowest base id first */
    struct lfs_map given[2]; /* likewise: alias -> struct given */
    size_t n_shared;
};

static errint_t collect_name(void *state, const struct named_file *file) {
    struct collect *c = state;
    struct lfs_map *map = &c->names[file->kind];
    struct same_name *first = lfs_map_get(map, file->name), **at = &first;
    while (*at && (*at)->file.base_id < file->base_id)
        at = &(*at)->next;
    if (*at && (*at)->file.base_id == file->base_id)
        return 0;
    struct same_name *new = LFS_NEW(c->arena, struct same_name);
    if (!new)
        return -ENOMEM;
    c->n_shared += first != NULL;
    *new = (struct same_name){*file, *at};
    *at = new;
    return lfs_map_put(map, file->name, first) ? 0 : -ENOMEM;
}

struct place {
    bool located, there;
    struct lfs_location location;
    struct stat st;
};

static struct place place_of(const struct collect *c, const struct named_file *file) {
    struct place p = {0};
    struct lfs_error why;
    p.located = lfs_locate(c->version, file->kind, file->base_id, file->name, c->arena, &p.location, &why) == 0;
    p.there = p.located && lfs_location_stat(c->version->dataset, &p.location, &p.st, &why) == 0;
    return p;
}

static bool is_same_place(const struct place *a, const struct place *b) {
    if (a->there && b->there)
        return a->st.st_dev == b->st.st_dev && a->st.st_ino == b->st.st_ino;
    return a->located && b->located && a->location.inside == b->location.inside &&
           strcmp(a->location.directory, b->location.directory) == 0;
}

/* A key of the alias map in `room`, or in memory of its own, to be freed, where it does not fit. */
enum { ALIAS_KEY_ROOM = 512 };
static char *alias_key(char *room, enum lfs_file_kind kind, int64_t base_id, const char *name) {
    size_t size = strlen(name) + 40;
    char *key = size <= ALIAS_KEY_ROOM ? room : malloc(size);
    if (key)
        snprintf(key, size, "%d/%" PRId64 "/%s", (int)kind, base_id, name);
    return key;
}

const struct lfs_alias *lfs_aliases_get(const struct lfs_aliases *aliases, enum lfs_file_kind kind, int64_t base_id,
                                        const char *name) {
    char room[ALIAS_KEY_ROOM];
    if (!aliases || !aliases->map.count)
        return NULL;
    char *key = alias_key(room, kind, base_id, name);
    const struct lfs_alias *found = key ? lfs_map_get(&aliases->map, key) : NULL;
    if (key != room)
        free(key);
    return found;
}

/* Whose alias a name is: files that one text of a base path leads to share it. */
struct given {
    const char *name, *base_path;
};

/* A name that this version stores, or gave to another file, would be two files to a reader: a copy of a view holds aliases
 * as the names of its files, and who made a data set may have chosen them so. */
static bool is_taken(const struct collect *c, enum lfs_file_kind kind, const struct given *whose, const char *shown) {
    const struct given *given = lfs_map_get(&c->given[kind], shown);
    return lfs_map_get(&c->names[kind], shown) ||
           (given && (strcmp(given->name, whose->name) != 0 || strcmp(given->base_path, whose->base_path) != 0));
}

/* "<fragment>-<read version>-<id>.<type>" with another id */
static char *deletion_name_with(struct lfs_arena *arena, const char *name, uint64_t id) {
    const char *old = strrchr(name, '-') + 1;
    return lfs_sprintf(arena, "%.*s%" PRIu64 "%s", (int)(old - name), name, id, strchr(old, '.'));
}

/* The alias is made again from the alias until the name is free. */
static errint_t choose_alias(struct collect *c, const struct named_file *file, const char *base_path,
                             struct lfs_alias *out) {
    struct given *whose = LFS_NEW(c->arena, struct given);
    const char *shown = file->name;
    if (!whose)
        return -ENOMEM;
    *whose = (struct given){file->name, base_path};
    out->shown_id = file->deletion_id;
    do {
        if (file->kind == LFS_FILE_DATA) {
            out->shown = shown = lfs_alias_data_name(c->arena, shown, base_path);
        } else {
            out->shown_id = lfs_hash(base_path, strlen(base_path), out->shown_id);
            shown = deletion_name_with(c->arena, file->name, out->shown_id);
        }
        if (!shown)
            return -ENOMEM;
    } while (is_taken(c, file->kind, whose, shown));
    return lfs_map_put(&c->given[file->kind], shown, whose) ? 0 : -ENOMEM;
}

static errint_t add_alias(struct collect *c, const struct named_file *file, struct lfs_aliases *out) {
    const LanceBasePath *base =
        file->base_id < 0 ? NULL : lfs_manifest_base(c->version->manifest.message, (uint32_t)file->base_id);
    if (!base || !base->path)
        return 0; /* no such base path: the file cannot be had anyhow */
    char room[ALIAS_KEY_ROOM], *key = alias_key(room, file->kind, file->base_id, file->name);
    char *own_key = key ? lfs_strdup(c->arena, key) : NULL;
    struct lfs_alias *alias = LFS_NEW(c->arena, struct lfs_alias);
    if (key != room)
        free(key);
    if (!own_key || !alias)
        return -ENOMEM;
    LFS_TRY(choose_alias(c, file, base->path, alias));
    return lfs_map_put(&out->map, own_key, alias) ? 0 : -ENOMEM;
}

/* Of the files of one name the first keeps it; every other one that is another file gets an alias. */
static errint_t settle_name(struct collect *c, const struct same_name *first, struct lfs_aliases *out) {
    struct place kept = place_of(c, &first->file);
    for (const struct same_name *s = first->next; s; s = s->next) {
        struct place other = place_of(c, &s->file);
        if (!is_same_place(&kept, &other))
            LFS_TRY(add_alias(c, &s->file, out));
    }
    return 0;
}

errint_t lfs_aliases_find(const struct lfs_version *version, struct lfs_arena *arena, struct lfs_aliases *out,
                          struct lfs_error *err) {
    struct collect c = {.version = version, .arena = arena};
    *out = (struct lfs_aliases){0};
    if (!version->manifest.message->n_base_paths)
        return 0;
    for (int kind = 0; kind < 2; kind++) {
        lfs_map_init(&c.names[kind], arena);
        lfs_map_init(&c.given[kind], arena);
    }
    if (visit_files(version->manifest.message, arena, collect_name, &c) < 0)
        return lfs_fail_nomem(err);
    if (!c.n_shared)
        return 0;
    lfs_map_init(&out->map, arena);
    for (int kind = 0; kind < 2; kind++)
        for (size_t i = 0; i < c.names[kind].count; i++) {
            const struct same_name *first = c.names[kind].entries[i].value;
            if (first->next && settle_name(&c, first, out) < 0)
                return lfs_fail_nomem(err);
        }
    return 0;
}

/* --- the name index --- */

static errint_t shown_name(const struct lfs_view *view, const struct named_file *file, const char **out) {
    *out = file->name;
    const struct lfs_alias *alias = lfs_aliases_get(&view->aliases, file->kind, file->base_id, file->name);
    if (!alias)
        return 0;
    *out = alias->shown ? alias->shown : deletion_name_with(view->arena, file->name, alias->shown_id);
    return *out ? 0 : -ENOMEM;
}

static errint_t add_name(struct lfs_view *view, enum lfs_file_kind kind, const struct lfs_view_name *name) {
    if (!lfs_view_path_ok(name->shown) || lfs_map_get(&view->by_shown[kind], name->shown))
        return 0;
    struct lfs_view_name *new = &view->names[kind][view->n_names[kind]++];
    *new = *name;
    return lfs_map_put(&view->by_shown[kind], new->shown, new) ? 0 : -ENOMEM;
}

static errint_t add_file(void *state, const struct named_file *file) {
    struct lfs_view *view = state;
    struct lfs_view_name name = {.name = file->name, .base_id = file->base_id, .size = file->size};
    LFS_TRY(shown_name(view, file, &name.shown));
    return add_name(view, file->kind, &name);
}

char *lfs_view_uuid_text(struct lfs_arena *arena, const Lance__Table__UUID *uuid) {
    char text[40], *p = text;
    if (!uuid || !uuid->has_uuid || uuid->uuid.len != UUID_BYTES)
        return NULL;
    for (int i = 0; i < UUID_BYTES; i++)
        p += sprintf(p, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", uuid->uuid.data[i]);
    return lfs_strdup(arena, text);
}

static errint_t add_indices(struct lfs_view *view) {
    const LanceIndexSection *section = view->version->manifest.indices;
    for (size_t i = 0; section && i < section->n_indices; i++) {
        const LanceIndex *index = section->indices[i];
        char *uuid = lfs_view_uuid_text(view->arena, index->uuid);
        if (!uuid)
            continue;
        struct lfs_view_name name = {.shown = uuid,
                                     .name = uuid,
                                     .base_id = index->has_base_id ? (int64_t)index->base_id : LFS_NO_BASE,
                                     .index = index};
        LFS_TRY(add_name(view, LFS_FILE_INDEX, &name));
    }
    return 0;
}

static bool make_room(struct lfs_view *view) {
    const struct lfs_manifest *m = &view->version->manifest;
    size_t count[LFS_FILE_KINDS] = {0, m->message->n_fragments, m->indices ? m->indices->n_indices : 0};
    for (size_t i = 0; i < m->message->n_fragments; i++)
        count[LFS_FILE_DATA] += m->message->fragments[i]->n_files + m->message->fragments[i]->n_overlays;
    for (int kind = 0; kind < LFS_FILE_KINDS; kind++) {
        lfs_map_init(&view->by_shown[kind], view->arena);
        view->names[kind] = LFS_NEW_ARRAY(view->arena, struct lfs_view_name, count[kind]);
        if (!view->names[kind])
            return false;
    }
    return true;
}

errint_t lfs_view_build(struct lfs_version *version, struct lfs_view **out, struct lfs_error *err) {
    struct lfs_arena *arena = lfs_arena_new();
    struct lfs_view *view = arena ? LFS_NEW(arena, struct lfs_view) : NULL;
    if (!view) {
        lfs_arena_free(arena);
        lfs_version_release(version);
        return lfs_fail_nomem(err);
    }
    *view = (struct lfs_view){.version = version, .arena = arena, .users = 1};
    errint_t result = lfs_aliases_find(version, arena, &view->aliases, err);
    if (result == 0 && (!make_room(view) || visit_files(version->manifest.message, arena, add_file, view) < 0 ||
                        add_indices(view) < 0))
        result = lfs_fail_nomem(err);
    if (result < 0) {
        lfs_view_destroy(view);
        return result;
    }
    view->bytes = lfs_arena_size(arena);
    *out = view;
    return 0;
}

void lfs_view_destroy(struct lfs_view *view) {
    if (!view)
        return;
    lfs_version_release(view->version);
    lfs_arena_free(view->arena); /* the view itself lives in it */
}
