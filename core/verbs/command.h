/* SPDX-License-Identifier: Apache-2.0 */
/* The words that commands are spoken in (interface.md section 3): a line becomes refs and options. Pure. */
#ifndef LFS_VERBS_COMMAND_H
#define LFS_VERBS_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

#include "commit/commit.h"
#include "merge/merge3.h"
#include "util/arena.h"
#include "util/error.h"

enum lfs_ff { LFS_FF_AUTO, LFS_FF_ONLY, LFS_FF_NEVER };

/* Verbs, as bits: which options each one takes is one table in command.c. */
enum lfs_verb_kind {
    LFS_VERB_MERGE = 1,
    LFS_VERB_PICK = 2,
    LFS_VERB_REVERT = 4,
    LFS_VERB_UNDO = 8,
    LFS_VERB_REHOME = 16,
    LFS_VERB_BRANCH = 32,
    LFS_VERB_TAG = 64,
    LFS_VERB_GC = 128,
    LFS_VERB_REBASE = 256,
};

struct lfs_command {
    const char **words; /* what is no option: refs */
    size_t n_words;
    bool has_mode;
    enum lfs_placing mode;
    struct lfs_policy policy; /* strategy=, and rows= columns= schema= config= indexes= over it */
    unsigned named_classes; /* bit i: the i-th class of the policy was named by itself */
    enum lfs_ff ff;
    bool dry_run, squash, replay;
    const char *base; /* base=: a ref; NULL when not given */
    uint64_t steps; /* 1 when not given */
    uint64_t from;  /* a version of this branch; 0 when not given: its tip */
    bool has_older_than;
    uint64_t older_than; /* seconds */
    bool has_expect;
    uint64_t expect;
    const char *message; /* NULL when not given */
    struct lfs_property *properties;
    size_t n_properties;
    const char **options; /* every option that was given, by its name: "ff=", "dry-run" */
    size_t n_options;
};

/* LFS_E_USAGE names the word that is off. Words are separated by blanks; double quotes hold blanks together; after "--"
 * everything is a ref. only= with all classes is as if it were not there. */
errint_t lfs_command_parse(const char *line, struct lfs_arena *arena, struct lfs_command *out, struct lfs_error *err);

/* LFS_E_USAGE when an option was given that the verb (whose control file is `file`) does not take: nothing that somebody
 * wrote is ignored. */
errint_t lfs_command_check(const struct lfs_command *command, enum lfs_verb_kind verb, const char *file,
                           struct lfs_error *err);

/* The names of classes (bits of enum lfs_class), "rows,config", rows first; NULL when memory is short. */
const char *lfs_command_classes(unsigned classes, struct lfs_arena *arena);

errint_t lfs_command_number(const char *text, const char *what, uint64_t *out, struct lfs_error *err);

/* "feature", "tree/feature", "feature@7" -> name and version (0: the tip). Names are not looked up. Tags ("tags/v1") are
 * refs too; lfs_verb_state knows them. */
struct lfs_ref_words {
    const char *literal;  /* the name as written, without @version */
    const char *stripped; /* without a leading "tree/"; the same as `literal` where there is none */
    uint64_t version;
};
errint_t lfs_ref_parse(const char *word, struct lfs_arena *arena, struct lfs_ref_words *out, struct lfs_error *err);

#endif
