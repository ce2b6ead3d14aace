/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan becomes a version that nobody stores: the manifest that the commit would write, by the commit's own builder, with
 * base paths to where the source's files lie now instead of the places that a commit would bring them to. Nothing is
 * written. The same request and seed give the same bytes.
 */
#ifndef LFS_COMMIT_IMAGINE_H
#define LFS_COMMIT_IMAGINE_H

#include "commit/commit.h"
#include "table/image.h"

struct lfs_imagined {
    struct lfs_manifest manifest; /* of the target's directory; it points into the plan and the versions */
    uint64_t seed;                /* the transaction's uuid and ids of deletion files are made from it */
    struct lfs_image_file *files; /* deletion files that the plan makes */
    size_t n_files, capacity;
};

/* `out` lives in `arena`. Its time is that of the newer of both versions. */
errint_t lfs_commit_imagine(const struct lfs_commit_request *request, uint64_t seed, struct lfs_arena *arena,
                            struct lfs_imagined *out, struct lfs_error *err);

#endif
