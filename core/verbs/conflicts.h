/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands that stopped on conflicts and wait for choices (interface.md section 3, "settling conflicts one by one"): one a
 * branch, in memory alone. What is shown of them are paths below the branch's directory, ".conflicts/0/kind". A conflict keeps
 * its number for as long as its command waits; what a new plan brings gets new ones. Thread safe.
 */
#ifndef LFS_VERBS_CONFLICTS_H
#define LFS_VERBS_CONFLICTS_H

#include <stdbool.h>
#include <time.h>

#include "table/image.h"
#include "util/buf.h"

#define LFS_CONFLICTS ".conflicts"

struct lfs_conflicts;

struct lfs_conflicts *lfs_conflicts_new(void); /* NULL when memory is short */
void lfs_conflicts_free(struct lfs_conflicts *conflicts);

/* Is it a path of theirs? By its words alone. */
bool lfs_is_conflicts_path(const char *what);

enum lfs_conflicts_is {
    LFS_CONFLICTS_NONE,
    LFS_CONFLICTS_DIRECTORY, /* ".conflicts", which is there always, and ".conflicts/<k>" */
    LFS_CONFLICTS_TEXT,      /* kind, unit, base, ours, theirs */
    LFS_CONFLICTS_CHOICE,    /* choice */
    LFS_CONFLICTS_ROWS,      /* base.lance, ours.lance, theirs.lance: data sets of just those rows */
};

/* `branch` is its name everywhere. */
struct lfs_conflicts_at {
    struct lfs_conflicts *conflicts;
    struct lfs_dataset *dataset;
    const char *branch, *what;
};
/* What is there, and in *token (may be NULL) what tells it from everything else that was or will be under that path. */
enum lfs_conflicts_is lfs_conflicts_look(const struct lfs_conflicts_at *at, uint64_t *token);

/* A text, a choice as it stands ("ours", "theirs", nothing). -ENOENT. */
errint_t lfs_conflicts_text(const struct lfs_conflicts_at *at, struct lfs_buf *out, struct timespec *time,
                            struct lfs_error *err);
/* The names in a directory, in `arena`. */
errint_t lfs_conflicts_list(const struct lfs_conflicts_at *at, struct lfs_arena *arena, const char ***out,
                            size_t *n_out, struct lfs_error *err);
/* A data set of rows. LFS_E_NOT_FOUND also when the version that they were seen in is gone. */
errint_t lfs_conflicts_image(const struct lfs_conflicts_at *at, struct lfs_views *views, struct lfs_image **out,
                             struct lfs_error *err);

/* What waits on a branch, in `arena`. `what` of `at` means nothing here. */
struct lfs_conflicts_told {
    const char *file, *line; /* the control file and what was written to it; NULL: nothing waits */
    bool by_root;            /* the file is that of the mount */
    bool busy;               /* it is being continued */
    size_t count, chosen;
    bool open;            /* a conflict has no choice: */
    uint64_t next;        /* the first such, */
    bool ours, theirs;    /* and what can be taken for it as far as is known */
    struct timespec time; /* when it stopped last or a choice was made */
};
errint_t lfs_conflicts_tell(const struct lfs_conflicts_at *at, struct lfs_arena *arena, struct lfs_conflicts_told *out,
                            struct lfs_error *err);
/* Another number whenever that may tell something else; 0: nothing waits. */
uint64_t lfs_conflicts_mark(const struct lfs_conflicts_at *at);

/* A line written to a choice: "ours" or "theirs". `token` is what lfs_conflicts_look said when the file was opened. Appends
 * what the file then reads as, or the answer of a command that failed. LFS_E_USAGE, LFS_E_STALE (the conflict is not there any
 * more), LFS_E_UNSUPPORTED (that side cannot be taken), LFS_E_BUSY (while the command continues). */
errint_t lfs_conflicts_choose(const struct lfs_conflicts_at *at, uint64_t token, const char *line,
                              struct lfs_buf *answer);

#endif
