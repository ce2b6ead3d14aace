/* SPDX-License-Identifier: Apache-2.0 */
#include "commit/branch.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <uuid/uuid.h>

#include "commit/place.h"
#include "format/wire.h"
#include "store/file.h"
#include "util/cleanup.h"
#include "util/limits.h"

struct stage {
    const struct lfs_branch_request *request;
    struct lfs_arena *arena;
    struct lfs_placer placer;
    uint32_t parent_base;    /* the id of the base path that leads to the parent */
    const char *parent_path; /* ... and its text */
    char transaction_uuid[UUID_STR_LEN];
    struct lfs_flush flush; /* what was written */
};

/* Row ids in files of their own lie in the data set's directory and have no base id: a branch cannot reach them. */
static errint_t check_inheritable(const struct lfs_branch_request *r, struct lfs_error *err) {
    const LanceManifest *m = r->from->manifest.message;
    LFS_TRY(lfs_manifest_check_features(m, true, r->parent->name, err));
    if (strcmp(r->parent->name, "main") && r->parent->n_forks == 0)
        return lfs_fail(
            err, LFS_E_UNSUPPORTED,
            "branch %s has no identifier (it was made by an old Lance): a branch of it would not protect it",
            r->parent->name);
    if (r->parent->n_forks + 1 > LFS_BRANCH_DEPTH_MAX)
        return lfs_fail(err, LFS_E_TOO_BIG, "branch %s is %zu forks away from main", r->parent->name,
                        r->parent->n_forks);
    for (size_t i = 0; i < m->n_fragments; i++) {
        const LanceFragment *f = m->fragments[i];
        if (f->row_id_sequence_case == LANCE__TABLE__DATA_FRAGMENT__ROW_ID_SEQUENCE_EXTERNAL_ROW_IDS ||
            f->last_updated_at_version_sequence_case ==
                LANCE__TABLE__DATA_FRAGMENT__LAST_UPDATED_AT_VERSION_SEQUENCE_EXTERNAL_LAST_UPDATED_AT_VERSIONS ||
            f->created_at_version_sequence_case ==
                LANCE__TABLE__DATA_FRAGMENT__CREATED_AT_VERSION_SEQUENCE_EXTERNAL_CREATED_AT_VERSIONS)
            return lfs_fail(err, LFS_E_UNSUPPORTED,
                            "fragment %" PRIu64 " of %s has its row ids in a file of their own: it cannot be branched",
                            f->id, r->parent->name);
    }
    return 0;
}

/* --- the manifest --- */

static LanceFragment *inherit_fragment(const struct stage *s, const LanceFragment *from) {
    LanceFragment *f = lfs_memdup(s->arena, from, sizeof *f);
    LanceDataFile **files = LFS_NEW_ARRAY(s->arena, LanceDataFile *, from->n_files + 1);
    if (!f || !files)
        return NULL;
    for (size_t i = 0; i < from->n_files; i++) {
        files[i] = lfs_memdup(s->arena, from->files[i], sizeof *files[i]);
        if (!files[i])
            return NULL;
        if (!files[i]->has_base_id)
            files[i]->base_id = s->parent_base;
        files[i]->has_base_id = true;
    }
    f->files = files;
    if (f->deletion_file) {
        f->deletion_file = lfs_memdup(s->arena, f->deletion_file, sizeof *f->deletion_file);
        if (!f->deletion_file)
            return NULL;
        if (!f->deletion_file->has_base_id)
            f->deletion_file->base_id = s->parent_base;
        f->deletion_file->has_base_id = true;
    }
    return f;
}

static errint_t inherit_fragments(const struct stage *s, LanceManifest *m, struct lfs_error *err) {
    LanceFragment **list = LFS_NEW_ARRAY(s->arena, LanceFragment *, m->n_fragments + 1);
    for (size_t i = 0; list && i < m->n_fragments; i++)
        if (!(list[i] = inherit_fragment(s, m->fragments[i])))
            return lfs_fail_nomem(err);
    m->fragments = list;
    return list ? 0 : lfs_fail_nomem(err);
}

/* Indexes of the engine's own (lance-format section 6.2) may have no files: what they say stands in the manifest. */
static bool is_system_index(const LanceIndex *index) {
    return index->name && strncmp(index->name, "__lance_", 8) == 0 && index->n_files == 0;
}

static errint_t inherit_indices(struct stage *s, LanceIndexSection **out, struct lfs_error *err) {
    const LanceIndexSection *from = s->request->from->manifest.indices;
    *out = NULL;
    if (!from)
        return 0;
    LanceIndexSection *section = lfs_memdup(s->arena, from, sizeof *section);
    LanceIndex **list = LFS_NEW_ARRAY(s->arena, LanceIndex *, from->n_indices + 1);
    if (!section || !list)
        return lfs_fail_nomem(err);
    section->indices = list;
    for (size_t i = 0; i < from->n_indices; i++) {
        list[i] = lfs_memdup(s->arena, from->indices[i], sizeof *list[i]);
        if (!list[i])
            return lfs_fail_nomem(err);
        if (is_system_index(list[i]))
            list[i]->has_base_id = false;
        else
            LFS_TRY(lfs_place_index(&s->placer, list[i], err));
    }
    *out = section;
    return 0;
}

static errint_t build_transaction(const struct stage *s, LanceTransaction **out, struct lfs_error *err) {
    const struct lfs_branch_request *r = s->request;
    LanceTransaction *t = LFS_NEW(s->arena, LanceTransaction);
    Lance__Table__Clone *clone = LFS_NEW(s->arena, Lance__Table__Clone);
    if (!t || !clone)
        return lfs_fail_nomem(err);
    lance__table__transaction__init(t);
    lance__table__clone__init(clone);
    t->has_read_version = clone->has_is_shallow = clone->has_ref_version = true;
    t->read_version = clone->ref_version = r->from->number;
    t->uuid = lfs_strdup(s->arena, s->transaction_uuid);
    t->operation_case = LANCE__TABLE__TRANSACTION__OPERATION_CLONE;
    t->clone = clone;
    clone->is_shallow = true;
    clone->ref_name = strcmp(r->parent->name, "main") ? lfs_strdup(s->arena, r->parent->name) : NULL;
    clone->ref_path = lfs_strdup(s->arena, s->parent_path);
    clone->branch_name = lfs_strdup(s->arena, r->name);
    *out = t;
    return t->uuid && clone->ref_path && clone->branch_name ? 0 : lfs_fail_nomem(err);
}

static errint_t stamp(const struct stage *s, LanceManifest *m, struct lfs_error *err) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    m->timestamp = LFS_NEW(s->arena, Lance__Table__Timestamp);
    m->branch = lfs_strdup(s->arena, s->request->name);
    if (!m->timestamp || !m->branch)
        return lfs_fail_nomem(err);
    lance__table__timestamp__init(m->timestamp);
    m->timestamp->has_seconds = m->timestamp->has_nanos = true;
    m->timestamp->seconds = now.tv_sec;
    m->timestamp->nanos = (int32_t)now.tv_nsec;
    m->tag = NULL;
    m->transaction_file = NULL;
    if (m->writer_feature_flags & LFS_FLAG_NO_TRANSACTION_FILES)
        return 0;
    m->transaction_file = lfs_sprintf(s->arena, "%" PRIu64 "-%s.txn", s->request->from->number, s->transaction_uuid);
    return m->transaction_file ? 0 : lfs_fail_nomem(err);
}

static errint_t build(struct stage *s, struct lfs_manifest *out, struct lfs_error *err) {
    /* Everything that is not set below is the parent's, unknown fields and the writer's version included. */
    LanceManifest *m = lfs_memdup(s->arena, s->request->from->manifest.message, sizeof *m);
    if (!m)
        return lfs_fail_nomem(err);
    *out = (struct lfs_manifest){.message = m};
    LFS_TRY(inherit_fragments(s, m, err));
    LFS_TRY(inherit_indices(s, &out->indices, err));
    LFS_TRY(stamp(s, m, err));
    m->base_paths = s->placer.bases;
    m->n_base_paths = s->placer.n_bases;
    lfs_manifest_set_features(m);
    return build_transaction(s, &out->transaction, err);
}

/* --- the files --- */

/* Flushed at the end, with all else. */
static errint_t write_in(struct stage *s, const char *part, const char *name, const struct lfs_buf *bytes,
                         struct lfs_error *err) {
    int root = lfs_dataset_root_fd(s->request->dataset);
    char *directory = lfs_sprintf(s->arena, "%s/%s", s->request->directory, part);
    LFS_TRY(directory ? lfs_buf_check(bytes, err) : lfs_fail_nomem(err));
    LFS_TRY(lfs_make_dirs(root, directory, false, err));
    LFS_TRY(lfs_write_new(root, directory, name, bytes, false, err));
    if (!s->request->sync)
        return 0;
    LFS_TRY(lfs_flush_add_file(&s->flush, root, directory, name, err));
    return lfs_flush_add_directory(&s->flush, root, directory, err);
}

static errint_t write_files(struct stage *s, const struct lfs_manifest *m, struct lfs_error *err) {
    LFS_AUTO_BUF manifest = {0}, transaction = {0}, hint = {0};
    char name[LFS_MANIFEST_NAME_SIZE];
    lfs_wire_pack(&m->transaction->base, &transaction);
    LFS_TRY(lfs_buf_check(&transaction, err));
    if (m->message->transaction_file)
        LFS_TRY(write_in(s, "_transactions", m->message->transaction_file, &transaction, err));
    LFS_TRY(lfs_manifest_encode(m, &manifest, err));
    lfs_manifest_name(LFS_NAMING_V2, s->request->from->number, name); /* on a V1 table too, as stock does */
    LFS_TRY(write_in(s, "_versions", name, &manifest, err));
    lfs_buf_printf(&hint, "{\"version\":%" PRIu64 "}", s->request->from->number);
    return write_in(s, "_versions", "latest_version_hint.json", &hint, err);
}

char *lfs_branch_uuid(struct lfs_arena *arena) {
    uuid_t uuid;
    char *text = lfs_alloc(arena, 2 * sizeof(uuid_t) + 1);
    uuid_generate_random(uuid);
    for (size_t i = 0; text && i < sizeof(uuid_t); i++) {
        text[2 * i] = "0123456789abcdef"[uuid[i] >> 4];
        text[2 * i + 1] = "0123456789abcdef"[uuid[i] & 15];
    }
    return text;
}

struct lfs_fork *lfs_branch_forks(const struct lfs_branch *parent, uint64_t version, const char *uuid,
                                  struct lfs_arena *arena) {
    struct lfs_fork *forks = LFS_NEW_ARRAY(arena, struct lfs_fork, parent->n_forks + 1);
    if (forks && parent->n_forks)
        memcpy(forks, parent->forks, parent->n_forks * sizeof *forks);
    if (forks)
        forks[parent->n_forks] = (struct lfs_fork){version, uuid};
    return forks;
}

static errint_t fill_ref(const struct stage *s, struct lfs_branch_ref *ref, struct lfs_error *err) {
    const struct lfs_branch *parent = s->request->parent;
    const char *uuid = s->request->uuid ? s->request->uuid : lfs_branch_uuid(s->arena);
    struct lfs_fork *forks = lfs_branch_forks(parent, s->request->from->number, uuid, s->arena);
    if (!uuid || !forks)
        return lfs_fail_nomem(err);
    *ref = (struct lfs_branch_ref){
        .parent_branch = strcmp(parent->name, "main") ? parent->name : NULL,
        .forks = forks,
        .n_forks = parent->n_forks + 1,
        .parent_version = s->request->from->number,
        .create_at = (uint64_t)time(NULL),
        .manifest_size = (uint64_t)s->request->from->file_size,
    };
    return 0;
}

static errint_t init(struct stage *s, const struct lfs_branch *branch, const struct lfs_version *first,
                     struct lfs_error *err) {
    const struct lfs_branch_request *r = s->request;
    struct lfs_commit_request placing = {.dataset = r->dataset,
                                         .target = branch,
                                         .source = r->parent,
                                         .target_tip = first,
                                         .source_version = r->from,
                                         .mode = LFS_PLACE_LINK,
                                         .sync = r->sync,
                                         .cancel = r->cancel};
    bool of_main = !*r->parent->dir;
    uuid_t uuid;
    uuid_generate_random(uuid);
    uuid_unparse_lower(uuid, s->transaction_uuid);
    LFS_TRY(lfs_placer_init(&s->placer, &placing, s->arena, err));
    s->parent_path = of_main ? r->root_string : lfs_sprintf(s->arena, "%s/%s", r->root_string, r->parent->dir);
    if (!s->parent_path)
        return lfs_fail_nomem(err);
    return lfs_placer_base(&s->placer, s->parent_path, true, of_main ? NULL : r->parent->name, &s->parent_base, err);
}

static errint_t run(struct stage *s, struct lfs_branch_ref *ref, struct lfs_error *err) {
    const struct lfs_branch_request *r = s->request;
    struct lfs_branch branch = {.name = r->name, .dir = r->directory};
    struct lfs_version first = *r->from; /* the same state, in another directory */
    struct lfs_manifest manifest;
    first.dir = r->directory;
    LFS_TRY(check_inheritable(r, err));
    LFS_TRY(init(s, &branch, &first, err));
    LFS_TRY(fill_ref(s, ref, err));
    LFS_TRY(lfs_make_dirs(lfs_dataset_root_fd(r->dataset), r->directory, r->sync, err));
    LFS_TRY(build(s, &manifest, err));
    LFS_TRY(lfs_place_kept_base(&s->placer, err));
    LFS_TRY(write_files(s, &manifest, err));
    if (r->sync)
        LFS_TRY(lfs_flush_add_directory(&s->flush, lfs_dataset_root_fd(r->dataset), r->directory, err));
    return lfs_placer_flush(&s->placer, &s->flush, err);
}

errint_t lfs_branch_stage(const struct lfs_branch_request *r, struct lfs_arena *arena, struct lfs_branch_ref *ref,
                          struct lfs_error *err) {
    struct stage s = {.request = r, .arena = arena};
    errint_t result = run(&s, ref, err);
    lfs_flush_close(&s.flush);
    lfs_placer_close(&s.placer);
    return result;
}
