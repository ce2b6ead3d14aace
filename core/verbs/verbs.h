/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands as people write them, answers as they read them (interface.md section 3). One entry for every caller; a
 * mount is not needed.
 */
#ifndef LFS_VERBS_VERBS_H
#define LFS_VERBS_VERBS_H

#include <stdatomic.h>
#include <stdbool.h>

#include "commit/commit.h"
#include "table/dataset.h"
#include "util/buf.h"
#include "util/progress.h"

struct lfs_conflicts;

/* What a caller sets once for all commands. */
struct lfs_verb_settings {
    enum lfs_placing mode; /* where a command does not say mode= */
    bool sync;             /* flush to the disk before a commit becomes visible */
    bool read_only;        /* refuse every command with EROFS */
};

/* What is about to be committed to a branch, or was: for hooks. `facts` is a JSON object (jansson's json_t), see gate.h. */
struct lfs_verb_move {
    struct json_t *facts;      /* the hook may add to it */
    const char *target;        /* the branch */
    const char *source;        /* "feature@6,strategy=source-wins": the name of its preview; NULL where there can be none */
    const atomic_bool *cancel; /* may be NULL: once true, give up */
};

/* What a caller runs around every move of a tip. Both may take long and are called with nothing locked; both add the lines
 * that are to stand in the answer to `said`. */
struct lfs_verb_hooks {
    void *data;
    /* May it? 0, LFS_E_DENIED or LFS_E_INTERRUPTED. */
    errint_t (*before)(void *data, const struct lfs_verb_move *move, struct lfs_buf *said, struct lfs_error *err);
    void (*after)(void *data, const struct lfs_verb_move *move, struct lfs_buf *said);
};

struct lfs_verb_call {
    struct lfs_dataset *dataset;
    const struct lfs_verb_settings *settings;
    const char *branch;          /* the branch whose control file was written; NULL for MNT/<verb>, which names the target itself */
    const char *line;            /* one command, without its newline; not NUL-holding, at most LFS_COMMAND_BYTES_MAX */
    const atomic_bool *cancel;   /* may be NULL; once true the command stops with EINTR unless it has committed */
    struct lfs_progress *progress; /* may be NULL; told how far the command is */
    const struct lfs_verb_hooks *hooks; /* may be NULL */
    struct lfs_conflicts *conflicts; /* where commands that stop on conflicts wait (conflicts.h); NULL: they do not */
};

/* Names of the verbs that have a control file in a branch directory and at the root: NULL-terminated, e.g. ".merge". */
extern const char *const lfs_branch_control_files[];
extern const char *const lfs_root_control_files[];

/* Run a command of control file `file` (".merge"). Appends the answer ("key: value" lines, always with result:) to
 * `answer`, also when it fails. Returns 0 or the negative errno of interface.md's table. Blocking; thread safe. */
errint_t lfs_verb_run(const char *file, const struct lfs_verb_call *call, struct lfs_buf *answer);

/* The usage text of a control file, each line beginning with '#'; NULL for a file that is none. */
const char *lfs_verb_usage(const char *file);

#endif
