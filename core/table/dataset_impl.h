/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of table/ share about a data set; nobody else includes this. */
#ifndef LFS_TABLE_DATASET_IMPL_H
#define LFS_TABLE_DATASET_IMPL_H

#include <pthread.h>

#include "table/dataset.h"
#include "util/map.h"

enum { LFS_CACHE_BUCKETS = 1024 };

/* A cached version; `users` counts the cache itself too. */
struct lfs_cached_version {
    struct lfs_version version; /* first: a struct lfs_version is one of these */
    struct lfs_arena *arena;    /* owns all that the version points to */
    size_t bytes;
    unsigned users;
    struct lfs_cached_version *next_in_bucket, *newer, *older;
};

struct lfs_version_cache {
    struct lfs_cached_version *buckets[LFS_CACHE_BUCKETS];
    struct lfs_cached_version *newest, *oldest;
    size_t bytes, bytes_max, entries;
    uint64_t hits, misses;
};

struct lfs_dataset {
    char *path;      /* absolute, as given, no trailing slash */
    char *real_path; /* links resolved: only ever compared with, never written */
    const char *name, *real_name; /* their last components */
    int root_fd;
    bool bases_limited;
    char **bases, **map_old, **map_new; /* NULL-terminated, or NULL */
    struct lfs_arena *arena;            /* owns the strings above */
    pthread_mutex_t lock;               /* guards what follows; never held across I/O */
    struct lfs_version_cache cache;
    struct lfs_map logged; /* complaints made once */
};

/* Log a complaint once a data set and key. */
void lfs_dataset_log_once(struct lfs_dataset *ds, const char *key, const char *message);

#endif
