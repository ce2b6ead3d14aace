/* SPDX-License-Identifier: Apache-2.0 */
/* A side without some of its updates: how a strategy's loser is made to give way where its replacement rows cannot be
 * told one by one (merge-semantics section 4, point 4). */
#include <string.h>

#include "merge/index_truth.h"
#include "merge/match.h"
#include "merge/virtual.h"
#include "merge/virtual_impl.h"
#include "util/bitmap.h"
#include "util/cleanup.h"

struct take_back {
    struct lfs_virtual *out;
    const struct lfs_merge_input *input;
    const struct lfs_version *tip;
    struct lfs_arena *arena;
    bool possible;
    struct lfs_error *err;
};

static LanceManifest *manifest(struct take_back *t) { return t->out->version.manifest.message; }

/* A fragment that the update made goes, if nothing has happened to it since. */
static void remove_made(struct take_back *t, const LanceFragment *made) {
    LanceManifest *m = manifest(t);
    for (size_t i = 0; i < m->n_fragments; i++) {
        if (strcmp(lfs_match_name(m->fragments[i]), lfs_match_name(made)))
            continue;
        if (m->fragments[i]->deletion_file || !lfs_match_same_files(m->fragments[i], made))
            break;
        memmove(m->fragments + i, m->fragments + i + 1, (m->n_fragments - i - 1) * sizeof *m->fragments);
        m->n_fragments--;
        return;
    }
    t->possible = false;
}

/* A record tells where its files lie by the storage of its line and by the base paths of its version. */
static bool means_the_same_in_tip(const struct take_back *t, const struct lfs_version *v, const LanceFragment *f) {
    const LanceManifest *then = v->manifest.message, *now = t->tip->manifest.message;
    const LanceDeletionFile *d = f->deletion_file;
    bool same = strcmp(v->dir, t->tip->dir) == 0 && (!d || !d->has_base_id || lfs_manifest_same_base(then, now, d->base_id));
    for (size_t i = 0; i < f->n_files && same; i++)
        same = !f->files[i]->has_base_id || lfs_manifest_same_base(then, now, f->files[i]->base_id);
    return same;
}

/* A fragment that the update emptied comes back, with the vector that it had before. Not that of another line, which a merge
 * brought: its id, its columns and its files are that line's. */
static errint_t bring_back(struct take_back *t, const struct lfs_step *step, const LanceFragment *before) {
    LanceManifest *m = manifest(t);
    if (step->brought || !means_the_same_in_tip(t, step->before, before)) {
        t->possible = false;
        return 0;
    }
    LanceFragment *f = lfs_memdup(t->arena, before, sizeof *f);
    if (!f)
        return lfs_fail_nomem(t->err);
    m->fragments[m->n_fragments++] = f;
    t->out->vectors[t->out->n_vectors++] =
        (struct lfs_virtual_vector){.fragment = f, .version = step->before, .record = before};
    return 0;
}

/* Rows that the update took from one fragment live again; those that it had brought back (a revert) are gone again. */
static errint_t revive(struct take_back *t, const struct lfs_step *step, const LanceFragment *before,
                       const LanceFragment *after) {
    const struct lfs_merge_reader *r = t->input->reader;
    LanceFragment *now = (LanceFragment *)lfs_match_find(manifest(t), lfs_match_name(before));
    if (!after)
        return now ? 0 : bring_back(t, step, before);
    if (!now) { /* removed by something later */
        t->possible = false;
        return 0;
    }
    AUTO_BITMAP *then = NULL;
    AUTO_BITMAP *taken = NULL;
    AUTO_BITMAP *deleted = NULL;
    AUTO_BITMAP *returned = NULL;
    LFS_TRY(r->deletions(r->context, step->before, before, &then, t->err));
    LFS_TRY(r->deletions(r->context, step->after, after, &taken, t->err));
    LFS_TRY(lfs_virtual_deletions(t->out, now, r, &deleted, t->err));
    returned = roaring_bitmap_andnot(then, taken);
    if (!returned)
        return lfs_fail_nomem(t->err);
    roaring_bitmap_andnot_inplace(taken, then);
    roaring_bitmap_andnot_inplace(deleted, taken);
    roaring_bitmap_or_inplace(deleted, returned);
    return lfs_virtual_set_deleted(t->out, now, LFS_STEAL_PTR(deleted), t->arena, t->err);
}

static errint_t take_back_step(struct take_back *t, const struct lfs_step *step) {
    const LanceManifest *before = step->before->manifest.message, *after = step->after->manifest.message;
    for (size_t i = 0; i < after->n_fragments; i++)
        if (!lfs_match_find(before, lfs_match_name(after->fragments[i])))
            remove_made(t, after->fragments[i]);
    for (size_t i = 0; i < before->n_fragments && t->possible; i++) {
        const LanceFragment *twin = lfs_match_find(after, lfs_match_name(before->fragments[i]));
        if (!twin || !lfs_match_same_deletions(before->fragments[i], twin))
            LFS_TRY(revive(t, step, before->fragments[i], twin));
    }
    return 0;
}

static bool is_listed(const struct lfs_list *transactions, const struct lfs_step *step) {
    const LanceTransaction *txn = step->after->manifest.transaction;
    for (size_t i = 0; txn && txn->uuid && i < transactions->count; i++)
        if (strcmp(transactions->items[i], txn->uuid) == 0)
            return true;
    return false;
}

/* Rows that live again are in no index that was built meanwhile. */
static bool is_as_in_tip(struct take_back *t, const LanceFragment *f) {
    const struct lfs_virtual_vector *v = lfs_virtual_vector_of(t->out, f);
    return !v->deleted && v->version == t->tip;
}

static errint_t cut_indices(struct take_back *t) {
    const LanceIndexSection *list = t->tip->manifest.indices;
    LanceIndexSection *section = list ? lfs_memdup(t->arena, list, sizeof *section) : NULL;
    if (!list)
        return 0;
    if (section)
        section->indices = LFS_NEW_ARRAY(t->arena, LanceIndex *, list->n_indices + 1);
    if (!section || !section->indices)
        return lfs_fail_nomem(t->err);
    t->out->version.manifest.indices = section;
    section->n_indices = 0;
    for (size_t i = 0; i < list->n_indices; i++) {
        AUTO_BITMAP *covered = NULL;
        bool cut = false;
        LanceIndex *index = list->indices[i];
        LFS_TRY(lfs_index_coverage(index, &covered, t->err));
        for (size_t k = 0; covered && k < manifest(t)->n_fragments; k++)
            if (!is_as_in_tip(t, manifest(t)->fragments[k]))
                cut |= roaring_bitmap_remove_checked(covered, (uint32_t)manifest(t)->fragments[k]->id);
        if (cut)
            LFS_TRY(lfs_index_with_coverage(index, covered, t->arena, &index, t->err));
        if (covered || !index->n_fields) /* one on a column that does not tell what it covers is given up */
            section->indices[section->n_indices++] = index;
    }
    return 0;
}

errint_t lfs_virtual_without(struct lfs_virtual *out, const struct lfs_merge_input *input, enum lfs_side side,
                             const struct lfs_list *transactions, struct lfs_arena *arena, bool *done,
                             struct lfs_error *err) {
    const struct lfs_history *history;
    struct take_back t = {out, input, side == LFS_OURS ? input->ours : input->theirs, arena, true, err};
    size_t more = 0, found = 0;
    *out = (struct lfs_virtual){0};
    *done = false;
    LFS_TRY(input->reader->history(input->reader->context, side, &history, err));
    for (size_t i = 0; i < history->count; i++)
        if (is_listed(transactions, &history->steps[i]) && history->steps[i].before)
            more += history->steps[i].before->manifest.message->n_fragments;
    LFS_TRY(lfs_virtual_copy(out, t.tip, more, arena, err));
    for (size_t i = history->count; i-- > 0 && t.possible;) /* the newest first */
        if (is_listed(transactions, &history->steps[i]) && history->steps[i].before && !history->steps[i].is_merge) {
            found++;
            LFS_TRY(take_back_step(&t, &history->steps[i]));
        }
    *done = t.possible && found == transactions->count;
    return *done ? cut_indices(&t) : 0;
}
