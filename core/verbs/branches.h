/* SPDX-License-Identifier: Apache-2.0 */
/* MNT/.branches: every branch, its tip, how far it is from its parent, and what only it holds. */
#ifndef LFS_VERBS_BRANCHES_H
#define LFS_VERBS_BRANCHES_H

#include <stdatomic.h>

#include "table/dataset.h"
#include "util/buf.h"

/*
 * A header line that begins with '#', then a line for each branch that has versions, sorted by name (bytes); fields are
 * separated by tabs: branch, tip, parent, ahead (commits that it holds and the parent does not), behind (the other way
 * round), merged (yes: the parent holds all of it), bytes (of data, deletion and index files that no other
 * branch's versions name; a file with several names counts once). "-" where main has none, and for a branch whose history
 * cannot be told.
 */
errint_t lfs_branches_table(struct lfs_dataset *ds, const atomic_bool *cancel, struct lfs_buf *out,
                            struct lfs_error *err);

#endif
