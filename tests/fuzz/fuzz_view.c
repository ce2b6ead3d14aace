/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The view and its inverse. The bytes choose a manifest of the branch f among a few base paths, names and fragments, so that
 * files of several bases often share a name. What the view shows is committed through it as the next version; stored, that
 * version must name, file by file, what the first one names, and be shown as the same again.
 */
#include "disk.h"

#include "format/deletion.h"
#include "table/view.h"

enum { FRAGMENTS_MAX = 5, FILES_MAX = 2, BASES_MAX = 5, INDEXES_MAX = 2, VERSION = 2 };

/* Base paths are looked for under other names (map=), so that inputs do not depend on where they run. */
static const struct {
    const char *text, *real; /* a data set, or (plain) a directory of data files */
    bool plain;
} bases[] = {{"/fuzz/t.lance", "t.lance", false},  {"/fuzz/t.lance/tree/g", "t.lance/tree/g", false},
             {"/fuzz/o.lance", "o.lance", false},  {"/fuzz/plain", "plain", true},
             {"/fuzz/gone.lance", NULL, false},    {"file:///fuzz/o.lance", "o.lance", false},
             {"s3://bucket/x.lance", NULL, false}, {"relative/x.lance", NULL, false}};
enum { N_BASES = sizeof bases / sizeof *bases };

static const char *names[8] = {"a.lance", "b.lance", "own.lance", "nowhere.lance",
                               "sub/a.lance"}; /* the rest: aliases */
enum { N_NAMES = sizeof names / sizeof *names };
static struct lfs_arena *forever;

struct source {
    const uint8_t *data;
    size_t size;
};
static uint64_t take(struct source *s, uint64_t below) { return fuzz_number(&s->data, &s->size, 1) % below; }

static void files_in(const char *home, const char *data) {
    char path[PATH_MAX];
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s%s%s", home, data, names[i]);
        disk_put(path, home, strlen(home)); /* contents differ from home to home */
    }
    if (!*data)
        return;
    for (unsigned i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/_deletions/%u-1-%u.arrow", home, i, 7 + i);
        disk_put(path, home, strlen(home));
        snprintf(path, sizeof path, "%s/_indices/%u1111111-1111-1111-1111-111111111111/page", home, i);
        disk_put(path, home, strlen(home));
    }
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc, (void)argv;
    disk_make();
    forever = lfs_arena_new();
    for (size_t i = 0; i < 3; i++)
        names[5 + i] = lfs_alias_data_name(forever, "a.lance", bases[i].text);
    static const char *const homes[] = {"t.lance", "t.lance/tree/f", "t.lance/tree/g", "o.lance"};
    for (size_t i = 0; i < sizeof homes / sizeof *homes; i++)
        files_in(homes[i], "/data/");
    files_in("plain", "");
    disk_put("t.lance/tree/f/data/own.lance", "own", 3);
    disk_put("t.lance/_versions/none", "", 0);
    disk_put("t.lance/tree/f/_versions/none", "", 0);
    return 0;
}

/* --- a manifest out of bytes --- */

static void place(struct source *s, const LanceManifest *m, protobuf_c_boolean *has, uint32_t *id) {
    uint64_t choice = take(s, m->n_base_paths + 1);
    *has = choice > 0;
    *id = choice ? m->base_paths[choice - 1]->id : 0;
}

static void make_bases(struct source *s, struct lfs_arena *arena, LanceManifest *m) {
    size_t n = take(s, BASES_MAX + 1);
    m->base_paths = LFS_NEW_ARRAY(arena, LanceBasePath *, n + 1);
    for (size_t i = 0; i < n; i++) {
        LanceBasePath *base = LFS_NEW(arena, LanceBasePath);
        size_t which = take(s, N_BASES);
        lance__table__base_path__init(base);
        base->has_id = base->has_is_dataset_root = true;
        base->id = (uint32_t)(i * 3 + take(s, 3)); /* with gaps, each once */
        base->path = (char *)bases[which].text;
        base->is_dataset_root = !bases[which].plain;
        m->base_paths[m->n_base_paths++] = base;
    }
}

static LanceFragment *make_fragment(struct source *s, struct lfs_arena *arena, const LanceManifest *m, uint64_t id) {
    LanceFragment *fragment = LFS_NEW(arena, LanceFragment);
    lance__table__data_fragment__init(fragment);
    fragment->has_id = fragment->has_physical_rows = true;
    fragment->id = id;
    fragment->physical_rows = 10;
    fragment->files = LFS_NEW_ARRAY(arena, LanceDataFile *, FILES_MAX);
    for (size_t n = 1 + take(s, FILES_MAX); fragment->n_files < n;) {
        LanceDataFile *file = LFS_NEW(arena, LanceDataFile);
        lance__table__data_file__init(file);
        file->path = (char *)names[take(s, N_NAMES)];
        place(s, m, &file->has_base_id, &file->base_id);
        fragment->files[fragment->n_files++] = file;
    }
    uint64_t deletion = take(s, 4);
    if (deletion < 2)
        return fragment;
    fragment->deletion_file = LFS_NEW(arena, LanceDeletionFile);
    lance__table__deletion_file__init(fragment->deletion_file);
    fragment->deletion_file->has_id = fragment->deletion_file->has_read_version = true;
    fragment->deletion_file->id = 5 + deletion;
    fragment->deletion_file->read_version = 1;
    place(s, m, &fragment->deletion_file->has_base_id, &fragment->deletion_file->base_id);
    return fragment;
}

static LanceIndexSection *make_indexes(struct source *s, struct lfs_arena *arena, const LanceManifest *m) {
    LanceIndexSection *section = LFS_NEW(arena, LanceIndexSection);
    size_t n = take(s, INDEXES_MAX + 1);
    if (!n)
        return NULL;
    lance__table__index_section__init(section);
    section->indices = LFS_NEW_ARRAY(arena, LanceIndex *, n);
    for (size_t i = 0; i < n; i++) {
        LanceIndex *index = LFS_NEW(arena, LanceIndex);
        Lance__Table__UUID *uuid = LFS_NEW(arena, Lance__Table__UUID);
        lance__table__index_metadata__init(index);
        lance__table__uuid__init(uuid);
        uuid->has_uuid = true;
        uuid->uuid.len = 16;
        uuid->uuid.data = lfs_alloc(arena, 16);
        memset(uuid->uuid.data, 0x11, 16);
        uuid->uuid.data[0] = (uint8_t)(i << 4 | 1);
        index->uuid = uuid;
        place(s, m, &index->has_base_id, &index->base_id);
        section->indices[section->n_indices++] = index;
    }
    return section;
}

static void make_manifest(struct source *s, struct lfs_arena *arena, struct lfs_manifest *out) {
    LanceManifest *m = LFS_NEW(arena, LanceManifest);
    lance__table__manifest__init(m);
    *out = (struct lfs_manifest){.message = m};
    m->has_version = true;
    m->version = VERSION;
    m->branch = take(s, 4) ? (char *)"f" : NULL;
    make_bases(s, arena, m);
    size_t n = take(s, FRAGMENTS_MAX + 1);
    m->fragments = LFS_NEW_ARRAY(arena, LanceFragment *, n + 1);
    for (size_t i = 0; i < n; i++)
        m->fragments[m->n_fragments++] = make_fragment(s, arena, m, i);
    out->indices = make_indexes(s, arena, m);
    if (take(s, 2)) {
        LanceTransaction *transaction = LFS_NEW(arena, LanceTransaction);
        Lance__Table__Append *append = LFS_NEW(arena, Lance__Table__Append);
        lance__table__transaction__init(transaction);
        lance__table__append__init(append);
        transaction->operation_case = LANCE__TABLE__TRANSACTION__OPERATION_APPEND;
        transaction->append = append;
        append->n_fragments = m->n_fragments;
        append->fragments = m->fragments;
        out->transaction = transaction;
    }
    lfs_manifest_set_features(m);
}

/* --- the way there and back --- */

/* For a person who looks into an input: FUZZ_VERBOSE=1. */
static void tell(const char *what, const LanceManifest *m) {
    if (!getenv("FUZZ_VERBOSE"))
        return;
    fprintf(stderr, "%s %s\n", what, m->branch ? m->branch : "-");
    for (size_t i = 0; i < m->n_base_paths; i++)
        fprintf(stderr, "  base %u %s\n", m->base_paths[i]->id, m->base_paths[i]->path);
    for (size_t i = 0; i < m->n_fragments; i++) {
        const LanceFragment *f = m->fragments[i];
        for (size_t j = 0; j < f->n_files; j++)
            fprintf(stderr, "  %llu %s %d %u\n", (unsigned long long)f->id, f->files[j]->path, f->files[j]->has_base_id,
                    f->files[j]->base_id);
        if (f->deletion_file)
            fprintf(stderr, "  %llu deletion %llu %d %u\n", (unsigned long long)f->id,
                    (unsigned long long)f->deletion_file->id, f->deletion_file->has_base_id, f->deletion_file->base_id);
    }
}

static void manifest_path(uint64_t version, char *path, size_t size) {
    char name[LFS_MANIFEST_NAME_SIZE];
    lfs_manifest_name(LFS_NAMING_V2, version, name);
    snprintf(path, size, "t.lance/tree/f/_versions/%s", name);
}

static void store(const struct lfs_manifest *manifest) {
    LFS_AUTO_BUF bytes = {0};
    char path[128];
    FUZZ_MUST(lfs_manifest_encode(manifest, &bytes, NULL) == 0);
    manifest_path(manifest->message->version, path, sizeof path);
    disk_put(path, bytes.data, bytes.length);
}

/* The manifest as the view shows it. */
static void shown(struct lfs_views *views, uint64_t version, struct lfs_arena *arena, struct lfs_manifest *out) {
    char name[LFS_MANIFEST_NAME_SIZE];
    struct lfs_rendered *rendered;
    struct lfs_rendered_info info;
    int fd = -1;
    lfs_manifest_name(LFS_NAMING_V2, version, name);
    FUZZ_MUST(lfs_views_open(views, "tree/f", LFS_RENDER_MANIFEST, name, &rendered, &fd, &info, NULL) == 0);
    size_t size = rendered ? rendered->size : (size_t)info.size;
    uint8_t *bytes = lfs_alloc(arena, size);
    if (rendered)
        memcpy(bytes, rendered->bytes, size);
    else
        FUZZ_MUST(pread(fd, bytes, size, 0) == (ssize_t)size);
    lfs_rendered_release(rendered);
    if (fd >= 0)
        close(fd);
    FUZZ_MUST((off_t)size == info.size);
    FUZZ_MUST(lfs_manifest_decode(bytes, size, arena, "shown", out, NULL) == 0);
    FUZZ_MUST(!out->message->n_base_paths && !out->message->branch);
}

struct named {
    const struct lfs_version *version;
    enum lfs_file_kind kind;
    bool has_base;
    uint32_t base;
    const char *name;
};

/* One record of both versions: the same words, or words that mean one place. */
static void same_place(const struct named *a, const struct named *b, struct lfs_arena *arena) {
    if (a->has_base == b->has_base && (!a->has_base || a->base == b->base) && strcmp(a->name, b->name) == 0)
        return;
    const LanceBasePath *p = a->has_base ? lfs_manifest_base(a->version->manifest.message, a->base) : NULL;
    const LanceBasePath *q = b->has_base ? lfs_manifest_base(b->version->manifest.message, b->base) : NULL;
    if (p && q && strcmp(p->path, q->path) == 0 && strcmp(a->name, b->name) == 0)
        return;
    struct lfs_location x, y;
    errint_t rx =
        lfs_locate(a->version, a->kind, a->has_base ? (int64_t)a->base : LFS_NO_BASE, a->name, arena, &x, NULL);
    errint_t ry =
        lfs_locate(b->version, b->kind, b->has_base ? (int64_t)b->base : LFS_NO_BASE, b->name, arena, &y, NULL);
    FUZZ_MUST(rx == 0 && ry == 0);
    FUZZ_MUST(x.inside == y.inside && strcmp(x.directory, y.directory) == 0 && strcmp(x.name, y.name) == 0);
}

static struct named data_name(const struct lfs_version *v, const LanceDataFile *f) {
    return (struct named){v, LFS_FILE_DATA, f->has_base_id, f->base_id, f->path};
}

static struct named deletion_name(const struct lfs_version *v, const LanceFragment *f, struct lfs_arena *arena) {
    char *name = lfs_alloc(arena, 80);
    lfs_deletion_file_name(f->id, f->deletion_file, name, 80);
    return (struct named){v, LFS_FILE_DELETION, f->deletion_file->has_base_id, f->deletion_file->base_id, name};
}

static void same_fragments(const struct lfs_version *x, LanceFragment **a, const struct lfs_version *y,
                           LanceFragment **b, size_t n, struct lfs_arena *arena) {
    for (size_t i = 0; i < n; i++) {
        FUZZ_MUST(a[i]->id == b[i]->id && a[i]->n_files == b[i]->n_files);
        FUZZ_MUST(!a[i]->deletion_file == !b[i]->deletion_file);
        for (size_t j = 0; j < a[i]->n_files; j++) {
            struct named p = data_name(x, a[i]->files[j]), q = data_name(y, b[i]->files[j]);
            same_place(&p, &q, arena);
        }
        if (a[i]->deletion_file) {
            struct named p = deletion_name(x, a[i], arena), q = deletion_name(y, b[i], arena);
            same_place(&p, &q, arena);
        }
    }
}

static void same_files(const struct lfs_version *x, const struct lfs_version *y, struct lfs_arena *arena) {
    const struct lfs_manifest *a = &x->manifest, *b = &y->manifest;
    FUZZ_MUST(a->message->n_fragments == b->message->n_fragments);
    same_fragments(x, a->message->fragments, y, b->message->fragments, a->message->n_fragments, arena);
    FUZZ_MUST(!a->transaction == !b->transaction && !a->indices == !b->indices);
    if (a->transaction) {
        FUZZ_MUST(a->transaction->append->n_fragments == b->transaction->append->n_fragments);
        same_fragments(x, a->transaction->append->fragments, y, b->transaction->append->fragments,
                       a->transaction->append->n_fragments, arena);
    }
    for (size_t i = 0; a->indices && i < a->indices->n_indices; i++) {
        const LanceIndex *p = a->indices->indices[i], *q = b->indices->indices[i];
        struct named px = {x, LFS_FILE_INDEX, p->has_base_id, p->base_id, "index"};
        struct named qx = {y, LFS_FILE_INDEX, q->has_base_id, q->base_id, "index"};
        same_place(&px, &qx, arena);
    }
}

static void same_bytes(const struct lfs_manifest *a, const struct lfs_manifest *b) {
    LFS_AUTO_BUF x = {0}, y = {0};
    FUZZ_MUST(lfs_manifest_encode(a, &x, NULL) == 0 && lfs_manifest_encode(b, &y, NULL) == 0);
    FUZZ_MUST(x.length == y.length && memcmp(x.data, y.data, x.length) == 0);
}

static void there_and_back(struct lfs_views *views, const char *branch, struct lfs_arena *arena) {
    struct lfs_dataset *ds = lfs_views_dataset(views);
    struct lfs_manifest flat, next, again;
    struct lfs_version *before, *after;
    struct lfs_error err = {0};
    bool changed;
    shown(views, VERSION, arena, &flat);
    tell("shown", flat.message);
    flat.message->version = VERSION + 1;
    if (lfs_views_restore_manifest(views, "tree/f", branch, &flat, "the commit", arena, &next, &changed, &err) < 0) {
        fprintf(stderr, "%s\n", err.message);
        FUZZ_MUST(!"what the view shows can be committed");
    }
    tell("restored", next.message);
    store(&next);
    FUZZ_MUST(lfs_dataset_version(ds, "tree/f", VERSION, &before, NULL) == 0);
    FUZZ_MUST(lfs_dataset_version(ds, "tree/f", VERSION + 1, &after, NULL) == 0);
    same_files(before, after, arena);
    lfs_version_release(before);
    lfs_version_release(after);
    shown(views, VERSION + 1, arena, &again);
    tell("shown again", again.message);
    same_bytes(&flat, &again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct source s = {data, size};
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    struct lfs_manifest manifest;
    make_manifest(&s, arena, &manifest);
    tell("stored", manifest.message);
    store(&manifest);

    char path[PATH_MAX], o[PATH_MAX], plain[PATH_MAX];
    const char *const old[] = {"/fuzz/o.lance", "/fuzz/plain", NULL};
    const char *const new[] = {disk_path("o.lance", o), disk_path("plain", plain), NULL};
    struct lfs_dataset_options options = {.map_old = old, .map_new = new};
    struct lfs_dataset *ds;
    struct lfs_views *views;
    FUZZ_MUST(lfs_dataset_open(disk_path("t.lance", path), &options, &ds, NULL) == 0);
    FUZZ_MUST(lfs_views_new(ds, 0, &views, NULL) == 0);
    there_and_back(views, manifest.message->branch, arena);
    lfs_views_free(views);
    lfs_dataset_close(ds);
    for (uint64_t version = VERSION; version <= VERSION + 1; version++) {
        char name[128];
        manifest_path(version, name, sizeof name);
        unlink(disk_path(name, path));
    }
    return 0;
}
