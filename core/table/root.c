/* SPDX-License-Identifier: Apache-2.0 */
#include "table/root.h"

#include <string.h>
#include <sys/stat.h>

#include "table/dataset_impl.h"

/* Does the string, as stock Lance reads it, lead to the root of this data set today? */
static bool leads_here(struct lfs_dataset *ds, const char *text, struct lfs_arena *arena) {
    struct stat here, there;
    const char *path = text;
    if (strncmp(text, "file://", 7) == 0)
        path = lfs_percent_decode(arena, text + 7);
    return path && *path == '/' && stat(path, &there) == 0 && fstat(ds->root_fd, &here) == 0 &&
           here.st_dev == there.st_dev && here.st_ino == there.st_ino;
}

/* The leading part of a base path that is the root: all of it, or what stands before a branch or a line storage. */
static const char *root_part(struct lfs_dataset *ds, const char *text, struct lfs_arena *arena) {
    static const char *const parts[] = {"/tree/", "/_lancefs/lines/"};
    if (leads_here(ds, text, arena))
        return lfs_strdup(arena, text);
    for (size_t i = 0; i < 2; i++)
        for (const char *at = strstr(text, parts[i]); at; at = strstr(at + 1, parts[i])) {
            char *prefix = lfs_strndup(arena, text, (size_t)(at - text));
            if (prefix && leads_here(ds, prefix, arena))
                return prefix;
        }
    return NULL;
}

const char *lfs_root_string(struct lfs_dataset *ds, const struct lfs_version *const *versions, size_t n_versions,
                            struct lfs_arena *arena) {
    for (size_t i = 0; i < n_versions; i++) {
        const LanceManifest *m = versions[i]->manifest.message;
        for (size_t k = 0; k < m->n_base_paths; k++) {
            const char *root = m->base_paths[k]->path ? root_part(ds, m->base_paths[k]->path, arena) : NULL;
            if (root)
                return root;
        }
    }
    return ds->path;
}
