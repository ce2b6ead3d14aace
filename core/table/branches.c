/* SPDX-License-Identifier: Apache-2.0 */
/* Branches: the ref files in _refs/branches (lance-format section 2.1). */
#include <stdlib.h>
#include <string.h>

#include "format/ref.h"
#include "store/file.h"
#include "table/dataset.h"
#include "table/dataset_impl.h"
#include "util/cleanup.h"
#include "util/limits.h"

#define REFS_DIR "_refs/branches"

static errint_t fill_main(struct lfs_dataset *ds, struct lfs_branch *out, struct lfs_error *err) {
    struct stat st;
    if (fstat(ds->root_fd, &st) < 0)
        return lfs_fail_errno(err, errno, "cannot stat %s", ds->path);
    *out = (struct lfs_branch){.name = "main", .dir = "", .uuid = "main", .ref_mtime = st.st_mtim};
    return 0;
}

static errint_t read_ref(struct lfs_dataset *ds, struct lfs_arena *arena, const char *name, const char *path,
                         struct lfs_branch *out, struct lfs_error *err) {
    LFS_AUTO_BUF bytes = {0};
    struct stat st;
    struct lfs_branch_ref ref;
    errint_t result = lfs_read_file(ds->root_fd, path, LFS_REF_BYTES_MAX, &bytes, &st, err);
    if (result == -ENOENT)
        return lfs_fail(err, LFS_E_NOT_FOUND, "there is no branch %s", name);
    LFS_TRY(result);
    LFS_TRY(lfs_branch_ref_decode(bytes.data, bytes.length, arena, path, &ref, err));
    if (ref.n_forks > LFS_BRANCH_DEPTH_MAX)
        return lfs_fail(err, LFS_E_TOO_BIG, "branch %s has more than %u ancestors", name, LFS_BRANCH_DEPTH_MAX);
    *out = (struct lfs_branch){
        .name = name,
        .dir = lfs_sprintf(arena, "tree/%s", name),
        .uuid = ref.n_forks ? ref.forks[ref.n_forks - 1].uuid : "",
        .parent_uuid = ref.n_forks > 1 ? ref.forks[ref.n_forks - 2].uuid : "main",
        .parent_name = ref.parent_branch ? ref.parent_branch : "main",
        .parent_version = ref.parent_version,
        .parent_manifest_size = ref.manifest_size,
        .forks = ref.forks,
        .n_forks = ref.n_forks,
        .ref_mtime = st.st_mtim,
    };
    return out->dir ? 0 : lfs_fail_nomem(err);
}

errint_t lfs_dataset_branch(struct lfs_dataset *ds, struct lfs_arena *arena, const char *name, struct lfs_branch *out,
                            struct lfs_error *err) {
    if (strcmp(name, "main") == 0)
        return fill_main(ds, out, err);
    struct lfs_error why;
    if (lfs_branch_name_check(name, &why) < 0)
        return lfs_fail(err, LFS_E_NOT_FOUND, "there is no branch %.200s", name);
    char *own = lfs_strdup(arena, name), *encoded = own ? lfs_percent_encode(arena, own) : NULL;
    char *path = encoded ? lfs_sprintf(arena, REFS_DIR "/%s.json", encoded) : NULL;
    return path ? read_ref(ds, arena, own, path, out, err) : lfs_fail_nomem(err);
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct lfs_branch *)a)->name, ((const struct lfs_branch *)b)->name);
}

static errint_t read_entry(struct lfs_dataset *ds, struct lfs_arena *arena, const struct lfs_ref_entry *entry,
                           struct lfs_branch *out, struct lfs_error *err) {
    if (!entry->name)
        return lfs_fail(err, LFS_E_CORRUPT, "%s does not name a branch", entry->path);
    LFS_TRY(lfs_branch_name_check(entry->name, err));
    return read_ref(ds, arena, entry->name, entry->path, out, err);
}

errint_t lfs_dataset_branches(struct lfs_dataset *ds, struct lfs_arena *arena, struct lfs_branch **out, size_t *n_out,
                              size_t *n_bad, struct lfs_error *err) {
    size_t bad = 0, n, count = 1;
    struct lfs_ref_entry *entries;
    LFS_TRY(lfs_ref_entries(ds, REFS_DIR, arena, &entries, &n, err));
    struct lfs_branch *list = LFS_NEW_ARRAY(arena, struct lfs_branch, n + 1);
    if (!list)
        return lfs_fail_nomem(err);
    LFS_TRY(fill_main(ds, list, err));
    for (size_t i = 0; i < n; i++) {
        struct lfs_error why;
        errint_t result = read_entry(ds, arena, &entries[i], &list[count], &why);
        if (result == 0) {
            count++;
        } else if (result != -ENOENT) { /* gone between listing and reading: no branch any more */
            bad++;
            lfs_dataset_log_once(ds, why.message, why.message);
        }
    }
    qsort(list + 1, count - 1, sizeof *list, by_name);
    if (n_bad)
        *n_bad = bad;
    *out = list;
    *n_out = count;
    return 0;
}
