/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a file of a version really lies: base ids and base path strings resolved (lance-format section 5,
 * merge-semantics section 11: a base path that names a place inside a data set of this one's name is looked for inside
 * this data set first).
 */
#ifndef LFS_TABLE_LOCATION_H
#define LFS_TABLE_LOCATION_H

#include <stdbool.h>
#include <sys/stat.h>

#include "table/dataset.h"

enum lfs_file_kind { LFS_FILE_DATA, LFS_FILE_DELETION, LFS_FILE_INDEX };
enum { LFS_FILE_KINDS = 3 };

/* Where files of a kind lie in a data set that is their home: "data", "_deletions", "_indices". */
extern const char *const lfs_kind_directory[LFS_FILE_KINDS];

/* A directory that holds files of one kind: either inside the data set (relative to its root) or outside (absolute). */
struct lfs_location {
    bool inside;
    const char *directory; /* e.g. "tree/feature/data", "data", "_lancefs/lines/<uuid>/_deletions", "/other/a.lance/data" */
    const char *name;      /* below `directory`; may hold '/' (blob side files, index files) */
};

enum { LFS_NO_BASE = -1 };

/*
 * The place of file `name` of `version`, whose base id is `base_id` (LFS_NO_BASE: the version's own directory).
 * Looks on the disk only where a base path has more than one possible meaning. Errors: LFS_E_CORRUPT (no such base id;
 * a name with "..", an absolute name), LFS_E_FORBIDDEN (bases=), LFS_E_UNSUPPORTED (an object store). Strings live in
 * `arena`.
 */
errint_t lfs_locate(const struct lfs_version *version, enum lfs_file_kind kind, int64_t base_id, const char *name,
                    struct lfs_arena *arena, struct lfs_location *out, struct lfs_error *err);

/*
 * Every directory inside the data set (relative to its root, "" for the root) that a base path string can mean to
 * anybody who reads it: by its text, where a part of it is this data set's name, and by where it leads on this machine
 * today, links and bind mounts followed. There may be none; whether files are there is not looked at.
 */
errint_t lfs_base_places(struct lfs_dataset *ds, const char *text, struct lfs_arena *arena, const char ***out,
                         size_t *n_out, struct lfs_error *err);

/* The absolute path that a base path string means to stock Lance (lance-format section 5); NULL for one that is relative,
 * unusable, or on no local file system. */
char *lfs_base_path(const char *text, struct lfs_arena *arena);

/* Open read-only, beneath the root (or the outside directory), never through a link that leads out of it; regular files
 * only. The descriptor, or a negative errno with `err` filled. */
int lfs_location_open(struct lfs_dataset *ds, const struct lfs_location *location, struct lfs_error *err);
errint_t lfs_location_stat(struct lfs_dataset *ds, const struct lfs_location *location, struct stat *out,
                           struct lfs_error *err);
/* Open a directory at a location ("_indices/<uuid>", "data/<stem>") for listing; same rules. */
int lfs_location_open_dir(struct lfs_dataset *ds, const struct lfs_location *location, struct lfs_error *err);

/* The same for a path relative to the data set's root: O_RDONLY, O_PATH, O_DIRECTORY as asked. Negative errno. */
int lfs_dataset_open_beneath(struct lfs_dataset *ds, const char *path, int flags);

#endif
