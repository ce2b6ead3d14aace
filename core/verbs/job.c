/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/job.h"

#include <inttypes.h>
#include <string.h>

#include "merge/choices.h"
#include "merge/index_truth.h"
#include "merge/match.h"
#include "merge/report.h"
#include "util/bitmap.h"
#include "util/cancel.h"
#include "util/cleanup.h"
#include "util/limits.h"
#include "verbs/answer.h"
#include "verbs/found.h"

void lfs_job_release(struct lfs_job *job) {
    lfs_plan_release(&job->plan);
    lfs_reader_release(&job->reader);
    if (!job->base_is_virtual)
        lfs_version_release(job->base.version);
    for (size_t i = 0; i < job->held_virtual.count; i++)
        lfs_virtual_release(job->held_virtual.items[i]);
    lfs_version_release(job->target.version);
    lfs_version_release(job->source.version);
    for (size_t i = 0; i < job->held_plans.count; i++)
        lfs_plan_release(job->held_plans.items[i]);
    for (size_t i = 0; i < job->held_versions.count; i++)
        lfs_version_release(job->held_versions.items[i]);
}

errint_t lfs_job_hold(struct lfs_job *job, struct lfs_version *version, struct lfs_error *err) {
    if (lfs_list_add(&job->held_versions, job->arena, version))
        return 0;
    lfs_version_release(version);
    return lfs_fail_nomem(err);
}

errint_t lfs_job_hold_plan(struct lfs_job *job, struct lfs_plan *plan, struct lfs_error *err) {
    return lfs_list_add(&job->held_plans, job->arena, plan) ? 0 : lfs_fail_nomem(err);
}

errint_t lfs_job_add_virtual(struct lfs_job *job, const struct lfs_virtual *v, struct lfs_error *err) {
    const struct lfs_virtual **grown = LFS_NEW_ARRAY(job->arena, const struct lfs_virtual *, job->n_virtual + 1);
    if (!grown)
        return lfs_fail_nomem(err);
    if (job->n_virtual)
        memcpy(grown, job->virtual_versions, job->n_virtual * sizeof *grown);
    grown[job->n_virtual++] = v;
    job->virtual_versions = grown;
    job->reader.virtual_versions = grown;
    job->reader.n_virtual = job->n_virtual;
    return 0;
}

/* Both texts without what the result's vector covers; NULL in *out when there is nothing to record, or to forget. */
static errint_t join_texts(struct lfs_job *job, const char *ours, const char *theirs, const char **out,
                           struct lfs_error *err) {
    LFS_AUTO_BUF text = {0};
    lfs_picked_join(&text, ours, &job->vector);
    lfs_picked_join(&text, theirs, &job->vector);
    lfs_buf_add(&text, "", 1);
    LFS_TRY(lfs_buf_check(&text, err));
    if (text.length == 1 && !*ours)
        return 0;
    *out = lfs_strdup(job->arena, (const char *)text.data);
    return *out ? 0 : lfs_fail_nomem(err);
}

errint_t lfs_job_join_picked(struct lfs_job *job, struct lfs_error *err) {
    const struct lfs_version *ours = job->target.version, *theirs = job->source.version;
    LFS_TRY(join_texts(job, lfs_version_picked(ours), lfs_version_picked(theirs), &job->picked, err));
    return join_texts(job, lfs_version_partial(ours), lfs_version_partial(theirs), &job->partial, err);
}

errint_t lfs_job_add_partial(struct lfs_job *job, struct lfs_error *err) {
    const char *now = lfs_version_partial(job->target.version);
    uint64_t version = job->source.version->number;
    if (lfs_picked_has(now, job->source.branch.uuid, version))
        return 0;
    job->partial = lfs_sprintf(job->arena, "%s%s%s:%" PRIu64, now, *now ? "," : "", job->source.branch.uuid, version);
    return job->partial ? 0 : lfs_fail_nomem(err);
}

const char *lfs_job_label(const struct lfs_job *job, const char *name, uint64_t version) {
    return lfs_sprintf(job->arena, "%s@%" PRIu64, name, version);
}

const char *lfs_job_source_label(const struct lfs_job *job) {
    if (job->source_label)
        return job->source_label;
    return job->source.version ? lfs_job_label(job, job->source.branch.name, job->source.version->number) : NULL;
}

const char *lfs_job_base_label(const struct lfs_job *job) {
    if (job->base_is_virtual)
        return job->base.line;
    if (!job->base.version)
        return NULL;
    const struct lfs_branch *b = lfs_lines_branch(&job->context->lines, job->base.line);
    return lfs_job_label(job, b ? b->name : job->base.line, job->base.version->number);
}

static void answer_refs(struct lfs_job *job) {
    struct lfs_buf *out = job->context->answer;
    const char *source = lfs_job_source_label(job), *base = lfs_job_base_label(job),
               *target = lfs_job_label(job, job->target.branch.name, job->tip);
    if (source)
        lfs_answer_text(out, "source", source);
    lfs_answer_text(out, "target", target ? target : "");
    if (base)
        lfs_answer_text(out, "base", base);
}

void lfs_job_say_unchanged(struct lfs_job *job, const char *result) {
    lfs_answer_text(job->context->answer, "result", result);
    answer_refs(job);
}

/* --- the plan --- */

/* A series is planned on the newest version that it has planned. */
static void take_planned(struct lfs_job *job) {
    const struct lfs_lines *lines = &job->context->lines;
    if (!lines->n_planned)
        return;
    lfs_version_release(job->target.version);
    job->target.version = lines->planned[lines->n_planned - 1];
}

static errint_t resolve_target(struct lfs_job *job, const char *target, struct lfs_error *err) {
    const struct lfs_command *c = job->context->command;
    LFS_TRY(lfs_verb_tip(job->context, target, &job->target, err));
    job->tip = job->target.version->number;
    take_planned(job);
    if (c->has_expect && c->expect != job->target.version->number)
        return lfs_fail(err, LFS_E_STALE, "%s is at version %" PRIu64 ", not at %" PRIu64 " as expected",
                        job->target.branch.name, job->target.version->number, c->expect);
    lfs_vector_init(&job->target_vector, job->arena);
    lfs_vector_init(&job->vector, job->arena);
    if (job->held)
        LFS_TRY(lfs_vector_join(&job->target_vector, job->held, err));
    return lfs_state_vector(&job->target.branch, job->target.version, &job->target_vector, err);
}

bool lfs_job_comes_from(const struct lfs_branch *branch, const struct lfs_base *base) {
    const char *line = "main";
    for (size_t i = 0; i < branch->n_forks; i++) {
        if (strcmp(line, base->line) == 0)
            return base->version->number <= branch->forks[i].version;
        line = branch->forks[i].uuid;
    }
    return strcmp(line, base->line) == 0;
}

/* Why the choices of rows that `side` loses cannot be carried out: it stands with each of them in the answer. */
static void tell_stuck(struct lfs_job *job, enum lfs_side side, const char *why) {
    for (size_t i = 0; i < job->plan.conflicts.count; i++) {
        struct lfs_conflict *c = job->plan.conflicts.items[i];
        bool loses = side == LFS_OURS ? c->chosen == LFS_STRATEGY_SOURCE && c->our_update
                                      : c->chosen == LFS_STRATEGY_DEST && c->their_update;
        if (loses)
            c->stuck = why;
    }
}

/* One side without updates that lose. False in *again when that cannot be done. */
static errint_t take_back_from(struct lfs_job *job, struct lfs_merge_input *input, enum lfs_side side, bool *again,
                               struct lfs_error *err) {
    struct lfs_list *list = &job->taken_back[side == LFS_THEIRS], *losers = &job->plan.losers[side == LFS_THEIRS];
    struct lfs_virtual *v = LFS_NEW(job->arena, struct lfs_virtual);
    const char *why;
    if (!v || !lfs_list_add(&job->held_virtual, job->arena, v))
        return lfs_fail_nomem(err);
    for (size_t i = 0; i < losers->count; i++) /* all of them, those of earlier rounds too */
        if (!lfs_list_add(list, job->arena, losers->items[i]))
            return lfs_fail_nomem(err);
    struct lfs_merge_input real = *input;
    real.ours = job->target.version;
    real.theirs = job->source.version;
    LFS_TRY(lfs_choices_cover(&real, side, list, job->arena, &why, err));
    if (!why) {
        LFS_TRY(lfs_virtual_without(v, &real, side, list, job->arena, again, err));
        why = "the update that loses cannot be taken back: a later commit changed its rows again, or a merge brought it";
    } else {
        *again = false;
    }
    if (!*again) {
        tell_stuck(job, side, why);
        return 0;
    }
    *(side == LFS_OURS ? &input->ours : &input->theirs) = &v->version;
    input->ours_is_base = false;
    return lfs_job_add_virtual(job, v, err);
}

/* Conflicts of rows that a strategy or a choice decides against an update: the loser's side is taken without that update, as
 * a whole commit, since its replacement rows cannot be told one by one; then all is planned again. False in *again when
 * nothing more can be done that way. */
static errint_t take_back(struct lfs_job *job, struct lfs_merge_input *input, bool *again, struct lfs_error *err) {
    struct lfs_merge_input next = *input;
    for (int side = LFS_OURS; side <= LFS_THEIRS && *again; side++)
        if (job->plan.losers[side == LFS_THEIRS].count)
            LFS_TRY(take_back_from(job, &next, (enum lfs_side)side, again, err));
    if (*again)
        *input = next;
    for (size_t i = 0; i < job->plan.conflicts.count && *again; i++) { /* they will not be met again */
        struct lfs_conflict *c = job->plan.conflicts.items[i];
        if (c->chosen && !lfs_list_add(&job->settled, job->arena, c))
            return lfs_fail_nomem(err);
    }
    return 0;
}

static bool has_losers(const struct lfs_plan *plan) { return plan->losers[0].count || plan->losers[1].count; }

/* Of choices, too, those whose rows were taken back on the way. */
static errint_t note_settled(struct lfs_job *job, struct lfs_error *err) {
    size_t ours = 0;
    struct lfs_plan *plan = &job->plan;
    for (size_t i = 0; i < job->settled.count; i++)
        if (!lfs_list_add(&plan->settled, job->arena, job->settled.items[i]))
            return lfs_fail_nomem(err);
    for (size_t i = 0; i < plan->settled.count; i++)
        ours += ((const struct lfs_conflict *)plan->settled.items[i])->chosen == LFS_STRATEGY_DEST;
    if (!plan->settled.count || plan->n_conflicts || plan->refusal)
        return 0;
    char *note = lfs_sprintf(job->arena, "conflicts were settled by choice: %zu ours, %zu theirs", ours, plan->settled.count - ours);
    return lfs_list_add(&plan->notes, job->arena, note) ? 0 : lfs_fail_nomem(err);
}

/* Rows that an update had taken away live again in the fragment: no index need know them. */
static errint_t cut_coverage(struct lfs_job *job, uint64_t fragment, struct lfs_error *err) {
    for (size_t i = 0; i < job->plan.n_indices; i++) {
        struct lfs_plan_index *index = &job->plan.indices[i];
        AUTO_BITMAP *covered = NULL;
        LanceIndex *cut;
        LFS_TRY(lfs_index_coverage(index->record, &covered, err));
        if (!covered || !roaring_bitmap_remove_checked(covered, (uint32_t)fragment))
            continue;
        LFS_TRY(lfs_index_with_coverage(index->record, covered, job->arena, &cut, err));
        index->record = cut;
        job->plan.indices_changed = true;
    }
    return 0;
}

/* The plan was made of a state that is nobody's tip; indexes were built from the tips. */
static errint_t note_returned(struct lfs_job *job, const struct lfs_version *tip, struct lfs_error *err) {
    for (size_t i = 0; i < job->plan.n_fragments; i++) {
        const struct lfs_plan_fragment *f = &job->plan.fragments[i];
        const char *path = lfs_match_name(f->record);
        const LanceFragment *real = lfs_match_find(tip->manifest.message, path);
        if (!real || !real->deletion_file ||
            (f->deletion == LFS_DELETION_KEPT && lfs_match_same_deletions(f->record, real)))
            continue;
        job->plan.rows_return = true;
        LFS_TRY(cut_coverage(job, f->id, err));
    }
    return 0;
}

static errint_t note_escalation(struct lfs_job *job, struct lfs_error *err) {
    for (size_t i = 0; i < 2; i++) {
        const char *name = i ? job->source.branch.name : job->target.branch.name;
        bool chosen = job->input.policy.rows == LFS_STRATEGY_FAIL; /* and so all that goes with them */
        char *note = lfs_sprintf(job->arena, chosen ? "%zu updates of %s were taken back: other rows were chosen"
                                                    : "escalated: %zu updates of %s were taken back as whole commits, where they clashed",
                                 job->taken_back[i].count, name);
        if (job->taken_back[i].count && !lfs_list_add(&job->plan.notes, job->arena, note))
            return lfs_fail_nomem(err);
    }
    return 0;
}

/* Do both hold more than the base does? (A revert compares with what it is told to; a pick of a merge brings what the target
 * may hold by another way.) */
static errint_t is_older(struct lfs_job *job, bool *out, struct lfs_error *err) {
    struct lfs_vector theirs, common;
    *out = false;
    if (job->backward || job->base_is_virtual)
        return 0;
    lfs_vector_init(&theirs, job->arena);
    lfs_vector_init(&common, job->arena);
    LFS_TRY(lfs_state_vector(&job->source.branch, job->source.version, &theirs, err));
    LFS_TRY(lfs_vector_meet(&job->target_vector, &theirs, &common, err));
    *out = !lfs_vector_within(&common, &job->base.vector);
    return 0;
}

static errint_t tell_base(struct lfs_job *job, struct lfs_error *err) {
    struct lfs_state *at = LFS_NEW(job->arena, struct lfs_state);
    if (!at)
        return lfs_fail_nomem(err);
    *at = (struct lfs_state){.branch.uuid = job->base.line, .version = job->base.version};
    struct lfs_standing standing = {job->base.version, at, 1};
    if (job->base_is_virtual)
        standing = (struct lfs_standing){job->base.version, job->base_states, job->n_base_states};
    lfs_reader_know_base(&job->reader, &standing, &job->base.vector);
    return 0;
}

/* ff=only on a target that has moved: a conflict like any other, of the branch as a whole, which no choice settles. */
static errint_t plan_no_forward(struct lfs_job *job, struct lfs_error *err) {
    static const struct lfs_policy plain;
    enum lfs_strategy takes;
    const char *base = lfs_job_base_label(job),
               *ours = lfs_job_label(job, job->target.branch.name, job->target.version->number),
               *why = lfs_sprintf(job->arena, "ff=only: %s has moved since %s left it, so this is no fast-forward",
                                  job->target.branch.name, job->source.branch.name);
    struct lfs_conflict c = LFS_CONFLICT("moved", lfs_sprintf(job->arena, "branch %s", job->target.branch.name),
                                         base ? base : "", ours, lfs_job_source_label(job));
    if (!why)
        return lfs_fail_nomem(err);
    c.no_ours = c.no_theirs = why;
    job->plan = (struct lfs_plan){.arena = job->arena, .outcome = LFS_OUTCOME_CONFLICT};
    LFS_TRY(lfs_settle(&plain, LFS_STRATEGY_FAIL, &job->plan, &c, &takes, err));
    return lfs_report_note(&job->plan, err, "%s", why);
}

static errint_t make_plan(struct lfs_job *job, struct lfs_error *err) {
    if (job->context->command->ff == LFS_FF_ONLY && !job->ours_is_base && !job->follows)
        return plan_no_forward(job, err);
    LFS_TRY(lfs_reader_init(&job->reader, &job->context->lines, &job->target, &job->source, &job->target_vector,
                            &job->base.vector, err));
    LFS_TRY(tell_base(job, err));
    if (!job->base_is_virtual && strcmp(job->base.line, job->source.branch.uuid) == 0)
        LFS_TRY(lfs_reader_on_their_line(&job->reader, job->base.version->number, job->backward, &job->before, err));
    job->reader.virtual_versions = job->virtual_versions;
    job->reader.n_virtual = job->n_virtual;
    job->input = (struct lfs_merge_input){
        .base = job->base.version,
        .ours = job->target.version,
        .theirs = job->source.version,
        .ours_is_base = job->ours_is_base,
        .base_not_held = !lfs_vector_within(&job->base.vector, &job->target_vector),
        .base_is_ours = !job->base_is_virtual && lfs_job_comes_from(&job->target.branch, &job->base),
        .base_is_theirs = !job->base_is_virtual && lfs_job_comes_from(&job->source.branch, &job->base),
        .ours_name = job->target.branch.name,
        .theirs_name = job->source.branch.name,
        .reader = &job->reader.reader,
        .policy = job->context->command->policy,
    };
    LFS_TRY(is_older(job, &job->input.base_is_older, err));
    LFS_TRY(lfs_found_choices(job, &job->input.policy.choices, err));
    LFS_TRY(lfs_job_pass_left_out(job, &job->input, err));
    if (job->plan.refusal)
        return 0;
    job->input.given_up_told = job->spec->is_merge && !job->base_is_virtual && !job->input.base_is_older &&
                               !lfs_version_has_picks(job->input.ours) && !lfs_version_has_picks(job->input.theirs);
    LFS_TRY(lfs_merge3(&job->input, job->arena, &job->plan, err));
    for (bool again = true; again && job->plan.n_conflicts && !job->plan.refusal && has_losers(&job->plan);) {
        LFS_TRY(take_back(job, &job->input, &again, err));
        if (!again)
            return 0;
        lfs_plan_release(&job->plan);
        LFS_TRY(lfs_merge3(&job->input, job->arena, &job->plan, err));
    }
    LFS_TRY(note_settled(job, err));
    if ((!job->taken_back[0].count && !job->taken_back[1].count) || job->plan.n_conflicts || job->plan.refusal)
        return 0;
    LFS_TRY(note_escalation(job, err));
    LFS_TRY(note_returned(job, job->target.version, err));
    LFS_TRY(note_returned(job, job->source.version, err));
    return lfs_plan_count(&job->plan, job->target.version->manifest.message, err);
}

/* A result that equals the tip: lineage alone is worth a version of a merge, unless it is a fast-forward to the same
 * content, after which the next one will find the same base: two branches that merge each other in turn come to rest. */
static bool is_worthless(const struct lfs_job *job) {
    return job->plan.outcome == LFS_OUTCOME_EMPTY &&
           (job->spec->skips_empty || job->context->command->policy.only || (job->spec->is_merge && job->ours_is_base));
}

const char *lfs_job_outcome(const struct lfs_job *job) {
    switch (job->plan.outcome) {
    case LFS_OUTCOME_MERGED: return "merged";
    case LFS_OUTCOME_FAST_FORWARD: return job->spec->is_merge && job->context->command->ff != LFS_FF_NEVER ? "fast-forward" : "merged";
    case LFS_OUTCOME_EMPTY: return is_worthless(job) ? "up-to-date" : "empty-merge";
    case LFS_OUTCOME_CONFLICT: return "conflict";
    case LFS_OUTCOME_REFUSED: return "refused";
    }
    return "error";
}

static errint_t say_blocked(struct lfs_job *job, struct lfs_error *err) {
    struct lfs_buf *out = job->context->answer;
    lfs_answer_text(out, "result", lfs_job_outcome(job));
    answer_refs(job);
    if (job->plan.outcome == LFS_OUTCOME_REFUSED) {
        lfs_answer_text(out, "reason", job->plan.refusal);
        lfs_answer_plan(out, &job->plan);
        return lfs_fail(err, LFS_E_UNSUPPORTED, "%s", job->plan.refusal);
    }
    lfs_answer_plan(out, &job->plan);
    return lfs_fail(err, LFS_E_CONFLICT, "%zu conflicts", job->plan.n_conflicts);
}

/* --- what came of it --- */

/* A hook said no: what it said comes at the end of the answer. */
static void say_denied(struct lfs_job *job, const struct lfs_error *why) {
    lfs_answer_text(job->context->answer, "result", "refused");
    answer_refs(job);
    lfs_answer_text(job->context->answer, "reason", why->message);
}

static void say_committed(struct lfs_job *job, const struct lfs_commit_result *r) {
    struct lfs_buf *out = job->context->answer;
    lfs_answer_text(out, "result", lfs_job_outcome(job));
    answer_refs(job);
    lfs_answer_number(out, "version", r->version);
    lfs_answer_text(out, "transaction", r->transaction);
    lfs_answer_plan(out, &job->plan);
}

static void say_dry(struct lfs_job *job) {
    struct lfs_buf *out = job->context->answer;
    lfs_answer_text(out, "result", "dry-run");
    lfs_answer_text(out, "would-be", lfs_job_outcome(job));
    answer_refs(job);
    lfs_answer_plan(out, &job->plan);
}

/* --- one try, and the next --- */

static bool cancelled(const struct lfs_job *job) {
    return lfs_is_cancelled(job->context->call->cancel);
}

/* Versions that a series has planned can be read like any other. */
static errint_t know_planned(struct lfs_job *job, struct lfs_error *err) {
    const struct lfs_lines *lines = &job->context->lines;
    const struct lfs_virtual **list = LFS_NEW_ARRAY(job->arena, const struct lfs_virtual *, lines->n_planned + 1);
    if (!list)
        return lfs_fail_nomem(err);
    for (size_t i = 0; i < lines->n_planned; i++)
        list[i] = (const struct lfs_virtual *)lines->planned[i]; /* its first member */
    job->virtual_versions = list;
    job->n_virtual = lines->n_planned;
    return 0;
}

int lfs_job_plan(struct lfs_job *job, const char *target, struct lfs_error *err) {
    LFS_TRY(know_planned(job, err));
    LFS_TRY(resolve_target(job, target, err));
    int prepared = job->spec->prepare(job, err);
    if (prepared != LFS_PREPARED)
        return prepared;
    LFS_TRY(make_plan(job, err));
    if (cancelled(job))
        return lfs_fail(err, LFS_E_INTERRUPTED, "interrupted: nothing was committed");
    return is_worthless(job) ? LFS_CHANGES_NOTHING : LFS_PREPARED;
}

int lfs_job_plan_and_say(struct lfs_job *job, const char *target, struct lfs_error *err) {
    int planned = lfs_job_plan(job, target, err);
    if (planned >= 0 && job->context->found && !job->context->command->dry_run)
        LFS_TRY(lfs_found_add(job->context->found, job, err));
    if (planned == LFS_CHANGES_NOTHING)
        lfs_job_say_unchanged(job, lfs_job_outcome(job));
    if (planned == LFS_PREPARED &&
        (job->plan.outcome == LFS_OUTCOME_CONFLICT || job->plan.outcome == LFS_OUTCOME_REFUSED))
        return say_blocked(job, err);
    return planned;
}

static errint_t try_once(struct lfs_verb_context *context, const struct lfs_job_spec *spec, const char *target,
                         void *argument, struct lfs_error *err) {
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    LFS_CLEANUP(lfs_job_release)
    struct lfs_job job = {.context = context, .arena = arena, .spec = spec, .argument = argument};
    struct lfs_commit_result result = {0};
    if (!arena)
        return lfs_fail_nomem(err);
    if (context->found)
        lfs_found_clear(context->found);
    int planned = lfs_job_plan_and_say(&job, target, err);
    if (planned != LFS_PREPARED)
        return planned < 0 ? planned : 0;
    if (context->command->dry_run) {
        say_dry(&job);
        return 0;
    }
    errint_t committed = lfs_job_commit(&job, &result, err);
    if (committed == 0)
        say_committed(&job, &result);
    else if (err && err->code == LFS_E_DENIED)
        say_denied(&job, err);
    return committed;
}

errint_t lfs_job_run(struct lfs_verb_context *context, const struct lfs_job_spec *spec, const char *target,
                     void *argument, struct lfs_error *err) {
    for (unsigned i = 0; i < LFS_COMMIT_TRIES_MAX; i++) {
        errint_t result = try_once(context, spec, target, argument, err);
        if (result != -EEXIST)
            return result;
        if (context->command->has_expect)
            break;
    }
    return lfs_fail(err, LFS_E_RACE, "other writers kept winning the race for the next version: try again");
}
