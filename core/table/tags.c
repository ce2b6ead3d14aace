/* SPDX-License-Identifier: Apache-2.0 */
/* Tags: the ref files in _refs/tags (lance-format section 2.2). */
#include <stdio.h>

#include "store/file.h"
#include "table/dataset.h"
#include "table/dataset_impl.h"
#include "util/cleanup.h"
#include "util/limits.h"

errint_t lfs_dataset_tag(struct lfs_dataset *ds, struct lfs_arena *arena, const char *name, struct lfs_tag_ref *out,
                         struct lfs_error *err) {
    LFS_AUTO_BUF bytes = {0};
    struct lfs_error why;
    if (lfs_tag_name_check(name, &why) < 0)
        return lfs_fail(err, LFS_E_NOT_FOUND, "there is no tag %.200s", name);
    char *encoded = lfs_percent_encode(arena, name);
    char *path = encoded ? lfs_sprintf(arena, "_refs/tags/%s.json", encoded) : NULL;
    if (!path)
        return lfs_fail_nomem(err);
    errint_t result = lfs_read_file(ds->root_fd, path, LFS_REF_BYTES_MAX, &bytes, NULL, err);
    if (result == -ENOENT)
        return lfs_fail(err, LFS_E_NOT_FOUND, "there is no tag %s", name);
    LFS_TRY(result);
    LFS_TRY(lfs_tag_ref_decode(bytes.data, bytes.length, arena, path, out, err));
    return out->version ? 0 : lfs_fail(err, LFS_E_CORRUPT, "the tag %s names version 0, which is none", name);
}
