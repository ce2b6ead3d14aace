/* SPDX-License-Identifier: Apache-2.0 */
#include "table/renamed.h"

#include <string.h>
#include <sys/stat.h>

#include "table/dataset_impl.h"
#include "table/location.h"
#include "util/cleanup.h"

#define BRANCHES "/tree/"

char *lfs_renamed_branch(const struct lfs_renaming *r, const char *name, struct lfs_arena *arena, bool *failed) {
    size_t length = strlen(r->from);
    if (strncmp(name, r->from, length) || (name[length] && name[length] != '/'))
        return NULL;
    char *out = lfs_sprintf(arena, "%s%s", r->to, name + length);
    *failed |= !out;
    return out;
}

static bool is_url(const char *text) {
    return strncmp(text, "file:", 5) == 0 || strncmp(text, "file-object-store:", 18) == 0;
}

/* Is what stands before the branch another data set that is there? A root that is gone is this one, moved. */
static bool is_elsewhere(struct lfs_dataset *ds, const char *root, bool url, struct lfs_arena *arena) {
    struct stat there, here;
    const char *path = url ? strchr(root, ':') + 1 : root;
    path += url && strncmp(path, "//", 2) == 0 ? 2 : 0;
    char *plain = url ? lfs_percent_decode(arena, path) : lfs_strdup(arena, path);
    return plain && *plain == '/' && stat(plain, &there) == 0 && fstat(ds->root_fd, &here) == 0 &&
           (there.st_dev != here.st_dev || there.st_ino != here.st_ino);
}

/* Does a place ("tree/x", "tree/x/data") lie in a renamed branch, by its old name or its new one? */
static bool lies_in(const char *place, const char *branch) {
    size_t length = strlen(branch);
    return strncmp(place, "tree/", 5) == 0 && strncmp(place + 5, branch, length) == 0 &&
           (!place[5 + length] || place[5 + length] == '/');
}

/* A branch's name as it stands in a URL: each part by itself, the slashes kept. */
static char *encode_name(struct lfs_arena *arena, const char *name) {
    char *out = lfs_strdup(arena, "");
    while (out) {
        size_t length = strcspn(name, "/");
        char *part = lfs_strndup(arena, name, length), *encoded = part ? lfs_percent_encode(arena, part) : NULL;
        out = encoded ? lfs_sprintf(arena, "%s%s%s", out, encoded, name[length] ? "/" : "") : NULL;
        if (!name[length])
            break;
        name += length + 1;
    }
    return out;
}

errint_t lfs_renamed_base(struct lfs_dataset *ds, const struct lfs_renaming *r, const char *text,
                          struct lfs_arena *arena, char **out, struct lfs_error *err) {
    const char **places;
    size_t n;
    bool old = false, new = false, failed = false, url = is_url(text);
    *out = NULL;
    LFS_TRY(lfs_base_places(ds, text, arena, &places, &n, err));
    for (size_t i = 0; i < n; i++) {
        old |= lies_in(places[i], r->from);
        new |= lies_in(places[i], r->to);
    }
    if (!old && !new)
        return 0;
    for (const char *at = strstr(text, BRANCHES); at; at = strstr(at + 1, BRANCHES)) {
        const char *tail = at + strlen(BRANCHES);
        char *root = lfs_strndup(arena, text, (size_t)(at - text));
        char *name = url ? lfs_percent_decode(arena, tail) : lfs_strdup(arena, tail);
        char *renamed = name ? lfs_renamed_branch(r, name, arena, &failed) : NULL;
        if (!root || failed)
            return lfs_fail_nomem(err);
        if (!renamed)
            continue;
        if (is_elsewhere(ds, root, url, arena))
            return 0;
        if (url)
            renamed = encode_name(arena, renamed);
        *out = renamed ? lfs_sprintf(arena, "%s" BRANCHES "%s", root, renamed) : NULL;
        return *out ? 0 : lfs_fail_nomem(err);
    }
    if (new) /* it tells the new name already */
        return 0;
    return lfs_fail(
        err, LFS_E_UNSUPPORTED,
        "the base path %s leads into %s, but in a way that cannot be rewritten: rename it with another tool", text,
        r->from);
}
