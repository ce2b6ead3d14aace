/* SPDX-License-Identifier: Apache-2.0 */
/* Indexes: directories of files, found wherever they lie, and made the target's own. */
#include "commit/place_impl.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <uuid/uuid.h>

#include "commit/expect.h"
#include "store/file.h"
#include "util/cleanup.h"
#include "util/log.h"

static errint_t uuid_text(const struct lfs_placer *p, const LanceIndex *index, char *out, struct lfs_error *err) {
    if (!index->uuid || index->uuid->uuid.len != sizeof(uuid_t))
        return lfs_fail(err, LFS_E_CORRUPT, "an index of %s has no uuid", p->source_name);
    uuid_unparse_lower(index->uuid->uuid.data, out);
    return 0;
}

/* Lance's own entries say what they have to say in the manifest, mostly, and have no files. */
static bool is_system(const LanceIndex *index) { return index->name && strncmp(index->name, "__lance_", 8) == 0; }

/* Its directory in the base that it names. The descriptor or a negative errno. */
static int open_index_at(struct lfs_placer *p, const struct lfs_version *v, int64_t base, const char *uuid,
                         struct lfs_location *out) {
    struct lfs_error why;
    errint_t found = lfs_locate(v, LFS_FILE_INDEX, base, uuid, p->arena, out, &why);
    return found < 0 ? found : lfs_location_open_dir(p->dataset, out, &why);
}

/* By its base id, else beside it in any base: stock Lance names the wrong one for an index that a branch of a branch
 * inherited (lance-format section 13, S1 and S2). */
static int open_index(struct lfs_placer *p, const struct lfs_version *v, const LanceIndex *index, const char *uuid,
                      struct lfs_location *out, struct lfs_error *err) {
    const LanceManifest *m = v->manifest.message;
    int fd = open_index_at(p, v, index->has_base_id ? (int64_t)index->base_id : LFS_NO_BASE, uuid, out);
    if (fd < 0)
        fd = open_index_at(p, v, LFS_NO_BASE, uuid, out);
    for (size_t i = 0; fd < 0 && i < m->n_base_paths; i++)
        fd = open_index_at(p, v, m->base_paths[i]->id, uuid, out);
    return fd >= 0 ? fd
                   : lfs_fail(err, LFS_E_CORRUPT, "the files of index %s (%s) of %s cannot be found",
                              index->name ? index->name : "", uuid, *v->dir ? v->dir : "main");
}

/* The files in `fd` (taken over), which lie at `from`. */
static errint_t bring_index(struct lfs_placer *p, int fd, const struct lfs_location *from, const char *uuid,
                            struct lfs_error *err) {
    DIR *list = fdopendir(fd);
    char *to = lfs_sprintf(p->arena, "%s%s_indices/%s", p->target->dir, *p->target->dir ? "/" : "", uuid);
    if (!list || !to) {
        if (list)
            closedir(list);
        else
            close(fd);
        return lfs_fail_nomem(err);
    }
    errint_t result = lfs_placer_make_directory(p, to, err);
    for (struct dirent *e; result == 0 && (e = readdir(list));) {
        if (e->d_name[0] == '.')
            continue;
        uint64_t begin = lfs_expect_begin(p);
        struct lfs_location file = {from->inside, lfs_join(p->arena, from->directory, from->name),
                                    lfs_strdup(p->arena, e->d_name)};
        result = file.directory && file.name
                     ? lfs_placer_bring(p, &file, 0, to, file.name, p->mode == LFS_PLACE_COPY, true, err)
                     : lfs_fail_nomem(err);
        if (p->mode != LFS_PLACE_COPY) /* those were counted before */
            lfs_expect_more(p);
        lfs_expect_end(p, begin, p->mode == LFS_PLACE_COPY ? lfs_expect_begin(p) - begin : 0);
    }
    closedir(list);
    return result == 0 && p->sync ? lfs_sync_dir(lfs_placer_root_fd(p), to, err) : result;
}

/* Its files, which lie at `from` (open as `fd`, taken over), become the target's own; those of an imagined version stay. */
static errint_t settle_index(struct lfs_placer *p, int fd, const struct lfs_location *from, const char *uuid,
                             LanceIndex *index, struct lfs_error *err) {
    index->has_base_id = false;
    index->base_id = 0;
    if (!p->imagined)
        return bring_index(p, fd, from, uuid, err);
    close(fd);
    if (lfs_placer_in_target(p, from, LFS_FILE_INDEX))
        return 0;
    index->has_base_id = true;
    return lfs_placer_imagined_base(p, LFS_FILE_INDEX, from, &index->base_id, err);
}

errint_t lfs_place_index(struct lfs_placer *p, LanceIndex *index, struct lfs_error *err) {
    char uuid[UUID_STR_LEN];
    struct lfs_location from;
    LFS_TRY(uuid_text(p, index, uuid, err));
    int fd = open_index(p, p->source, index, uuid, &from, err);
    if (fd < 0 && !is_system(index))
        return fd;
    if (fd >= 0)
        return settle_index(p, fd, &from, uuid, index, err);
    index->has_base_id = false;
    index->base_id = 0;
    return 0;
}

void lfs_placer_expect_index(struct lfs_placer *p, const LanceIndex *index) {
    char uuid[UUID_STR_LEN];
    struct lfs_location from;
    struct stat st;
    int fd = uuid_text(p, index, uuid, NULL) < 0 ? -1 : open_index(p, p->source, index, uuid, &from, NULL);
    DIR *list = fd >= 0 ? fdopendir(fd) : NULL;
    if (!list && fd >= 0)
        close(fd);
    for (struct dirent *e; list && (e = readdir(list));)
        if (e->d_name[0] != '.' && fstatat(fd, e->d_name, &st, 0) == 0)
            lfs_progress_expect(p->progress, 1, (uint64_t)st.st_size);
    if (list)
        closedir(list);
}

errint_t lfs_place_own_index(struct lfs_placer *p, LanceIndex **index, struct lfs_error *err) {
    char uuid[UUID_STR_LEN];
    struct lfs_location from;
    struct lfs_error why;
    if (!(*index)->has_base_id || is_system(*index))
        return 0;
    LFS_TRY(uuid_text(p, *index, uuid, err));
    int fd = open_index_at(p, p->target, (*index)->base_id, uuid, &from);
    if (fd >= 0)
        close(fd);
    if (fd != -ENOENT) /* there, or out of reach and not ours to judge */
        return 0;
    fd = open_index(p, p->target, *index, uuid, &from, &why);
    if (fd < 0) {
        lfs_log(LFS_LOG_WARNING, "%s: the index is dropped", why.message);
        *index = NULL;
        return 0;
    }
    LanceIndex *copy = lfs_memdup(p->arena, *index, sizeof *copy);
    if (!copy) {
        close(fd);
        return lfs_fail_nomem(err);
    }
    LFS_TRY(settle_index(p, fd, &from, uuid, copy, err));
    *index = copy;
    return 0;
}
