/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compactions that a merge left out (merge-semantics section 5, s2). From then on the line that compacted is held, and yet
 * its newest states have fragments that the other side never had: their rows live on there in the fragments of before.
 * With such a state as the base, what happened since to the compacted fragments finds nothing to happen to, and would be
 * lost, or undone. It is found here, before anything is planned. A fragment that a side lacks for any other reason
 * (it deleted it, or the base is a state of another branch whose rows it never took) is no matter of this file.
 */
#include "verbs/left_out.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "merge/match.h"
#include "merge/report.h"
#include "util/bitmap.h"
#include "util/cleanup.h"

/* --- the sides --- */

static errint_t index_tip(struct lfs_left_out *s, struct lfs_left_out_side *side) {
    const LanceManifest *m = side->tip->manifest.message;
    if (!lfs_map_reserve(&side->map, m->n_fragments + 1))
        return lfs_fail_nomem(s->err);
    for (size_t i = 0; i < m->n_fragments; i++)
        for (size_t k = 0; k < m->fragments[i]->n_files; k++)
            if (!lfs_map_put(&side->map, m->fragments[i]->files[k]->path ? m->fragments[i]->files[k]->path : "",
                             (void *)(uintptr_t)(i + 1)))
                return lfs_fail_nomem(s->err);
    return 0;
}

errint_t lfs_left_out_find(struct lfs_left_out *s, struct lfs_left_out_side *side, const LanceFragment *base,
                           const LanceFragment **out) {
    const LanceManifest *m = side->tip->manifest.message;
    *out = NULL;
    if (side->cursor < m->n_fragments && strcmp(lfs_match_name(m->fragments[side->cursor]), lfs_match_name(base)) == 0) {
        *out = m->fragments[side->cursor++];
        return 0;
    }
    if (!side->map.count)
        LFS_TRY(index_tip(s, side));
    for (size_t i = 0; i < base->n_files && !*out; i++) {
        size_t at = (size_t)(uintptr_t)lfs_map_get(&side->map, base->files[i]->path ? base->files[i]->path : "");
        if (at) {
            *out = m->fragments[at - 1];
            side->cursor = at;
        }
    }
    return 0;
}

/* Rows of a fragment that was compacted away and nothing else are where they were. */
static errint_t only_moved(struct lfs_left_out *s, struct lfs_left_out_side *side, const LanceFragment *base, bool *out) {
    const struct lfs_merge_reader *r = s->input->reader;
    AUTO_BITMAP *then = NULL;
    AUTO_BITMAP *now = NULL;
    *out = false;
    if (!side->has_moves)
        LFS_TRY(lfs_moves_read(s->input, side->which, s->job->arena, &side->moves, s->err));
    side->has_moves = true;
    if (!lfs_moves_has(&side->moves, lfs_match_name(base)) || !lfs_moves_kept_files(&side->moves, lfs_match_name(base), base))
        return 0;
    LFS_TRY(r->deletions(r->context, s->input->base, base, &then, s->err));
    errint_t result = lfs_moves_effective(&side->moves, lfs_match_name(base), base->physical_rows, &now, s->err);
    if (result == -ECANCELED) /* it cannot be followed */
        return 0;
    LFS_TRY(result);
    *out = roaring_bitmap_equals(then, now);
    return 0;
}

errint_t lfs_left_out_changed(struct lfs_left_out *s, struct lfs_left_out_side *side, const LanceFragment *base, bool *out) {
    const LanceFragment *now;
    bool same;
    LFS_TRY(lfs_left_out_find(s, side, base, &now));
    if (now) {
        *out = !lfs_match_same_files(base, now) || !lfs_match_same_deletions(base, now);
        return 0;
    }
    LFS_TRY(only_moved(s, side, base, &same));
    *out = !same;
    return 0;
}

/* --- did it ever have the fragment? --- */

static bool holds(const struct lfs_version *version, const char *path) {
    return version && lfs_match_find(version->manifest.message, path);
}

/* A merge gives up compactions of the target where it must, and a revert takes them back. */
static bool is_ours(const struct lfs_step *step) {
    return lfs_transaction_property(step->after->manifest.transaction, LFS_PROPERTY_OPERATION) != NULL;
}

static const Lance__Table__Rewrite *rewrite_of(const struct lfs_version *version) {
    const LanceTransaction *t = version->manifest.transaction;
    return t && t->operation_case == LANCE__TABLE__TRANSACTION__OPERATION_REWRITE ? t->rewrite : NULL;
}

enum lfs_left_out_absence lfs_left_out_absence(const struct lfs_history *history, const struct lfs_left_out_side *side,
                                               const char *path) {
    for (size_t i = history->count; i-- > 0;) {
        const struct lfs_step *step = &history->steps[i];
        if (!step->brought && lfs_match_compacted(step->after, path))
            return ABSENCE_OWN;
        if (!step->brought && holds(step->before, path))
            return is_ours(step) && !holds(step->after, path) ? ABSENCE_GIVEN_UP : ABSENCE_OWN;
    }
    return side->base_is_own ? ABSENCE_OWN : ABSENCE_NEVER_HELD;
}

/* Does the side have that fragment, or had it when its history began, or may it have had it? */
static bool had(const struct lfs_history *history, const struct lfs_left_out_side *side, const char *path,
                enum lfs_left_out_absence absence) {
    if (lfs_match_find(side->tip->manifest.message, path))
        return true;
    if (absence == ABSENCE_GIVEN_UP) /* then what took its place stands there */
        return false;
    bool found = !history->complete;
    for (size_t i = 0; i < history->count && !found; i++)
        found = !history->steps[i].brought && holds(history->steps[i].before, path);
    return found;
}

/* --- where the base has it from --- */

errint_t lfs_left_out_add_name(struct lfs_left_out *s, struct lfs_left_out_origin *o, const char *path) {
    char *copy = lfs_strdup(s->job->arena, path); /* the version that it is of is released */
    if (!copy || !lfs_list_add(&o->names, s->job->arena, copy))
        return lfs_fail_nomem(s->err);
    o->n_left++;
    return 0;
}

static bool makes(const Lance__Table__RewriteGroup *group, const char *path) {
    for (size_t i = 0; i < group->n_new_fragments; i++)
        if (strcmp(lfs_match_name(group->new_fragments[i]), path) == 0)
            return true;
    return false;
}

/* An old fragment that the side has, as it stood in the version before. */
static errint_t add_root(struct lfs_left_out *s, const struct lfs_version *older, const char *path) {
    const LanceFragment *root = lfs_match_find(older->manifest.message, path);
    for (size_t i = 0; i < s->roots.count; i++)
        if (strcmp(lfs_match_name(s->roots.items[i]), path) == 0)
            return 0;
    s->impossible |= !root;
    return !root || lfs_list_add(&s->roots, s->job->arena, (void *)root) ? 0 : lfs_fail_nomem(s->err);
}

/* A fragment that a compaction made was the old ones before it. */
static errint_t take_group(struct lfs_left_out *s, struct lfs_left_out_origin *o, const struct lfs_version *older,
                           const Lance__Table__RewriteGroup *group) {
    for (size_t i = 0; i < group->n_old_fragments; i++) {
        const char *path = lfs_match_name(group->old_fragments[i]);
        bool is_there = had(o->history, o->side, path, o->absence);
        o->compacted |= is_there;
        LFS_TRY(is_there && s->whole ? add_root(s, older, path) : lfs_left_out_add_name(s, o, path));
    }
    return 0;
}

static errint_t take_rewrite(struct lfs_left_out *s, struct lfs_left_out_origin *o, const struct lfs_version *older,
                             const struct lfs_version *version) {
    const Lance__Table__Rewrite *rewrite = rewrite_of(version);
    for (size_t g = 0; rewrite && g < rewrite->n_groups; g++) {
        bool made = false;
        for (size_t i = 0; i < o->names.count; i++) {
            if (!o->names.items[i] || !makes(rewrite->groups[g], o->names.items[i]))
                continue;
            o->names.items[i] = NULL;
            o->n_left--;
            made = true;
        }
        if (made)
            LFS_TRY(take_group(s, o, older, rewrite->groups[g]));
    }
    return 0;
}

/* The line that a version was read from. */
static const char *line_of(const struct lfs_lines *lines, const struct lfs_version *version) {
    static const char kept[] = "_lancefs/lines/";
    for (size_t i = 0; i < lines->n_branches; i++)
        if (strcmp(lines->branches[i].dir, version->dir) == 0)
            return lines->branches[i].uuid;
    return strncmp(version->dir, kept, sizeof kept - 1) == 0 ? version->dir + sizeof kept - 1 : "";
}

/* Does the target hold the commit that made the fragment? */
static bool holds_maker(const struct lfs_left_out *s, const struct lfs_history *steps, const char *path) {
    for (size_t i = 0; i < steps->count; i++) {
        const struct lfs_step *step = &steps->steps[i];
        if (!step->is_merge && holds(step->after, path) && !holds(step->before, path) &&
            lfs_vector_get(&s->job->target_vector, line_of(&s->job->context->lines, step->after)) >= step->after->number)
            return true;
    }
    return false;
}

/* What is new in a version of a line was made there by a compaction, or by one that a merge brought, or is new rows. */
static errint_t look_at(struct lfs_left_out *s, struct lfs_left_out_origin *o, const struct lfs_branch *branch,
                        const struct lfs_version *older, uint64_t number) {
    LFS_CLEANUP(lfs_history_release) struct lfs_history steps = {0};
    struct lfs_vector since;
    bool any = false;
    for (size_t i = 0; i < o->names.count && !any; i++)
        any = o->names.items[i] && !holds(older, o->names.items[i]);
    if (!any)
        return 0;
    lfs_vector_init(&since, s->job->arena);
    LFS_TRY(lfs_state_vector(branch, older, &since, s->err));
    LFS_TRY(lfs_history_read(&s->job->context->lines, branch, number, &since, &steps, s->err));
    for (size_t i = steps.count; i-- > 0 && (s->whole || !o->compacted);)
        LFS_TRY(take_rewrite(s, o, older, steps.steps[i].after));
    if (!s->lowest || number < s->lowest) {
        s->lowest = number;
        s->before = since;
    }
    for (size_t i = 0; i < o->names.count; i++)
        if (o->names.items[i] && !holds(older, o->names.items[i])) {
            o->unknown |= !steps.complete;
            o->was_there |= holds_maker(s, &steps, o->names.items[i]);
            o->names.items[i] = NULL;
            o->n_left--;
        }
    return 0;
}

errint_t lfs_left_out_line_at(struct lfs_left_out *s, const char *from, uint64_t number, struct lfs_branch *out) {
    const char *line = from;
    LFS_TRY(lfs_lines_any_branch(&s->job->context->lines, line, out, s->err));
    for (size_t i = out->n_forks; i > 0; i--)
        if (number <= out->forks[i - 1].version)
            line = i > 1 ? out->forks[i - 2].uuid : "main";
    return line == from ? 0 : lfs_lines_any_branch(&s->job->context->lines, line, out, s->err);
}

errint_t lfs_left_out_origin(struct lfs_left_out *s, struct lfs_left_out_origin *o) {
    for (uint64_t v = s->job->base.version->number; v > 1 && o->n_left && (s->whole || !o->compacted) && !o->unknown;
         v--) {
        struct lfs_branch branch;
        struct lfs_version *older;
        errint_t result = lfs_left_out_line_at(s, s->job->base.line, v, &branch);
        if (result == 0)
            result = lfs_lines_version(&s->job->context->lines, branch.uuid, v - 1, &older, s->err);
        o->unknown = result == -ENODATA;
        if (o->unknown)
            return 0;
        LFS_TRY(result);
        size_t roots = s->roots.count;
        result = look_at(s, o, &branch, older, v);
        if (s->roots.count > roots && result == 0)
            result = lfs_job_hold(s->job, older, s->err);
        else
            lfs_version_release(older);
        LFS_TRY(result);
    }
    return 0;
}

/* --- one fragment --- */

static errint_t refuse(struct lfs_left_out *s, const LanceFragment *f, const struct lfs_left_out_side *lacking,
                       const struct lfs_left_out_side *other, const char *why) {
    const char *base = lfs_job_base_label(s->job);
    /* Taken as the target, the side that lacks it has its base cured. */
    const char *how = s->job->spec->is_merge ? "name a version from before that compaction with base="
                                             : "merge the branch instead";
    return lfs_report_refusal(&s->job->plan, s->err,
                              "fragment %" PRIu64
                              " of %s%s %s does not have, and %s has changed it since: not merged; %s",
                              f->id, base ? base : "the base", why, lacking->name, other->name, how);
}

/* Where the side's history begins, on its own line or on one that it comes from; 0: nowhere. */
static uint64_t begin_of(const struct lfs_branch *branch, const struct lfs_vector *since) {
    for (size_t depth = branch->n_forks + 1; depth-- > 0;) {
        uint64_t n = lfs_vector_get(since, depth ? branch->forks[depth - 1].uuid : "main");
        bool forked = depth < branch->n_forks;
        if (n)
            return forked && branch->forks[depth].version < n ? branch->forks[depth].version : n;
    }
    return 0;
}

/* The version of the side's line, before its history, in which the fragment went; 0 when it never had it. */
static errint_t find_going(struct lfs_left_out *s, const struct lfs_left_out_side *side, const char *path, uint64_t *out,
                           struct lfs_vector *before) {
    const struct lfs_state *state = side->which == LFS_OURS ? &s->job->target : &s->job->source;
    *out = 0;
    for (uint64_t v = begin_of(&state->branch, &s->job->reader.since[side->which == LFS_THEIRS]); v > 1 && !*out; v--) {
        struct lfs_branch branch;
        struct lfs_version *older;
        LFS_TRY(lfs_left_out_line_at(s, state->branch.uuid, v, &branch));
        LFS_TRY(lfs_lines_version(&s->job->context->lines, branch.uuid, v - 1, &older, s->err));
        errint_t result = 0;
        if (holds(older, path)) {
            *out = v;
            result = lfs_state_vector(&branch, older, before, s->err);
        }
        lfs_version_release(older);
        LFS_TRY(result);
    }
    return 0;
}

/*
 * The base holds a fragment that the side had, and compacted before its history began: the other side has left that
 * compaction out, and the side has taken in everything of the other one since, beside what it has itself. The history must
 * tell of the compaction, or the fragment's rows look deleted there, and live on where the compaction put them.
 */
static errint_t look_back(struct lfs_left_out *s, const LanceFragment *f, struct lfs_left_out_side *lacking,
                          struct lfs_left_out_side *other) {
    const struct lfs_merge_reader *r = s->input->reader;
    const struct lfs_history *history;
    struct lfs_vector before;
    uint64_t number;
    lfs_vector_init(&before, s->job->arena);
    errint_t result = find_going(s, lacking, lfs_match_name(f), &number, &before);
    bool told = result == 0;
    if ((result < 0 && result != -ENODATA) || (told && !number))
        return result;
    if (told) {
        LFS_TRY(lfs_left_out_lengthen(s, lacking->which, &before));
        LFS_TRY(r->history(r->context, lacking->which, &history, s->err));
        told = history->complete && !history->backward;
    }
    return told ? 0
                : refuse(s, f, lacking, other,
                         " may hold rows that a compaction moved, in versions that are gone, and which");
}

static errint_t check_side(struct lfs_left_out *s, const LanceFragment *f, struct lfs_left_out_side *lacking,
                           struct lfs_left_out_side *other) {
    const struct lfs_merge_reader *r = s->input->reader;
    const LanceFragment *there;
    bool changed;
    LFS_TRY(lfs_left_out_find(s, lacking, f, &there));
    if (there)
        return 0;
    LFS_TRY(lfs_left_out_changed(s, other, f, &changed));
    if (!changed)
        return 0;
    struct lfs_left_out_origin o = {.side = lacking};
    LFS_TRY(r->history(r->context, lacking->which, &o.history, s->err));
    o.absence = lfs_left_out_absence(o.history, lacking, lfs_match_name(f));
    if (o.absence == ABSENCE_OWN)
        return 0;
    if (s->job->base_is_virtual)
        return o.absence == ABSENCE_GIVEN_UP
                   ? 0
                   : refuse(s, f, lacking, other, " holds rows that a compaction moved, which");
    LFS_TRY(lfs_left_out_add_name(s, &o, lfs_match_name(f)));
    LFS_TRY(lfs_left_out_origin(s, &o));
    s->by_compaction = o.compacted;
    if (o.compacted)
        return refuse(s, f, lacking, other, " holds rows that a compaction moved, which");
    if (o.was_there && s->job->spec->is_pick && lacking->which == LFS_OURS)
        return refuse(s, f, lacking, other, " holds rows that the target has had in another place, or gave up, and which");
    if (o.unknown)
        return refuse(s, f, lacking, other, " was made by a commit that was cleaned away, a compaction perhaps, which");
    return look_back(s, f, lacking, other);
}

/* A fragment that a picked merge brought to its branch, by a commit that the target holds and whose rows stand in other
 * fragments there by now: they would come twice. */
static errint_t check_brought(struct lfs_left_out *s) {
    const struct lfs_merge_reader *r = s->input->reader;
    const LanceManifest *theirs = s->input->theirs->manifest.message;
    const struct lfs_history *history;
    for (size_t i = 0; i < theirs->n_fragments && !s->job->plan.refusal; i++) {
        const LanceFragment *f = theirs->fragments[i], *there;
        if (holds(s->input->base, lfs_match_name(f)))
            continue;
        LFS_TRY(lfs_left_out_find(s, &s->sides[0], f, &there));
        if (there)
            continue;
        LFS_TRY(r->history(r->context, LFS_THEIRS, &history, s->err));
        if (holds_maker(s, history, lfs_match_name(f)))
            LFS_TRY(lfs_report_refusal(&s->job->plan, s->err,
                                       "fragment %" PRIu64 " of %s holds rows that the target, %s, has had in another place, or gave "
                                       "up: not picked; merge the branch instead",
                                       f->id, s->sides[1].name, s->sides[0].name));
    }
    return 0;
}

static errint_t check_all(struct lfs_left_out *s) {
    const LanceManifest *base = s->input->base->manifest.message;
    if (s->job->spec->is_pick)
        LFS_TRY(check_brought(s));
    for (size_t i = 0; i < base->n_fragments && !s->job->plan.refusal; i++)
        for (size_t k = 0; k < 2; k++)
            LFS_TRY(check_side(s, base->fragments[i], &s->sides[k], &s->sides[1 - k]));
    return 0;
}

/* --- the whole --- */

static errint_t check_or_cure(struct lfs_left_out *s, const struct lfs_version **base) {
    const struct lfs_version *other = NULL;
    LFS_TRY(check_all(s));
    if (!s->job->plan.refusal || !lfs_left_out_can_be_cured(s))
        return 0;
    LFS_TRY(lfs_left_out_cure(s, &other));
    if (!other)
        return 0;
    s->job->plan.refusal = NULL;
    *base = other;
    return 0;
}

errint_t lfs_job_pass_left_out(struct lfs_job *job, struct lfs_merge_input *input, struct lfs_error *err) {
    struct lfs_left_out s = {
        .job = job,
        .input = input,
        .sides = {{.which = LFS_OURS, .tip = input->ours, .name = input->ours_name, .base_is_own = input->base_is_ours},
                  {.which = LFS_THEIRS,
                   .tip = input->theirs,
                   .name = input->theirs_name,
                   .base_is_own = input->base_is_theirs}},
        .err = err,
    };
    const struct lfs_version *base = input->base;
    job->plan = (struct lfs_plan){.arena = job->arena};
    for (size_t i = 0; i < 2; i++)
        lfs_map_init(&s.sides[i].map, job->arena);
    errint_t result = check_or_cure(&s, &base);
    for (size_t i = 0; i < 2; i++)
        if (s.sides[i].has_moves)
            lfs_moves_free(&s.sides[i].moves);
    input->base = base;
    job->plan.outcome = job->plan.refusal ? LFS_OUTCOME_REFUSED : LFS_OUTCOME_MERGED;
    return result;
}
