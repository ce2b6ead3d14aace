/* SPDX-License-Identifier: Apache-2.0 */
#include "commit/place_impl.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "commit/expect.h"
#include "format/deletion.h"
#include "store/file.h"
#include "store/flush.h"
#include "table/root.h"
#include "util/cancel.h"
#include "util/cleanup.h"
#include "util/limits.h"
#include "util/log.h"

int lfs_placer_root_fd(const struct lfs_placer *p) { return lfs_dataset_root_fd(p->dataset); }

/* Blob side files lie beside a data file in data/<stem>/; only tables with blob columns have any, and looking for them
 * costs a system call a file. */
static bool schema_has_blobs(const LanceManifest *m) {
    for (size_t i = 0; i < m->n_fields; i++) {
        const LanceField *f = m->fields[i];
        if ((f->extension_name && strstr(f->extension_name, "blob")) ||
            (f->logical_type && strstr(f->logical_type, "blob")))
            return true;
        for (size_t k = 0; k < f->n_metadata; k++)
            if (f->metadata[k]->key && strstr(f->metadata[k]->key, "blob"))
                return true;
    }
    return false;
}

errint_t lfs_placer_init(struct lfs_placer *p, const struct lfs_commit_request *request, struct lfs_arena *arena,
                         struct lfs_error *err) {
    const struct lfs_version *both[] = {request->target_tip, request->source_version};
    const LanceManifest *m = request->target_tip->manifest.message;
    *p = (struct lfs_placer){
        .dataset = request->dataset,
        .arena = arena,
        .source = request->source_version,
        .target = request->target_tip,
        .source_line = request->source->uuid,
        .source_name = request->source->name,
        .root_string = lfs_root_string(request->dataset, both, 2, arena),
        .mode = request->mode,
        .rehome = request->rehome,
        .sync = request->sync,
        .cancel = request->cancel,
        .progress = request->progress,
        .with_blobs = schema_has_blobs(request->source_version->manifest.message),
        .n_bases = m->n_base_paths,
        .capacity = m->n_base_paths + 8,
    };
    lfs_map_init(&p->directories, arena);
    p->bases = LFS_NEW_ARRAY(arena, LanceBasePath *, p->capacity);
    if (!p->bases || !p->root_string)
        return lfs_fail_nomem(err);
    if (m->n_base_paths)
        memcpy(p->bases, m->base_paths, m->n_base_paths * sizeof *p->bases);
    return 0;
}

/* --- base paths of the target --- */

/* merge-semantics section 6 */
errint_t lfs_placer_base(struct lfs_placer *p, const char *path, bool is_root, const char *name, uint32_t *id,
                         struct lfs_error *err) {
    uint32_t free_id = 0;
    for (size_t i = p->n_bases; i-- > 0;) {
        const LanceBasePath *b = p->bases[i];
        /* an entry that a later one with its id hides is none */
        bool hidden = false;
        for (size_t k = i + 1; k < p->n_bases; k++)
            hidden |= p->bases[k]->id == b->id;
        if (!hidden && b->path && strcmp(b->path, path) == 0 && (b->is_dataset_root != 0) == is_root) {
            *id = b->id;
            return 0;
        }
        if (b->id >= free_id && b->id < UINT32_MAX)
            free_id = b->id + 1;
    }
    if (p->n_bases == p->capacity) {
        LanceBasePath **grown = LFS_NEW_ARRAY(p->arena, LanceBasePath *, p->capacity * 2);
        if (!grown)
            return lfs_fail_nomem(err);
        memcpy(grown, p->bases, p->n_bases * sizeof *grown);
        p->bases = grown;
        p->capacity *= 2;
    }
    LanceBasePath *b = LFS_NEW(p->arena, LanceBasePath);
    if (!b)
        return lfs_fail_nomem(err);
    lance__table__base_path__init(b);
    b->has_id = b->has_is_dataset_root = true;
    b->id = free_id;
    b->is_dataset_root = is_root;
    b->path = lfs_strdup(p->arena, path);
    b->name = name ? lfs_strdup(p->arena, name) : NULL;
    if (!b->path || (name && !b->name))
        return lfs_fail_nomem(err);
    p->bases[p->n_bases++] = b;
    *id = free_id;
    return 0;
}

/* The base path of a line's storage. */
static errint_t storage_base(struct lfs_placer *p, const char *storage, const char *name, uint32_t *id,
                             struct lfs_error *err) {
    char *path = lfs_sprintf(p->arena, "%s/%s", p->root_string, storage);
    return path ? lfs_placer_base(p, path, true, name, id, err) : lfs_fail_nomem(err);
}

/* --- getting a file to where it is wanted --- */

/* A directory of the data set, opened once for all files that are linked out of it or into it. O_PATH; borrowed. */
int lfs_placer_directory(struct lfs_placer *p, const char *directory) {
    int *known = lfs_map_get(&p->directories, directory);
    if (known)
        return *known;
    char *key = lfs_strdup(p->arena, directory);
    int *fd = LFS_NEW(p->arena, int);
    if (!key || !fd)
        return -ENOMEM;
    *fd = lfs_open_beneath(lfs_placer_root_fd(p), directory, O_PATH | O_DIRECTORY, 0);
    if (*fd < 0)
        return *fd;
    if (lfs_map_put(&p->directories, key, fd))
        return *fd;
    close(*fd);
    return -ENOMEM;
}

errint_t lfs_placer_make_directory(struct lfs_placer *p, const char *directory, struct lfs_error *err) {
    return lfs_placer_directory(p, directory) >= 0 ? 0 : lfs_make_dirs(lfs_placer_root_fd(p), directory, p->sync, err);
}

/* Storage of the source's line, with its three directories. */
errint_t lfs_placer_make_storage(struct lfs_placer *p, char **storage, struct lfs_error *err) {
    static const char *const parts[] = {"data", "_deletions", "_versions"};
    *storage = lfs_line_storage_dir(p->arena, p->source_line);
    if (!*storage)
        return lfs_fail_nomem(err);
    for (size_t i = 0; i < 3 && !p->storage_made; i++) {
        char *directory = lfs_join(p->arena, *storage, parts[i]);
        if (!directory)
            return lfs_fail_nomem(err);
        LFS_TRY(lfs_placer_make_directory(p, directory, err));
    }
    p->storage_made = true;
    return 0;
}

/* `size` is what the manifest says (0: unknown): a file of another size is damaged and is not taken over. */
static errint_t check_size(const struct lfs_location *from, const struct stat *st, uint64_t size,
                           struct lfs_error *err) {
    if (!size || (uint64_t)st->st_size == size)
        return 0;
    return lfs_fail(err, LFS_E_CORRUPT, "%s/%s has %lld bytes, its manifest says %" PRIu64, from->directory, from->name,
                    (long long)st->st_size, size);
}

static errint_t bring_copy(struct lfs_placer *p, const struct lfs_location *from, uint64_t size, const char *directory,
                           const char *name, struct lfs_error *err) {
    struct stat st;
    LFS_AUTO_FD fd = lfs_location_open(p->dataset, from, err);
    if (fd < 0)
        return fd;
    if (fstat(fd, &st) < 0)
        return lfs_fail_errno(err, errno, "cannot stat %s/%s", from->directory, from->name);
    LFS_TRY(check_size(from, &st, size, err));
    return lfs_copy_once(fd, lfs_placer_root_fd(p), directory, name, p->sync,
                         &(struct lfs_copying){p->cancel, p->progress}, err);
}

/* Link, without opening it, a file of the data set. *linked: 0, 1 (it was there already), or why not, as a negative
 * errno: the caller copies, which also says what is the matter with a file that is gone. */
static errint_t bring_link(struct lfs_placer *p, const struct lfs_location *from, uint64_t size, const char *directory,
                           const char *name, int *linked, struct lfs_error *err) {
    struct stat st;
    const char *slash = strrchr(from->name, '/'), *last = slash ? slash + 1 : from->name;
    const char *folder = slash
                             ? lfs_sprintf(p->arena, "%s/%.*s", from->directory, (int)(slash - from->name), from->name)
                             : from->directory;
    int source = folder ? lfs_placer_directory(p, folder) : -ENOMEM, target = lfs_placer_directory(p, directory);
    *linked = source < 0 ? source : target < 0 ? target : 0;
    if (*linked < 0)
        return source == -ENOMEM || target == -ENOMEM ? lfs_fail_nomem(err) : 0;
    /* a symbolic link may be relative, and so not lead there from another directory */
    *linked = fstatat(source, last, &st, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : S_ISREG(st.st_mode) ? 0 : -EXDEV;
    if (*linked < 0)
        return 0;
    LFS_TRY(check_size(from, &st, size, err));
    *linked = lfs_link_at(source, last, target, name);
    if (*linked == -ENOMEM || *linked == -ENOSPC || *linked == -EROFS)
        return lfs_fail_errno(err, -*linked, "cannot link %s/%s into %s", from->directory, from->name, directory);
    struct lfs_location *made = lfs_memdup(p->arena, from, sizeof *made);
    return *linked < 0 || lfs_list_add(&p->unflushed, p->arena, made) ? 0 : lfs_fail_nomem(err);
}

/*
 * Give the file at `from` the name <directory>/<name> by a link, or a copy where the mode asks for it or a link cannot be
 * had.
 */
errint_t lfs_placer_bring(struct lfs_placer *p, const struct lfs_location *from, uint64_t size, const char *directory,
                          const char *name, bool copy, bool is_own, struct lfs_error *err) {
    int linked = -EXDEV;
    if (lfs_is_cancelled(p->cancel))
        return lfs_fail(err, LFS_E_INTERRUPTED, "interrupted: nothing was committed");
    if (!copy && from->inside)
        LFS_TRY(bring_link(p, from, size, directory, name, &linked, err));
    if (linked < 0) {
        LFS_TRY(bring_copy(p, from, size, directory, name, err));
        p->copied_files += !copy && linked != -EEXIST;
    }
    if (!is_own)
        return 0;
    p->own_touched = true;
    if (linked >= 0 && (!lfs_list_add(&p->linked, p->arena, lfs_join(p->arena, directory, name)) ||
                        !lfs_list_add(&p->origins, p->arena, lfs_join(p->arena, from->directory, from->name))))
        return lfs_fail_nomem(err);
    return 0;
}

bool lfs_placer_in_target(const struct lfs_placer *p, const struct lfs_location *l, enum lfs_file_kind kind) {
    char *own = lfs_join(p->arena, p->target->dir, lfs_kind_directory[kind]);
    return l->inside && own && strcmp(own, l->directory) == 0;
}

/* A file that lies in some line's storage already: "_lancefs/lines/<uuid>" of its directory, or NULL. */
static char *storage_of(struct lfs_placer *p, const struct lfs_location *l) {
    static const char prefix[] = "_lancefs/lines/";
    if (!l->inside || strncmp(l->directory, prefix, sizeof prefix - 1))
        return NULL;
    size_t length = sizeof prefix - 1 + strcspn(l->directory + sizeof prefix - 1, "/");
    return lfs_strndup(p->arena, l->directory, length);
}

/* A version of the target itself (a revert): its base ids mean the same today. */
static bool same_base(const struct lfs_placer *p, int64_t base) {
    if (strcmp(p->source->dir, p->target->dir))
        return false;
    return base < 0 ||
           lfs_manifest_same_base(p->source->manifest.message, p->target->manifest.message, (uint32_t)base);
}

/* Of an imagined version: the base path of the data set, or the plain directory, that a file lies in now. */
errint_t lfs_placer_imagined_base(struct lfs_placer *p, enum lfs_file_kind kind, const struct lfs_location *from,
                                  uint32_t *id, struct lfs_error *err) {
    const char *slash = strrchr(from->directory, '/'), *last = slash ? slash + 1 : from->directory;
    bool is_root = strcmp(last, lfs_kind_directory[kind]) == 0;
    char *path = lfs_strdup(p->arena, from->directory);
    if (path && is_root)
        path[slash ? slash - from->directory : 0] = 0;
    if (path && from->inside)
        path = lfs_join(p->arena, lfs_dataset_path(p->dataset), path);
    return path ? lfs_placer_base(p, *path ? path : "/", is_root, NULL, id, err) : lfs_fail_nomem(err);
}

static errint_t imagined_place(struct lfs_placer *p, enum lfs_file_kind kind, const struct lfs_location *from,
                               uint64_t size, int64_t *base, struct lfs_error *err) {
    struct stat st;
    uint32_t id = 0;
    LFS_TRY(lfs_location_stat(p->dataset, from, &st, err));
    LFS_TRY(check_size(from, &st, size, err));
    LFS_TRY(lfs_placer_imagined_base(p, kind, from, &id, err));
    *base = id;
    return 0;
}

/*
 * The place of one file of the source in the target, by the table of interface.md section 4. On return *base is the
 * target's base id for it, or LFS_NO_BASE.
 */
static errint_t place(struct lfs_placer *p, enum lfs_file_kind kind, int64_t source_base, const char *name,
                      uint64_t size, int64_t *base, struct lfs_location *from, struct lfs_error *err) {
    uint32_t id = 0;
    LFS_TRY(lfs_locate(p->source, kind, source_base, name, p->arena, from, err));
    *base = LFS_NO_BASE;
    if (lfs_placer_in_target(p, from, kind) || (!p->rehome && same_base(p, source_base))) {
        struct stat st; /* it may have been cleaned away since */
        *base = lfs_placer_in_target(p, from, kind) ? LFS_NO_BASE : source_base;
        return lfs_location_stat(p->dataset, from, &st, err);
    }
    if (p->imagined)
        return imagined_place(p, kind, from, size, base, err);
    if (p->mode != LFS_PLACE_GRAFT) {
        char *own = lfs_join(p->arena, p->target->dir, lfs_kind_directory[kind]);
        if (!own)
            return lfs_fail_nomem(err);
        LFS_TRY(lfs_placer_make_directory(p, own, err));
        return lfs_placer_bring(p, from, size, own, name, p->mode == LFS_PLACE_COPY, true, err);
    }
    if (!from->inside) { /* stays where it is: the entry is copied, its id remapped */
        const LanceBasePath *b = lfs_manifest_base(p->source->manifest.message, (uint32_t)source_base);
        LFS_TRY(lfs_placer_base(p, b->path, b->is_dataset_root, b->name, &id, err));
    } else {
        char *storage = storage_of(p, from);
        if (!storage) {
            LFS_TRY(lfs_placer_make_storage(p, &storage, err));
            char *directory = lfs_join(p->arena, storage, lfs_kind_directory[kind]);
            if (!directory)
                return lfs_fail_nomem(err);
            LFS_TRY(lfs_placer_bring(p, from, size, directory, name, false, false, err));
        }
        LFS_TRY(storage_base(p, storage, p->source_name, &id, err));
    }
    *base = id;
    return 0;
}

/* data/<stem>/ of a data file goes where the data file went. */
static errint_t place_blobs(struct lfs_placer *p, const struct lfs_location *from, const char *name, int64_t base,
                            struct lfs_error *err) {
    size_t stem = strlen(name);
    stem -= stem > 6 && strcmp(name + stem - 6, ".lance") == 0 ? 6 : 0;
    struct lfs_location dir = {from->inside, from->directory, lfs_strndup(p->arena, name, stem)};
    char *storage = lfs_line_storage_dir(p->arena, p->source_line);
    if (!dir.name || !storage)
        return lfs_fail_nomem(err);
    bool grafted = p->mode == LFS_PLACE_GRAFT;
    if (stem == strlen(name) || (grafted && (base == LFS_NO_BASE || !from->inside || storage_of(p, from))))
        return 0;
    int fd = lfs_location_open_dir(p->dataset, &dir, NULL);
    if (fd == -ENOENT)
        return 0;
    DIR *list = fd >= 0 ? fdopendir(fd) : NULL;
    if (!list) {
        if (fd >= 0)
            close(fd);
        return lfs_fail_errno(err, fd >= 0 ? ENOMEM : -fd, "cannot list %s/%s", dir.directory, dir.name);
    }
    char *to = lfs_sprintf(p->arena, "%s%sdata/%s", grafted ? storage : p->target->dir,
                           grafted || *p->target->dir ? "/" : "", dir.name);
    errint_t result = to ? lfs_placer_make_directory(p, to, err) : lfs_fail_nomem(err);
    for (struct dirent *e; result == 0 && (e = readdir(list));) {
        if (e->d_name[0] == '.')
            continue;
        uint64_t begin = lfs_expect_begin(p);
        lfs_expect_more(p);
        struct lfs_location blob = {dir.inside, lfs_join(p->arena, dir.directory, dir.name),
                                    lfs_strdup(p->arena, e->d_name)};
        result = blob.directory && blob.name
                     ? lfs_placer_bring(p, &blob, 0, to, blob.name, p->mode == LFS_PLACE_COPY, !grafted, err)
                     : lfs_fail_nomem(err);
        lfs_expect_end(p, begin, 0);
    }
    closedir(list);
    return result;
}

errint_t lfs_place_data_file(struct lfs_placer *p, LanceDataFile *file, struct lfs_error *err) {
    struct lfs_location from;
    int64_t base;
    uint64_t begin = lfs_expect_begin(p);
    LFS_TRY(place(p, LFS_FILE_DATA, file->has_base_id ? (int64_t)file->base_id : LFS_NO_BASE,
                  file->path ? file->path : "", file->file_size_bytes, &base, &from, err));
    lfs_expect_end(p, begin, file->file_size_bytes);
    if (p->with_blobs && !p->imagined) /* a view finds them beside the file */
        LFS_TRY(place_blobs(p, &from, file->path, base, err));
    file->has_base_id = base != LFS_NO_BASE;
    file->base_id = base != LFS_NO_BASE ? (uint32_t)base : 0;
    return 0;
}

errint_t lfs_place_deletion_file(struct lfs_placer *p, uint64_t fragment_id, LanceDeletionFile *file,
                                 struct lfs_error *err) {
    struct lfs_location from;
    int64_t base;
    char name[80];
    uint64_t begin = lfs_expect_begin(p);
    lfs_deletion_file_name(fragment_id, file, name, sizeof name);
    p->has_deletions = true;
    LFS_TRY(place(p, LFS_FILE_DELETION, file->has_base_id ? (int64_t)file->base_id : LFS_NO_BASE, name, 0, &base, &from,
                  err));
    lfs_expect_end(p, begin, 0);
    file->has_base_id = base != LFS_NO_BASE;
    file->base_id = base != LFS_NO_BASE ? (uint32_t)base : 0;
    return 0;
}

/* --- the end --- */

/* What was linked: stock Lance never flushes what it writes. */
static errint_t add_files(struct lfs_placer *p, struct lfs_flush *flush, struct lfs_error *err) {
    for (size_t i = 0; i < p->unflushed.count; i++) {
        const struct lfs_location *file = p->unflushed.items[i];
        int fd = lfs_location_open(p->dataset, file, err);
        if (fd < 0)
            return fd;
        LFS_TRY(lfs_flush_add(flush, fd, file->name, false, err));
    }
    return 0;
}

static errint_t add_directory(struct lfs_placer *p, struct lfs_flush *flush, const char *in, const char *part,
                              struct lfs_error *err) {
    char *directory = lfs_join(p->arena, in, part);
    return directory ? lfs_flush_add_directory(flush, lfs_placer_root_fd(p), directory, err) : lfs_fail_nomem(err);
}

/* The directories that it was linked into. Of a line's storage also where an earlier merge linked it, which may have
 * ended before it flushed; deletion files only where the source has any. */
static errint_t add_directories(struct lfs_placer *p, struct lfs_flush *flush, struct lfs_error *err) {
    static const char *const own_parts[] = {"data", "_deletions"};
    char *storage = lfs_line_storage_dir(p->arena, p->source_line);
    if (!storage)
        return lfs_fail_nomem(err);
    if (p->storage_made) {
        LFS_TRY(add_directory(p, flush, storage, "data", err));
        LFS_TRY(add_directory(p, flush, storage, "_versions", err));
        if (p->has_deletions)
            LFS_TRY(add_directory(p, flush, storage, "_deletions", err));
    }
    for (size_t i = 0; p->own_touched && i < 2; i++) {
        errint_t result = add_directory(p, flush, p->target->dir, own_parts[i], err);
        if (result < 0 && result != -ENOENT) /* made only when something went there */
            return result;
    }
    return 0;
}

/* Many files are one flush of the file system. */
errint_t lfs_placer_flush(struct lfs_placer *p, struct lfs_flush *flush, struct lfs_error *err) {
    if (!p->sync)
        return 0;
    lfs_progress_stage(p->progress, "flushing to the disk", 0);
    if (p->unflushed.count > LFS_FLUSH_EACH_MAX)
        return syncfs(lfs_placer_root_fd(p)) < 0 ? lfs_fail_errno(err, errno, "cannot flush the merged files") : 0;
    LFS_TRY(add_files(p, flush, err));
    LFS_TRY(add_directories(p, flush, err));
    return lfs_flush_run(flush, err);
}

void lfs_placer_look_again(struct lfs_placer *p) {
    struct stat st;
    for (size_t i = 0; i < p->linked.count && i < p->origins.count; i++) {
        const char *path = p->linked.items[i], *slash = strrchr(path, '/');
        char *directory = lfs_strndup(p->arena, path, (size_t)(slash - path));
        int fd = directory ? lfs_placer_directory(p, directory) : -ENOMEM;
        if (fd >= 0 && fstatat(fd, slash + 1, &st, AT_SYMLINK_NOFOLLOW) == 0)
            continue;
        if (!directory || lfs_link_beneath(lfs_placer_root_fd(p), p->origins.items[i], lfs_placer_root_fd(p), directory,
                                           slash + 1) < 0)
            lfs_log(LFS_LOG_ERROR, "%s was removed by another program while it was merged, and cannot be linked again",
                    path);
    }
}

void lfs_placer_undo(struct lfs_placer *p) {
    for (size_t i = 0; i < p->created.count; i++) {
        char *path = p->created.items[i], *slash = strrchr(path, '/');
        *slash = 0;
        LFS_AUTO_FD directory = lfs_open_beneath(lfs_placer_root_fd(p), path, O_PATH | O_DIRECTORY, 0);
        if (directory >= 0)
            unlinkat(directory, slash + 1, 0);
    }
    p->created.count = 0;
}

void lfs_placer_close(struct lfs_placer *p) {
    for (size_t i = 0; i < p->directories.count; i++)
        close(*(int *)p->directories.entries[i].value);
    p->directories.count = 0;
}
