/* SPDX-License-Identifier: Apache-2.0 */
#include "commit/expect.h"

#include "merge/indexes.h"

static void begin_stage(const struct lfs_build *b) {
    lfs_progress_stage(b->request->progress, b->placer->mode == LFS_PLACE_COPY ? "copying files" : "linking files", 0);
}

static void data_file(const struct lfs_build *b, const LanceDataFile *file) {
    lfs_progress_expect(b->request->progress, 1, file->file_size_bytes);
}

static void index_files(const struct lfs_build *b, const LanceIndex *index) {
    if (b->placer->mode == LFS_PLACE_COPY)
        lfs_placer_expect_index(b->placer, index);
}

static void fragment(const struct lfs_build *b, const struct lfs_map *own, const struct lfs_plan_fragment *f) {
    size_t n = f->files ? f->n_files : f->is_theirs ? f->record->n_files : 0;
    for (size_t i = 0; i < n; i++) {
        const LanceDataFile *file = f->files ? f->files[i].record : f->record->files[i];
        if ((f->files ? f->files[i].is_theirs : f->is_theirs) && !(file->path && lfs_map_get(own, file->path)))
            data_file(b, file);
    }
    if (f->deletion == LFS_DELETION_THEIRS)
        lfs_progress_expect(b->request->progress, 1, 0);
}

void lfs_expect_merge(const struct lfs_build *b, const struct lfs_map *own) {
    const struct lfs_plan *plan = b->request->plan;
    if (!b->request->progress)
        return;
    begin_stage(b);
    for (size_t i = 0; i < plan->n_fragments; i++)
        fragment(b, own, &plan->fragments[i]);
    for (size_t i = 0; i < plan->n_indices; i++)
        if (!lfs_index_find(b->request->target_tip->manifest.indices, plan->indices[i].record))
            index_files(b, plan->indices[i].record);
}

void lfs_expect_rehome(const struct lfs_build *b) {
    const struct lfs_version *tip = b->request->target_tip;
    const LanceManifest *m = tip->manifest.message;
    if (!b->request->progress)
        return;
    begin_stage(b);
    for (size_t i = 0; i < m->n_fragments; i++) {
        const LanceFragment *f = m->fragments[i];
        for (size_t k = 0; k < f->n_files; k++)
            if (f->files[k]->has_base_id)
                data_file(b, f->files[k]);
        if (f->deletion_file && f->deletion_file->has_base_id)
            lfs_progress_expect(b->request->progress, 1, 0);
    }
    for (size_t i = 0; tip->manifest.indices && i < tip->manifest.indices->n_indices; i++)
        if (tip->manifest.indices->indices[i]->has_base_id)
            index_files(b, tip->manifest.indices->indices[i]);
}

uint64_t lfs_expect_begin(const struct lfs_placer *p) { return p->progress ? atomic_load(&p->progress->bytes) : 0; }

/* What was linked, or was there already, is as good as copied; what was copied without having been counted is counted now. */
void lfs_expect_end(struct lfs_placer *p, uint64_t begin, uint64_t bytes) {
    if (!p->progress)
        return;
    uint64_t copied = atomic_load(&p->progress->bytes) - begin;
    if (copied < bytes)
        lfs_progress_bytes(p->progress, bytes - copied);
    else
        lfs_progress_expect(p->progress, 0, copied - bytes);
    lfs_progress_step(p->progress);
}

void lfs_expect_more(struct lfs_placer *p) { lfs_progress_expect(p->progress, 1, 0); }
