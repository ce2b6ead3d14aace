/* SPDX-License-Identifier: Apache-2.0 */
/* What a rebase and its undoing share: who stands in the way, restatements, names for who has the old line open. */
#include "verbs/rebase_impl.h"

#include <inttypes.h>
#include <string.h>
#include <uuid/uuid.h>

#include "format/deletion.h"
#include "merge/match.h"
#include "store/file.h"
#include "table/location.h"
#include "table/lock.h"
#include "table/reach.h"
#include "util/cleanup.h"
#include "util/limits.h"
#include "util/log.h"
#include "verbs/answer.h"
#include "verbs/found.h"
#include "verbs/gate.h"
#include "verbs/series.h"

static void release(struct lfs_rebase *r) {
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
errint_t lfs_rebase_check_standers(struct lfs_verb_context *context, const struct lfs_branch *branch,
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
errint_t lfs_rebase_read_branch(struct lfs_verb_context *context, struct lfs_state *out, struct lfs_error *err) {
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

static errint_t properties(const struct lfs_rebase *r, const char *operation, struct lfs_property **out, size_t *n,
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
static errint_t say_again(struct lfs_rebase *r, const char *operation, const struct lfs_state *state,
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

static errint_t restate_once(struct lfs_rebase *r, const char *operation, bool with_old, struct lfs_error *err) {
    struct lfs_state tip = {0};
    LFS_TRY(lfs_verb_tip(&r->inner, r->aside.branch.name, &tip, err));
    errint_t result = say_again(r, operation, &tip, with_old ? r->branch.version : NULL, err);
    lfs_version_release(tip.version);
    return result;
}

/* The number after the old line's newest must be taken in the new one: a stock writer that has looked for newer versions a
 * moment before the name moves links its own there, and must find that it was not the first. Where the new line begins with
 * a greater one, its first state stands there once more. (A number below the first adds nothing to what a state holds.) */
errint_t lfs_rebase_take_number(struct lfs_rebase *r, struct lfs_error *err) {
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
errint_t lfs_rebase_restate(struct lfs_rebase *r, const char *operation, bool with_old, struct lfs_error *err) {
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
static void link_name(struct lfs_rebase *r, const struct lfs_version *now, enum lfs_file_kind kind, int64_t base,
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

static void link_index(struct lfs_rebase *r, const LanceIndex *index) {
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

errint_t lfs_rebase_link_inherited(struct lfs_rebase *r, struct lfs_error *err) {
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

void lfs_rebase_say_switched(const struct lfs_rebase *r) {
    struct lfs_buf *out = r->context->answer;
    lfs_answer_number(out, "version", r->last.version);
    lfs_answer_text(out, "transaction", r->last.transaction);
    lfs_buf_printf(out, "old-line: _lancefs/lines/%s\n", r->branch.branch.uuid);
}

/* --- under the lock, and for a moment without it --- */

/* Is everything that the plan was made on as it was? */
static errint_t check_unmoved(struct lfs_rebase *r, struct lfs_error *err) {
    struct lfs_verb_context *context = r->context;
    struct lfs_lines before = context->lines;
    struct lfs_state now = {0};
    struct lfs_entry *entries;
    size_t n;
    LFS_TRY(lfs_list_dir(r->change->dataset, LFS_CHANGES_DIR, context->arena, &entries, &n, err));
    LFS_TRY(lfs_lines_read(r->change->dataset, context->arena, &context->lines, err));
    bool same = n == 0 && context->lines.n_branches == before.n_branches;
    for (size_t i = 0; same && i < before.n_branches; i++)
        same = strcmp(context->lines.branches[i].name, before.branches[i].name) == 0 &&
               strcmp(context->lines.branches[i].uuid, before.branches[i].uuid) == 0;
    if (same) {
        LFS_TRY(lfs_verb_tip(context, r->branch.branch.name, &now, err));
        same = now.version->number == r->branch.version->number;
        lfs_version_release(now.version);
    }
    r->again = !same;
    return same ? lfs_rebase_check_standers(context, &r->branch.branch, err)
                : lfs_fail(err, LFS_E_RACE, "branches moved while a hook was asked: try again");
}

errint_t lfs_rebase_ask(struct lfs_rebase *r, struct lfs_job *const *jobs, size_t n_jobs, const char *line,
                        struct lfs_error *err) {
    struct lfs_change *c = r->change;
    const struct lfs_gate_move move = {.target = &r->branch,
                                       .jobs = jobs,
                                       .n_jobs = n_jobs,
                                       .source = r->source,
                                       .onto = r->onto_label,
                                       .line = line};
    if (!r->context->call->hooks)
        return 0;
    lfs_cleanup_fd(&c->lock);
    LFS_TRY(lfs_gate_ask_move(r->context, &move, err));
    c->lock = lfs_dataset_lock(c->dataset, LFS_LOCK_ALONE, c->names->cancel, err);
    return c->lock < 0 ? c->lock : check_unmoved(r, err);
}

/* With the lock held; what was made aside is cleared away when nothing came of it. */
static errint_t run_once(struct lfs_verb_context *context,
                         errint_t (*run)(struct lfs_rebase *r, struct lfs_buf *said, struct lfs_error *err),
                         bool *again, struct lfs_error *err) {
    const struct lfs_verb_call *call = context->call;
    const struct lfs_names names = {call->dataset, call->settings, call->cancel};
    LFS_AUTO_CHANGE change = {.lock = -1};
    LFS_AUTO_BUF said = {0};
    LFS_CLEANUP(release) struct lfs_rebase r = {.context = context, .change = &change};
    struct lfs_error why;
    LFS_TRY(lfs_change_begin(&names, &change, err));
    LFS_TRY(lfs_lines_read(call->dataset, context->arena, &context->lines, err)); /* others may have changed them */
    errint_t result = run(&r, &said, err);
    if (result < 0 && change.dir && !lfs_change_recorded(&change) && lfs_change_forget(&change, &why) < 0)
        lfs_log(LFS_LOG_WARNING, "%s", why.message);
    *again = result < 0 && r.again;
    return result;
}

errint_t lfs_rebase_run_locked(struct lfs_verb_context *context,
                               errint_t (*run)(struct lfs_rebase *r, struct lfs_buf *said, struct lfs_error *err),
                               struct lfs_error *err) {
    const size_t start = context->answer->length;
    for (unsigned tries = 1;; tries++) {
        bool again = false;
        errint_t result = run_once(context, run, &again, err);
        if (!again || tries == LFS_COMMIT_TRIES_MAX)
            return result;
        context->answer->length = start;
        lfs_gate_release(context->gate); /* what was let pass came to nothing */
        *context->gate = (struct lfs_gate){0};
        if (context->found)
            lfs_found_clear(context->found);
    }
}
