/* SPDX-License-Identifier: Apache-2.0 */
/* A state without some of its compactions: the base of a merge whose other side left them out (merge-semantics section 5,
 * s2). */
#include <string.h>

#include "merge/match.h"
#include "merge/virtual.h"
#include "merge/virtual_impl.h"
#include "util/bitmap.h"
#include "util/cleanup.h"

struct uncompact {
    struct lfs_virtual *out;
    struct lfs_moves *moves;
    const struct lfs_version *version;
    struct lfs_arena *arena;
    struct lfs_map counts; /* path of a fragment that goes -> rows of it that come from roots */
};

static errint_t count_rows(void *context, const char *path, const roaring_bitmap_t *rows, struct lfs_error *err) {
    struct uncompact *u = context;
    uint64_t *n = lfs_map_get(&u->counts, path);
    if (!n) {
        n = LFS_NEW(u->arena, uint64_t);
        if (!n || !lfs_map_put(&u->counts, path, n))
            return lfs_fail_nomem(err);
    }
    *n += roaring_bitmap_get_cardinality(rows);
    return 0;
}

/* Where the root's rows stand now. */
static errint_t follow(struct uncompact *u, const LanceFragment *root, bool *done, struct lfs_error *err) {
    *done = lfs_moves_has(u->moves, lfs_match_name(root)) && lfs_moves_kept_files(u->moves, lfs_match_name(root), root);
    AUTO_BITMAP *all = roaring_bitmap_from_range(0, root->physical_rows, 1);
    if (!all)
        return lfs_fail_nomem(err);
    return *done ? lfs_moves_up(u->moves, lfs_match_name(root), all, count_rows, u, err) : 0;
}

/* The fragments that hold rows of roots, and nothing else. */
static bool remove_made(struct uncompact *u) {
    LanceManifest *m = u->out->version.manifest.message;
    size_t kept = 0;
    for (size_t i = 0; i < m->n_fragments; i++) {
        const uint64_t *n = lfs_map_get(&u->counts, lfs_match_name(m->fragments[i]));
        if (n && *n != m->fragments[i]->physical_rows)
            return false;
        if (!n)
            m->fragments[kept++] = m->fragments[i];
    }
    m->n_fragments = kept;
    return true;
}

static errint_t add_root(struct uncompact *u, const LanceFragment *root, struct lfs_error *err) {
    LanceManifest *m = u->out->version.manifest.message;
    roaring_bitmap_t *deleted;
    LanceFragment *f = lfs_memdup(u->arena, root, sizeof *f);
    if (!f)
        return lfs_fail_nomem(err);
    LFS_TRY(lfs_moves_effective(u->moves, lfs_match_name(root), root->physical_rows, &deleted, err));
    u->out->vectors[u->out->n_vectors++] =
        (struct lfs_virtual_vector){.fragment = f, .version = u->version, .record = root};
    m->fragments[m->n_fragments++] = f;
    return lfs_virtual_set_deleted(u->out, f, deleted, u->arena, err);
}

static errint_t run(struct uncompact *u, const LanceFragment *const *roots, size_t n_roots, bool *done,
                    struct lfs_error *err) {
    *done = true;
    LFS_TRY(lfs_virtual_copy(u->out, u->version, n_roots, u->arena, err));
    for (size_t i = 0; i < n_roots && *done; i++)
        LFS_TRY(follow(u, roots[i], done, err));
    *done = *done && remove_made(u);
    for (size_t i = 0; i < n_roots && *done; i++)
        LFS_TRY(add_root(u, roots[i], err));
    return 0;
}

errint_t lfs_virtual_uncompacted(struct lfs_virtual *out, struct lfs_moves *moves, const struct lfs_version *version,
                                 const LanceFragment *const *roots, size_t n_roots, struct lfs_arena *arena, bool *done,
                                 struct lfs_error *err) {
    struct uncompact u = {.out = out, .moves = moves, .version = version, .arena = arena};
    *out = (struct lfs_virtual){0};
    lfs_map_init(&u.counts, arena);
    errint_t result = run(&u, roots, n_roots, done, err);
    *done = *done && result == 0;
    return result == -ECANCELED ? 0 : result; /* a compaction that cannot be followed */
}
