/* SPDX-License-Identifier: Apache-2.0 */
#include "fuse/changes.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "commit/adopt.h"
#include "fuse/staged.h"
#include "fuse/tag_refs.h"
#include "store/file.h"
#include "util/cleanup.h"
#include "util/log.h"

#define HINT_NAME "latest_version_hint.json"

/* A name in a branch's directory, and where it lies. */
struct place {
    struct lfs_node *directory;
    const char *name;
    char *path, *in; /* relative to the data set's root */
};

static errint_t place_of(struct lfs_mount *m, struct lfs_node *directory, const char *name, struct lfs_arena *arena,
                         struct place *out) {
    if (m->options->read_only)
        return -EROFS;
    if (!lfs_is_stage(directory))
        return -EPERM;
    *out = (struct place){.directory = directory, .name = name, .in = lfs_stage_directory(directory, arena)};
    out->path = out->in ? lfs_sprintf(arena, "%s/%s", out->in, name) : NULL;
    return out->path ? 0 : -ENOMEM;
}

/* Is something shown under this name, wherever it lies? Looks again, since others commit too. */
static errint_t is_shown(struct lfs_mount *m, const struct place *p, enum lfs_node_kind *kind) {
    struct fuse_entry_param e;
    LFS_TRY(lfs_look_up(m, p->directory, p->name, false, &e));
    *kind = lfs_nodes_find(m->nodes, e.ino)->kind;
    lfs_nodes_forget(m->nodes, e.ino, 1);
    return 0;
}

static errint_t expect_staged(struct lfs_mount *m, const struct place *p) {
    enum lfs_node_kind kind;
    LFS_TRY(is_shown(m, p, &kind));
    return kind == LFS_NODE_STAGED ? 0 : kind == LFS_NODE_FILES ? -EISDIR : -EPERM;
}

/* The new name must be free; what is staged, and the hint, may be replaced. */
static errint_t expect_free(struct lfs_mount *m, const struct place *p, bool replace) {
    enum lfs_node_kind kind;
    errint_t result = is_shown(m, p, &kind);
    if (result == -ENOENT)
        return 0;
    LFS_TRY(result);
    return replace && (kind == LFS_NODE_STAGED || kind == LFS_NODE_HINT) ? 0 : -EEXIST;
}

static struct lfs_adoption adoption(struct lfs_mount *m, const struct lfs_node *directory) {
    return (struct lfs_adoption){m->views, directory->branch->text, directory->branch->dir, m->settings.sync};
}

/* A transaction without a version: what a writer leaves that lost the race, or that is not at its end yet. */
static bool is_loose_transaction(struct lfs_mount *m, const struct place *p) {
    struct lfs_adoption a = adoption(m, p->directory);
    bool taken = true;
    return p->directory->kind == LFS_NODE_TRANSACTIONS && lfs_adopted_transaction(&a, p->name, &taken, NULL) == 0 && !taken;
}

static bool is_plain_name(const struct lfs_node *directory, const char *name) {
    return lfs_is_stage_name(directory, name) || (directory->kind == LFS_NODE_VERSIONS && strcmp(name, HINT_NAME) == 0);
}

/* --- commits --- */

/* The staged file gets the references of the branch back and its name. A tag is moved by a rename alone. */
static errint_t publish(struct lfs_mount *m, int fd, const struct place *to, bool replace) {
    if (to->directory->kind == LFS_NODE_TEXTS)
        return lfs_tag_refs_publish(m, to->directory, fd, to->name, replace);
    struct lfs_adoption a = adoption(m, to->directory);
    struct lfs_error err;
    errint_t result = to->directory->kind == LFS_NODE_VERSIONS ? lfs_adopt_manifest(&a, fd, to->name, &err)
                                                               : lfs_adopt_transaction(&a, fd, to->name, &err);
    if (result < 0 && result != -EEXIST)
        lfs_log(LFS_LOG_WARNING, "a commit to %s through the mount was refused: %s", a.branch, err.message);
    return result;
}

/* The directories that every branch has are flushed by its commits; one that a writer made is known here. */
static errint_t flush_names(struct lfs_mount *m, const struct place *p) {
    struct lfs_error err;
    bool own = p->directory->kind == LFS_NODE_FILES && *p->directory->text;
    return own && m->settings.sync ? lfs_sync_dir(lfs_dataset_root_fd(m->dataset), p->in, &err) : 0;
}

errint_t lfs_change_link(struct lfs_mount *m, struct lfs_node *node, struct lfs_node *directory, const char *name,
                         struct fuse_entry_param *e) {
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    struct place to;
    if (!arena)
        return -ENOMEM;
    LFS_TRY(place_of(m, directory, name, arena, &to));
    if (node->kind != LFS_NODE_STAGED || node->branch != directory->branch)
        return -EPERM;
    LFS_TRY(expect_free(m, &to, false));
    LFS_AUTO_FD fd = lfs_staged_reach(m, node, O_RDONLY);
    if (fd < 0)
        return fd;
    if (is_plain_name(directory, name)) {
        char link[40];
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        LFS_AUTO_FD in = lfs_dataset_open_beneath(m->dataset, to.in, O_PATH | O_DIRECTORY);
        if (in < 0 || linkat(AT_FDCWD, link, in, name, AT_SYMLINK_FOLLOW) < 0)
            return in < 0 ? in : -errno;
        LFS_TRY(flush_names(m, &to));
    } else {
        LFS_TRY(publish(m, fd, &to, false));
    }
    return lfs_look_up(m, directory, name, false, e);
}

/* A rename to a name that means a commit: published, then the staged file goes. */
static errint_t publish_by_rename(struct lfs_mount *m, const struct place *from, const struct place *to, bool replace) {
    if (to->directory->kind == LFS_NODE_VERSIONS)
        LFS_TRY(expect_free(m, to, false));
    LFS_AUTO_FD fd = lfs_open_regular(lfs_dataset_root_fd(m->dataset), from->path);
    if (fd < 0)
        return fd;
    LFS_TRY(publish(m, fd, to, replace));
    unlinkat(lfs_dataset_root_fd(m->dataset), from->path, 0);
    return 0;
}

errint_t lfs_change_rename(struct lfs_mount *m, struct lfs_node *from_dir, const char *name, struct lfs_node *to_dir,
                           const char *new_name, unsigned flags) {
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    struct place from, to;
    if (!arena)
        return -ENOMEM;
    LFS_TRY(place_of(m, from_dir, name, arena, &from));
    LFS_TRY(place_of(m, to_dir, new_name, arena, &to));
    if (flags & ~(unsigned)RENAME_NOREPLACE)
        return -EINVAL;
    if (from_dir->branch != to_dir->branch || from_dir->kind != to_dir->kind)
        return -EXDEV;
    LFS_TRY(expect_staged(m, &from));
    if (!is_plain_name(to_dir, new_name))
        return publish_by_rename(m, &from, &to, !(flags & RENAME_NOREPLACE));
    LFS_TRY(expect_free(m, &to, !(flags & RENAME_NOREPLACE)));
    LFS_AUTO_FD in = lfs_dataset_open_beneath(m->dataset, from.in, O_PATH | O_DIRECTORY);
    LFS_AUTO_FD out = lfs_dataset_open_beneath(m->dataset, to.in, O_PATH | O_DIRECTORY);
    if (in < 0 || out < 0)
        return in < 0 ? in : out;
    return renameat2(in, name, out, new_name, flags) < 0 ? -errno : flush_names(m, &to);
}

/* Does what is shown under this name lie in the branch's own storage? */
static errint_t expect_own(struct lfs_mount *m, const struct place *p, struct lfs_arena *arena) {
    struct lfs_view_entry entry;
    const struct lfs_node *d = p->directory;
    if (d->kind != LFS_NODE_FILES)
        return strcmp(p->name, HINT_NAME) ? 0 : -EPERM;
    char *path = lfs_join(arena, d->text, p->name);
    char *own = lfs_join(arena, d->branch->dir, lfs_kind_directory[d->file_kind]);
    if (!path || !own)
        return -ENOMEM;
    LFS_TRY(lfs_views_find(m->views, d->branch->dir, d->file_kind, path, arena, &entry, NULL));
    bool is_own = entry.reached && entry.location.inside && strcmp(entry.location.directory, own) == 0 &&
                  strcmp(entry.location.name, path) == 0;
    return is_own ? 0 : -EPERM;
}

errint_t lfs_change_unlink(struct lfs_mount *m, struct lfs_node *directory, const char *name, char **published) {
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    struct place p;
    enum lfs_node_kind kind;
    *published = NULL;
    if (!arena)
        return -ENOMEM;
    LFS_TRY(place_of(m, directory, name, arena, &p));
    LFS_TRY(is_shown(m, &p, &kind));
    if (kind == LFS_NODE_FILES)
        return -EISDIR;
    if (kind == LFS_NODE_TEXT)
        return lfs_tag_refs_remove(m, directory, name);
    if (kind == LFS_NODE_STAGED || is_loose_transaction(m, &p))
        return unlinkat(lfs_dataset_root_fd(m->dataset), p.path, 0) < 0 ? -errno : 0;
    LFS_TRY(expect_own(m, &p, arena));
    *published = strdup(p.path + (*directory->branch->dir ? strlen(directory->branch->dir) + 1 : 0));
    return *published ? 0 : -ENOMEM;
}

/* --- directories --- */

errint_t lfs_change_mkdir(struct lfs_mount *m, struct lfs_node *directory, const char *name, mode_t mode,
                          struct fuse_entry_param *e) {
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    struct place p;
    struct lfs_error err;
    if (!arena)
        return -ENOMEM;
    LFS_TRY(place_of(m, directory, name, arena, &p));
    if (directory->kind != LFS_NODE_FILES || directory->file_kind == LFS_FILE_DELETION)
        return -EPERM;
    LFS_TRY(expect_free(m, &p, false));
    LFS_TRY(lfs_staged_expect_branch(m, directory->branch));
    int root = lfs_dataset_root_fd(m->dataset);
    if (!*directory->text)
        LFS_TRY(lfs_make_dirs(root, p.in, m->settings.sync, &err));
    if (mkdirat(root, p.path, mode & 07777) < 0)
        return -errno;
    return lfs_look_up(m, directory, name, false, e);
}

errint_t lfs_change_rmdir(struct lfs_mount *m, struct lfs_node *directory, const char *name) {
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    struct place p;
    if (!arena)
        return -ENOMEM;
    LFS_TRY(place_of(m, directory, name, arena, &p));
    if (directory->kind != LFS_NODE_FILES)
        return -EPERM;
    if (unlinkat(lfs_dataset_root_fd(m->dataset), p.path, AT_REMOVEDIR) == 0)
        return 0;
    errint_t result = -errno;
    enum lfs_node_kind kind; /* that of another storage is not this writer's */
    return result == -ENOENT && is_shown(m, &p, &kind) == 0 ? -EPERM : result;
}

errint_t lfs_change_sync_directory(struct lfs_mount *m, const struct lfs_node *directory) {
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    struct lfs_error err;
    char *path = arena && lfs_is_stage(directory) ? lfs_stage_directory(directory, arena) : NULL;
    if (!path)
        return 0;
    errint_t result = lfs_sync_dir(lfs_dataset_root_fd(m->dataset), path, &err);
    return result == -ENOENT ? 0 : result;
}
