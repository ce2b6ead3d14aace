/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes with other base ids are those that packing the record gives, for what both engines write; every other difference
 * leaves the record to be packed. */
#include "common.h"

#include "format/manifest.h"

static const char *const fixtures[] = {"branch.manifest", "child.manifest", "delete.manifest", "update.manifest",
                                       "append.manifest"};
enum { NONE = -1 };
static const int64_t bases[] = {NONE, 0, 5, 127, 128, 4294967295};

static void decode(const struct test_file *file, struct lfs_arena *arena, struct lfs_manifest *out) {
    struct lfs_error err;
    if (lfs_manifest_decode(file->bytes, file->length, arena, file->name, out, &err) < 0)
        fail_msg("%s", err.message);
}

static void *copied(struct lfs_arena *arena, const void *what, size_t size) {
    void *copy = lfs_memdup(arena, what, size);
    assert_non_null(copy);
    return copy;
}

/* All files of all fragments with this base. */
static struct lfs_manifest with_base(const struct lfs_manifest *in, int64_t base, struct lfs_arena *arena) {
    struct lfs_manifest out = *in;
    const LanceManifest *m = in->message;
    out.message = copied(arena, m, sizeof *m);
    out.message->fragments = copied(arena, m->fragments, (m->n_fragments + 1) * sizeof *m->fragments);
    for (size_t i = 0; i < m->n_fragments; i++) {
        LanceFragment *f = out.message->fragments[i] = copied(arena, m->fragments[i], sizeof *f);
        f->files = copied(arena, f->files, f->n_files * sizeof *f->files);
        for (size_t k = 0; k < f->n_files; k++) {
            f->files[k] = copied(arena, f->files[k], sizeof *f->files[k]);
            f->files[k]->has_base_id = base != NONE;
            f->files[k]->base_id = base != NONE ? (uint32_t)base : 0;
        }
        if (f->deletion_file) {
            f->deletion_file = copied(arena, f->deletion_file, sizeof *f->deletion_file);
            f->deletion_file->has_base_id = base != NONE;
            f->deletion_file->base_id = base != NONE ? (uint32_t)base : 0;
        }
    }
    return out;
}

static void rebase(const struct lfs_manifest *from, struct lfs_manifest *to, struct lfs_arena *arena) {
    struct lfs_error err;
    assert_int_equal(lfs_manifest_rebase_bytes(from, to, arena, &err), 0);
}

/* Each fragment has bytes, and they are what packing it gives. */
static size_t check_packed(const struct lfs_manifest *m, const char *name, int64_t base) {
    for (size_t i = 0; i < m->message->n_fragments; i++) {
        const ProtobufCMessage *record = &m->message->fragments[i]->base;
        const struct lfs_fragment_bytes *known = &m->fragment_bytes[i];
        size_t size = protobuf_c_message_get_packed_size(record);
        uint8_t *packed = malloc(size + 1);
        assert_non_null(packed);
        protobuf_c_message_pack(record, packed);
        if (known->record != m->message->fragments[i] || known->length != size || memcmp(known->data, packed, size))
            fail_msg("%s, base %lld: fragment %zu", name, (long long)base, i);
        free(packed);
    }
    return m->message->n_fragments;
}

static void as_packed(void **state) {
    (void)state;
    size_t fragments = 0, deletions = 0;
    for (size_t e = 0; e < COUNT(test_engines); e++)
        for (size_t x = 0; x < COUNT(fixtures); x++) {
            struct lfs_arena *arena = lfs_arena_new();
            struct test_file file = test_read_of(test_engines[e], fixtures[x]);
            struct lfs_manifest stored, last;
            decode(&file, arena, &stored);
            last = stored;
            for (size_t b = 0; b < COUNT(bases); b++) { /* each from the bytes of the one before */
                struct lfs_manifest next = with_base(&last, bases[b], arena);
                rebase(&last, &next, arena);
                fragments += check_packed(&next, file.name, bases[b]);
                last = next;
            }
            for (size_t i = 0; i < stored.message->n_fragments; i++)
                deletions += stored.message->fragments[i]->deletion_file != NULL;
            test_file_free(&file);
            lfs_arena_free(arena);
        }
    assert_true(fragments > 50);
    assert_true(deletions > 1);
}

static void other_differences(void **state) {
    (void)state;
    struct lfs_arena *arena = lfs_arena_new();
    struct test_file file = test_read_of("lance12", "append.manifest");
    struct lfs_manifest stored;
    decode(&file, arena, &stored);
    for (int what = 0; what < 5; what++) {
        struct lfs_manifest next = with_base(&stored, 3, arena);
        LanceFragment *f = next.message->fragments[0];
        if (what == 0)
            f->files[0]->path = "other.lance";
        else if (what == 1)
            f->files[0]->file_size_bytes++;
        else if (what == 2)
            f->physical_rows++;
        else if (what == 3)
            f->n_files = 0;
        else
            f->deletion_file = f->deletion_file ? NULL
                                                : copied(arena, &(LanceDeletionFile)LANCE__TABLE__DELETION_FILE__INIT,
                                                         sizeof(LanceDeletionFile));
        rebase(&stored, &next, arena);
        if (next.fragment_bytes[0].record == f)
            fail_msg("difference %d was not seen", what);
    }
    test_file_free(&file);
    lfs_arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_packed), cmocka_unit_test(other_differences)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
