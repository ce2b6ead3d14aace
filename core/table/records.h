/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The records of files in manifests and transactions (data files, deletion files, indexes), replaced one by one: the walk
 * that flattening and its inverse share. Messages are copied only where something in them changes.
 */
#ifndef LFS_TABLE_RECORDS_H
#define LFS_TABLE_RECORDS_H

#include <stdbool.h>

#include "format/manifest.h"
#include "util/arena.h"

struct lfs_records {
    /* Each returns its argument where nothing changes, else a copy by lfs_records_copy. */
    LanceDataFile *(*data_file)(struct lfs_records *records, LanceDataFile *file);
    LanceDeletionFile *(*deletion_file)(struct lfs_records *records, uint64_t fragment_id, LanceDeletionFile *file);
    LanceIndex *(*index)(struct lfs_records *records, LanceIndex *index);
    struct lfs_arena *arena;
    bool changed; /* something was copied */
    bool failed;  /* memory was short, or one of the three says so */
};

/* A changed copy's bytes; NULL (and `failed`) when memory is short. */
void *lfs_records_copy(struct lfs_records *records, const void *bytes, size_t size);

/* `out`: the message and the index section, each a copy whose own fields can be set; the inline transaction is left as it
 * is. False when something failed. */
bool lfs_records_manifest(struct lfs_records *records, const struct lfs_manifest *in, struct lfs_manifest *out);

/* A copy, its operation's message too, whose own fields can be set. NULL when something failed. */
LanceTransaction *lfs_records_transaction(struct lfs_records *records, const LanceTransaction *in);

#endif
