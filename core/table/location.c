/* SPDX-License-Identifier: Apache-2.0 */
#include "table/location.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "store/file.h"
#include "table/dataset_impl.h"
#include "util/cleanup.h"

const char *const lfs_kind_directory[LFS_FILE_KINDS] = {
    [LFS_FILE_DATA] = "data", [LFS_FILE_DELETION] = "_deletions", [LFS_FILE_INDEX] = "_indices"};

/* A name below a directory: no empty part, no "." or "..", not absolute. */
static bool is_plain_name(const char *name) {
    for (const char *part = name;; part++) {
        size_t length = strcspn(part, "/");
        if (length == 0 || (length == 1 && part[0] == '.') || (length == 2 && part[0] == '.' && part[1] == '.'))
            return false;
        part += length;
        if (!*part)
            return true;
    }
}

/* Lexically, as the object store that wrote it would: no "//", "/./", "/../", no trailing slash. NULL: out of memory. */
static char *normalise(struct lfs_arena *arena, const char *path) {
    char *out = lfs_alloc(arena, strlen(path) + 2);
    size_t n = 0;
    if (!out)
        return NULL;
    for (const char *p = path; *p;) {
        size_t length = strcspn(p, "/");
        if (length == 2 && p[0] == '.' && p[1] == '.') {
            while (n > 0 && out[--n] != '/') {
            }
        } else if (length && !(length == 1 && p[0] == '.')) {
            out[n++] = '/';
            memcpy(out + n, p, length);
            n += length;
        }
        p += length + (p[length] == '/');
    }
    out[n] = 0;
    if (n == 0)
        memcpy(out, "/", 2);
    return out;
}

/* The absolute path that a base path string means (lance-format section 5); NULL when it is unusable, or no local one. */
static char *plain_path(const char *text, struct lfs_arena *arena, bool *local) {
    static const char *const schemes[] = {"file-object-store://", "file://", "file:"};
    const char *path = text;
    bool encoded = false;
    for (size_t i = 0; i < 3 && !encoded; i++)
        if (strncmp(text, schemes[i], strlen(schemes[i])) == 0) {
            path = text + strlen(schemes[i]);
            encoded = true;
        }
    *local = encoded || !strstr(text, "://");
    char *plain = !*local ? NULL : encoded ? lfs_percent_decode(arena, path) : lfs_strdup(arena, path);
    return plain ? normalise(arena, plain) : NULL;
}

char *lfs_base_path(const char *text, struct lfs_arena *arena) {
    bool local;
    return *text == '/' || strncmp(text, "file", 4) == 0 ? plain_path(text, arena, &local) : NULL;
}

/* The same for a version's base path, with `err` filled. */
static char *base_path_text(const struct lfs_version *v, const char *text, struct lfs_arena *arena,
                            struct lfs_error *err) {
    bool local;
    char *out = plain_path(text, arena, &local);
    if (!local) {
        lfs_fail(err, LFS_E_UNSUPPORTED, "version %llu of %s has files in %s, which is not on a local file system",
                 (unsigned long long)v->number, *v->dir ? v->dir : "main", text);
        return NULL;
    }
    if (!out)
        lfs_fail(err, LFS_E_CORRUPT, "version %llu of %s has the unusable base path %s", (unsigned long long)v->number,
                 *v->dir ? v->dir : "main", text);
    return out;
}

/* `path` without the leading `prefix` (a directory), without its slash; NULL when it does not lie there. */
static const char *below(const char *path, const char *prefix) {
    size_t length = strlen(prefix);
    if (strncmp(path, prefix, length) != 0 || (path[length] && path[length] != '/'))
        return NULL;
    return path[length] ? path + length + 1 : path + length;
}

/* What can follow a data set's root in a base path: nothing, a branch, a line storage. */
static bool is_inside_part(const char *rest) {
    return !*rest || strncmp(rest, "tree/", 5) == 0 || strncmp(rest, "_lancefs/lines/", 15) == 0;
}

static bool file_exists(struct lfs_dataset *ds, struct lfs_arena *arena, const char *directory, const char *name) {
    char *path = lfs_join(arena, directory, name);
    int fd = path ? lfs_open_beneath(ds->root_fd, path, O_PATH, 0) : -ENOMEM;
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

struct query {
    const struct lfs_version *version;
    struct lfs_dataset *ds;
    const char *sub, *name; /* `sub` is "" for a base that is a plain directory */
    struct lfs_arena *arena;
    struct lfs_location *out;
    struct lfs_error *err;
};

static errint_t found(const struct query *q, bool inside, const char *base) {
    q->out->inside = inside;
    q->out->directory = lfs_join(q->arena, base, q->sub);
    q->out->name = lfs_strdup(q->arena, q->name);
    return q->out->directory && q->out->name ? 0 : lfs_fail_nomem(q->err);
}

/* Certainly in this data set: the string is the path that it was opened by, or what that resolves to. */
static const char *surely_inside(const struct query *q, const char *path) {
    const char *rest = below(path, q->ds->path);
    if (!rest)
        rest = below(path, q->ds->real_path);
    return rest && is_inside_part(rest) ? rest : NULL;
}

/* Perhaps in this data set: somewhere in the string stands this data set's name (merge-semantics section 11). Names of
 * files are unique, so a file that is there is the file meant. */
static const char *perhaps_inside(const struct query *q, const char *path) {
    for (const char *p = path; *p == '/';) {
        const char *part = p + 1, *end = part + strcspn(part, "/");
        size_t length = (size_t)(end - part);
        const char *rest = *end ? end + 1 : end;
        bool named = (length == strlen(q->ds->name) && strncmp(part, q->ds->name, length) == 0) ||
                     (length == strlen(q->ds->real_name) && strncmp(part, q->ds->real_name, length) == 0);
        if (named && is_inside_part(rest)) {
            char *directory = lfs_join(q->arena, rest, q->sub);
            if (directory && file_exists(q->ds, q->arena, directory, q->name))
                return rest;
        }
        p = end;
    }
    return NULL;
}

static const char *mapped(const struct query *q, const char *path) {
    for (size_t i = 0; q->ds->map_old && q->ds->map_old[i]; i++) {
        const char *rest = below(path, q->ds->map_old[i]);
        if (rest)
            return lfs_join(q->arena, q->ds->map_new[i], rest);
    }
    return path;
}

static errint_t locate_by_base(const struct query *q, const LanceBasePath *base) {
    char *path = base_path_text(q->version, base->path ? base->path : "", q->arena, q->err);
    if (!path)
        return -(q->err ? q->err->sys_errno : EIO);
    const char *rest = surely_inside(q, path);
    if (!rest)
        rest = perhaps_inside(q, path);
    if (rest)
        return found(q, true, rest);
    const char *moved = mapped(q, path);
    bool relative = base->path[0] != '/' && strncmp(base->path, "file", 4) != 0;
    if (moved == path && relative)
        return lfs_fail(q->err, LFS_E_CORRUPT,
                        "the base path %s is relative, so nobody can say where it is; mount with -o map=%s:/where/it/is",
                        base->path, path);
    return moved ? found(q, false, moved) : lfs_fail_nomem(q->err);
}

errint_t lfs_locate(const struct lfs_version *version, enum lfs_file_kind kind, int64_t base_id, const char *name,
                    struct lfs_arena *arena, struct lfs_location *out, struct lfs_error *err) {
    struct lfs_error own;
    struct query q = {version, version->dataset, lfs_kind_directory[kind], name, arena, out, err ? err : &own};
    if (!is_plain_name(name))
        return lfs_fail(err, LFS_E_CORRUPT, "version %llu of %s names the file %s, which leads out of its directory",
                        (unsigned long long)version->number, *version->dir ? version->dir : "main", name);
    if (base_id == LFS_NO_BASE)
        return found(&q, true, version->dir);
    const LanceBasePath *base = lfs_manifest_base(version->manifest.message, (uint32_t)base_id);
    if (!base || !base->path || !*base->path)
        return lfs_fail(err, LFS_E_CORRUPT, "version %llu of %s names base path %lld, which it does not have",
                        (unsigned long long)version->number, *version->dir ? version->dir : "main", (long long)base_id);
    if (!base->is_dataset_root) {
        if (kind == LFS_FILE_DELETION)
            return lfs_fail(err, LFS_E_CORRUPT, "a deletion file cannot lie in the plain directory %s", base->path);
        q.sub = "";
    }
    return locate_by_base(&q, base);
}

/* --- every meaning of a base path string --- */

struct places {
    struct lfs_arena *arena;
    const char **list;
    size_t count, capacity;
};

static bool add_place(struct places *p, const char *rest) {
    for (size_t i = 0; i < p->count; i++)
        if (strcmp(p->list[i], rest) == 0)
            return true;
    char *own = p->count < p->capacity ? lfs_strdup(p->arena, rest) : NULL;
    if (own)
        p->list[p->count++] = own;
    return own != NULL;
}

static bool is_root_dir(struct lfs_dataset *ds, const char *path) {
    struct stat here, there;
    return stat(path, &there) == 0 && fstat(ds->root_fd, &here) == 0 && here.st_dev == there.st_dev &&
           here.st_ino == there.st_ino;
}

/* Each leading part of the path that has this data set's name, or is its root today. */
static bool add_by_parts(struct places *p, struct lfs_dataset *ds, char *path) {
    for (char *at = path; *at == '/';) {
        char *part = at + 1, *end = part + strcspn(part, "/");
        size_t length = (size_t)(end - part);
        bool named = (length == strlen(ds->name) && strncmp(part, ds->name, length) == 0) ||
                     (length == strlen(ds->real_name) && strncmp(part, ds->real_name, length) == 0);
        char saved = *end;
        *end = 0;
        bool root = named || is_root_dir(ds, path);
        *end = saved;
        if (root && !add_place(p, saved ? end + 1 : end))
            return false;
        at = end;
    }
    return true;
}

errint_t lfs_base_places(struct lfs_dataset *ds, const char *text, struct lfs_arena *arena, const char ***out,
                         size_t *n_out, struct lfs_error *err) {
    bool local;
    char real[PATH_MAX], *path = plain_path(text, arena, &local);
    struct places p = {.arena = arena};
    *n_out = 0;
    if (!path)
        return local ? lfs_fail(err, LFS_E_CORRUPT, "the base path %s cannot be used", text) : 0;
    for (const char *c = path; *c; c++)
        p.capacity += *c == '/';
    p.capacity += 2;
    p.list = LFS_NEW_ARRAY(arena, const char *, p.capacity);
    if (!p.list || !add_by_parts(&p, ds, path))
        return lfs_fail_nomem(err);
    const char *rest = realpath(path, real) ? below(real, ds->real_path) : NULL;
    if (rest && !add_place(&p, rest))
        return lfs_fail_nomem(err);
    *out = p.list;
    *n_out = p.count;
    return 0;
}

/* Is an opened directory outside the data set one that bases= allows? Asked of the descriptor, not of the name. */
static errint_t check_allowed(struct lfs_dataset *ds, int dir, const char *directory, struct lfs_error *err) {
    char link[64], real[PATH_MAX];
    if (!ds->bases_limited)
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", dir);
    ssize_t n = readlink(link, real, sizeof real - 1);
    if (n < 0)
        return lfs_fail_errno(err, errno, "cannot tell where %s lies", directory);
    real[n] = 0;
    for (size_t i = 0; ds->bases && ds->bases[i]; i++) {
        char allowed[PATH_MAX];
        if (realpath(ds->bases[i], allowed) && (below(real, allowed) || strcmp(allowed, "/") == 0))
            return 0;
    }
    return lfs_fail(err, LFS_E_FORBIDDEN, "%s lies outside the data set and bases= does not allow it", directory);
}

/* The directory that a location's name is relative to: the root itself (borrowed: *own = false) or one outside. */
static int open_base(struct lfs_dataset *ds, const struct lfs_location *location, bool *own, struct lfs_error *err) {
    *own = !location->inside;
    if (location->inside)
        return ds->root_fd;
    int dir = open(location->directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return lfs_fail_errno(err, errno, "cannot reach the base path %s", location->directory);
    errint_t allowed = check_allowed(ds, dir, location->directory, err);
    if (allowed < 0) {
        close(dir);
        return allowed;
    }
    return dir;
}

static int open_at(struct lfs_dataset *ds, const struct lfs_location *l, int flags, struct lfs_error *err) {
    bool own;
    char path[PATH_MAX];
    int base = open_base(ds, l, &own, err);
    if (base < 0)
        return base;
    int n = snprintf(path, sizeof path, "%s%s%s", l->inside ? l->directory : "",
                     l->inside && *l->directory ? "/" : "", l->name);
    int fd = n < 0 || (size_t)n >= sizeof path ? -ENAMETOOLONG
             : flags == O_RDONLY               ? lfs_open_regular(base, path)
                                               : lfs_open_beneath(base, path, flags, 0);
    if (own)
        close(base);
    if (fd < 0)
        lfs_fail_errno(err, -fd, "cannot open %s/%s", l->directory, l->name);
    return fd;
}

int lfs_location_open(struct lfs_dataset *ds, const struct lfs_location *location, struct lfs_error *err) {
    return open_at(ds, location, O_RDONLY, err);
}

int lfs_location_open_dir(struct lfs_dataset *ds, const struct lfs_location *location, struct lfs_error *err) {
    return open_at(ds, location, O_RDONLY | O_DIRECTORY, err);
}

errint_t lfs_location_stat(struct lfs_dataset *ds, const struct lfs_location *location, struct stat *out,
                           struct lfs_error *err) {
    LFS_AUTO_FD fd = open_at(ds, location, O_PATH, err);
    if (fd < 0)
        return fd;
    return fstat(fd, out) < 0 ? lfs_fail_errno(err, errno, "cannot stat %s/%s", location->directory, location->name) : 0;
}
