/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lineage (merge-semantics section 1): what a state holds, what two states have in common, and how a state came to be
 * from another. Lines are looked up by uuid, never by name; versions that stock Lance has cleaned away since are found
 * in the line's storage, where every merge keeps them.
 */
#ifndef LFS_TABLE_LINEAGE_H
#define LFS_TABLE_LINEAGE_H

#include "format/vector.h"
#include "table/dataset.h"

/* Transaction properties of ours: what was done ("merge", "cherry-pick", ...), and the source, by which it is found
 * again. */
#define LFS_PROPERTY_OPERATION "lancefs.op"
#define LFS_PROPERTY_UNDONE "lancefs.undone" /* of an undo: the versions of the merges that it took back */
#define LFS_PROPERTY_SOURCE_LINE "lancefs.source.line"
#define LFS_PROPERTY_SOURCE_VERSION "lancefs.source.version"
#define LFS_PROPERTY_SOURCE_FIRST "lancefs.source.first" /* of a range that was picked as one */
#define LFS_PROPERTY_ONLY "lancefs.only" /* of a merge or pick that took over these classes alone, "rows,config" */

/* What a rebase says of the versions that it makes, each with its source, a version of the old line; the last one is a
 * restatement of all. And of the one that stands above all of them when the old line has the name again. */
#define LFS_OPERATION_REBASE "rebase"
#define LFS_OPERATION_UNDO_REBASE "undo-rebase"
/* Does the commit say a state once more, by the word of a restore that takes nothing back? */
bool lfs_transaction_restates(const LanceTransaction *transaction);

/* In a line's storage, beside its kept bases: a copy of the branch's ref file, for when the branch is gone. */
#define LFS_KEPT_REF "branch.json"

/* "_lancefs/lines/<uuid>", relative to the root; NULL when memory is short. */
char *lfs_line_storage_dir(struct lfs_arena *arena, const char *uuid);

/* Branches by line, read once for one operation. */
struct lfs_lines {
    struct lfs_dataset *dataset;
    struct lfs_arena *arena;
    struct lfs_branch *branches;
    size_t n_branches;
    /* Versions of one line that are planned and not on the disk yet, ascending, the first one behind the line's tip: a
     * series of merges is planned on them as if they were there. */
    const char *planned_line;
    struct lfs_version **planned;
    size_t n_planned;
};
errint_t lfs_lines_read(struct lfs_dataset *ds, struct lfs_arena *arena, struct lfs_lines *out, struct lfs_error *err);
/* The branch that is this line today, or NULL (deleted since). */
const struct lfs_branch *lfs_lines_branch(const struct lfs_lines *lines, const char *line);

/* The same, or what was kept of a branch that is gone: name (the line's), forks and uuid, no directory.
 * LFS_E_NO_BASE when nothing was. */
errint_t lfs_lines_any_branch(const struct lfs_lines *lines, const char *line, struct lfs_branch *out,
                              struct lfs_error *err);

/* A version of a line: a planned one, else from its branch's directory, else from its line storage. LFS_E_NO_BASE when both lack it. */
errint_t lfs_lines_version(const struct lfs_lines *lines, const char *line, uint64_t number, struct lfs_version **out,
                           struct lfs_error *err);

/* What `version` (of `branch`) holds: its forks, its own number, and the vector that it carries. A branch's first
 * version is its parent's state and adds nothing. */
errint_t lfs_state_vector(const struct lfs_branch *branch, const struct lfs_version *version, struct lfs_vector *out,
                          struct lfs_error *err);

/* How many commits does a state that holds `a` have that one which holds `b` lacks? Those of every line; a line's first
 * version is its parent's state. */
uint64_t lfs_lines_ahead(const struct lfs_lines *lines, const struct lfs_vector *a, const struct lfs_vector *b);

/* What a version carries under LFS_KEY_PICKED and under LFS_KEY_PARTIAL; "" where there is nothing. */
const char *lfs_version_picked(const struct lfs_version *version);
const char *lfs_version_partial(const struct lfs_version *version);
/* Either: rows of it came without all that their branch held. */
bool lfs_version_has_picks(const struct lfs_version *version);

/* The same for a version that is known by its number and the text of its lancefs.vector (NULL: none). */
errint_t lfs_number_vector(const struct lfs_branch *branch, uint64_t number, const char *carried, struct lfs_vector *out,
                           struct lfs_error *err);

/* A state that both sides hold and that no other such state holds. */
struct lfs_base {
    const char *line;
    struct lfs_version *version; /* to be released */
    struct lfs_vector vector;
};
/* All of them, one or (criss-cross) several. LFS_E_NO_BASE when one has been cleaned away or there is none. */
errint_t lfs_merge_bases(const struct lfs_lines *lines, const struct lfs_vector *a, const struct lfs_vector *b,
                         struct lfs_base **out, size_t *n_out, struct lfs_error *err);
void lfs_bases_release(struct lfs_base *bases, size_t count);

/*
 * The commits that led from a base (its vector) to `tip` of `branch`, oldest first: the branch's own, before them those
 * of its parents up to the forks; before a merge those that it brought. `complete` is false when one of them is gone.
 */
enum lfs_step_standing { LFS_STEP_STANDS, LFS_STEP_GONE, LFS_STEP_UNTOLD };
struct lfs_step {
    struct lfs_version *before, *after; /* to be released; before is NULL when it is gone */
    bool is_merge;                      /* what it brought has steps of its own before it, as far as they are known */
    bool brought;                       /* such a step: made elsewhere */
    bool picked;                        /* brought by a pick, which takes over one commit, not what it stood on */
    enum lfs_step_standing standing;    /* does the tip hold it? (Not where an undo took the merge back.) Of what was brought */
};
struct lfs_history {
    struct lfs_step *steps;
    size_t count, capacity;
    bool complete;
    bool backward; /* these commits are what the side takes back: it is as before them, the base as after */
    struct lfs_vector held; /* what has been read */
    struct lfs_vector tip;  /* what the tip holds */
    const char *partial;    /* and what it carries under LFS_KEY_PARTIAL; NULL when the tip is gone */
    unsigned depth;         /* merges within merges */
    unsigned picks;         /* and picks among them */
};
errint_t lfs_history_read(const struct lfs_lines *lines, const struct lfs_branch *branch, uint64_t tip,
                          const struct lfs_vector *since, struct lfs_history *out, struct lfs_error *err);
/* And those that led to another state, which `history` has not yet: of two that were merged in memory. */
errint_t lfs_history_add(const struct lfs_lines *lines, const struct lfs_branch *branch, uint64_t tip,
                         struct lfs_history *history, struct lfs_error *err);
void lfs_history_release(struct lfs_history *history);

#endif
