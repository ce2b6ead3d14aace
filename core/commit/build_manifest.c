/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "commit/build.h"
#include "commit/expect.h"
#include "commit/imagine.h"
#include "format/deletion.h"
#include "store/file.h"
#include "util/cleanup.h"
#include "util/map.h"
#include "version.h"

/* Files that the target has already keep the target's record: its base ids never change (merge-semantics section 6). Of
 * the target's many files only those that theirs name are looked for. */
static errint_t wanted_files(const struct lfs_build *b, struct lfs_map *files, struct lfs_error *err) {
    const struct lfs_plan *plan = b->request->plan;
    lfs_map_init(files, b->arena);
    for (size_t i = 0; i < plan->n_fragments; i++) {
        const struct lfs_plan_fragment *f = &plan->fragments[i];
        for (size_t k = 0; k < (f->files ? f->n_files : f->is_theirs ? f->record->n_files : 0); k++) {
            const LanceDataFile *file = f->files ? f->files[k].record : f->record->files[k];
            if ((f->is_theirs || f->files[k].is_theirs) && file->path && !lfs_map_put(files, file->path, NULL))
                return lfs_fail_nomem(err);
        }
    }
    return 0;
}

static errint_t map_files(const struct lfs_build *b, struct lfs_map *files, struct lfs_error *err) {
    const LanceManifest *m = b->request->target_tip->manifest.message;
    LFS_TRY(wanted_files(b, files, err));
    for (size_t i = 0; files->count && i < m->n_fragments; i++)
        for (size_t k = 0; k < m->fragments[i]->n_files; k++) {
            LanceDataFile *file = m->fragments[i]->files[k];
            struct lfs_map_entry *wanted = file->path ? lfs_map_find(files, file->path) : NULL;
            if (wanted)
                wanted->value = file;
        }
    return 0;
}

/* A record of theirs becomes one of the target's: its file is placed, unless the target reaches it already. */
static errint_t place_file(const struct lfs_build *b, const struct lfs_map *files, const LanceDataFile *theirs,
                           LanceDataFile **out, struct lfs_error *err) {
    const LanceDataFile *own = theirs->path ? lfs_map_get(files, theirs->path) : NULL;
    LanceDataFile *file = lfs_memdup(b->arena, theirs, sizeof *file);
    if (!file)
        return lfs_fail_nomem(err);
    *out = file;
    if (!own)
        return lfs_place_data_file(b->placer, file, err);
    file->has_base_id = own->has_base_id;
    file->base_id = own->base_id;
    return 0;
}

static errint_t place_files(const struct lfs_build *b, const struct lfs_map *files,
                            const struct lfs_plan_fragment *from, LanceFragment *f, struct lfs_error *err) {
    size_t n = from->files ? from->n_files : f->n_files;
    LanceDataFile **list = LFS_NEW_ARRAY(b->arena, LanceDataFile *, n + 1);
    if (!list)
        return lfs_fail_nomem(err);
    for (size_t i = 0; i < n; i++) {
        struct lfs_plan_file file = {from->files ? NULL : f->files[i], from->is_theirs};
        if (from->files)
            file = from->files[i];
        list[i] = (LanceDataFile *)file.record; /* only packed from here on */
        if (file.is_theirs)
            LFS_TRY(place_file(b, files, file.record, &list[i], err));
    }
    f->files = list;
    f->n_files = n;
    return 0;
}

/* The same in memory; its id is random where it is written. */
static errint_t imagine_deletions(const struct lfs_build *b, uint64_t fragment_id, LanceDeletionFile *d,
                                  const struct lfs_buf *bytes, struct lfs_error *err) {
    struct lfs_imagined *to = b->placer->imagined;
    char name[80];
    if (to->n_files == to->capacity) {
        size_t capacity = to->capacity * 2 + 16;
        struct lfs_image_file *grown = LFS_NEW_ARRAY(b->arena, struct lfs_image_file, capacity);
        if (!grown)
            return lfs_fail_nomem(err);
        if (to->n_files)
            memcpy(grown, to->files, to->n_files * sizeof *grown);
        to->files = grown;
        to->capacity = capacity;
    }
    d->id = lfs_hash(bytes->data, bytes->length, lfs_hash(&fragment_id, sizeof fragment_id, to->seed));
    lfs_deletion_file_name(fragment_id, d, name, sizeof name);
    struct lfs_image_file *file = &to->files[to->n_files++];
    *file = (struct lfs_image_file){lfs_join(b->arena, "_deletions", name),
                                    lfs_memdup(b->arena, bytes->data, bytes->length), bytes->length};
    return file->path && file->bytes ? 0 : lfs_fail_nomem(err);
}

/* A new deletion file in the target's own storage; always a bitmap (lance-format section 1.3). */
static errint_t write_deletions(const struct lfs_build *b, const struct lfs_plan_fragment *from, LanceFragment *f,
                                struct lfs_error *err) {
    LFS_AUTO_BUF bytes = {0};
    char name[80];
    f->deletion_file = NULL;
    if (!from->deleted || roaring_bitmap_is_empty(from->deleted))
        return 0;
    LanceDeletionFile *d = LFS_NEW(b->arena, LanceDeletionFile);
    char *directory = lfs_sprintf(b->arena, "%s%s_deletions", b->request->target->dir, *b->request->target->dir ? "/" : "");
    if (!d || !directory)
        return lfs_fail_nomem(err);
    lance__table__deletion_file__init(d);
    d->has_file_type = d->has_read_version = d->has_id = d->has_num_deleted_rows = true;
    d->file_type = LANCE__TABLE__DELETION_FILE__DELETION_FILE_TYPE__BITMAP;
    d->read_version = b->request->target_tip->number;
    d->num_deleted_rows = from->n_deleted;
    LFS_TRY(lfs_deletion_encode_bitmap(from->deleted, &bytes, err));
    f->deletion_file = d;
    if (b->placer->imagined)
        return imagine_deletions(b, from->id, d, &bytes, err);
    if (getrandom(&d->id, sizeof d->id, 0) != sizeof d->id)
        return lfs_fail_errno(err, EIO, "no random numbers");
    lfs_deletion_file_name(from->id, d, name, sizeof name);
    LFS_TRY(lfs_make_dirs(lfs_dataset_root_fd(b->request->dataset), directory, b->request->sync, err));
    LFS_TRY(lfs_write_new(lfs_dataset_root_fd(b->request->dataset), directory, name, &bytes, b->request->sync, err));
    char *made = lfs_sprintf(b->arena, "%s/%s", directory, name);
    return made && lfs_list_add(&b->placer->created, b->arena, made) ? 0 : lfs_fail_nomem(err);
}

static errint_t place_deletions(const struct lfs_build *b, const struct lfs_plan_fragment *from, LanceFragment *f,
                                struct lfs_error *err) {
    f->deletion_file = lfs_memdup(b->arena, from->theirs->deletion_file, sizeof *f->deletion_file);
    if (!f->deletion_file)
        return lfs_fail_nomem(err);
    f->deletion_file->has_num_deleted_rows = true;
    f->deletion_file->num_deleted_rows = from->n_deleted; /* counted, where the record may be wrong */
    return lfs_place_deletion_file(b->placer, from->theirs->id, f->deletion_file, err);
}

static errint_t build_fragment(const struct lfs_build *b, const struct lfs_map *files,
                               const struct lfs_plan_fragment *from, LanceFragment **out, struct lfs_error *err) {
    if (!from->is_theirs && !from->files && from->deletion == LFS_DELETION_KEPT) {
        *out = (LanceFragment *)from->record; /* only packed from here on */
        return 0;
    }
    LanceFragment *f = lfs_plan_record(from, b->arena);
    if (!f)
        return lfs_fail_nomem(err);
    if (from->is_theirs || from->files)
        LFS_TRY(place_files(b, files, from, f, err));
    if (from->deletion == LFS_DELETION_THEIRS)
        LFS_TRY(place_deletions(b, from, f, err));
    else if (from->deletion == LFS_DELETION_NEW)
        LFS_TRY(write_deletions(b, from, f, err));
    *out = f;
    return 0;
}

static errint_t build_fragments(const struct lfs_build *b, LanceManifest *m, struct lfs_error *err) {
    const struct lfs_plan *plan = b->request->plan;
    struct lfs_map files = {0};
    if (plan->fragments_changed)
        LFS_TRY(map_files(b, &files, err));
    lfs_expect_merge(b, &files);
    m->n_fragments = plan->n_fragments;
    m->fragments = LFS_NEW_ARRAY(b->arena, LanceFragment *, plan->n_fragments + 1);
    if (!m->fragments)
        return lfs_fail_nomem(err);
    for (size_t i = 0; i < plan->n_fragments; i++)
        LFS_TRY(build_fragment(b, &files, &plan->fragments[i], &m->fragments[i], err));
    m->has_max_fragment_id = plan->has_max_fragment_id;
    m->max_fragment_id = plan->max_fragment_id;
    m->has_next_row_id = m->has_next_row_id || plan->next_row_id > 0;
    m->next_row_id = plan->next_row_id;
    return 0;
}

/* --- indexes --- */

/* One entry of the plan's list; NULL in *out when the target's own has lost its files. */
static errint_t build_index(const struct lfs_build *b, const struct lfs_plan_index *from, LanceIndex **out,
                            struct lfs_error *err) {
    const LanceIndex *own = lfs_index_find(b->request->target_tip->manifest.indices, from->record);
    *out = (LanceIndex *)from->record; /* only packed from here on */
    if (own != from->record) {
        *out = lfs_memdup(b->arena, from->record, sizeof **out);
        if (!*out)
            return lfs_fail_nomem(err);
        if (!own)
            return lfs_place_index(b->placer, *out, err);
        (*out)->has_base_id = own->has_base_id; /* the target reaches its files already */
        (*out)->base_id = own->base_id;
    }
    return lfs_place_own_index(b->placer, out, err);
}

/* The list is always written out: without the section every index would be gone (merge-semantics section 7). */
static errint_t build_indices(const struct lfs_build *b, LanceIndexSection **out, struct lfs_error *err) {
    const struct lfs_plan *plan = b->request->plan;
    LanceIndexSection *ours = b->request->target_tip->manifest.indices, *section = LFS_NEW(b->arena, LanceIndexSection);
    LanceIndex **list = LFS_NEW_ARRAY(b->arena, LanceIndex *, plan->n_indices + 1);
    bool same = (ours ? ours->n_indices : 0) == plan->n_indices;
    if (!section || !list)
        return lfs_fail_nomem(err);
    lance__table__index_section__init(section);
    section->indices = list;
    for (size_t i = 0; i < plan->n_indices; i++) {
        LanceIndex *index;
        LFS_TRY(build_index(b, &plan->indices[i], &index, err));
        same = same && index == ours->indices[i];
        if (index)
            list[section->n_indices++] = index;
    }
    *out = same ? ours : section->n_indices ? section : NULL;
    return 0;
}

/* --- the rest of the message --- */

static errint_t string_entry(struct lfs_arena *arena, const char *key, const char *value, LanceStringEntry **out,
                             struct lfs_error *err) {
    LanceStringEntry *e = LFS_NEW(arena, LanceStringEntry);
    if (!e)
        return lfs_fail_nomem(err);
    lance__table__string_entry__init(e);
    e->key = lfs_strdup(arena, key);
    e->value = lfs_strdup(arena, value);
    *out = e;
    return e->key && e->value ? 0 : lfs_fail_nomem(err);
}

errint_t lfs_build_table_metadata(const struct lfs_build *b, LanceManifest *m, struct lfs_error *err) {
    const struct lfs_plan *plan = b->request->plan;
    const LanceManifest *ours = b->request->target_tip->manifest.message;
    LanceStringEntry **list = LFS_NEW_ARRAY(b->arena, LanceStringEntry *, plan->n_table_metadata + ours->n_table_metadata + 3);
    LFS_AUTO_BUF vector = {0};
    size_t n = 0;
    lfs_vector_print(b->request->vector, &vector);
    lfs_buf_add(&vector, "", 1);
    LFS_TRY(lfs_buf_check(&vector, err));
    if (!list)
        return lfs_fail_nomem(err);
    for (size_t i = 0; i < plan->n_table_metadata; i++)
        list[n++] = plan->table_metadata[i];
    for (size_t i = 0; i < ours->n_table_metadata; i++) {
        const char *key = ours->table_metadata[i]->key;
        if (key && strncmp(key, LFS_KEY_PREFIX, strlen(LFS_KEY_PREFIX)) == 0 && strcmp(key, LFS_KEY_VECTOR) &&
            !(b->request->picked && strcmp(key, LFS_KEY_PICKED) == 0) &&
            !(b->request->partial && strcmp(key, LFS_KEY_PARTIAL) == 0))
            list[n++] = ours->table_metadata[i];
    }
    if (b->request->picked)
        LFS_TRY(string_entry(b->arena, LFS_KEY_PICKED, b->request->picked, &list[n++], err));
    if (b->request->partial)
        LFS_TRY(string_entry(b->arena, LFS_KEY_PARTIAL, b->request->partial, &list[n++], err));
    LFS_TRY(string_entry(b->arena, LFS_KEY_VECTOR, (const char *)vector.data, &list[n++], err));
    m->table_metadata = list;
    m->n_table_metadata = n;
    return 0;
}

errint_t lfs_build_stamp(const struct lfs_build *b, LanceManifest *m, struct lfs_error *err) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    m->timestamp = LFS_NEW(b->arena, Lance__Table__Timestamp);
    m->writer_version = LFS_NEW(b->arena, Lance__Table__WriterVersion);
    if (!m->timestamp || !m->writer_version)
        return lfs_fail_nomem(err);
    lance__table__timestamp__init(m->timestamp);
    lance__table__writer_version__init(m->writer_version);
    m->timestamp->has_seconds = m->timestamp->has_nanos = true;
    m->timestamp->seconds = now.tv_sec;
    m->timestamp->nanos = (int32_t)now.tv_nsec;
    m->writer_version->library = lfs_strdup(b->arena, "lancefs");
    m->writer_version->version = lfs_strdup(b->arena, LFS_VERSION);
    m->has_version = true;
    m->version = b->version;
    m->tag = NULL;
    m->transaction_file = NULL;
    if (!(m->writer_feature_flags & LFS_FLAG_NO_TRANSACTION_FILES))
        m->transaction_file = lfs_sprintf(b->arena, "%llu-%s.txn", (unsigned long long)b->request->target_tip->number,
                                          b->transaction_uuid);
    return m->writer_version->library && m->writer_version->version ? 0 : lfs_fail_nomem(err);
}

errint_t lfs_build_manifest(const struct lfs_build *b, struct lfs_manifest *out, struct lfs_error *err) {
    const struct lfs_plan *plan = b->request->plan;
    /* Everything that is not set below is carried over from the tip, unknown fields included. */
    LanceManifest *m = lfs_memdup(b->arena, b->request->target_tip->manifest.message, sizeof *m);
    if (!m)
        return lfs_fail_nomem(err);
    m->fields = plan->fields;
    m->n_fields = plan->n_fields;
    m->config = plan->config;
    m->n_config = plan->n_config;
    m->schema_metadata = plan->schema_metadata;
    m->n_schema_metadata = plan->n_schema_metadata;
    *out = (struct lfs_manifest){.message = m};
    LFS_TRY(build_fragments(b, m, err));
    LFS_TRY(lfs_manifest_keep_bytes(out, &b->request->target_tip->manifest, b->arena, err));
    LFS_TRY(lfs_build_table_metadata(b, m, err));
    LFS_TRY(build_indices(b, &out->indices, err));
    m->base_paths = b->placer->bases;
    m->n_base_paths = b->placer->n_bases;
    LFS_TRY(lfs_build_stamp(b, m, err));
    lfs_manifest_set_features(m);
    return lfs_build_transaction(b, out, &out->transaction, err);
}
