/* SPDX-License-Identifier: Apache-2.0 */
/* What placing will have to do, counted before it begins, and told while it is done: for progress alone. Data files count with
 * the sizes that their manifest tells; files of indexes are looked at only where they are copied, which is what takes long. */
#ifndef LFS_COMMIT_EXPECT_H
#define LFS_COMMIT_EXPECT_H

#include "commit/build.h"
#include "commit/place.h"
#include "util/map.h"

/* Begins the stage. `own`: path -> a record of the target's where it has that file already (see build_manifest.c). */
void lfs_expect_merge(const struct lfs_build *build, const struct lfs_map *own);
void lfs_expect_rehome(const struct lfs_build *build);

/* Around one file: what lfs_expect_begin gave, and how many bytes were expected of it. */
uint64_t lfs_expect_begin(const struct lfs_placer *placer);
void lfs_expect_end(struct lfs_placer *placer, uint64_t begin, uint64_t bytes);

/* A file that no count has seen. */
void lfs_expect_more(struct lfs_placer *placer);

#endif
