/* SPDX-License-Identifier: Apache-2.0 */
/* What branch.c, rename.c and tag.c share; nobody else includes this. */
#ifndef LFS_VERBS_NAMES_IMPL_H
#define LFS_VERBS_NAMES_IMPL_H

#include "verbs/command.h"
#include "verbs/names.h"

#define LFS_BRANCH_REFS "_refs/branches"
#define LFS_CHANGES_DIR "_lancefs/names" /* a directory for each change under way */

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

/* The record says what is done to which names: "create NAME", "remove NAME UUID", "rename FROM TO", "switch NAME UUID". Once it is there the
 * change is finished or taken back, whatever happens. */
struct lfs_record {
    const char *words[3]; /* NULL where there are fewer */
};
errint_t lfs_change_record(struct lfs_change *change, const struct lfs_record *record, struct lfs_error *err);
bool lfs_change_recorded(const struct lfs_change *change);
errint_t lfs_change_unrecord(struct lfs_change *change, struct lfs_error *err);
/* All is done: the record goes first, then the rest of the directory. */
errint_t lfs_change_forget(struct lfs_change *change, struct lfs_error *err);

/* What a record asks for, done from wherever it stopped. 0 when it is finished or taken back. */
errint_t lfs_finish_create(struct lfs_change *change, const struct lfs_record *record, struct lfs_error *err);
errint_t lfs_finish_remove(struct lfs_change *change, const struct lfs_record *record, struct lfs_error *err);
errint_t lfs_finish_rename(struct lfs_change *change, const struct lfs_record *record, struct lfs_error *err);
errint_t lfs_finish_switch(struct lfs_change *change, const struct lfs_record *record, struct lfs_error *err);

/* The string by which base paths of this data set begin, from whichever branch has one (merge-semantics section 10). */
const char *lfs_change_root_string(struct lfs_change *change, const struct lfs_version *from);

/*
 * The name of a branch moves to another line (merge-semantics section 9). In the change's directory stand the new line's
 * versions and files, LFS_CHANGE_NEW, and its ref file, LFS_CHANGE_NEW_REF. Files go where the old line's are: their
 * names are unique, and nobody who has a version of the old line open misses any. The directories of versions change places
 * in one step. Then the ref is replaced, and the old line's versions go to its storage, where its files have been linked
 * before.
 *
 * -EEXIST: the branch is at another version than `tip` by now, and both are as they were. Else the change is over.
 */
#define LFS_CHANGE_NEW "new"
#define LFS_CHANGE_NEW_REF "ref"
errint_t lfs_switch_line(struct lfs_change *change, const struct lfs_branch *old, uint64_t tip, struct lfs_error *err);

/* Give the files of a home (not its versions) names in another one too, links or, where there are none, copies. */
errint_t lfs_share_files(struct lfs_change *change, const char *from, const char *to, struct lfs_error *err);
/* And those of one directory. */
errint_t lfs_share_dir(struct lfs_change *change, const char *from, const char *to, struct lfs_error *err);

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
