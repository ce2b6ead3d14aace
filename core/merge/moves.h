/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where compactions of one side moved rows to (merge-semantics section 5, s2 to s4). A compaction's transaction names
 * the old fragments, with the deletion files that they had, and the new ones; the new fragments hold the live rows of
 * the old ones in order, so row i of the new is the i-th live row of the old. Where the counts do not agree, or a
 * deletion file of the time is gone, nothing is claimed.
 */
#ifndef LFS_MERGE_MOVES_H
#define LFS_MERGE_MOVES_H

#include "merge/merge3.h"
#include "util/map.h"

/* One old fragment of a compaction. */
struct lfs_moved_part {
    const LanceFragment *record; /* as it was then */
    const char *path;            /* of its first data file: its name everywhere */
    roaring_bitmap_t *live;      /* rows live then; read when first needed, owned by the moves */
    uint64_t start, count;       /* where they stand in the sequence of all live rows of the group */
};

/* One new fragment. */
struct lfs_moved_out {
    const LanceFragment *record; /* as the compaction made it */
    const char *path;
    uint64_t start, rows;
};

struct lfs_moved_group {
    const struct lfs_version *version; /* whose base paths the records use */
    struct lfs_moved_part *parts;
    size_t n_parts;
    struct lfs_moved_out *outs;
    size_t n_outs;
    bool measured; /* `live`, `start` and `count` are filled */
    bool stands;   /* rows that it moved stand in the side's tip, by way of later compactions perhaps */
    bool left_out;
};

struct lfs_moves {
    const struct lfs_merge_input *input;
    enum lfs_side side;
    struct lfs_arena *arena;
    struct lfs_moved_group *groups;
    size_t n_groups;
    struct lfs_map by_old, by_new; /* path -> group */
};

errint_t lfs_moves_read(const struct lfs_merge_input *input, enum lfs_side side, struct lfs_arena *arena,
                        struct lfs_moves *out, struct lfs_error *err);
void lfs_moves_free(struct lfs_moves *moves);

/* Was that fragment compacted away on this side? */
bool lfs_moves_has(const struct lfs_moves *moves, const char *path);

/* Mark the compaction of that fragment, and every one that shares a fragment with it, as left out of the merge. */
void lfs_moves_leave_out(struct lfs_moves *moves, const char *path);
bool lfs_moves_is_left_out(const struct lfs_moves *moves, const char *path);

typedef errint_t (*lfs_moves_visit)(void *context, const char *path, const roaring_bitmap_t *rows,
                                    struct lfs_error *err);

/* Follow rows of a fragment to where they stand now: `visit` is called with each fragment and the rows in it. Rows that
 * were deleted before a compaction are left out. LFS_E_CONFLICT where it cannot be proved. */
errint_t lfs_moves_up(struct lfs_moves *moves, const char *path, const roaring_bitmap_t *rows, lfs_moves_visit visit,
                      void *context, struct lfs_error *err);

/* Did the fragment have the files of `base` until it was compacted, and what it became no other files since? Then leaving
 * the compaction out loses no column. */
bool lfs_moves_kept_files(const struct lfs_moves *moves, const char *path, const LanceFragment *base);

/* Does that fragment, which the base does not hold, hold nothing but rows of the base, by compactions? */
bool lfs_moves_only_base(const struct lfs_moves *moves, const LanceManifest *base, const char *path);

/* The deletion vector that the fragment would have today, had it not been compacted. */
errint_t lfs_moves_effective(struct lfs_moves *moves, const char *path, uint64_t physical_rows, roaring_bitmap_t **out,
                             struct lfs_error *err);

#endif
