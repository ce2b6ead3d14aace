/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Homes: the directories of a data set that hold versions and files of their own: main, every directory below tree/
 * (whether a ref names it or not: stock opens it all the same), line storage, and what a command has under way in
 * _lancefs/. Found on the disk, not by the refs.
 */
#ifndef LFS_TABLE_HOMES_H
#define LFS_TABLE_HOMES_H

#include "table/lineage.h"

enum lfs_home_kind {
    LFS_HOME_BRANCH, /* main or below tree/ */
    LFS_HOME_LINE,   /* _lancefs/lines/<uuid> */
    LFS_HOME_OTHER,  /* elsewhere in _lancefs/: under way */
};

struct lfs_home {
    const char *dir; /* relative to the root, "" for main; as `dir` of struct lfs_branch */
    enum lfs_home_kind kind;
    const char *line;                /* the line whose versions these are; NULL where no ref tells */
    const struct lfs_branch *branch; /* NULL where no ref names the directory, and for other kinds */
    dev_t dev;
    ino_t ino;
};

struct lfs_homes {
    struct lfs_lines lines; /* the branches at that moment */
    size_t n_bad_refs;
    struct lfs_home *list; /* main first */
    size_t count;
};

/* A directory that cannot be looked into is an error: nobody could say what it holds on to. */
errint_t lfs_homes_find(struct lfs_dataset *ds, struct lfs_arena *arena, struct lfs_homes *out, struct lfs_error *err);

/* What a directory (relative to the root) holds, without "." and "..", in no order. One that is not there holds nothing. */
struct lfs_entry {
    const char *name;
    bool is_file;    /* a regular file, as far as the listing tells */
    bool may_be_dir; /* a directory, or a link that may lead to one */
};
errint_t lfs_list_dir(struct lfs_dataset *ds, const char *directory, struct lfs_arena *arena, struct lfs_entry **out,
                      size_t *n_out, struct lfs_error *err);

#endif
