/* SPDX-License-Identifier: Apache-2.0 */
/* Manifests and transactions without base paths. */
#include <string.h>

#include "format/deletion.h"
#include "table/records.h"
#include "table/view.h"
#include "util/cleanup.h"

struct flatten {
    struct lfs_records records;
    const struct lfs_aliases *aliases;
};

static LanceDataFile *data_file(struct lfs_records *records, LanceDataFile *file) {
    const struct flatten *f = (const struct flatten *)records;
    if (!file->has_base_id)
        return file;
    const struct lfs_alias *alias =
        file->path ? lfs_aliases_get(f->aliases, LFS_FILE_DATA, file->base_id, file->path) : NULL;
    LanceDataFile *flat = lfs_records_copy(records, file, sizeof *file);
    if (!flat)
        return file;
    flat->has_base_id = false;
    flat->base_id = 0;
    if (alias)
        flat->path = (char *)alias->shown;
    return flat;
}

static LanceDeletionFile *deletion_file(struct lfs_records *records, uint64_t fragment_id, LanceDeletionFile *file) {
    const struct flatten *f = (const struct flatten *)records;
    char name[80];
    if (!file->has_base_id)
        return file;
    LanceDeletionFile *flat = lfs_records_copy(records, file, sizeof *file);
    if (!flat)
        return file;
    flat->has_base_id = false;
    flat->base_id = 0;
    lfs_deletion_file_name(fragment_id, file, name, sizeof name);
    const struct lfs_alias *alias = lfs_aliases_get(f->aliases, LFS_FILE_DELETION, file->base_id, name);
    if (alias)
        flat->id = alias->shown_id;
    return flat;
}

static LanceIndex *index_entry(struct lfs_records *records, LanceIndex *index) {
    if (!index->has_base_id)
        return index;
    LanceIndex *flat = lfs_records_copy(records, index, sizeof *index);
    if (!flat)
        return index;
    flat->has_base_id = false;
    flat->base_id = 0;
    return flat;
}

static struct flatten flattener(const struct lfs_aliases *aliases, struct lfs_arena *arena) {
    return (struct flatten){
        .records = {.data_file = data_file, .deletion_file = deletion_file, .index = index_entry, .arena = arena},
        .aliases = aliases};
}

/* A reader of the view sees a version whose data is all its own: a deep copy, of nothing that has a place. */
static bool forget_clone(Lance__Table__Clone *clone) {
    bool has_path = clone->ref_path && *clone->ref_path;
    if (!clone->is_shallow && !has_path && !clone->branch_name)
        return false;
    clone->has_is_shallow = true;
    clone->is_shallow = false;
    clone->ref_path = NULL;
    clone->branch_name = NULL;
    return true;
}

/* Places that operations themselves name. */
static bool forget_places(LanceTransaction *flat) {
    bool changed = false;
    if (flat->operation_case == LANCE__TABLE__TRANSACTION__OPERATION_OVERWRITE) {
        changed = flat->overwrite->n_initial_bases > 0;
        flat->overwrite->n_initial_bases = 0;
    } else if (flat->operation_case == LANCE__TABLE__TRANSACTION__OPERATION_UPDATE_BASES) {
        changed = flat->update_bases->n_new_bases > 0;
        flat->update_bases->n_new_bases = 0;
    } else if (flat->operation_case == LANCE__TABLE__TRANSACTION__OPERATION_CLONE) {
        changed = forget_clone(flat->clone);
    }
    return changed;
}

LanceTransaction *lfs_flatten_transaction(LanceTransaction *in, const struct lfs_aliases *aliases,
                                          struct lfs_arena *arena) {
    struct flatten f = flattener(aliases, arena);
    LanceTransaction *flat = lfs_records_transaction(&f.records, in);
    if (!flat)
        return NULL;
    return forget_places(flat) || f.records.changed ? flat : in;
}

/* What the program does not know may still forbid others to write: a view says so too. (Who must know it to read sees no
 * view.) */
static void keep_unknown_features(const LanceManifest *in, LanceManifest *out) {
    out->reader_feature_flags |= in->reader_feature_flags & ~(uint64_t)LFS_FLAGS_KNOWN;
    out->writer_feature_flags |= in->writer_feature_flags & ~(uint64_t)LFS_FLAGS_KNOWN;
    out->has_reader_feature_flags |= out->reader_feature_flags != 0;
    out->has_writer_feature_flags |= out->writer_feature_flags != 0;
}

errint_t lfs_flatten_manifest(const struct lfs_manifest *in, const struct lfs_aliases *aliases, struct lfs_arena *arena,
                              struct lfs_manifest *out, bool *changed, struct lfs_error *err) {
    struct flatten f = flattener(aliases, arena);
    const LanceManifest *m = in->message;
    if (!lfs_records_manifest(&f.records, in, out))
        return lfs_fail_nomem(err);
    if (in->transaction && !(out->transaction = lfs_flatten_transaction(in->transaction, aliases, arena)))
        return lfs_fail_nomem(err);
    uint64_t flags = m->reader_feature_flags | m->writer_feature_flags;
    *changed = f.records.changed || out->transaction != in->transaction || m->n_base_paths || m->branch ||
               flags & LFS_FLAG_BASE_PATHS;
    if (!*changed) {
        *out = *in;
        return 0;
    }
    out->message->n_base_paths = 0;
    out->message->branch = NULL;
    lfs_manifest_set_features(out->message);
    keep_unknown_features(m, out->message);
    return 0;
}
