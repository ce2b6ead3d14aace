/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where branches are shown in MNT/tree. A branch's name is its path, unless that would hide it: when some branch on the
 * way has the next component for itself (its data, its control files). Such a branch is shown at the top under its
 * percent-encoded name; every branch can be reached by that name.
 */
#ifndef LFS_FUSE_TREE_H
#define LFS_FUSE_TREE_H

#include <stdbool.h>
#include <sys/stat.h>

#include "table/dataset.h"

struct lfs_shown_branch {
    const struct lfs_branch *branch;
    const char *path;   /* below tree/ */
    const char *prefix; /* where its sub-branches are; NULL when `path` is encoded */
};

/* A name in MNT/tables. */
struct lfs_table {
    const char *name;
    const struct lfs_shown_branch *shown;
};

/* The branches at one moment: immutable, counted. main first, the rest sorted by name. */
struct lfs_tree {
    struct lfs_shown_branch *list;
    size_t count;
    struct lfs_table *tables; /* sorted by name */
    size_t n_tables;
    struct timespec time; /* of the directory of refs, or of the data set's root where there is none */
    /* the cache's own */
    struct lfs_arena *arena;
    unsigned users;
    struct stat refs;
    struct timespec looked_at;
};

struct lfs_tree_cache;

struct lfs_tree_cache *lfs_tree_cache_new(struct lfs_dataset *ds);
void lfs_tree_cache_free(struct lfs_tree_cache *cache);
/* The branches as they are now. Branches whose directory holds no _versions are left out. Release with lfs_tree_put. */
errint_t lfs_tree_get(struct lfs_tree_cache *cache, struct lfs_tree **out, struct lfs_error *err);
void lfs_tree_put(struct lfs_tree_cache *cache, struct lfs_tree *tree);

/* By the branch's own name; NULL when there is none. */
const struct lfs_shown_branch *lfs_tree_branch(const struct lfs_tree *tree, const char *name);
/* By a path below tree/: where it is shown, or its percent-encoded name. NULL when nothing is there. `*encoded` says
 * that `path` is not the place of its sub-branches. */
const struct lfs_shown_branch *lfs_tree_at(const struct lfs_tree *tree, const char *path, bool *encoded);
/* Does `prefix` lead to a branch that is shown below it? */
bool lfs_tree_leads_on(const struct lfs_tree *tree, const char *prefix);

/* By a name in MNT/tables: "<branch>.lance". A '/' in the branch's name stands there as %2F; and once more as "..", since
 * LanceDB takes no '%' in a table's name. NULL when there is none. */
const struct lfs_shown_branch *lfs_tree_table(const struct lfs_tree *tree, const char *name);

/* Would `segment` in a branch's directory be taken for something else than a sub-branch? */
bool lfs_is_taken_name(const char *segment);

/* tables.c, when a snapshot is made: fill in the names in MNT/tables. False when memory is short. */
bool lfs_tree_name_tables(struct lfs_tree *tree);

#endif
