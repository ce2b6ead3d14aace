/* SPDX-License-Identifier: Apache-2.0 */
/* One manifest and everything that it names. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <uuid/uuid.h>

#include "format/deletion.h"
#include "format/rowids.h"
#include "format/wire.h"
#include "store/file.h"
#include "table/location.h"
#include "table/transactions.h"
#include "util/bitmap.h"
#include "util/cleanup.h"
#include "util/limits.h"
#include "verbs/fsck_impl.h"

struct check {
    struct lfs_fsck *f;
    const struct lfs_home *home;
    const char *what; /* the manifest's path */
    struct lfs_arena *arena;
    struct lfs_version version; /* as much of it as finding files takes */
    const LanceManifest *m;
    bool newest;
};

static const char *branch_of(const struct check *c) {
    return c->home->branch ? c->home->branch->name : *c->home->dir ? c->home->dir : "main";
}

/* --- files --- */

static void look(const struct check *c, const struct lfs_location *l, struct lfs_checked *out) {
    struct stat st;
    struct lfs_error why;
    LFS_AUTO_FD fd = lfs_location_open(c->f->ds, l, &why);
    if (fd < 0 || fstat(fd, &st) < 0) {
        out->why = lfs_strdup(c->f->arena, fd < 0 ? why.message : "cannot stat it");
        return;
    }
    out->there = true;
    out->size = (uint64_t)st.st_size;
    lfs_fsck_look_inside(fd, out->size, out);
}

/* Each file is looked at once, however many versions name it. NULL when memory is short. */
static const struct lfs_checked *checked(const struct check *c, const struct lfs_location *l) {
    struct lfs_fsck *f = c->f;
    char *key = lfs_sprintf(c->arena, "%s%s/%s", l->inside ? "" : "=", l->directory, l->name);
    struct lfs_checked *known = key ? lfs_map_get(&f->files, key) : NULL;
    if (known || !key)
        return known;
    known = LFS_NEW(f->arena, struct lfs_checked);
    char *own = lfs_strdup(f->arena, key);
    if (!known || !own || !lfs_map_put(&f->files, own, known))
        return NULL;
    look(c, l, known);
    return known;
}

/* A base path by which a file was found inside this data set, though its text leads elsewhere today: the data set was
 * moved, or copied. */
static errint_t note_moved(const struct check *c, uint32_t base_id, const struct lfs_location *l) {
    struct stat here, there;
    struct lfs_fsck *f = c->f;
    const LanceBasePath *b = lfs_manifest_base(c->m, base_id);
    size_t length = strlen(l->directory);
    if (!l->inside || !b || !b->path || !b->is_dataset_root || lfs_map_get(&f->moved, b->path))
        return 0;
    const char *slash = strrchr(l->directory, '/');
    char *dir = slash ? lfs_strndup(c->arena, l->directory, (size_t)(slash - l->directory)) : lfs_strdup(c->arena, "");
    char *key = lfs_sprintf(c->arena, "base %s", b->path), *path = lfs_base_path(b->path, c->arena);
    if (!dir || !key || !length)
        return lfs_fail_nomem(f->err);
    if (lfs_map_get(&f->files, key))
        return 0; /* it leads here */
    if (!path) {
        lfs_fsck_note(f,
                      "the base path %s is relative: stock Lance finds the files only where it was started in the "
                      "right directory",
                      b->path);
        return 0;
    }
    LFS_AUTO_FD fd = lfs_dataset_open_beneath(f->ds, *dir ? dir : ".", O_PATH | O_DIRECTORY);
    bool same = fd >= 0 && fstat(fd, &here) == 0 && stat(path, &there) == 0 && here.st_dev == there.st_dev &&
                here.st_ino == there.st_ino;
    char *own = lfs_strdup(f->arena, same ? key : b->path);
    char *next = lfs_join(f->arena, lfs_dataset_path(f->ds), dir);
    struct lfs_checked *none = LFS_NEW(f->arena, struct lfs_checked);
    if (!own || !next || !none || !(same ? lfs_map_put(&f->files, own, none) : lfs_map_put(&f->moved, own, next)))
        return lfs_fail_nomem(f->err);
    return 0;
}

/* The file's place and state; *out NULL when it has none (said already). */
static errint_t find_file(const struct check *c, enum lfs_file_kind kind, bool has_base, uint32_t base,
                          const char *name, struct lfs_location *l, const struct lfs_checked **out) {
    struct lfs_error why;
    *out = NULL;
    errint_t result = lfs_locate(&c->version, kind, has_base ? (int64_t)base : LFS_NO_BASE, name, c->arena, l, &why);
    if (result == -ENOMEM)
        return lfs_fail_nomem(c->f->err);
    if (result == -EOPNOTSUPP)
        lfs_fsck_note(c->f, "%s", why.message);
    else if (result < 0)
        lfs_fsck_error(c->f, "%s: %s", c->what, why.message);
    if (result < 0)
        return 0;
    *out = checked(c, l);
    if (!*out)
        return lfs_fail_nomem(c->f->err);
    if (!(*out)->there)
        lfs_fsck_error(c->f,
                       "%s/%s is gone, or cannot be read (%s): version %" PRIu64
                       " of %s needs it; restore the file, or an older version",
                       l->directory, l->name, (*out)->why ? (*out)->why : "", c->version.number, branch_of(c));
    return has_base && (*out)->there ? note_moved(c, base, l) : 0;
}

static errint_t check_data_file(const struct check *c, const LanceFragment *frag, const LanceDataFile *file) {
    struct lfs_location l;
    const struct lfs_checked *s;
    const Lance__Table__DataStorageFormat *format = c->m->data_format;
    unsigned major = 0, minor = 0;
    bool mixed = (c->m->reader_feature_flags & 256) != 0;
    if (!file->path || !*file->path) {
        lfs_fsck_error(c->f, "%s: fragment %" PRIu64 " has a data file without a name", c->what, frag->id);
        return 0;
    }
    if (file->file_major_version >= 2 && file->n_column_indices < file->n_fields)
        lfs_fsck_error(c->f, "%s: data file %s does not tell where its columns are", c->what, file->path);
    if (format && format->version && !mixed && sscanf(format->version, "%u.%u", &major, &minor) == 2 && major >= 2 &&
        (file->file_major_version != major || file->file_minor_version != minor))
        lfs_fsck_error(c->f, "%s: data file %s is of format %u.%u in a table of format %s: not every engine opens that",
                       c->what, file->path, file->file_major_version, file->file_minor_version, format->version);
    LFS_TRY(find_file(c, LFS_FILE_DATA, file->has_base_id, file->base_id, file->path, &l, &s));
    if (!s || !s->there)
        return 0;
    if (file->file_size_bytes && file->file_size_bytes != s->size)
        lfs_fsck_error(c->f,
                       "%s/%s has %" PRIu64 " bytes, not the %" PRIu64 " that it was written with: it was cut or replaced; "
                       "restore the file",
                       l.directory, l.name, s->size, file->file_size_bytes);
    else if (!s->is_lance)
        lfs_fsck_error(c->f, "%s/%s is no Lance file: it was overwritten; restore the file", l.directory, l.name);
    else if (s->has_rows && frag->physical_rows && s->rows != frag->physical_rows)
        lfs_fsck_error(c->f,
                       "%s/%s holds %" PRIu64 " rows, but %s says that fragment %" PRIu64 " has %" PRIu64
                       ": rows are not seen, and a compaction drops them; restore an older version",
                       l.directory, l.name, s->rows, c->what, frag->id, frag->physical_rows);
    return 0;
}

/* --- deletion files --- */

static errint_t read_deletions(const struct check *c, const LanceFragment *frag, const struct lfs_location *l,
                               roaring_bitmap_t **out, struct lfs_error *why) {
    LFS_AUTO_BUF bytes = {0};
    LFS_AUTO_FD fd = lfs_location_open(c->f->ds, l, why);
    if (fd < 0)
        return fd;
    LFS_TRY(lfs_read_fd(fd, l->name, LFS_DELETION_BYTES_MAX, &bytes, NULL, why));
    return lfs_deletion_decode(frag->deletion_file, bytes.data, bytes.length, frag->physical_rows, l->name, out, why);
}

/* Decoded once for each count that some manifest tells of it. */
static errint_t check_deletion_file(const struct check *c, const LanceFragment *frag) {
    const LanceDeletionFile *d = frag->deletion_file;
    struct lfs_location l;
    const struct lfs_checked *s;
    struct lfs_error why;
    char name[80];
    AUTO_BITMAP *deleted = NULL;
    lfs_deletion_file_name(frag->id, d, name, sizeof name);
    LFS_TRY(find_file(c, LFS_FILE_DELETION, d->has_base_id, d->base_id, name, &l, &s));
    if (d->num_deleted_rows > frag->physical_rows)
        lfs_fsck_error(c->f, "%s: %" PRIu64 " of the %" PRIu64 " rows of fragment %" PRIu64 " are said to be deleted",
                       c->what, d->num_deleted_rows, frag->physical_rows, frag->id);
    if (!s || !s->there)
        return 0;
    char *key = lfs_sprintf(c->f->arena, "deleted %s/%s %" PRIu64 " %" PRIu64, l.directory, l.name, frag->physical_rows,
                            d->num_deleted_rows);
    if (!key)
        return lfs_fail_nomem(c->f->err);
    if (lfs_map_get(&c->f->said, key))
        return 0;
    if (!lfs_map_put(&c->f->said, key, key))
        return lfs_fail_nomem(c->f->err);
    errint_t result = read_deletions(c, frag, &l, &deleted, &why);
    if (result == -ENOMEM)
        return lfs_fail_nomem(c->f->err);
    if (result < 0) {
        lfs_fsck_error(c->f,
                       "%s/%s: %s; version %" PRIu64
                       " of %s cannot tell which rows live: restore the file, or an older version",
                       l.directory, l.name, why.message, c->version.number, branch_of(c));
        return 0;
    }
    uint64_t n = roaring_bitmap_get_cardinality(deleted);
    if (d->num_deleted_rows && d->num_deleted_rows != n) /* 0: counted anew by every engine */
        lfs_fsck_error(c->f, "%s/%s: holds %" PRIu64 " rows, %s says %" PRIu64 ": counts of rows are wrong",
                       l.directory, l.name, n, c->what, d->num_deleted_rows);
    return 0;
}

/* --- fragments --- */

static int by_id(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static errint_t check_fragment_ids(const struct check *c) {
    uint64_t *ids = LFS_NEW_ARRAY(c->arena, uint64_t, c->m->n_fragments + 1);
    if (!ids)
        return lfs_fail_nomem(c->f->err);
    for (size_t i = 0; i < c->m->n_fragments; i++)
        ids[i] = c->m->fragments[i]->id;
    qsort(ids, c->m->n_fragments, sizeof *ids, by_id);
    for (size_t i = 1; i < c->m->n_fragments; i++)
        if (ids[i] == ids[i - 1])
            lfs_fsck_error(c->f,
                           "%s: two fragments have the id %" PRIu64
                           ": deletes and updates lose rows; restore an older version",
                           c->what, ids[i]);
    uint64_t largest = c->m->n_fragments ? ids[c->m->n_fragments - 1] : 0;
    if (c->m->has_max_fragment_id && c->m->n_fragments && c->m->max_fragment_id < largest)
        lfs_fsck_error(c->f,
                       "%s: max_fragment_id is %" PRIu32 ", but there is a fragment %" PRIu64
                       ": the next append gives an id twice",
                       c->what, c->m->max_fragment_id, largest);
    return 0;
}

static errint_t check_fragments(const struct check *c) {
    LFS_TRY(check_fragment_ids(c));
    for (size_t i = 0; i < c->m->n_fragments; i++) {
        const LanceFragment *frag = c->m->fragments[i];
        if (!frag->n_files)
            lfs_fsck_error(c->f, "%s: fragment %" PRIu64 " has no data file", c->what, frag->id);
        for (size_t k = 0; k < frag->n_files; k++)
            LFS_TRY(check_data_file(c, frag, frag->files[k]));
        if (frag->deletion_file)
            LFS_TRY(check_deletion_file(c, frag));
    }
    return 0;
}

/* --- stable row ids: of the newest version; older ones are not written to any more --- */

static errint_t live_rows(const struct check *c, const LanceFragment *frag, roaring_bitmap_t **deleted) {
    struct lfs_location l;
    struct lfs_error why;
    char name[80];
    *deleted = NULL;
    if (!frag->deletion_file)
        return 0;
    const LanceDeletionFile *d = frag->deletion_file;
    lfs_deletion_file_name(frag->id, d, name, sizeof name);
    LFS_TRY(lfs_locate(&c->version, LFS_FILE_DELETION, d->has_base_id ? (int64_t)d->base_id : LFS_NO_BASE, name,
                       c->arena, &l, &why));
    return read_deletions(c, frag, &l, deleted, &why);
}

static errint_t collect_ids(const struct check *c, const LanceFragment *frag, uint64_t *all, size_t *n) {
    uint64_t *ids;
    struct lfs_error why;
    AUTO_BITMAP *deleted = NULL;
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    if (!arena)
        return lfs_fail_nomem(c->f->err);
    if (lfs_row_ids_of(frag, arena, c->what, &ids, &why) < 0) {
        lfs_fsck_error(c->f, "%s: fragment %" PRIu64 ": %s: the table does not open", c->what, frag->id, why.message);
        return 0;
    }
    if (live_rows(c, frag, &deleted) < 0)
        return 0; /* said already */
    for (uint64_t i = 0; i < frag->physical_rows; i++)
        if (!deleted || !roaring_bitmap_contains(deleted, (uint32_t)i))
            all[(*n)++] = ids[i];
    return 0;
}

static errint_t check_row_ids(const struct check *c) {
    uint64_t rows = 0;
    size_t n = 0;
    if (!c->newest || !lfs_manifest_has_stable_row_ids(c->m))
        return 0;
    for (size_t i = 0; i < c->m->n_fragments; i++)
        rows +=
            c->m->fragments[i]->physical_rows < LFS_ROW_IDS_MAX ? c->m->fragments[i]->physical_rows : LFS_ROW_IDS_MAX;
    if (rows > LFS_ROW_IDS_MAX) {
        lfs_fsck_note(c->f, "%s: too many rows to look for row ids that stand twice", c->what);
        return 0;
    }
    LFS_AUTO_FREE uint64_t *all = calloc(rows + 1, sizeof *all);
    if (!all)
        return lfs_fail_nomem(c->f->err);
    for (size_t i = 0; i < c->m->n_fragments; i++)
        LFS_TRY(collect_ids(c, c->m->fragments[i], all, &n));
    qsort(all, n, sizeof *all, by_id);
    for (size_t i = 1; i < n; i++)
        if (all[i] == all[i - 1]) {
            lfs_fsck_error(
                c->f, "%s: two rows have the row id %" PRIu64 ": updates and compaction fail; restore an older version",
                c->what, all[i]);
            break;
        }
    if (n && all[n - 1] >= c->m->next_row_id)
        lfs_fsck_error(
            c->f, "%s: next_row_id is %" PRIu64 ", but there is a row %" PRIu64 ": the next append gives an id twice",
            c->what, c->m->next_row_id, all[n - 1]);
    return 0;
}

/* --- base paths, indexes, transaction, lineage --- */

static void check_bases(const struct check *c) {
    for (size_t i = 0; i < c->m->n_base_paths; i++) {
        const LanceBasePath *b = c->m->base_paths[i];
        if (!b->path || !*b->path)
            lfs_fsck_error(c->f, "%s: base path %" PRIu32 " is empty", c->what, b->id);
        for (size_t k = i + 1; b->path && k < c->m->n_base_paths; k++)
            if (c->m->base_paths[k]->id == b->id && c->m->base_paths[k]->path &&
                strcmp(c->m->base_paths[k]->path, b->path))
                lfs_fsck_error(c->f, "%s: two base paths have the id %" PRIu32 "; engines use the last", c->what,
                               b->id);
    }
}

static bool index_lies_in(const struct check *c, int64_t base, const char *uuid) {
    struct lfs_location l;
    struct lfs_error why;
    if (lfs_locate(&c->version, LFS_FILE_INDEX, base, uuid, c->arena, &l, &why) < 0)
        return false;
    LFS_AUTO_FD fd = lfs_location_open_dir(c->f->ds, &l, &why);
    return fd >= 0;
}

static void check_index(const struct check *c, const LanceIndex *index) {
    char uuid[UUID_STR_LEN];
    const char *name = index->name ? index->name : "";
    if (!index->uuid || index->uuid->uuid.len != sizeof(uuid_t)) {
        lfs_fsck_error(c->f, "%s: index %s has no uuid", c->what, name);
        return;
    }
    uuid_unparse_lower(index->uuid->uuid.data, uuid);
    if (index->has_fragment_bitmap) {
        AUTO_BITMAP *covered = roaring_bitmap_portable_deserialize_safe((const char *)index->fragment_bitmap.data,
                                                                        index->fragment_bitmap.len);
        if (!covered)
            lfs_fsck_error(c->f, "%s: what index %s covers cannot be read: build it again", c->what, name);
    }
    bool elsewhere = index_lies_in(c, LFS_NO_BASE, uuid);
    if (index_lies_in(c, index->has_base_id ? (int64_t)index->base_id : LFS_NO_BASE, uuid))
        return;
    for (size_t i = 0; i < c->m->n_base_paths; i++)
        elsewhere |= index_lies_in(c, c->m->base_paths[i]->id, uuid);
    if (elsewhere) /* lance-format section 13: S1 and S2 */
        lfs_fsck_note(c->f,
                      "index %s (%s) of %s lies in another base than its manifest says, as stock Lance leaves it on a "
                      "branch of a branch: stock filters on it fail, through a mount they work; build it again",
                      name, uuid, branch_of(c));
    else
        lfs_fsck_error(c->f,
                       "the files of index %s (%s) are gone: filters, deletes and updates on version %" PRIu64
                       " of %s fail; drop the index or build it again",
                       name, uuid, c->version.number, branch_of(c));
}

static errint_t check_transaction(const struct check *c, const LanceTransaction *in_line) {
    LanceTransaction *file = NULL;
    struct lfs_error why;
    if (in_line && in_line->operation_case == LANCE__TABLE__TRANSACTION__OPERATION__NOT_SET)
        lfs_fsck_error(c->f, "%s: its transaction has no known operation: some engines do not open that", c->what);
    if (!c->m->transaction_file || c->home->kind != LFS_HOME_BRANCH)
        return 0;
    char *path =
        lfs_sprintf(c->arena, "%s%s_transactions/%s", c->home->dir, *c->home->dir ? "/" : "", c->m->transaction_file);
    if (!path)
        return lfs_fail_nomem(c->f->err);
    errint_t result = lfs_read_transaction(c->f->ds, path, c->arena, &file, &why);
    if (result == 0 && in_line && in_line->uuid && file->uuid && strcmp(in_line->uuid, file->uuid))
        lfs_fsck_error(c->f, "%s is not the transaction of version %" PRIu64 " of %s", path, c->version.number,
                       branch_of(c));
    if (result < 0 && in_line)
        lfs_fsck_note(c->f, "%s (%s); the copy in the manifest is used", path, why.message);
    else if (result < 0)
        lfs_fsck_error(
            c->f,
            "%s cannot be read (%s), and the manifest has no copy: writers that began before version %" PRIu64
            " of %s fail",
            path, why.message, c->version.number, branch_of(c));
    c->f->n_transactions++;
    return 0;
}

static bool is_known_line(const struct lfs_fsck *f, const char *line) {
    if (lfs_lines_branch(&f->homes.lines, line))
        return true;
    for (size_t i = 0; i < f->homes.count; i++)
        if (f->homes.list[i].line && strcmp(f->homes.list[i].line, line) == 0)
            return true;
    return false;
}

static errint_t check_lineage(const struct check *c) {
    const char *text = lfs_entries_get(c->m->table_metadata, c->m->n_table_metadata, LFS_KEY_VECTOR);
    struct lfs_vector vector;
    struct lfs_error why;
    lfs_vector_init(&vector, c->arena);
    if (!text)
        return 0;
    if (lfs_vector_parse(&vector, text, c->what, &why) < 0) {
        lfs_fsck_error(c->f, "%s: what it has been merged from cannot be told (%s)", c->what, why.message);
        return 0;
    }
    for (size_t i = 0; i < vector.count; i++)
        if (!is_known_line(c->f, vector.entries[i].line))
            lfs_fsck_error(
                c->f, "%s holds merges of the line %s, of which nothing was kept: that line cannot be merged again",
                branch_of(c), vector.entries[i].line);
    return 0;
}

/* --- the manifest itself --- */

static errint_t check_head(const struct check *c, const char *name) {
    uint64_t number = c->version.number;
    enum lfs_naming naming;
    const char *branch = c->m->branch && *c->m->branch ? c->m->branch : "main";
    const char *expected = c->home->branch ? c->home->branch->name : c->home->dir + (*c->home->dir ? 5 : 0);
    if (lfs_manifest_name_parse(name, &number, &naming) && number != c->m->version)
        lfs_fsck_error(c->f, "%s says that it is version %" PRIu64 ": it opens, but nothing can be committed", c->what,
                       c->m->version);
    if (c->home->kind == LFS_HOME_BRANCH && strcmp(branch, *expected ? expected : "main"))
        lfs_fsck_error(c->f, "%s says that it is of branch %s: stock Lance does not check it out", c->what, branch);
    return 0;
}

/* A kept base is read for its rows alone: its manifest, its deletion files. */
static errint_t check_kept(const struct check *c) {
    for (size_t i = 0; i < c->m->n_fragments; i++) {
        const LanceFragment *frag = c->m->fragments[i];
        char name[80], *directory = lfs_join(c->arena, c->home->dir, "_deletions");
        struct lfs_location l;
        if (!frag->deletion_file)
            continue;
        lfs_deletion_file_name(frag->id, frag->deletion_file, name, sizeof name);
        l = (struct lfs_location){true, directory, name};
        const struct lfs_checked *kept = directory ? checked(c, &l) : NULL;
        if (!kept)
            return lfs_fail_nomem(c->f->err);
        if (kept->there)
            continue;
        struct lfs_error why;
        errint_t result =
            lfs_locate(&c->version, LFS_FILE_DELETION,
                       frag->deletion_file->has_base_id ? (int64_t)frag->deletion_file->base_id : LFS_NO_BASE, name,
                       c->arena, &l, &why);
        const struct lfs_checked *at_home = result == 0 ? checked(c, &l) : NULL;
        if (!at_home || !at_home->there)
            lfs_fsck_error(c->f, "%s: the deletion file %s of this kept base is gone: a merge that needs it is refused",
                           c->what, name);
    }
    return 0;
}

static errint_t check_content(const struct check *c, const char *name, const struct lfs_manifest *manifest) {
    if (c->home->kind == LFS_HOME_LINE)
        return check_kept(c);
    if (c->home->kind == LFS_HOME_OTHER)
        return 0; /* under way, or stopped half-way: said by its record */
    LFS_TRY(check_head(c, name));
    check_bases(c);
    LFS_TRY(check_fragments(c));
    LFS_TRY(check_row_ids(c));
    for (size_t i = 0; manifest->indices && i < manifest->indices->n_indices; i++)
        check_index(c, manifest->indices->indices[i]);
    LFS_TRY(check_transaction(c, manifest->transaction));
    return check_lineage(c);
}

errint_t lfs_fsck_version(struct lfs_fsck *f, const struct lfs_home *home, const char *name, bool newest) {
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    LFS_AUTO_BUF bytes = {0};
    struct lfs_error why;
    struct check c = {.f = f, .home = home, .arena = arena, .newest = newest};
    char *path = arena ? lfs_sprintf(arena, "%s%s_versions/%s", home->dir, *home->dir ? "/" : "", name) : NULL;
    if (!path)
        return lfs_fail_nomem(f->err);
    c.what = path;
    errint_t result = lfs_read_file(lfs_dataset_root_fd(f->ds), path, LFS_MANIFEST_BYTES_MAX, &bytes, NULL, &why);
    if (result == -ENOENT)
        return 0; /* cleaned up since it was listed */
    if (result == 0)
        result = lfs_manifest_decode(bytes.data, bytes.length, arena, path, &c.version.manifest, &why);
    if (result == -ENOMEM)
        return lfs_fail_nomem(f->err);
    f->n_versions++;
    if (result < 0) {
        lfs_fsck_error(f, "%s: this version cannot be read (%s); restore the file%s", path, why.message,
                       newest ? ", or move it away so that the version before it is the newest" : "");
        return 0;
    }
    c.m = c.version.manifest.message;
    if (lfs_manifest_check_features(c.m, false, path, &why) < 0) {
        lfs_fsck_note(f, "%s: not checked further", why.message);
        return 0;
    }
    c.version.dataset = f->ds;
    c.version.dir = home->dir;
    c.version.number = c.m->version;
    return check_content(&c, name, &c.version.manifest);
}
