/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mv in tree/. The directory moves in one step and a link stays at its old name, so that base paths and open handles lead
 * to it until all is done; then the manifests, the refs, what others say of the branch; last the link goes. Each step finds
 * out by itself whether it was done before.
 */
#include <string.h>

#include "commit/rebrand.h"
#include "store/dir.h"
#include "store/file.h"
#include "table/homes.h"
#include "util/cleanup.h"
#include "util/limits.h"
#include "util/log.h"
#include "verbs/names_impl.h"

struct rename {
    struct lfs_change *change;
    struct lfs_renaming names;
    char *from, *to; /* the directories, relative to the root */
};

static errint_t init(struct rename *r, struct lfs_change *c, const char *from, const char *to, struct lfs_error *err) {
    *r = (struct rename){c, {from, to}, lfs_names_dir(c->arena, from), lfs_names_dir(c->arena, to)};
    return r->from && r->to ? 0 : lfs_fail_nomem(err);
}

/* --- before --- */

static errint_t check_names(const struct rename *r, const struct lfs_branch *branches, size_t n,
                            struct lfs_error *err) {
    bool found = false, failed = false;
    for (size_t i = 1; i < n; i++) {
        char *name = lfs_renamed_branch(&r->names, branches[i].name, r->change->arena, &failed);
        if (failed)
            return lfs_fail_nomem(err);
        if (lfs_names_below(branches[i].name, r->names.to))
            return lfs_fail(err, LFS_E_EXISTS, "there is a branch %s already", branches[i].name);
        if (name)
            LFS_TRY(lfs_branch_name_check(name, err));
        found |= name != NULL;
    }
    return found ? 0 : lfs_fail(err, LFS_E_NOT_FOUND, "there is no branch %s", r->names.from);
}

static errint_t each_home(struct rename *r, bool only_look, struct lfs_error *err) {
    struct lfs_homes homes;
    uint64_t changed = 0;
    LFS_TRY(lfs_homes_find(r->change->dataset, r->change->arena, &homes, err));
    for (size_t i = 0; i < homes.count; i++) {
        const char *dir = homes.list[i].dir;
        if (lfs_names_below(dir, r->from) && lfs_path_kind(r->change->root, r->from) == LFS_PATH_LINK)
            continue; /* the same directories by their old names */
        LFS_TRY(lfs_rebrand(r->change->dataset, dir, &r->names, only_look, r->change->sync, &changed, err));
    }
    return 0;
}

static errint_t check(struct rename *r, struct lfs_error *err) {
    struct lfs_branch *branches;
    size_t n, n_bad;
    LFS_TRY(lfs_dataset_branches(r->change->dataset, r->change->arena, &branches, &n, &n_bad, err));
    if (n_bad)
        return lfs_fail(err, LFS_E_CORRUPT,
                        "a file in " LFS_BRANCH_REFS
                        " cannot be read, so nobody can say what it has to do with %s: the "
                        "log tells which",
                        r->names.from);
    LFS_TRY(check_names(r, branches, n, err));
    if (lfs_path_kind(r->change->root, r->from) != LFS_PATH_DIR)
        return lfs_fail(err, LFS_E_UNSUPPORTED, "%s is no plain directory: it cannot be renamed", r->from);
    lfs_remove_empty(r->change->root, r->to, "tree"); /* an empty one is in nobody's way */
    if (lfs_path_kind(r->change->root, r->to) != LFS_PATH_NONE)
        return lfs_fail(err, LFS_E_EXISTS, "%s is in the way, though no branch is called so", r->to);
    return each_home(r, true, err);
}

/* --- the steps --- */

/* "<parent>/<name>" without the last part; "" for none. */
static char *parent_of(struct lfs_arena *arena, const char *path) {
    const char *slash = strrchr(path, '/');
    return lfs_strndup(arena, path, slash ? (size_t)(slash - path) : 0);
}

static errint_t move_directory(struct rename *r, struct lfs_error *err) {
    struct lfs_change *c = r->change;
    if (lfs_path_kind(c->root, r->from) != LFS_PATH_DIR)
        return 0; /* moved before */
    char *parent = parent_of(c->arena, r->to);
    LFS_TRY(parent ? lfs_make_dirs(c->root, parent, c->sync, err) : lfs_fail_nomem(err));
    return lfs_move_linked(c->root, r->from, r->to, c->sync, err);
}

static errint_t move_refs(struct rename *r, struct lfs_error *err) {
    struct lfs_change *c = r->change;
    struct lfs_branch *branches;
    size_t n;
    bool failed = false;
    LFS_TRY(lfs_dataset_branches(c->dataset, c->arena, &branches, &n, NULL, err));
    for (size_t i = 1; i < n; i++) {
        char *name = lfs_renamed_branch(&r->names, branches[i].name, c->arena, &failed);
        char *from = name ? lfs_names_ref(c->arena, branches[i].name) : NULL;
        char *to = name ? lfs_names_ref(c->arena, name) : NULL;
        if (failed || (name && (!from || !to)))
            return lfs_fail_nomem(err);
        if (name)
            LFS_TRY(lfs_move_new(c->root, from, to, c->sync, err));
    }
    return 0;
}

/* The size of a version's manifest: it has changed with the names in it. False when it is not there. */
static bool manifest_size(struct lfs_change *c, const char *branch, uint64_t version, uint64_t *size) {
    struct lfs_version *v;
    char *dir = strcmp(branch, "main") ? lfs_names_dir(c->arena, branch) : lfs_strdup(c->arena, "");
    if (!dir || lfs_dataset_version(c->dataset, dir, version, &v, NULL) < 0)
        return false;
    *size = (uint64_t)v->file_size;
    lfs_version_release(v);
    return true;
}

/* Write a ref file anew where it names a renamed branch, or tells another size of a manifest than it has now. */
static errint_t edit_ref(struct rename *r, const char *path, const char *key, const char *branch, uint64_t version,
                         uint64_t told, struct lfs_error *err) {
    struct lfs_change *c = r->change;
    LFS_AUTO_BUF json = {0}, next = {0};
    uint64_t size;
    bool failed = false;
    char *name = lfs_renamed_branch(&r->names, branch, c->arena, &failed);
    bool known = manifest_size(c, name ? name : branch, version, &size), other = known && size != told;
    if (failed)
        return lfs_fail_nomem(err);
    if (!name && !other)
        return 0;
    LFS_TRY(lfs_read_file(c->root, path, LFS_REF_BYTES_MAX, &json, NULL, err));
    LFS_TRY(lfs_ref_edit(json.data, json.length, path, key, name, other ? &size : NULL, &next, err));
    const char *slash = strrchr(path, '/');
    char *directory = lfs_strndup(c->arena, path, (size_t)(slash - path));
    return directory ? lfs_write_replace(c->root, directory, slash + 1, &next, c->sync, err) : lfs_fail_nomem(err);
}

/* parentBranch of the children, and branch of the tags. */
static errint_t edit_refs(struct rename *r, struct lfs_error *err) {
    struct lfs_change *c = r->change;
    struct lfs_branch *branches;
    struct lfs_tag *tags;
    size_t n, n_tags;
    LFS_TRY(lfs_dataset_branches(c->dataset, c->arena, &branches, &n, NULL, err));
    for (size_t i = 1; i < n; i++) {
        char *path = lfs_names_ref(c->arena, branches[i].name);
        LFS_TRY(path ? edit_ref(r, path, "parentBranch", branches[i].parent_name, branches[i].parent_version,
                                branches[i].parent_manifest_size, err)
                     : lfs_fail_nomem(err));
    }
    LFS_TRY(lfs_dataset_tags(c->dataset, c->arena, &tags, &n_tags, NULL, err));
    for (size_t i = 0; i < n_tags; i++) {
        char *encoded = lfs_percent_encode(c->arena, tags[i].name);
        char *path = encoded ? lfs_sprintf(c->arena, "_refs/tags/%s.json", encoded) : NULL;
        LFS_TRY(path ? edit_ref(r, path, "branch", tags[i].branch, tags[i].version, tags[i].ref.manifest_size, err)
                     : lfs_fail_nomem(err));
    }
    return 0;
}

static errint_t clear_old_name(struct rename *r, struct lfs_error *err) {
    struct lfs_change *c = r->change;
    if (lfs_path_kind(c->root, r->from) == LFS_PATH_LINK)
        LFS_TRY(lfs_remove(c->root, r->from, c->sync, err));
    char *parent = parent_of(c->arena, r->from);
    if (parent && strcmp(parent, "tree"))
        lfs_remove_empty(c->root, parent, "tree");
    return parent ? 0 : lfs_fail_nomem(err);
}

static errint_t go(struct rename *r, struct lfs_error *err) {
    LFS_TRY(move_directory(r, err));
    LFS_TRY(each_home(r, false, err));
    LFS_TRY(move_refs(r, err));
    LFS_TRY(edit_refs(r, err));
    LFS_TRY(each_home(r, false, err)); /* what others committed meanwhile, through the link */
    return clear_old_name(r, err);
}

/* While the directory has not moved nothing has happened, and it is taken back: names may be taken by now. */
errint_t lfs_finish_rename(struct lfs_change *c, const struct lfs_record *record, struct lfs_error *err) {
    struct rename r;
    LFS_TRY(init(&r, c, record->words[1], record->words[2], err));
    if (lfs_path_kind(c->root, r.from) == LFS_PATH_DIR) {
        if (lfs_path_kind(c->root, r.to) == LFS_PATH_LINK)
            LFS_TRY(lfs_remove(c->root, r.to, c->sync, err));
        lfs_remove_empty(c->root, r.to, "tree");
        return 0;
    }
    return go(&r, err);
}

errint_t lfs_names_rename(const struct lfs_names *names, const char *from, const char *to, struct lfs_error *err) {
    LFS_AUTO_CHANGE c = {.lock = -1};
    struct rename r;
    struct lfs_error why;
    const struct lfs_record record = {{"rename", from, to}};
    if (strcmp(from, "main") == 0 || strcmp(to, "main") == 0)
        return lfs_fail(err, LFS_E_DENIED, "main keeps its name, and no other branch can have it");
    LFS_TRY(lfs_change_begin(names, &c, err));
    LFS_TRY(lfs_names_check(to, err));
    if (lfs_names_below(to, from))
        return lfs_fail(err, LFS_E_USAGE, "%s cannot move into itself, to %s", from, to);
    LFS_TRY(init(&r, &c, from, to, err));
    LFS_TRY(check(&r, err));
    LFS_TRY(lfs_change_make_dir(&c, err));
    errint_t result = lfs_change_record(&c, &record, err);
    if (result == 0)
        result = go(&r, err);
    if (result < 0 && lfs_finish_rename(&c, &record, &why) < 0) { /* it waits for the next change, or mount */
        lfs_log(LFS_LOG_ERROR, "renaming %s to %s stopped half-way, and is finished later: %s", from, to, why.message);
        return result;
    }
    if (result < 0 && lfs_path_kind(c.root, r.from) == LFS_PATH_NONE)
        result = 0; /* what was in the way once was not so again */
    if (lfs_change_forget(&c, &why) < 0)
        lfs_log(LFS_LOG_WARNING, "%s", why.message);
    if (result == 0)
        lfs_log(LFS_LOG_INFO, "branch %s renamed to %s", from, to);
    return result;
}
