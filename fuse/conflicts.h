/* SPDX-License-Identifier: Apache-2.0 */
/* .conflicts of a branch on the mount: its texts and data sets, as sources of texts.c and images.c. What is there is known by
 * verbs/conflicts.h; a choice is a control file (control.c). */
#ifndef LFS_FUSE_CONFLICTS_H
#define LFS_FUSE_CONFLICTS_H

#include "fuse/images.h"
#include "verbs/conflicts.h"

/* The rows of a conflict, a data set for each state. */
extern const struct lfs_image_source lfs_conflict_rows_source;

/* What is asked of a path below a branch's directory. */
struct lfs_conflicts_at lfs_conflicts_at(struct lfs_mount *m, const struct lfs_node *place, const char *what);

/* kind, unit, base, ours, theirs, as a source of texts. */
errint_t lfs_conflicts_text_stamp(struct lfs_mount *m, const struct lfs_node *place, const char *what,
                                  struct lfs_stamp *out);
errint_t lfs_conflicts_text_render(struct lfs_mount *m, const struct lfs_node *place, const char *what, const atomic_bool *cancel,
                                   struct lfs_buf *out, struct timespec *time, struct lfs_error *err);

#endif
