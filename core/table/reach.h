/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who holds whom (merge-semantics section 10). Every version that stands in a home that a stock reader can open holds the
 * files that it names, wherever its base paths lead inside this data set. Line storage holds the bases of merges to come:
 * a kept manifest is needed while some version that is still there, or another kept manifest that is needed, has it in its
 * vector; with it its deletion files. Clones elsewhere that reach into this data set are unknown here, as to stock Lance.
 */
#ifndef LFS_TABLE_REACH_H
#define LFS_TABLE_REACH_H

#include <stdatomic.h>

#include "table/homes.h"
#include "util/map.h"
#include "util/progress.h"

struct lfs_reach_options {
    /* A manifest in line storage that came there after this moment holds everything that it names, as a version of a
     * branch does: the line of a rebase can be gone back to. Line storage older than that holds bases only. */
    struct timespec young_since;
    struct lfs_progress *progress; /* may be NULL */
    const atomic_bool *cancel;     /* may be NULL */
    /* May be NULL: versions that hold nothing, as if they were gone already; `dir` is their home's. */
    bool (*is_gone)(void *context, const char *dir, uint64_t version);
    void *context;
};

struct lfs_marks;

struct lfs_reach {
    struct lfs_homes homes;
    struct lfs_marks *marks;
    struct lfs_map lines; /* every line that something holds a version of */
};

/* Read every manifest of the data set. A manifest that cannot be read is an error that names it: what it holds cannot be
 * told. Free with lfs_reach_free, also after a failure; strings live in `arena`. */
errint_t lfs_reach_read(struct lfs_dataset *ds, const struct lfs_reach_options *options, struct lfs_arena *arena,
                        struct lfs_reach *out, struct lfs_error *err);
void lfs_reach_free(struct lfs_reach *reach);

/* Who holds the file `name` ("data/x.lance", "_indices/<uuid>", "_versions/<kept manifest>") of the home `dir`? */
enum {
    LFS_HELD_NOT = 0,
    LFS_HELD_BY_LINE = 1,
    LFS_HELD_BY_SEVERAL = 2,
    LFS_HELD_BY_HOME = 3 /* + index in homes.list */
};
size_t lfs_reach_holder(const struct lfs_reach *reach, const char *dir, const char *name);

/*
 * What stands on a branch, by its name or by its files.
 */
enum lfs_stander_kind {
    LFS_STANDS_BRANCH, /* a child branch, by its identifier: stock protects the branch for it */
    LFS_STANDS_TAG,
    LFS_STANDS_FILES, /* versions in another home that name files of this branch through a base path */
};
struct lfs_stander {
    enum lfs_stander_kind kind;
    const char *name; /* of the child branch, of the tag; the home's `dir` ("" for main) */
    uint64_t version; /* of this branch: where the child left it, what the tag names; FILES: the newest such version */
    uint64_t n_manifests;         /* FILES: how many versions */
    enum lfs_home_kind home_kind; /* FILES: kept bases in line storage stand there too, but only their names do */
};
errint_t lfs_reach_standers(struct lfs_dataset *ds, const struct lfs_branch *branch, struct lfs_arena *arena,
                            struct lfs_stander **out, size_t *n_out, struct lfs_error *err);

#endif
