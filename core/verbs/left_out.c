/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compactions that a merge left out (merge-semantics section 5, s2). From then on the line that compacted is held, and yet
 * its newest states have fragments that the other side never had: their rows live on there in the fragments of before.
 * With such a state as the base, what happened since to the compacted fragments finds nothing to happen to, and would be
 * lost, or undone. It is found here, before anything is planned. A fragment that a side lacks for any other reason
 * (it deleted it, or the base is a state of another branch whose rows it never took) is no matter of this file.
 */
#include <inttypes.h>
#include <string.h>

#include "merge/match.h"
#include "merge/moves.h"
#include "merge/report.h"
#include "util/bitmap.h"
#include "util/cleanup.h"
#include "util/map.h"
#include "verbs/job.h"

/* --- the sides --- */

struct side {
    enum lfs_side which;
    const struct lfs_version *tip;
    const char *name;
    bool base_is_own;   /* the base lies on its line */
    struct lfs_map map; /* path -> index + 1 of the fragment of the tip; filled when first needed */
    size_t cursor;      /* tips mostly hold the base's fragments in the base's order */
    struct lfs_moves moves;
    bool has_moves;
};

struct search {
    struct lfs_job *job;
    const struct lfs_merge_input *input;
    struct side sides[2]; /* ours, theirs */
    struct lfs_error *err;

    /* The cure: the base without the compactions that ours does not have. */
    bool whole;               /* look at all of them, and for all that went into them */
    struct lfs_list left_out; /* of const LanceFragment: fragments of the base that they made */
    struct lfs_list roots;    /* of const LanceFragment: old fragments, of versions that the job holds */
    uint64_t lowest;          /* the base's line did not have the first of these compactions in the version before */
    struct lfs_vector before; /* and what that one held */
    bool impossible;
};

static errint_t index_tip(struct search *s, struct side *side) {
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

/* The fragment of the base as it stands in the side's tip; NULL when it does not. */
static errint_t find(struct search *s, struct side *side, const LanceFragment *base, const LanceFragment **out) {
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
static errint_t only_moved(struct search *s, struct side *side, const LanceFragment *base, bool *out) {
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

static errint_t has_changed(struct search *s, struct side *side, const LanceFragment *base, bool *out) {
    const LanceFragment *now;
    bool same;
    LFS_TRY(find(s, side, base, &now));
    if (now) {
        *out = !lfs_match_same_files(base, now) || !lfs_match_same_deletions(base, now);
        return 0;
    }
    LFS_TRY(only_moved(s, side, base, &same));
    *out = !same;
    return 0;
}

/* --- did it ever have the fragment? --- */

enum absence { ABSENCE_OWN, ABSENCE_GIVEN_UP, ABSENCE_NEVER_HELD };

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

/* How the side came to lack it: by a commit of its own, given up perhaps for what it was made of, or it never had it. */
static enum absence absence_of(const struct lfs_history *history, const struct side *side, const char *path) {
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
static bool had(const struct lfs_history *history, const struct side *side, const char *path, enum absence absence) {
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

struct origin {
    const struct lfs_history *history; /* of the side that lacks it */
    const struct side *side;
    enum absence absence;
    struct lfs_list names; /* of char: files to be found made; NULL where one has been */
    size_t n_left;
    bool compacted; /* of rows that the side has in another place */
    bool unknown;   /* versions are gone */
    bool was_there; /* the target holds the commit that made it: its rows stand there in another fragment, or stood */
};

static errint_t add_name(struct search *s, struct origin *o, const char *path) {
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
static errint_t add_root(struct search *s, const struct lfs_version *older, const char *path) {
    const LanceFragment *root = lfs_match_find(older->manifest.message, path);
    for (size_t i = 0; i < s->roots.count; i++)
        if (strcmp(lfs_match_name(s->roots.items[i]), path) == 0)
            return 0;
    s->impossible |= !root;
    return !root || lfs_list_add(&s->roots, s->job->arena, (void *)root) ? 0 : lfs_fail_nomem(s->err);
}

/* A fragment that a compaction made was the old ones before it. */
static errint_t take_group(struct search *s, struct origin *o, const struct lfs_version *older,
                           const Lance__Table__RewriteGroup *group) {
    for (size_t i = 0; i < group->n_old_fragments; i++) {
        const char *path = lfs_match_name(group->old_fragments[i]);
        bool is_there = had(o->history, o->side, path, o->absence);
        o->compacted |= is_there;
        LFS_TRY(is_there && s->whole ? add_root(s, older, path) : add_name(s, o, path));
    }
    return 0;
}

static errint_t take_rewrite(struct search *s, struct origin *o, const struct lfs_version *older,
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
static bool holds_maker(const struct search *s, const struct lfs_history *steps, const char *path) {
    for (size_t i = 0; i < steps->count; i++) {
        const struct lfs_step *step = &steps->steps[i];
        if (!step->is_merge && holds(step->after, path) && !holds(step->before, path) &&
            lfs_vector_get(&s->job->target_vector, line_of(&s->job->context->lines, step->after)) >= step->after->number)
            return true;
    }
    return false;
}

/* What is new in a version of a line was made there by a compaction, or by one that a merge brought, or is new rows. */
static errint_t look_at(struct search *s, struct origin *o, const struct lfs_branch *branch,
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

/* The line on which a version was made: a branch's first one is a state of its parent. */
static errint_t line_at(struct search *s, uint64_t number, struct lfs_branch *out) {
    const char *line = s->job->base.line;
    LFS_TRY(lfs_lines_any_branch(&s->job->context->lines, line, out, s->err));
    for (size_t i = out->n_forks; i > 0; i--)
        if (number <= out->forks[i - 1].version)
            line = i > 1 ? out->forks[i - 2].uuid : "main";
    return line == s->job->base.line ? 0 : lfs_lines_any_branch(&s->job->context->lines, line, out, s->err);
}

/* Down the base's line until everything is found made. */
static errint_t find_origin(struct search *s, struct origin *o) {
    for (uint64_t v = s->job->base.version->number; v > 1 && o->n_left && (s->whole || !o->compacted) && !o->unknown;
         v--) {
        struct lfs_branch branch;
        struct lfs_version *older;
        errint_t result = line_at(s, v, &branch);
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

static errint_t refuse(struct search *s, const LanceFragment *f, const struct side *lacking, const struct side *other,
                       const char *why) {
    const char *base = lfs_job_base_label(s->job);
    /* Taken as the target, the side that lacks it has its base cured. */
    const char *how = !s->job->spec->is_merge        ? "merge the branch instead"
                      : lacking->which == LFS_THEIRS ? "merge them the other way first"
                                                     : "name a version from before that compaction with base=";
    return lfs_report_refusal(&s->job->plan, s->err,
                              "fragment %" PRIu64
                              " of %s%s %s does not have, and %s has changed it since: not merged; %s",
                              f->id, base ? base : "the base", why, lacking->name, other->name, how);
}

static errint_t check_side(struct search *s, const LanceFragment *f, struct side *lacking, struct side *other) {
    const struct lfs_merge_reader *r = s->input->reader;
    const LanceFragment *there;
    bool changed;
    LFS_TRY(find(s, lacking, f, &there));
    if (there)
        return 0;
    LFS_TRY(has_changed(s, other, f, &changed));
    if (!changed)
        return 0;
    struct origin o = {.side = lacking};
    LFS_TRY(r->history(r->context, lacking->which, &o.history, s->err));
    o.absence = absence_of(o.history, lacking, lfs_match_name(f));
    if (o.absence == ABSENCE_OWN)
        return 0;
    if (s->job->base_is_virtual)
        return o.absence == ABSENCE_GIVEN_UP
                   ? 0
                   : refuse(s, f, lacking, other, " holds rows that a compaction moved, which");
    LFS_TRY(add_name(s, &o, lfs_match_name(f)));
    LFS_TRY(find_origin(s, &o));
    if (o.compacted)
        return refuse(s, f, lacking, other, " holds rows that a compaction moved, which");
    if (o.was_there && s->job->spec->is_pick && lacking->which == LFS_OURS)
        return refuse(s, f, lacking, other, " holds rows that the target has had in another place, or gave up, and which");
    return !o.unknown ? 0
                      : refuse(s, f, lacking, other,
                               " was made by a commit that was cleaned away, a compaction perhaps, which");
}

/* A fragment that a picked merge brought to its branch, by a commit that the target holds and whose rows stand in other
 * fragments there by now: they would come twice. */
static errint_t check_brought(struct search *s) {
    const struct lfs_merge_reader *r = s->input->reader;
    const LanceManifest *theirs = s->input->theirs->manifest.message;
    const struct lfs_history *history;
    for (size_t i = 0; i < theirs->n_fragments && !s->job->plan.refusal; i++) {
        const LanceFragment *f = theirs->fragments[i], *there;
        if (holds(s->input->base, lfs_match_name(f)))
            continue;
        LFS_TRY(find(s, &s->sides[0], f, &there));
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

static errint_t check_all(struct search *s) {
    const LanceManifest *base = s->input->base->manifest.message;
    if (s->job->spec->is_pick)
        LFS_TRY(check_brought(s));
    for (size_t i = 0; i < base->n_fragments && !s->job->plan.refusal; i++)
        for (size_t k = 0; k < 2; k++)
            LFS_TRY(check_side(s, base->fragments[i], &s->sides[k], &s->sides[1 - k]));
    return 0;
}

/* --- the base without them --- */

/* Where all that is planned is the plain merge of rows: nothing else compares with more than the base. */
static bool can_be_cured(const struct search *s) {
    const struct lfs_merge_input *in = s->input;
    bool picks = lfs_version_has_picks(in->ours) || lfs_version_has_picks(in->theirs);
    return s->job->spec->is_merge && !s->job->base_is_virtual && !in->base_is_older && !in->ours_is_base && !picks &&
           !in->policy.only && !lfs_manifest_has_stable_row_ids(in->ours->manifest.message);
}

/* All of the base's fragments that one side lacks: by a compaction that ours does not have, or for reasons of its own. */
static errint_t collect(struct search *s, const LanceFragment *f, struct side *side) {
    const struct lfs_merge_reader *r = s->input->reader;
    const LanceFragment *there;
    struct origin o = {.side = side};
    LFS_TRY(find(s, side, f, &there));
    if (there)
        return 0;
    LFS_TRY(r->history(r->context, side->which, &o.history, s->err));
    o.absence = absence_of(o.history, side, lfs_match_name(f));
    if (o.absence == ABSENCE_OWN)
        return 0;
    s->impossible |= side->which == LFS_THEIRS || !o.history->complete;
    if (s->impossible)
        return 0;
    LFS_TRY(add_name(s, &o, lfs_match_name(f)));
    LFS_TRY(find_origin(s, &o));
    s->impossible |= o.unknown;
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

static errint_t uncompact(struct search *s, struct past *past, struct lfs_virtual *v, bool *done) {
    struct lfs_job *job = s->job;
    const struct lfs_version *base = s->input->base;
    struct lfs_branch branch;
    struct lfs_moves moves;
    LFS_TRY(line_at(s, base->number, &branch));
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

/* From now on theirs' history begins before those compactions, and tells of each. */
static errint_t lengthen_history(struct search *s, const struct lfs_version *base, bool *done) {
    struct lfs_reader *r = &s->job->reader;
    struct lfs_merge_input input = *s->input;
    struct lfs_vector since;
    struct lfs_moves moves;
    lfs_vector_init(&since, s->job->arena);
    LFS_TRY(lfs_vector_meet(&r->since[1], &s->before, &since, s->err));
    if (r->has_history[1])
        lfs_history_release(&r->history[1]);
    r->has_history[1] = false;
    r->since[1] = since;
    input.base = base;
    errint_t result = lfs_moves_read(&input, LFS_THEIRS, s->job->arena, &moves, s->err);
    *done = result == 0 && r->history[1].complete;
    for (size_t i = 0; i < s->roots.count && *done; i++)
        *done = lfs_moves_has(&moves, lfs_match_name(s->roots.items[i]));
    lfs_moves_free(&moves);
    return result;
}

/* The base for which there is nothing to refuse; NULL in *out where there is none. */
static errint_t cure(struct search *s, const struct lfs_version **out) {
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
    if (s->impossible || !s->roots.count)
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

/* --- the whole --- */

static errint_t check_or_cure(struct search *s, const struct lfs_version **base) {
    const struct lfs_version *other = NULL;
    LFS_TRY(check_all(s));
    if (!s->job->plan.refusal || !can_be_cured(s))
        return 0;
    LFS_TRY(cure(s, &other));
    if (!other)
        return 0;
    s->job->plan.refusal = NULL;
    *base = other;
    return 0;
}

errint_t lfs_job_pass_left_out(struct lfs_job *job, struct lfs_merge_input *input, struct lfs_error *err) {
    struct search s = {
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
