/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Placing: making files of a source reachable from a target (interface.md section 4, merge-semantics section 10), so that
 * nothing that stock Lance does to the source afterwards takes them away.
 */
#ifndef LFS_COMMIT_PLACE_H
#define LFS_COMMIT_PLACE_H

#include <stdatomic.h>

#include "commit/commit.h"
#include "store/flush.h"
#include "table/location.h"
#include "util/map.h"

struct lfs_imagined;

struct lfs_placer {
    struct lfs_dataset *dataset;
    struct lfs_arena *arena;
    const struct lfs_version *source, *target;
    const char *source_line; /* uuid: names the storage that grafts are linked into */
    const char *source_name;
    const char *root_string; /* what base path strings of this data set begin with */
    enum lfs_placing mode;
    bool sync;
    const atomic_bool *cancel;
    struct lfs_progress *progress; /* may be NULL; see expect.h */
    bool rehome; /* the source is the target: what it has elsewhere comes into its own storage */
    bool storage_made, with_blobs, has_deletions;
    struct lfs_imagined *imagined; /* nothing is written (imagine.h); NULL: a commit */
    LanceBasePath **bases; /* the target's, and those that placing adds */
    size_t n_bases, capacity;
    uint64_t copied_files; /* could not be linked */
    bool own_touched;        /* something went into the target's own storage */
    struct lfs_list created; /* of char: files of this attempt alone (random names), relative to the root */
    struct lfs_list linked;  /* of char: links in the target's own storage ... */
    struct lfs_list origins; /* of char: ... and what each is a link of */
    struct lfs_map directories; /* path -> int descriptor, opened for linking */
    struct lfs_list unflushed;  /* of lfs_location: what was linked */
};

errint_t lfs_placer_init(struct lfs_placer *placer, const struct lfs_commit_request *request, struct lfs_arena *arena,
                         struct lfs_error *err);

/* The id of the target's base path with that text, a new one (above all others, as stock gives it) where there is none. */
errint_t lfs_placer_base(struct lfs_placer *placer, const char *path, bool is_root, const char *name, uint32_t *id,
                         struct lfs_error *err);

/* Set the base id of `file` (a copy of the source's record) so that it reads right in the target's manifest, after the
 * file has been linked or copied to where that says. */
errint_t lfs_place_data_file(struct lfs_placer *placer, LanceDataFile *file, struct lfs_error *err);

/* The same for the deletion file of source fragment `fragment_id`, which keeps its id. */
errint_t lfs_place_deletion_file(struct lfs_placer *placer, uint64_t fragment_id, LanceDeletionFile *file,
                                 struct lfs_error *err);

/* The files of an index go into the target's own _indices/<uuid>; its base id is cleared. */
errint_t lfs_place_index(struct lfs_placer *placer, LanceIndex *index, struct lfs_error *err);

/* The number and size of the source's files of an index, for progress. What cannot be found is not counted. */
void lfs_placer_expect_index(struct lfs_placer *placer, const LanceIndex *index);

/* An index that the target has already. Stock Lance names the wrong base for one that a branch of a branch inherited
 * (lance-format section 13, S1): then its files are brought into the target's own storage and *index becomes a copy
 * without a base id; NULL when they are nowhere. */
errint_t lfs_place_own_index(struct lfs_placer *placer, LanceIndex **index, struct lfs_error *err);

/* Keep the source's manifest, its deletion files and its ref in its line's storage: the next merge's base. */
errint_t lfs_place_kept_base(struct lfs_placer *placer, struct lfs_error *err);

/* Keep the deletion files that `next` (the target's new manifest) has in the target's own directory, too: when stock
 * Lance has compacted them away and cleaned up, they still tell which rows a compaction moved where. */
errint_t lfs_place_kept_deletions(struct lfs_placer *placer, const char *target_line, const LanceManifest *next,
                                  struct lfs_error *err);

/* Where the request says `sync`: flush what was linked, the directories that it was linked into and what is in `flush`,
 * which was written without that. */
errint_t lfs_placer_flush(struct lfs_placer *placer, struct lfs_flush *flush, struct lfs_error *err);
/* After the commit: links in the target's own storage have old times, and a clean-up of stock Lance that ran between
 * the linking and the commit may have removed them as unreferenced (lance-format T7). Those are linked again. */
void lfs_placer_look_again(struct lfs_placer *placer);
/* Remove the files of an attempt that did not commit. What was linked or copied under its own name stays: another
 * merge may be about to commit it, and the next attempt uses it again. */
void lfs_placer_undo(struct lfs_placer *placer);
/* Let go of the directories. Last of all; also of a placer whose init failed. */
void lfs_placer_close(struct lfs_placer *placer);

#endif
