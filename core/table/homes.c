/* SPDX-License-Identifier: Apache-2.0 */
#include "table/homes.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>

#include "store/file.h"
#include "util/cleanup.h"
#include "util/limits.h"

#define LINES_DIR "_lancefs/lines/"

static bool grow(struct lfs_arena *arena, void **list, size_t count, size_t size) {
    if (count & (count - 1) || (count && count < 16)) /* full at 0, 16, 32, 64, ... */
        return true;
    void *grown = lfs_alloc_array(arena, count ? count * 2 : 16, size);
    if (grown && count)
        memcpy(grown, *list, count * size);
    *list = grown ? grown : *list;
    return grown != NULL;
}

static errint_t read_entries(DIR *dir, struct lfs_arena *arena, struct lfs_entry **out, size_t *n_out) {
    for (struct dirent *e; (e = readdir(dir));) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        char *name = lfs_strdup(arena, e->d_name);
        if (!name || !grow(arena, (void **)out, *n_out, sizeof **out))
            return -ENOMEM;
        bool unknown = e->d_type == DT_UNKNOWN;
        (*out)[(*n_out)++] = (struct lfs_entry){name, e->d_type == DT_REG || unknown,
                                                e->d_type == DT_DIR || e->d_type == DT_LNK || unknown};
    }
    return 0;
}

errint_t lfs_list_dir(struct lfs_dataset *ds, const char *directory, struct lfs_arena *arena, struct lfs_entry **out,
                      size_t *n_out, struct lfs_error *err) {
    *out = NULL;
    *n_out = 0;
    int fd = lfs_open_beneath(lfs_dataset_root_fd(ds), directory, O_RDONLY | O_DIRECTORY, 0);
    if (fd == -ENOENT || fd == -ENOTDIR)
        return 0;
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir) {
        if (fd >= 0)
            close(fd);
        return lfs_fail_errno(err, fd >= 0 ? ENOMEM : -fd, "cannot look into %s",
                              *directory ? directory : "the data set");
    }
    errint_t result = read_entries(dir, arena, out, n_out);
    closedir(dir);
    return result < 0 ? lfs_fail_nomem(err) : 0;
}

struct walk {
    struct lfs_dataset *ds;
    struct lfs_arena *arena;
    struct lfs_homes *out;
    struct lfs_error *err;
};

static bool is_line_storage(const char *dir) {
    return strncmp(dir, LINES_DIR, strlen(LINES_DIR)) == 0 && !strchr(dir + strlen(LINES_DIR), '/');
}

/* What a home is, by its place. */
static void name_home(const struct lfs_homes *homes, struct lfs_home *home) {
    home->kind = strncmp(home->dir, "_lancefs/", 9) ? LFS_HOME_BRANCH : LFS_HOME_OTHER;
    for (size_t i = 0; home->kind == LFS_HOME_BRANCH && i < homes->lines.n_branches; i++)
        if (strcmp(homes->lines.branches[i].dir, home->dir) == 0) {
            home->branch = &homes->lines.branches[i];
            home->line = *home->branch->uuid ? home->branch->uuid : NULL;
        }
    if (is_line_storage(home->dir)) {
        home->kind = LFS_HOME_LINE;
        home->line = home->dir + strlen(LINES_DIR);
    }
}

static errint_t add_home(struct walk *w, const char *dir, const struct stat *st) {
    struct lfs_homes *h = w->out;
    if (!grow(w->arena, (void **)&h->list, h->count, sizeof *h->list))
        return lfs_fail_nomem(w->err);
    h->list[h->count] = (struct lfs_home){.dir = dir, .dev = st->st_dev, .ino = st->st_ino};
    name_home(h, &h->list[h->count++]);
    return 0;
}

/* 1 for a directory (links beneath the root are followed, as stock does), 0 for anything else. */
static int stat_dir(struct walk *w, const char *path, struct stat *st) {
    LFS_AUTO_FD fd = lfs_open_beneath(lfs_dataset_root_fd(w->ds), path, O_PATH | O_DIRECTORY, 0);
    if (fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP)
        return 0;
    if (fd < 0 || fstat(fd, st) < 0)
        return lfs_fail_errno(w->err, fd < 0 ? -fd : errno, "cannot look at %s", path);
    return 1;
}

/* Branch names may hold any segment, also "data" or "_versions" (lance-format section 2.1), so every directory below is
 * looked at. Links make circles: what is deeper than a name can be is not a branch. */
static errint_t walk(struct walk *w, const char *dir, unsigned depth) {
    struct stat st;
    char *versions = lfs_join(w->arena, dir, "_versions");
    struct lfs_entry *entries;
    size_t n;
    if (!versions)
        return lfs_fail_nomem(w->err);
    int here = stat_dir(w, dir, &st), has = here == 1 ? stat_dir(w, versions, &(struct stat){0}) : here;
    if (has < 0 || here <= 0)
        return has < 0 ? has : here;
    if (has || is_line_storage(dir)) /* that of a line which only was a target has deletion files alone */
        LFS_TRY(add_home(w, dir, &st));
    if (depth == 0)
        return 0;
    LFS_TRY(lfs_list_dir(w->ds, dir, w->arena, &entries, &n, w->err));
    for (size_t i = 0; i < n; i++) {
        if (!entries[i].may_be_dir)
            continue;
        char *path = lfs_join(w->arena, dir, entries[i].name);
        int is_dir = path ? stat_dir(w, path, &st) : lfs_fail_nomem(w->err);
        if (is_dir < 0)
            return is_dir;
        if (is_dir)
            LFS_TRY(walk(w, path, depth - 1));
    }
    return 0;
}

errint_t lfs_homes_find(struct lfs_dataset *ds, struct lfs_arena *arena, struct lfs_homes *out, struct lfs_error *err) {
    struct walk w = {ds, arena, out, err};
    struct stat root;
    *out = (struct lfs_homes){.lines = {.dataset = ds, .arena = arena}};
    LFS_TRY(lfs_dataset_branches(ds, arena, &out->lines.branches, &out->lines.n_branches, &out->n_bad_refs, err));
    if (fstat(lfs_dataset_root_fd(ds), &root) < 0)
        return lfs_fail_errno(err, errno, "cannot stat the data set");
    LFS_TRY(add_home(&w, "", &root));
    LFS_TRY(walk(&w, "tree", LFS_BRANCH_NAME_MAX / 2 + 2));
    return walk(&w, "_lancefs", 3);
}
