/* SPDX-License-Identifier: Apache-2.0 */
/* The verb merge: refs resolved -> bases -> merge3 -> plan -> commit -> answer, again while other writers win. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "merge/merge3.h"
#include "util/cleanup.h"
#include "util/limits.h"
#include "util/log.h"
#include "verbs/answer.h"
#include "verbs/reader.h"
#include "verbs/verb.h"

/* One try against one tip of the target. */
struct attempt {
    struct lfs_verb_context *context;
    struct lfs_arena *arena;
    struct lfs_state target, source;
    struct lfs_vector target_vector, source_vector;
    struct lfs_base *bases;
    size_t n_bases;
    struct lfs_reader reader;
    struct lfs_plan plan;
    bool ours_is_base;
};

static void attempt_free(struct attempt *a) {
    lfs_plan_release(&a->plan);
    lfs_reader_release(&a->reader);
    lfs_bases_release(a->bases, a->n_bases);
    lfs_version_release(a->target.version);
    lfs_version_release(a->source.version);
}

static const char *label(const struct attempt *a, const char *name, uint64_t version) {
    return lfs_sprintf(a->arena, "%s@%" PRIu64, name, version);
}

static void answer_refs(struct attempt *a) {
    struct lfs_buf *out = a->context->answer;
    const char *source = label(a, a->source.branch.name, a->source.version->number),
               *target = label(a, a->target.branch.name, a->target.version->number);
    lfs_answer_text(out, "source", source ? source : "");
    lfs_answer_text(out, "target", target ? target : "");
    if (a->n_bases == 1) {
        const struct lfs_branch *b = lfs_lines_branch(&a->context->lines, a->bases[0].line);
        const char *base = label(a, b ? b->name : a->bases[0].line, a->bases[0].version->number);
        lfs_answer_text(out, "base", base ? base : "");
    }
}

static errint_t resolve(struct attempt *a, const char *target, const char *source, struct lfs_error *err) {
    const struct lfs_command *c = a->context->command;
    LFS_TRY(lfs_verb_tip(a->context, target, &a->target, err));
    LFS_TRY(lfs_verb_state(a->context, source, &a->source, err));
    if (c->has_expect && c->expect != a->target.version->number)
        return lfs_fail(err, LFS_E_STALE, "%s is at version %" PRIu64 ", not at %" PRIu64 " as expected", a->target.branch.name,
                        a->target.version->number, c->expect);
    lfs_vector_init(&a->target_vector, a->arena);
    lfs_vector_init(&a->source_vector, a->arena);
    LFS_TRY(lfs_state_vector(&a->target.branch, a->target.version, &a->target_vector, err));
    return lfs_state_vector(&a->source.branch, a->source.version, &a->source_vector, err);
}

static errint_t make_plan(struct attempt *a, struct lfs_error *err) {
    LFS_TRY(lfs_merge_bases(&a->context->lines, &a->target_vector, &a->source_vector, &a->bases, &a->n_bases, err));
    if (a->n_bases > 1)
        return lfs_fail(err, LFS_E_UNSUPPORTED,
                        "%s and %s have %zu merge bases (they were merged crosswise): not merged yet",
                        a->target.branch.name, a->source.branch.name, a->n_bases);
    a->ours_is_base = lfs_vector_within(&a->target_vector, &a->bases[0].vector);
    if (a->context->command->ff == LFS_FF_ONLY && !a->ours_is_base)
        return lfs_fail(err, LFS_E_CONFLICT, "ff=only: %s has moved since %s left it, so this is no fast-forward",
                        a->target.branch.name, a->source.branch.name);
    lfs_reader_init(&a->reader, &a->context->lines, &a->target, &a->source, &a->bases[0].vector);
    struct lfs_merge_input input = {
        .base = a->bases[0].version,
        .ours = a->target.version,
        .theirs = a->source.version,
        .ours_is_base = a->ours_is_base,
        .ours_name = a->target.branch.name,
        .theirs_name = a->source.branch.name,
        .reader = &a->reader.reader,
    };
    return lfs_merge3(&input, a->arena, &a->plan, err);
}

static const char *outcome_word(const struct attempt *a) {
    switch (a->plan.outcome) {
    case LFS_OUTCOME_MERGED: return "merged";
    case LFS_OUTCOME_FAST_FORWARD: return a->context->command->ff == LFS_FF_NEVER ? "merged" : "fast-forward";
    case LFS_OUTCOME_EMPTY: return "empty-merge";
    case LFS_OUTCOME_CONFLICT: return "conflict";
    case LFS_OUTCOME_REFUSED: return "refused";
    }
    return "error";
}

static errint_t say_blocked(struct attempt *a, struct lfs_error *err) {
    struct lfs_buf *out = a->context->answer;
    lfs_answer_text(out, "result", outcome_word(a));
    answer_refs(a);
    if (a->plan.outcome == LFS_OUTCOME_REFUSED) {
        lfs_answer_text(out, "reason", a->plan.refusal);
        lfs_answer_plan(out, &a->plan);
        return lfs_fail(err, LFS_E_UNSUPPORTED, "%s", a->plan.refusal);
    }
    lfs_answer_plan(out, &a->plan);
    return lfs_fail(err, LFS_E_CONFLICT, "%zu conflicts", a->plan.n_conflicts);
}

/* Theirs' fragment ids -> ids on the target, as "1:6,2:7". */
static errint_t fragment_map(const struct attempt *a, struct lfs_buf *out, struct lfs_error *err) {
    for (size_t i = 0; i < a->plan.n_fragments; i++) {
        const struct lfs_plan_fragment *f = &a->plan.fragments[i];
        if (f->is_new && f->id != f->record->id)
            lfs_buf_printf(out, "%s%" PRIu64 ":%" PRIu64, out->length ? "," : "", f->record->id, f->id);
    }
    lfs_buf_add(out, "", 1);
    return lfs_buf_check(out, err);
}

static errint_t properties(const struct attempt *a, const char *map, struct lfs_property **out, size_t *n_out,
                           struct lfs_error *err) {
    const struct lfs_command *c = a->context->command;
    struct lfs_property *list = LFS_NEW_ARRAY(a->arena, struct lfs_property, c->n_properties + 6);
    size_t n = 0;
    if (!list)
        return lfs_fail_nomem(err);
    list[n++] = (struct lfs_property){"lancefs.op", "merge"};
    list[n++] = (struct lfs_property){"lancefs.source", label(a, a->source.branch.name, a->source.version->number)};
    list[n++] = (struct lfs_property){LFS_PROPERTY_SOURCE_LINE, a->source.branch.uuid};
    list[n++] = (struct lfs_property){LFS_PROPERTY_SOURCE_VERSION,
                                      lfs_sprintf(a->arena, "%" PRIu64, a->source.version->number)};
    if (*map)
        list[n++] = (struct lfs_property){"lancefs.map.fragments", map};
    if (c->message)
        list[n++] = (struct lfs_property){"__lance_commit_message", c->message};
    for (size_t i = 0; i < c->n_properties; i++)
        list[n++] = c->properties[i];
    *out = list;
    *n_out = n;
    return list[1].value && list[3].value ? 0 : lfs_fail_nomem(err);
}

static errint_t commit(struct attempt *a, struct lfs_commit_result *result, struct lfs_error *err) {
    const struct lfs_verb_call *call = a->context->call;
    const struct lfs_command *c = a->context->command;
    LFS_AUTO_BUF map = {0};
    struct lfs_property *list = NULL;
    size_t n = 0;
    LFS_TRY(fragment_map(a, &map, err));
    LFS_TRY(properties(a, (const char *)map.data, &list, &n, err));
    LFS_TRY(lfs_vector_join(&a->target_vector, &a->source_vector, err));
    struct lfs_commit_request request = {
        .dataset = call->dataset,
        .target = &a->target.branch,
        .source = &a->source.branch,
        .target_tip = a->target.version,
        .source_version = a->source.version,
        .plan = &a->plan,
        .vector = &a->target_vector,
        .naming = a->target.naming,
        .mode = c->has_mode ? c->mode : call->settings->mode,
        .sync = call->settings->sync,
        .properties = list,
        .n_properties = n,
        .cancel = call->cancel,
    };
    return lfs_commit_plan(&request, result, err);
}

static void say_committed(struct attempt *a, const struct lfs_commit_result *r) {
    struct lfs_buf *out = a->context->answer;
    lfs_answer_text(out, "result", outcome_word(a));
    answer_refs(a);
    lfs_answer_number(out, "version", r->version);
    lfs_answer_text(out, "transaction", r->transaction);
    if (r->copied_files) {
        char *note = lfs_sprintf(a->arena, "%" PRIu64 " files could not be linked and were copied", r->copied_files);
        lfs_list_add(&a->plan.notes, a->arena, note);
    }
    lfs_answer_plan(out, &a->plan);
    lfs_log(LFS_LOG_INFO, "merge target=%s version=%" PRIu64 " source=%s@%" PRIu64 " result=%s", a->target.branch.name,
            r->version, a->source.branch.name, a->source.version->number, outcome_word(a));
}

static void say_unchanged(struct attempt *a, const char *result, const char *would) {
    struct lfs_buf *out = a->context->answer;
    lfs_answer_text(out, "result", result);
    if (would)
        lfs_answer_text(out, "would-be", would);
    answer_refs(a);
    if (would)
        lfs_answer_plan(out, &a->plan);
}

static errint_t try_once(struct lfs_verb_context *context, const char *target, const char *source,
                         struct lfs_error *err) {
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    LFS_CLEANUP(attempt_free) struct attempt a = {.context = context, .arena = arena};
    struct lfs_commit_result result = {0};
    if (!arena)
        return lfs_fail_nomem(err);
    LFS_TRY(resolve(&a, target, source, err));
    if (lfs_vector_within(&a.source_vector, &a.target_vector)) {
        say_unchanged(&a, "up-to-date", NULL);
        return 0;
    }
    LFS_TRY(make_plan(&a, err));
    if (context->call->cancel && atomic_load(context->call->cancel))
        return lfs_fail(err, LFS_E_INTERRUPTED, "interrupted: nothing was committed");
    bool blocked = a.plan.outcome == LFS_OUTCOME_CONFLICT || a.plan.outcome == LFS_OUTCOME_REFUSED;
    if (blocked)
        return say_blocked(&a, err);
    /* A fast-forward to the same content brings nothing, and the next one will find the same base: two branches that
     * merge each other in turn come to rest. */
    if (a.ours_is_base && a.plan.outcome == LFS_OUTCOME_EMPTY) {
        say_unchanged(&a, "up-to-date", NULL);
        return 0;
    }
    if (context->command->dry_run) {
        say_unchanged(&a, "dry-run", outcome_word(&a));
        return 0;
    }
    LFS_TRY(commit(&a, &result, err));
    say_committed(&a, &result);
    return 0;
}

static errint_t take_words(struct lfs_verb_context *context, const char **target, const char **source,
                           struct lfs_error *err) {
    const struct lfs_command *c = context->command;
    size_t least = context->call->branch ? 1 : 2;
    if (c->n_words < least)
        return lfs_fail(err, LFS_E_USAGE, least == 1 ? "name the branch to merge" : "name the source and the target branch");
    if (c->n_words > least)
        return lfs_fail(err, LFS_E_UNSUPPORTED, "several sources in one merge are not there yet: merge one after the other");
    *source = c->words[0];
    *target = context->call->branch ? context->call->branch : c->words[1];
    return 0;
}

errint_t lfs_verb_merge(struct lfs_verb_context *context, struct lfs_error *err) {
    const char *target = NULL, *source = NULL;
    struct lfs_branch branch;
    LFS_TRY(take_words(context, &target, &source, err));
    if (!context->call->branch) {
        LFS_TRY(lfs_verb_branch(context, target, &branch, err));
        target = branch.name;
    }
    for (unsigned i = 0; i < LFS_COMMIT_TRIES_MAX; i++) {
        errint_t result = try_once(context, target, source, err);
        if (result != -EEXIST)
            return result;
        if (context->command->has_expect)
            break;
    }
    return lfs_fail(err, LFS_E_RACE, "other writers kept winning the race for the next version: try again");
}
