/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Views: what a branch looks like to a reader who is to know nothing of base paths (interface.md section 2). Manifests
 * and transactions are shown flattened, and every file that a version uses has a name below the view's own data/,
 * _deletions/ and _indices/, wherever it lies.
 *
 * `dir` is always a branch's directory as in struct lfs_branch. Everything here is thread safe; nothing is written to
 * the disk; no lock is held during I/O.
 */
#ifndef LFS_TABLE_VIEW_H
#define LFS_TABLE_VIEW_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "table/dataset.h"
#include "table/location.h"
#include "util/map.h"

/* --- flattening (pure but for files that share one name in several bases) --- */

/*
 * Names of files that a version shows under another name than their own, since two of its bases hold different files
 * of one name. The version's own file keeps the name, else the base with the lowest id does; the others get one that
 * is made from the base path's text, the same in every version (but where a version stores a file of that name too: then
 * it is made once more from itself).
 */
struct lfs_aliases {
    struct lfs_map map; /* by kind, base id and stored name; empty for nearly every data set */
};

struct lfs_alias {
    const char *shown; /* data files: the path to write into the flattened manifest */
    uint64_t shown_id; /* deletion files: the id to write there */
};

/* Find a version's aliases. Looks at the disk only where one name stands with several base ids. */
errint_t lfs_aliases_find(const struct lfs_version *version, struct lfs_arena *arena, struct lfs_aliases *out,
                          struct lfs_error *err);

/* The alias of a file, or NULL. */
const struct lfs_alias *lfs_aliases_get(const struct lfs_aliases *aliases, enum lfs_file_kind kind, int64_t base_id,
                                        const char *name);

/* The name that a data file of a base path is shown under when its own is taken: "<stem>-<16 hex digits>.<ext>". */
char *lfs_alias_data_name(struct lfs_arena *arena, const char *name, const char *base_path);

/*
 * The manifest (its index section and inline transaction too) without base ids, base paths and branch name, feature
 * flags made again. `*changed` is false when the stored manifest already is so; `*out` then is `*in`. What is not
 * changed is shared with `in`, the rest lives in `arena`.
 */
errint_t lfs_flatten_manifest(const struct lfs_manifest *in, const struct lfs_aliases *aliases, struct lfs_arena *arena,
                              struct lfs_manifest *out, bool *changed, struct lfs_error *err);

/* The same for a transaction. NULL when memory is short; `in` itself when there is nothing to change. */
LanceTransaction *lfs_flatten_transaction(LanceTransaction *in, const struct lfs_aliases *aliases,
                                          struct lfs_arena *arena);

/* --- the views of a data set --- */

struct lfs_views;

/* `bytes_max` bounds what rendered manifests and name indexes may keep; 0 = 32 MiB. The data set must outlive it. */
errint_t lfs_views_new(struct lfs_dataset *ds, size_t bytes_max, struct lfs_views **out, struct lfs_error *err);
void lfs_views_free(struct lfs_views *views);
struct lfs_dataset *lfs_views_dataset(const struct lfs_views *views);
/* Of manifests and transactions that were rendered, or looked at and found to serve as they are. */
void lfs_views_cache_counts(struct lfs_views *views, struct lfs_cache_counts *out);

/* The newest version of a branch, at the price of one stat when nothing changed. */
struct lfs_view_tip {
    uint64_t number;
    enum lfs_naming naming;
    struct timespec time; /* of its commit: the manifest's own timestamp, else its file's mtime */
};
errint_t lfs_views_tip(struct lfs_views *views, const char *dir, struct lfs_view_tip *out, struct lfs_error *err);

/* A file or directory below data/, _deletions/ or _indices/ of a view. */
struct lfs_view_entry {
    const char *name; /* in listings: one component; from lfs_views_find: the path that was asked for */
    bool is_dir;
    bool reached;   /* it is there: `st` and `location` are good (`st` alone in listings) */
    errint_t cause; /* when not reached: what opening it would give, -EIO or -EACCES */
    uint64_t size;  /* when not reached: the size that the manifest tells, 0 when it tells none */
    struct stat st;
    struct lfs_location location;
};

/*
 * Find `path`, which any version of the branch may use: the newest version's names first, then the branch's own
 * directory, then every base path of the newest version, then those of older ones. -ENOENT when it is nowhere.
 * Base paths that cannot be reached are logged once each.
 */
errint_t lfs_views_find(struct lfs_views *views, const char *dir, enum lfs_file_kind kind, const char *path,
                        struct lfs_arena *arena, struct lfs_view_entry *out, struct lfs_error *err);

/* What the newest version uses plus what lies in the branch's own directory, in no order, each name once. `sub` is ""
 * or the path of a directory below. `*out` and its names live in `arena`. -ENOENT for a directory that is nowhere. */
errint_t lfs_views_list(struct lfs_views *views, const char *dir, enum lfs_file_kind kind, const char *sub,
                        struct lfs_arena *arena, struct lfs_view_entry **out, size_t *n_out, struct lfs_error *err);

/* The same for one version: just the names that it uses. -ENOENT when there is no such version. */
errint_t lfs_views_list_version(struct lfs_views *views, const char *dir, uint64_t version, enum lfs_file_kind kind,
                                const char *sub, struct lfs_arena *arena, struct lfs_view_entry **out, size_t *n_out,
                                struct lfs_error *err);

/* When was a version committed? Zero where it is not there. */
struct timespec lfs_views_time(struct lfs_views *views, const char *dir, uint64_t version, enum lfs_naming naming);

/* --- manifests and transactions --- */

enum lfs_rendered_kind { LFS_RENDER_MANIFEST, LFS_RENDER_TRANSACTION };

/* Bytes of a file as a view shows it: immutable, counted. */
struct lfs_rendered {
    const uint8_t *bytes;
    size_t size;
};
void lfs_rendered_release(struct lfs_rendered *rendered); /* NULL is fine */

struct lfs_rendered_info {
    bool stored;    /* the stored bytes serve as they are */
    errint_t cause; /* negative: the file cannot be shown; opening it gives this */
    off_t size;     /* exact, but for a file that cannot be shown: the stored file's */
    struct timespec
        time;       /* the manifest's timestamp; the stored file's mtime where there is none or it is not decoded */
    struct stat st; /* the stored file's */
};

/* How big is <dir>/_versions/<name> or <dir>/_transactions/<name>, as the view shows it? Rendered at most once while
 * the stored file stays the same; the answer is remembered longer than the bytes. -ENOENT when it is not there. */
errint_t lfs_views_stat(struct lfs_views *views, const char *dir, enum lfs_rendered_kind kind, const char *name,
                        struct lfs_rendered_info *out, struct lfs_error *err);
/* The same only where it is known already, at the price of one stat; -EAGAIN otherwise. */
errint_t lfs_views_stat_known(struct lfs_views *views, const char *dir, enum lfs_rendered_kind kind, const char *name,
                              struct lfs_rendered_info *out);

/* Open it: `*rendered` is its bytes, to be released; or, where the stored bytes serve, `*rendered` is NULL and `*fd`
 * an open descriptor of the stored file. `info` is as from lfs_views_stat. A file that cannot be decoded gives -EIO (or
 * -EOPNOTSUPP for features that are not known) and is logged once. */
errint_t lfs_views_open(struct lfs_views *views, const char *dir, enum lfs_rendered_kind kind, const char *name,
                        struct lfs_rendered **rendered, int *fd, struct lfs_rendered_info *info, struct lfs_error *err);

/* --- writing: what is committed through a view --- */

/*
 * The inverse of flattening. A manifest that a writer of the view of `dir` wants to commit becomes one of the branch
 * (`branch`: its name, NULL for main): files that do not lie in the branch's own storage get their base paths back, found
 * by the names that the newest version shows, else older ones. `*changed` is false where the bytes may stay as they are.
 * `what` names it in sentences. -EEXIST when its version is there already; LFS_E_USAGE when it is not the next one;
 * LFS_E_UNSUPPORTED when it names base paths itself; LFS_E_CORRUPT when it names a file that is nowhere.
 */
errint_t lfs_views_restore_manifest(struct lfs_views *views, const char *dir, const char *branch,
                                    const struct lfs_manifest *flat, const char *what, struct lfs_arena *arena,
                                    struct lfs_manifest *out, bool *changed, struct lfs_error *err);
errint_t lfs_views_restore_transaction(struct lfs_views *views, const char *dir, LanceTransaction *flat, const char *what,
                                       struct lfs_arena *arena, LanceTransaction **out, bool *changed,
                                       struct lfs_error *err);

#endif
