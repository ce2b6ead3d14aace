/* SPDX-License-Identifier: Apache-2.0 */
/* revert VERSION takes back what one version of this branch changed; undo takes back its last merges, lineage and all, so
 * that they can be made again (merge-semantics section 2). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/cleanup.h"
#include "verbs/job.h"

/* Take back what happened between two versions of the branch itself, `to` being the older. */
struct way {
    uint64_t from, to;
    bool with_lineage; /* what `to` did not hold yet is forgotten, so that it can be merged again */
};

/* Marks that nothing has changed since go back with the content. */
static void restore_marks(struct lfs_job *job) {
    const struct lfs_version *undone = job->base.version, *before = job->source.version, *now = job->target.version;
    if (strcmp(lfs_version_picked(undone), lfs_version_picked(now)) == 0)
        job->picked = lfs_strdup(job->arena, lfs_version_picked(before));
    if (strcmp(lfs_version_partial(undone), lfs_version_partial(now)) == 0)
        job->partial = lfs_strdup(job->arena, lfs_version_partial(before));
}

/* Where the version that is taken back had taken lineage back itself (an undo, a restore), what it forgot is there again. */
static errint_t remember(struct lfs_job *job, struct lfs_error *err) {
    for (size_t i = 0; i < job->before.count; i++) {
        const struct lfs_vector_entry *e = &job->before.entries[i];
        if (e->version > lfs_vector_get(&job->base.vector, e->line))
            LFS_TRY(lfs_vector_raise(&job->vector, e->line, e->version, err));
    }
    return 0;
}

static int go_back(struct lfs_job *job, const struct way *way, struct lfs_error *err) {
    const struct lfs_branch *branch = &job->target.branch;
    job->source.branch = *branch;
    job->source_label = lfs_sprintf(job->arena, "%s@%" PRIu64, branch->name, way->from);
    lfs_vector_init(&job->base.vector, job->arena);
    lfs_vector_init(&job->before, job->arena);
    job->backward = true;
    job->base.line = branch->uuid;
    LFS_TRY(lfs_lines_version(&job->context->lines, branch->uuid, way->from, &job->base.version, err));
    LFS_TRY(lfs_lines_version(&job->context->lines, branch->uuid, way->to, &job->source.version, err));
    LFS_TRY(lfs_state_vector(branch, job->base.version, &job->base.vector, err));
    LFS_TRY(lfs_state_vector(branch, job->source.version, &job->before, err));
    job->ours_is_base = way->from == job->target.version->number;
    LFS_TRY(lfs_vector_join(&job->vector, way->with_lineage ? &job->before : &job->target_vector, err));
    if (way->with_lineage)
        restore_marks(job);
    else
        LFS_TRY(remember(job, err));
    return LFS_PREPARED;
}

static int prepare_revert(struct lfs_job *job, struct lfs_error *err) {
    const uint64_t *version = job->argument;
    const struct lfs_branch *b = &job->target.branch;
    uint64_t first = lfs_branch_first(b);
    if (*version <= first)
        return lfs_fail(err, LFS_E_USAGE, "version %" PRIu64 " begins %s and cannot be taken back", *version, b->name);
    if (*version > job->target.version->number)
        return lfs_fail(err, LFS_E_NOT_FOUND, "there is no version %" PRIu64 " of %s: its newest is %" PRIu64, *version,
                        b->name, job->target.version->number);
    struct way way = {*version, *version - 1, false};
    return go_back(job, &way, err);
}

static const struct lfs_job_spec revert_spec = {.operation = "revert", .skips_empty = true, .prepare = prepare_revert};

/* "7", "main@7" or a tag, which must be of this branch. */
static errint_t find_version(struct lfs_verb_context *context, const char *word, uint64_t *version,
                             struct lfs_error *err) {
    struct lfs_branch branch;
    if (word[strspn(word, "0123456789")] == 0 || (!lfs_verb_is_tag(word) && !strchr(word, '@')))
        return lfs_command_number(word, "a version", version, err);
    LFS_TRY(lfs_verb_ref(context, word, &branch, version, err));
    if (strcmp(branch.name, context->call->branch) == 0)
        return 0;
    return lfs_fail(err, LFS_E_USAGE, "%s is a version of %s, not of this branch", word, branch.name);
}

errint_t lfs_verb_revert(struct lfs_verb_context *context, struct lfs_error *err) {
    const struct lfs_command *c = context->command;
    uint64_t version;
    if (c->n_words != 1)
        return lfs_fail(err, LFS_E_USAGE, "name the version of this branch to take back");
    LFS_TRY(find_version(context, c->words[0], &version, err));
    return lfs_job_run(context, &revert_spec, context->call->branch, &version, err);
}

/* --- undo --- */

bool lfs_verb_was_undone(const struct lfs_list *undone, uint64_t version) {
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, version);
    for (size_t i = 0; i < undone->count; i++)
        for (const char *p = undone->items[i]; *p; p += p[strcspn(p, ",")] ? strcspn(p, ",") + 1 : strcspn(p, ","))
            if (strncmp(p, text, strlen(text)) == 0 && (p[strlen(text)] == ',' || !p[strlen(text)]))
                return true;
    return false;
}

/* What undo looks for on its way back from the tip. */
struct search {
    struct lfs_list undone; /* of char */
    uint64_t left;          /* merges still to find */
    uint64_t newest, oldest;
    bool others; /* other commits since the oldest merge found so far */
    bool rebased; /* the line begins with a rebase, before which there is nothing of it to undo */
    struct lfs_buf list;
};

static errint_t look_at(struct lfs_job *job, uint64_t number, struct search *s, struct lfs_error *err) {
    struct lfs_version *version;
    LFS_TRY(lfs_lines_version(&job->context->lines, job->target.branch.uuid, number, &version, err));
    const LanceTransaction *t = version->manifest.transaction;
    const char *operation = lfs_transaction_property(t, LFS_PROPERTY_OPERATION);
    const char *undone = lfs_transaction_property(t, LFS_PROPERTY_UNDONE);
    errint_t result = 0;
    if (operation && strcmp(operation, LFS_OPERATION_REBASE) == 0) {
        s->rebased = true;
    } else if (operation && strcmp(operation, LFS_OPERATION_UNDO_REBASE) == 0) {
        ; /* it changed nothing */
    } else if (undone) {
        result = lfs_list_add(&s->undone, job->arena, lfs_strdup(job->arena, undone)) ? 0 : lfs_fail_nomem(err);
    } else if (operation && strcmp(operation, "merge") == 0) {
        if (!lfs_verb_was_undone(&s->undone, number)) {
            s->newest = s->newest ? s->newest : number;
            s->oldest = number;
            s->left--;
            lfs_buf_printf(&s->list, "%s%" PRIu64, s->list.length ? "," : "", number);
        }
    } else if (s->oldest) {
        s->others = true;
    }
    lfs_version_release(version);
    return result;
}

static errint_t find_merges(struct lfs_job *job, struct search *s, struct lfs_error *err) {
    const struct lfs_branch *b = &job->target.branch;
    uint64_t first = lfs_branch_first(b), steps = job->context->command->steps;
    s->left = steps;
    for (uint64_t v = job->target.version->number; v > first && s->left && !s->rebased; v--)
        LFS_TRY(look_at(job, v, s, err));
    if (s->left && s->rebased)
        return lfs_fail(err, LFS_E_UNSUPPORTED,
                        "%s was rebased, and other commits were made since: going back to the old line would lose them", b->name);
    if (s->left)
        return lfs_fail(err, LFS_E_NOT_FOUND, "%s has no %s to undo", b->name, steps > 1 ? "so many merges" : "merge");
    if (s->others)
        return lfs_fail(err, LFS_E_UNSUPPORTED, "other commits of %s lie between those merges: undo them one at a time",
                        b->name);
    lfs_buf_add(&s->list, "", 1);
    return lfs_buf_check(&s->list, err);
}

static int prepare_undo(struct lfs_job *job, struct lfs_error *err) {
    struct search s = {0};
    errint_t result = find_merges(job, &s, err);
    struct way way = {s.newest, s.oldest - 1, true};
    struct lfs_property *undone = LFS_NEW(job->arena, struct lfs_property);
    if (result == 0 && undone)
        *undone = (struct lfs_property){LFS_PROPERTY_UNDONE, lfs_strdup(job->arena, (const char *)s.list.data)};
    job->extra_property = undone;
    lfs_buf_free(&s.list);
    LFS_TRY(result);
    return undone && undone->value ? go_back(job, &way, err) : lfs_fail_nomem(err);
}

static const struct lfs_job_spec undo_spec = {.operation = "undo", .prepare = prepare_undo};

errint_t lfs_verb_undo(struct lfs_verb_context *context, struct lfs_error *err) {
    if (context->command->n_words)
        return lfs_fail(err, LFS_E_USAGE, "undo takes no ref; steps=N undoes the last N merges");
    bool rebased;
    LFS_TRY(lfs_verb_is_rebased(context, &rebased, err));
    if (rebased && context->command->steps == 1)
        return lfs_verb_undo_rebase(context, err);
    if (rebased)
        return lfs_fail(err, LFS_E_USAGE, "the last thing to undo is a rebase, which is a step of its own: steps=1");
    return lfs_job_run(context, &undo_spec, context->call->branch, NULL, err);
}
