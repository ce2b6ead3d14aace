/* SPDX-License-Identifier: Apache-2.0 */
#include "table/dataset.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "store/file.h"
#include "table/dataset_impl.h"
#include "table/location.h"
#include "util/cleanup.h"
#include "util/limits.h"
#include "util/log.h"

static char *absolute_path(struct lfs_arena *arena, const char *path) {
    char cwd[PATH_MAX];
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    char *trimmed = lfs_strndup(arena, path, length);
    if (!trimmed || *trimmed == '/')
        return trimmed;
    while (strncmp(trimmed, "./", 2) == 0)
        trimmed += 2;
    return getcwd(cwd, sizeof cwd) ? lfs_sprintf(arena, "%s/%s", strcmp(cwd, "/") ? cwd : "", trimmed) : NULL;
}

static char **copy_strings(struct lfs_arena *arena, const char *const *strings) {
    size_t n = 0;
    if (!strings)
        return NULL;
    while (strings[n])
        n++;
    char **copy = LFS_NEW_ARRAY(arena, char *, n + 1);
    for (size_t i = 0; copy && i < n; i++)
        copy[i] = lfs_strdup(arena, strings[i]);
    return copy;
}

/* A directory of tables is what LanceDB calls a database: the first one that is found is the example. */
static errint_t refuse_other(int fd, const char *path, struct lfs_error *err) {
    char example[NAME_MAX + 1] = "photos.lance";
    int copy = dup(fd);
    DIR *dir = copy < 0 ? NULL : fdopendir(copy);
    struct dirent *entry;
    while (dir && (entry = readdir(dir))) {
        size_t length = strlen(entry->d_name);
        if (length > 6 && strcmp(entry->d_name + length - 6, ".lance") == 0) {
            snprintf(example, sizeof example, "%s", entry->d_name);
            break;
        }
    }
    if (dir)
        closedir(dir);
    else if (copy >= 0)
        close(copy);
    return lfs_fail(err, LFS_E_USAGE,
                    "%s is not a Lance data set (it has no _versions directory): name the directory of the table, such as %s",
                    path, example);
}

static errint_t fill(struct lfs_dataset *ds, const char *path, const struct lfs_dataset_options *options,
                     struct lfs_error *err) {
    char real[PATH_MAX];
    ds->path = absolute_path(ds->arena, path);
    if (!ds->path)
        return lfs_fail_nomem(err);
    ds->root_fd = open(ds->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (ds->root_fd < 0 || !realpath(ds->path, real))
        return lfs_fail_errno(err, errno, "cannot open the data set %s", path);
    struct stat st;
    if (fstatat(ds->root_fd, "_versions", &st, 0) < 0 || !S_ISDIR(st.st_mode))
        return refuse_other(ds->root_fd, path, err);
    ds->real_path = lfs_strdup(ds->arena, real);
    if (!ds->real_path)
        return lfs_fail_nomem(err);
    ds->name = strrchr(ds->path, '/') + 1;
    ds->real_name = strrchr(ds->real_path, '/') + 1;
    if (options) {
        ds->bases_limited = options->bases_limited;
        ds->bases = copy_strings(ds->arena, options->bases);
        ds->map_old = copy_strings(ds->arena, options->map_old);
        ds->map_new = copy_strings(ds->arena, options->map_new);
    }
    TAILQ_INIT(&ds->cache.by_use);
    ds->cache.bytes_max = options && options->cache_bytes_max ? options->cache_bytes_max : (size_t)64 << 20;
    return 0;
}

errint_t lfs_dataset_open(const char *path, const struct lfs_dataset_options *options, struct lfs_dataset **out,
                          struct lfs_error *err) {
    *out = NULL;
    struct lfs_dataset *ds = calloc(1, sizeof *ds);
    if (!ds)
        return lfs_fail_nomem(err);
    ds->root_fd = -1;
    ds->arena = lfs_arena_new();
    pthread_mutex_init(&ds->lock, NULL);
    errint_t result = ds->arena ? fill(ds, path, options, err) : lfs_fail_nomem(err);
    if (result < 0) {
        lfs_dataset_close(ds);
        return result;
    }
    lfs_map_init(&ds->logged, ds->arena);
    *out = ds;
    return 0;
}

void lfs_dataset_close(struct lfs_dataset *ds) {
    if (!ds)
        return;
    lfs_version_cache_free(&ds->cache);
    lfs_reference_cache_free(ds->references);
    if (ds->root_fd >= 0)
        close(ds->root_fd);
    pthread_mutex_destroy(&ds->lock);
    lfs_arena_free(ds->arena);
    free(ds);
}

int lfs_dataset_root_fd(const struct lfs_dataset *ds) { return ds->root_fd; }
const char *lfs_dataset_path(const struct lfs_dataset *ds) { return ds->path; }

int lfs_dataset_open_beneath(struct lfs_dataset *ds, const char *path, int flags) {
    return lfs_open_beneath(ds->root_fd, path, flags, 0);
}

void lfs_dataset_log_once(struct lfs_dataset *ds, const char *key, const char *message) {
    pthread_mutex_lock(&ds->lock);
    bool first = !lfs_map_get(&ds->logged, key);
    char *copy = first ? lfs_strdup(ds->arena, key) : NULL;
    if (copy)
        lfs_map_put(&ds->logged, copy, copy);
    pthread_mutex_unlock(&ds->lock);
    if (first)
        lfs_log(LFS_LOG_WARNING, "%s", message);
}
