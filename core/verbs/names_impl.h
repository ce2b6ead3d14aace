/* SPDX-License-Identifier: Apache-2.0 */
/* What branch.c, rename.c and tag.c share; nobody else includes this. */
#ifndef LFS_VERBS_NAMES_IMPL_H
#define LFS_VERBS_NAMES_IMPL_H

#include "verbs/command.h"
#include "verbs/names.h"

#define LFS_BRANCH_REFS "_refs/branches"

/* One change of names under way, with the lock held. */
struct lfs_change {
    const struct lfs_names *names;
    struct lfs_dataset *dataset;
    struct lfs_arena *arena;
    int root; /* borrowed */
    bool sync;
    int lock;
    char *dir; /* _lancefs/names/<id>: the record, and what is being made or thrown away; NULL until it is needed */
};
void lfs_change_end(struct lfs_change *change);
#define LFS_AUTO_CHANGE LFS_CLEANUP(lfs_change_end) struct lfs_change

/* Refuse where nothing may be changed, take the lock, repair what an earlier change left. End it in every case. */
errint_t lfs_change_begin(const struct lfs_names *names, struct lfs_change *out, struct lfs_error *err);
/* Make the directory of its own. */
errint_t lfs_change_make_dir(struct lfs_change *change, struct lfs_error *err);

/* The record says what is done to which names: "create NAME", "remove NAME UUID", "rename FROM TO". Once it is there the
 * change is finished or taken back, whatever happens. */
struct lfs_record {
    const char *words[3]; /* NULL where there are fewer */
};
errint_t lfs_change_record(struct lfs_change *change, const struct lfs_record *record, struct lfs_error *err);
/* All is done: the record goes first, then the rest of the directory. */
errint_t lfs_change_forget(struct lfs_change *change, struct lfs_error *err);

/* What a record asks for, done from wherever it stopped. 0 when it is finished or taken back. */
errint_t lfs_finish_create(struct lfs_change *change, const struct lfs_record *record, struct lfs_error *err);
errint_t lfs_finish_remove(struct lfs_change *change, const struct lfs_record *record, struct lfs_error *err);
errint_t lfs_finish_rename(struct lfs_change *change, const struct lfs_record *record, struct lfs_error *err);

/* Refuse options that mean nothing to .branch and .tag, rather than take no notice of them. */
errint_t lfs_names_options(const struct lfs_command *command, const char *file, struct lfs_error *err);

/* Lance's rules and the additional one of lance-format section 2.1. */
errint_t lfs_names_check(const char *name, struct lfs_error *err);
/* "tree/<name>" and "_refs/branches/<encoded>.json"; NULL when memory is short. */
char *lfs_names_dir(struct lfs_arena *arena, const char *name);
char *lfs_names_ref(struct lfs_arena *arena, const char *name);
/* Is `name` `prefix`, or below it? */
bool lfs_names_below(const char *name, const char *prefix);

#endif
