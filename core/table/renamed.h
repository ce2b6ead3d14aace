/* SPDX-License-Identifier: Apache-2.0 */
/* What a name becomes when branches are renamed: the branch `from` is called `to` from now on, and so is what lies below
 * it ("from/x" becomes "to/x"). */
#ifndef LFS_TABLE_RENAMED_H
#define LFS_TABLE_RENAMED_H

#include "table/dataset.h"

struct lfs_renaming {
    const char *from, *to;
};

/* The new name of a branch; NULL when it keeps its name. *failed is set when memory is short. */
char *lfs_renamed_branch(const struct lfs_renaming *r, const char *name, struct lfs_arena *arena, bool *failed);

/*
 * The new text of a base path string that leads into one of the renamed branches of this data set; *out is NULL for one
 * that does not. Before and after the directory itself has moved. LFS_E_UNSUPPORTED for one that leads there in a way that
 * its text does not tell.
 */
errint_t lfs_renamed_base(struct lfs_dataset *ds, const struct lfs_renaming *r, const char *text,
                          struct lfs_arena *arena, char **out, struct lfs_error *err);

#endif
