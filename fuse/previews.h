/* SPDX-License-Identifier: Apache-2.0 */
/*
 * .preview/<source>[,<option>...] of a branch: the data set that merging would give (verbs/preview.h), as an image
 * (images.h); with the option dry-run the answer alone, as a text (texts.h). Nothing in .preview is listed.
 */
#ifndef LFS_FUSE_PREVIEWS_H
#define LFS_FUSE_PREVIEWS_H

#include "fuse/images.h"

#define LFS_PREVIEW_DIR ".preview"

extern const struct lfs_image_source lfs_preview_source;

/* Is `what`, a path below a branch's directory, in .preview, and a preview's answer? */
bool lfs_is_preview(const char *what);
bool lfs_is_preview_answer(const char *what);
/* Is it a part of a ref that holds a '/'? */
bool lfs_preview_is_directory(struct lfs_mount *m, const struct lfs_node *place, const char *what);

/* An answer, as a source of texts. */
errint_t lfs_preview_answer_stamp(struct lfs_mount *m, const struct lfs_node *place, const char *what,
                                  struct lfs_stamp *out);
errint_t lfs_preview_answer_render(struct lfs_mount *m, const struct lfs_node *place, const char *what,
                                   const atomic_bool *cancel, struct lfs_buf *out, struct timespec *time,
                                   struct lfs_error *err);

#endif
