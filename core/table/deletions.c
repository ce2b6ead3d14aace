/* SPDX-License-Identifier: Apache-2.0 */
#include "table/deletions.h"

#include <inttypes.h>
#include <string.h>

#include "format/deletion.h"
#include "store/file.h"
#include "table/location.h"
#include "util/cleanup.h"
#include "util/limits.h"

/* The line whose versions stand in a directory; NULL when nobody knows. */
static const char *line_of(const struct lfs_lines *lines, const char *dir) {
    static const char storage[] = "_lancefs/lines/";
    if (strncmp(dir, storage, sizeof storage - 1) == 0)
        return dir + sizeof storage - 1;
    for (size_t i = 0; i < lines->n_branches; i++)
        if (strcmp(lines->branches[i].dir, dir) == 0 && *lines->branches[i].uuid)
            return lines->branches[i].uuid;
    return NULL;
}

static int open_kept(const struct lfs_lines *lines, const struct lfs_version *version, const char *name,
                     struct lfs_arena *arena) {
    const char *line = line_of(lines, version->dir);
    char *path = line ? lfs_sprintf(arena, "_lancefs/lines/%s/_deletions/%s", line, name) : NULL;
    return path ? lfs_open_regular(lfs_dataset_root_fd(lines->dataset), path) : -ENOENT;
}

errint_t lfs_read_deletions(const struct lfs_lines *lines, const struct lfs_version *version,
                            const LanceFragment *fragment, roaring_bitmap_t **out, struct lfs_error *err) {
    const LanceDeletionFile *d = fragment->deletion_file;
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    LFS_AUTO_BUF bytes = {0};
    struct lfs_location at;
    char name[80];
    *out = NULL;
    if (!d) {
        *out = roaring_bitmap_create();
        return *out ? 0 : lfs_fail_nomem(err);
    }
    if (!arena)
        return lfs_fail_nomem(err);
    if (d->num_deleted_rows > fragment->physical_rows)
        return lfs_fail(err, LFS_E_CORRUPT, "fragment %" PRIu64 " of %s: %" PRIu64 " of its %" PRIu64 " rows are deleted",
                        fragment->id, *version->dir ? version->dir : "main", d->num_deleted_rows, fragment->physical_rows);
    lfs_deletion_file_name(fragment->id, d, name, sizeof name);
    LFS_TRY(lfs_locate(version, LFS_FILE_DELETION, d->has_base_id ? (int64_t)d->base_id : LFS_NO_BASE, name, arena, &at,
                       err));
    struct lfs_error why;
    LFS_AUTO_FD fd = lfs_location_open(lines->dataset, &at, &why);
    if (fd == -ENOENT)
        fd = open_kept(lines, version, name, arena);
    if (fd == -ENOENT)
        return lfs_fail(err, LFS_E_CORRUPT, "the deletion file %s/%s of %s is gone, so it cannot be told which rows live",
                        at.directory, name, *version->dir ? version->dir : "main");
    if (fd < 0)
        return lfs_fail_errno(err, -fd, "cannot open the deletion file %s/%s", at.directory, name);
    LFS_TRY(lfs_read_fd(fd, name, LFS_DELETION_BYTES_MAX, &bytes, NULL, err));
    return lfs_deletion_decode(d, bytes.data, bytes.length, fragment->physical_rows, name, out, err);
}
