/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/found.h"

#include <inttypes.h>
#include <string.h>

#include "format/rowids.h"
#include "merge/match.h"
#include "merge/report.h"
#include "util/bitmap.h"
#include "util/cleanup.h"
#include "util/limits.h"

enum {
    ROWS_SHOWN_MAX = 10000, /* of one side of one conflict, where it is not known which one it is */
    FRAGMENTS_KNOWN_MAX = 64,
};

/* --- choices --- */

static char *step_of(const struct lfs_job *job, struct lfs_arena *arena) {
    return lfs_sprintf(arena, "%s@%" PRIu64, job->source.branch.uuid, job->source.version->number);
}

errint_t lfs_found_choices(struct lfs_job *job, struct lfs_choices **out, struct lfs_error *err) {
    const struct lfs_chosen_list *all = job->context->chosen;
    char *step = step_of(job, job->arena);
    struct lfs_choices *choices = NULL;
    *out = NULL;
    for (size_t i = 0; all && step && i < all->count; i++) {
        if (strcmp(all->items[i].step, step))
            continue;
        if (!choices && (choices = LFS_NEW(job->arena, struct lfs_choices)))
            lfs_map_init(&choices->by_key, job->arena);
        struct lfs_choice *copy = lfs_memdup(job->arena, &all->items[i].choice, sizeof *copy);
        if (!choices || !copy || !lfs_map_put(&choices->by_key, copy->key, copy))
            return lfs_fail_nomem(err);
    }
    *out = choices;
    return step ? 0 : lfs_fail_nomem(err);
}

/* --- which rows a conflict is about --- */

struct finder {
    struct lfs_job *job;
    struct lfs_arena *arena; /* of what is found */
    const struct lfs_conflict *c;
    struct known_ids {
        const LanceFragment *fragment;
        uint64_t *ids;
    } known[FRAGMENTS_KNOWN_MAX]; /* conflicts lie close together */
    size_t n_known;
    struct lfs_error *err;
};

/* The stable ids of a fragment's rows; NULL where too many fragments are asked for. */
static errint_t ids_of(struct finder *f, const LanceFragment *fragment, const uint64_t **out) {
    size_t i = 0;
    while (i < f->n_known && f->known[i].fragment != fragment)
        i++;
    *out = i < f->n_known ? f->known[i].ids : NULL;
    if (i < f->n_known || i == FRAGMENTS_KNOWN_MAX)
        return 0;
    LFS_TRY(lfs_row_ids_of(fragment, f->job->arena, "row ids of a conflict", &f->known[i].ids, f->err));
    f->known[i].fragment = fragment;
    f->n_known++;
    *out = f->known[i].ids;
    return 0;
}

static errint_t in_version(struct finder *f, const struct lfs_version *v, struct lfs_found_rows *out) {
    *out = (struct lfs_found_rows){.dir = lfs_strdup(f->arena, v->dir), .version = v->number, .ino = v->ino};
    out->known = !v->planned;
    return out->dir ? 0 : lfs_fail_nomem(f->err);
}

static errint_t add_row(struct finder *f, struct lfs_found_rows *out, struct lfs_found_row row) {
    if ((out->n_rows & (out->n_rows - 1)) == 0) { /* it is full at each power of two */
        struct lfs_found_row *grown = LFS_NEW_ARRAY(f->arena, struct lfs_found_row, out->n_rows ? out->n_rows * 2 : 1);
        if (!grown)
            return lfs_fail_nomem(f->err);
        if (out->n_rows)
            memcpy(grown, out->rows, out->n_rows * sizeof *grown);
        out->rows = grown;
    }
    out->rows[out->n_rows++] = row;
    return 0;
}

/* The row where the base had it. */
static errint_t same_place(struct finder *f, const struct lfs_version *v, struct lfs_found_rows *out) {
    const LanceFragment *at = lfs_match_find(v->manifest.message, f->c->path);
    LFS_TRY(in_version(f, v, out));
    if (at)
        return add_row(f, out, (struct lfs_found_row){at->id, f->c->row, false});
    out->known = false; /* a pick stands on a base that lacks it */
    return 0;
}

static const struct lfs_step *step_of_commit(const struct lfs_history *history, const char *uuid) {
    for (size_t i = history->count; uuid && i-- > 0;) {
        const LanceTransaction *t = history->steps[i].after->manifest.transaction;
        if (t && t->uuid && strcmp(t->uuid, uuid) == 0 && history->steps[i].before && !history->steps[i].is_merge)
            return &history->steps[i];
    }
    return NULL;
}

/* The stable id of the row before the commit, and whether there is one. */
static errint_t id_before(struct finder *f, const struct lfs_step *step, uint64_t *id, bool *has) {
    const uint64_t *ids;
    const LanceManifest *m = step->before->manifest.message;
    const LanceFragment *at = lfs_match_find(m, f->c->path);
    *has = at && lfs_manifest_has_stable_row_ids(m) && f->c->row < at->physical_rows;
    if (!*has)
        return 0;
    LFS_TRY(ids_of(f, at, &ids));
    *has = ids != NULL;
    *id = ids ? ids[f->c->row] : 0;
    return 0;
}

/* The rows of a fragment that the commit made: the one of that id, else all of them. */
static errint_t add_made(struct finder *f, const LanceFragment *made, uint64_t id, bool has_id,
                         struct lfs_found_rows *out) {
    const uint64_t *ids = NULL;
    if (has_id)
        LFS_TRY(ids_of(f, made, &ids));
    if (!ids)
        return add_row(f, out, (struct lfs_found_row){made->id, 0, true});
    for (uint64_t i = 0; i < made->physical_rows && i <= UINT32_MAX; i++)
        if (ids[i] == id)
            return add_row(f, out, (struct lfs_found_row){made->id, (uint32_t)i, false});
    return 0;
}

/* Do all fragments that the commit made stand in `tip` still? Then it is looked at there. */
static bool all_there(const struct lfs_step *step, const struct lfs_version *tip) {
    const LanceManifest *before = step->before->manifest.message, *after = step->after->manifest.message;
    for (size_t i = 0; i < after->n_fragments; i++)
        if (!lfs_match_find(before, lfs_match_name(after->fragments[i])) &&
            !lfs_match_find(tip->manifest.message, lfs_match_name(after->fragments[i])))
            return false;
    return true;
}

/* Where an update put the row. */
static errint_t replacement(struct finder *f, enum lfs_side side, const char *update, struct lfs_found_rows *out) {
    const struct lfs_version *tip = side == LFS_OURS ? f->job->target.version : f->job->source.version;
    const struct lfs_merge_reader *r = &f->job->reader.reader;
    const struct lfs_history *history;
    uint64_t id = 0;
    bool has_id;
    LFS_TRY(r->history(r->context, side, &history, f->err));
    const struct lfs_step *step = history->backward ? NULL : step_of_commit(history, update);
    if (!step) {
        *out = (struct lfs_found_rows){.known = false};
        return 0;
    }
    const struct lfs_version *shown = all_there(step, tip) ? tip : step->after;
    const LanceManifest *before = step->before->manifest.message, *after = step->after->manifest.message;
    LFS_TRY(id_before(f, step, &id, &has_id));
    LFS_TRY(in_version(f, shown, out));
    for (size_t i = 0; i < after->n_fragments; i++) {
        const char *name = lfs_match_name(after->fragments[i]);
        if (!lfs_match_find(before, name))
            LFS_TRY(add_made(f, lfs_match_find(shown->manifest.message, name), id, has_id, out));
    }
    return 0;
}

/* What a commit that is taken back had made of the rows: they live where they were. */
static errint_t taken_away(struct finder *f, const char *update, struct lfs_found_rows *out) {
    const struct lfs_merge_reader *r = &f->job->reader.reader;
    const struct lfs_history *history;
    LFS_TRY(r->history(r->context, LFS_THEIRS, &history, f->err));
    const struct lfs_step *step = update                ? step_of_commit(history, update)
                                  : history->count == 1 ? &history->steps[0]
                                                        : NULL;
    *out = (struct lfs_found_rows){.known = false};
    if (!step || !step->before || lfs_match_find(step->before->manifest.message, f->c->path))
        return 0;
    LFS_TRY(in_version(f, step->before, out));
    const LanceManifest *before = step->before->manifest.message;
    for (size_t i = 0; i < before->n_fragments && out->known; i++) {
        const LanceFragment *was = before->fragments[i],
                            *is = lfs_match_find(step->after->manifest.message, lfs_match_name(was));
        AUTO_BITMAP *then = NULL;
        AUTO_BITMAP *now = NULL;
        if (is && lfs_match_same_deletions(was, is))
            continue;
        LFS_TRY(r->deletions(r->context, step->before, was, &then, f->err));
        if (is)
            LFS_TRY(r->deletions(r->context, step->after, is, &now, f->err));
        else if (!(now = roaring_bitmap_from_range(0, was->physical_rows, 1)))
            return lfs_fail_nomem(f->err);
        roaring_bitmap_andnot_inplace(now, then);
        uint64_t n = roaring_bitmap_get_cardinality(now);
        out->known = n + out->n_rows <= ROWS_SHOWN_MAX;
        for (uint32_t k = 0, row; out->known && k < n && roaring_bitmap_select(now, k, &row); k++)
            LFS_TRY(add_row(f, out, (struct lfs_found_row){was->id, row, false}));
    }
    return 0;
}

static errint_t find_side(struct finder *f, enum lfs_side side, struct lfs_found_rows *out) {
    const struct lfs_version *tip = side == LFS_OURS ? f->job->target.version : f->job->source.version;
    const char *fate = side == LFS_OURS ? f->c->ours : f->c->theirs,
               *update = side == LFS_OURS ? f->c->our_update : f->c->their_update;
    if (strcmp(fate, "deleted") == 0)
        return in_version(f, tip, out);
    if (strcmp(fate, "updated"))
        return same_place(f, tip, out); /* it has a value in a new column */
    if (side == LFS_THEIRS && f->job->backward)
        return taken_away(f, update, out);
    return replacement(f, side, update, out);
}

static errint_t find_rows(struct finder *f, struct lfs_found_conflict *out) {
    out->of_rows = f->c->path != NULL;
    if (!out->of_rows)
        return 0;
    if (!f->job->base_is_virtual)
        LFS_TRY(same_place(f, f->job->base.version, &out->rows[LFS_BASE]));
    LFS_TRY(find_side(f, LFS_OURS, &out->rows[LFS_OURS]));
    return find_side(f, LFS_THEIRS, &out->rows[LFS_THEIRS]);
}

/* --- collecting --- */

void lfs_found_clear(struct lfs_found *found) { *found = (struct lfs_found){.arena = found->arena}; }

static bool copy(struct lfs_arena *arena, const char **text) {
    if (*text)
        *text = lfs_strdup(arena, *text);
    return *text != NULL;
}

static errint_t add(struct lfs_found *found, struct finder *f, const struct lfs_conflict *c, struct lfs_error *err) {
    struct lfs_found_conflict *item = LFS_NEW(found->arena, struct lfs_found_conflict);
    if (!item)
        return lfs_fail_nomem(err);
    *item = (struct lfs_found_conflict){.conflict = *c, .step = step_of(f->job, found->arena)};
    struct lfs_conflict *own = &item->conflict;
    own->path = own->our_update = own->their_update = NULL;
    bool whole = item->step && copy(found->arena, &own->kind) && copy(found->arena, &own->unit) &&
                 copy(found->arena, &own->base) && copy(found->arena, &own->ours) && copy(found->arena, &own->theirs) &&
                 copy(found->arena, &own->key);
    copy(found->arena, &own->no_ours);
    copy(found->arena, &own->no_theirs);
    copy(found->arena, &own->stuck);
    f->c = c;
    if (find_rows(f, item) < 0) /* they cannot be shown; the conflict is one all the same */
        memset(item->rows, 0, sizeof item->rows);
    return whole && lfs_list_add(&found->items, found->arena, item) ? 0 : lfs_fail_nomem(err);
}

/* Choices of one command are bounded: who has more conflicts than that decides for a class of them. */
static errint_t note_full(struct lfs_job *job, struct lfs_error *err) {
    return lfs_report_note(&job->plan, err,
                           "at most %u conflicts of one command can be chosen one by one: abort, and decide for the others "
                           "with strategy= or rows= columns= schema= config= indexes=",
                           LFS_CONFLICTS_KEPT_MAX);
}

errint_t lfs_found_add(struct lfs_found *found, struct lfs_job *job, struct lfs_error *err) {
    const struct lfs_plan *plan = &job->plan;
    struct finder f = {.job = job, .arena = found->arena};
    if (!plan->settled.count && !plan->n_conflicts)
        return 0;
    if (!found->line) {
        found->line = lfs_strdup(found->arena, job->target.branch.uuid);
        found->target = lfs_strdup(found->arena, job->target.branch.name);
    }
    if (!found->line || !found->target)
        return lfs_fail_nomem(err);
    for (size_t i = 0; i < plan->settled.count && found->items.count < LFS_CONFLICTS_KEPT_MAX; i++)
        LFS_TRY(add(found, &f, plan->settled.items[i], err));
    bool full = found->items.count + plan->n_conflicts > LFS_CONFLICTS_KEPT_MAX;
    for (size_t i = 0; i < plan->conflicts.count && found->items.count < LFS_CONFLICTS_KEPT_MAX; i++)
        LFS_TRY(add(found, &f, plan->conflicts.items[i], err));
    return full ? note_full(job, err) : 0;
}
