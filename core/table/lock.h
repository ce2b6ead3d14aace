/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lock of a data set, among programs of this project (flock(2) on the data set's directory; no file is made for it).
 * Whoever makes files reachable, or moves directories that hold versions, holds it shared from its first file until the
 * version that names them is published; .gc holds it alone while it removes. Stock Lance knows nothing of it and needs
 * not: it never touches line storage, and what it has not committed yet is young.
 */
#ifndef LFS_TABLE_LOCK_H
#define LFS_TABLE_LOCK_H

#include <stdatomic.h>

#include "table/dataset.h"

enum lfs_lock { LFS_LOCK_SHARED, LFS_LOCK_ALONE };

/*
 * Waits until the lock can be had. The descriptor that holds it: closing it gives the lock back. A negative errno with
 * `err` filled: LFS_E_INTERRUPTED once *cancel (may be NULL) is true. On a file system that has no locks a descriptor is
 * returned all the same; then only the age of files protects what is under way.
 */
int lfs_dataset_lock(struct lfs_dataset *ds, enum lfs_lock how, const atomic_bool *cancel, struct lfs_error *err);

#endif
