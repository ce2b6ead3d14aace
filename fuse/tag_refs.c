/* SPDX-License-Identifier: Apache-2.0 */
#include "fuse/tag_refs.h"

#include <string.h>

#include "format/names.h"
#include "format/ref.h"
#include "store/file.h"
#include "util/cleanup.h"
#include "util/limits.h"
#include "util/log.h"
#include "verbs/names.h"

#define END ".json"

bool lfs_is_tag_refs(const struct lfs_node *directory) {
    return directory->kind == LFS_NODE_TEXTS && directory->branch && !directory->branch->version &&
           strcmp(directory->text, LFS_TAG_REFS) == 0;
}

bool lfs_is_tag_ref_name(const char *name) {
    size_t length = strlen(name);
    return length > strlen(END) && strcmp(name + length - strlen(END), END) == 0 && name[0] != '.' &&
           !strchr(name, '#');
}

/* The tag whose file has that name; NULL for what is no such name, or when memory is short. */
static char *tag_of(struct lfs_arena *arena, const char *name) {
    char *encoded = lfs_is_tag_ref_name(name) ? lfs_strndup(arena, name, strlen(name) - strlen(END)) : NULL;
    return encoded ? lfs_percent_decode(arena, encoded) : NULL;
}

/* The tag by its file's name, on this branch. -EEXIST when it names another one. */
static errint_t find(struct lfs_mount *m, const struct lfs_node *branch, const char *name, struct lfs_arena *arena,
                     struct lfs_tag *out) {
    char *tag = tag_of(arena, name);
    if (!tag)
        return -ENOENT;
    LFS_TRY(lfs_dataset_tag(m->dataset, arena, tag, out, NULL));
    return strcmp(out->branch, branch->text) == 0 ? 0 : -EEXIST;
}

static const char *name_in(const char *what) {
    size_t length = strlen(LFS_TAG_REFS);
    return strncmp(what, LFS_TAG_REFS, length) == 0 && what[length] == '/' ? what + length + 1 : NULL;
}

enum lfs_text_is lfs_tag_ref_is(struct lfs_mount *m, const struct lfs_node *place, const char *what) {
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    struct lfs_tag tag;
    const char *name = name_in(what);
    if (place->kind != LFS_NODE_BRANCH || place->version || !arena)
        return LFS_TEXT_NONE;
    if (strcmp(what, "_refs") == 0 || strcmp(what, LFS_TAG_REFS) == 0)
        return LFS_TEXT_DIRECTORY;
    return name && find(m, place, name, arena, &tag) == 0 ? LFS_TEXT_FILE : LFS_TEXT_NONE;
}

/* The manifest's size is the one that the view shows. */
errint_t lfs_tag_ref_render(struct lfs_mount *m, const struct lfs_node *place, const char *what, struct lfs_buf *out,
                            struct timespec *time) {
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    struct lfs_tag tag;
    struct lfs_version *version;
    struct lfs_rendered_info info;
    const char *name = name_in(what);
    if (!arena)
        return -ENOMEM;
    LFS_TRY(name ? find(m, place, name, arena, &tag) : -ENOENT);
    tag.ref.branch = NULL;
    if (lfs_dataset_version(m->dataset, place->dir, tag.version, &version, NULL) == 0) {
        if (lfs_views_stat(m->views, place->dir, LFS_RENDER_MANIFEST, version->file_name, &info, NULL) == 0)
            tag.ref.manifest_size = (uint64_t)info.size;
        lfs_version_release(version);
    }
    *time = tag.ref_mtime;
    return lfs_tag_ref_encode(&tag.ref, out, NULL);
}

errint_t lfs_tag_refs_list(struct lfs_mount *m, const struct lfs_node *directory, struct lfs_arena *arena, char ***out,
                           size_t *n_out) {
    struct lfs_tag *tags;
    size_t n;
    LFS_TRY(lfs_dataset_tags(m->dataset, arena, &tags, &n, NULL, NULL));
    *out = LFS_NEW_ARRAY(arena, char *, n + 1);
    *n_out = 0;
    for (size_t i = 0; *out && i < n; i++) {
        if (strcmp(tags[i].branch, directory->branch->text) != 0)
            continue;
        char *encoded = lfs_percent_encode(arena, tags[i].name);
        char *name = encoded ? lfs_sprintf(arena, "%s" END, encoded) : NULL;
        if (!name)
            return -ENOMEM;
        (*out)[(*n_out)++] = name;
    }
    return *out ? 0 : -ENOMEM;
}

static errint_t log_failure(errint_t result, const struct lfs_error *err) {
    if (result < 0)
        lfs_log(LFS_LOG_WARNING, "a tag through the mount was refused: %s", err->message);
    return result;
}

errint_t lfs_tag_refs_publish(struct lfs_mount *m, const struct lfs_node *directory, int fd, const char *name,
                              bool replace) {
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    LFS_AUTO_BUF json = {0};
    const struct lfs_names names = {m->dataset, &m->settings, NULL};
    struct lfs_tag_ref ref;
    struct lfs_tag old;
    struct lfs_error err;
    char *tag = arena ? tag_of(arena, name) : NULL;
    if (!tag)
        return arena ? -EINVAL : -ENOMEM;
    errint_t result = find(m, directory->branch, name, arena, &old);
    if (result == -EEXIST || (result == 0 && !replace))
        return -EEXIST;
    if (result < 0 && result != -ENOENT)
        return result;
    result = lfs_read_fd(fd, name, LFS_REF_BYTES_MAX, &json, NULL, &err);
    if (result == 0)
        result = lfs_tag_ref_decode(json.data, json.length, arena, name, &ref, &err);
    if (result == 0 && ref.branch)
        result = lfs_fail(&err, LFS_E_UNSUPPORTED, "%s names the branch %s, and a view has none", name, ref.branch);
    bool move = replace && find(m, directory->branch, name, arena, &old) == 0;
    if (result == 0)
        result = lfs_names_tag(&names, tag, directory->branch->text, ref.version, move, NULL, NULL, &err);
    return log_failure(result, &err);
}

errint_t lfs_tag_refs_remove(struct lfs_mount *m, const struct lfs_node *directory, const char *name) {
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    const struct lfs_names names = {m->dataset, &m->settings, NULL};
    struct lfs_tag tag;
    struct lfs_error err;
    if (!arena)
        return -ENOMEM;
    errint_t result = find(m, directory->branch, name, arena, &tag);
    return result < 0 ? (result == -EEXIST ? -ENOENT : result)
                      : log_failure(lfs_names_untag(&names, tag.name, &err), &err);
}
