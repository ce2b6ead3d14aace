/* SPDX-License-Identifier: Apache-2.0 */
/* The tip once more under the next number: nothing changes but the lineage. */
#include <string.h>

#include "commit/build.h"
#include "merge/plan.h"
#include "util/cleanup.h"

/* The users' own keys, as a plan that changes none would have them; those of this program are carried over behind it. */
static errint_t keep_keys(const struct lfs_build *b, struct lfs_plan *plan, struct lfs_error *err) {
    const LanceManifest *m = b->request->target_tip->manifest.message;
    plan->table_metadata = LFS_NEW_ARRAY(b->arena, LanceStringEntry *, m->n_table_metadata + 1);
    if (!plan->table_metadata)
        return lfs_fail_nomem(err);
    for (size_t i = 0; i < m->n_table_metadata; i++) {
        const char *key = m->table_metadata[i]->key;
        if (!key || strncmp(key, LFS_KEY_PREFIX, strlen(LFS_KEY_PREFIX)))
            plan->table_metadata[plan->n_table_metadata++] = m->table_metadata[i];
    }
    return 0;
}

errint_t lfs_build_restated(const struct lfs_build *b, struct lfs_manifest *out, struct lfs_error *err) {
    const struct lfs_version *tip = b->request->target_tip;
    struct lfs_plan plan = {0};
    struct lfs_commit_request request = *b->request;
    struct lfs_build build = *b;
    LanceManifest *m = lfs_memdup(b->arena, tip->manifest.message, sizeof *m);
    if (!m)
        return lfs_fail_nomem(err);
    *out = (struct lfs_manifest){.message = m, .indices = tip->manifest.indices};
    LFS_TRY(keep_keys(b, &plan, err));
    request.plan = &plan;
    build.request = &request;
    LFS_TRY(lfs_manifest_keep_bytes(out, &tip->manifest, b->arena, err));
    LFS_TRY(lfs_build_table_metadata(&build, m, err));
    LFS_TRY(lfs_build_stamp(&build, m, err));
    lfs_manifest_set_features(m);
    return lfs_build_transaction(&build, out, &out->transaction, err);
}
