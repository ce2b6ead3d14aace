/* SPDX-License-Identifier: Apache-2.0 */
/* The next manifest and its transaction, from a plan. For the files of commit/. */
#ifndef LFS_COMMIT_BUILD_H
#define LFS_COMMIT_BUILD_H

#include "commit/place.h"

struct lfs_build {
    const struct lfs_commit_request *request;
    struct lfs_placer *placer;
    struct lfs_arena *arena;
    const char *transaction_uuid;
    uint64_t version;
};

/* Places every file that the plan takes from the source, writes the deletion files that it needs, and fills `out`: a
 * manifest that is ready to be encoded, its transaction and index section included. */
errint_t lfs_build_manifest(const struct lfs_build *build, struct lfs_manifest *out, struct lfs_error *err);

/* The merged keys of others, the tip's lancefs.* keys, and the lineage of the result, in a manifest of that plan. */
errint_t lfs_build_table_metadata(const struct lfs_build *build, LanceManifest *next, struct lfs_error *err);

/* The same for a request that rehomes. */
errint_t lfs_build_rehomed(const struct lfs_build *build, struct lfs_manifest *out, struct lfs_error *err);

/* And for one that restates. */
errint_t lfs_build_restated(const struct lfs_build *build, struct lfs_manifest *out, struct lfs_error *err);

/* Time, writer, version and the transaction's file name. */
errint_t lfs_build_stamp(const struct lfs_build *build, LanceManifest *m, struct lfs_error *err);

/* The narrowest Lance operation that says what the plan does (merge-semantics section 8). `next` is the new manifest. */
errint_t lfs_build_transaction(const struct lfs_build *build, const struct lfs_manifest *next, LanceTransaction **out,
                               struct lfs_error *err);

#endif
