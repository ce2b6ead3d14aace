/* SPDX-License-Identifier: Apache-2.0 */
/* What _refs holds: the walk over a directory of ref files, and the tags (lance-format section 2.2). */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "store/file.h"
#include "table/dataset_impl.h"
#include "util/cleanup.h"
#include "util/limits.h"

#define TAGS_DIR "_refs/tags"
#define SUFFIX ".json"

enum { SUFFIX_LENGTH = sizeof SUFFIX - 1 };

static bool fill_entry(struct lfs_arena *arena, const char *directory, const char *file, struct lfs_ref_entry *out) {
    size_t length = strlen(file) - SUFFIX_LENGTH;
    char *encoded = lfs_strndup(arena, file, length);
    out->path = lfs_sprintf(arena, "%s/%s", directory, file);
    out->name = encoded && length ? lfs_percent_decode(arena, encoded) : NULL;
    return out->path && encoded;
}

static errint_t read_directory(DIR *dir, const char *directory, struct lfs_arena *arena, struct lfs_ref_entry **out,
                               size_t *n_out, struct lfs_error *err) {
    size_t capacity = 0;
    for (struct dirent *e; (e = readdir(dir));) {
        size_t length = strlen(e->d_name);
        if (length < SUFFIX_LENGTH || strcmp(e->d_name + length - SUFFIX_LENGTH, SUFFIX))
            continue;
        if (*n_out == capacity) {
            capacity = capacity * 2 + 16;
            struct lfs_ref_entry *grown = LFS_NEW_ARRAY(arena, struct lfs_ref_entry, capacity);
            if (!grown)
                return lfs_fail_nomem(err);
            if (*n_out)
                memcpy(grown, *out, *n_out * sizeof *grown);
            *out = grown;
        }
        if (!fill_entry(arena, directory, e->d_name, &(*out)[(*n_out)++]))
            return lfs_fail_nomem(err);
    }
    return 0;
}

errint_t lfs_ref_entries(struct lfs_dataset *ds, const char *directory, struct lfs_arena *arena,
                         struct lfs_ref_entry **out, size_t *n_out, struct lfs_error *err) {
    *out = NULL;
    *n_out = 0;
    int fd = lfs_open_beneath(ds->root_fd, directory, O_RDONLY | O_DIRECTORY, 0);
    if (fd == -ENOENT)
        return 0;
    if (fd < 0)
        return lfs_fail_errno(err, -fd, "cannot list %s", directory);
    DIR *dir = fdopendir(fd);
    if (!dir) {
        close(fd);
        return lfs_fail_nomem(err);
    }
    errint_t result = read_directory(dir, directory, arena, out, n_out, err);
    closedir(dir);
    return result;
}

/* --- tags --- */

static errint_t read_tag(struct lfs_dataset *ds, struct lfs_arena *arena, const char *name, const char *path,
                         struct lfs_tag *out, struct lfs_error *err) {
    LFS_AUTO_BUF bytes = {0};
    struct stat st;
    *out = (struct lfs_tag){.name = name};
    errint_t result = lfs_read_file(ds->root_fd, path, LFS_REF_BYTES_MAX, &bytes, &st, err);
    if (result == -ENOENT)
        return lfs_fail(err, LFS_E_NOT_FOUND, "there is no tag %s", name);
    LFS_TRY(result);
    LFS_TRY(lfs_tag_ref_decode(bytes.data, bytes.length, arena, path, &out->ref, err));
    out->branch = out->ref.branch ? out->ref.branch : "main";
    out->version = out->ref.version;
    out->ref_mtime = st.st_mtim;
    return 0;
}

errint_t lfs_dataset_tag(struct lfs_dataset *ds, struct lfs_arena *arena, const char *name, struct lfs_tag *out,
                         struct lfs_error *err) {
    struct lfs_error why;
    if (lfs_tag_name_check(name, &why) < 0)
        return lfs_fail(err, LFS_E_NOT_FOUND, "there is no tag %.200s", name);
    char *own = lfs_strdup(arena, name), *encoded = own ? lfs_percent_encode(arena, own) : NULL;
    char *path = encoded ? lfs_sprintf(arena, TAGS_DIR "/%s" SUFFIX, encoded) : NULL;
    return path ? read_tag(ds, arena, own, path, out, err) : lfs_fail_nomem(err);
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct lfs_tag *)a)->name, ((const struct lfs_tag *)b)->name);
}

static errint_t read_tag_entry(struct lfs_dataset *ds, struct lfs_arena *arena, const struct lfs_ref_entry *entry,
                               struct lfs_tag *out, struct lfs_error *err) {
    if (!entry->name)
        return lfs_fail(err, LFS_E_CORRUPT, "%s does not name a tag", entry->path);
    LFS_TRY(lfs_tag_name_check(entry->name, err));
    return read_tag(ds, arena, entry->name, entry->path, out, err);
}

errint_t lfs_dataset_tags(struct lfs_dataset *ds, struct lfs_arena *arena, struct lfs_tag **out, size_t *n_out,
                          size_t *n_bad, struct lfs_error *err) {
    struct lfs_ref_entry *entries;
    size_t n, count = 0, bad = 0;
    LFS_TRY(lfs_ref_entries(ds, TAGS_DIR, arena, &entries, &n, err));
    struct lfs_tag *list = LFS_NEW_ARRAY(arena, struct lfs_tag, n + 1);
    if (!list)
        return lfs_fail_nomem(err);
    for (size_t i = 0; i < n; i++) {
        struct lfs_error why;
        errint_t result = read_tag_entry(ds, arena, &entries[i], &list[count], &why);
        if (result == 0) {
            count++;
        } else if (result != -ENOENT) { /* gone between listing and reading: no tag any more */
            bad++;
            lfs_dataset_log_once(ds, why.message, why.message);
        }
    }
    qsort(list, count, sizeof *list, by_name);
    if (n_bad)
        *n_bad = bad;
    *out = list;
    *n_out = count;
    return 0;
}
