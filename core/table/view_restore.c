/* SPDX-License-Identifier: Apache-2.0 */
/* The inverse of flattening: what a writer commits through a view gets its base paths back. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/deletion.h"
#include "table/records.h"
#include "table/view_impl.h"
#include "util/cleanup.h"

struct restore {
    struct lfs_records records;
    struct lfs_views *views;
    const char *dir;
    const char *what;
    struct lfs_view *tip;
    struct lfs_versions versions; /* of the branch; read when a name is not the tip's */
    struct lfs_view **older;      /* views of some of them, at the places of `versions` */
    LanceBasePath **bases;        /* the tip's, and those of older versions that the commit needs again */
    size_t n_bases;
    errint_t result; /* why it failed; 0 while it has not */
    struct lfs_error *err;
};

static void free_views(struct restore *r) {
    for (size_t i = 0; r->older && i < r->versions.count; i++)
        lfs_view_destroy(r->older[i]);
    lfs_views_put(r->views, r->tip);
}

/* --- where a name leads --- */

static bool lies_in_own(struct restore *r, enum lfs_file_kind kind, const char *name) {
    struct lfs_location location = {.inside = true, .name = name};
    struct stat st;
    location.directory = lfs_join(r->records.arena, r->dir, lfs_kind_directory[kind]);
    return location.directory && lfs_location_stat(r->views->ds, &location, &st, NULL) == 0;
}

static const struct lfs_view *older_view(struct restore *r, size_t i) {
    struct lfs_version *version;
    if (r->older[i])
        return r->older[i];
    if (lfs_dataset_version(r->views->ds, r->dir, r->versions.numbers[i], &version, NULL) < 0)
        return NULL;
    return lfs_view_build(version, &r->older[i], NULL) < 0 ? NULL : r->older[i];
}

/* A name that the tip does not have: some older version's, which a restore brings back or a writer had read. */
static const struct lfs_view_name *find_older(struct restore *r, enum lfs_file_kind kind, const char *shown,
                                              const struct lfs_view **view) {
    struct lfs_arena *arena = r->records.arena;
    if (!r->older) {
        if (lfs_dataset_versions(r->views->ds, r->dir, arena, &r->versions, NULL) < 0)
            return NULL;
        r->older = LFS_NEW_ARRAY(arena, struct lfs_view *, r->versions.count + 1);
    }
    for (size_t i = r->versions.count; r->older && i-- > 0;) {
        *view = older_view(r, i);
        const struct lfs_view_name *name = *view ? lfs_map_get(&(*view)->by_shown[kind], shown) : NULL;
        if (name)
            return name;
    }
    return NULL;
}

static errint_t fail(struct restore *r, const char *directory, const char *name) {
    r->records.failed = true;
    return r->result = lfs_fail(r->err, LFS_E_CORRUPT, "%s names %s/%s, which is nowhere", r->what, directory, name);
}

static bool is_same_base(const LanceBasePath *a, const LanceBasePath *b) {
    return strcmp(a->path ? a->path : "", b->path ? b->path : "") == 0 && a->is_dataset_root == b->is_dataset_root;
}

/* The id of a base path among those of the new version: its own where that means the same there, since by ids it is settled
 * who keeps a name that two bases have; an older version's is taken in, under its own id if that is free. */
static int64_t base_among_new(struct restore *r, const struct lfs_view *view, int64_t id) {
    const LanceBasePath *base = lfs_manifest_base(view->version->manifest.message, (uint32_t)id);
    uint32_t free_id = (uint32_t)id, highest = 0;
    bool taken = false;
    if (!base)
        return id; /* as wrong as it was */
    for (size_t i = 0; i < r->n_bases; i++)
        if (r->bases[i]->id == free_id && is_same_base(r->bases[i], base))
            return free_id;
    for (size_t i = 0; i < r->n_bases; i++) {
        const LanceBasePath *b = r->bases[i];
        if (is_same_base(b, base))
            return b->id;
        taken |= b->id == free_id;
        highest = b->id > highest ? b->id : highest;
    }
    LanceBasePath **grown = LFS_NEW_ARRAY(r->records.arena, LanceBasePath *, r->n_bases + 1);
    LanceBasePath *copy = lfs_memdup(r->records.arena, base, sizeof *copy);
    if (!grown || !copy) {
        r->records.failed = true;
        return id;
    }
    if (r->n_bases)
        memcpy(grown, r->bases, r->n_bases * sizeof *grown);
    copy->id = taken ? highest + 1 : free_id;
    grown[r->n_bases++] = copy;
    r->bases = grown;
    return copy->id;
}

struct found {
    const char *name; /* as stored */
    int64_t base_id;  /* among those of the new version; LFS_NO_BASE: the branch's own */
};

static errint_t find(struct restore *r, enum lfs_file_kind kind, const char *shown, struct found *out) {
    const struct lfs_view *view = r->tip;
    const struct lfs_view_name *name = view ? lfs_map_get(&view->by_shown[kind], shown) : NULL;
    *out = (struct found){shown, LFS_NO_BASE};
    if (!name && lies_in_own(r, kind, shown))
        return 0;
    if (!name)
        name = find_older(r, kind, shown, &view);
    if (!name) /* an index need not have files */
        return kind == LFS_FILE_INDEX ? 0 : fail(r, lfs_kind_directory[kind], shown);
    out->name = name->name;
    if (name->base_id >= 0)
        out->base_id = base_among_new(r, view, name->base_id);
    return r->records.failed ? -ENOMEM : 0;
}

/* --- records --- */

/* A writer that knows of no base path names none. */
static bool names_base(struct restore *r, bool has_base_id) {
    if (!has_base_id)
        return false;
    r->records.failed = true;
    r->result = lfs_fail(r->err, LFS_E_UNSUPPORTED, "%s names a base path, and a view has none", r->what);
    return true;
}

static LanceDataFile *data_file(struct lfs_records *records, LanceDataFile *file) {
    struct restore *r = (struct restore *)records;
    struct found found;
    if (names_base(r, file->has_base_id) || !file->path || find(r, LFS_FILE_DATA, file->path, &found) < 0)
        return file;
    if (found.base_id < 0)
        return file;
    LanceDataFile *own = lfs_records_copy(records, file, sizeof *file);
    if (!own)
        return file;
    own->path = (char *)found.name;
    own->has_base_id = true;
    own->base_id = (uint32_t)found.base_id;
    return own;
}

static LanceDeletionFile *deletion_file(struct lfs_records *records, uint64_t fragment_id, LanceDeletionFile *file) {
    struct restore *r = (struct restore *)records;
    char name[80];
    struct found found;
    lfs_deletion_file_name(fragment_id, file, name, sizeof name);
    const char *shown = lfs_strdup(records->arena, name);
    if (!shown) {
        records->failed = true;
        return file;
    }
    if (names_base(r, file->has_base_id) || find(r, LFS_FILE_DELETION, shown, &found) < 0 || found.base_id < 0)
        return file;
    LanceDeletionFile *own = lfs_records_copy(records, file, sizeof *file);
    const char *id = strrchr(found.name, '-'); /* "<fragment>-<read version>-<id>.<type>" */
    if (!own)
        return file;
    if (id)
        own->id = strtoull(id + 1, NULL, 10);
    own->has_base_id = true;
    own->base_id = (uint32_t)found.base_id;
    return own;
}

static LanceIndex *index_entry(struct lfs_records *records, LanceIndex *index) {
    struct restore *r = (struct restore *)records;
    struct found found;
    char *uuid = lfs_view_uuid_text(records->arena, index->uuid);
    if (names_base(r, index->has_base_id) || !uuid || find(r, LFS_FILE_INDEX, uuid, &found) < 0 || found.base_id < 0)
        return index;
    LanceIndex *own = lfs_records_copy(records, index, sizeof *index);
    if (!own)
        return index;
    own->has_base_id = true;
    own->base_id = (uint32_t)found.base_id;
    return own;
}

/* --- the whole --- */

static errint_t begin(struct restore *r, struct lfs_views *views, const char *dir, const char *what,
                      struct lfs_arena *arena, struct lfs_error *err) {
    *r = (struct restore){
        .records = {.data_file = data_file, .deletion_file = deletion_file, .index = index_entry, .arena = arena},
        .views = views,
        .dir = dir,
        .what = what,
        .err = err,
    };
    LFS_TRY(lfs_views_get(views, dir, false, &r->tip, err));
    r->bases = r->tip->version->manifest.message->base_paths;
    r->n_bases = r->tip->version->manifest.message->n_base_paths;
    return 0;
}

static errint_t why(const struct restore *r) { return r->result < 0 ? r->result : lfs_fail_nomem(r->err); }

/* Operations that tell of base paths mean places that the view hides. */
static errint_t check_operation(const struct restore *r, const LanceTransaction *t) {
    bool places =
        t->operation_case == LANCE__TABLE__TRANSACTION__OPERATION_UPDATE_BASES ||
        t->operation_case == LANCE__TABLE__TRANSACTION__OPERATION_CLONE ||
        (t->operation_case == LANCE__TABLE__TRANSACTION__OPERATION_OVERWRITE && t->overwrite->n_initial_bases);
    return places ? lfs_fail(r->err, LFS_E_UNSUPPORTED, "%s changes base paths or clones, which a view cannot take",
                             r->what)
                  : 0;
}

static errint_t restore_transaction(struct restore *r, LanceTransaction *flat, LanceTransaction **out) {
    LFS_TRY(check_operation(r, flat));
    *out = lfs_records_transaction(&r->records, flat);
    return *out ? 0 : why(r);
}

errint_t lfs_views_restore_transaction(struct lfs_views *views, const char *dir, LanceTransaction *flat,
                                       const char *what, struct lfs_arena *arena, LanceTransaction **out, bool *changed,
                                       struct lfs_error *err) {
    LFS_CLEANUP(free_views) struct restore r = {.views = views};
    LFS_TRY(begin(&r, views, dir, what, arena, err));
    LFS_TRY(restore_transaction(&r, flat, out));
    *changed = r.records.changed;
    return 0;
}

static errint_t restore_manifest(struct restore *r, const char *branch, const struct lfs_manifest *flat,
                                 struct lfs_manifest *out) {
    const LanceManifest *m = flat->message;
    if (m->n_base_paths || m->branch)
        return lfs_fail(r->err, LFS_E_UNSUPPORTED, "%s names base paths or a branch, and a view has neither", r->what);
    if (!lfs_records_manifest(&r->records, flat, out))
        return why(r);
    if (flat->transaction)
        LFS_TRY(restore_transaction(r, flat->transaction, &out->transaction));
    out->message->base_paths = r->bases;
    out->message->n_base_paths = r->n_bases;
    out->message->branch = (char *)branch;
    lfs_manifest_set_features(out->message);
    return 0;
}

errint_t lfs_views_restore_manifest(struct lfs_views *views, const char *dir, const char *branch,
                                    const struct lfs_manifest *flat, const char *what, struct lfs_arena *arena,
                                    struct lfs_manifest *out, bool *changed, struct lfs_error *err) {
    LFS_CLEANUP(free_views) struct restore r = {.views = views};
    LFS_TRY(lfs_manifest_check_features(flat->message, true, what, err));
    LFS_TRY(begin(&r, views, dir, what, arena, err));
    /* a writer that took the flag away did not know what it stands for */
    LFS_TRY(lfs_manifest_check_features(r.tip->version->manifest.message, true, what, err));
    if (flat->message->version != r.tip->version->number + 1)
        return flat->message->version <= r.tip->version->number
                   ? lfs_fail_errno(err, EEXIST, "%s: version %" PRIu64 " is there already", what,
                                    flat->message->version)
                   : lfs_fail(err, LFS_E_USAGE, "%s: the newest version is %" PRIu64 ", so the next one is %" PRIu64,
                              what, r.tip->version->number, r.tip->version->number + 1);
    LFS_TRY(restore_manifest(&r, branch, flat, out));
    *changed = r.records.changed || r.n_bases || branch;
    return 0;
}
