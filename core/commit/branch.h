/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first version of a new branch: the parent's state under the parent's number, as stock Lance's shallow Clone writes
 * it (lance-format section 5.1), in a directory that nobody reads yet.
 *
 * Two things differ from stock. The files of indexes are linked into the branch's own _indices/<uuid>, since stock finds
 * those that a branch of a branch inherited no more (lance-format S1, S2). And the fork point, the parent's manifest and
 * deletion files, is kept in the parent line's storage: it is the base of the next merge, and stock may clean it up.
 */
#ifndef LFS_COMMIT_BRANCH_H
#define LFS_COMMIT_BRANCH_H

#include <stdatomic.h>

#include "table/dataset.h"

struct lfs_branch_request {
    struct lfs_dataset *dataset;
    const char *name; /* a valid name */
    const struct lfs_branch *parent;
    const struct lfs_version *from; /* of the parent's own directory */
    const char *root_string;        /* what base path strings of this data set begin with */
    const char *uuid;               /* of the new line; NULL: any */
    const char *directory;          /* where to, relative to the root; it is made */
    bool sync;
    const atomic_bool *cancel; /* may be NULL */
};

/* A new line's name, 32 hex digits; and the path to it from main: the parent's, and this fork (lance-format section 2.1).
 * NULL when memory is short. */
char *lfs_branch_uuid(struct lfs_arena *arena);
struct lfs_fork *lfs_branch_forks(const struct lfs_branch *parent, uint64_t version, const char *uuid,
                                  struct lfs_arena *arena);

/* Fills <directory> (_versions, _transactions, _indices) and `ref`, the branch's ref file to be; strings live in `arena`.
 * LFS_E_UNSUPPORTED for what a branch cannot inherit. On failure the directory may hold part of it. */
errint_t lfs_branch_stage(const struct lfs_branch_request *request, struct lfs_arena *arena, struct lfs_branch_ref *ref,
                          struct lfs_error *err);

#endif
