/* SPDX-License-Identifier: Apache-2.0 */
/* The base without the compactions that one side does not have (left_out.c finds them). */
#include <string.h>

#include "merge/match.h"
#include "util/cleanup.h"
#include "verbs/left_out.h"

/* Where all that is planned is the plain merge of rows: nothing else compares with more than the base. What a revert takes
 * back is one version, and not all that its line did since before a compaction. */
bool lfs_left_out_can_be_cured(const struct lfs_left_out *s) {
    const struct lfs_merge_input *in = s->input;
    return s->by_compaction && (s->job->spec->is_merge || s->job->spec->is_pick) && !s->job->base_is_virtual &&
           !in->base_is_older && !in->ours_is_base && !in->policy.only;
}

/* All of the base's fragments that one side lacks: by a compaction that it does not have, or for reasons of its own. */
static errint_t collect(struct lfs_left_out *s, const LanceFragment *f, struct lfs_left_out_side *side) {
    const struct lfs_merge_reader *r = s->input->reader;
    const LanceFragment *there;
    struct lfs_left_out_origin o = {.side = side};
    LFS_TRY(lfs_left_out_find(s, side, f, &there));
    if (there)
        return 0;
    LFS_TRY(r->history(r->context, side->which, &o.history, s->err));
    o.absence = lfs_left_out_absence(o.history, side, lfs_match_name(f));
    if (o.absence == ABSENCE_OWN)
        return 0;
    s->impossible |= !o.history->complete;
    if (s->impossible)
        return 0;
    LFS_TRY(lfs_left_out_add_name(s, &o, lfs_match_name(f)));
    LFS_TRY(lfs_left_out_origin(s, &o));
    s->impossible |= o.unknown || (o.compacted && s->lacking && s->lacking != side);
    if (o.compacted)
        s->lacking = side;
    bool lost = false; /* then check_side refuses it, whatever the base */
    if (!o.compacted && o.was_there && s->job->spec->is_pick)
        LFS_TRY(lfs_left_out_changed(s, &s->sides[side == s->sides], f, &lost));
    s->impossible |= lost;
    return !o.compacted || lfs_list_add(&s->left_out, s->job->arena, (void *)f) ? 0 : lfs_fail_nomem(s->err);
}

/* The base's own past as the history of a merge's side. */
struct past {
    struct lfs_merge_reader reader;
    const struct lfs_merge_reader *real;
    struct lfs_history history;
};

static errint_t past_deletions(void *context, const struct lfs_version *version, const LanceFragment *fragment,
                               roaring_bitmap_t **out, struct lfs_error *err) {
    const struct past *p = context;
    return p->real->deletions(p->real->context, version, fragment, out, err);
}

static errint_t past_history(void *context, enum lfs_side side, const struct lfs_history **out, struct lfs_error *err) {
    struct past *p = context;
    (void)side;
    (void)err;
    *out = &p->history;
    return 0;
}

/* Rows can be followed through everything that happened but these. */
static bool is_followable(const struct lfs_history *history) {
    bool plain = history->complete;
    for (size_t i = 0; i < history->count; i++) {
        const LanceTransaction *t = history->steps[i].after->manifest.transaction;
        plain = plain && t && t->operation_case != LANCE__TABLE__TRANSACTION__OPERATION_OVERWRITE &&
                (t->operation_case != LANCE__TABLE__TRANSACTION__OPERATION_RESTORE || lfs_transaction_restates(t));
    }
    return plain;
}

static errint_t uncompact(struct lfs_left_out *s, struct past *past, struct lfs_virtual *v, bool *done) {
    struct lfs_job *job = s->job;
    const struct lfs_version *base = s->input->base;
    struct lfs_branch branch;
    struct lfs_moves moves;
    LFS_TRY(lfs_left_out_line_at(s, job->base.line, base->number, &branch));
    LFS_TRY(lfs_history_read(&job->context->lines, &branch, base->number, &s->before, &past->history, s->err));
    *done = is_followable(&past->history);
    if (!*done)
        return 0;
    struct lfs_merge_input line = {.base = base, .ours = base, .theirs = base, .reader = &past->reader};
    errint_t result = lfs_moves_read(&line, LFS_OURS, job->arena, &moves, s->err);
    if (result == 0)
        result = lfs_virtual_uncompacted(v, &moves, base, (const LanceFragment *const *)s->roots.items, s->roots.count,
                                         job->arena, done, s->err);
    lfs_moves_free(&moves);
    if (result < 0 || !*done)
        return result;
    const LanceManifest *m = v->version.manifest.message; /* those went, and no other one */
    *done = base->manifest.message->n_fragments + s->roots.count == m->n_fragments + s->left_out.count;
    for (size_t i = 0; i < s->left_out.count && *done; i++)
        *done = !lfs_match_find(m, lfs_match_name(s->left_out.items[i]));
    return 0;
}

errint_t lfs_left_out_lengthen(struct lfs_left_out *s, enum lfs_side which, const struct lfs_vector *since) {
    struct lfs_reader *r = &s->job->reader;
    struct lfs_left_out_side *side = &s->sides[which == LFS_THEIRS];
    struct lfs_vector both;
    lfs_vector_init(&both, s->job->arena);
    LFS_TRY(lfs_vector_meet(&r->since[which == LFS_THEIRS], since, &both, s->err));
    if (side->has_moves)
        lfs_moves_free(&side->moves);
    if (r->has_history[which])
        lfs_history_release(&r->history[which]);
    side->has_moves = r->has_history[which] = false;
    r->since[which == LFS_THEIRS] = both;
    return 0;
}

/* From now on the history of the side that has those compactions begins before them, and tells of each. */
static errint_t lengthen_history(struct lfs_left_out *s, const struct lfs_version *base, bool *done) {
    enum lfs_side which = s->lacking->which == LFS_OURS ? LFS_THEIRS : LFS_OURS;
    struct lfs_merge_input input = *s->input;
    struct lfs_moves moves;
    LFS_TRY(lfs_left_out_lengthen(s, which, &s->before));
    input.base = base;
    errint_t result = lfs_moves_read(&input, which, s->job->arena, &moves, s->err);
    *done = result == 0 && s->job->reader.history[which].complete;
    for (size_t i = 0; i < s->roots.count && *done; i++)
        *done = lfs_moves_has(&moves, lfs_match_name(s->roots.items[i]));
    lfs_moves_free(&moves);
    return result;
}

errint_t lfs_left_out_cure(struct lfs_left_out *s, const struct lfs_version **out) {
    const LanceManifest *base = s->input->base->manifest.message;
    struct past past = {{&past, past_deletions, past_history, NULL}, s->input->reader, {0}};
    struct lfs_virtual *v = LFS_NEW(s->job->arena, struct lfs_virtual);
    bool done = false;
    *out = NULL;
    s->whole = true;
    s->lowest = 0;
    for (size_t i = 0; i < base->n_fragments && !s->impossible; i++)
        for (size_t k = 0; k < 2; k++)
            LFS_TRY(collect(s, base->fragments[i], &s->sides[k]));
    if (s->impossible || !s->lacking || !s->roots.count)
        return 0;
    if (!v || !lfs_list_add(&s->job->held_virtual, s->job->arena, v))
        return lfs_fail_nomem(s->err);
    errint_t result = uncompact(s, &past, v, &done);
    lfs_history_release(&past.history);
    LFS_TRY(result);
    if (done)
        LFS_TRY(lengthen_history(s, &v->version, &done));
    if (!done)
        return 0;
    *out = &v->version;
    return lfs_job_add_virtual(s->job, v, s->err);
}
