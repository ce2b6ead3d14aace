/* SPDX-License-Identifier: Apache-2.0 */
/* cherry-pick REF[..REF]: what single commits changed, from the version before each to it (merge-semantics section 2). */
#include <inttypes.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/limits.h"
#include "verbs/answer.h"
#include "verbs/series.h"

/* Commits `first` to `last` of a branch; a job takes those from `first` to `last` as one. */
struct range {
    struct lfs_branch branch;
    uint64_t first, last;
};

static bool is_held(const struct lfs_job *job, const struct range *r, uint64_t version) {
    return lfs_vector_get(&job->target_vector, r->branch.uuid) >= version ||
           lfs_picked_has(lfs_version_picked(job->target.version), r->branch.uuid, version);
}

/* The target's picks, and these. */
static errint_t add_picks(struct lfs_job *job, const struct range *r, struct lfs_error *err) {
    LFS_AUTO_BUF text = {0};
    lfs_buf_puts(&text, lfs_version_picked(job->target.version));
    for (uint64_t v = r->first; v <= r->last; v++)
        if (!is_held(job, r, v))
            lfs_buf_printf(&text, "%s%s:%" PRIu64, text.length ? "," : "", r->branch.uuid, v);
    lfs_buf_add(&text, "", 1);
    LFS_TRY(lfs_buf_check(&text, err));
    job->picked = lfs_strdup(job->arena, (const char *)text.data);
    return job->picked ? 0 : lfs_fail_nomem(err);
}

/* A part of a commit is not the commit: what was left out can still be picked. */
static errint_t record_picks(struct lfs_job *job, const struct range *r, struct lfs_error *err) {
    unsigned only = job->context->command->policy.only;
    if (!only)
        return add_picks(job, r, err);
    return only & LFS_CLASS_ROWS ? lfs_job_add_partial(job, err) : 0;
}

/* Where a range begins, by which its commits are found again. */
static errint_t note_first(struct lfs_job *job, const struct range *r, struct lfs_error *err) {
    struct lfs_property *first = LFS_NEW(job->arena, struct lfs_property);
    if (first)
        *first = (struct lfs_property){LFS_PROPERTY_SOURCE_FIRST, lfs_sprintf(job->arena, "%" PRIu64, r->first)};
    job->extra_property = first;
    return first && first->value ? 0 : lfs_fail_nomem(err);
}

/* Without the commits at either end that the target holds: what it did to them since stays as it is. One in between can
 * not be left out of a single version; its files are known again. */
static struct range not_held(const struct lfs_job *job, const struct range *whole) {
    struct range r = *whole;
    while (r.first < r.last && is_held(job, &r, r.first))
        r.first++;
    while (r.last > r.first && is_held(job, &r, r.last))
        r.last--;
    return r;
}

/* A compaction among the commits of one version would bring rows along that the target never had, dead or alive in one
 * file with those that are picked; what a later merge makes of them nobody can tell. */
static errint_t refuse_compaction(struct lfs_job *job, const struct range *r, struct lfs_error *err) {
    for (uint64_t v = r->first; r->first < r->last && v <= r->last; v++) {
        struct lfs_version *version;
        LFS_TRY(lfs_lines_version(&job->context->lines, r->branch.uuid, v, &version, err));
        const LanceTransaction *t = version->manifest.transaction;
        bool rewrite = t && t->operation_case == LANCE__TABLE__TRANSACTION__OPERATION_REWRITE;
        lfs_version_release(version);
        if (rewrite)
            return lfs_fail(err, LFS_E_UNSUPPORTED,
                            "a compaction in the range, %s@%" PRIu64 ", rewrote its rows: pick the commits before and behind it apart",
                            r->branch.name, v);
    }
    return 0;
}

static int prepare(struct lfs_job *job, struct lfs_error *err) {
    struct range range = not_held(job, job->argument);
    const struct range *r = &range;
    bool all_held = true;
    job->source.branch = r->branch;
    LFS_TRY(lfs_lines_version(&job->context->lines, r->branch.uuid, r->last, &job->source.version, err));
    if (r->first < r->last) {
        LFS_TRY(note_first(job, r, err));
        job->source_label = lfs_sprintf(job->arena, "%s@%" PRIu64 "..%" PRIu64, r->branch.name, r->first, r->last);
    }
    for (uint64_t v = r->first; v <= r->last; v++)
        all_held &= is_held(job, r, v);
    if (all_held) {
        lfs_job_say_unchanged(job, "up-to-date");
        return LFS_NOTHING_TO_DO;
    }
    LFS_TRY(refuse_compaction(job, r, err));
    lfs_vector_init(&job->base.vector, job->arena);
    job->base.line = r->branch.uuid;
    LFS_TRY(lfs_lines_version(&job->context->lines, r->branch.uuid, r->first - 1, &job->base.version, err));
    LFS_TRY(lfs_state_vector(&r->branch, job->base.version, &job->base.vector, err));
    job->ours_is_base = false;
    LFS_TRY(lfs_vector_join(&job->vector, &job->target_vector, err));
    LFS_TRY(record_picks(job, r, err));
    return LFS_PREPARED;
}

static const struct lfs_job_spec spec = {.operation = "cherry-pick", .is_pick = true, .prepare = prepare};
static const struct lfs_job_spec skipping = {.operation = "cherry-pick", .is_pick = true, .skips_empty = true, .prepare = prepare};

/* --- which commits --- */

static bool is_number(const char *text) { return *text && text[strspn(text, "0123456789")] == 0; }

/* "feature@5", "feature@3..5", "feature@3..feature@5", "tags/a..tags/b"; "feature" is its newest commit. */
static errint_t parse_range(struct lfs_verb_context *context, const char *word, struct range *out,
                            struct lfs_error *err) {
    const char *dots = strstr(word, "..");
    char *left = lfs_strndup(context->arena, word, dots ? (size_t)(dots - word) : strlen(word));
    struct lfs_branch branch;
    if (!left)
        return lfs_fail_nomem(err);
    LFS_TRY(lfs_verb_ref(context, left, &out->branch, &out->first, err));
    out->last = out->first;
    if (!dots)
        return 0;
    const char *right = dots + 2;
    bool named = lfs_verb_is_tag(right) || strchr(right, '@');
    if (!(lfs_verb_is_tag(left) || strchr(left, '@')) || !(named || is_number(right)))
        return lfs_fail(err, LFS_E_USAGE, "%s: a range is written as in feature@3..5", word);
    if (!named) {
        LFS_TRY(lfs_command_number(right, word, &out->last, err));
    } else {
        LFS_TRY(lfs_verb_ref(context, right, &branch, &out->last, err));
        if (strcmp(branch.name, out->branch.name))
            return lfs_fail(err, LFS_E_USAGE, "%s: a range is of one branch, as in feature@3..5", word);
    }
    return out->first <= out->last ? 0 : lfs_fail(err, LFS_E_USAGE, "%s: the range ends before it begins", word);
}

static errint_t check_range(struct lfs_verb_context *context, const struct range *r, struct lfs_error *err) {
    uint64_t tip;
    enum lfs_naming naming;
    uint64_t first = lfs_branch_first(&r->branch) + 1;
    if (!*r->branch.uuid)
        return lfs_fail(err, LFS_E_UNSUPPORTED, "branch %s has no identifier (it was made by an old Lance)", r->branch.name);
    if (r->first < first)
        return lfs_fail(err, LFS_E_USAGE, "version %" PRIu64 " begins %s and changes nothing: its commits begin with %" PRIu64,
                        r->first, r->branch.name, first);
    LFS_TRY(lfs_dataset_tip(context->call->dataset, r->branch.dir, &tip, &naming, err));
    if (r->last > tip)
        return lfs_fail(err, LFS_E_NOT_FOUND, "there is no version %" PRIu64 " of %s: its newest is %" PRIu64, r->last,
                        r->branch.name, tip);
    return 0;
}

/* Each commit of the range as a version of its own. */
static errint_t pick_each(struct lfs_verb_context *context, const struct range *r, struct lfs_error *err) {
    struct lfs_arena *arena = context->arena;
    size_t n = 0;
    if (r->last - r->first >= LFS_SERIES_STEPS_MAX)
        return lfs_fail(err, LFS_E_TOO_BIG, "more than %u commits at once: pick a part of them first, or squash them",
                        LFS_SERIES_STEPS_MAX);
    struct lfs_series series = {
        .target = context->call->branch,
        .source = lfs_sprintf(arena, "%s@%" PRIu64 "..%" PRIu64, r->branch.name, r->first, r->last),
        .steps = LFS_NEW_ARRAY(arena, struct lfs_series_step, r->last - r->first + 1),
    };
    struct range *each = LFS_NEW_ARRAY(arena, struct range, r->last - r->first + 1);
    if (!series.source || !series.steps || !each)
        return lfs_fail_nomem(err);
    for (uint64_t v = r->first; v <= r->last; v++, n++) {
        each[n] = (struct range){r->branch, v, v};
        series.steps[n] = (struct lfs_series_step){
            .spec = &skipping, .argument = &each[n], .label = lfs_sprintf(arena, "%s@%" PRIu64, r->branch.name, v)};
        if (!series.steps[n].label)
            return lfs_fail_nomem(err);
    }
    series.n_steps = n;
    return lfs_series_run(context, &series, err);
}

errint_t lfs_verb_cherry_pick(struct lfs_verb_context *context, struct lfs_error *err) {
    const struct lfs_command *c = context->command;
    struct range r;
    if (c->n_words != 1)
        return lfs_fail(err, LFS_E_USAGE, "name one commit (feature@5) or range (feature@3..5)");
    LFS_TRY(parse_range(context, c->words[0], &r, err));
    LFS_TRY(check_range(context, &r, err));
    if (r.first < r.last && !c->squash && c->policy.only)
        return lfs_fail(err, LFS_E_USAGE, "only= is of one version: pick one commit, or add squash");
    if (r.first < r.last && !c->squash)
        return pick_each(context, &r, err);
    return lfs_job_run(context, &spec, context->call->branch, &r, err);
}
