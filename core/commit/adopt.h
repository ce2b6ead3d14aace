/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adopting what a writer made through a view (interface.md section 2, "Writing through the mount"): its manifest or
 * transaction gets the branch's references back and is published under its name in the branch's own storage.
 */
#ifndef LFS_COMMIT_ADOPT_H
#define LFS_COMMIT_ADOPT_H

#include "table/view.h"

struct lfs_adoption {
    struct lfs_views *views;
    const char *branch; /* its name */
    const char *dir;
    bool sync; /* flush all that the commit names before it becomes visible, then the commit */
};

/* Publish the manifest that lies in `staged_fd` as <dir>/_versions/<name>. -EEXIST: another writer was first, and nothing
 * was changed. Files that the manifest names must have been flushed by whoever wrote them; their directories and the
 * transaction are flushed here. Errors beside those of lfs_views_restore_manifest: LFS_E_USAGE when the name does not fit the branch's scheme or
 * the manifest's own number. */
errint_t lfs_adopt_manifest(const struct lfs_adoption *adoption, int staged_fd, const char *name, struct lfs_error *err);

/* Write (the commit that names it flushes it) the transaction that lies in `staged_fd` as <dir>/_transactions/<name>; a file of that name that no version names
 * is replaced, since a writer that lost a race writes its transaction again. -EEXIST for one that a version names. */
errint_t lfs_adopt_transaction(const struct lfs_adoption *adoption, int staged_fd, const char *name,
                               struct lfs_error *err);

/* Does a version of the branch name this transaction? (Its name begins with the version that its writer had read.) */
errint_t lfs_adopted_transaction(const struct lfs_adoption *adoption, const char *name, bool *out, struct lfs_error *err);

#endif
