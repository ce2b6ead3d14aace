/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/series.h"

#include <inttypes.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/limits.h"
#include "verbs/answer.h"
#include "verbs/gate.h"
#include "verbs/found.h"

enum { PASSES_LOST_MAX = 3 }; /* planning all of it takes long: before a writer that never rests, it would never end */

/* What is known of one step. */
struct state {
    struct lfs_job *job; /* its plan, kept while later ones are planned on it */
    struct lfs_arena *arena;
    struct lfs_virtual virtual_version;
    const struct lfs_vector *held; /* when it begins */
    bool skipped;
};

struct series {
    struct lfs_verb_context *context; /* of the command */
    struct lfs_verb_context inner;    /* of its jobs: they write into `said`, and see the planned versions */
    struct lfs_verb_call call;
    struct lfs_command command;
    struct lfs_buf said;
    const struct lfs_series *spec;
    struct state *states;
    size_t done;    /* steps that are committed or were skipped */
    size_t written; /* versions */
    bool patient;   /* busy writers: no more plans of the whole, each step is made on whatever tip there is */
    uint64_t tip;   /* of the target, when the plan was made or after our last commit */
    uint64_t first_tip;
    const char *base, *result, *target_name;
    struct lfs_commit_result last;
    uint64_t added, removed, changed, rows_added, rows_removed;
    struct lfs_list lines, notes; /* of char: one line for each version, and the notes of all */
    struct lfs_buf versions;      /* "4..6" */
    uint64_t run_first, run_last; /* the last run of numbers in it, not printed yet */
};

static struct lfs_arena *arena_of(const struct series *s) { return s->context->arena; }

static errint_t add_text(const struct series *s, struct lfs_list *list, char *text, struct lfs_error *err) {
    return lfs_list_add(list, arena_of(s), text) ? 0 : lfs_fail_nomem(err);
}

/* --- planning --- */

static void forget_plan(struct state *x) {
    if (x->job)
        lfs_job_release(x->job);
    lfs_arena_free(x->arena);
    x->job = NULL;
    x->arena = NULL;
}

static void forget_plans(struct series *s) {
    for (size_t i = s->spec->n_steps; i-- > 0;) /* the later ones point into the earlier ones */
        forget_plan(&s->states[i]);
    s->inner.lines.n_planned = 0;
}

static errint_t new_job(struct series *s, size_t i, struct lfs_error *err) {
    struct state *x = &s->states[i];
    const struct lfs_series_step *step = &s->spec->steps[i];
    x->arena = lfs_arena_new();
    x->job = x->arena ? LFS_NEW(x->arena, struct lfs_job) : NULL;
    if (!x->job)
        return lfs_fail_nomem(err);
    *x->job = (struct lfs_job){
        .context = &s->inner,
        .arena = x->arena,
        .spec = step->spec,
        .argument = step->argument,
        .held = x->held,
        .follows = step->follows,
    };
    s->said.length = 0;
    s->command.has_expect = s->context->command->has_expect && s->written == 0 && s->inner.lines.n_planned == 0;
    s->call.cancel = s->written ? NULL : s->context->call->cancel;
    return 0;
}

/* A skipped commit is held all the same: the next one is compared with it. */
static errint_t skip(struct series *s, size_t i, struct lfs_error *err) {
    struct state *x = &s->states[i];
    struct lfs_vector *held = LFS_NEW(arena_of(s), struct lfs_vector);
    x->skipped = true;
    if (!held)
        return lfs_fail_nomem(err);
    lfs_vector_init(held, arena_of(s));
    if (x->held)
        LFS_TRY(lfs_vector_join(held, x->held, err));
    LFS_TRY(lfs_vector_join(held, &x->job->vector, err));
    s->states[i + 1].held = held;
    return 0;
}

static errint_t foresee(struct series *s, size_t i, struct lfs_error *err) {
    struct lfs_lines *lines = &s->inner.lines;
    struct state *x = &s->states[i];
    LFS_TRY(lfs_job_foresee(x->job, &x->virtual_version, err));
    lines->planned_line = lfs_strdup(arena_of(s), x->job->target.branch.uuid);
    if (!lines->planned_line)
        return lfs_fail_nomem(err);
    lines->planned[lines->n_planned++] = &x->virtual_version.version;
    s->states[i + 1].held = x->held;
    return 0;
}

/* Plans the steps that are left, each on what the one before will give. On failure *at is the one that does not go. */
static errint_t plan_rest(struct series *s, size_t *at, struct lfs_error *err) {
    forget_plans(s);
    if (s->context->found)
        lfs_found_clear(s->context->found);
    for (size_t i = s->done; i < s->spec->n_steps; i++) {
        struct state *x = &s->states[i];
        *at = i;
        LFS_TRY(new_job(s, i, err));
        int planned = lfs_job_plan_and_say(x->job, s->spec->target, err);
        if (planned < 0)
            return planned;
        if (i == s->done)
            s->tip = x->job->tip;
        if (!s->target_name) {
            s->target_name = lfs_strdup(arena_of(s), x->job->target.branch.name);
            s->first_tip = s->tip;
        }
        x->skipped = false;
        LFS_TRY(planned == LFS_PREPARED ? foresee(s, i, err) : skip(s, i, err));
    }
    return 0;
}

/* --- what is told --- */

static errint_t tell_skipped(struct series *s, size_t i, struct lfs_error *err) {
    const struct lfs_job *job = s->states[i].job;
    const char *why = job->plan.arena ? "it changes nothing here" : "it is held already";
    return add_text(s, &s->notes,
                    lfs_sprintf(arena_of(s), "%s is skipped, %s", s->spec->steps[i].label, why), err);
}

/* One step, committed as `version` or (0) only planned. */
static errint_t tell_step(struct series *s, size_t i, const struct lfs_job *job, uint64_t version,
                          struct lfs_error *err) {
    const struct lfs_plan *p = &job->plan;
    const char *label = s->spec->steps[i].label, *base = lfs_job_base_label(job), *outcome = lfs_job_outcome(job);
    char *where = version ? lfs_sprintf(arena_of(s), "version %" PRIu64, version) : lfs_strdup(arena_of(s), "planned");
    s->added += p->fragments_added;
    s->removed += p->fragments_removed;
    s->changed += p->fragments_changed_count;
    s->rows_added += p->rows_added;
    s->rows_removed += p->rows_removed;
    if (!s->base && base)
        s->base = lfs_strdup(arena_of(s), base);
    if (!s->result || strcmp(s->result, "empty-merge") == 0)
        s->result = outcome;
    else if (!s->spec->steps[i].follows && strcmp(outcome, "merged") == 0)
        s->result = outcome; /* one of several sources was no fast-forward */
    for (size_t k = 0; k < p->notes.count; k++)
        LFS_TRY(add_text(s, &s->notes, lfs_sprintf(arena_of(s), "%s: %s", label, (const char *)p->notes.items[k]), err));
    if (!where)
        return lfs_fail_nomem(err);
    return add_text(s, &s->lines,
                    lfs_sprintf(arena_of(s),
                                "%s %s %s, fragments +%" PRIu64 " -%" PRIu64 " ~%" PRIu64 ", rows +%" PRIu64 " -%" PRIu64,
                                label, outcome, where, p->fragments_added, p->fragments_removed, p->fragments_changed_count,
                                p->rows_added, p->rows_removed),
                    err);
}

static void end_run(struct series *s) {
    if (!s->run_first)
        return;
    lfs_buf_printf(&s->versions, "%s%" PRIu64, s->versions.length ? ", " : "", s->run_first);
    if (s->run_last > s->run_first)
        lfs_buf_printf(&s->versions, "..%" PRIu64, s->run_last);
    s->run_first = s->run_last = 0;
}

static void add_version(struct series *s, uint64_t version) {
    if (s->run_first && version == s->run_last + 1) {
        s->run_last = version;
        return;
    }
    end_run(s);
    s->run_first = s->run_last = version;
}

/* version:, versions: and the lines of what has been written. (Aside the newest version is the caller's.) */
static void answer_written(struct series *s) {
    struct lfs_buf *out = s->context->answer;
    end_run(s);
    lfs_buf_add(&s->versions, "", 1);
    if (s->written && s->spec->aside) {
        lfs_buf_printf(out, "versions: \"%s\"\n", s->versions.failed ? "" : (const char *)s->versions.data);
    } else if (s->written) {
        lfs_answer_number(out, "version", s->last.version);
        lfs_buf_printf(out, "versions: \"%s\"\n", s->versions.failed ? "" : (const char *)s->versions.data);
        lfs_answer_text(out, "transaction", s->last.transaction);
    }
}

static void answer_refs(struct series *s) {
    struct lfs_buf *out = s->context->answer;
    const char *target = s->spec->aside ? s->spec->aside->onto
                                        : lfs_sprintf(arena_of(s), "%s@%" PRIu64, s->target_name, s->first_tip);
    lfs_answer_text(out, "source", s->spec->source);
    lfs_answer_text(out, s->spec->aside ? "onto" : "target", target ? target : "");
    if (s->base)
        lfs_answer_text(out, "base", s->base);
}

static void answer_counts(struct series *s) {
    struct lfs_buf *out = s->context->answer;
    lfs_buf_printf(out, "fragments: +%" PRIu64 " -%" PRIu64 " ~%" PRIu64 "\n", s->added, s->removed, s->changed);
    lfs_buf_printf(out, "rows: +%" PRIu64 " -%" PRIu64 "\n", s->rows_added, s->rows_removed);
    lfs_answer_number(out, "conflicts", 0);
    lfs_answer_list(out, "steps", &s->lines);
    lfs_answer_list(out, "notes", &s->notes);
}

static void answer_done(struct series *s) {
    struct lfs_buf *out = s->context->answer;
    const struct lfs_series_aside *aside = s->spec->aside;
    bool dry = s->context->command->dry_run && (s->lines.count || aside);
    const char *result = s->lines.count ? (aside ? aside->result : s->result) : aside ? aside->nothing : "up-to-date";
    lfs_answer_text(out, "result", dry ? "dry-run" : result);
    if (dry)
        lfs_answer_text(out, "would-be", result);
    answer_refs(s);
    answer_written(s);
    if (s->lines.count)
        answer_counts(s);
    else
        lfs_answer_list(out, "notes", &s->notes);
}

/* A step that does not go: its own answer, which one it is, and what stands already. */
static errint_t answer_failed(struct series *s, size_t at, errint_t result, struct lfs_error *err) {
    struct lfs_buf *out = s->context->answer;
    const char *label = s->spec->steps[at].label;
    struct lfs_error why = *err;
    if (s->said.length)
        lfs_buf_add(out, s->said.data, s->said.length);
    else
        lfs_answer_error(out, &why);
    lfs_buf_printf(out, "step: \"%s, %zu of %zu\"\n", label, at + 1, s->spec->n_steps);
    bool shown = s->written && !s->spec->aside;
    if (shown) {
        answer_written(s);
        lfs_answer_list(out, "steps", &s->lines);
    }
    lfs_fail(err, why.code, "%s, %zu of %zu: %s; %s", label, at + 1, s->spec->n_steps, why.message,
             shown ? "what came before it is committed" : "nothing was committed");
    err->sys_errno = why.sys_errno;
    return result;
}

/* --- committing --- */

/* Step i, on the real tip. -EEXIST: somebody else has moved it since all was planned. *skipped: that somebody did what
 * this step does. */
static errint_t commit_step(struct series *s, size_t i, bool *skipped, struct lfs_error *err) {
    struct lfs_commit_result result = {0};
    struct state *x = &s->states[i];
    forget_plan(x);
    LFS_TRY(new_job(s, i, err));
    if (s->context->found)
        lfs_found_clear(s->context->found);
    int planned = lfs_job_plan_and_say(x->job, s->spec->target, err);
    if (x->job->tip && x->job->tip != s->tip && !s->patient)
        return -EEXIST;
    *skipped = planned == LFS_NOTHING_TO_DO || planned == LFS_CHANGES_NOTHING;
    if (planned != LFS_PREPARED)
        return planned < 0 ? planned : 0;
    s->inner.gate->whole = x->job->tip == s->tip; /* else it was let pass on another tip, and is asked about by itself */
    LFS_TRY(lfs_job_commit(x->job, &result, err));
    s->tip = result.version;
    s->last = result;
    s->written++;
    add_version(s, result.version);
    return tell_step(s, i, x->job, result.version, err);
}

/* As far as nobody gets in between; *at is the step that was not made. */
static errint_t commit_rest(struct series *s, size_t *at, struct lfs_error *err) {
    for (; s->done < s->spec->n_steps; s->done++) {
        bool skipped = s->states[s->done].skipped;
        errint_t result = 0;
        *at = s->done;
        if (!skipped)
            result = commit_step(s, s->done, &skipped, err);
        for (unsigned i = 0; s->patient && result == -EEXIST && i < LFS_COMMIT_TRIES_MAX; i++)
            result = commit_step(s, s->done, &skipped, err);
        LFS_TRY(result);
        if (skipped)
            LFS_TRY(tell_skipped(s, s->done, err));
    }
    return 0;
}

/* One question about all that is left, before any of it is written: a no changes nothing. */
static errint_t ask(struct series *s, struct lfs_error *err) {
    struct lfs_job **jobs = LFS_NEW_ARRAY(arena_of(s), struct lfs_job *, s->spec->n_steps + 1);
    size_t n = 0;
    if (!jobs)
        return lfs_fail_nomem(err);
    for (size_t i = s->done; i < s->spec->n_steps; i++)
        if (!s->states[i].skipped)
            jobs[n++] = s->states[i].job;
    if (s->spec->aside)
        return s->spec->aside->ask(s->spec->aside->argument, jobs, n, err);
    return lfs_gate_ask_series(&s->inner, jobs, n, s->spec->source, err);
}

static errint_t answer_denied(struct series *s, errint_t result, const struct lfs_error *err) {
    lfs_answer_text(s->context->answer, "result", "refused");
    answer_refs(s);
    lfs_answer_text(s->context->answer, "reason", err->message);
    answer_written(s);
    lfs_answer_list(s->context->answer, "steps", &s->lines);
    return result;
}

static errint_t tell_plan(struct series *s, struct lfs_error *err) {
    for (size_t i = 0; i < s->spec->n_steps; i++)
        LFS_TRY(s->states[i].skipped ? tell_skipped(s, i, err) : tell_step(s, i, s->states[i].job, 0, err));
    return 0;
}

static errint_t run(struct series *s, struct lfs_error *err) {
    size_t at = 0, written = 0;
    for (unsigned tries = 0; tries < LFS_COMMIT_TRIES_MAX; tries++) {
        errint_t result = plan_rest(s, &at, err);
        if (result == 0 && s->context->command->dry_run)
            result = tell_plan(s, err);
        else if (result == 0 && (result = ask(s, err)) == 0) {
            s->inner.lines.n_planned = 0; /* from here on what is on the disk counts */
            if (s->spec->aside)
                LFS_TRY(s->spec->aside->begin(s->spec->aside->argument, err));
            result = commit_rest(s, &at, err);
        }
        if (result == 0) {
            answer_done(s);
            return 0;
        }
        if (result != -EEXIST)
            return err && err->code == LFS_E_DENIED ? answer_denied(s, result, err) : answer_failed(s, at, result, err);
        if (s->written > written) /* it came further: that race was not lost */
            tries = 0;
        written = s->written;
        s->patient = s->patient || tries >= PASSES_LOST_MAX;
    }
    s->said.length = 0;
    lfs_fail(err, LFS_E_RACE, "other writers kept winning the race for the next version: try again");
    return answer_failed(s, at, -EAGAIN, err);
}

errint_t lfs_series_run(struct lfs_verb_context *context, const struct lfs_series *spec, struct lfs_error *err) {
    struct series s = {.context = context, .spec = spec};
    if (spec->n_steps > LFS_SERIES_STEPS_MAX)
        return lfs_fail(err, LFS_E_TOO_BIG, "more than %u versions by one command", LFS_SERIES_STEPS_MAX);
    s.states = LFS_NEW_ARRAY(context->arena, struct state, spec->n_steps + 1);
    s.call = *context->call;
    s.command = *context->command;
    s.inner = *context;
    s.inner.call = &s.call;
    s.inner.command = &s.command;
    s.inner.answer = &s.said;
    s.inner.lines.planned = LFS_NEW_ARRAY(context->arena, struct lfs_version *, spec->n_steps + 1);
    errint_t result = s.states && s.inner.lines.planned ? run(&s, err) : lfs_fail_nomem(err);
    forget_plans(&s);
    lfs_buf_free(&s.said);
    lfs_buf_free(&s.versions);
    return result;
}
