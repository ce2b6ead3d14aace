/* SPDX-License-Identifier: Apache-2.0 */
/* Manifests and transactions without base paths. Messages are copied only where they change. */
#include <string.h>

#include "format/deletion.h"
#include "table/view.h"
#include "util/cleanup.h"

struct flatten {
    const struct lfs_aliases *aliases;
    struct lfs_arena *arena;
    bool changed; /* something had to change */
    bool failed;  /* memory was short */
};

static void *copy_bytes(struct flatten *f, const void *bytes, size_t size) {
    void *copy = lfs_memdup(f->arena, bytes, size);
    if (!copy)
        f->failed = true;
    f->changed = true;
    return copy;
}

#define COPY(f, message) ((__typeof__(message))copy_bytes((f), (message), sizeof *(message)))

/* Put `new` into slot i of an array of message pointers, copying the array at its first change. */
static void put(struct flatten *f, void ***array, void *const *old, size_t n, size_t i, void *new) {
    if (new == old[i])
        return;
    if (*array == old)
        *array = copy_bytes(f, old, n * sizeof *old);
    if (*array)
        (*array)[i] = new;
}

/* Apply one of the functions below to each message of a repeated field. */
#define EACH(f, holder, n_field, field, function)                                                                      \
    do {                                                                                                               \
        void **old_ = (void **)(holder)->field, **array_ = old_;                                                       \
        for (size_t i_ = 0; i_ < (holder)->n_field && !(f)->failed; i_++)                                              \
            put((f), &array_, old_, (holder)->n_field, i_, function((f), old_[i_]));                                   \
        (holder)->field = (void *)array_;                                                                              \
    } while (0)

/* Did anything change between the two? Messages around the change are copied only then. */
static bool begin(struct flatten *f) {
    bool before = f->changed;
    f->changed = false;
    return before;
}
static bool end(struct flatten *f, bool before) {
    bool own = f->changed;
    f->changed |= before;
    return own;
}

static void *data_file(struct flatten *f, void *message) {
    LanceDataFile *file = message;
    if (!file->has_base_id)
        return file;
    const struct lfs_alias *alias =
        file->path ? lfs_aliases_get(f->aliases, LFS_FILE_DATA, file->base_id, file->path) : NULL;
    LanceDataFile *flat = COPY(f, file);
    if (!flat)
        return file;
    flat->has_base_id = false;
    flat->base_id = 0;
    if (alias)
        flat->path = (char *)alias->shown;
    return flat;
}

static void *overlay(struct flatten *f, void *message) {
    Lance__Table__DataOverlayFile *file = message;
    void *inner = file->data_file ? data_file(f, file->data_file) : NULL;
    if (inner == file->data_file)
        return file;
    Lance__Table__DataOverlayFile *flat = COPY(f, file);
    if (!flat)
        return file;
    flat->data_file = inner;
    return flat;
}

static LanceDeletionFile *deletion_file(struct flatten *f, uint64_t fragment_id, LanceDeletionFile *file) {
    char name[80];
    if (!file || !file->has_base_id)
        return file;
    LanceDeletionFile *flat = COPY(f, file);
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

static void *fragment(struct flatten *f, void *message) {
    LanceFragment *in = message, flat = *in;
    bool before = begin(f);
    EACH(f, &flat, n_files, files, data_file);
    EACH(f, &flat, n_overlays, overlays, overlay);
    flat.deletion_file = deletion_file(f, in->id, in->deletion_file);
    if (!end(f, before))
        return in;
    LanceFragment *out = COPY(f, in);
    if (!out)
        return in;
    *out = flat;
    return out;
}

static void *index_entry(struct flatten *f, void *message) {
    LanceIndex *index = message;
    if (!index->has_base_id)
        return index;
    LanceIndex *flat = COPY(f, index);
    if (!flat)
        return index;
    flat->has_base_id = false;
    flat->base_id = 0;
    return flat;
}

static void *rewrite_group(struct flatten *f, void *message) {
    Lance__Table__RewriteGroup *in = message, flat = *in;
    bool before = begin(f);
    EACH(f, &flat, n_old_fragments, old_fragments, fragment);
    EACH(f, &flat, n_new_fragments, new_fragments, fragment);
    if (!end(f, before))
        return in;
    Lance__Table__RewriteGroup *out = COPY(f, in);
    if (!out)
        return in;
    *out = flat;
    return out;
}

static void *replacement(struct flatten *f, void *message) {
    Lance__Table__DataReplacementGroup *in = message;
    void *file = in->new_file ? data_file(f, in->new_file) : NULL;
    if (file == in->new_file)
        return in;
    Lance__Table__DataReplacementGroup *out = COPY(f, in);
    if (!out)
        return in;
    out->new_file = file;
    return out;
}

static void *overlay_group(struct flatten *f, void *message) {
    Lance__Table__DataOverlayGroup *in = message, flat = *in;
    bool before = begin(f);
    EACH(f, &flat, n_overlays, overlays, overlay);
    if (!end(f, before))
        return in;
    Lance__Table__DataOverlayGroup *out = COPY(f, in);
    if (!out)
        return in;
    *out = flat;
    return out;
}

/* A reader of the view sees a version whose data is all its own: a deep copy, of nothing that has a place. */
static void clone_operation(struct flatten *f, Lance__Table__Clone *clone) {
    bool has_path = clone->ref_path && *clone->ref_path;
    if (!clone->is_shallow && !has_path && !clone->branch_name)
        return;
    clone->has_is_shallow = true;
    clone->is_shallow = false;
    clone->ref_path = NULL;
    clone->branch_name = NULL;
    f->changed = true;
}

/* The operation's own message is copied first, so that its fields can be set. */
#define ARM(arm) (flat->arm = lfs_memdup(f->arena, flat->arm, sizeof *flat->arm), flat->arm)

static bool operation(struct flatten *f, LanceTransaction *flat) {
    switch (flat->operation_case) {
    case LANCE__TABLE__TRANSACTION__OPERATION_APPEND:
        if (!ARM(append))
            return false;
        EACH(f, flat->append, n_fragments, fragments, fragment);
        break;
    case LANCE__TABLE__TRANSACTION__OPERATION_DELETE:
        if (!ARM(delete_))
            return false;
        EACH(f, flat->delete_, n_updated_fragments, updated_fragments, fragment);
        break;
    case LANCE__TABLE__TRANSACTION__OPERATION_OVERWRITE:
        if (!ARM(overwrite))
            return false;
        EACH(f, flat->overwrite, n_fragments, fragments, fragment);
        f->changed |= flat->overwrite->n_initial_bases > 0;
        flat->overwrite->n_initial_bases = 0;
        break;
    case LANCE__TABLE__TRANSACTION__OPERATION_CREATE_INDEX:
        if (!ARM(create_index))
            return false;
        EACH(f, flat->create_index, n_new_indices, new_indices, index_entry);
        EACH(f, flat->create_index, n_removed_indices, removed_indices, index_entry);
        break;
    case LANCE__TABLE__TRANSACTION__OPERATION_REWRITE:
        if (!ARM(rewrite))
            return false;
        EACH(f, flat->rewrite, n_old_fragments, old_fragments, fragment);
        EACH(f, flat->rewrite, n_new_fragments, new_fragments, fragment);
        EACH(f, flat->rewrite, n_groups, groups, rewrite_group);
        break;
    case LANCE__TABLE__TRANSACTION__OPERATION_MERGE:
        if (!ARM(merge))
            return false;
        EACH(f, flat->merge, n_fragments, fragments, fragment);
        break;
    case LANCE__TABLE__TRANSACTION__OPERATION_UPDATE:
        if (!ARM(update))
            return false;
        EACH(f, flat->update, n_updated_fragments, updated_fragments, fragment);
        EACH(f, flat->update, n_new_fragments, new_fragments, fragment);
        break;
    case LANCE__TABLE__TRANSACTION__OPERATION_DATA_REPLACEMENT:
        if (!ARM(data_replacement))
            return false;
        EACH(f, flat->data_replacement, n_replacements, replacements, replacement);
        break;
    case LANCE__TABLE__TRANSACTION__OPERATION_CLONE:
        if (!ARM(clone))
            return false;
        clone_operation(f, flat->clone);
        break;
    case LANCE__TABLE__TRANSACTION__OPERATION_UPDATE_BASES:
        if (!ARM(update_bases))
            return false;
        f->changed |= flat->update_bases->n_new_bases > 0;
        flat->update_bases->n_new_bases = 0;
        break;
    case LANCE__TABLE__TRANSACTION__OPERATION_DATA_OVERLAY:
        if (!ARM(data_overlay))
            return false;
        EACH(f, flat->data_overlay, n_groups, groups, overlay_group);
        break;
    default: break; /* the others hold neither files nor base paths */
    }
    return !f->failed;
}

LanceTransaction *lfs_flatten_transaction(LanceTransaction *in, const struct lfs_aliases *aliases,
                                          struct lfs_arena *arena) {
    struct flatten f = {.aliases = aliases, .arena = arena};
    LanceTransaction *flat = lfs_memdup(arena, in, sizeof *in);
    if (!flat || !operation(&f, flat))
        return NULL;
    return f.changed ? flat : in;
}

static bool flatten_sections(struct flatten *f, const struct lfs_manifest *in, struct lfs_manifest *out) {
    out->message = lfs_memdup(f->arena, in->message, sizeof *in->message);
    if (!out->message)
        return false;
    EACH(f, out->message, n_fragments, fragments, fragment);
    if (in->indices) {
        out->indices = lfs_memdup(f->arena, in->indices, sizeof *in->indices);
        if (!out->indices)
            return false;
        EACH(f, out->indices, n_indices, indices, index_entry);
    }
    if (in->transaction) {
        out->transaction = lfs_flatten_transaction(in->transaction, f->aliases, f->arena);
        if (!out->transaction)
            return false;
        f->changed |= out->transaction != in->transaction;
    }
    return !f->failed;
}

errint_t lfs_flatten_manifest(const struct lfs_manifest *in, const struct lfs_aliases *aliases, struct lfs_arena *arena,
                              struct lfs_manifest *out, bool *changed, struct lfs_error *err) {
    struct flatten f = {.aliases = aliases, .arena = arena};
    const LanceManifest *m = in->message;
    *out = *in;
    if (!flatten_sections(&f, in, out))
        return lfs_fail_nomem(err);
    uint64_t flags = m->reader_feature_flags | m->writer_feature_flags;
    *changed = f.changed || m->n_base_paths || m->branch || flags & LFS_FLAG_BASE_PATHS;
    if (!*changed) {
        *out = *in;
        return 0;
    }
    out->message->n_base_paths = 0;
    out->message->branch = NULL;
    lfs_manifest_set_features(out->message);
    return 0;
}
