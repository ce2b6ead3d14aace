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
#include <uuid/uuid.h>

#include "commit/branch.h"
#include "format/deletion.h"
#include "merge/match.h"
#include "store/dir.h"
#include "store/file.h"
#include "table/location.h"
#include "table/reach.h"
#include "util/cleanup.h"
#include "util/limits.h"
#include "util/log.h"
#include "verbs/answer.h"
#include "verbs/found.h"
#include "verbs/names_impl.h"
#include "verbs/series.h"

struct rebase {
    struct lfs_verb_context *context; /* of the command */
    struct lfs_change *change;
    struct lfs_verb_context inner; /* of the jobs: they find the new line under the branch's name */
    struct lfs_command command;
    struct lfs_aside aside;
    struct lfs_state branch, onto; /* released by release() */
    const char *source, *onto_label;
    struct lfs_commit_result last; /* restatement */
};

static void release(struct rebase *r) {
    lfs_version_release(r->branch.version);
    lfs_version_release(r->onto.version);
}

/* --- before --- */

static errint_t say_standers(struct lfs_verb_context *context, const struct lfs_branch *branch,
                             const struct lfs_list *names, struct lfs_error *err) {
    lfs_answer_text(context->answer, "result", "refused");
    lfs_answer_list(context->answer, "stand-on-it", names);
    return lfs_fail(err, LFS_E_BUSY, "%s and %zu more stand on versions of %s", (const char *)names->items[0],
                    names->count - 1, branch->name);
}

/* What stands on the branch by its name keeps it where it is. */
static errint_t check_standers(struct lfs_verb_context *context, const struct lfs_branch *branch,
                               struct lfs_error *err) {
    struct lfs_list names = {0};
    struct lfs_stander *list;
    size_t n;
    LFS_TRY(lfs_reach_standers(context->call->dataset, branch, context->arena, &list, &n, err));
    for (size_t i = 0; i < n; i++) {
        const char *what = list[i].kind == LFS_STANDS_BRANCH ? "branch"
                           : list[i].kind == LFS_STANDS_TAG  ? "tag"
                                                             : "files of it used in";
        if (list[i].kind == LFS_STANDS_FILES && list[i].home_kind != LFS_HOME_BRANCH)
            continue;
        char *text = lfs_sprintf(context->arena, "%s %s (%s@%" PRIu64 ")", what, *list[i].name ? list[i].name : "main",
                                 branch->name, list[i].version);
        if (!lfs_list_add(&names, context->arena, text))
            return lfs_fail_nomem(err);
    }
    return names.count ? say_standers(context, branch, &names, err) : 0;
}

/* The branch's tip, as it is now that the lock is held. */
static errint_t read_branch(struct lfs_verb_context *context, struct lfs_state *out, struct lfs_error *err) {
    const struct lfs_command *c = context->command;
    LFS_TRY(lfs_verb_tip(context, context->call->branch, out, err));
    if (!*out->branch.uuid)
        return lfs_fail(err, LFS_E_UNSUPPORTED, "branch %s has no identifier (it was made by an old Lance)",
                        out->branch.name);
    if (c->has_expect && c->expect != out->version->number)
        return lfs_fail(err, LFS_E_STALE, "%s is at version %" PRIu64 ", not at %" PRIu64 " as expected",
                        out->branch.name, out->version->number, c->expect);
    return lfs_manifest_check_features(out->version->manifest.message, true, out->branch.name, err);
}

/* Is ONTO the version that the branch began at, or one before it on its way from main, or one of its own? */
static bool is_based(const struct rebase *r) {
    const struct lfs_branch *b = &r->branch.branch, *onto = &r->onto.branch;
    uint64_t version = r->onto.version->number;
    size_t depth = onto->n_forks;
    while (depth > 0 && version <= onto->forks[depth - 1].version) /* a first version is one of the parent's */
        depth--;
    const struct lfs_base base = {.line = depth ? onto->forks[depth - 1].uuid : "main", .version = r->onto.version};
    return lfs_job_comes_from(b, &base);
}

static errint_t resolve(struct rebase *r, struct lfs_error *err) {
    struct lfs_arena *arena = r->context->arena;
    LFS_TRY(read_branch(r->context, &r->branch, err));
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

static void say_based(const struct rebase *r) {
    struct lfs_buf *out = r->context->answer;
    lfs_answer_text(out, "result", "up-to-date");
    lfs_answer_text(out, "source", r->source);
    lfs_answer_text(out, "onto", r->onto_label);
}

/* --- the new line --- */

/* Its versions can be found like those of any branch, under the name that it will have. Until something is on the disk
 * its directory is the one of its parent, at the version that it begins with. */
static errint_t begin_line(struct rebase *r, struct lfs_error *err) {
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

static void set_dir(struct rebase *r, const char *dir) {
    struct lfs_lines *lines = &r->inner.lines;
    r->aside.branch.dir = lines->branches[lines->n_branches - 1].dir = dir;
    r->aside.version = 0;
}

/* All is planned: its first version, and its ref, are written aside. */
static errint_t stage(void *argument, struct lfs_error *err) {
    struct rebase *r = argument;
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

static errint_t no_more(void *argument, struct lfs_error *err) {
    (void)argument;
    (void)err;
    return 0;
}

/* What the new line does not hold yet of the branch's tip. */
static errint_t replay(struct rebase *r, const struct lfs_branch *from, const struct lfs_version *version,
                       errint_t (*begin)(void *argument, struct lfs_error *err), struct lfs_error *err) {
    const struct lfs_series_aside aside = {r->onto_label, "rebased", "fast-forward", begin, r};
    struct lfs_series series = {.target = r->branch.branch.name, .source = r->source, .aside = &aside};
    struct lfs_vector held;
    lfs_vector_init(&held, r->context->arena);
    LFS_TRY(lfs_state_vector(from, version, &held, err));
    LFS_TRY(lfs_rebase_steps(&r->inner, &r->branch.branch, r->branch.version->number, &held, &series, err));
    return lfs_series_run(&r->inner, &series, err);
}

/* What was committed to the branch while its new line was made comes on top of that. */
static errint_t catch_up(struct rebase *r, struct lfs_error *err) {
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
    errint_t result = r->source ? replay(r, &now.branch, before, no_more, err) : lfs_fail_nomem(err);
    r->inner.answer = answer;
    if (result < 0) { /* that is what is the matter */
        lfs_buf_clear(answer);
        lfs_buf_add(answer, said.data, said.length);
    }
    lfs_version_release(before);
    return result;
}

/* --- the restatement --- */

/* What both carry under a key, without what the vector covers; NULL for nothing. */
static errint_t join_marks(struct lfs_arena *arena, const char *a, const char *b, const struct lfs_vector *vector,
                           const char **out, struct lfs_error *err) {
    LFS_AUTO_BUF text = {0};
    lfs_picked_join(&text, a, vector);
    lfs_picked_join(&text, b, vector);
    lfs_buf_add(&text, "", 1);
    LFS_TRY(lfs_buf_check(&text, err));
    *out = *a || text.length > 1 ? lfs_strdup(arena, (const char *)text.data) : NULL;
    return *out || !(*a || text.length > 1) ? 0 : lfs_fail_nomem(err);
}

static errint_t properties(const struct rebase *r, const char *operation, struct lfs_property **out, size_t *n,
                           struct lfs_error *err) {
    const struct lfs_command *c = r->context->command;
    struct lfs_arena *arena = r->context->arena;
    struct lfs_property *list = LFS_NEW_ARRAY(arena, struct lfs_property, c->n_properties + 6);
    char *number = lfs_sprintf(arena, "%" PRIu64, r->branch.version->number);
    *n = 0;
    *out = list;
    if (!list || !number)
        return lfs_fail_nomem(err);
    list[(*n)++] = (struct lfs_property){LFS_PROPERTY_OPERATION, operation};
    list[(*n)++] = (struct lfs_property){"lancefs.source", r->source};
    list[(*n)++] = (struct lfs_property){LFS_PROPERTY_SOURCE_LINE, r->branch.branch.uuid};
    list[(*n)++] = (struct lfs_property){LFS_PROPERTY_SOURCE_VERSION, number};
    if (r->onto_label)
        list[(*n)++] = (struct lfs_property){"lancefs.onto", r->onto_label};
    if (c->message)
        list[(*n)++] = (struct lfs_property){"__lance_commit_message", c->message};
    for (size_t i = 0; i < c->n_properties; i++)
        list[(*n)++] = c->properties[i];
    return 0;
}

/* A restatement of `state`, a version of the line that is made aside, under the number after its own. `old`: what it holds
 * besides is held too; NULL for nothing. */
static errint_t say_again(struct rebase *r, const char *operation, const struct lfs_state *state,
                          const struct lfs_version *old, struct lfs_error *err) {
    struct lfs_arena *arena = r->context->arena;
    const struct lfs_version *now = state->version, *other = old ? old : now;
    struct lfs_vector vector;
    struct lfs_property *list;
    size_t n;
    lfs_vector_init(&vector, arena);
    LFS_TRY(properties(r, operation, &list, &n, err));
    struct lfs_commit_request request = {.dataset = r->change->dataset,
                                         .target = &state->branch,
                                         .source = &state->branch,
                                         .target_tip = now,
                                         .source_version = now,
                                         .restate = true,
                                         .aside = true,
                                         .vector = &vector,
                                         .naming = state->naming,
                                         .mode = LFS_PLACE_LINK,
                                         .sync = r->change->sync,
                                         .properties = list,
                                         .n_properties = n,
                                         .cancel = r->change->names->cancel};
    LFS_TRY(lfs_state_vector(&state->branch, now, &vector, err));
    if (old)
        LFS_TRY(lfs_state_vector(&r->branch.branch, old, &vector, err));
    LFS_TRY(join_marks(arena, lfs_version_picked(now), lfs_version_picked(other), &vector, &request.picked, err));
    LFS_TRY(join_marks(arena, lfs_version_partial(now), lfs_version_partial(other), &vector, &request.partial, err));
    return lfs_commit_plan(&request, &r->last, err);
}

static errint_t restate_once(struct rebase *r, const char *operation, bool with_old, struct lfs_error *err) {
    struct lfs_state tip = {0};
    LFS_TRY(lfs_verb_tip(&r->inner, r->aside.branch.name, &tip, err));
    errint_t result = say_again(r, operation, &tip, with_old ? r->branch.version : NULL, err);
    lfs_version_release(tip.version);
    return result;
}

/* The number after the old line's newest must be taken in the new one: a stock writer that has looked for newer versions a
 * moment before the name moves links its own there, and must find that it was not the first. Where the new line begins with
 * a greater one, its first state stands there once more. (A number below the first adds nothing to what a state holds.) */
static errint_t take_number(struct rebase *r, struct lfs_error *err) {
    uint64_t next = r->branch.version->number + 1, first = lfs_branch_first(&r->aside.branch);
    struct lfs_version *version;
    if (next >= first)
        return 0;
    LFS_TRY(lfs_dataset_version(r->change->dataset, r->aside.branch.dir, first, &version, err));
    struct lfs_version before = *version;
    before.number = next - 1;
    const struct lfs_state state = {r->aside.branch, &before, LFS_NAMING_V2};
    errint_t result = say_again(r, LFS_OPERATION_REBASE, &state, NULL, err);
    lfs_version_release(version);
    return result;
}

/* Until the line is newer than any version of the one whose name it takes. Versions without gaps: a stock writer looks at
 * each number after its own. */
static errint_t restate(struct rebase *r, const char *operation, bool with_old, struct lfs_error *err) {
    uint64_t tip, above = r->branch.version->number;
    enum lfs_naming naming;
    LFS_TRY(lfs_dataset_tip(r->change->dataset, r->aside.branch.dir, &tip, &naming, err));
    if (above > tip && above - tip >= LFS_SERIES_STEPS_MAX)
        return lfs_fail(err, LFS_E_TOO_BIG,
                        "%s would go back from version %" PRIu64 " to %" PRIu64
                        ", and over %u versions would stand between: other writers could not tell them apart",
                        r->branch.branch.name, above, tip, LFS_SERIES_STEPS_MAX);
    do
        LFS_TRY(restate_once(r, operation, with_old, err));
    while (r->last.version <= above);
    return 0;
}

/* --- for who has the old line open through a mount --- */

/* There a file is opened by its name in the branch's directory, wherever it lies; names that the new line does not know
 * must lead somewhere until .gc. Only links: nobody's data depends on them. */
static void link_name(struct rebase *r, const struct lfs_version *now, enum lfs_file_kind kind, int64_t base,
                      const char *name) {
    struct lfs_arena *arena = r->context->arena;
    struct lfs_location at;
    struct lfs_error why;
    int root = r->change->root;
    if (base == LFS_NO_BASE || lfs_locate(r->branch.version, kind, base, name, arena, &at, &why) < 0 || !at.inside)
        return;
    if (kind == LFS_FILE_DATA && lfs_match_find(now->manifest.message, name))
        return;
    char *to = lfs_join(arena, r->aside.branch.dir, lfs_kind_directory[kind]),
         *from = lfs_join(arena, at.directory, at.name);
    if (to && from && lfs_make_dirs(root, to, r->change->sync, &why) == 0)
        lfs_link_beneath(root, from, root, to, name);
}

static void link_index(struct rebase *r, const LanceIndex *index) {
    struct lfs_arena *arena = r->context->arena;
    struct lfs_location at;
    struct lfs_error why;
    char uuid[UUID_STR_LEN];
    if (!index->has_base_id || !index->uuid || index->uuid->uuid.len != sizeof(uuid_t))
        return;
    uuid_unparse_lower(index->uuid->uuid.data, uuid);
    if (lfs_locate(r->branch.version, LFS_FILE_INDEX, index->base_id, uuid, arena, &at, &why) < 0 || !at.inside)
        return;
    char *to = lfs_sprintf(arena, "%s/_indices/%s", r->aside.branch.dir, uuid),
         *from = lfs_join(arena, at.directory, at.name);
    if (to && from && lfs_share_dir(r->change, from, to, &why) < 0)
        lfs_log(LFS_LOG_WARNING, "%s", why.message);
}

static errint_t link_inherited(struct rebase *r, struct lfs_error *err) {
    const LanceManifest *m = r->branch.version->manifest.message;
    const LanceIndexSection *indices = r->branch.version->manifest.indices;
    struct lfs_state now = {0};
    LFS_TRY(lfs_verb_tip(&r->inner, r->aside.branch.name, &now, err));
    for (size_t i = 0; i < m->n_fragments; i++) {
        const LanceFragment *f = m->fragments[i];
        char name[80];
        for (size_t k = 0; k < f->n_files; k++)
            link_name(r, now.version, LFS_FILE_DATA,
                      f->files[k]->has_base_id ? (int64_t)f->files[k]->base_id : LFS_NO_BASE,
                      f->files[k]->path ? f->files[k]->path : "");
        if (!f->deletion_file || !f->deletion_file->has_base_id)
            continue;
        lfs_deletion_file_name(f->id, f->deletion_file, name, sizeof name);
        link_name(r, now.version, LFS_FILE_DELETION, f->deletion_file->base_id, name);
    }
    for (size_t i = 0; indices && i < indices->n_indices; i++)
        link_index(r, indices->indices[i]);
    lfs_version_release(now.version);
    return 0;
}

static void say_switched(const struct rebase *r) {
    struct lfs_buf *out = r->context->answer;
    lfs_answer_number(out, "version", r->last.version);
    lfs_answer_text(out, "transaction", r->last.transaction);
    lfs_buf_printf(out, "old-line: _lancefs/lines/%s\n", r->branch.branch.uuid);
}

/* --- rebase --- */

/* Everybody else's commits until the last moment are on the new line when it gets the name. */
static errint_t move_name(struct rebase *r, bool expected, struct lfs_error *err) {
    LFS_TRY(link_inherited(r, err));
    for (unsigned i = 0; i < LFS_COMMIT_TRIES_MAX; i++) {
        LFS_TRY(take_number(r, err));
        LFS_TRY(restate(r, LFS_OPERATION_REBASE, true, err));
        errint_t result = lfs_switch_line(r->change, &r->branch.branch, r->branch.version->number, err);
        if (result != -EEXIST || expected)
            return result == -EEXIST ? lfs_fail(err, LFS_E_STALE, "%s was committed to meanwhile", r->source) : result;
        LFS_TRY(catch_up(r, err));
        r->command.squash = true; /* from now on all of them as one version: a busy writer is quicker than a replay */
    }
    return lfs_fail(err, LFS_E_RACE, "other writers kept committing to %s: try again", r->branch.branch.name);
}

static errint_t rebase(struct rebase *r, struct lfs_buf *said, struct lfs_error *err) {
    const struct lfs_command *c = r->context->command;
    struct lfs_buf *out = r->context->answer;
    LFS_TRY(resolve(r, err));
    if (is_based(r)) {
        say_based(r);
        return 0;
    }
    LFS_TRY(check_standers(r->context, &r->branch.branch, err));
    r->command = *c;
    r->command.has_expect = false; /* it was of the branch, not of the new line */
    r->command.has_mode = true;
    r->command.mode = LFS_PLACE_LINK; /* merge-semantics section 9 */
    r->inner = *r->context;
    r->inner.command = &r->command;
    r->inner.answer = said;
    LFS_TRY(begin_line(r, err));
    uint64_t first = r->branch.version->number;
    errint_t result = replay(r, &r->onto.branch, r->onto.version, stage, err);
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
    say_switched(r);
    lfs_log(LFS_LOG_INFO, "rebase branch=%s onto=%s version=%" PRIu64 " old=%s", r->source, r->onto_label,
            r->last.version, r->branch.branch.uuid);
    return 0;
}

/* With the lock held; what was made aside is cleared away when nothing came of it. */
static errint_t run_locked(struct lfs_verb_context *context,
                           errint_t (*run)(struct rebase *r, struct lfs_buf *said, struct lfs_error *err),
                           struct lfs_error *err) {
    const struct lfs_verb_call *call = context->call;
    const struct lfs_names names = {call->dataset, call->settings, call->cancel};
    LFS_AUTO_CHANGE change = {.lock = -1};
    LFS_AUTO_BUF said = {0};
    LFS_CLEANUP(release) struct rebase r = {.context = context, .change = &change};
    struct lfs_error why;
    LFS_TRY(lfs_change_begin(&names, &change, err));
    LFS_TRY(lfs_lines_read(call->dataset, context->arena, &context->lines, err)); /* others may have changed them */
    errint_t result = run(&r, &said, err);
    if (result < 0 && change.dir && !lfs_change_recorded(&change) && lfs_change_forget(&change, &why) < 0)
        lfs_log(LFS_LOG_WARNING, "%s", why.message);
    return result;
}

errint_t lfs_verb_rebase(struct lfs_verb_context *context, struct lfs_error *err) {
    const struct lfs_command *c = context->command;
    if (c->n_words != 1)
        return lfs_fail(err, LFS_E_USAGE, "name the branch, version or tag to replay this branch's commits on");
    if (strcmp(context->call->branch, "main") == 0)
        return lfs_fail(err, LFS_E_USAGE, "main cannot be rebased: every branch stands on it; merge into it instead");
    return run_locked(context, rebase, err);
}

/* --- back to the old line --- */

/* Is every file of that version where it says? */
static bool is_whole(const struct lfs_version *v, struct lfs_arena *arena) {
    const LanceManifest *m = v->manifest.message;
    for (size_t i = 0; i < m->n_fragments; i++) {
        const LanceFragment *f = m->fragments[i];
        struct lfs_location at;
        struct lfs_error why;
        struct stat st;
        char name[80];
        for (size_t k = 0; k < f->n_files; k++)
            if (lfs_locate(v, LFS_FILE_DATA, f->files[k]->has_base_id ? (int64_t)f->files[k]->base_id : LFS_NO_BASE,
                           f->files[k]->path ? f->files[k]->path : "", arena, &at, &why) < 0 ||
                lfs_location_stat(v->dataset, &at, &st, &why) < 0)
                return false;
        if (!f->deletion_file)
            continue;
        lfs_deletion_file_name(f->id, f->deletion_file, name, sizeof name);
        if (lfs_locate(v, LFS_FILE_DELETION,
                       f->deletion_file->has_base_id ? (int64_t)f->deletion_file->base_id : LFS_NO_BASE, name, arena,
                       &at, &why) < 0 ||
            lfs_location_stat(v->dataset, &at, &st, &why) < 0)
            return false;
    }
    return true;
}

/* The rebase that made the line, when nothing was committed since; that of a rebase which was undone is nothing. NULL in
 * *out for none. */
static errint_t last_rebase(const struct lfs_verb_context *context, const struct lfs_state *tip,
                            struct lfs_version **out, struct lfs_error *err) {
    *out = NULL;
    for (uint64_t v = tip->version->number; v > lfs_branch_first(&tip->branch); v--) {
        struct lfs_version *version;
        errint_t result = lfs_dataset_version(context->call->dataset, tip->branch.dir, v, &version, err);
        if (result == -ENOENT)
            return 0;
        LFS_TRY(result);
        const LanceTransaction *t = version->manifest.transaction;
        bool restates = lfs_transaction_restates(t);
        const char *operation = restates ? lfs_transaction_property(t, LFS_PROPERTY_OPERATION) : "";
        if (strcmp(operation, LFS_OPERATION_REBASE) == 0)
            *out = version;
        else
            lfs_version_release(version);
        if (strcmp(operation, LFS_OPERATION_UNDO_REBASE))
            return 0;
    }
    return 0;
}

errint_t lfs_verb_is_rebased(struct lfs_verb_context *context, bool *out, struct lfs_error *err) {
    struct lfs_state tip = {0};
    struct lfs_version *found;
    LFS_TRY(lfs_verb_tip(context, context->call->branch, &tip, err));
    errint_t result = last_rebase(context, &tip, &found, err);
    *out = result == 0 && found;
    if (*out)
        lfs_version_release(found);
    lfs_version_release(tip.version);
    return result;
}

/* The line and version that it came from. */
static errint_t find_old(struct rebase *r, const char **line, uint64_t *version, struct lfs_error *err) {
    struct lfs_version *found;
    LFS_TRY(last_rebase(r->context, &r->branch, &found, err));
    if (!found)
        return lfs_fail(err, LFS_E_RACE, "%s was committed to at this moment: try again", r->branch.branch.name);
    const LanceTransaction *t = found->manifest.transaction;
    const char *uuid = lfs_transaction_property(t, LFS_PROPERTY_SOURCE_LINE),
               *number = lfs_transaction_property(t, LFS_PROPERTY_SOURCE_VERSION);
    bool right = uuid && number && strlen(uuid) == 32 && strspn(uuid, "0123456789abcdef") == 32;
    *line = right ? lfs_strdup(r->context->arena, uuid) : NULL;
    errint_t result = !right
                          ? lfs_fail(err, LFS_E_CORRUPT, "the rebase of %s does not say of what", r->branch.branch.name)
                      : *line ? lfs_command_number(number, LFS_PROPERTY_SOURCE_VERSION, version, err)
                              : lfs_fail_nomem(err);
    lfs_version_release(found);
    return result;
}

static errint_t gone(const struct rebase *r, const char *line, struct lfs_error *err) {
    return lfs_fail(
        err, LFS_E_NO_BASE,
        "the old line of %s, _lancefs/lines/%s, is not whole any more: .gc, or a clean-up, has removed files of it",
        r->branch.branch.name, line);
}

/* The old branch as it was. Its parent may have another name by now. */
static errint_t read_old_ref(struct rebase *r, const char *line, struct lfs_branch_ref *ref, struct lfs_error *err) {
    struct lfs_arena *arena = r->context->arena;
    LFS_AUTO_BUF json = {0};
    char *path = lfs_sprintf(arena, "_lancefs/lines/%s/" LFS_KEPT_REF, line);
    if (!path)
        return lfs_fail_nomem(err);
    errint_t result = lfs_read_file(r->change->root, path, LFS_REF_BYTES_MAX, &json, NULL, err);
    if (result == -ENOENT)
        return gone(r, line, err);
    LFS_TRY(result);
    LFS_TRY(lfs_branch_ref_decode(json.data, json.length, arena, path, ref, err));
    if (!ref->n_forks || strcmp(ref->forks[ref->n_forks - 1].uuid, line))
        return lfs_fail(err, LFS_E_CORRUPT, "%s is of another line", path);
    const struct lfs_branch *parent =
        ref->n_forks > 1 ? lfs_lines_branch(&r->context->lines, ref->forks[ref->n_forks - 2].uuid) : NULL;
    if (parent)
        ref->parent_branch = parent->name;
    return 0;
}

/* Every whole version of the old line gets a name in the change's directory, and every file that lies in its storage. */
static errint_t stage_old(struct rebase *r, const char *storage, const struct lfs_versions *versions,
                          struct lfs_error *err) {
    struct lfs_change *c = r->change;
    struct lfs_arena *arena = r->context->arena;
    char *to = lfs_join(arena, r->aside.branch.dir, "_versions"), *from = lfs_join(arena, storage, "_versions");
    LFS_TRY(to && from ? lfs_make_dirs(c->root, to, c->sync, err) : lfs_fail_nomem(err));
    for (size_t i = 0; i < versions->count; i++) {
        struct lfs_version *v;
        LFS_AUTO_BUF bytes = {0};
        LFS_TRY(lfs_dataset_version(c->dataset, storage, versions->numbers[i], &v, err));
        bool whole = is_whole(v, arena);
        char *path = lfs_join(arena, from, v->file_name), *name = lfs_strdup(arena, v->file_name);
        lfs_version_release(v);
        if (!path || !name)
            return lfs_fail_nomem(err);
        if (!whole)
            continue;
        if (lfs_link_beneath(c->root, path, c->root, to, name) >= 0)
            continue;
        LFS_TRY(lfs_read_file(c->root, path, LFS_MANIFEST_BYTES_MAX, &bytes, NULL, err));
        LFS_TRY(lfs_write_new(c->root, to, name, &bytes, c->sync, err));
    }
    return lfs_share_files(c, storage, r->aside.branch.dir, err);
}

/* The old line, whole, at its newest version; `ref` is its ref file to be. */
static errint_t find_whole(struct rebase *r, const char *line, uint64_t version, const char *storage,
                           struct lfs_versions *versions, struct lfs_error *err) {
    struct lfs_version *tip;
    errint_t result = lfs_dataset_versions(r->change->dataset, storage, r->context->arena, versions, err);
    if (result == 0 && versions->numbers[versions->count - 1] < version)
        result = -ENOENT;
    if (result == 0)
        result = lfs_dataset_version(r->change->dataset, storage, version, &tip, err);
    if (result == -ENOENT)
        return gone(r, line, err);
    LFS_TRY(result);
    const char *branch = tip->manifest.message->branch;
    bool whole = is_whole(tip, r->context->arena), same = branch && strcmp(branch, r->branch.branch.name) == 0;
    lfs_version_release(tip);
    if (whole && !same)
        return lfs_fail(err, LFS_E_UNSUPPORTED, "the old line of %s has the name of another branch in its manifests",
                        r->branch.branch.name);
    return whole ? 0 : gone(r, line, err);
}

static errint_t write_ref(struct rebase *r, const struct lfs_branch_ref *ref, struct lfs_error *err) {
    struct lfs_change *c = r->change;
    LFS_AUTO_BUF json = {0};
    LFS_TRY(lfs_branch_ref_encode(ref, &json, err));
    return lfs_write_new(c->root, c->dir, LFS_CHANGE_NEW_REF, &json, c->sync, err);
}

static void say_undone(const struct rebase *r, const char *line, uint64_t version) {
    struct lfs_buf *out = r->context->answer;
    bool dry = r->context->command->dry_run;
    lfs_answer_text(out, "result", dry ? "dry-run" : "undone");
    if (dry)
        lfs_answer_text(out, "would-be", "undone");
    lfs_answer_text(out, "source", r->source);
    lfs_answer_text(out, "line", line);
    lfs_answer_number(out, "line-version", version);
    if (!dry)
        say_switched(r);
}

static errint_t undo(struct rebase *r, struct lfs_buf *said, struct lfs_error *err) {
    struct lfs_arena *arena = r->context->arena;
    struct lfs_versions versions;
    struct lfs_branch_ref ref;
    const char *line = NULL;
    uint64_t version;
    (void)said;
    LFS_TRY(read_branch(r->context, &r->branch, err));
    LFS_TRY(find_old(r, &line, &version, err));
    LFS_TRY(check_standers(r->context, &r->branch.branch, err));
    char *storage = lfs_line_storage_dir(arena, line);
    r->source = lfs_sprintf(arena, "%s@%" PRIu64, r->branch.branch.name, r->branch.version->number);
    if (!storage || !r->source)
        return lfs_fail_nomem(err);
    LFS_TRY(read_old_ref(r, line, &ref, err));
    LFS_TRY(find_whole(r, line, version, storage, &versions, err));
    if (!r->context->command->dry_run) {
        LFS_TRY(lfs_change_make_dir(r->change, err));
        r->inner = *r->context;
        r->inner.aside = &r->aside;
        r->aside.branch = (struct lfs_branch){.name = r->branch.branch.name,
                                              .uuid = line,
                                              .dir = lfs_join(arena, r->change->dir, LFS_CHANGE_NEW),
                                              .forks = ref.forks,
                                              .n_forks = ref.n_forks};
        LFS_TRY(r->aside.branch.dir ? write_ref(r, &ref, err) : lfs_fail_nomem(err));
        LFS_TRY(stage_old(r, storage, &versions, err));
        LFS_TRY(restate(r, LFS_OPERATION_UNDO_REBASE, false, err));
        LFS_TRY(link_inherited(r, err));
        LFS_TRY(lfs_switch_line(r->change, &r->branch.branch, r->branch.version->number, err));
        lfs_log(LFS_LOG_INFO, "undo of rebase branch=%s version=%" PRIu64 " line=%s", r->source, r->last.version, line);
    }
    say_undone(r, line, version);
    return 0;
}

errint_t lfs_verb_undo_rebase(struct lfs_verb_context *context, struct lfs_error *err) {
    return run_locked(context, undo, err);
}
