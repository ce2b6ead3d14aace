/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removing what was published, as a writer does that cleans up through a view (interface.md section 2). It knows nothing
 * of what stands outside its view, so that is asked for here, as .gc asks (table/reach.h).
 *
 * Stock Lance removes files first and the manifests that name them last, and gives up at the first error (measured with
 * both engines). Versions of the branch that stock may clean away on the storage therefore hold nothing; its newest
 * version holds all that it names, and so does a tagged one. What stock would leave alone on the storage, because another
 * branch stands on it, is left alone here too, and that is no error.
 */
#ifndef LFS_VERBS_DISCARD_H
#define LFS_VERBS_DISCARD_H

#include <stdatomic.h>

#include "table/dataset.h"

/* What is known of who holds what, kept while the data set stays the same. */
struct lfs_discards;
struct lfs_discards *lfs_discards_new(struct lfs_dataset *ds); /* NULL when memory is short */
void lfs_discards_free(struct lfs_discards *discards);

/*
 * Remove `name` ("data/x.lance", "_versions/<manifest>", "_indices/<uuid>/<file>", ...) from the storage of a branch.
 * 1: it stays, since another branch, or the line of one, stands on it. LFS_E_DENIED: the branch's newest version or a tag
 * needs it. LFS_E_CORRUPT and others of lfs_reach_read where it cannot be told who holds it. Waits for merges and others
 * that hold the data set's lock; LFS_E_INTERRUPTED once *cancel (may be NULL) is true. Thread safe.
 */
int lfs_discard(struct lfs_discards *discards, const char *branch, const char *name, const atomic_bool *cancel,
                struct lfs_error *err);

#endif
