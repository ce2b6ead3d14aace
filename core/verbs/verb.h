/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of verbs/ share: one function a verb, behind one table. */
#ifndef LFS_VERBS_VERB_H
#define LFS_VERBS_VERB_H

#include "table/lineage.h"
#include "verbs/command.h"
#include "verbs/verbs.h"

struct lfs_gate; /* gate.h */
struct lfs_found;
struct lfs_chosen_list;

/* What a ref of a command meant when it ran first. */
struct lfs_pin {
    const char *word, *uuid; /* of the line */
    uint64_t version;
};

/* A branch that is being made aside (rebase): under its name a job finds this one, and its line's versions. */
struct lfs_aside {
    struct lfs_branch branch;
    uint64_t
        version; /* the only one, while there is nothing on the disk and `branch.dir` is still its parent's; else 0 */
};

struct lfs_verb_context {
    const struct lfs_verb_call *call;
    const char *verb; /* the control file's name without its dot */
    const struct lfs_command *command;
    struct lfs_arena *arena; /* of the whole command */
    struct lfs_lines lines;
    struct lfs_buf *answer;
    size_t answer_start; /* where this command's begins */
    struct lfs_gate *gate;
    struct lfs_list *pins; /* of struct lfs_pin: what refs mean, noted when they are looked up; may be NULL */
    bool pinned;           /* they mean that still: a command that is continued */
    const struct lfs_chosen_list *chosen; /* choices for single conflicts (found.h); NULL: none */
    struct lfs_found *found;              /* what the plans have in conflict; NULL: nobody asks */
    const struct lfs_aside *aside;        /* NULL but for a rebase's own jobs */
};

errint_t lfs_verb_merge(struct lfs_verb_context *context, struct lfs_error *err);
errint_t lfs_verb_cherry_pick(struct lfs_verb_context *context, struct lfs_error *err);
errint_t lfs_verb_revert(struct lfs_verb_context *context, struct lfs_error *err);
errint_t lfs_verb_make_branch(struct lfs_verb_context *context, struct lfs_error *err);
errint_t lfs_verb_tag(struct lfs_verb_context *context, struct lfs_error *err);
errint_t lfs_verb_undo(struct lfs_verb_context *context, struct lfs_error *err);
errint_t lfs_verb_rebase(struct lfs_verb_context *context, struct lfs_error *err);
/* .undo where the last thing that happened to the branch is a rebase: the name moves back to the old line. */
errint_t lfs_verb_is_rebased(struct lfs_verb_context *context, bool *out, struct lfs_error *err);
errint_t lfs_verb_undo_rebase(struct lfs_verb_context *context, struct lfs_error *err);
/* Is `version` among the merges that undos took back? `undone` holds their LFS_PROPERTY_UNDONE: "7" or "7,6". */
bool lfs_verb_was_undone(const struct lfs_list *undone, uint64_t version);
errint_t lfs_verb_rehome(struct lfs_verb_context *context, struct lfs_error *err);
errint_t lfs_verb_gc(struct lfs_verb_context *context, struct lfs_error *err);

/* A branch and one of its versions, to be released. */
struct lfs_state {
    struct lfs_branch branch;
    struct lfs_version *version;
    enum lfs_naming naming; /* of the branch's manifests */
};
/* A ref of a command, "feature", "feature@7", "tags/v1": its branch and version (the tip's where none is named). That the
 * version is there is not looked at. */
errint_t lfs_verb_ref(struct lfs_verb_context *context, const char *word, struct lfs_branch *branch, uint64_t *version,
                      struct lfs_error *err);
bool lfs_verb_is_tag(const char *word);
/* The same, read. */
errint_t lfs_verb_state(struct lfs_verb_context *context, const char *word, struct lfs_state *out,
                        struct lfs_error *err);
/* The tip of a branch by its own name, which is not read as a ref: a branch may be called tree/x. */
errint_t lfs_verb_tip(struct lfs_verb_context *context, const char *name, struct lfs_state *out, struct lfs_error *err);
/* The branch that a word names, which must not carry a version. */
errint_t lfs_verb_branch(struct lfs_verb_context *context, const char *word, struct lfs_branch *out,
                         struct lfs_error *err);

/* Does some ref lie below that path? "exp" leads to the branch exp/sub, "tags" to all of them. */
bool lfs_verb_leads_on(struct lfs_dataset *ds, const char *ref, struct lfs_arena *arena);

#endif
