/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one manifest refers to, small enough to be kept for every version of a data set: names as hashes, by the base that
 * they lie in. Manifests never change, so each is read once while its file stays the same (device, inode, size, time).
 * Two names of one hash only make a file stay that could go.
 */
#ifndef LFS_TABLE_REFERENCES_H
#define LFS_TABLE_REFERENCES_H

#include "table/dataset.h"

/* The files that lie in one base: the version's own directory, or a base path. */
struct lfs_reference_group {
    const char *base; /* the base path's string; NULL = the version's own directory */
    uint64_t *names;  /* lfs_reference_name of each */
    size_t n_names;
};

struct lfs_references {
    uint64_t number;                    /* as the manifest says */
    const char *vector;                 /* lancefs.vector; NULL = none */
    const char *branch;                 /* the branch field; NULL = none */
    bool is_undo;                       /* the commit is an undo of ours */
    struct lfs_reference_group *groups; /* the own directory first, then one for each base path */
    size_t n_groups;
    uint64_t *
        deletions; /* deletion files, wherever they lie: those of its fragments, and of those that its commit rewrote */
    size_t n_deletions;
    /* the cache's own */
    struct lfs_arena *arena;
    unsigned users;
};

/* The hash of a file's name below a home: "data/<name>", "_deletions/<name>", "_indices/<uuid>", "_transactions/<name>". */
uint64_t lfs_reference_name(const char *name);

/*
 * The references of the manifest file at `path` (relative to the root). -ENOENT when it is gone. What cannot be told
 * whole is an error, so that nobody takes a file for unreferenced: LFS_E_CORRUPT (damaged, a base id without base path),
 * LFS_E_UNSUPPORTED (features that this program does not know, row ids in files of their own). Release with
 * lfs_references_release. Thread safe.
 */
errint_t lfs_references_get(struct lfs_dataset *ds, const char *path, struct lfs_references **out,
                            struct lfs_error *err);
void lfs_references_release(struct lfs_dataset *ds, struct lfs_references *references); /* NULL is fine */

#endif
