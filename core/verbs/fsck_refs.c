/* SPDX-License-Identifier: Apache-2.0 */
/* Refs, tags, directories and line storage against each other. */
#include <inttypes.h>
#include <string.h>

#include "store/file.h"
#include "util/cleanup.h"
#include "util/limits.h"
#include "verbs/fsck_impl.h"

static const struct lfs_home *home_at(const struct lfs_fsck *f, const char *dir) {
    for (size_t i = 0; i < f->homes.count; i++)
        if (strcmp(f->homes.list[i].dir, dir) == 0)
            return &f->homes.list[i];
    return NULL;
}

/* Every file that stock Lance would parse as a ref; one bad one makes it refuse to list any (lance-format section 2.1). */
static errint_t check_files(struct lfs_fsck *f, const char *directory, bool tags) {
    struct lfs_entry *entries;
    size_t n;
    LFS_TRY(lfs_list_dir(f->ds, directory, f->arena, &entries, &n, f->err));
    for (size_t i = 0; i < n; i++) {
        struct lfs_error why;
        struct lfs_branch branch;
        struct lfs_tag tag;
        size_t length = strlen(entries[i].name);
        if (length < 5 || strcmp(entries[i].name + length - 5, ".json"))
            continue;
        char *stem = lfs_strndup(f->arena, entries[i].name, length - 5);
        char *name = stem ? lfs_percent_decode(f->arena, stem) : NULL;
        errint_t result = !name  ? lfs_fail(&why, LFS_E_CORRUPT, "its name is none of a ref")
                          : tags ? lfs_dataset_tag(f->ds, f->arena, name, &tag, &why)
                                 : lfs_dataset_branch(f->ds, f->arena, name, &branch, &why);
        if (result < 0)
            lfs_fsck_error(f,
                           "%s/%s cannot be used (%s): stock Lance lists none of them while it is there; restore it, "
                           "or move it away",
                           directory, entries[i].name, why.message);
    }
    return 0;
}

static void check_branch(struct lfs_fsck *f, const struct lfs_branch *b) {
    if (!home_at(f, b->dir))
        lfs_fsck_error(f,
                       "branch %s has a ref but no versions in %s: its making or deleting stopped half-way, or it was "
                       "lost; delete the branch",
                       b->name, b->dir);
    if (!*b->uuid)
        lfs_fsck_note(f,
                      "branch %s has no identifier (an old Lance made it): it cannot be merged, and is not protected "
                      "by its children",
                      b->name);
    else if (b->n_forks && strcmp(b->parent_uuid, "main") && !lfs_lines_branch(&f->homes.lines, b->parent_uuid))
        lfs_fsck_note(f, "the parent of branch %s (%s) is gone", b->name, b->parent_name);
}

static void check_tag(struct lfs_fsck *f, const struct lfs_tag *tag) {
    struct lfs_branch branch;
    struct lfs_version *version;
    struct lfs_error why;
    if (lfs_dataset_branch(f->ds, f->arena, tag->branch, &branch, NULL) < 0) {
        lfs_fsck_error(f, "tag %s names branch %s, which is not there: delete the tag", tag->name, tag->branch);
        return;
    }
    errint_t result = lfs_dataset_version(f->ds, branch.dir, tag->version, &version, &why);
    if (result == -ENOENT)
        lfs_fsck_error(f, "tag %s names version %" PRIu64 " of %s, which is gone: delete the tag, or move it",
                       tag->name, tag->version, tag->branch);
    if (result == 0)
        lfs_version_release(version);
}

static errint_t check_line(struct lfs_fsck *f, const struct lfs_home *home) {
    struct lfs_error why;
    struct lfs_branch branch;
    LFS_AUTO_BUF json = {0};
    char *path = lfs_join(f->arena, home->dir, LFS_KEPT_REF);
    if (!path)
        return lfs_fail_nomem(f->err);
    if (lfs_lines_branch(&f->homes.lines, home->line) || strcmp(home->line, "main") == 0)
        return 0;
    if (lfs_read_file(lfs_dataset_root_fd(f->ds), path, LFS_REF_BYTES_MAX, &json, NULL, &why) == -ENOENT)
        lfs_fsck_note(f, "%s: its branch is gone, and no ref of it was kept", home->dir);
    else if (lfs_lines_any_branch(&f->homes.lines, home->line, &branch, &why) < 0)
        lfs_fsck_error(f, "%s cannot be used (%s): merges that need this line's history will say so", path,
                       why.message);
    return 0;
}

/* A change of names that stopped half-way has left its record (merge-semantics section 9). */
static errint_t check_records(struct lfs_fsck *f) {
    struct lfs_entry *entries;
    size_t n;
    LFS_TRY(lfs_list_dir(f->ds, "_lancefs/names", f->arena, &entries, &n, f->err));
    for (size_t i = 0; i < n; i++)
        lfs_fsck_error(
            f,
            "_lancefs/names/%s: a change of branch names stopped half-way; fsck.lancefs -y, or the next one, finishes it or takes it back",
            entries[i].name);
    return 0;
}

errint_t lfs_fsck_refs(struct lfs_fsck *f) {
    struct lfs_tag *tags;
    size_t n;
    LFS_TRY(check_files(f, "_refs/branches", false));
    LFS_TRY(check_files(f, "_refs/tags", true));
    for (size_t i = 1; i < f->homes.lines.n_branches; i++)
        check_branch(f, &f->homes.lines.branches[i]);
    LFS_TRY(lfs_dataset_tags(f->ds, f->arena, &tags, &n, NULL, f->err));
    for (size_t i = 0; i < n; i++)
        check_tag(f, &tags[i]);
    for (size_t i = 0; i < f->homes.count; i++) {
        const struct lfs_home *home = &f->homes.list[i];
        if (home->kind == LFS_HOME_BRANCH && !home->branch)
            lfs_fsck_error(f,
                           "%s holds versions, but no ref names it: the making or deleting of a branch stopped "
                           "half-way; remove the directory if nobody misses it",
                           home->dir);
        if (home->kind == LFS_HOME_LINE)
            LFS_TRY(check_line(f, home));
    }
    return check_records(f);
}
