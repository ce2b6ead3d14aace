/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the views share; nobody else includes this. */
#ifndef LFS_TABLE_VIEW_IMPL_H
#define LFS_TABLE_VIEW_IMPL_H

#include <pthread.h>

#include "table/view.h"
#include "util/map.h"

/* A name that one version shows, and what stands behind it. */
struct lfs_view_name {
    const char *shown; /* below data/, _deletions/; the uuid for an index */
    const char *name;  /* as stored */
    int64_t base_id;
    uint64_t size;           /* what the manifest tells, 0 = nothing */
    const LanceIndex *index; /* for an index */
};

/* The name index of one version: immutable, counted. */
struct lfs_view {
    struct lfs_version *version;
    struct lfs_arena *arena;
    size_t bytes;
    unsigned users; /* guarded by the views' lock */
    struct lfs_view_name *names[LFS_FILE_KINDS];
    size_t n_names[LFS_FILE_KINDS];
    struct lfs_map by_shown[LFS_FILE_KINDS];
    struct lfs_aliases aliases;
};

errint_t lfs_view_build(struct lfs_version *version, struct lfs_view **out, struct lfs_error *err);
void lfs_view_destroy(struct lfs_view *view);

/* A base path that older versions have and the newest has not. */
struct lfs_old_base {
    uint64_t version;
    int64_t base_id;
};

/* What is known of one branch's directory. Guarded by the views' lock; never freed before the views are. */
struct lfs_view_dir {
    char *dir;
    bool tip_valid;
    struct stat versions;      /* of <dir>/_versions when the tip was found */
    struct timespec looked_at; /* when that listing began */
    struct lfs_view_tip tip;
    struct lfs_view *view; /* of the newest version that was asked for; may be behind the tip; NULL = none */
    uint64_t used;         /* for dropping the view that was not used for longest */
    struct lfs_old_base *old;
    size_t n_old;
    uint64_t scanned_to; /* versions up to here were looked through for old bases */
};

struct lfs_rendered_cache;

struct lfs_views {
    struct lfs_dataset *ds;
    pthread_mutex_t lock; /* guards dirs and users; never held across I/O */
    struct lfs_arena *arena;
    struct lfs_map dirs; /* dir -> struct lfs_view_dir */
    size_t view_bytes, view_bytes_max;
    uint64_t clock;
    struct lfs_rendered_cache *rendered;
};

struct lfs_rendered_cache *lfs_rendered_cache_new(size_t bytes_max);
void lfs_rendered_cache_free(struct lfs_rendered_cache *cache);

/* The view of the branch's newest version. With `stale` an older one will do, where there is one: names that it holds
 * stay right. Release with lfs_views_put. */
errint_t lfs_views_get(struct lfs_views *views, const char *dir, bool stale, struct lfs_view **out,
                       struct lfs_error *err);
void lfs_views_put(struct lfs_views *views, struct lfs_view *view);

/* Find a name of that view and nothing else: what lies beside its files is not its. `other` is a directory where the
 * version's own files are looked for after its own; NULL: there is none. As lfs_views_find. */
errint_t lfs_view_find(struct lfs_views *views, const struct lfs_view *view, const char *other, enum lfs_file_kind kind,
                       const char *path, struct lfs_arena *arena, struct lfs_view_entry *out, struct lfs_error *err);
/* The names of that view, beside `more` that are not looked for. As lfs_views_list. */
errint_t lfs_view_list(struct lfs_views *views, const struct lfs_view *view, const char *other, enum lfs_file_kind kind,
                       const char *sub, const struct lfs_view_entry *more, size_t n_more, struct lfs_arena *arena,
                       struct lfs_view_entry **out, size_t *n_out, struct lfs_error *err);

/* The old bases of a branch: base paths of versions before `tip` that `tip` does not have. In `arena`. */
errint_t lfs_views_old_bases(struct lfs_views *views, const char *dir, const struct lfs_view *tip,
                             struct lfs_arena *arena, struct lfs_old_base **out, size_t *n_out, struct lfs_error *err);

/* Log once that files below `where` cannot be reached, and why. */
void lfs_views_complain(struct lfs_views *views, const char *where, const struct lfs_error *why);

/* A path below a view's directory: no empty part, no "." or "..", no part longer than NAME_MAX. */
bool lfs_view_path_ok(const char *path);

/* "8-4-4-4-12" hex digits; NULL for what is no uuid, or when memory is short. */
char *lfs_view_uuid_text(struct lfs_arena *arena, const Lance__Table__UUID *uuid);

#endif
