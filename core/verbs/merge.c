/* SPDX-License-Identifier: Apache-2.0 */
/* merge SOURCE: three-way, from the base that both hold (merge-semantics section 2). With replay one version for each
 * commit of the source, with several sources one for each of them: a merge each, of one state of the source's line after
 * the other, so that the last one holds what a single merge would. */
#include <inttypes.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/limits.h"
#include "verbs/series.h"

/* --- the base --- */

static errint_t find_base(struct lfs_job *job, const struct lfs_vector *theirs, struct lfs_error *err) {
    struct lfs_base *bases;
    size_t n;
    LFS_TRY(lfs_merge_bases(&job->context->lines, &job->target_vector, theirs, &bases, &n, err));
    if (n > 1)
        return lfs_job_virtual_base(job, bases, n, err);
    job->base = bases[0];
    return 0;
}

/* A branch's first version is a state of its parent, under its parent's number. */
static const char *line_of(const struct lfs_branch *branch, uint64_t version) {
    size_t n = branch->n_forks;
    while (n > 0 && version <= branch->forks[n - 1].version)
        n--;
    return n == branch->n_forks ? branch->uuid : n > 0 ? branch->forks[n - 1].uuid : "main";
}

/* base=: any version that both hold. One that a side never held would make everything in it that the side lacks look
 * deleted there, and the merge would take it away. */
static errint_t named_base(struct lfs_job *job, const struct lfs_vector *theirs, struct lfs_error *err) {
    const char *word = job->context->command->base;
    struct lfs_state state = {0};
    LFS_TRY(lfs_verb_state(job->context, word, &state, err));
    job->base.version = state.version;
    job->base.line = line_of(&state.branch, state.version->number);
    lfs_vector_init(&job->base.vector, job->arena);
    LFS_TRY(lfs_state_vector(&state.branch, state.version, &job->base.vector, err));
    bool by_ours = lfs_vector_within(&job->base.vector, &job->target_vector),
         by_theirs = lfs_vector_within(&job->base.vector, theirs);
    if (by_ours && by_theirs)
        return 0;
    return lfs_fail(err, LFS_E_USAGE,
                    "base=%s: %s does not hold that version, so what it lacks of it would count as deleted there; name one "
                    "that both hold",
                    word, by_ours ? job->source.branch.name : job->target.branch.name);
}

/* --- one merge --- */

static errint_t read_source(struct lfs_job *job, struct lfs_error *err) {
    const struct lfs_merge_source *s = job->argument;
    if (s->word)
        return lfs_verb_state(job->context, s->word, &job->source, err);
    job->source.branch = s->branch;
    errint_t result = lfs_lines_version(&job->context->lines, s->branch.uuid, s->version, &job->source.version, err);
    return result == -ENODATA
               ? lfs_fail(err, LFS_E_NO_BASE, "version %" PRIu64 " of %s was cleaned away, so its commits cannot be replayed "
                          "one by one: %s", s->version, s->branch.name,
                          job->spec->is_merge && strcmp(job->spec->operation, "merge") ? "add squash" : "merge without replay")
               : result;
}

/* Everything theirs holds is held from now on; but not when only a part of it is taken over. */
static errint_t record_lineage(struct lfs_job *job, const struct lfs_vector *theirs, struct lfs_error *err) {
    unsigned only = job->context->command->policy.only;
    LFS_TRY(lfs_vector_join(&job->vector, &job->target_vector, err));
    if (only && !(only & LFS_CLASS_ROWS))
        return 0;
    if (!only)
        LFS_TRY(lfs_vector_join(&job->vector, theirs, err));
    LFS_TRY(lfs_job_join_picked(job, err));
    return only ? lfs_job_add_partial(job, err) : 0;
}

static int prepare(struct lfs_job *job, struct lfs_error *err) {
    const struct lfs_command *c = job->context->command;
    struct lfs_vector theirs;
    lfs_vector_init(&theirs, job->arena);
    LFS_TRY(read_source(job, err));
    LFS_TRY(lfs_state_vector(&job->source.branch, job->source.version, &theirs, err));
    if (lfs_vector_within(&theirs, &job->target_vector)) {
        lfs_job_say_unchanged(job, "up-to-date");
        return LFS_NOTHING_TO_DO;
    }
    LFS_TRY(c->base ? named_base(job, &theirs, err) : find_base(job, &theirs, err));
    job->ours_is_base = !c->policy.only && lfs_vector_within(&job->target_vector, &job->base.vector);
    LFS_TRY(record_lineage(job, &theirs, err));
    return LFS_PREPARED;
}

const struct lfs_job_spec lfs_merge_job = {.operation = "merge", .is_merge = true, .prepare = prepare};
static const struct lfs_job_spec skipping = {
    .operation = "merge", .is_merge = true, .skips_empty = true, .prepare = prepare};

/* --- several --- */

/* A rebase's step: a merge of one state of the old line after the other into the new one. */
static const struct lfs_job_spec rebasing = {
    .operation = LFS_OPERATION_REBASE, .is_merge = true, .skips_empty = true, .prepare = prepare};

struct builder {
    struct lfs_verb_context *context;
    bool rebase;
    struct lfs_series series;
    size_t capacity;
    struct lfs_vector held; /* by the target and the sources so far */
    struct lfs_buf label;
};

static errint_t add_step(struct builder *b, const struct lfs_branch *branch, uint64_t version, bool is_last,
                         bool follows, struct lfs_error *err) {
    struct lfs_arena *arena = b->context->arena;
    struct lfs_series *s = &b->series;
    if (s->n_steps == b->capacity) {
        size_t capacity = b->capacity * 2 + 16;
        struct lfs_series_step *grown = LFS_NEW_ARRAY(arena, struct lfs_series_step, capacity);
        if (!grown)
            return lfs_fail_nomem(err);
        if (s->n_steps)
            memcpy(grown, s->steps, s->n_steps * sizeof *grown);
        s->steps = grown;
        b->capacity = capacity;
    }
    if (s->n_steps == LFS_SERIES_STEPS_MAX)
        return lfs_fail(err, LFS_E_TOO_BIG, "more than %u versions by one command: %s %s@%" PRIu64, LFS_SERIES_STEPS_MAX,
                        b->rebase ? "add squash; they go on behind" : "merge a part of them first, as in", branch->name, version);
    struct lfs_merge_source *source = LFS_NEW(arena, struct lfs_merge_source);
    char *label = lfs_sprintf(arena, "%s@%" PRIu64, branch->name, version);
    if (!source || !label)
        return lfs_fail_nomem(err);
    *source = (struct lfs_merge_source){NULL, *branch, version};
    const struct lfs_job_spec *spec = b->rebase ? &rebasing : is_last ? &lfs_merge_job : &skipping;
    s->steps[s->n_steps++] = (struct lfs_series_step){spec, source, label, follows};
    return 0;
}

/* A compaction may be left out (merge-semantics section 5, s2), and the next commit, compared with it, would then find its
 * rows nowhere: a single merge looks at all of it at once. */
static errint_t check_replayable(struct builder *b, const struct lfs_branch *branch, uint64_t version,
                                 struct lfs_error *err) {
    struct lfs_version *v;
    if (lfs_lines_version(&b->context->lines, branch->uuid, version, &v, NULL) < 0)
        return 0; /* told when it is its turn */
    const LanceTransaction *t = v->manifest.transaction;
    bool rewrite = t && t->operation_case == LANCE__TABLE__TRANSACTION__OPERATION_REWRITE;
    lfs_version_release(v);
    return rewrite ? lfs_fail(err, LFS_E_UNSUPPORTED, "%s@%" PRIu64 " is a compaction, which cannot be replayed by itself: %s",
                              branch->name, version, b->rebase ? "add squash" : "merge without replay")
                   : 0;
}

/* The commits of a source that the target lacks, oldest first: those of the lines that it comes from, each up to the
 * fork, then its own. What they merged themselves comes with the merge. */
static errint_t add_commits(struct builder *b, const struct lfs_branch *branch, uint64_t version, struct lfs_error *err) {
    size_t before = b->series.n_steps;
    for (size_t depth = 0; depth <= branch->n_forks; depth++) {
        const char *line = depth ? branch->forks[depth - 1].uuid : "main";
        uint64_t first = depth ? branch->forks[depth - 1].version : 0, held = lfs_vector_get(&b->held, line),
                 last = depth < branch->n_forks ? branch->forks[depth].version : version;
        struct lfs_branch on = *branch;
        held = held > first ? held : first;
        if (held < last && depth < branch->n_forks)
            LFS_TRY(lfs_lines_any_branch(&b->context->lines, line, &on, err));
        for (uint64_t v = held + 1; v <= last; v++) /* the last one records the lineage even where it changes nothing */
            LFS_TRY(check_replayable(b, &on, v, err));
        for (uint64_t v = held + 1; v <= last; v++)
            LFS_TRY(add_step(b, &on, v, v == version && depth == branch->n_forks, b->series.n_steps > before, err));
    }
    return b->series.n_steps > before ? 0 : add_step(b, branch, version, true, false, err);
}

static errint_t add_source(struct builder *b, const char *word, struct lfs_error *err) {
    struct lfs_state state = {0};
    LFS_TRY(lfs_verb_state(b->context, word, &state, err));
    uint64_t version = state.version->number;
    struct lfs_vector vector;
    lfs_vector_init(&vector, b->context->arena);
    errint_t result = lfs_state_vector(&state.branch, state.version, &vector, err);
    lfs_version_release(state.version);
    LFS_TRY(result);
    lfs_buf_printf(&b->label, "%s%s@%" PRIu64, b->label.length ? ", " : "", state.branch.name, version);
    LFS_TRY(b->context->command->replay ? add_commits(b, &state.branch, version, err)
                                        : add_step(b, &state.branch, version, true, false, err));
    return lfs_vector_join(&b->held, &vector, err);
}

static errint_t build(struct builder *b, const char **words, size_t n, struct lfs_error *err) {
    struct lfs_state target = {0};
    lfs_vector_init(&b->held, b->context->arena);
    LFS_TRY(lfs_verb_tip(b->context, b->series.target, &target, err));
    errint_t result = lfs_state_vector(&target.branch, target.version, &b->held, err);
    lfs_version_release(target.version);
    LFS_TRY(result);
    for (size_t i = 0; i < n; i++)
        LFS_TRY(add_source(b, words[i], err));
    lfs_buf_add(&b->label, "", 1);
    LFS_TRY(lfs_buf_check(&b->label, err));
    b->series.source = lfs_strdup(b->context->arena, (const char *)b->label.data);
    return b->series.source ? 0 : lfs_fail_nomem(err);
}

errint_t lfs_rebase_steps(struct lfs_verb_context *context, const struct lfs_branch *branch, uint64_t version,
                          const struct lfs_vector *held, struct lfs_series *out, struct lfs_error *err) {
    struct builder b = {.context = context, .rebase = true, .series = *out};
    struct lfs_vector all;
    lfs_vector_init(&b.held, context->arena);
    LFS_TRY(lfs_vector_join(&b.held, held, err));
    lfs_vector_init(&all, context->arena);
    LFS_TRY(lfs_number_vector(branch, version, NULL, &all, err));
    if (lfs_vector_within(&all, held))
        return 0;
    LFS_TRY(context->command->squash ? add_step(&b, branch, version, true, false, err)
                                     : add_commits(&b, branch, version, err));
    *out = b.series;
    return 0;
}

static errint_t run_series(struct lfs_verb_context *context, const char *target, size_t n, struct lfs_error *err) {
    struct builder b = {.context = context, .series.target = target};
    errint_t result = build(&b, context->command->words, n, err);
    lfs_buf_free(&b.label);
    return result < 0 ? result : lfs_series_run(context, &b.series, err);
}

/* --- the verb --- */

errint_t lfs_merge_check(const struct lfs_command *c, size_t n_sources, struct lfs_error *err) {
    if (c->policy.only && c->replay)
        return lfs_fail(err, LFS_E_USAGE, "replay brings whole commits: it does not go with only=");
    if (c->policy.only && n_sources > 1)
        return lfs_fail(err, LFS_E_USAGE, "only= is of one merge: it does not go with several sources");
    if (c->policy.only && c->ff == LFS_FF_ONLY)
        return lfs_fail(err, LFS_E_USAGE, "a part of a branch is no fast-forward: only= does not go with ff=only");
    if (c->base && (c->replay || n_sources > 1))
        return lfs_fail(err, LFS_E_USAGE, "base= is of one merge: it does not go with %s",
                        c->replay ? "replay" : "several sources");
    return 0;
}

errint_t lfs_verb_merge(struct lfs_verb_context *context, struct lfs_error *err) {
    const struct lfs_command *c = context->command;
    const char *target = context->call->branch;
    size_t n = c->n_words;
    struct lfs_branch branch;
    if (n < (target ? 1 : 2))
        return lfs_fail(err, LFS_E_USAGE, target ? "name the branch to merge" : "name the source and the target branch");
    if (!target) {
        LFS_TRY(lfs_verb_branch(context, c->words[--n], &branch, err));
        target = branch.name;
    }
    LFS_TRY(lfs_merge_check(c, n, err));
    if (n > 1 || c->replay)
        return run_series(context, target, n, err);
    struct lfs_merge_source source = {.word = c->words[0]};
    return lfs_job_run(context, &lfs_merge_job, target, &source, err);
}
