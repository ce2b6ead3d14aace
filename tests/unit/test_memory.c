/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that runs short: each allocation of a piece of work fails once, those of arenas one by one too (the Makefile links
 * this test with --wrap). The work then says "out of memory" or does without; it crashes nowhere, leaks nothing (with
 * AddressSanitizer) and, asked again, does the same as ever. Allocations within jansson, zstd, CRoaring and libc are not
 * made to fail.
 */
#include "common.h"

#include <errno.h>
#include <ftw.h>
#include <sys/stat.h>

#include "format/deletion.h"
#include "format/manifest.h"
#include "format/names.h"
#include "format/ref.h"
#include "format/rowids.h"
#include "format/wire.h"
#include "table/view.h"
#include "util/cleanup.h"
#include "util/log.h"
#include "verbs/command.h"
#include "verbs/verbs.h"

/* --- the n-th allocation fails --- */

static unsigned long n_asked, fails_at; /* 0: none does */

static bool fails(void) { return ++n_asked == fails_at; }

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *pointer, size_t size);
char *__real_strdup(const char *text);
void *__real_lfs_alloc(struct lfs_arena *arena, size_t size);
void *__real_lfs_alloc_array(struct lfs_arena *arena, size_t count, size_t size);
char *__real_lfs_strdup(struct lfs_arena *arena, const char *text);
char *__real_lfs_strndup(struct lfs_arena *arena, const char *text, size_t length);
void *__real_lfs_memdup(struct lfs_arena *arena, const void *bytes, size_t length);
char *__real_lfs_join(struct lfs_arena *arena, const char *a, const char *b);
ProtobufCAllocator *__real_lfs_arena_protobuf(struct lfs_arena *arena);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *pointer, size_t size);
char *__wrap_strdup(const char *text);
void *__wrap_lfs_alloc(struct lfs_arena *arena, size_t size);
void *__wrap_lfs_alloc_array(struct lfs_arena *arena, size_t count, size_t size);
char *__wrap_lfs_strdup(struct lfs_arena *arena, const char *text);
char *__wrap_lfs_strndup(struct lfs_arena *arena, const char *text, size_t length);
void *__wrap_lfs_memdup(struct lfs_arena *arena, const void *bytes, size_t length);
char *__wrap_lfs_sprintf(struct lfs_arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
char *__wrap_lfs_join(struct lfs_arena *arena, const char *a, const char *b);
ProtobufCAllocator *__wrap_lfs_arena_protobuf(struct lfs_arena *arena);

void *__wrap_malloc(size_t size) { return fails() ? NULL : __real_malloc(size); }
void *__wrap_calloc(size_t count, size_t size) { return fails() ? NULL : __real_calloc(count, size); }
void *__wrap_realloc(void *pointer, size_t size) { return fails() ? NULL : __real_realloc(pointer, size); }
char *__wrap_strdup(const char *text) { return fails() ? NULL : __real_strdup(text); }
void *__wrap_lfs_alloc(struct lfs_arena *arena, size_t size) { return fails() ? NULL : __real_lfs_alloc(arena, size); }
void *__wrap_lfs_alloc_array(struct lfs_arena *arena, size_t count, size_t size) {
    return fails() ? NULL : __real_lfs_alloc_array(arena, count, size);
}
char *__wrap_lfs_strdup(struct lfs_arena *arena, const char *text) {
    return fails() ? NULL : __real_lfs_strdup(arena, text);
}
char *__wrap_lfs_strndup(struct lfs_arena *arena, const char *text, size_t length) {
    return fails() ? NULL : __real_lfs_strndup(arena, text, length);
}
void *__wrap_lfs_memdup(struct lfs_arena *arena, const void *bytes, size_t length) {
    return fails() ? NULL : __real_lfs_memdup(arena, bytes, length);
}
char *__wrap_lfs_join(struct lfs_arena *arena, const char *a, const char *b) {
    return fails() ? NULL : __real_lfs_join(arena, a, b);
}

char *__wrap_lfs_sprintf(struct lfs_arena *arena, const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *text = n < 0 || fails() ? NULL : __real_lfs_alloc(arena, (size_t)n + 1);
    if (text)
        vsnprintf(text, (size_t)n + 1, format, again);
    va_end(again);
    return text;
}

/* The arena's own allocator takes through the same lines as lfs_alloc; here each call of it counts. */
static void *(*protobuf_take)(void *arena, size_t size);
static void *counted_take(void *arena, size_t size) {
    return protobuf_take(arena, fails() ? SIZE_MAX : size);
} /* too much for any */

ProtobufCAllocator *__wrap_lfs_arena_protobuf(struct lfs_arena *arena) {
    ProtobufCAllocator *allocator = __real_lfs_arena_protobuf(arena);
    if (allocator->alloc != counted_take)
        protobuf_take = allocator->alloc;
    allocator->alloc = counted_take;
    return allocator;
}

/* --- pieces of work --- */

typedef errint_t work(struct lfs_arena *arena, struct lfs_error *err);

enum { RUNS_MAX = 80 };

/* Every allocation, or RUNS_MAX of them, evenly chosen. */
static void run(work *do_it, const char *name) {
    unsigned long total, refused = 0, runs = 0;
    struct lfs_error err = {0};
    fails_at = 0; /* whatever failed before */
    struct lfs_arena *arena = lfs_arena_new();
    n_asked = 0;
    errint_t result = do_it(arena, &err);
    total = n_asked;
    lfs_arena_free(arena);
    if (result < 0)
        fail_msg("%s: %s", name, err.message);
    for (unsigned long n = 1; n <= total; n += 1 + total / RUNS_MAX, runs++) {
        arena = lfs_arena_new();
        err = (struct lfs_error){0};
        n_asked = 0;
        fails_at = n;
        result = do_it(arena, &err);
        fails_at = 0;
        if (result != 0 && (result != -ENOMEM || err.code != LFS_E_NOMEM))
            fail_msg("%s: allocation %lu of %lu failed, and it says %d: %s", name, n, total, result, err.message);
        refused += result != 0;
        lfs_arena_free(arena);
    }
    arena = lfs_arena_new();
    assert_ok(do_it(arena, &err), err);
    lfs_arena_free(arena);
    print_message("%s: %lu allocations, %lu failed once: %lu said so\n", name, total, runs, refused);
    assert_true(refused > 0);
}

static struct test_file file_of(const char *name) { /* reading it is not the work */
    unsigned long saved = fails_at, asked = n_asked;
    fails_at = 0;
    struct test_file file = test_read(name);
    fails_at = saved;
    n_asked = asked;
    return file;
}

static errint_t both_ways(const struct test_file *file, struct lfs_arena *arena, struct lfs_buf *bytes,
                          struct lfs_error *err) {
    struct lfs_manifest manifest, flat, kept;
    struct lfs_aliases aliases = {0};
    bool changed;
    LFS_TRY(lfs_manifest_decode(file->bytes, file->length, arena, file->name, &manifest, err));
    LFS_TRY(lfs_flatten_manifest(&manifest, &aliases, arena, &flat, &changed, err));
    LFS_TRY(lfs_manifest_encode(&flat, bytes, err));
    kept = flat;
    LFS_TRY(lfs_manifest_keep_bytes(&kept, &manifest, arena, err));
    for (size_t i = 0; i < manifest.message->n_fragments; i++) {
        uint64_t *entries;
        if (lfs_manifest_has_stable_row_ids(manifest.message))
            LFS_TRY(lfs_row_ids_of(manifest.message->fragments[i], arena, file->name, &entries, err));
    }
    return 0;
}

static errint_t a_manifest(const char *name, struct lfs_arena *arena, struct lfs_error *err) {
    struct test_file file = file_of(name);
    struct lfs_buf bytes = {0};
    errint_t result = both_ways(&file, arena, &bytes, err);
    lfs_buf_free(&bytes);
    test_file_free(&file);
    return result;
}

static errint_t manifest_of_a_branch(struct lfs_arena *arena, struct lfs_error *err) {
    return a_manifest("lance12-child.manifest", arena, err);
}
static errint_t manifest_with_row_ids(struct lfs_arena *arena, struct lfs_error *err) {
    return a_manifest("lance12-rowids-mixed.manifest", arena, err);
}

static errint_t deletion_files(struct lfs_arena *arena, struct lfs_error *err) {
    static const char *const names[] = {"lance12-quarter.arrow", "lance12-third.bin"};
    errint_t result = 0;
    (void)arena;
    for (size_t i = 0; i < COUNT(names) && result == 0; i++) {
        struct test_file file = file_of(names[i]);
        struct lfs_buf bytes = {0};
        roaring_bitmap_t *rows = NULL;
        result = (i ? lfs_deletion_decode_bitmap : lfs_deletion_decode_arrow)(file.bytes, file.length, UINT64_MAX,
                                                                              file.name, &rows, err);
        if (result == 0)
            result = lfs_deletion_encode_bitmap(rows, &bytes, err);
        if (rows)
            roaring_bitmap_free(rows);
        lfs_buf_free(&bytes);
        test_file_free(&file);
    }
    return result;
}

static errint_t refs(struct lfs_arena *arena, struct lfs_error *err) {
    struct test_file file = file_of("lance12-branch-child.json");
    struct lfs_branch_ref ref;
    struct lfs_buf bytes = {0};
    errint_t result = lfs_branch_ref_decode(file.bytes, file.length, arena, file.name, &ref, err);
    if (result == 0)
        result = lfs_branch_ref_encode(&ref, &bytes, err);
    if (result == 0 && !lfs_percent_encode(arena, "a/b"))
        result = lfs_fail_nomem(err);
    lfs_buf_free(&bytes);
    test_file_free(&file);
    return result;
}

static errint_t commands(struct lfs_arena *arena, struct lfs_error *err) {
    struct lfs_command command;
    struct lfs_ref_words ref;
    LFS_TRY(lfs_command_parse("exp/sub@7 tags/v1 message=\"week 12\" property.a=b only=rows,config rows=source-wins",
                              arena, &command, err));
    LFS_TRY(lfs_command_check(&command, LFS_VERB_MERGE, ".merge", err));
    return lfs_ref_parse(command.words[0], arena, &ref, err);
}

/* --- a data set on the disk: tests/data/photos.lance --- */

static char root[64];

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where) {
    (void)st;
    (void)type;
    (void)where;
    return remove(path);
}

static void fresh_photos(void) {
    const char *data = getenv("LFS_TEST_DATA");
    char command[4400];
    nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    snprintf(command, sizeof command, "mkdir '%s' && cp -r '%s/../../data/photos.lance' '%s/'", root,
             data ? data : "tests/unit/data", root);
    assert_int_equal(system(command), 0);
}

static int make(void **state) {
    (void)state;
    strcpy(root, "/tmp/lancefs-memory-XXXXXX");
    if (!mkdtemp(root))
        return -1;
    lfs_log_open("/dev/null", LFS_LOG_ERROR);
    fresh_photos();
    return 0;
}

static int drop(void **state) {
    (void)state;
    return nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static errint_t open_photos(struct lfs_dataset **out, struct lfs_error *err) {
    char path[128];
    snprintf(path, sizeof path, "%s/photos.lance", root);
    return lfs_dataset_open(path, NULL, out, err);
}

static errint_t look_at(struct lfs_views *views, const char *dir, struct lfs_arena *arena, struct lfs_error *err) {
    struct lfs_view_entry *entries, entry;
    struct lfs_view_tip tip;
    struct lfs_rendered *rendered = NULL;
    struct lfs_rendered_info info;
    struct lfs_manifest flat, restored;
    char name[LFS_MANIFEST_NAME_SIZE];
    size_t n;
    int fd = -1;
    bool changed;
    LFS_TRY(lfs_views_tip(views, dir, &tip, err));
    for (int kind = 0; kind < LFS_FILE_KINDS; kind++)
        LFS_TRY(lfs_views_list(views, dir, (enum lfs_file_kind)kind, "", arena, &entries, &n, err));
    LFS_TRY(lfs_views_list(views, dir, LFS_FILE_DATA, "", arena, &entries, &n, err));
    for (size_t i = 0; i < n; i++)
        LFS_TRY(lfs_views_find(views, dir, LFS_FILE_DATA, entries[i].name, arena, &entry, err));
    lfs_manifest_name(tip.naming, tip.number, name);
    LFS_TRY(lfs_views_open(views, dir, LFS_RENDER_MANIFEST, name, &rendered, &fd, &info, err));
    if (fd >= 0) {
        close(fd);
        return 0;
    }
    errint_t result = lfs_manifest_decode(rendered->bytes, rendered->size, arena, name, &flat, err);
    lfs_rendered_release(rendered);
    LFS_TRY(result);
    flat.message->version++;
    return lfs_views_restore_manifest(views, dir, *dir ? "feature" : NULL, &flat, name, arena, &restored, &changed,
                                      err);
}

static errint_t views_of(struct lfs_dataset *ds, struct lfs_arena *arena, struct lfs_error *err) {
    struct lfs_branch *branches;
    struct lfs_tag *tags;
    struct lfs_views *views;
    size_t n, n_tags, n_bad;
    LFS_TRY(lfs_dataset_branches(ds, arena, &branches, &n, &n_bad, err));
    LFS_TRY(lfs_dataset_tags(ds, arena, &tags, &n_tags, &n_bad, err));
    LFS_TRY(lfs_views_new(ds, 0, &views, err));
    errint_t result = 0;
    for (size_t i = 0; i < n && result == 0; i++)
        result = look_at(views, branches[i].dir, arena, err);
    lfs_views_free(views);
    return result;
}

static errint_t views(struct lfs_arena *arena, struct lfs_error *err) {
    struct lfs_dataset *ds;
    LFS_TRY(open_photos(&ds, err));
    errint_t result = views_of(ds, arena, err);
    lfs_dataset_close(ds);
    return result;
}

/* What the answer or the error says of memory that was short. */
static errint_t verb(const char *file, const char *branch, const char *line, struct lfs_error *err) {
    struct lfs_dataset *ds;
    struct lfs_verb_settings settings = {.mode = LFS_PLACE_GRAFT};
    struct lfs_buf answer = {0};
    LFS_TRY(open_photos(&ds, err));
    struct lfs_verb_call call = {.dataset = ds, .settings = &settings, .branch = branch, .line = line};
    errint_t result = lfs_verb_run(file, &call, &answer);
    lfs_buf_add(&answer, "", 1);
    if (result == -ENOMEM)
        lfs_fail_nomem(err);
    else if (result < 0)
        lfs_fail(err, LFS_E_CORRUPT, "%s", answer.data ? (char *)answer.data : "no answer");
    lfs_buf_free(&answer);
    lfs_dataset_close(ds);
    return result;
}

static errint_t merge_planned(struct lfs_arena *arena, struct lfs_error *err) {
    (void)arena;
    return verb(".merge", "main", "feature dry-run", err);
}

/* The newest version of main, in numbers that a merge must get right whatever it did without. */
struct tip {
    uint64_t number, fragments, rows, deleted, fields, indexes, metadata;
};

static errint_t tip_of_main(struct tip *out, struct lfs_error *err) {
    struct lfs_dataset *ds;
    struct lfs_version *version = NULL;
    enum lfs_naming naming;
    LFS_TRY(open_photos(&ds, err));
    errint_t result = lfs_dataset_tip(ds, "", &out->number, &naming, err);
    if (result == 0)
        result = lfs_dataset_version(ds, "", out->number, &version, err);
    if (result == 0) {
        const LanceManifest *m = version->manifest.message;
        *out = (struct tip){.number = out->number,
                            .fragments = m->n_fragments,
                            .fields = m->n_fields,
                            .metadata = m->n_table_metadata,
                            .indexes = version->manifest.indices ? version->manifest.indices->n_indices : 0};
        for (size_t i = 0; i < m->n_fragments; i++) {
            out->rows += m->fragments[i]->physical_rows;
            out->deleted += m->fragments[i]->deletion_file ? m->fragments[i]->deletion_file->num_deleted_rows : 0;
        }
    }
    lfs_version_release(version);
    lfs_dataset_close(ds);
    return result;
}

/* Merged or not merged: never anything between, whatever failed. */
static errint_t merge_made(struct lfs_arena *arena, struct lfs_error *err) {
    static struct tip merged; /* by the first run, in which nothing fails */
    struct tip before, after;
    unsigned long saved = fails_at, asked;
    struct lfs_error own;
    (void)arena;
    fails_at = 0;
    assert_ok(tip_of_main(&before, &own), own);
    n_asked = 0;
    fails_at = saved;
    errint_t result = verb(".merge", "main", "feature", err);
    asked = n_asked;
    fails_at = 0;
    assert_ok(tip_of_main(&after, &own), own);
    bool done = after.number != before.number; /* what fails behind the commit does not take it back */
    assert_true(done || result != 0);
    if (result == 0 && !merged.number)
        merged = after;
    assert_memory_equal(&after, done ? &merged : &before, sizeof after);
    if (done)
        fresh_photos();
    fails_at = saved;
    n_asked = asked;
    return result;
}

#define WORK(name)                                                                                                     \
    static void test_##name(void **state) {                                                                            \
        (void)state;                                                                                                   \
        run(name, #name);                                                                                              \
    }
WORK(manifest_of_a_branch)
WORK(manifest_with_row_ids)
WORK(deletion_files)
WORK(refs)
WORK(commands)
WORK(views)
WORK(merge_planned)
WORK(merge_made)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_manifest_of_a_branch),
        cmocka_unit_test(test_manifest_with_row_ids),
        cmocka_unit_test(test_deletion_files),
        cmocka_unit_test(test_refs),
        cmocka_unit_test(test_commands),
        cmocka_unit_test(test_views),
        cmocka_unit_test(test_merge_planned),
        cmocka_unit_test(test_merge_made),
    };
    return cmocka_run_group_tests_name("memory", tests, make, drop);
}
