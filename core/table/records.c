/* SPDX-License-Identifier: Apache-2.0 */
#include "table/records.h"

#include "util/cleanup.h"

void *lfs_records_copy(struct lfs_records *f, const void *bytes, size_t size) {
    void *copy = lfs_memdup(f->arena, bytes, size);
    if (!copy)
        f->failed = true;
    f->changed = true;
    return copy;
}

#define COPY(f, message) ((__typeof__(message))lfs_records_copy((f), (message), sizeof *(message)))

/* Put `new` into slot i of an array of message pointers, copying the array at its first change. */
static void put(struct lfs_records *f, void ***array, void *const *old, size_t n, size_t i, void *new) {
    if (new == old[i])
        return;
    if (*array == old)
        *array = lfs_records_copy(f, old, n * sizeof *old);
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

static void *data_file(struct lfs_records *f, void *message) { return f->data_file(f, message); }
static void *index_entry(struct lfs_records *f, void *message) { return f->index(f, message); }

/* Did anything change between the two? Messages around the change are copied only then. */
static bool begin(struct lfs_records *f) {
    bool before = f->changed;
    f->changed = false;
    return before;
}
static bool end(struct lfs_records *f, bool before) {
    bool own = f->changed;
    f->changed |= before;
    return own;
}

static void *overlay(struct lfs_records *f, void *message) {
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

static void *fragment(struct lfs_records *f, void *message) {
    LanceFragment *in = message, flat = *in;
    bool before = begin(f);
    EACH(f, &flat, n_files, files, data_file);
    EACH(f, &flat, n_overlays, overlays, overlay);
    if (in->deletion_file)
        flat.deletion_file = f->deletion_file(f, in->id, in->deletion_file);
    if (!end(f, before))
        return in;
    LanceFragment *out = COPY(f, in);
    if (!out)
        return in;
    *out = flat;
    return out;
}

static void *rewrite_group(struct lfs_records *f, void *message) {
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

static void *replacement(struct lfs_records *f, void *message) {
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

static void *overlay_group(struct lfs_records *f, void *message) {
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

/* The operation's own message is copied first, so that its fields can be set. */
#define ARM(arm) (flat->arm = lfs_memdup(f->arena, flat->arm, sizeof *flat->arm), flat->arm)

static bool operation(struct lfs_records *f, LanceTransaction *flat) {
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
        break;
    case LANCE__TABLE__TRANSACTION__OPERATION_UPDATE_BASES:
        if (!ARM(update_bases))
            return false;
        break;
    case LANCE__TABLE__TRANSACTION__OPERATION_DATA_OVERLAY:
        if (!ARM(data_overlay))
            return false;
        EACH(f, flat->data_overlay, n_groups, groups, overlay_group);
        break;
    default: break; /* the others hold no records */
    }
    return !f->failed;
}

LanceTransaction *lfs_records_transaction(struct lfs_records *records, const LanceTransaction *in) {
    LanceTransaction *out = lfs_memdup(records->arena, in, sizeof *in);
    if (!out || !operation(records, out))
        return NULL;
    return out;
}

bool lfs_records_manifest(struct lfs_records *f, const struct lfs_manifest *in, struct lfs_manifest *out) {
    *out = *in;
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
    return !f->failed;
}
