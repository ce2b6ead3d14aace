/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge3(base, ours, theirs): three states in, a plan or conflicts out (merge-semantics). Pure: what has to be read of
 * deletion files and of history comes through a reader that the caller hands over.
 *
 * States are compared, not transactions: a fragment is known by its data files, whose names are unique, so it is found
 * again under another id. Transactions only tell a delete from an update where both sides took away the same row.
 */
#ifndef LFS_MERGE_MERGE3_H
#define LFS_MERGE_MERGE3_H

#include "merge/plan.h"
#include "table/lineage.h"

/* Classes of units, as bits of lfs_policy.only. */
enum lfs_class {
    LFS_CLASS_ROWS = 1,
    LFS_CLASS_COLUMNS = 2,
    LFS_CLASS_SCHEMA = 4,
    LFS_CLASS_CONFIG = 8,
    LFS_CLASS_INDEXES = 16,
    LFS_CLASS_ALL = 31,
};

struct lfs_choices;

/* A strategy for each class of unit, and what else a command says about what is merged how. */
struct lfs_policy {
    enum lfs_strategy rows, columns, schema, config, indexes;
    struct lfs_choices *choices; /* for single units, before any strategy (choices.h); NULL: none */
    unsigned only;         /* only=: classes of theirs that are taken over; 0: all */
    bool strict_field_ids; /* fieldids=strict: new columns of both sides under one id are a conflict */
};

enum lfs_side { LFS_BASE, LFS_OURS, LFS_THEIRS };

/* A field of one of the three states, and what the history tells of it. */
struct lfs_column_trace {
    enum lfs_side side;
    int32_t id;
    size_t same_as; /* out: the index of a column of the first kind that is the same; its own where none is known to be */
    bool retyped;   /* out: same_as it once was; a commit that changes a type puts a new column in the old one's place */
    bool unknown;   /* out: versions that would tell are gone */
    bool assumed;   /* out: under one id and name, and of one type, before and after versions that are gone */
};

struct lfs_merge_reader {
    void *context;
    /* The deletion vector of a fragment of `version`, checked against its physical_rows; an empty one when it has no
     * deletion file. The caller frees it. */
    errint_t (*deletions)(void *context, const struct lfs_version *version, const LanceFragment *fragment,
                          roaring_bitmap_t **out, struct lfs_error *err);
    /* The commits of a side (LFS_OURS, LFS_THEIRS) since the base; for LFS_BASE those that led to it on theirs' line from
     * what ours holds (a pick stands on such). Owned by the reader. */
    errint_t (*history)(void *context, enum lfs_side side, const struct lfs_history **out, struct lfs_error *err);
    /* Which of the first `n_first` columns and of the others are one, by how they came to be; asked where no data tells. */
    errint_t (*trace)(void *context, struct lfs_column_trace *list, size_t n_first, size_t n, struct lfs_error *err);
};

struct lfs_match_finder;

struct lfs_merge_input {
    const struct lfs_version *base, *ours, *theirs;
    bool ours_is_base; /* by lineage: the target has not moved */
    bool base_not_held; /* by lineage: ours need not come from the base (a pick) */
    /* The base lies on that side's own line, or on one that it comes from: ids of fields and rows mean the same in both. */
    bool base_is_ours, base_is_theirs;
    bool without_history; /* the base is one of the sides: there is nothing that a commit could explain */
    enum lfs_side base_side; /* and this one; LFS_BASE where it is none */
    /* Both sides hold more in common than the base does: what is not in the base may have come to both since, and have gone
     * from one of them again. */
    bool base_is_older;
    /* A fragment of the base that a side never had was given up in a merge, where a strategy took an update back: it has been
     * made sure that no compaction made it, whose rows would be there in another fragment. */
    bool given_up_told;
    const char *ours_name, *theirs_name; /* for sentences */
    const struct lfs_merge_reader *reader;
    struct lfs_policy policy;
    struct lfs_match_finder *finder; /* lfs_merge3's own (merge/match.h); NULL is fine for the caller */
};

/* A conflict or a refusal is an outcome of the plan, not an error; an error is what could not be read. `out` is to be
 * released by lfs_plan_release in every case. */
errint_t lfs_merge3(const struct lfs_merge_input *input, struct lfs_arena *arena, struct lfs_plan *out,
                    struct lfs_error *err);

#endif
