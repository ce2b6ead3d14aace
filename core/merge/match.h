/* SPDX-License-Identifier: Apache-2.0 */
/* Which fragments of three states are one fragment: those that share data files, whatever their ids. */
#ifndef LFS_MERGE_MATCH_H
#define LFS_MERGE_MATCH_H

#include "merge/merge3.h"

/* One fragment as it stands in each state; NULL where a state does not hold it. Never all three. */
struct lfs_match {
    const LanceFragment *base, *ours, *theirs;
};

/* In the order: fragments of the base, new ones of ours, new ones of theirs; each in its manifest's order.
 * LFS_E_CORRUPT when a state holds one file in two fragments, or a fragment that has no file. */
errint_t lfs_match_fragments(const struct lfs_merge_input *input, struct lfs_arena *arena, struct lfs_match **out,
                             size_t *n_out, struct lfs_error *err);

/* The name that a fragment is known by: its first data file's; "" for one without files. */
const char *lfs_match_name(const LanceFragment *fragment);

/* Did the commit that made `version` compact the fragment that holds the data file `path`? The commit itself tells, also where
 * the version before it was cleaned away. */
bool lfs_match_compacted(const struct lfs_version *version, const char *path);

/* The fragment of a manifest that holds the data file `path`, or NULL. Linear. */
const LanceFragment *lfs_match_find(const LanceManifest *manifest, const char *path);

/* The same for whoever asks for many fragments of one manifest: the manifests of a merge are indexed by file once they were
 * asked often enough, so that n fragments do not cost n times n. Good for manifests that live as long as the merge. */
struct lfs_match_finder;
struct lfs_match_finder *lfs_match_finder_new(struct lfs_arena *arena); /* NULL when memory is short */
/* Linear where `finder` is NULL. */
const LanceFragment *lfs_match_find_in(struct lfs_match_finder *finder, const LanceManifest *manifest, const char *path);

/* The same incarnation: the same files with the same columns in the same order, and as many rows. */
bool lfs_match_same_files(const LanceFragment *a, const LanceFragment *b);
/* The same deletion file by its record (its id is random), or none on either side. */
bool lfs_match_same_deletions(const LanceFragment *a, const LanceFragment *b);

#endif
