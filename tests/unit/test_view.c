/* SPDX-License-Identifier: Apache-2.0 */
/* Views: flattened manifests, and names that lead to files wherever they lie. Small data sets are made on the disk. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include "table/view.h"
#include "util/cleanup.h"

/* --- a data set on the disk --- */

struct fixture {
    char root[64]; /* the directory that holds t.lance */
    struct lfs_dataset *ds;
    struct lfs_views *views;
    struct lfs_arena *arena;
};

static void path_in(const struct fixture *f, const char *path, char *out, size_t size) {
    snprintf(out, size, "%s/%s", f->root, path);
}

static void put(const struct fixture *f, const char *path, const void *bytes, size_t length) {
    char full[512];
    path_in(f, path, full, sizeof full);
    for (char *p = full + strlen(f->root) + 1; (p = strchr(p, '/')); *p++ = '/') {
        *p = '\0';
        mkdir(full, 0755);
    }
    FILE *file = fopen(full, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    fclose(file);
}

static void put_text(const struct fixture *f, const char *path, const char *text) { put(f, path, text, strlen(text)); }

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where) {
    (void)st;
    (void)type;
    (void)where;
    return remove(path);
}

static int make(void **state) {
    struct fixture *f = calloc(1, sizeof *f);
    strcpy(f->root, "/tmp/lancefs-view-XXXXXX");
    if (!mkdtemp(f->root))
        return -1;
    f->arena = lfs_arena_new();
    *state = f;
    return 0;
}

static int drop(void **state) {
    struct fixture *f = *state;
    lfs_views_free(f->views);
    lfs_dataset_close(f->ds);
    lfs_arena_free(f->arena);
    nftw(f->root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(f);
    return 0;
}

static void open_views(struct fixture *f) {
    char path[512];
    path_in(f, "t.lance", path, sizeof path);
    assert_int_equal(lfs_dataset_open(path, NULL, &f->ds, NULL), 0);
    assert_int_equal(lfs_views_new(f->ds, 0, &f->views, NULL), 0);
}

/* --- manifests by hand --- */

struct sample {
    LanceManifest m;
    LanceIndexSection section;
    LanceTransaction txn;
    Lance__Table__Append append;
    Lance__Table__Timestamp time;
    LanceFragment fragments[4], *fragment_list[4];
    LanceDataFile files[4], *file_list[4];
    LanceDeletionFile deletions[4];
    LanceBasePath bases[4], *base_list[4];
    LanceIndex index, *index_list[1];
    Lance__Table__UUID uuid;
    struct lfs_manifest manifest;
};

static struct sample *new_sample(struct fixture *f, uint64_t version, const char *branch) {
    struct sample *s = LFS_NEW(f->arena, struct sample);
    assert_non_null(s);
    lance__table__manifest__init(&s->m);
    s->m.has_version = true;
    s->m.version = version;
    s->m.branch = (char *)branch;
    s->m.fragments = s->fragment_list;
    s->m.base_paths = s->base_list;
    lance__table__timestamp__init(&s->time);
    s->time.has_seconds = true;
    s->time.seconds = 1700000000 + (int64_t)version;
    s->m.timestamp = &s->time;
    s->manifest.message = &s->m;
    return s;
}

static void add_base(struct sample *s, uint32_t id, const char *path) {
    LanceBasePath *base = &s->bases[s->m.n_base_paths];
    lance__table__base_path__init(base);
    base->has_id = base->has_is_dataset_root = base->is_dataset_root = true;
    base->id = id;
    base->path = (char *)path;
    s->base_list[s->m.n_base_paths++] = base;
}

static LanceFragment *add_file(struct sample *s, const char *path, int64_t base_id, uint64_t size) {
    size_t i = s->m.n_fragments++;
    LanceFragment *fragment = &s->fragments[i];
    LanceDataFile *file = &s->files[i];
    lance__table__data_fragment__init(fragment);
    lance__table__data_file__init(file);
    file->path = (char *)path;
    file->has_file_size_bytes = true;
    file->file_size_bytes = size;
    file->has_base_id = base_id >= 0;
    file->base_id = base_id >= 0 ? (uint32_t)base_id : 0;
    fragment->has_id = true;
    fragment->id = i;
    s->file_list[i] = file;
    fragment->files = &s->file_list[i];
    fragment->n_files = 1;
    s->fragment_list[i] = fragment;
    return fragment;
}

static void add_deletion(struct sample *s, LanceFragment *fragment, uint64_t id, int64_t base_id) {
    LanceDeletionFile *file = &s->deletions[fragment->id];
    lance__table__deletion_file__init(file);
    file->has_id = file->has_read_version = true;
    file->id = id;
    file->read_version = 1;
    file->has_base_id = base_id >= 0;
    file->base_id = base_id >= 0 ? (uint32_t)base_id : 0;
    fragment->deletion_file = file;
}

static void add_index(struct sample *s, int64_t base_id) {
    static uint8_t bytes[16] = {0x11, 0x11, 0x11, 0x11, 0x22, 0x22, 0x33, 0x33,
                                0x44, 0x44, 0x55, 0x55, 0x55, 0x55, 0x55, 0x55};
    lance__table__index_section__init(&s->section);
    lance__table__index_metadata__init(&s->index);
    lance__table__uuid__init(&s->uuid);
    s->uuid.has_uuid = true;
    s->uuid.uuid.data = bytes;
    s->uuid.uuid.len = sizeof bytes;
    s->index.uuid = &s->uuid;
    s->index.has_base_id = base_id >= 0;
    s->index.base_id = base_id >= 0 ? (uint32_t)base_id : 0;
    s->index_list[0] = &s->index;
    s->section.indices = s->index_list;
    s->section.n_indices = 1;
    s->manifest.indices = &s->section;
}
#define INDEX_UUID "11111111-2222-3333-4444-555555555555"

static void write_manifest(struct fixture *f, struct sample *s, const char *dir) {
    LFS_AUTO_BUF bytes = {0};
    char name[LFS_MANIFEST_NAME_SIZE], path[256];
    lfs_manifest_set_features(&s->m);
    assert_int_equal(lfs_manifest_encode(&s->manifest, &bytes, NULL), 0);
    lfs_manifest_name(LFS_NAMING_V2, s->m.version, name);
    snprintf(path, sizeof path, "t.lance/%s%s_versions/%s", dir, *dir ? "/" : "", name);
    put(f, path, bytes.data, bytes.length);
}

/* main with one file, branch f with that and one of its own, a deletion file and an index of main's. */
static void make_branch(struct fixture *f, char *base, size_t size) {
    struct sample *m = new_sample(f, 1, NULL), *b = new_sample(f, 2, "f");
    add_file(m, "m.lance", -1, 4);
    write_manifest(f, m, "");
    put_text(f, "t.lance/data/m.lance", "main");
    put_text(f, "t.lance/_deletions/0-1-7.arrow", "deleted");
    put_text(f, "t.lance/_indices/" INDEX_UUID "/page.lance", "index");
    path_in(f, "t.lance", base, size);
    add_base(b, 0, base);
    add_deletion(b, add_file(b, "m.lance", 0, 4), 7, 0);
    add_file(b, "own.lance", -1, 3);
    add_index(b, 0);
    write_manifest(f, b, "tree/f");
    put_text(f, "t.lance/tree/f/data/own.lance", "own");
}

/* --- flattening --- */

static void flat_manifest_stays_as_it_is(void **state) {
    struct fixture *f = *state;
    struct sample *s = new_sample(f, 1, NULL);
    struct lfs_manifest out;
    bool changed = true;
    add_file(s, "a.lance", -1, 1);
    assert_int_equal(lfs_flatten_manifest(&s->manifest, NULL, f->arena, &out, &changed, NULL), 0);
    assert_false(changed);
    assert_ptr_equal(out.message, s->manifest.message);
}

static void everything_that_names_a_place_goes(void **state) {
    struct fixture *f = *state;
    struct sample *s = new_sample(f, 2, "f");
    struct lfs_manifest out;
    bool changed = false;
    add_base(s, 3, "/somewhere/t.lance");
    add_deletion(s, add_file(s, "a.lance", 3, 1), 7, 3);
    add_file(s, "b.lance", -1, 1);
    add_index(s, 3);
    lance__table__append__init(&s->append);
    s->append.fragments = s->m.fragments;
    s->append.n_fragments = s->m.n_fragments;
    lance__table__transaction__init(&s->txn);
    s->txn.operation_case = LANCE__TABLE__TRANSACTION__OPERATION_APPEND;
    s->txn.append = &s->append;
    s->manifest.transaction = &s->txn;
    lfs_manifest_set_features(&s->m);
    assert_true(s->m.reader_feature_flags & LFS_FLAG_BASE_PATHS);

    assert_int_equal(lfs_flatten_manifest(&s->manifest, NULL, f->arena, &out, &changed, NULL), 0);
    assert_true(changed);
    assert_int_equal(out.message->n_base_paths, 0);
    assert_null(out.message->branch);
    assert_false((out.message->reader_feature_flags | out.message->writer_feature_flags) & LFS_FLAG_BASE_PATHS);
    assert_true(out.message->reader_feature_flags & LFS_FLAG_DELETION_FILES);
    assert_false(out.message->fragments[0]->files[0]->has_base_id);
    assert_false(out.message->fragments[0]->deletion_file->has_base_id);
    assert_ptr_equal(out.message->fragments[1], s->m.fragments[1]); /* what does not change is shared */
    assert_false(out.indices->indices[0]->has_base_id);
    assert_false(out.transaction->append->fragments[0]->files[0]->has_base_id);
    /* the stored one is not touched */
    assert_true(s->m.fragments[0]->files[0]->has_base_id && s->m.fragments[0]->deletion_file->has_base_id);
    assert_int_equal(s->m.n_base_paths, 1);
}

static void a_clone_names_no_place(void **state) {
    struct fixture *f = *state;
    LanceTransaction txn = LANCE__TABLE__TRANSACTION__INIT;
    Lance__Table__Clone clone = LANCE__TABLE__CLONE__INIT;
    clone.has_is_shallow = clone.is_shallow = true;
    clone.ref_path = (char *)"/somewhere/t.lance";
    clone.branch_name = (char *)"f";
    clone.has_ref_version = true;
    clone.ref_version = 4;
    txn.operation_case = LANCE__TABLE__TRANSACTION__OPERATION_CLONE;
    txn.clone = &clone;
    LanceTransaction *flat = lfs_flatten_transaction(&txn, NULL, f->arena);
    assert_non_null(flat);
    assert_ptr_not_equal(flat, &txn);
    assert_false(flat->clone->is_shallow);
    assert_null(flat->clone->ref_path);
    assert_null(flat->clone->branch_name);
    assert_int_equal(flat->clone->ref_version, 4);
    assert_true(clone.is_shallow);
    assert_ptr_equal(lfs_flatten_transaction(flat, NULL, f->arena), flat);
}

static void rendered_bytes_have_the_size_that_stat_says(void **state) {
    struct fixture *f = *state;
    char base[128], name[LFS_MANIFEST_NAME_SIZE];
    make_branch(f, base, sizeof base);
    open_views(f);
    struct lfs_rendered_info info, again;
    struct lfs_rendered *rendered;
    struct lfs_manifest shown;
    int fd;
    lfs_manifest_name(LFS_NAMING_V2, 2, name);
    assert_int_equal(lfs_views_stat_known(f->views, "tree/f", LFS_RENDER_MANIFEST, name, &info), -EAGAIN);
    assert_int_equal(lfs_views_stat(f->views, "tree/f", LFS_RENDER_MANIFEST, name, &info, NULL), 0);
    assert_int_equal(lfs_views_stat_known(f->views, "tree/f", LFS_RENDER_MANIFEST, name, &again), 0);
    assert_false(info.stored);
    assert_int_equal(info.time.tv_sec, 1700000002);
    assert_int_equal(lfs_views_open(f->views, "tree/f", LFS_RENDER_MANIFEST, name, &rendered, &fd, &again, NULL), 0);
    assert_int_equal(fd, -1);
    assert_int_equal(rendered->size, info.size);
    assert_int_equal(lfs_manifest_decode(rendered->bytes, rendered->size, f->arena, name, &shown, NULL), 0);
    assert_int_equal(shown.message->n_base_paths, 0);
    assert_int_equal(shown.message->n_fragments, 2);
    lfs_rendered_release(rendered);
}

static void a_manifest_without_bases_is_shown_as_it_is_stored(void **state) {
    struct fixture *f = *state;
    char base[128], name[LFS_MANIFEST_NAME_SIZE];
    make_branch(f, base, sizeof base);
    open_views(f);
    struct lfs_rendered_info info;
    struct lfs_rendered *rendered;
    int fd;
    lfs_manifest_name(LFS_NAMING_V2, 1, name);
    assert_int_equal(lfs_views_open(f->views, "", LFS_RENDER_MANIFEST, name, &rendered, &fd, &info, NULL), 0);
    assert_true(info.stored);
    assert_null(rendered);
    assert_true(fd >= 0);
    assert_int_equal(info.size, info.st.st_size);
    assert_int_equal(info.time.tv_sec, 1700000001);
    close(fd);
}

static void a_broken_manifest_fails_alone(void **state) {
    struct fixture *f = *state;
    char base[128], name[LFS_MANIFEST_NAME_SIZE], path[128];
    make_branch(f, base, sizeof base);
    lfs_manifest_name(LFS_NAMING_V2, 3, name);
    snprintf(path, sizeof path, "t.lance/tree/f/_versions/%s", name);
    put_text(f, path, "this is no manifest");
    open_views(f);
    struct lfs_rendered_info info;
    struct lfs_rendered *rendered;
    struct lfs_view_entry entry;
    int fd;
    assert_int_equal(lfs_views_stat(f->views, "tree/f", LFS_RENDER_MANIFEST, name, &info, NULL), 0);
    assert_int_equal(info.size, strlen("this is no manifest"));
    assert_int_equal(lfs_views_open(f->views, "tree/f", LFS_RENDER_MANIFEST, name, &rendered, &fd, &info, NULL), -EIO);
    /* the branch's own files are there all the same */
    assert_int_equal(lfs_views_find(f->views, "tree/f", LFS_FILE_DATA, "own.lance", f->arena, &entry, NULL), 0);
    assert_true(entry.reached);
    lfs_manifest_name(LFS_NAMING_V2, 2, name);
    assert_int_equal(lfs_views_stat(f->views, "tree/f", LFS_RENDER_MANIFEST, name, &info, NULL), 0);
    assert_int_equal(info.cause, 0);
}

/* --- names --- */

static const struct lfs_view_entry *entry_named(const struct lfs_view_entry *list, size_t n, const char *name) {
    const struct lfs_view_entry *found = NULL;
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i].name, name) == 0) {
            assert_null(found); /* each name once */
            found = &list[i];
        }
    return found;
}

static void names_lead_to_the_file_wherever_it_lies(void **state) {
    struct fixture *f = *state;
    char base[128];
    make_branch(f, base, sizeof base);
    open_views(f);
    static const struct {
        enum lfs_file_kind kind;
        const char *name, *directory;
    } rules[] = {
        {LFS_FILE_DATA, "own.lance", "tree/f/data"},
        {LFS_FILE_DATA, "m.lance", "data"},
        {LFS_FILE_DELETION, "0-1-7.arrow", "_deletions"},
        {LFS_FILE_INDEX, INDEX_UUID, "_indices"},
        {LFS_FILE_INDEX, INDEX_UUID "/page.lance", "_indices"},
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        struct lfs_view_entry entry;
        assert_int_equal(lfs_views_find(f->views, "tree/f", rules[i].kind, rules[i].name, f->arena, &entry, NULL), 0);
        assert_true(entry.reached);
        assert_true(entry.location.inside);
        assert_string_equal(entry.location.directory, rules[i].directory);
    }
    static const char *const nowhere[] = {"none.lance", "../m.lance", "m.lance/", "", ".", "..", "a//b", "data"};
    for (size_t i = 0; i < sizeof nowhere / sizeof *nowhere; i++) {
        struct lfs_view_entry entry;
        assert_int_equal(lfs_views_find(f->views, "tree/f", LFS_FILE_DATA, nowhere[i], f->arena, &entry, NULL),
                         -ENOENT);
    }
}

static void a_listing_is_what_the_tip_uses_and_what_is_there(void **state) {
    struct fixture *f = *state;
    char base[128];
    struct lfs_view_entry *list;
    size_t n;
    make_branch(f, base, sizeof base);
    put_text(f, "t.lance/tree/f/data/stray.lance", "stray");
    put_text(f, "t.lance/data/own/0.blob", "not f's");
    put_text(f, "t.lance/data/m/0.blob", "goes with m.lance");
    put_text(f, "t.lance/tree/f/data/_versions/x", "the branch f/data");
    open_views(f);
    assert_int_equal(lfs_views_list(f->views, "tree/f", LFS_FILE_DATA, "", f->arena, &list, &n, NULL), 0);
    assert_int_equal(n, 4);
    assert_non_null(entry_named(list, n, "own.lance"));
    assert_non_null(entry_named(list, n, "stray.lance"));
    const struct lfs_view_entry *inherited = entry_named(list, n, "m.lance"), *side = entry_named(list, n, "m");
    assert_true(inherited && inherited->reached && inherited->st.st_size == 4);
    assert_true(side && side->is_dir);
    assert_int_equal(lfs_views_list(f->views, "tree/f", LFS_FILE_DATA, "m", f->arena, &list, &n, NULL), 0);
    assert_int_equal(n, 1);
    assert_int_equal(lfs_views_list(f->views, "tree/f", LFS_FILE_INDEX, INDEX_UUID, f->arena, &list, &n, NULL), 0);
    assert_int_equal(n, 1);
    assert_string_equal(list[0].name, "page.lance");
}

static void an_index_is_looked_for_in_every_base(void **state) {
    struct fixture *f = *state;
    char base[128], empty[128];
    struct lfs_view_entry entry;
    make_branch(f, base, sizeof base);
    put_text(f, "empty.lance/data/x", "");
    path_in(f, "empty.lance", empty, sizeof empty);
    struct sample *s = new_sample(f, 3, "f");
    add_base(s, 0, base);
    add_base(s, 1, empty);
    add_index(s, 1); /* stock names the base that does not hold it */
    write_manifest(f, s, "tree/f");
    open_views(f);
    assert_int_equal(
        lfs_views_find(f->views, "tree/f", LFS_FILE_INDEX, INDEX_UUID "/page.lance", f->arena, &entry, NULL), 0);
    assert_true(entry.reached);
}

static void a_base_that_is_gone_leaves_name_and_size(void **state) {
    struct fixture *f = *state;
    struct sample *s = new_sample(f, 1, NULL);
    struct lfs_view_entry entry, *list;
    size_t n;
    add_base(s, 0, "/nowhere/other.lance");
    add_base(s, 1, "s3://bucket/other.lance");
    add_file(s, "gone.lance", 0, 1234);
    add_file(s, "far.lance", 1, 99);
    write_manifest(f, s, "");
    open_views(f);
    assert_int_equal(lfs_views_list(f->views, "", LFS_FILE_DATA, "", f->arena, &list, &n, NULL), 0);
    assert_int_equal(n, 2);
    assert_false(list[0].reached || list[1].reached);
    assert_int_equal(lfs_views_find(f->views, "", LFS_FILE_DATA, "gone.lance", f->arena, &entry, NULL), 0);
    assert_false(entry.reached);
    assert_int_equal(entry.size, 1234);
    assert_int_equal(entry.cause, -EIO);
}

static void two_files_of_one_name_have_two_names(void **state) {
    struct fixture *f = *state;
    char other[128];
    struct sample *s = new_sample(f, 1, NULL);
    struct lfs_view_entry entry, *list;
    struct lfs_rendered_info info;
    struct lfs_rendered *rendered;
    struct lfs_manifest shown;
    char name[LFS_MANIFEST_NAME_SIZE];
    size_t n;
    int fd;
    path_in(f, "other.lance", other, sizeof other);
    put_text(f, "other.lance/data/x.lance", "theirs");
    put_text(f, "t.lance/data/x.lance", "own");
    add_base(s, 5, other);
    add_file(s, "x.lance", 5, 6);
    add_file(s, "x.lance", -1, 3);
    write_manifest(f, s, "");
    open_views(f);
    char *alias = lfs_alias_data_name(f->arena, "x.lance", other);
    assert_int_equal(strlen(alias), strlen("x-0123456789abcdef.lance"));
    assert_int_equal(lfs_views_list(f->views, "", LFS_FILE_DATA, "", f->arena, &list, &n, NULL), 0);
    assert_int_equal(n, 2);
    assert_int_equal(entry_named(list, n, "x.lance")->st.st_size, 3);
    assert_int_equal(entry_named(list, n, alias)->st.st_size, 6);
    assert_int_equal(lfs_views_find(f->views, "", LFS_FILE_DATA, alias, f->arena, &entry, NULL), 0);
    assert_int_equal(entry.st.st_size, 6);
    lfs_manifest_name(LFS_NAMING_V2, 1, name);
    assert_int_equal(lfs_views_open(f->views, "", LFS_RENDER_MANIFEST, name, &rendered, &fd, &info, NULL), 0);
    assert_int_equal(lfs_manifest_decode(rendered->bytes, rendered->size, f->arena, name, &shown, NULL), 0);
    assert_string_equal(shown.message->fragments[0]->files[0]->path, alias);
    assert_string_equal(shown.message->fragments[1]->files[0]->path, "x.lance");
    lfs_rendered_release(rendered);
}

static void links_of_one_file_need_one_name(void **state) {
    struct fixture *f = *state;
    char other[128], from[128], to[128];
    struct sample *s = new_sample(f, 1, NULL);
    struct lfs_aliases aliases;
    struct lfs_version *version;
    path_in(f, "other.lance", other, sizeof other);
    put_text(f, "other.lance/data/x.lance", "same");
    put_text(f, "t.lance/data/y", "");
    path_in(f, "other.lance/data/x.lance", from, sizeof from);
    path_in(f, "t.lance/data/x.lance", to, sizeof to);
    assert_int_equal(link(from, to), 0);
    add_base(s, 5, other);
    add_file(s, "x.lance", 5, 4);
    add_file(s, "x.lance", -1, 4);
    write_manifest(f, s, "");
    open_views(f);
    assert_int_equal(lfs_dataset_version(f->ds, "", 1, &version, NULL), 0);
    assert_int_equal(lfs_aliases_find(version, f->arena, &aliases, NULL), 0);
    assert_int_equal(aliases.map.count, 0);
    lfs_version_release(version);
}

static void what_only_an_older_version_used_is_found(void **state) {
    struct fixture *f = *state;
    char base[128];
    struct lfs_view_entry entry;
    make_branch(f, base, sizeof base);
    struct sample *s = new_sample(f, 3, "f"); /* without the base path that version 2 has */
    add_file(s, "own.lance", -1, 3);
    write_manifest(f, s, "tree/f");
    open_views(f);
    assert_int_equal(lfs_views_find(f->views, "tree/f", LFS_FILE_DATA, "m.lance", f->arena, &entry, NULL), 0);
    assert_true(entry.reached);
    assert_int_equal(lfs_views_find(f->views, "tree/f", LFS_FILE_DATA, "none.lance", f->arena, &entry, NULL), -ENOENT);
}

static void a_commit_is_seen_at_the_next_look(void **state) {
    struct fixture *f = *state;
    char base[128];
    struct lfs_view_tip tip;
    struct lfs_view_entry *list;
    size_t n;
    make_branch(f, base, sizeof base);
    open_views(f);
    for (uint64_t version = 2; version < 20; version++) {
        assert_int_equal(lfs_views_tip(f->views, "tree/f", &tip, NULL), 0);
        assert_int_equal(tip.number, version);
        assert_int_equal(tip.time.tv_sec, 1700000000 + version);
        assert_int_equal(lfs_views_list(f->views, "tree/f", LFS_FILE_DATA, "", f->arena, &list, &n, NULL), 0);
        assert_int_equal(n, version == 2 ? 2 : 1);
        struct sample *s = new_sample(f, version + 1, "f");
        add_file(s, "own.lance", -1, 3);
        write_manifest(f, s, "tree/f");
    }
}

int main(void) {
#define VIEW_TEST(test) cmocka_unit_test_setup_teardown(test, make, drop)
    const struct CMUnitTest tests[] = {
        VIEW_TEST(flat_manifest_stays_as_it_is),
        VIEW_TEST(everything_that_names_a_place_goes),
        VIEW_TEST(a_clone_names_no_place),
        VIEW_TEST(rendered_bytes_have_the_size_that_stat_says),
        VIEW_TEST(a_manifest_without_bases_is_shown_as_it_is_stored),
        VIEW_TEST(a_broken_manifest_fails_alone),
        VIEW_TEST(names_lead_to_the_file_wherever_it_lies),
        VIEW_TEST(a_listing_is_what_the_tip_uses_and_what_is_there),
        VIEW_TEST(an_index_is_looked_for_in_every_base),
        VIEW_TEST(a_base_that_is_gone_leaves_name_and_size),
        VIEW_TEST(two_files_of_one_name_have_two_names),
        VIEW_TEST(links_of_one_file_need_one_name),
        VIEW_TEST(what_only_an_older_version_used_is_found),
        VIEW_TEST(a_commit_is_seen_at_the_next_look),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
