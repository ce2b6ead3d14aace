// SPDX-License-Identifier: Apache-2.0
// The same work in every run, for counting the instructions that it takes: `work FRAGMENTS` makes a manifest of
// that many fragments of one file each, every other one of a base path, and versions with one more on either side. Then it
// decodes them, merges the two into a plan, and flattens one; callgrind tells the calls apart.
// `work FRAGMENTS contended`: each side has deleted two rows of every fragment, one of them the same.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/manifest.h"
#include "merge/merge3.h"
#include "merge/plan.h"
#include "table/view.h"
#include "util/cleanup.h"

enum { ROWS = 10, RIVALS_ROW = 3 };

static struct lfs_arena *arena;
static bool contended;

static _Noreturn void fail(const char *what) {
    fprintf(stderr, "%s\n", what);
    exit(1);
}

// Names as stock Lance makes them are 50 random bytes: what they hash to must not depend on the run.
static char *file_name(unsigned long n) {
    unsigned long long state = n * 0x9E3779B97F4A7C15ULL + 1;
    char *name = lfs_alloc(arena, 64);
    for (int i = 0; i < 50; i++) {
        state = state * 6364136223846793005ULL + 1442695040888963407ULL;
        name[i] = (i < 24 ? "01" : "0123456789abcdef")[(state >> 60) & (i < 24 ? 1 : 15)];
    }
    strcpy(name + 50, ".lance");
    return name;
}

static LanceFragment *fragment(unsigned long id, bool elsewhere) {
    static int32_t fields[] = {0, 1}, columns[] = {0, 1};
    LanceFragment *f = LFS_NEW(arena, LanceFragment);
    LanceDataFile *file = LFS_NEW(arena, LanceDataFile);
    lance__table__data_fragment__init(f);
    lance__table__data_file__init(file);
    file->path = file_name(id);
    file->fields = fields;
    file->column_indices = columns;
    file->n_fields = file->n_column_indices = 2;
    file->has_file_size_bytes = true;
    file->file_size_bytes = 560 + id % 7;
    file->has_base_id = elsewhere;
    file->base_id = 1;
    f->has_id = f->has_physical_rows = true;
    f->id = id;
    f->physical_rows = ROWS;
    f->files = lfs_memdup(arena, &file, sizeof file);
    f->n_files = 1;
    return f;
}

// A side deletes the row that its rival deletes too, and the one that has its version's number.
static void delete_two(LanceFragment *f, uint64_t version) {
    f->deletion_file = LFS_NEW(arena, LanceDeletionFile);
    lance__table__deletion_file__init(f->deletion_file);
    f->deletion_file->has_id = f->deletion_file->has_read_version = f->deletion_file->has_num_deleted_rows = true;
    f->deletion_file->id = f->id * 2 + version;
    f->deletion_file->read_version = version;
    f->deletion_file->num_deleted_rows = 2;
}

static LanceField *field(int id, const char *name, const char *type) {
    LanceField *f = LFS_NEW(arena, LanceField);
    lance__file__field__init(f);
    f->id = id;
    f->parent_id = -1;
    f->has_id = f->has_parent_id = true;
    f->name = lfs_strdup(arena, name);
    f->logical_type = lfs_strdup(arena, type);
    return f;
}

// A version as it comes from the disk: the base's fragments and perhaps one more, called `extra`.
static void version(size_t n, unsigned long extra, uint64_t number, const struct lfs_manifest *like,
                    struct lfs_version *out) {
    LanceManifest m = LANCE__TABLE__MANIFEST__INIT;
    LanceBasePath base = LANCE__TABLE__BASE_PATH__INIT, *bases[] = {&base};
    LanceField *fields[] = {field(0, "id", "int64"), field(1, "text", "string")};
    struct lfs_manifest made = {.message = &m};
    struct lfs_buf bytes = {0};
    struct lfs_error err;
    size_t shared;
    base.has_id = base.has_is_dataset_root = base.is_dataset_root = true;
    base.id = 1;
    base.path = (char *)"/elsewhere/t.lance";
    m.fields = fields;
    m.n_fields = 2;
    m.base_paths = bases;
    m.n_base_paths = 1;
    m.fragments = LFS_NEW_ARRAY(arena, LanceFragment *, n + 1);
    for (size_t i = 0; i < n; i++) {
        m.fragments[m.n_fragments++] = fragment(i, i % 2);
        if (contended && extra)
            delete_two(m.fragments[i], number);
    }
    if (extra && !contended) {
        m.fragments[m.n_fragments] = fragment(extra, false);
        m.fragments[m.n_fragments++]->id = n;
    }
    m.has_version = true;
    m.version = number;
    lfs_manifest_set_features(&m);
    *out = (struct lfs_version){.dir = "", .number = m.version};
    if (lfs_manifest_encode(&made, &bytes, &err) < 0 ||
        lfs_manifest_decode_like(bytes.data, bytes.length, like, arena, arena, "work", &out->manifest, &shared, &err) < 0)
        fail(err.message);
    lfs_buf_free(&bytes);
}

static errint_t deletions(void *context, const struct lfs_version *v, const LanceFragment *f, roaring_bitmap_t **out,
                          struct lfs_error *err) {
    (void)context;
    *out = roaring_bitmap_create();
    if (f->deletion_file) {
        roaring_bitmap_add(*out, RIVALS_ROW);
        roaring_bitmap_add(*out, (uint32_t)v->number + RIVALS_ROW);
    }
    return contended ? 0 : lfs_fail(err, LFS_E_CORRUPT, "no deletion file is there");
}

// One commit on each side, which deleted.
static errint_t history(void *context, enum lfs_side side, const struct lfs_history **out, struct lfs_error *err) {
    struct lfs_history *both = context;
    *out = &both[side == LFS_THEIRS];
    return contended ? 0 : lfs_fail(err, LFS_E_CORRUPT, "no history is wanted");
}

int main(int argc, char **argv) {
    size_t n = argc > 1 ? strtoul(argv[1], NULL, 10) : 2000;
    Lance__Table__Delete what = LANCE__TABLE__DELETE__INIT;
    LanceTransaction delete = LANCE__TABLE__TRANSACTION__INIT;
    struct lfs_version base, ours, theirs;
    struct lfs_plan plan;
    struct lfs_manifest flat;
    struct lfs_error err;
    bool changed;
    arena = lfs_arena_new();
    if (!arena)
        fail("no memory");
    contended = argc > 2 && strcmp(argv[2], "contended") == 0;
    version(n, 0, 1, NULL, &base);
    version(n, n + 1000001, 2, &base.manifest, &ours);
    version(n, n + 2000002, 3, &base.manifest, &theirs);
    delete.operation_case = LANCE__TABLE__TRANSACTION__OPERATION_DELETE;
    delete.delete_ = &what;
    ours.manifest.transaction = theirs.manifest.transaction = &delete;
    struct lfs_step our_step = {.before = &base, .after = &ours}, their_step = {.before = &base, .after = &theirs};
    struct lfs_history both[] = {{.steps = &our_step, .count = 1, .complete = true},
                                 {.steps = &their_step, .count = 1, .complete = true}};
    const struct lfs_merge_reader reader = {both, deletions, history, NULL};
    const struct lfs_merge_input input = {.base = &base, .ours = &ours, .theirs = &theirs, .base_is_ours = true,
                                          .ours_name = "ours", .theirs_name = "theirs", .reader = &reader};
    if (lfs_merge3(&input, arena, &plan, &err) < 0 ||
        lfs_flatten_manifest(&ours.manifest, NULL, arena, &flat, &changed, &err) < 0)
        fail(err.message);
    printf("%s, %zu fragments; flattened: %s\n", plan.outcome == LFS_OUTCOME_MERGED ? "merged" : "not merged",
           plan.n_fragments, changed && !flat.message->n_base_paths ? "yes" : "no");
    lfs_plan_release(&plan);
    lfs_arena_free(arena);
    return 0;
}
