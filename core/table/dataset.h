/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A data set on the disk: its branches, their versions, and the manifests of those. Thread safe; what other processes
 * commit is seen at the next call. Nothing here writes.
 */
#ifndef LFS_TABLE_DATASET_H
#define LFS_TABLE_DATASET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "format/manifest.h"
#include "format/names.h"
#include "format/ref.h"
#include "util/arena.h"
#include "util/error.h"

struct lfs_dataset;

struct lfs_dataset_options {
    bool bases_limited;        /* only `bases` may be reached outside the data set; else any that can be read */
    const char *const *bases;  /* absolute directories, NULL-terminated; may be NULL */
    const char *const *map_old, *const *map_new; /* map=OLD:NEW pairs, NULL-terminated; may be NULL */
    size_t cache_bytes_max;    /* bound of the manifest cache; 0 = 64 MiB */
};

/* `path` must hold `_versions`. The root directory is kept open; `path` is kept as given (made absolute by the working
 * directory without resolving links), since base path strings are made from such strings. */
errint_t lfs_dataset_open(const char *path, const struct lfs_dataset_options *options, struct lfs_dataset **out,
                          struct lfs_error *err);
void lfs_dataset_close(struct lfs_dataset *ds);

int lfs_dataset_root_fd(const struct lfs_dataset *ds);       /* borrowed */
const char *lfs_dataset_path(const struct lfs_dataset *ds);  /* absolute, as given */

/* A branch line. `dir` is relative to the root: "" for main, "tree/<name>" for others. */
struct lfs_branch {
    const char *name; /* "main" or the branch's name */
    const char *dir;
    const char *uuid; /* names the line: "main", or the branch's own uuid (32 hex digits); "" when the ref has none */
    const char *parent_uuid; /* "main" or the parent line's uuid; NULL for main */
    const char *parent_name; /* NULL for main */
    uint64_t parent_version, parent_manifest_size; /* as the ref says */
    const struct lfs_fork *forks; /* from main down to this branch */
    size_t n_forks;
    struct timespec ref_mtime; /* of the ref file; of the root directory for main */
};

/* The number of a branch's first version: its parent's state under its parent's number; 1 for main. */
static inline uint64_t lfs_branch_first(const struct lfs_branch *branch) {
    return branch->n_forks ? branch->forks[branch->n_forks - 1].version : 1;
}

/* Every branch, main first, the rest sorted by name (bytes). A ref file that cannot be read or parsed is left out, and
 * logged once; `n_bad` (may be NULL) counts them. */
errint_t lfs_dataset_branches(struct lfs_dataset *ds, struct lfs_arena *arena, struct lfs_branch **out, size_t *n_out,
                              size_t *n_bad, struct lfs_error *err);
/* One branch by name: LFS_E_NOT_FOUND when there is no such ref file; LFS_E_CORRUPT when it cannot be parsed. */
errint_t lfs_dataset_branch(struct lfs_dataset *ds, struct lfs_arena *arena, const char *name, struct lfs_branch *out,
                            struct lfs_error *err);

/* A tag: a name for one version of one branch. */
struct lfs_tag {
    const char *name;
    const char *branch; /* "main" or the branch's name; whether it is there is not looked at */
    uint64_t version;
    struct lfs_tag_ref ref; /* the file's content */
    struct timespec ref_mtime;
};

/* Every tag, sorted by name (bytes). A file that cannot be read or parsed is left out, and logged once; `n_bad` (may be
 * NULL) counts them. */
errint_t lfs_dataset_tags(struct lfs_dataset *ds, struct lfs_arena *arena, struct lfs_tag **out, size_t *n_out,
                          size_t *n_bad, struct lfs_error *err);
/* One tag by name: LFS_E_NOT_FOUND, LFS_E_CORRUPT. */
errint_t lfs_dataset_tag(struct lfs_dataset *ds, struct lfs_arena *arena, const char *name, struct lfs_tag *out,
                         struct lfs_error *err);

/* The numbered versions in <dir>/_versions, ascending. LFS_E_CORRUPT when both naming schemes stand there.
 * LFS_E_NOT_FOUND when there are none. */
struct lfs_versions {
    uint64_t *numbers;
    size_t count;
    enum lfs_naming naming;
};
errint_t lfs_dataset_versions(struct lfs_dataset *ds, const char *dir, struct lfs_arena *arena, struct lfs_versions *out,
                              struct lfs_error *err);
/* The newest version and the naming scheme only. */
errint_t lfs_dataset_tip(struct lfs_dataset *ds, const char *dir, uint64_t *version, enum lfs_naming *naming,
                         struct lfs_error *err);

/*
 * One version of one directory, read: immutable, shared, counted. `dir` is as in struct lfs_branch, or a line storage
 * ("_lancefs/lines/<uuid>").
 */
struct lfs_version {
    struct lfs_dataset *dataset; /* borrowed */
    const char *dir;
    uint64_t number;
    struct lfs_manifest manifest; /* not to be changed */
    char file_name[LFS_MANIFEST_NAME_SIZE];
    off_t file_size;
    struct timespec mtime; /* of the manifest file */
    dev_t dev;
    ino_t ino;
    bool planned; /* of no file: what a plan will give. Owned by whoever made it, not counted */
};

/* From the cache (keyed by the file's identity) or the disk. LFS_E_NOT_FOUND when the file is not there,
 * LFS_E_CORRUPT, LFS_E_UNSUPPORTED (unknown reader features). Release with lfs_version_release. */
errint_t lfs_dataset_version(struct lfs_dataset *ds, const char *dir, uint64_t number, struct lfs_version **out,
                             struct lfs_error *err);
void lfs_version_release(struct lfs_version *version); /* NULL and a planned one are fine */
static inline void lfs_cleanup_version(struct lfs_version **version) { lfs_version_release(*version); } /* for LFS_CLEANUP */

/* What a cache did since it was made, and what it holds now. */
struct lfs_cache_counts {
    uint64_t hits, misses;
    size_t entries, bytes;
};
void lfs_dataset_cache_counts(struct lfs_dataset *ds, struct lfs_cache_counts *out);

#endif
