/* SPDX-License-Identifier: Apache-2.0 */
/* .undo of a rebase: the branch's name goes back to the old line, which _lancefs/lines keeps until .gc. */
#include "verbs/rebase_impl.h"

#include <inttypes.h>
#include <string.h>

#include "format/deletion.h"
#include "store/file.h"
#include "table/location.h"
#include "util/cleanup.h"
#include "util/limits.h"
#include "util/log.h"
#include "verbs/answer.h"

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

/* Does the line after this version hold just what it held before? A rebase that was undone, a merge that was, and undos. */
static errint_t is_nothing(const struct lfs_verb_context *context, const struct lfs_version *version,
                           struct lfs_list *undone, bool *out, struct lfs_error *err) {
    const LanceTransaction *t = version->manifest.transaction;
    const char *operation = lfs_transaction_property(t, LFS_PROPERTY_OPERATION),
               *merges = lfs_transaction_property(t, LFS_PROPERTY_UNDONE);
    *out = merges || (operation && (lfs_transaction_restates(t)
                                        ? strcmp(operation, LFS_OPERATION_UNDO_REBASE) == 0
                                        : strcmp(operation, "merge") == 0 && lfs_verb_was_undone(undone, version->number)));
    return !merges || lfs_list_add(undone, context->arena, lfs_strdup(context->arena, merges)) ? 0 : lfs_fail_nomem(err);
}

/* The rebase that made the line, when nothing that is still there was committed since; that of a rebase which was undone is
 * nothing. NULL in *out for none. */
static errint_t last_rebase(const struct lfs_verb_context *context, const struct lfs_state *tip,
                            struct lfs_version **out, struct lfs_error *err) {
    struct lfs_list undone = {0};
    bool passes = true;
    *out = NULL;
    for (uint64_t v = tip->version->number; passes && v > lfs_branch_first(&tip->branch); v--) {
        struct lfs_version *version;
        errint_t result = lfs_dataset_version(context->call->dataset, tip->branch.dir, v, &version, err);
        if (result == -ENOENT)
            return 0;
        LFS_TRY(result);
        const LanceTransaction *t = version->manifest.transaction;
        if (lfs_transaction_restates(t) &&
            strcmp(lfs_transaction_property(t, LFS_PROPERTY_OPERATION), LFS_OPERATION_REBASE) == 0) {
            *out = version;
            return 0;
        }
        result = is_nothing(context, version, &undone, &passes, err);
        lfs_version_release(version);
        LFS_TRY(result);
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
static errint_t find_old(struct lfs_rebase *r, const char **line, uint64_t *version, struct lfs_error *err) {
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

static errint_t gone(const struct lfs_rebase *r, const char *line, struct lfs_error *err) {
    return lfs_fail(
        err, LFS_E_NO_BASE,
        "the old line of %s, _lancefs/lines/%s, is not whole any more: .gc, or a clean-up, has removed files of it",
        r->branch.branch.name, line);
}

/* The old branch as it was. Its parent may have another name by now. */
static errint_t read_old_ref(struct lfs_rebase *r, const char *line, struct lfs_branch_ref *ref,
                             struct lfs_error *err) {
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
static errint_t stage_old(struct lfs_rebase *r, const char *storage, const struct lfs_versions *versions,
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
static errint_t find_whole(struct lfs_rebase *r, const char *line, uint64_t version, const char *storage,
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

static errint_t write_ref(struct lfs_rebase *r, const struct lfs_branch_ref *ref, struct lfs_error *err) {
    struct lfs_change *c = r->change;
    LFS_AUTO_BUF json = {0};
    LFS_TRY(lfs_branch_ref_encode(ref, &json, err));
    return lfs_write_new(c->root, c->dir, LFS_CHANGE_NEW_REF, &json, c->sync, err);
}

static void say_undone(const struct lfs_rebase *r, const char *line, uint64_t version) {
    struct lfs_buf *out = r->context->answer;
    bool dry = r->context->command->dry_run;
    lfs_answer_text(out, "result", dry ? "dry-run" : "undone");
    if (dry)
        lfs_answer_text(out, "would-be", "undone");
    lfs_answer_text(out, "source", r->source);
    lfs_answer_text(out, "line", line);
    lfs_answer_number(out, "line-version", version);
    if (!dry)
        lfs_rebase_say_switched(r);
}

/* The old line is made aside from what its storage holds, and gets the name. */
static errint_t give_back(struct lfs_rebase *r, const char *line, const char *storage,
                          const struct lfs_versions *versions, const struct lfs_branch_ref *ref,
                          struct lfs_error *err) {
    LFS_TRY(lfs_change_make_dir(r->change, err));
    r->inner = *r->context;
    r->inner.aside = &r->aside;
    r->aside.branch = (struct lfs_branch){.name = r->branch.branch.name,
                                          .uuid = line,
                                          .dir = lfs_join(r->context->arena, r->change->dir, LFS_CHANGE_NEW),
                                          .forks = ref->forks,
                                          .n_forks = ref->n_forks};
    LFS_TRY(r->aside.branch.dir ? write_ref(r, ref, err) : lfs_fail_nomem(err));
    LFS_TRY(stage_old(r, storage, versions, err));
    LFS_TRY(lfs_rebase_restate(r, LFS_OPERATION_UNDO_REBASE, false, err));
    LFS_TRY(lfs_rebase_link_inherited(r, err));
    LFS_TRY(lfs_switch_line(r->change, &r->branch.branch, r->branch.version->number, err));
    lfs_log(LFS_LOG_INFO, "event=undo-rebase branch=%s version=%" PRIu64 " line=%s", r->source, r->last.version, line);
    return 0;
}

static errint_t say_denied(const struct lfs_rebase *r, errint_t result, const struct lfs_error *err) {
    struct lfs_buf *out = r->context->answer;
    if (!err || err->code != LFS_E_DENIED)
        return result;
    lfs_answer_text(out, "result", "refused");
    lfs_answer_text(out, "target", r->source);
    lfs_answer_text(out, "reason", err->message);
    return result;
}

static errint_t undo(struct lfs_rebase *r, struct lfs_buf *said, struct lfs_error *err) {
    struct lfs_arena *arena = r->context->arena;
    struct lfs_versions versions;
    struct lfs_branch_ref ref;
    const char *line = NULL;
    uint64_t version;
    (void)said;
    LFS_TRY(lfs_rebase_read_branch(r->context, &r->branch, err));
    LFS_TRY(find_old(r, &line, &version, err));
    LFS_TRY(lfs_rebase_check_standers(r->context, &r->branch.branch, err));
    char *storage = lfs_line_storage_dir(arena, line);
    r->source = lfs_sprintf(arena, "%s@%" PRIu64, r->branch.branch.name, r->branch.version->number);
    if (!storage || !r->source)
        return lfs_fail_nomem(err);
    bool asks = r->context->call->hooks && !r->context->command->dry_run;
    for (int i = asks ? 0 : 1; i < 2; i++) { /* .gc may have run while a hook was asked */
        LFS_TRY(read_old_ref(r, line, &ref, err));
        LFS_TRY(find_whole(r, line, version, storage, &versions, err));
        errint_t result = i == 0 ? lfs_rebase_ask(r, NULL, 0, line, err) : 0;
        if (result < 0)
            return say_denied(r, result, err);
    }
    if (!r->context->command->dry_run)
        LFS_TRY(give_back(r, line, storage, &versions, &ref, err));
    say_undone(r, line, version);
    return 0;
}

errint_t lfs_verb_undo_rebase(struct lfs_verb_context *context, struct lfs_error *err) {
    return lfs_rebase_run_locked(context, undo, err);
}
