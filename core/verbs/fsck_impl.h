/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the check share; nobody else includes this. */
#ifndef LFS_VERBS_FSCK_IMPL_H
#define LFS_VERBS_FSCK_IMPL_H

#include "table/homes.h"
#include "util/map.h"
#include "verbs/fsck.h"

struct lfs_fsck {
    struct lfs_dataset *ds;
    const struct lfs_fsck_options *options;
    struct lfs_arena *arena; /* of the whole check */
    struct lfs_buf *out;
    struct lfs_fsck_result *result;
    struct lfs_homes homes;
    struct lfs_map files; /* "<place>" -> struct lfs_checked */
    struct lfs_map said;  /* findings made once */
    struct lfs_map moved; /* base path strings that lead here no more -> their new text */
    uint64_t n_versions, n_transactions;
    struct lfs_error *err;
};

/* A line of the report. The same finding is made once. */
void lfs_fsck_error(struct lfs_fsck *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
void lfs_fsck_note(struct lfs_fsck *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
void lfs_fsck_corrected(struct lfs_fsck *f, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* What is known of a file that some version names. */
struct lfs_checked {
    bool there, is_lance;
    uint64_t size;
    bool has_rows; /* a data file that tells how many it holds */
    uint64_t rows;
    const char *why; /* it cannot be opened */
};
/* fsck_file.c: fills is_lance, has_rows and rows. What it does not understand it leaves unsaid. */
void lfs_fsck_look_inside(int fd, uint64_t size, struct lfs_checked *out);

/* fsck_refs.c: refs, tags, directories and lines against each other. */
errint_t lfs_fsck_refs(struct lfs_fsck *f);
/* fsck_version.c: one manifest file of a home and everything that it names. */
errint_t lfs_fsck_version(struct lfs_fsck *f, const struct lfs_home *home, const char *name, bool newest);
/* relocate.c: rewrite the base paths of f->moved in every manifest and transaction. The lock is held. */
errint_t lfs_fsck_relocate(struct lfs_fsck *f);

#endif
