/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rebase ONTO: the commits of a branch that ONTO lacks are replayed on a new line that begins at ONTO, then the branch's
 * name moves to that line (merge-semantics sections 2 and 9). The new line is made aside, in the change's directory, with
 * the data set's lock held alone; stock Lance, which knows no lock, may commit to the branch meanwhile: then all begins anew.
 *
 * Readers are not disturbed: only the directories of versions change places, and files keep their names (switch.c). The
 * new line ends with a restatement that is newer than any version of the old one. A stock writer that has a version of
 * the old line open would apply its change by fragment ids to whatever has them now; it finds the restatement among the
 * versions that it has not seen, which it lets nothing pass, and must open the branch anew (lance-format section 8).
 */
#include <inttypes.h>
#include <string.h>

#include "store/file.h"
#include "util/cleanup.h"
#include "util/limits.h"
#include "util/log.h"
#include "verbs/answer.h"
#include "verbs/found.h"
#include "verbs/rebase_impl.h"
#include "verbs/series.h"

/* Is ONTO the version that the branch began at, or one before it on its way from main, or one of its own? */
static bool is_based(const struct lfs_rebase *r) {
    const struct lfs_branch *b = &r->branch.branch, *onto = &r->onto.branch;
    uint64_t version = r->onto.version->number;
    size_t depth = onto->n_forks;
    while (depth > 0 && version <= onto->forks[depth - 1].version) /* a first version is one of the parent's */
        depth--;
    const struct lfs_base base = {.line = depth ? onto->forks[depth - 1].uuid : "main", .version = r->onto.version};
    return lfs_job_comes_from(b, &base);
}

static errint_t resolve(struct lfs_rebase *r, struct lfs_error *err) {
    struct lfs_arena *arena = r->context->arena;
    LFS_TRY(lfs_rebase_read_branch(r->context, &r->branch, err));
    LFS_TRY(lfs_verb_state(r->context, r->context->command->words[0], &r->onto, err));
    r->source = lfs_sprintf(arena, "%s@%" PRIu64, r->branch.branch.name, r->branch.version->number);
    r->onto_label = lfs_sprintf(arena, "%s@%" PRIu64, r->onto.branch.name, r->onto.version->number);
    if (!r->source || !r->onto_label)
        return lfs_fail_nomem(err);
    if (strcmp(r->onto.branch.name, "main") && !*r->onto.branch.uuid)
        return lfs_fail(err, LFS_E_UNSUPPORTED, "branch %s has no identifier (it was made by an old Lance)",
                        r->onto.branch.name);
    return 0;
}

static void say_based(const struct lfs_rebase *r) {
    struct lfs_buf *out = r->context->answer;
    lfs_answer_text(out, "result", "up-to-date");
    lfs_answer_text(out, "source", r->source);
    lfs_answer_text(out, "onto", r->onto_label);
}

/* --- the new line --- */

/* Its versions can be found like those of any branch, under the name that it will have. Until something is on the disk
 * its directory is the one of its parent, at the version that it begins with. */
static errint_t begin_line(struct lfs_rebase *r, struct lfs_error *err) {
    struct lfs_arena *arena = r->context->arena;
    struct lfs_lines *lines = &r->inner.lines;
    const struct lfs_branch *onto = &r->onto.branch;
    uint64_t first = r->onto.version->number;
    char *uuid = lfs_branch_uuid(arena);
    struct lfs_fork *forks = uuid ? lfs_branch_forks(onto, first, uuid, arena) : NULL;
    struct lfs_branch *grown = LFS_NEW_ARRAY(arena, struct lfs_branch, lines->n_branches + 1);
    if (!forks || !grown)
        return lfs_fail_nomem(err);
    r->aside = (struct lfs_aside){
        .branch = {.name = r->branch.branch.name,
                   .dir = onto->dir,
                   .uuid = uuid,
                   .parent_uuid = onto->uuid,
                   .parent_name = onto->name,
                   .parent_version = first,
                   .forks = forks,
                   .n_forks = onto->n_forks + 1},
        .version = first,
    };
    memcpy(grown, lines->branches, lines->n_branches * sizeof *grown);
    grown[lines->n_branches++] = r->aside.branch;
    lines->branches = grown;
    r->inner.aside = &r->aside;
    return 0;
}

static void set_dir(struct lfs_rebase *r, const char *dir) {
    struct lfs_lines *lines = &r->inner.lines;
    r->aside.branch.dir = lines->branches[lines->n_branches - 1].dir = dir;
    r->aside.version = 0;
}

/* All is planned: its first version, and its ref, are written aside. */
static errint_t stage(void *argument, struct lfs_error *err) {
    struct lfs_rebase *r = argument;
    struct lfs_change *c = r->change;
    LFS_AUTO_BUF json = {0};
    struct lfs_branch_ref ref;
    struct lfs_branch_request request = {.dataset = c->dataset,
                                         .name = r->branch.branch.name,
                                         .parent = &r->onto.branch,
                                         .from = r->onto.version,
                                         .root_string = lfs_change_root_string(c, r->onto.version),
                                         .uuid = r->aside.branch.uuid,
                                         .sync = c->sync,
                                         .cancel = c->names->cancel};
    LFS_TRY(lfs_change_make_dir(c, err));
    request.directory = lfs_join(c->arena, c->dir, LFS_CHANGE_NEW);
    if (!request.directory || !request.root_string)
        return lfs_fail_nomem(err);
    LFS_TRY(lfs_branch_stage(&request, c->arena, &ref, err));
    LFS_TRY(lfs_branch_ref_encode(&ref, &json, err));
    LFS_TRY(lfs_write_new(c->root, c->dir, LFS_CHANGE_NEW_REF, &json, c->sync, err));
    set_dir(r, request.directory);
    return 0;
}

static errint_t ask(void *argument, struct lfs_job *const *jobs, size_t n, struct lfs_error *err) {
    return lfs_rebase_ask(argument, jobs, n, NULL, err);
}

static errint_t no_more(void *argument, struct lfs_error *err) {
    (void)argument;
    (void)err;
    return 0;
}

static errint_t not_again(void *argument, struct lfs_job *const *jobs, size_t n, struct lfs_error *err) {
    (void)jobs;
    (void)n;
    return no_more(argument, err);
}

/* What the new line does not hold yet of the branch's tip; `first`: nothing of it has been made. */
static errint_t replay(struct lfs_rebase *r, const struct lfs_branch *from, const struct lfs_version *version,
                       bool first, struct lfs_error *err) {
    const struct lfs_series_aside aside = {r->onto_label,           "rebased", "fast-forward", first ? ask : not_again,
                                           first ? stage : no_more, r};
    struct lfs_series series = {.target = r->branch.branch.name, .source = r->source, .aside = &aside};
    struct lfs_vector held;
    lfs_vector_init(&held, r->context->arena);
    LFS_TRY(lfs_state_vector(from, version, &held, err));
    LFS_TRY(lfs_rebase_steps(&r->inner, &r->branch.branch, r->branch.version->number, &held, &series, err));
    return lfs_series_run(&r->inner, &series, err);
}

/* What was committed to the branch while its new line was made comes on top of that. */
static errint_t catch_up(struct lfs_rebase *r, struct lfs_error *err) {
    struct lfs_state now = {0};
    LFS_AUTO_BUF said = {0};
    struct lfs_buf *answer = r->inner.answer;
    LFS_TRY(lfs_verb_tip(r->context, r->branch.branch.name, &now, err));
    struct lfs_version *before = r->branch.version;
    if (strcmp(now.branch.uuid, r->branch.branch.uuid) || now.version->number < before->number) {
        lfs_version_release(now.version);
        return lfs_fail(err, LFS_E_STALE, "branch %s is another one than it was when the command began",
                        now.branch.name);
    }
    r->branch.version = now.version;
    r->source = lfs_sprintf(r->context->arena, "%s@%" PRIu64, now.branch.name, now.version->number);
    r->inner.answer = &said;
    errint_t result = r->source ? replay(r, &now.branch, before, false, err) : lfs_fail_nomem(err);
    r->inner.answer = answer;
    if (result < 0) { /* that is what is the matter */
        lfs_buf_clear(answer);
        lfs_buf_add(answer, said.data, said.length);
    }
    lfs_version_release(before);
    return result;
}

/* --- rebase --- */

/* Everybody else's commits until the last moment are on the new line when it gets the name. */
static errint_t move_name(struct lfs_rebase *r, bool expected, struct lfs_error *err) {
    LFS_TRY(lfs_rebase_link_inherited(r, err));
    for (unsigned i = 0; i < LFS_COMMIT_TRIES_MAX; i++) {
        LFS_TRY(lfs_rebase_take_number(r, err));
        LFS_TRY(lfs_rebase_restate(r, LFS_OPERATION_REBASE, true, err));
        errint_t result = lfs_switch_line(r->change, &r->branch.branch, r->branch.version->number, err);
        if (result != -EEXIST || expected)
            return result == -EEXIST ? lfs_fail(err, LFS_E_STALE, "%s was committed to meanwhile", r->source) : result;
        if (r->context->call->hooks) { /* nobody was asked about that */
            r->again = true;
            break;
        }
        LFS_TRY(catch_up(r, err));
        r->command.squash = true; /* from now on all of them as one version: a busy writer is quicker than a replay */
    }
    return lfs_fail(err, LFS_E_RACE, "other writers kept committing to %s: try again", r->branch.branch.name);
}

static errint_t rebase(struct lfs_rebase *r, struct lfs_buf *said, struct lfs_error *err) {
    const struct lfs_command *c = r->context->command;
    struct lfs_buf *out = r->context->answer;
    LFS_TRY(resolve(r, err));
    if (is_based(r)) {
        say_based(r);
        return 0;
    }
    LFS_TRY(lfs_rebase_check_standers(r->context, &r->branch.branch, err));
    r->command = *c;
    r->command.has_expect = false; /* it was of the branch, not of the new line */
    r->command.has_mode = true;
    r->command.mode = LFS_PLACE_LINK; /* merge-semantics section 9 */
    r->inner = *r->context;
    r->inner.command = &r->command;
    r->inner.answer = said;
    LFS_TRY(begin_line(r, err));
    uint64_t first = r->branch.version->number;
    errint_t result = replay(r, &r->onto.branch, r->onto.version, true, err);
    if (result == -ECANCELED && r->context->found) /* what stops it waits on the branch, not on the line made aside */
        r->context->found->line = r->branch.branch.uuid;
    if (result == 0 && !c->dry_run)
        result = move_name(r, c->has_expect, err);
    if (result == 0 || said->length)
        lfs_buf_add(out, said->data, said->length);
    if (result < 0 || c->dry_run)
        return result;
    if (r->branch.version->number > first)
        lfs_answer_text(out, "meanwhile", r->source);
    lfs_rebase_say_switched(r);
    lfs_log(LFS_LOG_INFO, "event=rebase branch=%s onto=%s version=%" PRIu64 " old=%s", r->source, r->onto_label,
            r->last.version, r->branch.branch.uuid);
    return 0;
}

errint_t lfs_verb_rebase(struct lfs_verb_context *context, struct lfs_error *err) {
    const struct lfs_command *c = context->command;
    if (c->n_words != 1)
        return lfs_fail(err, LFS_E_USAGE, "name the branch, version or tag to replay this branch's commits on");
    if (strcmp(context->call->branch, "main") == 0)
        return lfs_fail(err, LFS_E_USAGE, "main cannot be rebased: every branch stands on it; merge into it instead");
    return lfs_rebase_run_locked(context, rebase, err);
}
