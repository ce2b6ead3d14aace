/* SPDX-License-Identifier: Apache-2.0 */
#include "table/view_rows.h"

#include <inttypes.h>
#include <string.h>

#include "format/deletion.h"
#include "table/deletions.h"
#include "util/bitmap.h"
#include "util/cleanup.h"

enum { DELETION_NAME_SIZE = 80 };

struct selection {
    const struct lfs_lines *lines;
    const struct lfs_version *version;
    struct lfs_arena *arena;
    LanceManifest *message;
    struct lfs_image_file *files;
    size_t n_files;
    struct lfs_error *err;
};

static const LanceFragment *fragment_of(const struct selection *s, uint64_t id) {
    const LanceManifest *m = s->version->manifest.message;
    for (size_t i = 0; i < m->n_fragments; i++)
        if (m->fragments[i]->id == id)
            return m->fragments[i];
    return NULL;
}

/* Every row of the fragment that is not wanted, or is deleted already; NULL in *out when no row is left. */
static errint_t mask_of(const struct selection *s, const LanceFragment *f, const roaring_bitmap_t *rows,
                        roaring_bitmap_t **out) {
    AUTO_BITMAP *deleted = NULL, *mask = NULL;
    *out = NULL;
    if (!roaring_bitmap_is_empty(rows) && roaring_bitmap_maximum(rows) >= f->physical_rows)
        return lfs_fail(s->err, LFS_E_NOT_FOUND, "fragment %" PRIu64 " has no row %" PRIu32, f->id,
                        roaring_bitmap_maximum(rows));
    LFS_TRY(lfs_read_deletions(s->lines, s->version, f, &deleted, s->err));
    mask = roaring_bitmap_flip(rows, 0, f->physical_rows);
    if (!mask)
        return lfs_fail_nomem(s->err);
    roaring_bitmap_or_inplace(mask, deleted);
    if (roaring_bitmap_get_cardinality(mask) < f->physical_rows)
        *out = LFS_STEAL_PTR(mask);
    return 0;
}

/* A deletion file that only memory holds. Its id is a hash of what is in it: the same rows, the same data set. */
static errint_t add_mask(struct selection *s, LanceFragment *f, const roaring_bitmap_t *mask) {
    LFS_AUTO_BUF bytes = {0};
    char name[DELETION_NAME_SIZE];
    LanceDeletionFile *d = LFS_NEW(s->arena, LanceDeletionFile);
    if (!d)
        return lfs_fail_nomem(s->err);
    LFS_TRY(lfs_deletion_encode_bitmap(mask, &bytes, s->err));
    lance__table__deletion_file__init(d);
    d->has_file_type = d->has_read_version = d->has_id = d->has_num_deleted_rows = true;
    d->file_type = LANCE__TABLE__DELETION_FILE__DELETION_FILE_TYPE__BITMAP;
    d->read_version = s->version->number;
    d->id = lfs_hash(bytes.data, bytes.length, f->id);
    d->num_deleted_rows = roaring_bitmap_get_cardinality(mask);
    lfs_deletion_file_name(f->id, d, name, sizeof name);
    struct lfs_image_file *file = &s->files[s->n_files++];
    *file = (struct lfs_image_file){lfs_join(s->arena, "_deletions", name),
                                    lfs_memdup(s->arena, bytes.data, bytes.length), bytes.length};
    f->deletion_file = d;
    return file->path && file->bytes ? 0 : lfs_fail_nomem(s->err);
}

static errint_t add_rows(struct selection *s, const struct lfs_view_rows_of *set) {
    AUTO_BITMAP *mask = NULL;
    const LanceFragment *from = fragment_of(s, set->fragment);
    if (!from)
        return lfs_fail(s->err, LFS_E_NOT_FOUND, "version %" PRIu64 " of %s has no fragment %" PRIu64,
                        s->version->number, *s->version->dir ? s->version->dir : "main", set->fragment);
    LFS_TRY(mask_of(s, from, set->rows, &mask));
    if (!mask)
        return 0;
    LanceFragment *f = lfs_memdup(s->arena, from, sizeof *f);
    if (!f)
        return lfs_fail_nomem(s->err);
    f->deletion_file = NULL;
    if (!roaring_bitmap_is_empty(mask))
        LFS_TRY(add_mask(s, f, mask));
    s->message->fragments[s->message->n_fragments++] = f;
    return 0;
}

static int by_id(const void *a, const void *b) {
    const LanceFragment *one = *(LanceFragment *const *)a, *other = *(LanceFragment *const *)b;
    return one->id < other->id ? -1 : one->id > other->id;
}

/* A kept base stands in its line's storage; most of its files are still the branch's. */
static const char *other_place(const struct lfs_lines *lines, const struct lfs_version *version) {
    static const char storage[] = "_lancefs/lines/";
    if (strncmp(version->dir, storage, sizeof storage - 1))
        return NULL;
    const struct lfs_branch *branch = lfs_lines_branch(lines, version->dir + sizeof storage - 1);
    return branch ? branch->dir : NULL;
}

errint_t lfs_view_rows(struct lfs_views *views, const struct lfs_lines *lines, const struct lfs_version *version,
                       const struct lfs_view_rows_of *sets, size_t n_sets, struct lfs_image **out,
                       struct lfs_error *err) {
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    struct selection s = {.lines = lines, .version = version, .arena = arena, .err = err};
    uint64_t number;
    enum lfs_naming naming;
    *out = NULL;
    if (version->planned)
        return lfs_fail(err, LFS_E_UNSUPPORTED, "rows of a version that is only planned cannot be shown");
    if (!lfs_manifest_name_parse(version->file_name, &number, &naming))
        return lfs_fail(err, LFS_E_CORRUPT, "%s is no manifest's name", version->file_name);
    s.message = arena ? lfs_memdup(arena, version->manifest.message, sizeof *s.message) : NULL;
    s.files = arena ? LFS_NEW_ARRAY(arena, struct lfs_image_file, n_sets + 1) : NULL;
    if (!s.message || !s.files || !(s.message->fragments = LFS_NEW_ARRAY(arena, LanceFragment *, n_sets + 1)))
        return lfs_fail_nomem(err);
    s.message->n_fragments = 0;
    s.message->transaction_file = NULL; /* nobody committed this */
    for (size_t i = 0; i < n_sets; i++)
        LFS_TRY(add_rows(&s, &sets[i]));
    qsort(s.message->fragments, s.message->n_fragments, sizeof *s.message->fragments, by_id);
    lfs_manifest_set_features(s.message);
    struct lfs_manifest manifest = {.message = s.message};
    struct lfs_image_spec spec = {version->dir, other_place(lines, version), &manifest, naming, s.files, s.n_files};
    return lfs_image_new(views, &spec, out, err);
}
