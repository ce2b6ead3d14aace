/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/rows.h"

#include <inttypes.h>
#include <string.h>

#include "merge/choices.h"
#include "merge/classes.h"
#include "merge/report.h"
#include "merge/rows_state.h"
#include "util/bitmap.h"
#include "util/cleanup.h"
#include "util/limits.h"

/* One decision. */
struct decision {
    struct lfs_rows *rows;
    struct lfs_fragment_state *state;
    struct lfs_plan *plan;
    struct lfs_error *err;
};

/* --- rows that both sides took away --- */

static const char *row_fate(const struct lfs_row_classes *c, uint32_t row) {
    return roaring_bitmap_contains(c->deleted, row) ? "deleted" : "updated";
}

/* Did one and the same commit update the row on both sides? Then its replacement is one and the same, too. */
static bool same_update(const struct lfs_row_classes *ours, const struct lfs_row_classes *theirs, uint32_t row) {
    const char *a = lfs_row_update_of(ours, row), *b = lfs_row_update_of(theirs, row);
    return a && b && strcmp(a, b) == 0;
}

/* Does the strategy's winner stand when both took the row away? The winner's replacement row is there already; the loser
 * must have none of its own. */
static bool winner_stands(enum lfs_strategy strategy, const char *our_fate, const char *their_fate) {
    return (strategy == LFS_STRATEGY_SOURCE && our_fate[0] == 'd') || (strategy == LFS_STRATEGY_DEST && their_fate[0] == 'd');
}

/* The winner's side, if any, and the commit that would have to be taken back for it to stand. */
static void note_loser(struct decision *d, enum lfs_strategy strategy, const struct lfs_conflict *c) {
    if (strategy == LFS_STRATEGY_FAIL)
        return;
    bool ours_loses = strategy == LFS_STRATEGY_SOURCE;
    const char *update = ours_loses ? c->our_update : c->their_update;
    struct lfs_list *losers = &d->plan->losers[ours_loses ? 0 : 1];
    for (size_t i = 0; update && i < losers->count; i++)
        if (strcmp(losers->items[i], update) == 0)
            return;
    if (update) /* when memory is short the conflict just stays */
        lfs_list_add(losers, d->plan->arena, (void *)update);
}

static uint64_t add_text(uint64_t hash, const char *text) { return text ? lfs_hash(text, strlen(text), hash) : ~hash; }

/* A commit that is taken back is taken back as a whole. */
static errint_t tell_no_ours(struct decision *d, struct lfs_conflict *c) {
    const struct lfs_merge_reader *r = d->rows->input->reader;
    const struct lfs_history *history;
    LFS_TRY(r->history(r->context, LFS_THEIRS, &history, d->err));
    c->no_ours = history->backward
                     ? "the version is taken back as a whole: to keep the row as it is here, do not take it back"
                     : "the commit that updated the row there is not at hand, so it cannot be taken back";
    return 0;
}

/* What people read of it, and what it is known by. */
static errint_t describe(struct decision *d, enum lfs_row_choice what, struct lfs_conflict *c) {
    struct lfs_arena *arena = d->plan->arena;
    c->unit = lfs_sprintf(arena, "row %" PRIu32 " of fragment %" PRIu64, c->row, d->state->id);
    c->key = lfs_choice_row_key(arena, what, c->path, c->row);
    c->print = add_text(add_text(add_text(1, c->kind), c->our_update), c->their_update);
    if (!c->our_update && strcmp(c->ours, "updated") == 0)
        c->no_theirs = "the commit that updated the row here is not at hand, so it cannot be taken back";
    if (!c->their_update && strcmp(c->theirs, "updated") == 0)
        LFS_TRY(tell_no_ours(d, c));
    return c->kind && c->unit && c->key ? 0 : lfs_fail_nomem(d->err);
}

/* Which side the row takes; what of it is told is made only where somebody asks. */
static errint_t choose_row(struct decision *d, enum lfs_row_choice what, struct lfs_conflict *c, enum lfs_strategy *takes) {
    const struct lfs_policy *policy = &d->rows->input->policy;
    *takes = policy->rows;
    if (!lfs_choice_of_row(policy->choices, what, c->path, c->row))
        return 0;
    LFS_TRY(describe(d, what, c));
    return lfs_choose(policy, policy->rows, d->plan, c, takes, d->err);
}

static errint_t report_row(struct decision *d, enum lfs_row_choice what, enum lfs_strategy takes, struct lfs_conflict *c) {
    note_loser(d, takes, c);
    if (!c->key && d->plan->n_conflicts < LFS_CONFLICTS_NAMED_MAX)
        LFS_TRY(describe(d, what, c));
    return lfs_report_conflict(d->plan, c, d->err);
}

static const char *kind_of(const char *our_fate, const char *their_fate) {
    return our_fate[0] == 'd' ? "delete-update" : their_fate[0] == 'd' ? "update-delete" : "update-update";
}

/* Two deletes agree, and one update on both sides; everything else does not. */
static errint_t report_rows(struct decision *d, const roaring_bitmap_t *both, const struct lfs_row_classes *ours,
                            const struct lfs_row_classes *theirs) {
    roaring_uint32_iterator_t *it = roaring_create_iterator(both);
    errint_t result = it ? 0 : lfs_fail_nomem(d->err);
    for (; result == 0 && it->has_value; roaring_advance_uint32_iterator(it)) {
        uint32_t row = it->current_value;
        const char *our_fate = row_fate(ours, row), *their_fate = row_fate(theirs, row);
        if ((our_fate[0] == 'd' && their_fate[0] == 'd') || same_update(ours, theirs, row))
            continue;
        struct lfs_conflict c = LFS_CONFLICT(kind_of(our_fate, their_fate), "", "live", our_fate, their_fate);
        enum lfs_strategy takes;
        c.path = d->state->path;
        c.row = row;
        c.our_update = our_fate[0] == 'd' ? NULL : lfs_row_update_of(ours, row);
        c.their_update = their_fate[0] == 'd' ? NULL : lfs_row_update_of(theirs, row);
        result = choose_row(d, LFS_CHOICE_ROW, &c, &takes);
        if (result == 0)
            result = winner_stands(takes, our_fate, their_fate) ? lfs_settled(d->plan, &c, d->err)
                                                                : report_row(d, LFS_CHOICE_ROW, takes, &c);
    }
    if (it)
        roaring_free_uint32_iterator(it);
    return result;
}

/* What cannot be decided row by row. */
static errint_t refuse_rewrites(struct decision *d, const roaring_bitmap_t *both, const struct lfs_row_classes *c,
                                enum lfs_side side) {
    const struct lfs_merge_input *in = d->rows->input;
    const char *name = side == LFS_OURS ? in->ours_name : in->theirs_name;
    if (c->replaced)
        return lfs_report_refusal(d->plan, d->err,
                                  "%s was overwritten or restored while the other side changed fragment %" PRIu64, name,
                                  d->state->id);
    if (c->unmade && roaring_bitmap_intersect(c->rewritten, both))
        return lfs_report_refusal(d->plan, d->err,
                                  side == LFS_OURS
                                      ? "a compaction of %s rewrote fragment %" PRIu64
                                        " before what is to be taken over changed rows of it: merge all, or take over less"
                                      : "a compaction of %s rewrote fragment %" PRIu64
                                        ", and cannot be taken back since rows of it were changed",
                                  in->theirs_name, d->state->id);
    if (roaring_bitmap_intersect(c->rewritten, both))
        return lfs_report_refusal(d->plan, d->err,
                                  "a compaction of %s rewrote rows of fragment %" PRIu64
                                  " that the other side changed or rewrote too",
                                  name, d->state->id);
    if (c->unknown)
        return lfs_report_refusal(d->plan, d->err,
                                  "versions of %s were cleaned away, so it cannot be told whether rows of fragment "
                                  "%" PRIu64 " were deleted, updated or compacted, and the other side changed them too",
                                  name, d->state->id);
    return 0;
}

static errint_t settle_overlap(struct decision *d, const roaring_bitmap_t *both) {
    const struct lfs_merge_input *in = d->rows->input;
    struct lfs_row_classes ours = {0}, theirs = {0};
    struct lfs_row_question question = {d->state->path, both, !d->state->ours.fragment, d->state->ours.moved};
    errint_t result = lfs_classify_rows(in, LFS_OURS, &question, &ours, d->err);
    question.absent = !d->state->theirs.fragment;
    question.moved = d->state->theirs.moved;
    if (result == 0)
        result = lfs_classify_rows(in, LFS_THEIRS, &question, &theirs, d->err);
    if (result == 0)
        result = refuse_rewrites(d, both, &ours, LFS_OURS);
    if (result == 0)
        result = refuse_rewrites(d, both, &theirs, LFS_THEIRS);
    if (result == 0 && !d->plan->refusal)
        result = report_rows(d, both, &ours, &theirs);
    lfs_row_classes_free(&ours);
    lfs_row_classes_free(&theirs);
    return result;
}

/* --- the vector of the result --- */

/* Rows that theirs brought back (a restore) while ours removed the fragment: nowhere to bring them back to. */
static errint_t refuse_returned(struct decision *d, const roaring_bitmap_t *their_back) {
    const struct lfs_fragment_state *s = d->state;
    bool lost = s->ours.change == LFS_GONE && !roaring_bitmap_is_empty(their_back);
    return !lost ? 0
                 : lfs_report_refusal(d->plan, d->err,
                                      "one side brought back rows of fragment %" PRIu64 " that the other side removed",
                                      s->id);
}

/* Deleted in the result: what either side deleted, but for rows that one side brought back while the other left them
 * deleted. NULL in *out (and 0) when the plan is blocked. */
static errint_t unite(struct decision *d, roaring_bitmap_t **out) {
    struct lfs_fragment_state *s = d->state;
    *out = NULL;
    LFS_TRY(lfs_rows_load_base(d->rows, s, d->err));
    LFS_TRY(lfs_rows_load(d->rows, s, LFS_OURS, d->err));
    LFS_TRY(lfs_rows_load(d->rows, s, LFS_THEIRS, d->err));
    AUTO_BITMAP *both = roaring_bitmap_and(s->ours.deleted, s->theirs.deleted);
    AUTO_BITMAP *our_back = roaring_bitmap_andnot(s->base, s->ours.deleted);
    AUTO_BITMAP *their_back = roaring_bitmap_andnot(s->base, s->theirs.deleted);
    AUTO_BITMAP *united = roaring_bitmap_or(s->ours.deleted, s->theirs.deleted);
    if (!both || !our_back || !their_back || !united)
        return lfs_fail_nomem(d->err);
    roaring_bitmap_andnot_inplace(both, s->base);
    roaring_bitmap_andnot_inplace(united, our_back);
    roaring_bitmap_andnot_inplace(united, their_back);
    if (!roaring_bitmap_is_empty(both))
        LFS_TRY(settle_overlap(d, both));
    LFS_TRY(refuse_returned(d, their_back));
    d->plan->rows_return |= !roaring_bitmap_is_empty(their_back);
    *out = d->plan->refusal ? NULL : LFS_STEAL_PTR(united);
    return 0;
}

/* --- rows that stand elsewhere since a compaction --- */

struct extra {
    struct lfs_rows *rows;
    size_t side; /* 0 ours, 1 theirs */
};

static errint_t add_extra(void *context, const char *path, const roaring_bitmap_t *more, struct lfs_error *err) {
    struct extra *e = context;
    struct lfs_map *map = &e->rows->extra[e->side];
    roaring_bitmap_t *there = lfs_map_get(map, path);
    if (there) {
        roaring_bitmap_or_inplace(there, more);
        return 0;
    }
    there = roaring_bitmap_copy(more);
    if (there && lfs_map_put(map, path, there))
        return 0;
    if (there)
        roaring_bitmap_free(there);
    return lfs_fail_nomem(err);
}

/* Ours compacted the fragment, and that stays: rows that theirs deleted are deleted where they stand now. */
static errint_t delete_in_our_compaction(struct decision *d, const roaring_bitmap_t *united) {
    struct extra e = {d->rows, 0};
    AUTO_BITMAP *more = roaring_bitmap_andnot(united, d->state->ours.deleted);
    if (!more)
        return lfs_fail_nomem(d->err);
    if (roaring_bitmap_is_empty(more))
        return 0;
    return lfs_moves_up(&d->rows->moves[0], d->state->path, more, add_extra, &e, d->err);
}

/* Theirs' compaction is left out: all that it holds of this fragment lives on in ours' fragment, or is deleted. */
static errint_t mask_their_compaction(struct decision *d) {
    struct extra e = {d->rows, 1};
    if (!lfs_moves_kept_files(&d->rows->moves[1], d->state->path, d->state->match->base))
        return lfs_report_refusal(d->plan, d->err,
                                  "%s gave fragment %" PRIu64 " other columns and compacted it, and the other side changed or "
                                  "compacted it too: not merged",
                                  d->rows->input->theirs_name, d->state->id);
    AUTO_BITMAP *all = roaring_bitmap_from_range(0, d->state->physical_rows, 1);
    return all ? lfs_moves_up(&d->rows->moves[1], d->state->path, all, add_extra, &e, d->err) : lfs_fail_nomem(d->err);
}

/* A compaction that cannot be followed is the `compacted` of merge-semantics: refused by name, not an error. */
static errint_t unless_unproved(struct decision *d, errint_t result) {
    if (result != -ECANCELED)
        return result;
    char why[sizeof d->err->message];
    memcpy(why, d->err->message, sizeof why);
    return lfs_report_refusal(d->plan, d->err, "%s", why);
}

/* Both sides changed the fragment. */
static errint_t decide_rows(struct decision *d, struct lfs_fragment_verdict *out) {
    struct lfs_fragment_state *s = d->state;
    AUTO_BITMAP *united = NULL;
    if (s->theirs.moved)
        LFS_TRY(mask_their_compaction(d));
    LFS_TRY(unite(d, &united));
    if (!united)
        return 0;
    out->fate = LFS_FATE_OURS;
    if (s->ours.moved)
        return delete_in_our_compaction(d, united);
    if (s->ours.change == LFS_GONE || roaring_bitmap_get_cardinality(united) >= s->physical_rows)
        out->fate = LFS_FATE_REMOVED;
    else if (!roaring_bitmap_equals(united, s->ours.deleted))
        *out = (struct lfs_fragment_verdict){LFS_FATE_UNITED, LFS_STEAL_PTR(united)};
    return 0;
}

static errint_t take_theirs(struct decision *d, struct lfs_fragment_verdict *out) {
    struct lfs_fragment_state *s = d->state;
    out->fate = s->theirs.change == LFS_GONE ? LFS_FATE_REMOVED : LFS_FATE_THEIRS;
    if (out->fate != LFS_FATE_THEIRS)
        return 0;
    LFS_TRY(lfs_rows_load_base(d->rows, s, d->err));
    LFS_TRY(lfs_rows_load(d->rows, s, LFS_THEIRS, d->err));
    d->plan->rows_return |= !roaring_bitmap_is_subset(s->base, s->theirs.deleted);
    if (s->theirs.fragment->deletion_file)
        out->deleted = LFS_STEAL_PTR(s->theirs.deleted);
    return 0;
}

/* Ours' compaction is left out: what it holds of this fragment is deleted there. */
static errint_t mask_our_compaction(struct decision *d) {
    struct extra e = {d->rows, 0};
    AUTO_BITMAP *all = roaring_bitmap_from_range(0, d->state->physical_rows, 1);
    if (!all)
        return lfs_fail_nomem(d->err);
    if (!d->rows->compaction_left_out)
        LFS_TRY(lfs_report_note(d->plan, d->err, "a compaction of %s is left out: its rows live on in the fragments of %s",
                                d->rows->input->ours_name, d->rows->input->theirs_name));
    d->rows->compaction_left_out = true;
    return lfs_moves_up(&d->rows->moves[0], d->state->path, all, add_extra, &e, d->err);
}

/* Column files are aligned with the rows of their fragment, and cannot follow rows that a compaction moved. (Theirs'
 * compactions are left out where ours has other files.) With stable row ids what is left of ours' compaction would hold,
 * as deleted rows, ids that live elsewhere. */
static errint_t bring_back(struct decision *d, struct lfs_fragment_verdict *out) {
    struct lfs_fragment_state *s = d->state;
    const struct lfs_merge_input *in = d->rows->input;
    struct extra e = {d->rows, 1};
    AUTO_BITMAP *united = NULL;
    if (lfs_manifest_has_stable_row_ids(in->ours->manifest.message) ||
        !lfs_moves_kept_files(&d->rows->moves[0], s->path, s->match->base))
        return lfs_report_refusal(d->plan, d->err,
                                  "%s compacted fragment %" PRIu64 ", and %s changed its column files: not merged",
                                  in->ours_name, s->id, in->theirs_name);
    LFS_TRY(unite(d, &united));
    if (!united)
        return 0;
    if (!roaring_bitmap_is_subset(s->theirs.deleted, united))
        return lfs_report_refusal(d->plan, d->err,
                                  "%s brought back rows of fragment %" PRIu64 ", for which the column files of %s hold no "
                                  "values: not merged",
                                  in->ours_name, s->id, in->theirs_name);
    LFS_TRY(mask_our_compaction(d));
    out->fate = roaring_bitmap_get_cardinality(united) >= s->physical_rows ? LFS_FATE_REMOVED : LFS_FATE_RETURNED;
    return out->fate == LFS_FATE_REMOVED ? 0
                                         : add_extra(&e, s->theirs.fragment->files[0]->path, united, d->err);
}

/* Rows that a pick brought, here or there, may lie in the compaction under no name that both sides know. */
static bool has_picks(const struct lfs_merge_input *in) {
    return in->base_not_held || in->base_is_older || lfs_version_has_picks(in->ours) || lfs_version_has_picks(in->theirs);
}

static errint_t give_way(struct decision *d, struct lfs_fragment_verdict *out) {
    const struct lfs_merge_input *in = d->rows->input;
    if (!has_picks(in))
        return unless_unproved(d, bring_back(d, out));
    return lfs_report_refusal(d->plan, d->err,
                              "%s compacted fragment %" PRIu64 ", and %s changed its column files: not merged where commits "
                              "were picked",
                              in->ours_name, d->state->id, in->theirs_name);
}

errint_t lfs_rows_decide(struct lfs_rows *rows, size_t i, struct lfs_fragment_verdict *out, struct lfs_error *err) {
    struct lfs_error own;
    struct decision d = {rows, &rows->states[i], rows->plan, err ? err : &own};
    const struct lfs_fragment_state *s = d.state;
    *out = (struct lfs_fragment_verdict){LFS_FATE_OURS, NULL};
    if (s->ours.moved && s->theirs.other_files)
        return give_way(&d, out);
    if (s->theirs.change == LFS_UNCHANGED)
        return 0;
    if (s->ours.change == LFS_UNCHANGED && s->match->base && !s->theirs.moved)
        return take_theirs(&d, out);
    return unless_unproved(&d, decide_rows(&d, out));
}

/* The rows that a side lost since the base, and how. */
struct gone_rows {
    roaring_bitmap_t *rows;
    struct lfs_row_classes classes;
    bool followed; /* false: a compaction took them to where nobody can follow */
};

static void free_gone(struct gone_rows *g) {
    lfs_cleanup_bitmap(&g->rows);
    lfs_row_classes_free(&g->classes);
}

static errint_t find_gone(struct lfs_rows *rows, size_t i, enum lfs_side side, struct gone_rows *out,
                          struct lfs_error *err) {
    struct lfs_fragment_state *s = &rows->states[i];
    struct lfs_fragment_side *mine = lfs_rows_side(s, side);
    LFS_TRY(lfs_rows_load_base(rows, s, err));
    errint_t loaded = lfs_rows_load(rows, s, side, err);
    if (loaded == -ECANCELED)
        return 0;
    LFS_TRY(loaded);
    out->followed = true;
    out->rows = roaring_bitmap_andnot(mine->deleted, s->base);
    struct lfs_row_question question = {s->path, out->rows, !mine->fragment, mine->moved};
    return out->rows ? lfs_classify_rows(rows->input, side, &question, &out->classes, err) : lfs_fail_nomem(err);
}

errint_t lfs_rows_departure(struct lfs_rows *rows, size_t i, enum lfs_side side, enum lfs_departure *out,
                            struct lfs_error *err) {
    *out = LFS_DELETED_ONLY;
    if (lfs_rows_side(&rows->states[i], side)->change == LFS_UNCHANGED)
        return 0;
    LFS_CLEANUP(free_gone) struct gone_rows gone = {0};
    const struct lfs_row_classes *c = &gone.classes;
    LFS_TRY(find_gone(rows, i, side, &gone, err));
    if (!gone.followed)
        *out = LFS_UNEXPLAINED;
    else if (c->unknown || c->replaced || !roaring_bitmap_is_subset(gone.rows, c->deleted))
        *out = c->unknown || c->by_merge || c->unmade ? LFS_UNEXPLAINED : LFS_MOVED_AWAY;
    return 0;
}

static errint_t report_bare(struct decision *d, const struct gone_rows *gone, enum lfs_side side, const char *column) {
    bool ours = side == LFS_OURS;
    enum lfs_strategy wins = ours ? LFS_STRATEGY_DEST : LFS_STRATEGY_SOURCE, takes;
    const char *value = lfs_sprintf(d->plan->arena, "a value in the new column %s", column);
    roaring_uint32_iterator_t *it = roaring_create_iterator(gone->rows);
    errint_t result = it ? 0 : lfs_fail_nomem(d->err);
    for (; result == 0 && it->has_value; roaring_advance_uint32_iterator(it)) {
        uint32_t row = it->current_value;
        struct lfs_conflict c = LFS_CONFLICT(ours ? "update-column" : "column-update", "", "live", ours ? "updated" : value,
                                 ours ? value : "updated");
        c.path = d->state->path;
        c.row = row;
        *(ours ? &c.our_update : &c.their_update) = lfs_row_update_of(&gone->classes, row);
        result = choose_row(d, LFS_CHOICE_BARE, &c, &takes);
        if (result == 0)
            result = takes == wins ? lfs_settled(d->plan, &c, d->err) : report_row(d, LFS_CHOICE_BARE, takes, &c);
    }
    if (it)
        roaring_free_uint32_iterator(it);
    return result;
}

errint_t lfs_rows_report_bare(struct lfs_rows *rows, size_t i, enum lfs_side side, const char *column,
                              struct lfs_error *err) {
    struct lfs_error own;
    struct decision d = {rows, &rows->states[i], rows->plan, err ? err : &own};
    enum lfs_side other = side == LFS_OURS ? LFS_THEIRS : LFS_OURS;
    const struct lfs_policy *policy = &rows->input->policy;
    if (!policy->choices && policy->rows == (side == LFS_OURS ? LFS_STRATEGY_DEST : LFS_STRATEGY_SOURCE))
        return 0;
    LFS_CLEANUP(free_gone) struct gone_rows gone = {0};
    LFS_TRY(find_gone(rows, i, side, &gone, d.err));
    if (!gone.followed)
        return 0; /* refused already */
    LFS_TRY(lfs_rows_load(rows, d.state, other, d.err));
    roaring_bitmap_andnot_inplace(gone.rows, gone.classes.deleted);
    roaring_bitmap_andnot_inplace(gone.rows, lfs_rows_side(d.state, other)->deleted); /* a conflict of another kind */
    return report_bare(&d, &gone, side, column);
}

const roaring_bitmap_t *lfs_rows_extra(const struct lfs_rows *rows, enum lfs_side side, const char *path) {
    return lfs_map_get(&rows->extra[side == LFS_THEIRS], path);
}
