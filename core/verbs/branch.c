/* SPDX-License-Identifier: Apache-2.0 */
/* Branches made and removed: mkdir and rmdir in tree/, and .branch. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "commit/branch.h"
#include "store/dir.h"
#include "store/file.h"
#include "table/homes.h"
#include "table/reach.h"
#include "table/root.h"
#include "util/cleanup.h"
#include "util/limits.h"
#include "util/log.h"
#include "verbs/answer.h"
#include "verbs/names_impl.h"
#include "verbs/verb.h"

#define NEW LFS_CHANGE_NEW         /* in a change's directory: the first version of a branch to be */
#define NEW_REF LFS_CHANGE_NEW_REF /* ... and its ref file */
#define OLD "old"                  /* what is thrown away */

/* --- make --- */

const char *lfs_change_root_string(struct lfs_change *c, const struct lfs_version *from) {
    struct lfs_dataset *ds = c->dataset;
    struct lfs_branch *branches;
    size_t n;
    const char *root = lfs_root_string(ds, &from, 1, c->arena);
    if (root != lfs_dataset_path(ds) || lfs_dataset_branches(ds, c->arena, &branches, &n, NULL, NULL) < 0)
        return root;
    for (size_t i = 0; i < n && root == lfs_dataset_path(ds); i++) {
        struct lfs_version *version;
        uint64_t tip;
        enum lfs_naming naming;
        if (lfs_dataset_tip(ds, branches[i].dir, &tip, &naming, NULL) < 0 ||
            lfs_dataset_version(ds, branches[i].dir, tip, &version, NULL) < 0)
            continue;
        const struct lfs_version *one = version;
        root = lfs_root_string(ds, &one, 1, c->arena);
        lfs_version_release(version);
    }
    return root;
}

static errint_t check_free(struct lfs_change *c, const char *name, struct lfs_error *err) {
    char *ref = lfs_names_ref(c->arena, name), *dir = lfs_names_dir(c->arena, name);
    char *versions = dir ? lfs_join(c->arena, dir, "_versions") : NULL;
    if (!ref || !versions)
        return lfs_fail_nomem(err);
    if (lfs_path_kind(c->root, ref) != LFS_PATH_NONE)
        return lfs_fail(err, LFS_E_EXISTS, "there is a branch %s already", name);
    if (lfs_path_kind(c->root, versions) != LFS_PATH_NONE)
        return lfs_fail(err, LFS_E_EXISTS,
                        "%s holds versions that no branch names (a creation that was refused, or a deletion that was "
                        "interrupted): fsck.lancefs tells more",
                        dir);
    return 0;
}

static errint_t stage(struct lfs_change *c, const char *name, const struct lfs_branch *parent,
                      const struct lfs_version *from, struct lfs_error *err) {
    LFS_AUTO_BUF json = {0};
    struct lfs_branch_ref ref;
    struct lfs_branch_request request = {.dataset = c->dataset,
                                         .name = name,
                                         .parent = parent,
                                         .from = from,
                                         .root_string = lfs_change_root_string(c, from),
                                         .sync = c->sync,
                                         .cancel = c->names->cancel};
    LFS_TRY(lfs_change_make_dir(c, err));
    request.directory = lfs_join(c->arena, c->dir, NEW);
    if (!request.directory || !request.root_string)
        return lfs_fail_nomem(err);
    LFS_TRY(lfs_branch_stage(&request, c->arena, &ref, err));
    LFS_TRY(lfs_branch_ref_encode(&ref, &json, err));
    return lfs_write_new(c->root, c->dir, NEW_REF, &json, c->sync, err);
}

/* What is in <change>/new/<part> goes to <dir>/<part>, one by one: the directory may be there already, as that of a longer
 * name. What went before a stop is not there any more. */
static errint_t move_part(struct lfs_change *c, const char *dir, const char *part, struct lfs_error *err) {
    struct lfs_entry *entries;
    size_t n;
    char *from = lfs_sprintf(c->arena, "%s/" NEW "/%s", c->dir, part), *to = lfs_join(c->arena, dir, part);
    if (!from || !to)
        return lfs_fail_nomem(err);
    LFS_TRY(lfs_list_dir(c->dataset, from, c->arena, &entries, &n, err));
    if (n)
        LFS_TRY(lfs_make_dirs(c->root, to, c->sync, err));
    for (size_t i = 0; i < n; i++) {
        char *a = lfs_join(c->arena, from, entries[i].name), *b = lfs_join(c->arena, to, entries[i].name);
        LFS_TRY(a && b ? lfs_move_new(c->root, a, b, c->sync, err) : lfs_fail_nomem(err));
    }
    return 0;
}

/* A branch begins to be one for others when its ref is there, which comes last; with _versions its directory opens. */
errint_t lfs_finish_create(struct lfs_change *c, const struct lfs_record *record, struct lfs_error *err) {
    const char *name = record->words[1];
    LFS_AUTO_BUF json = {0};
    char *dir = lfs_names_dir(c->arena, name), *ref = lfs_names_ref(c->arena, name);
    char *staged_ref = lfs_join(c->arena, c->dir, NEW_REF), *staged = lfs_join(c->arena, c->dir, NEW "/_versions");
    char *versions = dir ? lfs_join(c->arena, dir, "_versions") : NULL;
    if (!versions || !ref || !staged_ref || !staged)
        return lfs_fail_nomem(err);
    if (lfs_path_kind(c->root, ref) != LFS_PATH_NONE)
        return 0; /* this one, all but the end of the record; or another program was quicker, and what is staged goes */
    LFS_TRY(lfs_read_file(c->root, staged_ref, LFS_REF_BYTES_MAX, &json, NULL, err));
    LFS_TRY(lfs_make_dirs(c->root, dir, c->sync, err));
    LFS_TRY(move_part(c, dir, "_transactions", err));
    LFS_TRY(move_part(c, dir, "_indices", err));
    if (lfs_path_kind(c->root, staged) == LFS_PATH_DIR)
        LFS_TRY(lfs_move_new(c->root, staged, versions, c->sync, err));
    LFS_TRY(lfs_make_dirs(c->root, LFS_BRANCH_REFS, c->sync, err));
    const char *slash = strrchr(ref, '/');
    return lfs_write_new(c->root, LFS_BRANCH_REFS, slash + 1, &json, c->sync, err);
}

/* A creation that cannot be finished: what is in tree/ already goes back. Not what another program put there. */
static errint_t take_back(struct lfs_change *c, const char *name, struct lfs_error *err) {
    static const char *const parts[] = {"_versions", "_transactions", "_indices"};
    char *dir = lfs_names_dir(c->arena, name), *old = lfs_join(c->arena, c->dir, OLD);
    char *staged = lfs_join(c->arena, c->dir, NEW "/_versions"), *ref = lfs_names_ref(c->arena, name);
    if (!dir || !old || !staged || !ref)
        return lfs_fail_nomem(err);
    bool others = lfs_path_kind(c->root, staged) == LFS_PATH_DIR || lfs_path_kind(c->root, ref) != LFS_PATH_NONE;
    LFS_TRY(lfs_make_dirs(c->root, old, c->sync, err));
    for (size_t i = 0; !others && i < 3; i++) {
        char *from = lfs_join(c->arena, dir, parts[i]), *to = lfs_join(c->arena, old, parts[i]);
        if (!from || !to)
            return lfs_fail_nomem(err);
        if (lfs_path_kind(c->root, from) != LFS_PATH_NONE)
            LFS_TRY(lfs_move_new(c->root, from, to, c->sync, err));
    }
    lfs_remove_empty(c->root, dir, "tree");
    return 0;
}

static errint_t make(struct lfs_change *c, const char *name, const struct lfs_branch *parent,
                     const struct lfs_version *from, struct lfs_error *err) {
    const struct lfs_record record = {{"create", name}};
    struct lfs_error why;
    errint_t result = stage(c, name, parent, from, err);
    if (result == 0)
        result = lfs_change_record(c, &record, err);
    bool recorded = result == 0;
    if (result == 0)
        result = lfs_finish_create(c, &record, err);
    if (result == -EEXIST)
        lfs_fail(err, LFS_E_EXISTS, "another program made the branch %s at the same time", name);
    if (result < 0 && recorded && take_back(c, name, &why) < 0) {
        lfs_log(LFS_LOG_ERROR, "making the branch %s stopped half-way, and is finished later: %s", name, why.message);
        return result;
    }
    if (lfs_change_forget(c, &why) < 0 && result == 0)
        lfs_log(LFS_LOG_WARNING, "%s", why.message); /* the next change clears it away */
    return result;
}

errint_t lfs_names_create(const struct lfs_names *names, const char *name, const char *parent, uint64_t version,
                          uint64_t *from, struct lfs_error *err) {
    LFS_AUTO_CHANGE c = {.lock = -1};
    struct lfs_branch branch;
    struct lfs_version *state;
    enum lfs_naming naming;
    LFS_TRY(lfs_change_begin(names, &c, err));
    LFS_TRY(lfs_names_check(name, err));
    LFS_TRY(check_free(&c, name, err));
    LFS_TRY(lfs_dataset_branch(c.dataset, c.arena, parent, &branch, err));
    if (!version)
        LFS_TRY(lfs_dataset_tip(c.dataset, branch.dir, &version, &naming, err));
    LFS_TRY(lfs_dataset_version(c.dataset, branch.dir, version, &state, err));
    errint_t result = make(&c, name, &branch, state, err);
    lfs_version_release(state);
    if (from)
        *from = version;
    return result;
}

errint_t lfs_verb_make_branch(struct lfs_verb_context *context, struct lfs_error *err) {
    const struct lfs_verb_call *call = context->call;
    const struct lfs_command *command = context->command;
    const struct lfs_names names = {call->dataset, call->settings, call->cancel};
    uint64_t from = 0;
    LFS_TRY(lfs_names_options(command, ".branch", err));
    if (command->n_words != 1)
        return lfs_fail(err, LFS_E_USAGE, "name the new branch");
    LFS_TRY(lfs_names_create(&names, command->words[0], call->branch, command->from, &from, err));
    char *parent = lfs_sprintf(context->arena, "%s@%" PRIu64, call->branch, from);
    if (!parent)
        return lfs_fail_nomem(err);
    lfs_answer_text(context->answer, "result", "created");
    lfs_answer_text(context->answer, "branch", command->words[0]);
    lfs_answer_text(context->answer, "parent", parent);
    lfs_log(LFS_LOG_INFO, "branch %s from %s", command->words[0], parent);
    return 0;
}

/* --- remove --- */

static errint_t check_alone(struct lfs_change *c, const struct lfs_branch *branch, struct lfs_error *err) {
    struct lfs_stander *list;
    struct lfs_branch *branches;
    size_t n, n_bad;
    LFS_TRY(lfs_dataset_branches(c->dataset, c->arena, &branches, &n, &n_bad, err));
    if (n_bad)
        return lfs_fail(err, LFS_E_CORRUPT,
                        "a file in " LFS_BRANCH_REFS
                        " cannot be read, so nobody can say whether it stands on %s: the log "
                        "tells which",
                        branch->name);
    LFS_TRY(lfs_reach_standers(c->dataset, branch, c->arena, &list, &n, err));
    for (size_t i = 0; i < n; i++) {
        const struct lfs_stander *s = &list[i];
        if (s->kind == LFS_STANDS_BRANCH)
            return lfs_fail(err, LFS_E_BUSY, "branch %s was made from version %" PRIu64 " of %s: delete it first",
                            s->name, s->version, branch->name);
        if (s->kind == LFS_STANDS_TAG)
            return lfs_fail(err, LFS_E_BUSY, "the tag %s names version %" PRIu64 " of %s: delete it first", s->name,
                            s->version, branch->name);
        if (s->home_kind == LFS_HOME_BRANCH)
            return lfs_fail(err, LFS_E_BUSY,
                            "%" PRIu64 " versions in %s use files of %s: echo all > .rehome there makes "
                            "them its own",
                            s->n_manifests, *s->name ? s->name : "main", branch->name);
    }
    return 0;
}

/* Is `entry` of a branch's directory the way to another branch? */
static bool leads_on(const struct lfs_branch *branches, size_t n, const char *path) {
    for (size_t i = 0; i < n; i++)
        if (lfs_names_below(branches[i].name, path))
            return true;
    return false;
}

/* The branch's directory, but for the branches in it, goes to <change>/old. */
static errint_t throw_away(struct lfs_change *c, const char *name, struct lfs_error *err) {
    struct lfs_branch *branches;
    struct lfs_entry *entries;
    size_t n, n_entries;
    char *dir = lfs_names_dir(c->arena, name), *old = lfs_join(c->arena, c->dir, OLD);
    if (!dir || !old)
        return lfs_fail_nomem(err);
    LFS_TRY(lfs_dataset_branches(c->dataset, c->arena, &branches, &n, NULL, err));
    if (leads_on(branches + 1, n - 1, name)) { /* its own ref is gone: those are below it */
        LFS_TRY(lfs_list_dir(c->dataset, dir, c->arena, &entries, &n_entries, err));
        LFS_TRY(lfs_make_dirs(c->root, old, c->sync, err));
        for (size_t i = 0; i < n_entries; i++) {
            char *sub = lfs_join(c->arena, name, entries[i].name), *from = lfs_join(c->arena, dir, entries[i].name);
            char *to = lfs_join(c->arena, old, entries[i].name);
            if (!sub || !from || !to)
                return lfs_fail_nomem(err);
            if (!leads_on(branches + 1, n - 1, sub))
                LFS_TRY(lfs_move_new(c->root, from, to, c->sync, err));
        }
    } else if (lfs_path_kind(c->root, dir) != LFS_PATH_NONE) {
        LFS_TRY(lfs_move_new(c->root, dir, old, c->sync, err));
    }
    const char *slash = strrchr(dir, '/');
    char *parent = lfs_strndup(c->arena, dir, (size_t)(slash - dir));
    if (parent && strcmp(parent, "tree"))
        lfs_remove_empty(c->root, parent, "tree");
    return parent ? 0 : lfs_fail_nomem(err);
}

/* The branch is gone for others with its ref; its files go then. While the ref is there nothing has happened yet, and it is
 * taken back: somebody may stand on the branch by now. */
errint_t lfs_finish_remove(struct lfs_change *c, const struct lfs_record *record, struct lfs_error *err) {
    const char *name = record->words[1], *uuid = record->words[2];
    char *ref = lfs_names_ref(c->arena, name);
    if (!ref)
        return lfs_fail_nomem(err);
    if (lfs_path_kind(c->root, ref) != LFS_PATH_NONE)
        return 0; /* or another branch of that name was made since */
    struct lfs_branch gone = {.name = name, .uuid = uuid, .dir = lfs_names_dir(c->arena, name)};
    struct lfs_error why;
    if (!gone.dir)
        return lfs_fail_nomem(err);
    if (check_alone(c, &gone, &why) < 0) {
        lfs_log(LFS_LOG_WARNING, "what is left of the deleted branch %s stays: %s", name, why.message);
        return 0;
    }
    return throw_away(c, name, err);
}

errint_t lfs_names_remove(const struct lfs_names *names, const char *name, struct lfs_error *err) {
    LFS_AUTO_CHANGE c = {.lock = -1};
    struct lfs_branch branch;
    if (strcmp(name, "main") == 0)
        return lfs_fail(err, LFS_E_DENIED, "main cannot be deleted");
    LFS_TRY(lfs_change_begin(names, &c, err));
    LFS_TRY(lfs_dataset_branch(c.dataset, c.arena, name, &branch, err));
    LFS_TRY(check_alone(&c, &branch, err));
    LFS_TRY(lfs_change_make_dir(&c, err));
    const struct lfs_record record = {{"remove", name, *branch.uuid ? branch.uuid : "-"}};
    char *ref = lfs_names_ref(c.arena, name);
    struct lfs_error why;
    errint_t result = ref ? lfs_change_record(&c, &record, err) : lfs_fail_nomem(err);
    if (result == 0)
        result = lfs_remove(c.root, ref, c.sync, err);
    if (result < 0 && lfs_change_forget(&c, &why) < 0)
        lfs_log(LFS_LOG_WARNING, "%s", why.message);
    LFS_TRY(result);
    if (throw_away(&c, name, &why) < 0 ||
        lfs_change_forget(&c, &why) < 0) /* the branch is gone; files wait for the next try */
        lfs_log(LFS_LOG_WARNING, "files of the deleted branch %s are left: %s", name, why.message);
    else
        lfs_log(LFS_LOG_INFO, "branch %s deleted", name);
    return 0;
}
