/* SPDX-License-Identifier: Apache-2.0 */
#include "commit/rebrand.h"

#include <string.h>

#include "store/file.h"
#include "table/homes.h"
#include "util/cleanup.h"
#include "util/limits.h"

/* A manifest that names a branch holds its name's last part somewhere, as it is or (in a URL) escaped. */
static bool may_name(const struct lfs_buf *bytes, const char *branch) {
    const char *slash = strrchr(branch, '/'), *part = slash ? slash + 1 : branch;
    for (const char *p = part; *p; p++)
        if ((unsigned char)*p >= 0x80)
            return true;
    return memmem(bytes->data, bytes->length, part, strlen(part)) != NULL;
}

/* `m` is changed in place. */
static errint_t rename_in(struct lfs_dataset *ds, const struct lfs_renaming *r, LanceManifest *m,
                          struct lfs_arena *arena, bool *changed, struct lfs_error *err) {
    bool failed = false;
    char *branch = m->branch ? lfs_renamed_branch(r, m->branch, arena, &failed) : NULL;
    if (branch)
        m->branch = branch;
    *changed = branch != NULL;
    for (size_t i = 0; i < m->n_base_paths; i++) {
        LanceBasePath *base = m->base_paths[i];
        char *path = NULL, *name = base->name ? lfs_renamed_branch(r, base->name, arena, &failed) : NULL;
        if (base->path)
            LFS_TRY(lfs_renamed_base(ds, r, base->path, arena, &path, err));
        if (path)
            base->path = path;
        if (path && name)
            base->name = name;
        *changed |= path != NULL;
    }
    return failed ? lfs_fail_nomem(err) : 0;
}

struct rebrand {
    struct lfs_dataset *ds;
    const struct lfs_renaming *renaming;
    const char *versions; /* the directory */
    bool only_look, sync;
};

static errint_t rebrand_file(const struct rebrand *b, const char *name, uint64_t *count, struct lfs_error *err) {
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    LFS_AUTO_BUF bytes = {0}, next = {0};
    struct lfs_manifest manifest;
    int root = lfs_dataset_root_fd(b->ds);
    bool changed;
    char *path = arena ? lfs_join(arena, b->versions, name) : NULL;
    if (!path)
        return lfs_fail_nomem(err);
    errint_t result = lfs_read_file(root, path, LFS_MANIFEST_BYTES_MAX, &bytes, NULL, err);
    if (result == -ENOENT)
        return 0; /* cleaned up meanwhile */
    LFS_TRY(result);
    if (!may_name(&bytes, b->renaming->from))
        return 0;
    LFS_TRY(lfs_manifest_decode(bytes.data, bytes.length, arena, path, &manifest, err));
    LFS_TRY(rename_in(b->ds, b->renaming, manifest.message, arena, &changed, err));
    if (!changed)
        return 0;
    ++*count;
    if (b->only_look)
        return lfs_manifest_check_features(manifest.message, true, path, err);
    LFS_TRY(lfs_manifest_replace(bytes.data, bytes.length, manifest.message, &next, err));
    return lfs_write_replace(root, b->versions, name, &next, b->sync, err);
}

/* Detached versions (d<number>.manifest) too; half-made files are called otherwise (lance-format section 1.1). */
static bool is_manifest(const char *name) {
    size_t length = strlen(name), suffix = strlen(".manifest");
    return name[0] != '.' && length > suffix && strcmp(name + length - suffix, ".manifest") == 0;
}

errint_t lfs_rebrand(struct lfs_dataset *ds, const char *dir, const struct lfs_renaming *renaming, bool only_look,
                     bool sync, uint64_t *changed, struct lfs_error *err) {
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    struct rebrand b = {ds, renaming, NULL, only_look, sync};
    struct lfs_entry *entries;
    size_t n;
    b.versions = arena ? lfs_join(arena, dir, "_versions") : NULL;
    if (!b.versions)
        return lfs_fail_nomem(err);
    LFS_TRY(lfs_list_dir(ds, b.versions, arena, &entries, &n, err));
    for (size_t i = n; i-- > 0;)
        if (is_manifest(entries[i].name))
            LFS_TRY(rebrand_file(&b, entries[i].name, changed, err));
    return 0;
}
