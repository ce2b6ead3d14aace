/* SPDX-License-Identifier: Apache-2.0 */
/* What stat says. Times come from the data, so that they are the same after a remount and change with a commit. */
#include <fcntl.h>
#include <string.h>

#include "fuse/mount.h"
#include "fuse/staged.h"
#include "fuse/texts.h"
#include "util/cleanup.h"

enum { BLOCK = 512, IO_SIZE = 4096 };

#define WRITE_BITS (S_IWUSR | S_IWGRP | S_IWOTH)

static void set_size(struct stat *st, off_t size) {
    st->st_size = size;
    st->st_blocks = (size + BLOCK - 1) / BLOCK;
    st->st_blksize = IO_SIZE;
    st->st_nlink = 1;
}

static void set_time(struct stat *st, struct timespec time) { st->st_mtim = st->st_ctim = st->st_atim = time; }

/* A file that nobody writes through the mount: mode and owner are the storage's. */
static void file_attributes(const struct stat *stored, off_t size, struct timespec time, struct stat *st) {
    ino_t ino = st->st_ino;
    *st = (struct stat){.st_ino = ino, .st_uid = stored->st_uid, .st_gid = stored->st_gid};
    st->st_mode = S_IFREG | (stored->st_mode & 0777 & ~(mode_t)WRITE_BITS);
    set_size(st, size);
    set_time(st, time);
}

void lfs_rendered_attributes(const struct lfs_rendered_info *info, struct stat *st) {
    file_attributes(&info->st, info->size, info->time, st);
}

static void directory_attributes(const struct stat *stored, struct timespec time, struct stat *st) {
    ino_t ino = st->st_ino;
    *st = (struct stat){.st_ino = ino, .st_uid = stored->st_uid, .st_gid = stored->st_gid};
    st->st_mode = S_IFDIR | (stored->st_mode & 0777);
    st->st_nlink = 1; /* not a count of sub-directories: find(1) and others take 1 for "unknown" */
    st->st_blksize = IO_SIZE;
    set_time(st, time);
}

/* --- times --- */

static bool is_later(struct timespec a, struct timespec b) {
    return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec > b.tv_nsec;
}

static errint_t stat_directory(struct lfs_mount *m, const char *path, struct stat *st) {
    LFS_AUTO_FD fd = lfs_dataset_open_beneath(m->dataset, path, O_PATH | O_DIRECTORY);
    if (fd < 0)
        return fd;
    return fstat(fd, st) < 0 ? -errno : 0;
}

static errint_t stat_in_branch(struct lfs_mount *m, const char *dir, const char *name, struct stat *st) {
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    char *path = arena ? lfs_join(arena, dir, name) : NULL;
    return path ? stat_directory(m, path, st) : -ENOMEM;
}

struct timespec lfs_branch_time(struct lfs_mount *m, const char *dir) {
    struct lfs_view_tip tip;
    struct stat st = {0};
    if (lfs_views_tip(m->views, dir, &tip, NULL) == 0)
        return tip.time;
    stat_in_branch(m, dir, "_versions", &st);
    return st.st_mtim;
}

struct timespec lfs_node_time(struct lfs_mount *m, const struct lfs_node *branch) {
    struct lfs_view_tip tip;
    struct timespec time = {0};
    if (branch->version && lfs_views_tip(m->views, branch->dir, &tip, NULL) == 0)
        time = lfs_views_time(m->views, branch->dir, branch->version, tip.naming);
    return time.tv_sec ? time : lfs_branch_time(m, branch->dir);
}

/* The newest of the branches below a directory of MNT/tree, and of the list of branches itself. */
errint_t lfs_tree_time(struct lfs_mount *m, const char *prefix, struct timespec *out) {
    struct lfs_tree *tree;
    size_t length = strlen(prefix);
    LFS_TRY(lfs_tree_get(m->trees, &tree, NULL));
    *out = tree->time;
    for (size_t i = 0; i < tree->count; i++) {
        const struct lfs_shown_branch *shown = &tree->list[i];
        if (length && (strncmp(shown->path, prefix, length) != 0 || shown->path[length] != '/'))
            continue;
        struct timespec time = lfs_branch_time(m, shown->branch->dir);
        if (is_later(time, *out))
            *out = time;
    }
    lfs_tree_put(m->trees, tree);
    return 0;
}

/* --- by kind --- */

static errint_t tree_attributes(struct lfs_mount *m, const char *prefix, struct stat *st) {
    struct timespec time;
    struct stat root;
    LFS_TRY(lfs_tree_time(m, prefix, &time));
    if (fstat(lfs_dataset_root_fd(m->dataset), &root) < 0)
        return -errno;
    directory_attributes(&root, time, st);
    return 0;
}

/* A table is as old as its branch: each path that a writer opens goes through such a link, so others are not asked. */
static errint_t table_attributes(struct lfs_mount *m, const struct lfs_node *node, struct stat *st) {
    struct lfs_tree *tree;
    struct stat root;
    bool encoded;
    if (fstat(lfs_dataset_root_fd(m->dataset), &root) < 0)
        return -errno;
    LFS_TRY(lfs_tree_get(m->trees, &tree, NULL));
    const struct lfs_shown_branch *shown = lfs_tree_at(tree, node->text + strlen("../tree/"), &encoded);
    directory_attributes(&root, shown ? lfs_branch_time(m, shown->branch->dir) : tree->time, st);
    lfs_tree_put(m->trees, tree);
    return 0;
}

static errint_t link_attributes(struct lfs_mount *m, const struct lfs_node *node, struct stat *st) {
    LFS_TRY(node->kind == LFS_NODE_TABLE ? table_attributes(m, node, st) : tree_attributes(m, "", st));
    st->st_mode = S_IFLNK | 0777;
    set_size(st, (off_t)strlen(node->text));
    return 0;
}

static errint_t branch_attributes(struct lfs_mount *m, const struct lfs_node *node, const char *name, struct stat *st) {
    struct stat stored;
    const char *dir = node->branch->dir;
    errint_t result = *name ? stat_in_branch(m, dir, name, &stored) : -ENOENT;
    if (result < 0) /* data, _deletions, ... are there also where the storage has none yet */
        LFS_TRY(stat_in_branch(m, dir, "", &stored));
    directory_attributes(&stored, lfs_node_time(m, node->branch), st);
    return 0;
}

/* As old as the newest tag, or as what the tags lead to. */
static errint_t tags_attributes(struct lfs_mount *m, struct stat *st) {
    struct stat tags;
    LFS_TRY(tree_attributes(m, "", st));
    if (stat_directory(m, "_refs/tags", &tags) == 0 && is_later(tags.st_mtim, st->st_mtim))
        set_time(st, tags.st_mtim);
    return 0;
}

static errint_t files_attributes(struct lfs_mount *m, const struct lfs_node *node, struct stat *st) {
    if (!*node->text)
        return branch_attributes(m, node, node->name, st);
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    struct lfs_view_entry entry;
    if (!arena)
        return -ENOMEM;
    LFS_TRY(lfs_views_find(m->views, node->branch->dir, node->file_kind, node->text, arena, &entry, NULL));
    if (!entry.is_dir)
        return -ESTALE;
    if (!entry.reached)
        return branch_attributes(m, node, "", st);
    directory_attributes(&entry.st, entry.st.st_mtim, st);
    return 0;
}

static errint_t control_attributes(struct lfs_mount *m, const struct lfs_node *node, struct stat *st) {
    off_t size;
    struct timespec time;
    ino_t ino = st->st_ino;
    LFS_TRY(lfs_control_size(m, node, &size));
    if (node->branch)
        time = lfs_branch_time(m, node->branch->dir);
    else
        LFS_TRY(lfs_tree_time(m, "", &time));
    *st = (struct stat){.st_ino = ino, .st_uid = m->uid, .st_gid = m->gid};
    st->st_mode = S_IFREG | m->options->control_mode;
    set_size(st, size);
    set_time(st, time);
    return 0;
}

/* Whose data it tells of may read it. */
errint_t lfs_text_attributes(struct lfs_mount *m, const struct lfs_node *place, const struct lfs_text *text,
                             struct stat *st) {
    struct stat stored;
    LFS_TRY(stat_in_branch(m, place->branch ? place->branch->dir : "", "", &stored));
    stored.st_mode &= 0444; /* a directory's: who may search it has the bits to read it */
    file_attributes(&stored, (off_t)text->size, text->time, st);
    return 0;
}

/* Its size is not known before it is made. */
static errint_t slow_text_attributes(struct lfs_mount *m, const struct lfs_node *node, struct stat *st) {
    struct lfs_text none = {0};
    LFS_TRY(lfs_tree_time(m, "", &none.time));
    return lfs_text_attributes(m, lfs_text_place(node), &none, st);
}

/* Whose branch it would be a version of. */
errint_t lfs_image_attributes(struct lfs_mount *m, const struct lfs_node *place, bool is_dir, off_t size,
                              struct timespec time, struct stat *st) {
    struct stat stored;
    LFS_TRY(stat_in_branch(m, place->dir, "", &stored));
    if (is_dir) {
        directory_attributes(&stored, time, st);
    } else {
        stored.st_mode &= 0444;
        file_attributes(&stored, size, time, st);
    }
    return 0;
}

static errint_t unreached_attributes(struct lfs_mount *m, const struct lfs_node *node, struct stat *st) {
    struct stat stored;
    LFS_TRY(stat_in_branch(m, node->branch->dir, "", &stored));
    stored.st_mode = 0444;
    file_attributes(&stored, node->st.st_size, lfs_branch_time(m, node->branch->dir), st);
    return 0;
}

static errint_t hint_attributes(struct lfs_mount *m, const struct lfs_node *node, struct stat *st) {
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    const char *dir = node->branch->dir;
    struct stat stored;
    char *path = arena ? lfs_sprintf(arena, "%s%s_versions/%s", dir, *dir ? "/" : "", node->name) : NULL;
    LFS_AUTO_FD fd = path ? lfs_dataset_open_beneath(m->dataset, path, O_PATH | O_NOFOLLOW) : -ENOMEM;
    if (fd < 0 || fstat(fd, &stored) < 0)
        return fd < 0 ? fd : -errno;
    if (!S_ISREG(stored.st_mode))
        return -ENOENT;
    file_attributes(&stored, stored.st_size, stored.st_mtim, st);
    return 0;
}

errint_t lfs_attributes(struct lfs_mount *m, struct lfs_node *node, struct stat *st, double *timeout) {
    *st = (struct stat){.st_ino = node->st_ino};
    *timeout = m->options->attr_timeout;
    switch (node->kind) {
    case LFS_NODE_ROOT:
    case LFS_NODE_TABLES: return tree_attributes(m, "", st);
    case LFS_NODE_TREE: return tree_attributes(m, node->text, st);
    case LFS_NODE_TAGS: return tags_attributes(m, st);
    case LFS_NODE_TABLE:
    case LFS_NODE_TAG: return link_attributes(m, node, st);
    case LFS_NODE_HISTORY:
    case LFS_NODE_BRANCH:
    case LFS_NODE_PREVIEWS:
    case LFS_NODE_TEXTS: return branch_attributes(m, node, "", st);
    case LFS_NODE_VERSIONS:
    case LFS_NODE_TRANSACTIONS: return branch_attributes(m, node, node->name, st);
    case LFS_NODE_FILES: return files_attributes(m, node, st);
    case LFS_NODE_HINT: return hint_attributes(m, node, st);
    case LFS_NODE_CONTROL: return control_attributes(m, node, st);
    case LFS_NODE_UNREACHED: return unreached_attributes(m, node, st);
    case LFS_NODE_STAGED: *timeout = 0; return lfs_staged_attributes(m, node, st);
    case LFS_NODE_RENDERED:
        *st = node->st;
        *timeout = node->cause ? *timeout : LFS_IMMUTABLE_TIMEOUT;
        return 0;
    case LFS_NODE_FILE:
        file_attributes(&node->st, node->st.st_size, node->st.st_mtim, st);
        *timeout = LFS_IMMUTABLE_TIMEOUT;
        return 0;
    case LFS_NODE_IMAGE:
    case LFS_NODE_IMAGE_DIR:
    case LFS_NODE_IMAGE_FILE:
    case LFS_NODE_TEXT:
        if (lfs_text_is_slow(lfs_text_place(node), node->text))
            return slow_text_attributes(m, node, st);
        *st = node->st;
        *timeout = LFS_IMMUTABLE_TIMEOUT;
        return 0;
    }
    return -EIO;
}
