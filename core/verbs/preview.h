/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Previews: the data set that a merge would give, with nothing written. A preview's name is a merge command: the source,
 * then its options, separated by commas ("feature,strategy=source-wins"). The source is a ref as in commands, as it is or
 * percent-encoded. The plan is that of the command, and what is shown the manifest that it would commit.
 */
#ifndef LFS_VERBS_PREVIEW_H
#define LFS_VERBS_PREVIEW_H

#include "table/image.h"
#include "table/stamp.h"
#include "verbs/verbs.h"

struct lfs_preview_call {
    struct lfs_dataset *dataset;
    const struct lfs_verb_settings *settings; /* that commands have; on a read-only mount too */
    const char *branch;                       /* the target */
    const char *name;
};

/* Does the name ask for the answer alone (the option dry-run)? Then it is no data set but a text. */
bool lfs_preview_is_answer(const char *name);

/* Is it no ref, but a part of one that holds a '/'? */
bool lfs_preview_leads_on(const struct lfs_preview_call *call);

/* What a preview, or its answer, is made of: the same stamp, the same preview. -ENOENT: there is no such source. */
errint_t lfs_preview_stamp(const struct lfs_preview_call *call, struct lfs_stamp *out, struct lfs_error *err);

/*
 * The data set: one version, the next one of the target, or its tip where there is nothing to merge. The errors are those
 * of the command (interface.md section 3): LFS_E_CONFLICT, LFS_E_UNSUPPORTED for what is refused, LFS_E_USAGE, ... and for
 * several versions by one command, which are no preview.
 */
errint_t lfs_preview_make(const struct lfs_preview_call *call, struct lfs_views *views, struct lfs_image **out,
                          struct lfs_error *err);

/* What the command would answer, the reason why there is no preview too. Fails only when memory is short. */
errint_t lfs_preview_answer(const struct lfs_preview_call *call, struct lfs_buf *out);

#endif
