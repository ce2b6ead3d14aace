/* SPDX-License-Identifier: Apache-2.0 */
/* What nothing holds, found on the disk and (by .gc) removed. For the files of verbs/. */
#ifndef LFS_VERBS_SWEEP_H
#define LFS_VERBS_SWEEP_H

#include "table/reach.h"

enum lfs_swept_kind {
    LFS_SWEPT_DATA, /* blob side files too */
    LFS_SWEPT_DELETIONS,
    LFS_SWEPT_INDEXES,
    LFS_SWEPT_TRANSACTIONS,
    LFS_SWEPT_STAGED, /* half-made files, by their names */
    LFS_SWEPT_LINES,  /* all that line storage keeps for nobody */
    LFS_SWEPT_KINDS
};

struct lfs_swept {
    uint64_t files, bytes; /* `bytes`: of files that no other name is left of */
};

struct lfs_sweep {
    struct lfs_dataset *ds;
    const struct lfs_reach *reach;
    struct lfs_arena *arena;
    struct timespec before;        /* what changed after this moment stays */
    bool remove;                   /* else it is only counted */
    bool only_staged;              /* half-made files alone; those of this project's programs at any age: they end under the lock */
    struct lfs_progress *progress; /* may be NULL */
    const atomic_bool *cancel;     /* may be NULL */
    /* May be NULL: told of each file, by its path. */
    void (*found)(void *context, enum lfs_swept_kind kind, const char *path);
    void *context;

    /* the result */
    struct lfs_swept kinds[LFS_SWEPT_KINDS];
    uint64_t n_young;    /* files that nothing holds but that are too young to go */
    struct lfs_map seen; /* files with several names: when nothing is removed, how many were met; else those that lost one */
};

/* All of the data set. The reach must have been read under the lock that is held, when files are removed. */
errint_t lfs_sweep_run(struct lfs_sweep *sweep, struct lfs_error *err);

#endif
