/* SPDX-License-Identifier: Apache-2.0 */
/* The tip once more, its files in the branch's own storage: no row, no fragment id and no row id changes. */
#include <string.h>

#include "commit/build.h"
#include "commit/expect.h"
#include "util/cleanup.h"

/* What lies where no link and no copy can be had from (an object store) keeps its base. */
static errint_t settle(errint_t result, bool has_base, uint32_t base, protobuf_c_boolean *out_has, uint32_t *out) {
    if (result != -EOPNOTSUPP)
        return result;
    *out_has = has_base;
    *out = base;
    return 0;
}

static errint_t rehome_file(const struct lfs_build *b, LanceDataFile **file, struct lfs_error *err) {
    LanceDataFile *own;
    if (!(*file)->has_base_id)
        return 0;
    own = lfs_memdup(b->arena, *file, sizeof *own);
    if (!own)
        return lfs_fail_nomem(err);
    LFS_TRY(settle(lfs_place_data_file(b->placer, own, err), true, (*file)->base_id, &own->has_base_id, &own->base_id));
    *file = own;
    return 0;
}

static errint_t rehome_deletions(const struct lfs_build *b, LanceFragment *f, struct lfs_error *err) {
    LanceDeletionFile *own;
    if (!f->deletion_file || !f->deletion_file->has_base_id)
        return 0;
    own = lfs_memdup(b->arena, f->deletion_file, sizeof *own);
    if (!own)
        return lfs_fail_nomem(err);
    LFS_TRY(settle(lfs_place_deletion_file(b->placer, f->id, own, err), true, f->deletion_file->base_id,
                   &own->has_base_id, &own->base_id));
    f->deletion_file = own;
    return 0;
}

static errint_t rehome_fragments(const struct lfs_build *b, LanceManifest *m, struct lfs_error *err) {
    LanceFragment **list = LFS_NEW_ARRAY(b->arena, LanceFragment *, m->n_fragments + 1);
    if (!list)
        return lfs_fail_nomem(err);
    for (size_t i = 0; i < m->n_fragments; i++) {
        LanceFragment *f = list[i] = lfs_memdup(b->arena, m->fragments[i], sizeof *f);
        LanceDataFile **files = f ? LFS_NEW_ARRAY(b->arena, LanceDataFile *, f->n_files + 1) : NULL;
        if (!files)
            return lfs_fail_nomem(err);
        if (f->n_files)
            memcpy(files, f->files, f->n_files * sizeof *files);
        f->files = files;
        for (size_t k = 0; k < f->n_files; k++)
            LFS_TRY(rehome_file(b, &files[k], err));
        LFS_TRY(rehome_deletions(b, f, err));
    }
    m->fragments = list;
    return 0;
}

static errint_t rehome_indices(const struct lfs_build *b, LanceIndexSection **out, struct lfs_error *err) {
    LanceIndexSection *ours = b->request->target_tip->manifest.indices;
    *out = ours;
    if (!ours)
        return 0;
    LanceIndexSection *section = lfs_memdup(b->arena, ours, sizeof *section);
    LanceIndex **list = LFS_NEW_ARRAY(b->arena, LanceIndex *, ours->n_indices + 1);
    if (!section || !list)
        return lfs_fail_nomem(err);
    section->indices = list;
    for (size_t i = 0; i < ours->n_indices; i++) {
        list[i] = lfs_memdup(b->arena, ours->indices[i], sizeof *list[i]);
        if (!list[i])
            return lfs_fail_nomem(err);
        if (list[i]->has_base_id)
            LFS_TRY(settle(lfs_place_index(b->placer, list[i], err), true, ours->indices[i]->base_id,
                           &list[i]->has_base_id, &list[i]->base_id));
    }
    *out = section;
    return 0;
}

static bool is_used(const LanceManifest *m, const LanceIndexSection *indices, uint32_t base) {
    for (size_t i = 0; i < m->n_fragments; i++) {
        const LanceFragment *f = m->fragments[i];
        for (size_t k = 0; k < f->n_files; k++)
            if (f->files[k]->has_base_id && f->files[k]->base_id == base)
                return true;
        if (f->deletion_file && f->deletion_file->has_base_id && f->deletion_file->base_id == base)
            return true;
    }
    for (size_t i = 0; indices && i < indices->n_indices; i++)
        if (indices->indices[i]->has_base_id && indices->indices[i]->base_id == base)
            return true;
    return false;
}

errint_t lfs_build_rehomed(const struct lfs_build *b, struct lfs_manifest *out, struct lfs_error *err) {
    LanceManifest *m = lfs_memdup(b->arena, b->request->target_tip->manifest.message, sizeof *m);
    if (!m)
        return lfs_fail_nomem(err);
    *out = (struct lfs_manifest){.message = m};
    lfs_expect_rehome(b);
    LFS_TRY(rehome_fragments(b, m, err));
    LFS_TRY(rehome_indices(b, &out->indices, err));
    LanceBasePath **bases = LFS_NEW_ARRAY(b->arena, LanceBasePath *, m->n_base_paths + 1);
    size_t n = 0;
    if (!bases)
        return lfs_fail_nomem(err);
    for (size_t i = 0; i < m->n_base_paths; i++)
        if (is_used(m, out->indices, m->base_paths[i]->id))
            bases[n++] = m->base_paths[i];
    m->base_paths = bases;
    m->n_base_paths = n;
    if (n == 0) { /* set again from the content where something is left */
        m->reader_feature_flags &= ~(uint64_t)LFS_FLAG_BASE_PATHS;
        m->writer_feature_flags &= ~(uint64_t)LFS_FLAG_BASE_PATHS;
    }
    LFS_TRY(lfs_build_stamp(b, m, err));
    lfs_manifest_set_features(m);
    return lfs_build_transaction(b, out, &out->transaction, err);
}
