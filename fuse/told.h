/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a caller gets as a mere error number is a line in the log, with its cause:
 *     operation=open path="data/X.lance" errno=1 cause="what is published never changes: ..."
 * What a program asks for by the way (is there such a name? may I set this attribute?) costs no line: ENOENT and the like are
 * no failures, the same refusal again is one line, and no second sees more than a few.
 */
#ifndef LFS_FUSE_TOLD_H
#define LFS_FUSE_TOLD_H

#include "fuse/mount.h"

/* Log that `operation` on `node` (NULL: no longer known), or on `name` in it (NULL: itself), gave `error` (positive). `cause`
 * NULL: what the number means here. */
void lfs_told(fuse_req_t req, const char *operation, const struct lfs_node *node, const char *name, int error,
              const char *cause);

/* The same, and reply it. */
void lfs_refuse(fuse_req_t req, const char *operation, const struct lfs_node *node, const char *name, int error);

#endif
