/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "commit/build.h"
#include "merge/field_match.h"
#include "util/cleanup.h"

#define NEW_MESSAGE(arena, type, init)                                                                                 \
    ({                                                                                                                 \
        type *message_ = LFS_NEW(arena, type);                                                                         \
        if (message_)                                                                                                  \
            init(message_);                                                                                            \
        message_;                                                                                                      \
    })

/* The new fragments of the next manifest, with id 0: in a transaction they are not assigned yet (lance-format T1). */
static errint_t new_fragments(const struct lfs_build *b, const LanceManifest *next, LanceFragment ***out, size_t *n_out,
                              struct lfs_error *err) {
    const struct lfs_plan *plan = b->request->plan;
    *out = LFS_NEW_ARRAY(b->arena, LanceFragment *, plan->n_fragments + 1);
    *n_out = 0;
    if (!*out)
        return lfs_fail_nomem(err);
    for (size_t i = 0; i < plan->n_fragments; i++) {
        if (!plan->fragments[i].is_new)
            continue;
        LanceFragment *f = lfs_memdup(b->arena, next->fragments[i], sizeof *f);
        if (!f)
            return lfs_fail_nomem(err);
        f->id = 0;
        (*out)[(*n_out)++] = f;
    }
    return 0;
}

static errint_t changed_fragments(const struct lfs_build *b, const LanceManifest *next, LanceFragment ***out,
                                  size_t *n_out, struct lfs_error *err) {
    const struct lfs_plan *plan = b->request->plan;
    *out = LFS_NEW_ARRAY(b->arena, LanceFragment *, plan->n_fragments + 1);
    *n_out = 0;
    if (!*out)
        return lfs_fail_nomem(err);
    for (size_t i = 0; i < plan->n_fragments; i++)
        if (!plan->fragments[i].is_new && next->fragments[i] != plan->fragments[i].record)
            (*out)[(*n_out)++] = next->fragments[i];
    return 0;
}

/* May rows of before the change stand beside those of after it, and be written still? Then appends and updates that race with
 * it pass (Lance 12 asks; lance-format section 8). */
static bool preserves_nullability(const struct lfs_build *b, const LanceManifest *next) {
    const LanceManifest *before = b->request->target_tip->manifest.message;
    for (size_t i = 0; i < next->n_fields; i++) {
        const LanceField *was = lfs_field_by_id(before, next->fields[i]->id);
        if (!next->fields[i]->nullable && (!was || was->nullable))
            return false;
    }
    return true;
}

static errint_t say_merge(const struct lfs_build *b, const LanceManifest *next, LanceTransaction *t,
                          struct lfs_error *err) {
    Lance__Table__Merge *op = NEW_MESSAGE(b->arena, Lance__Table__Merge, lance__table__merge__init);
    if (!op)
        return lfs_fail_nomem(err);
    op->fragments = next->fragments;
    op->n_fragments = next->n_fragments;
    op->schema = next->fields;
    op->n_schema = next->n_fields;
    op->schema_metadata = next->schema_metadata;
    op->n_schema_metadata = next->n_schema_metadata;
    op->has_preserves_nullability = true;
    op->preserves_nullability = preserves_nullability(b, next);
    t->operation_case = LANCE__TABLE__TRANSACTION__OPERATION_MERGE;
    t->merge = op;
    return 0;
}

/* Only the schema changed: columns dropped, renamed, or with other attributes. */
static errint_t say_project(const struct lfs_build *b, const LanceManifest *next, LanceTransaction *t,
                            struct lfs_error *err) {
    Lance__Table__Project *op = NEW_MESSAGE(b->arena, Lance__Table__Project, lance__table__project__init);
    if (!op)
        return lfs_fail_nomem(err);
    op->schema = next->fields;
    op->n_schema = next->n_fields;
    op->has_preserves_nullability = true;
    op->preserves_nullability = preserves_nullability(b, next);
    t->operation_case = LANCE__TABLE__TRANSACTION__OPERATION_PROJECT;
    t->project = op;
    return 0;
}

static errint_t say_append(const struct lfs_build *b, const LanceManifest *next, LanceTransaction *t,
                           struct lfs_error *err) {
    Lance__Table__Append *op = NEW_MESSAGE(b->arena, Lance__Table__Append, lance__table__append__init);
    if (!op)
        return lfs_fail_nomem(err);
    t->operation_case = LANCE__TABLE__TRANSACTION__OPERATION_APPEND;
    t->append = op;
    return new_fragments(b, next, &op->fragments, &op->n_fragments, err);
}

static errint_t say_delete(const struct lfs_build *b, const LanceManifest *next, LanceTransaction *t,
                           struct lfs_error *err) {
    Lance__Table__Delete *op = NEW_MESSAGE(b->arena, Lance__Table__Delete, lance__table__delete__init);
    if (!op)
        return lfs_fail_nomem(err);
    op->deleted_fragment_ids = b->request->plan->removed_ids;
    op->n_deleted_fragment_ids = b->request->plan->n_removed;
    t->operation_case = LANCE__TABLE__TRANSACTION__OPERATION_DELETE;
    t->delete_ = op;
    return changed_fragments(b, next, &op->updated_fragments, &op->n_updated_fragments, err);
}

static errint_t say_update(const struct lfs_build *b, const LanceManifest *next, LanceTransaction *t,
                           struct lfs_error *err) {
    Lance__Table__Update *op = NEW_MESSAGE(b->arena, Lance__Table__Update, lance__table__update__init);
    if (!op)
        return lfs_fail_nomem(err);
    op->removed_fragment_ids = b->request->plan->removed_ids;
    op->n_removed_fragment_ids = b->request->plan->n_removed;
    op->has_update_mode = true;
    op->update_mode = LANCE__TABLE__UPDATE_MODE__REWRITE_ROWS;
    t->operation_case = LANCE__TABLE__TRANSACTION__OPERATION_UPDATE;
    t->update = op;
    LFS_TRY(changed_fragments(b, next, &op->updated_fragments, &op->n_updated_fragments, err));
    return new_fragments(b, next, &op->new_fragments, &op->n_new_fragments, err);
}

/* Entries of one list that the other lacks. */
static LanceIndex **missing(struct lfs_arena *arena, const LanceIndexSection *from, const LanceIndexSection *in,
                            size_t *n) {
    LanceIndex **list = LFS_NEW_ARRAY(arena, LanceIndex *, (from ? from->n_indices : 0) + 1);
    *n = 0;
    for (size_t i = 0; list && from && i < from->n_indices; i++)
        if (!lfs_index_find(in, from->indices[i]))
            list[(*n)++] = from->indices[i];
    return list;
}

static errint_t say_create_index(const struct lfs_build *b, const struct lfs_manifest *next, LanceTransaction *t,
                                 struct lfs_error *err) {
    const LanceIndexSection *before = b->request->target_tip->manifest.indices;
    Lance__Table__CreateIndex *op = NEW_MESSAGE(b->arena, Lance__Table__CreateIndex, lance__table__create_index__init);
    if (!op)
        return lfs_fail_nomem(err);
    op->new_indices = missing(b->arena, next->indices, before, &op->n_new_indices);
    op->removed_indices = missing(b->arena, before, next->indices, &op->n_removed_indices);
    t->operation_case = LANCE__TABLE__TRANSACTION__OPERATION_CREATE_INDEX;
    t->create_index = op;
    return op->new_indices && op->removed_indices ? 0 : lfs_fail_nomem(err);
}

/* --- maps: the keys that differ, and no others, so that who sets another key at the same time passes --- */

struct entries {
    LanceStringEntry **list;
    size_t n;
};

static const LanceStringEntry *find_key(const struct entries *map, const char *key) {
    for (size_t i = 0; i < map->n; i++)
        if (strcmp(map->list[i]->key ? map->list[i]->key : "", key) == 0)
            return map->list[i];
    return NULL;
}

/* An entry without a value removes its key, so that an empty one is written out. */
static bool add_entry(struct lfs_arena *arena, Lance__Table__UpdateMap *map, char *key, char *value) {
    LanceStringEntry *e = NEW_MESSAGE(arena, LanceStringEntry, lance__table__string_entry__init);
    if (!e)
        return false;
    e->key = key;
    e->value = value;
    map->update_entries[map->n_update_entries++] = e;
    return true;
}

/* NULL in *out when nothing differs. */
static errint_t update_map(struct lfs_arena *arena, const struct entries *before, const struct entries *after,
                           Lance__Table__UpdateMap **out, struct lfs_error *err) {
    Lance__Table__UpdateMap *map = NEW_MESSAGE(arena, Lance__Table__UpdateMap, lance__table__update_map__init);
    if (!map || !(map->update_entries = LFS_NEW_ARRAY(arena, LanceStringEntry *, before->n + after->n + 1)))
        return lfs_fail_nomem(err);
    for (size_t i = 0; i < after->n; i++) {
        char *key = after->list[i]->key ? after->list[i]->key : "", *value = after->list[i]->value ? after->list[i]->value : "";
        const LanceStringEntry *was = find_key(before, key);
        if ((!was || strcmp(was->value ? was->value : "", value)) && !add_entry(arena, map, key, value))
            return lfs_fail_nomem(err);
    }
    for (size_t i = 0; i < before->n; i++) {
        char *key = before->list[i]->key ? before->list[i]->key : "";
        if (!find_key(after, key) && !add_entry(arena, map, key, NULL))
            return lfs_fail_nomem(err);
    }
    *out = map->n_update_entries ? map : NULL;
    return 0;
}

static errint_t schema_entries(struct lfs_arena *arena, const LanceManifest *m, struct entries *out, struct lfs_error *err) {
    *out = (struct entries){LFS_NEW_ARRAY(arena, LanceStringEntry *, m->n_schema_metadata + 1), m->n_schema_metadata};
    for (size_t i = 0; out->list && i < out->n; i++) {
        const LanceBytesEntry *from = m->schema_metadata[i];
        LanceStringEntry *e = NEW_MESSAGE(arena, LanceStringEntry, lance__table__string_entry__init);
        if (!e)
            return lfs_fail_nomem(err);
        e->key = from->key;
        e->value = lfs_strndup(arena, (const char *)from->value.data, from->has_value ? from->value.len : 0);
        if (!e->value)
            return lfs_fail_nomem(err);
        out->list[i] = e;
    }
    return out->list ? 0 : lfs_fail_nomem(err);
}

/* Only maps changed, or nothing but the lineage. */
static errint_t say_update_config(const struct lfs_build *b, const LanceManifest *next, LanceTransaction *t,
                                  struct lfs_error *err) {
    const LanceManifest *before = b->request->target_tip->manifest.message;
    Lance__Table__UpdateConfig *op = NEW_MESSAGE(b->arena, Lance__Table__UpdateConfig, lance__table__update_config__init);
    struct entries was, is;
    if (!op)
        return lfs_fail_nomem(err);
    t->operation_case = LANCE__TABLE__TRANSACTION__OPERATION_UPDATE_CONFIG;
    t->update_config = op;
    was = (struct entries){before->table_metadata, before->n_table_metadata};
    is = (struct entries){next->table_metadata, next->n_table_metadata};
    LFS_TRY(update_map(b->arena, &was, &is, &op->table_metadata_updates, err));
    was = (struct entries){before->config, before->n_config};
    is = (struct entries){next->config, next->n_config};
    LFS_TRY(update_map(b->arena, &was, &is, &op->config_updates, err));
    LFS_TRY(schema_entries(b->arena, before, &was, err));
    LFS_TRY(schema_entries(b->arena, next, &is, err));
    return update_map(b->arena, &was, &is, &op->schema_metadata_updates, err);
}

static errint_t add_properties(const struct lfs_build *b, LanceTransaction *t, struct lfs_error *err) {
    const struct lfs_commit_request *r = b->request;
    t->transaction_properties = LFS_NEW_ARRAY(b->arena, LanceStringEntry *, r->n_properties + 1);
    if (!t->transaction_properties)
        return lfs_fail_nomem(err);
    for (size_t i = 0; i < r->n_properties; i++) {
        LanceStringEntry *e = NEW_MESSAGE(b->arena, LanceStringEntry, lance__table__string_entry__init);
        if (!e)
            return lfs_fail_nomem(err);
        e->key = lfs_strdup(b->arena, r->properties[i].key);
        e->value = lfs_strdup(b->arena, r->properties[i].value);
        t->transaction_properties[t->n_transaction_properties++] = e;
    }
    return 0;
}

/* Stock Lance lets no append, delete, update, index or compaction pass a restore (lance-format section 8). */
static errint_t say_restore(const struct lfs_build *b, LanceTransaction *t, struct lfs_error *err) {
    Lance__Table__Restore *op = NEW_MESSAGE(b->arena, Lance__Table__Restore, lance__table__restore__init);
    if (!op)
        return lfs_fail_nomem(err);
    op->has_version = true;
    op->version = b->request->target_tip->number;
    t->operation_case = LANCE__TABLE__TRANSACTION__OPERATION_RESTORE;
    t->restore = op;
    return 0;
}

errint_t lfs_build_transaction(const struct lfs_build *b, const struct lfs_manifest *next, LanceTransaction **out,
                               struct lfs_error *err) {
    const struct lfs_plan *plan = b->request->plan;
    LanceTransaction *t = NEW_MESSAGE(b->arena, LanceTransaction, lance__table__transaction__init);
    if (!t)
        return lfs_fail_nomem(err);
    *out = t;
    t->has_read_version = true;
    t->read_version = b->request->target_tip->number;
    t->uuid = lfs_strdup(b->arena, b->transaction_uuid);
    LFS_TRY(add_properties(b, t, err));
    if (b->request->rehome) /* whoever changed a fragment meanwhile has the old records of its files and must try again */
        return say_merge(b, next->message, t, err);
    if (b->request->restate)
        return say_restore(b, t, err);
    bool adds = plan->fragments_added > 0, takes = plan->fragments_changed_count + plan->fragments_removed > 0;
    if (plan->schema_changed)
        return plan->fragments_changed ? say_merge(b, next->message, t, err) : say_project(b, next->message, t, err);
    if (takes && (adds || plan->rows_return)) /* rows that others think gone are there again: a delete would hide that */
        return say_update(b, next->message, t, err);
    if (adds)
        return say_append(b, next->message, t, err);
    if (takes)
        return say_delete(b, next->message, t, err);
    if (plan->indices_changed)
        return say_create_index(b, next, t, err);
    return say_update_config(b, next->message, t, err);
}
