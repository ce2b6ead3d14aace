/* SPDX-License-Identifier: Apache-2.0 */
/* What place.c, place_index.c and place_kept.c share; nobody else includes this. */
#ifndef LFS_COMMIT_PLACE_IMPL_H
#define LFS_COMMIT_PLACE_IMPL_H

#include "commit/place.h"
#include "table/location.h"

int lfs_placer_root_fd(const struct lfs_placer *p);
/* A directory of the data set, opened once for all files that are linked out of it or into it. O_PATH; borrowed. */
int lfs_placer_directory(struct lfs_placer *p, const char *directory);
errint_t lfs_placer_make_directory(struct lfs_placer *p, const char *directory, struct lfs_error *err);
/* Storage of the source's line, with its three directories. */
errint_t lfs_placer_make_storage(struct lfs_placer *p, char **storage, struct lfs_error *err);
/*
 * Give the file at `from` the name <directory>/<name> by a link, or a copy where the mode asks for it or a link cannot be
 * had. `is_own`: the target's own directory is written to, which flushing and lfs_placer_look_again must know.
 */
errint_t lfs_placer_bring(struct lfs_placer *p, const struct lfs_location *from, uint64_t size, const char *directory,
                          const char *name, bool copy, bool is_own, struct lfs_error *err);
/* Does it lie in the target's own directory of that kind? */
bool lfs_placer_in_target(const struct lfs_placer *p, const struct lfs_location *l, enum lfs_file_kind kind);
/* Of an imagined version: the base path of the data set, or the plain directory, that a file lies in now. */
errint_t lfs_placer_imagined_base(struct lfs_placer *p, enum lfs_file_kind kind, const struct lfs_location *from,
                                  uint32_t *id, struct lfs_error *err);

#endif
