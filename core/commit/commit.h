/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan becomes a version (merge-semantics section 8, lance-format section 7): files are placed, the manifest and its
 * transaction built, everything flushed, and the version published by an exclusive link. Until then nothing is visible.
 */
#ifndef LFS_COMMIT_COMMIT_H
#define LFS_COMMIT_COMMIT_H

#include <stdatomic.h>

#include "merge/plan.h"
#include "table/lineage.h"
#include "util/progress.h"

enum lfs_placing { LFS_PLACE_GRAFT, LFS_PLACE_LINK, LFS_PLACE_COPY }; /* interface.md section 4 */

struct lfs_property {
    const char *key, *value;
};

struct lfs_commit_request {
    struct lfs_dataset *dataset;
    const struct lfs_branch *target, *source;
    const struct lfs_version *target_tip, *source_version;
    bool rehome; /* no merge: the tip's own files are placed in its storage; `plan` and `vector` are NULL, `source` is the target */
    bool restate; /* no merge: the tip once more under the next number, said as a restore, by which writers that have an
                     older version open find out that they must begin anew; `plan` is NULL, `source` is the target */
    bool aside;   /* the target is made where nobody sees it, by a caller who holds the data set's lock alone */
    const struct lfs_plan *plan;
    const struct lfs_vector *vector; /* the joined vector to record */
    const char *picked, *partial;    /* lancefs.picked and lancefs.partial to record; NULL: as they stand */
    enum lfs_naming naming;          /* of the target's manifests */
    enum lfs_placing mode;
    bool sync;
    const struct lfs_property *properties; /* of the transaction: lancefs.source, the message, the user's */
    size_t n_properties;
    const atomic_bool *cancel; /* looked at until the last step; may be NULL */
    struct lfs_progress *progress; /* may be NULL */
};

struct lfs_commit_result {
    uint64_t version;
    char transaction[37]; /* uuid */
    uint64_t copied_files; /* files that could not be linked */
};

/* -EEXIST (LFS_E_SYSTEM): another writer published that version first; read the tip again and plan anew. On every
 * failure the target is as it was. */
errint_t lfs_commit_plan(const struct lfs_commit_request *request, struct lfs_commit_result *out, struct lfs_error *err);

/* LFS_E_UNSUPPORTED when one of the two has features that this program must not write. */
errint_t lfs_commit_check(const struct lfs_commit_request *request, struct lfs_error *err);

/* What the commit would record, put into the manifest that the plan would give (see lfs_virtual_init), so that more can
 * be planned on top of it: lineage and transaction, the latter under a uuid of its own. Nothing is written; all of it
 * lives in `arena`. */
errint_t lfs_commit_foresee(const struct lfs_commit_request *request, struct lfs_arena *arena,
                            struct lfs_manifest *next, struct lfs_error *err);

#endif
