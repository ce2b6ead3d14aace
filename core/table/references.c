/* SPDX-License-Identifier: Apache-2.0 */
#include "table/references.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <uuid/uuid.h>

#include "format/deletion.h"
#include "format/vector.h"
#include "store/file.h"
#include "table/dataset_impl.h"
#include "table/lineage.h"
#include "table/location.h"
#include "util/cleanup.h"
#include "util/limits.h"

enum { CACHE_BYTES_MAX = 32 << 20, NAME_ROOM = 512 };

uint64_t lfs_reference_name(const char *name) { return lfs_hash(name, strlen(name), 1); }

/* --- from a manifest --- */

struct collect {
    const char *what;
    const LanceManifest *m;
    const LanceIndexSection *indices;
    struct lfs_references *out;
    size_t room; /* names that any one base can have */
    struct lfs_error *err;
};

static errint_t add_name(struct collect *c, struct lfs_reference_group *g, const char *directory, const char *name) {
    char room[NAME_ROOM], *text = room;
    size_t size = strlen(directory) + strlen(name) + 2;
    LFS_AUTO_FREE char *large = size > sizeof room ? malloc(size) : NULL;
    if (size > sizeof room && !(text = large))
        return lfs_fail_nomem(c->err);
    snprintf(text, size, "%s%s%s", directory, *directory ? "/" : "", name);
    if (!g->names && !(g->names = LFS_NEW_ARRAY(c->out->arena, uint64_t, c->room)))
        return lfs_fail_nomem(c->err);
    g->names[g->n_names++] = lfs_reference_name(text);
    return 0;
}

/* Stock lets the last of two base paths with one id win, other readers may not: a file is looked for in both. */
static errint_t add_file(struct collect *c, const char *directory, const char *name, bool has_base, uint32_t base) {
    bool found = false;
    if (!has_base)
        return add_name(c, &c->out->groups[0], directory, name);
    for (size_t i = 0; i < c->m->n_base_paths; i++) {
        const LanceBasePath *b = c->m->base_paths[i];
        if (b->id != base || !b->path || !*b->path)
            continue;
        found = true;
        LFS_TRY(add_name(c, &c->out->groups[i + 1], b->is_dataset_root ? directory : "", name));
    }
    return found ? 0
                 : lfs_fail(c->err, LFS_E_CORRUPT, "%s names base path %" PRIu32 ", which it does not have", c->what,
                            base);
}

static errint_t add_data_file(struct collect *c, const LanceDataFile *f) {
    return f && f->path ? add_file(c, "data", f->path, f->has_base_id, f->base_id) : 0;
}

static void add_deletion_name(struct collect *c, const LanceFragment *f) {
    char name[80];
    if (!f->deletion_file)
        return;
    lfs_deletion_file_name(f->id, f->deletion_file, name, sizeof name);
    c->out->deletions[c->out->n_deletions++] = lfs_reference_name(name);
}

static errint_t add_fragment(struct collect *c, const LanceFragment *f) {
    char name[80];
    if (f->row_id_sequence_case == LANCE__TABLE__DATA_FRAGMENT__ROW_ID_SEQUENCE_EXTERNAL_ROW_IDS ||
        f->last_updated_at_version_sequence_case ==
            LANCE__TABLE__DATA_FRAGMENT__LAST_UPDATED_AT_VERSION_SEQUENCE_EXTERNAL_LAST_UPDATED_AT_VERSIONS ||
        f->created_at_version_sequence_case ==
            LANCE__TABLE__DATA_FRAGMENT__CREATED_AT_VERSION_SEQUENCE_EXTERNAL_CREATED_AT_VERSIONS)
        return lfs_fail(c->err, LFS_E_UNSUPPORTED,
                        "%s has row ids in files of their own, which this program does not know", c->what);
    for (size_t i = 0; i < f->n_files; i++)
        LFS_TRY(add_data_file(c, f->files[i]));
    for (size_t i = 0; i < f->n_overlays; i++)
        LFS_TRY(add_data_file(c, f->overlays[i]->data_file));
    if (!f->deletion_file)
        return 0;
    add_deletion_name(c, f);
    lfs_deletion_file_name(f->id, f->deletion_file, name, sizeof name);
    return add_file(c, "_deletions", name, f->deletion_file->has_base_id, f->deletion_file->base_id);
}

/* Stock names the wrong base for an index that a branch of a branch inherited (lance-format section 13, S1): readers of
 * ours look in every base, so it is kept in every base. */
static errint_t add_index(struct collect *c, const LanceIndex *index) {
    char uuid[UUID_STR_LEN];
    if (!index->uuid || index->uuid->uuid.len != sizeof(uuid_t))
        return 0;
    uuid_unparse_lower(index->uuid->uuid.data, uuid);
    LFS_TRY(add_name(c, &c->out->groups[0], "_indices", uuid));
    for (size_t i = 0; i < c->m->n_base_paths; i++)
        LFS_TRY(add_name(c, &c->out->groups[i + 1], c->m->base_paths[i]->is_dataset_root ? "_indices" : "", uuid));
    return 0;
}

static size_t count_rewritten(const LanceTransaction *t) {
    size_t n = 0;
    if (t && t->operation_case == LANCE__TABLE__TRANSACTION__OPERATION_REWRITE)
        for (size_t i = 0; i < t->rewrite->n_groups; i++)
            n += t->rewrite->groups[i]->n_old_fragments;
    return n;
}

static errint_t make_room(struct collect *c, const LanceTransaction *t) {
    struct lfs_references *r = c->out;
    for (size_t i = 0; i < c->m->n_fragments; i++)
        c->room += c->m->fragments[i]->n_files + c->m->fragments[i]->n_overlays + 1;
    c->room += (c->indices ? c->indices->n_indices : 0) + 1;
    r->n_groups = c->m->n_base_paths + 1;
    r->groups = LFS_NEW_ARRAY(r->arena, struct lfs_reference_group, r->n_groups);
    r->deletions = LFS_NEW_ARRAY(r->arena, uint64_t, c->m->n_fragments + count_rewritten(t) + 1);
    if (!r->groups || !r->deletions)
        return lfs_fail_nomem(c->err);
    for (size_t i = 0; i < c->m->n_base_paths; i++) {
        const char *path = c->m->base_paths[i]->path;
        r->groups[i + 1].base = lfs_strdup(r->arena, path ? path : "");
        if (!r->groups[i + 1].base)
            return lfs_fail_nomem(c->err);
    }
    return 0;
}

static char *copy_text(struct lfs_arena *arena, const char *text, bool *short_of_memory) {
    char *copy = text ? lfs_strdup(arena, text) : NULL;
    *short_of_memory |= text && !copy;
    return copy;
}

static errint_t fill(const struct lfs_manifest *manifest, const char *what, struct lfs_references *out,
                     struct lfs_error *err) {
    const LanceManifest *m = manifest->message;
    const LanceTransaction *t = manifest->transaction;
    struct collect c = {.what = what, .m = m, .indices = manifest->indices, .out = out, .err = err};
    const char *operation = lfs_transaction_property(t, LFS_PROPERTY_OPERATION);
    bool short_of_memory = false;
    LFS_TRY(lfs_manifest_check_features(m, true, what, err));
    LFS_TRY(make_room(&c, t));
    for (size_t i = 0; i < m->n_fragments; i++)
        LFS_TRY(add_fragment(&c, m->fragments[i]));
    for (size_t i = 0; c.indices && i < c.indices->n_indices; i++)
        LFS_TRY(add_index(&c, c.indices->indices[i]));
    if (m->transaction_file)
        LFS_TRY(add_name(&c, &out->groups[0], "_transactions", m->transaction_file));
    if (count_rewritten(t))
        for (size_t i = 0; i < t->rewrite->n_groups; i++)
            for (size_t k = 0; k < t->rewrite->groups[i]->n_old_fragments; k++)
                add_deletion_name(&c, t->rewrite->groups[i]->old_fragments[k]);
    out->number = m->version;
    out->is_undo = operation && strcmp(operation, "undo") == 0;
    out->branch = copy_text(out->arena, m->branch, &short_of_memory);
    out->vector = copy_text(out->arena, lfs_entries_get(m->table_metadata, m->n_table_metadata, LFS_KEY_VECTOR),
                            &short_of_memory);
    return short_of_memory ? lfs_fail_nomem(err) : 0;
}

static errint_t read_references(int fd, const char *path, struct lfs_references **out, struct lfs_error *err) {
    LFS_AUTO_ARENA *scratch = lfs_arena_new(), *arena = lfs_arena_new();
    LFS_AUTO_BUF bytes = {0};
    struct lfs_manifest manifest;
    struct lfs_references *r = arena ? LFS_NEW(arena, struct lfs_references) : NULL;
    if (!scratch || !r)
        return lfs_fail_nomem(err);
    r->arena = arena;
    LFS_TRY(lfs_read_fd(fd, path, LFS_MANIFEST_BYTES_MAX, &bytes, NULL, err));
    LFS_TRY(lfs_manifest_decode(bytes.data, bytes.length, scratch, path, &manifest, err));
    LFS_TRY(fill(&manifest, path, r, err));
    *out = r;
    arena = NULL; /* the caller's */
    return 0;
}

/* --- the cache: the oldest go first --- */

struct entry {
    struct lfs_references *references;
    struct stat st;
    struct entry *next_in_bucket, *next;
};

struct lfs_reference_cache {
    struct entry *buckets[LFS_CACHE_BUCKETS];
    struct entry *first, **last; /* in the order of their coming */
    size_t bytes;
};

static bool is_same(const struct stat *a, const struct stat *b) {
    return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static void let_go(struct lfs_references *r) {
    if (--r->users == 0)
        lfs_arena_free(r->arena); /* it lives in it */
}

static void drop_first(struct lfs_reference_cache *cache) {
    struct entry *e = cache->first, **at = &cache->buckets[e->st.st_ino % LFS_CACHE_BUCKETS];
    while (*at != e)
        at = &(*at)->next_in_bucket;
    *at = e->next_in_bucket;
    cache->first = e->next;
    if (!cache->first)
        cache->last = &cache->first;
    cache->bytes -= lfs_arena_size(e->references->arena);
    let_go(e->references);
    free(e);
}

void lfs_reference_cache_free(struct lfs_reference_cache *cache) {
    while (cache && cache->first)
        drop_first(cache);
    free(cache);
}

/* With the lock held. */
static struct lfs_references *find(struct lfs_dataset *ds, const struct stat *st) {
    struct entry *e = ds->references ? ds->references->buckets[st->st_ino % LFS_CACHE_BUCKETS] : NULL;
    while (e && !is_same(&e->st, st))
        e = e->next_in_bucket;
    if (e)
        e->references->users++;
    return e ? e->references : NULL;
}

/* With the lock held. What cannot be kept for want of memory is read again next time. */
static void keep(struct lfs_dataset *ds, struct lfs_references *r, const struct stat *st) {
    if (!ds->references && (ds->references = calloc(1, sizeof *ds->references)))
        ds->references->last = &ds->references->first;
    struct lfs_reference_cache *cache = ds->references;
    struct entry *e = cache ? calloc(1, sizeof *e) : NULL;
    if (!e)
        return;
    *e = (struct entry){.references = r, .st = *st, .next_in_bucket = cache->buckets[st->st_ino % LFS_CACHE_BUCKETS]};
    cache->buckets[st->st_ino % LFS_CACHE_BUCKETS] = e;
    *cache->last = e;
    cache->last = &e->next;
    cache->bytes += lfs_arena_size(r->arena);
    r->users++;
    while (cache->bytes > CACHE_BYTES_MAX && cache->first != e)
        drop_first(cache);
}

errint_t lfs_references_get(struct lfs_dataset *ds, const char *path, struct lfs_references **out,
                            struct lfs_error *err) {
    struct stat st;
    LFS_AUTO_FD fd = lfs_open_regular(ds->root_fd, path);
    if (fd < 0)
        return lfs_fail_errno(err, -fd, "cannot open %s", path);
    if (fstat(fd, &st) < 0)
        return lfs_fail_errno(err, errno, "cannot stat %s", path);
    pthread_mutex_lock(&ds->lock);
    *out = find(ds, &st);
    pthread_mutex_unlock(&ds->lock);
    if (*out)
        return 0;
    LFS_TRY(read_references(fd, path, out, err));
    pthread_mutex_lock(&ds->lock);
    (*out)->users = 1;
    keep(ds, *out, &st);
    pthread_mutex_unlock(&ds->lock);
    return 0;
}

void lfs_references_release(struct lfs_dataset *ds, struct lfs_references *references) {
    if (!references)
        return;
    pthread_mutex_lock(&ds->lock);
    let_go(references);
    pthread_mutex_unlock(&ds->lock);
}
