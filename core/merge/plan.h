/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a merge will do, as data: the same plan prints a dry run and is committed; nothing is decided twice.
 */
#ifndef LFS_MERGE_PLAN_H
#define LFS_MERGE_PLAN_H

#include <roaring/roaring.h>
#include <stdbool.h>
#include <stdint.h>

#include "table/dataset.h"
#include "util/arena.h"

enum lfs_outcome {
    LFS_OUTCOME_MERGED,       /* the result differs from ours */
    LFS_OUTCOME_FAST_FORWARD, /* likewise, and ours is the base */
    LFS_OUTCOME_EMPTY,        /* the result is ours: only the lineage is to be recorded */
    LFS_OUTCOME_CONFLICT,
    LFS_OUTCOME_REFUSED, /* something that is not merged yet; `refusal` names it */
};

/* How the result's deletion vector of a fragment comes about. */
enum lfs_deletion_from {
    LFS_DELETION_KEPT,   /* ours' file, or none */
    LFS_DELETION_THEIRS, /* equal to theirs' whole: their file is placed */
    LFS_DELETION_NEW,    /* `deleted` is written as a new file */
};

/* A data file of the result's fragment: ours' record, or theirs', whose file is still to be placed. */
struct lfs_plan_file {
    const LanceDataFile *record;
    bool is_theirs;
};

/* One fragment of the result. */
struct lfs_plan_fragment {
    uint64_t id;
    const LanceFragment *record; /* files, rows and versions are taken from this one ... */
    bool is_theirs;              /* ... whose files are still to be placed when it is theirs */
    struct lfs_plan_file *files; /* NULL: the record's own */
    size_t n_files;
    bool is_new;                 /* ours has no such fragment */
    bool as_ours;                /* nothing changed, though the vector is written: ours is virtual, and no file holds it */
    enum lfs_deletion_from deletion;
    const LanceFragment *theirs; /* LFS_DELETION_THEIRS: whose deletion file */
    roaring_bitmap_t *deleted;   /* LFS_DELETION_NEW; owned by the plan */
    /* Stable row ids: sequences that replace the record's; data NULL where that one's stay. */
    ProtobufCBinaryData row_ids, created_versions, updated_versions;
    uint64_t n_deleted;          /* rows deleted in the result, counted, not believed */
};

/* An entry of the result's index list: as it will be written, but for its base id and place where it is theirs. */
struct lfs_plan_index {
    const LanceIndex *record;
    bool is_theirs; /* its files are still to be placed */
};

/* What happens to units that both sides changed (merge-semantics section 3): theirs is the source, ours the destination. */
enum lfs_strategy { LFS_STRATEGY_FAIL, LFS_STRATEGY_SOURCE, LFS_STRATEGY_DEST };

/* One unit that both sides changed. Text for people; the unit's class for machines. */
struct lfs_conflict {
    const char *kind; /* "update-update", "update-delete", "delete-update", "value", ... */
    const char *unit; /* "row 12 of fragment 0", "config key a" */
    const char *base, *ours, *theirs;
    /* Filled in by lfs_settle where they are not given: which unit it is, whatever its fragment is called today, and what
     * both sides made of it. */
    const char *key;
    uint64_t print;
    const char *no_ours, *no_theirs; /* why that side cannot be taken; NULL: it can */
    enum lfs_strategy chosen;        /* by a choice for this unit */
    const char *stuck;               /* and why it could not be carried out beside the others */
    /* Of rows: a data file of the fragment, the row in it, and the commits (uuids) that updated it, NULL for a deletion. */
    const char *path;
    uint32_t row;
    const char *our_update, *their_update;
};
#define LFS_CONFLICT(kind_, unit_, base_, ours_, theirs_)                                                              \
    {.kind = (kind_), .unit = (unit_), .base = (base_), .ours = (ours_), .theirs = (theirs_)}

struct lfs_list {
    void **items;
    size_t count, capacity;
};

struct lfs_plan {
    struct lfs_arena *arena; /* borrowed; all but the bitmaps lives there */
    enum lfs_outcome outcome;
    const char *refusal;

    struct lfs_plan_fragment *fragments; /* sorted by id */
    size_t n_fragments;
    uint64_t *removed_ids; /* ours' fragments that the result has no more */
    size_t n_removed;
    bool fragments_changed, schema_changed, maps_changed;
    bool rows_return; /* rows live again where ours had them deleted: no plain delete, whatever else goes */
    uint32_t max_fragment_id;
    bool has_max_fragment_id;
    uint64_t next_row_id;

    LanceField **fields; /* the result's schema */
    size_t n_fields;
    LanceStringEntry **config, **table_metadata; /* without lancefs.* keys */
    size_t n_config, n_table_metadata;
    LanceBytesEntry **schema_metadata;
    size_t n_schema_metadata;
    struct lfs_plan_index *indices; /* the whole list */
    size_t n_indices;
    bool indices_changed; /* differs from ours' */

    struct lfs_list conflicts; /* of struct lfs_conflict */
    size_t n_conflicts;        /* all of them; the list names at most LFS_CONFLICTS_NAMED_MAX */
    struct lfs_list notes;     /* of char */
    struct lfs_list settled;   /* of struct lfs_conflict: those that a choice decided */
    struct lfs_list losers[2]; /* ours, theirs; of char: transactions (uuids) whose updates lose and stand in the way */

    uint64_t fragments_added, fragments_removed, fragments_changed_count;
    uint64_t rows_added, rows_removed;
};

/* The record under its id and sequences in the result: a copy in `arena`, files and deletion file still the record's. */
LanceFragment *lfs_plan_record(const struct lfs_plan_fragment *fragment, struct lfs_arena *arena);

/* The fragment of that id, or NULL; the fragments must be sorted. */
struct lfs_plan_fragment *lfs_plan_find(const struct lfs_plan *plan, uint64_t id);

bool lfs_list_add(struct lfs_list *list, struct lfs_arena *arena, void *item); /* false: out of memory */

/* Counts what `plan` adds to, takes from and changes in the fragments and rows of `ours`, and fills removed_ids; marks the
 * fragments that ours has not (by id) as new. */
errint_t lfs_plan_count(struct lfs_plan *plan, const LanceManifest *ours, struct lfs_error *err);

/* Frees the bitmaps. */
void lfs_plan_release(struct lfs_plan *plan);

#endif
