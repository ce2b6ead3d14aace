/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Branches and tags as names (interface.md section 2): made, removed, renamed; what stock Lance then lists, checks out,
 * reads and writes is right each time. A name that breaks Lance's rules, or has a part that means something inside a data
 * set's directory (lance-format section 2.1), is LFS_E_USAGE before anything is made.
 *
 * Each of these holds the data set's lock alone (table/lock.h). What takes more than one step writes a repair record in
 * _lancefs/names/<id> first and does its steps in an order in which a stop leaves every branch readable; what a record says
 * is finished, or taken back, when the next change of names begins and when lfs_names_repair is called.
 */
#ifndef LFS_VERBS_NAMES_H
#define LFS_VERBS_NAMES_H

#include <stdatomic.h>

#include "table/dataset.h"
#include "verbs/verbs.h"

struct lfs_names {
    struct lfs_dataset *dataset;
    const struct lfs_verb_settings *settings; /* sync, read_only: LFS_E_READ_ONLY for everything */
    const atomic_bool *cancel;                /* may be NULL; looked at until the first step that others see */
};

/* A new branch from `version` (0: the tip) of `parent`. `*from` (may be NULL) is the version that it was. LFS_E_EXISTS,
 * LFS_E_NOT_FOUND (parent, version), LFS_E_UNSUPPORTED. */
errint_t lfs_names_create(const struct lfs_names *names, const char *name, const char *parent, uint64_t version,
                          uint64_t *from, struct lfs_error *err);

/* LFS_E_BUSY while a branch, a tag or a version of another branch stands on it; LFS_E_DENIED for main. What others grafted
 * lies in its line's storage and stays. */
errint_t lfs_names_remove(const struct lfs_names *names, const char *name, struct lfs_error *err);

/* The branch `from` and every branch whose name begins with it and a '/', as a directory takes along what is in it; `from`
 * need not be a branch itself. LFS_E_EXISTS, LFS_E_NOT_FOUND, LFS_E_DENIED for main. */
errint_t lfs_names_rename(const struct lfs_names *names, const char *from, const char *to, struct lfs_error *err);

/* A tag for `version` (0: the tip) of `branch`. With `move` one that is there is moved (and made where it is not).
 * `*tagged` and `*moved` may be NULL. LFS_E_EXISTS, LFS_E_NOT_FOUND. */
errint_t lfs_names_tag(const struct lfs_names *names, const char *tag, const char *branch, uint64_t version, bool move,
                       uint64_t *tagged, bool *moved, struct lfs_error *err);
errint_t lfs_names_untag(const struct lfs_names *names, const char *tag, struct lfs_error *err);
errint_t lfs_names_rename_tag(const struct lfs_names *names, const char *from, const char *to, struct lfs_error *err);

/* Finish or take back what a stop in the middle left. Waits for whoever holds the lock, and so never touches what is under
 * way. `*repaired` (may be NULL) counts the records. */
errint_t lfs_names_repair(const struct lfs_names *names, unsigned *repaired, struct lfs_error *err);

#endif
