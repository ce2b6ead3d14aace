/* SPDX-License-Identifier: Apache-2.0 */
/* What line storage keeps for the merges to come (merge-semantics section 10): the source's version, its ref, and deletion
 * files of both. */
#include "commit/place_impl.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "format/deletion.h"
#include "store/file.h"
#include "util/cleanup.h"
#include "util/limits.h"

static errint_t keep_ref(struct lfs_placer *p, const char *storage, struct lfs_error *err) {
    LFS_AUTO_BUF json = {0};
    struct stat st;
    char *encoded = lfs_percent_encode(p->arena, p->source_name);
    char *path = encoded ? lfs_sprintf(p->arena, "_refs/branches/%s.json", encoded) : NULL;
    int directory = lfs_placer_directory(p, storage);
    if (!path)
        return lfs_fail_nomem(err);
    if (strcmp(p->source_line, "main") == 0)
        return 0;
    if (directory >= 0 && fstatat(directory, LFS_KEPT_REF, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return 0; /* a line's forks never change */
    LFS_TRY(lfs_read_file(lfs_placer_root_fd(p), path, LFS_REF_BYTES_MAX, &json, NULL, err));
    errint_t result = lfs_write_new(lfs_placer_root_fd(p), storage, LFS_KEPT_REF, &json, p->sync, err);
    return result == -EEXIST ? 0 : result; /* another merge was faster */
}

/* The names in a directory of kept deletion files: what is there already costs no call of its own. */
static errint_t list_kept(struct lfs_placer *p, const char *directory, struct lfs_map *out, struct lfs_error *err) {
    lfs_map_init(out, p->arena);
    int fd = lfs_open_beneath(lfs_placer_root_fd(p), directory, O_RDONLY | O_DIRECTORY, 0);
    DIR *list = fd >= 0 ? fdopendir(fd) : NULL;
    if (!list && fd >= 0)
        close(fd);
    if (!list)
        return fd == -ENOENT ? 0 : lfs_fail_errno(err, fd >= 0 ? ENOMEM : -fd, "cannot list %s", directory);
    bool added = true;
    for (struct dirent *e; added && (e = readdir(list));) {
        char *name = lfs_strdup(p->arena, e->d_name);
        added = name && lfs_map_put(out, name, name);
    }
    closedir(list);
    return added ? 0 : lfs_fail_nomem(err);
}

static errint_t keep_deletions(struct lfs_placer *p, const LanceFragment *f, const char *directory,
                               const struct lfs_map *kept, struct lfs_error *err) {
    struct lfs_location from;
    char name[80];
    if (!f->deletion_file)
        return 0;
    lfs_deletion_file_name(f->id, f->deletion_file, name, sizeof name);
    if (lfs_map_get(kept, name)) /* names hold a random number: it is this one */
        return 0;
    LFS_TRY(lfs_locate(p->source, LFS_FILE_DELETION,
                       f->deletion_file->has_base_id ? (int64_t)f->deletion_file->base_id : LFS_NO_BASE, name, p->arena,
                       &from, err));
    if (from.inside && strcmp(from.directory, directory) == 0)
        return 0;
    return lfs_placer_bring(p, &from, 0, directory, name, false, false, err);
}

errint_t lfs_place_kept_base(struct lfs_placer *p, struct lfs_error *err) {
    const LanceManifest *m = p->source->manifest.message;
    struct lfs_map kept;
    char *storage;
    if (strcmp(p->source->dir, p->target->dir) == 0)
        return 0; /* a version of the target itself */
    LFS_TRY(lfs_placer_make_storage(p, &storage, err));
    char *deletions = lfs_join(p->arena, storage, "_deletions"), *versions = lfs_join(p->arena, storage, "_versions");
    struct lfs_location manifest = {true, lfs_join(p->arena, p->source->dir, "_versions"), p->source->file_name};
    if (!deletions || !versions || !manifest.directory)
        return lfs_fail_nomem(err);
    LFS_TRY(list_kept(p, deletions, &kept, err));
    for (size_t i = 0; i < m->n_fragments; i++) {
        p->has_deletions |= m->fragments[i]->deletion_file != NULL;
        LFS_TRY(keep_deletions(p, m->fragments[i], deletions, &kept, err));
    }
    LFS_TRY(keep_ref(p, storage, err));
    return lfs_placer_bring(p, &manifest, 0, versions, p->source->file_name, false, false, err);
}

/* One of the target's own deletion files gets a name in the target line's storage. */
static errint_t keep_own(struct lfs_placer *p, const char *own, const char *to, const char *name,
                         struct lfs_error *err) {
    struct lfs_location from = {true, own, lfs_strdup(p->arena, name)};
    int source = lfs_placer_directory(p, own), target = lfs_placer_directory(p, to);
    if (!from.name)
        return lfs_fail_nomem(err);
    int linked = source < 0 ? source : target < 0 ? target : lfs_link_at(source, name, target, name);
    if (linked >= 0 || linked == -ENOENT || linked == -EEXIST) /* one that is gone harms readers, not this merge */
        return 0;
    return lfs_placer_bring(p, &from, 0, to, from.name, true, false, err);
}

errint_t lfs_place_kept_deletions(struct lfs_placer *p, const char *target_line, const LanceManifest *next,
                                  struct lfs_error *err) {
    char *storage = lfs_line_storage_dir(p->arena, target_line);
    char *to = storage ? lfs_join(p->arena, storage, "_deletions") : NULL,
         *own = lfs_join(p->arena, p->target->dir, "_deletions");
    struct lfs_map kept;
    bool made = false;
    if (!to || !own)
        return lfs_fail_nomem(err);
    LFS_TRY(list_kept(p, to, &kept, err));
    for (size_t i = 0; i < next->n_fragments; i++) {
        const LanceFragment *f = next->fragments[i];
        char name[80];
        if (!f->deletion_file || f->deletion_file->has_base_id)
            continue;
        lfs_deletion_file_name(f->id, f->deletion_file, name, sizeof name);
        if (lfs_map_get(&kept, name))
            continue;
        if (!made)
            LFS_TRY(lfs_placer_make_directory(p, to, err));
        made = true;
        LFS_TRY(keep_own(p, own, to, name, err));
    }
    return made && p->sync ? lfs_sync_dir(lfs_placer_root_fd(p), to, err) : 0;
}
