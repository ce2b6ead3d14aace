/* SPDX-License-Identifier: Apache-2.0 */
/* Branch and tag files (lance-format section 2): JSON <-> struct. Pure. */
#ifndef LFS_FORMAT_REF_H
#define LFS_FORMAT_REF_H

#include <stddef.h>
#include <stdint.h>

#include "util/arena.h"
#include "util/buf.h"
#include "util/error.h"

/* One fork on the way from main to a branch: the branch `uuid` (32 hex digits) left its parent at `version`. */
struct lfs_fork {
    uint64_t version;
    const char *uuid;
};

struct lfs_branch_ref {
    const char *parent_branch; /* NULL = main */
    struct lfs_fork *forks;    /* identifier.version_mapping, main's fork first; the last uuid is this branch's own */
    size_t n_forks;            /* 0 when the file has no identifier */
    uint64_t parent_version;
    uint64_t create_at; /* seconds */
    uint64_t manifest_size;
    const char *metadata_json; /* compact JSON object, or NULL */
};

struct lfs_tag_ref {
    const char *branch; /* NULL = main */
    uint64_t version;
    const char *created_at, *updated_at; /* RFC 3339, or NULL */
    uint64_t manifest_size;
    const char *metadata_json; /* compact JSON object, or NULL */
};

/* Required keys missing, wrong types, numbers out of range, NUL or bad UTF-8: LFS_E_CORRUPT. `what` names the file. */
errint_t lfs_branch_ref_decode(const uint8_t *json, size_t length, struct lfs_arena *arena, const char *what,
                               struct lfs_branch_ref *out, struct lfs_error *err);
errint_t lfs_tag_ref_decode(const uint8_t *json, size_t length, struct lfs_arena *arena, const char *what,
                            struct lfs_tag_ref *out, struct lfs_error *err);

/* Stock's own form: two spaces, camelCase. */
errint_t lfs_branch_ref_encode(const struct lfs_branch_ref *ref, struct lfs_buf *out, struct lfs_error *err);
errint_t lfs_tag_ref_encode(const struct lfs_tag_ref *ref, struct lfs_buf *out, struct lfs_error *err);

/* A branch or tag file with another name at `key` ("parentBranch", "branch"; a `name` of NULL leaves it) and another
 * manifestSize (NULL leaves it); everything else, keys that nobody knows too, stays as it stands. */
errint_t lfs_ref_edit(const uint8_t *json, size_t length, const char *what, const char *key, const char *name,
                      const uint64_t *manifest_size, struct lfs_buf *out, struct lfs_error *err);

#endif
