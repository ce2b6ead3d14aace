/* SPDX-License-Identifier: Apache-2.0 */
/* Rows in conflict as data sets that any reader opens: .conflicts/<k>/ours.lance and its kin. */
#include <inttypes.h>
#include <stdlib.h>

#include "table/view_rows.h"
#include "util/cleanup.h"
#include "verbs/conflicts_impl.h"

errint_t lfs_conflicts_copy_rows(const struct lfs_found_rows *from, struct lfs_arena *arena, struct lfs_found_rows *to,
                                 struct lfs_error *err) {
    *to = *from;
    to->dir = lfs_strdup(arena, from->dir);
    to->rows = lfs_memdup(arena, from->rows, from->n_rows * sizeof *from->rows);
    return to->dir && (to->rows || !from->n_rows) ? 0 : lfs_fail_nomem(err);
}

static int by_fragment(const void *a, const void *b) {
    uint64_t x = ((const struct lfs_found_row *)a)->fragment, y = ((const struct lfs_found_row *)b)->fragment;
    return x < y ? -1 : x > y;
}

static uint64_t rows_of(const struct lfs_version *v, uint64_t fragment) {
    const LanceManifest *m = v->manifest.message;
    for (size_t i = 0; i < m->n_fragments; i++)
        if (m->fragments[i]->id == fragment)
            return m->fragments[i]->physical_rows;
    return 0;
}

struct sets {
    struct lfs_view_rows_of *items;
    size_t count;
};

static void free_sets(struct sets *sets) {
    for (size_t i = 0; i < sets->count; i++)
        roaring_bitmap_free((roaring_bitmap_t *)sets->items[i].rows);
}

/* A set for each fragment. */
static errint_t make_sets(struct lfs_found_rows *rows, const struct lfs_version *v, struct lfs_arena *arena,
                          struct sets *out, struct lfs_error *err) {
    out->items = LFS_NEW_ARRAY(arena, struct lfs_view_rows_of, rows->n_rows + 1);
    if (!out->items)
        return lfs_fail_nomem(err);
    if (rows->n_rows)
        qsort(rows->rows, rows->n_rows, sizeof *rows->rows, by_fragment);
    for (size_t i = 0; i < rows->n_rows; i++) {
        const struct lfs_found_row *r = &rows->rows[i];
        if (i == 0 || rows->rows[i - 1].fragment != r->fragment) {
            roaring_bitmap_t *set = roaring_bitmap_create();
            if (!set)
                return lfs_fail_nomem(err);
            out->items[out->count++] = (struct lfs_view_rows_of){r->fragment, set};
        }
        roaring_bitmap_t *set = (roaring_bitmap_t *)out->items[out->count - 1].rows;
        if (r->all)
            roaring_bitmap_add_range(set, 0, rows_of(v, r->fragment));
        else
            roaring_bitmap_add(set, r->row);
    }
    return 0;
}

static errint_t make_image(const struct lfs_conflicts_at *at, struct lfs_views *views, struct lfs_found_rows *rows,
                           struct lfs_arena *arena, struct lfs_image **out, struct lfs_error *err) {
    struct lfs_lines lines;
    struct lfs_version *version;
    LFS_CLEANUP(free_sets) struct sets sets = {0};
    LFS_TRY(lfs_lines_read(at->dataset, arena, &lines, err));
    LFS_TRY(lfs_dataset_version(at->dataset, rows->dir, rows->version, &version, err));
    errint_t result = version->ino == rows->ino
                          ? make_sets(rows, version, arena, &sets, err)
                          : lfs_fail(err, LFS_E_NOT_FOUND, "version %" PRIu64 " is another one by now", rows->version);
    if (result == 0)
        result = lfs_view_rows(views, &lines, version, sets.items, sets.count, out, err);
    lfs_version_release(version);
    return result;
}

errint_t lfs_conflicts_image(const struct lfs_conflicts_at *at, struct lfs_views *views, struct lfs_image **out,
                             struct lfs_error *err) {
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    struct lfs_found_rows rows = {0};
    if (!arena)
        return lfs_fail_nomem(err);
    LFS_TRY(lfs_conflicts_rows(at, arena, &rows, err));
    return make_image(at, views, &rows, arena, out, err);
}
