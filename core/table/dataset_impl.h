/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of table/ share about a data set; nobody else includes this. */
#ifndef LFS_TABLE_DATASET_IMPL_H
#define LFS_TABLE_DATASET_IMPL_H

#include <pthread.h>
#include <sys/queue.h>

#include "table/dataset.h"
#include "util/map.h"

enum { LFS_CACHE_BUCKETS = 1024, LFS_BLOCKS_MAX = 64 };

/* Fragment records, or the names in them, that one version brought, and that versions read later share where they have the
 * same. A branch's records differ from its parent's, their names do not. */
struct lfs_fragment_block {
    bool of_names;
    struct lfs_arena *arena;
    size_t bytes;
    unsigned versions; /* that hold it */
};

/* A cached version; `users` counts the cache itself too. */
struct lfs_cached_version {
    struct lfs_version version; /* first: a struct lfs_version is one of these */
    struct lfs_arena *arena;    /* owns all that the version points to, but fragments */
    size_t bytes;
    struct lfs_fragment_block *blocks[LFS_BLOCKS_MAX]; /* hold the fragments; its own are the last */
    size_t n_blocks;
    unsigned users;
    struct lfs_cached_version *next_in_bucket;
    TAILQ_ENTRY(lfs_cached_version) by_use;
};

TAILQ_HEAD(lfs_cached_versions, lfs_cached_version);

struct lfs_version_cache {
    struct lfs_cached_version *buckets[LFS_CACHE_BUCKETS];
    struct lfs_cached_versions by_use; /* the newest first */
    size_t bytes, bytes_max;           /* of cached versions and of all blocks */
    size_t entries;
    uint64_t hits, misses;
};

struct lfs_reference_cache; /* references.c */
void lfs_reference_cache_free(struct lfs_reference_cache *cache);

struct lfs_dataset {
    char *path;                   /* absolute, as given, no trailing slash */
    char *real_path;              /* links resolved: only ever compared with, never written */
    const char *name, *real_name; /* their last components */
    int root_fd;
    bool bases_limited;
    char **bases, **map_old, **map_new; /* NULL-terminated, or NULL */
    struct lfs_arena *arena;            /* owns the strings above */
    pthread_mutex_t lock;               /* guards what follows; never held across I/O */
    struct lfs_version_cache cache;
    struct lfs_reference_cache *references; /* NULL until something asks */
    struct lfs_map logged;                  /* complaints made once */
};

/* Drop all versions; nobody may hold one any more. */
void lfs_version_cache_free(struct lfs_version_cache *cache);

/* A directory of refs: what stock takes for refs, that is all that ends in ".json" (lance-format section 2.1). */
struct lfs_ref_entry {
    char *path; /* relative to the root */
    char *name; /* the name that it stands for; NULL when its file's name stands for none */
};
/* In no order. A directory that is not there holds none. */
errint_t lfs_ref_entries(struct lfs_dataset *ds, const char *directory, struct lfs_arena *arena,
                         struct lfs_ref_entry **out, size_t *n_out, struct lfs_error *err);

/* Log a complaint once a data set and key. */
void lfs_dataset_log_once(struct lfs_dataset *ds, const char *key, const char *message);

#endif
