/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/virtual.h"

#include <string.h>

#include "merge/virtual_impl.h"
#include "util/cleanup.h"

LanceDeletionFile *lfs_virtual_marker(struct lfs_arena *arena, uint64_t n_deleted, const void *identity) {
    LanceDeletionFile *d = LFS_NEW(arena, LanceDeletionFile);
    if (!d)
        return NULL;
    lance__table__deletion_file__init(d);
    d->has_id = d->has_read_version = d->has_num_deleted_rows = true;
    d->id = (uint64_t)(uintptr_t)identity;
    d->read_version = UINT64_MAX;
    d->num_deleted_rows = n_deleted;
    return d;
}

bool lfs_virtual_is_marker(const LanceDeletionFile *file) { return file && file->read_version == UINT64_MAX; }

void lfs_virtual_release(struct lfs_virtual *v) {
    for (size_t i = 0; i < v->owned.count; i++)
        roaring_bitmap_free(v->owned.items[i]);
    v->owned.count = 0;
}

struct lfs_virtual_vector *lfs_virtual_vector_of(struct lfs_virtual *v, const LanceFragment *f) {
    for (size_t i = 0; i < v->n_vectors; i++)
        if (v->vectors[i].fragment == f)
            return &v->vectors[i];
    return NULL;
}

errint_t lfs_virtual_copy(struct lfs_virtual *out, const struct lfs_version *version, size_t more, struct lfs_arena *arena,
                          struct lfs_error *err) {
    const LanceManifest *m = version->manifest.message;
    LanceManifest *copy = lfs_memdup(arena, m, sizeof *copy);
    *out = (struct lfs_virtual){.version = *version};
    out->version.manifest.message = copy;
    out->vectors = LFS_NEW_ARRAY(arena, struct lfs_virtual_vector, m->n_fragments + more + 1);
    if (!copy || !out->vectors)
        return lfs_fail_nomem(err);
    copy->fragments = LFS_NEW_ARRAY(arena, LanceFragment *, m->n_fragments + more + 1);
    if (!copy->fragments)
        return lfs_fail_nomem(err);
    for (size_t i = 0; i < m->n_fragments; i++) {
        copy->fragments[i] = lfs_memdup(arena, m->fragments[i], sizeof **copy->fragments);
        if (!copy->fragments[i])
            return lfs_fail_nomem(err);
        out->vectors[out->n_vectors++] =
            (struct lfs_virtual_vector){.fragment = copy->fragments[i], .version = version, .record = m->fragments[i]};
    }
    return 0;
}

errint_t lfs_virtual_set_deleted(struct lfs_virtual *v, LanceFragment *f, roaring_bitmap_t *deleted,
                                 struct lfs_arena *arena, struct lfs_error *err) {
    uint64_t n = roaring_bitmap_get_cardinality(deleted);
    if (!lfs_list_add(&v->owned, arena, deleted)) {
        roaring_bitmap_free(deleted);
        return lfs_fail_nomem(err);
    }
    lfs_virtual_vector_of(v, f)->deleted = deleted;
    f->deletion_file = n ? lfs_virtual_marker(arena, n, deleted) : NULL;
    return n && !f->deletion_file ? lfs_fail_nomem(err) : 0;
}

static errint_t add_fragment(struct lfs_virtual *out, const struct lfs_plan_fragment *from, const struct lfs_version *ours,
                             const struct lfs_version *theirs, struct lfs_arena *arena, LanceFragment **slot,
                             struct lfs_error *err) {
    struct lfs_virtual_vector *v = &out->vectors[out->n_vectors++];
    LanceFragment *f = lfs_plan_record(from, arena);
    if (!f)
        return lfs_fail_nomem(err);
    if (from->files) { /* of either side; a virtual state's files are compared by name and never opened */
        f->files = LFS_NEW_ARRAY(arena, LanceDataFile *, from->n_files);
        f->n_files = from->n_files;
        for (size_t i = 0; f->files && i < from->n_files; i++)
            f->files[i] = (LanceDataFile *)from->files[i].record;
        if (!f->files)
            return lfs_fail_nomem(err);
    }
    *slot = f;
    *v = (struct lfs_virtual_vector){.fragment = f, .version = from->is_theirs ? theirs : ours, .record = from->record};
    if (from->deletion == LFS_DELETION_THEIRS) { /* the file as it is: further comparisons know it by its record */
        f->deletion_file = from->theirs->deletion_file;
        v->version = theirs;
        v->record = from->theirs;
    } else if (from->deletion == LFS_DELETION_NEW) {
        v->deleted = from->deleted;
        f->deletion_file = from->n_deleted ? lfs_virtual_marker(arena, from->n_deleted, from) : NULL;
        if (from->n_deleted && !f->deletion_file)
            return lfs_fail_nomem(err);
    }
    return 0;
}

static errint_t set_indices(struct lfs_virtual *out, const struct lfs_plan *plan, struct lfs_arena *arena,
                            struct lfs_error *err) {
    LanceIndexSection *section = LFS_NEW(arena, LanceIndexSection);
    LanceIndex **list = LFS_NEW_ARRAY(arena, LanceIndex *, plan->n_indices + 1);
    if (!section || !list)
        return lfs_fail_nomem(err);
    lance__table__index_section__init(section);
    for (size_t i = 0; i < plan->n_indices; i++)
        list[i] = (LanceIndex *)plan->indices[i].record;
    section->indices = list;
    section->n_indices = plan->n_indices;
    out->version.manifest.indices = section;
    return 0;
}

errint_t lfs_virtual_init(struct lfs_virtual *out, const struct lfs_plan *plan, const struct lfs_version *ours,
                          const struct lfs_version *theirs, struct lfs_arena *arena, struct lfs_error *err) {
    LanceManifest *m = lfs_memdup(arena, ours->manifest.message, sizeof *m);
    *out = (struct lfs_virtual){.version = *ours};
    out->vectors = LFS_NEW_ARRAY(arena, struct lfs_virtual_vector, plan->n_fragments + 1);
    LanceFragment **list = LFS_NEW_ARRAY(arena, LanceFragment *, plan->n_fragments + 1);
    if (!m || !list || !out->vectors)
        return lfs_fail_nomem(err);
    for (size_t i = 0; i < plan->n_fragments; i++)
        LFS_TRY(add_fragment(out, &plan->fragments[i], ours, theirs, arena, &list[i], err));
    LFS_TRY(set_indices(out, plan, arena, err));
    m->fragments = list;
    m->n_fragments = plan->n_fragments;
    m->fields = plan->fields;
    m->n_fields = plan->n_fields;
    m->config = plan->config;
    m->n_config = plan->n_config;
    m->table_metadata = plan->table_metadata;
    m->n_table_metadata = plan->n_table_metadata;
    m->schema_metadata = plan->schema_metadata;
    m->n_schema_metadata = plan->n_schema_metadata;
    m->has_max_fragment_id = plan->has_max_fragment_id;
    m->max_fragment_id = plan->max_fragment_id;
    m->next_row_id = plan->next_row_id;
    out->version.planned = true;
    out->version.manifest.message = m;
    out->version.manifest.transaction = NULL;
    return 0;
}

errint_t lfs_virtual_deletions(const struct lfs_virtual *v, const LanceFragment *fragment,
                               const struct lfs_merge_reader *reader, roaring_bitmap_t **out, struct lfs_error *err) {
    for (size_t i = 0; i < v->n_vectors; i++) {
        const struct lfs_virtual_vector *at = &v->vectors[i];
        if (at->fragment != fragment)
            continue;
        if (!fragment->deletion_file || at->deleted) {
            *out = at->deleted ? roaring_bitmap_copy(at->deleted) : roaring_bitmap_create();
            return *out ? 0 : lfs_fail_nomem(err);
        }
        return reader->deletions(reader->context, at->version, at->record, out, err);
    }
    return lfs_fail(err, LFS_E_CORRUPT, "a fragment is asked for in a version that does not hold it");
}
