/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a version as a data set in memory: tests/data/photos.lance, whose feature@5 deleted photo 15 (row 2 of fragment
 * 1, which holds 13-20) and updated photo 11 (row 10 of fragment 0, which holds 1-12). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>

#include "format/deletion.h"
#include "table/view_rows.h"
#include "util/bitmap.h"
#include "util/cleanup.h"

struct fixture {
    struct lfs_arena *arena;
    struct lfs_dataset *ds;
    struct lfs_views *views;
    struct lfs_lines lines;
    struct lfs_version *version;
    struct lfs_image *image;
};

static int make(void **state) {
    struct fixture *f = calloc(1, sizeof *f);
    f->arena = lfs_arena_new();
    assert_int_equal(lfs_dataset_open("tests/data/photos.lance", NULL, &f->ds, NULL), 0);
    assert_int_equal(lfs_views_new(f->ds, 0, &f->views, NULL), 0);
    assert_int_equal(lfs_lines_read(f->ds, f->arena, &f->lines, NULL), 0);
    assert_int_equal(lfs_dataset_version(f->ds, "tree/feature", 5, &f->version, NULL), 0);
    *state = f;
    return 0;
}

static int drop(void **state) {
    struct fixture *f = *state;
    lfs_image_release(f->image);
    lfs_version_release(f->version);
    lfs_views_free(f->views);
    lfs_dataset_close(f->ds);
    lfs_arena_free(f->arena);
    free(f);
    return 0;
}

static errint_t select_rows(struct fixture *f, uint64_t fragment, const roaring_bitmap_t *rows) {
    struct lfs_view_rows_of set = {fragment, rows};
    lfs_image_release(f->image);
    return lfs_view_rows(f->views, &f->lines, f->version, &set, 1, &f->image, NULL);
}

/* The manifest that the image shows. */
static const LanceManifest *shown(struct fixture *f) {
    struct lfs_image_entry e;
    struct lfs_manifest m;
    char path[64] = "_versions/";
    lfs_manifest_name(LFS_NAMING_V2, 5, path + strlen(path));
    assert_int_equal(lfs_image_find(f->image, path, f->arena, &e, NULL), 0);
    assert_non_null(e.bytes);
    assert_int_equal(lfs_manifest_decode(e.bytes, e.file.size, f->arena, path, &m, NULL), 0);
    assert_null(m.indices);
    assert_null(m.message->transaction_file);
    assert_int_equal(m.message->n_base_paths, 0);
    assert_int_equal(m.message->n_fields, f->version->manifest.message->n_fields);
    return m.message;
}

static void other_rows_are_masked(void **state) {
    struct fixture *f = *state;
    AUTO_BITMAP *rows = roaring_bitmap_of(3, 2, 3, 6), *deleted = NULL;
    struct lfs_image_entry e;
    char path[100] = "_deletions/";
    assert_int_equal(select_rows(f, 1, rows), 0);
    const LanceManifest *m = shown(f);
    assert_int_equal(m->n_fragments, 1);
    const LanceFragment *fragment = m->fragments[0];
    assert_int_equal(fragment->id, 1);
    assert_int_equal(fragment->physical_rows, 8);
    assert_int_equal(fragment->deletion_file->num_deleted_rows, 6);
    lfs_deletion_file_name(1, fragment->deletion_file, path + strlen(path), 80);
    assert_int_equal(lfs_image_find(f->image, path, f->arena, &e, NULL), 0);
    assert_int_equal(lfs_deletion_decode(fragment->deletion_file, e.bytes, e.file.size, 8, path, &deleted, NULL), 0);
    for (uint32_t i = 0; i < 8; i++) /* photo 15 is row 2, and deleted */
        assert_int_equal(roaring_bitmap_contains(deleted, i), i != 3 && i != 6);
}

static void files_lie_where_they_did(void **state) {
    struct fixture *f = *state;
    AUTO_BITMAP *rows = roaring_bitmap_of(1, 0);
    struct lfs_image_entry e;
    struct lfs_view_entry *list;
    size_t n;
    assert_int_equal(select_rows(f, 1, rows), 0);
    char *path = lfs_join(f->arena, "data", shown(f)->fragments[0]->files[0]->path);
    assert_int_equal(lfs_image_find(f->image, path, f->arena, &e, NULL), 0);
    assert_true(e.file.reached);
    assert_string_equal(e.file.location.directory, "data"); /* main's: the base path names a place that is gone */
    assert_int_equal(lfs_image_list(f->image, "data", f->arena, &list, &n, NULL), 0);
    assert_int_equal(n, 1);
    assert_true(list[0].reached);
    assert_int_equal(lfs_image_list(f->image, "_deletions", f->arena, &list, &n, NULL), 0);
    assert_int_equal(n, 1);
    assert_int_equal(lfs_image_list(f->image, "_transactions", f->arena, &list, &n, NULL), 0);
    assert_int_equal(n, 0);
    assert_int_equal(lfs_image_list(f->image, "", f->arena, &list, &n, NULL), 0);
    assert_int_equal(n, 5);
    assert_int_equal(lfs_image_find(f->image, "data/none.lance", f->arena, &e, NULL), -ENOENT);
    assert_int_equal(lfs_image_find(f->image, "data/../LICENSE", f->arena, &e, NULL), -ENOENT);
}

static void rows_that_do_not_live_give_no_rows(void **state) {
    struct fixture *f = *state;
    AUTO_BITMAP *rows = roaring_bitmap_of(1, 10), *none = roaring_bitmap_create();
    assert_int_equal(select_rows(f, 0, rows), 0);
    assert_int_equal(shown(f)->n_fragments, 0);
    assert_int_equal(select_rows(f, 0, none), 0);
    assert_int_equal(shown(f)->n_fragments, 0);
    lfs_image_release(f->image);
    assert_int_equal(lfs_view_rows(f->views, &f->lines, f->version, NULL, 0, &f->image, NULL), 0);
    assert_int_equal(shown(f)->n_fragments, 0);
}

static void what_the_version_does_not_have_is_said(void **state) {
    struct fixture *f = *state;
    AUTO_BITMAP *rows = roaring_bitmap_of(1, 8);
    assert_int_equal(select_rows(f, 1, rows), -ENOENT);
    assert_null(f->image);
    assert_int_equal(select_rows(f, 99, rows), -ENOENT);
    assert_null(f->image);
}

static void the_same_rows_are_the_same_image(void **state) {
    struct fixture *f = *state;
    AUTO_BITMAP *some = roaring_bitmap_of(2, 0, 1), *others = roaring_bitmap_of(2, 0, 3);
    assert_int_equal(select_rows(f, 1, some), 0);
    uint64_t token = lfs_image_token(f->image);
    assert_int_equal(select_rows(f, 1, others), 0);
    assert_int_not_equal(lfs_image_token(f->image), token);
    assert_int_equal(select_rows(f, 1, some), 0);
    assert_int_equal(lfs_image_token(f->image), token);
}

int main(void) {
#define ROWS_TEST(test) cmocka_unit_test_setup_teardown(test, make, drop)
    const struct CMUnitTest tests[] = {
        ROWS_TEST(other_rows_are_masked),
        ROWS_TEST(files_lie_where_they_did),
        ROWS_TEST(rows_that_do_not_live_give_no_rows),
        ROWS_TEST(what_the_version_does_not_have_is_said),
        ROWS_TEST(the_same_rows_are_the_same_image),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
