/* SPDX-License-Identifier: Apache-2.0 */
/* After a renaming: what manifests say of branches and their directories (merge-semantics section 9). */
#ifndef LFS_COMMIT_REBRAND_H
#define LFS_COMMIT_REBRAND_H

#include "table/renamed.h"

/*
 * Every manifest below <dir>/_versions whose branch field or base paths name a renamed branch is replaced, each in one
 * step, by one that says the new name and is the same byte for byte otherwise. Made again it changes nothing. With
 * `only_look` nothing is changed, and whatever would stand in the way is an error: LFS_E_CORRUPT, LFS_E_UNSUPPORTED.
 * *changed counts what was (would be) replaced.
 */
errint_t lfs_rebrand(struct lfs_dataset *ds, const char *dir, const struct lfs_renaming *renaming, bool only_look,
                     bool sync, uint64_t *changed, struct lfs_error *err);

#endif
