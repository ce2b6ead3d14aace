/* SPDX-License-Identifier: Apache-2.0 */
/* Stamps: has anything changed of what a thing was made of? Told by directories' times, at the price of a stat each. */
#ifndef LFS_TABLE_STAMP_H
#define LFS_TABLE_STAMP_H

#include <time.h>

#include "table/dataset.h"

/* The same hash, the same thing. */
struct lfs_stamp {
    uint64_t hash;
    struct timespec newest; /* of the directories that were looked at: a thing that was made within one tick of a file
                             * system's clock after this may be missing what came in that tick */
};

/* Add a directory, <dir>/<name> below the root: what is in it changes its times. One that is not there counts as such. */
errint_t lfs_stamp_directory(struct lfs_dataset *ds, const char *dir, const char *name, struct lfs_stamp *stamp);

/* Add words. */
void lfs_stamp_text(const char *text, struct lfs_stamp *stamp);

/* Can a thing that was made at `made`, of what changed last at `newest`, be relied on, or may a change of that moment be
 * missing in it? */
bool lfs_is_settled(struct timespec newest, struct timespec made);
bool lfs_stamp_is_settled(const struct lfs_stamp *stamp, struct timespec made);

#endif
