/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/reader.h"

#include <inttypes.h>
#include <string.h>

#include "format/deletion.h"
#include "merge/field_match.h"
#include "store/file.h"
#include "table/location.h"
#include "util/cleanup.h"
#include "util/limits.h"
#include "verbs/origins.h"

/* The line whose versions stand in a directory; NULL when nobody knows. */
static const char *line_of(const struct lfs_lines *lines, const char *dir) {
    static const char storage[] = "_lancefs/lines/";
    if (strncmp(dir, storage, sizeof storage - 1) == 0)
        return dir + sizeof storage - 1;
    for (size_t i = 0; i < lines->n_branches; i++)
        if (strcmp(lines->branches[i].dir, dir) == 0 && *lines->branches[i].uuid)
            return lines->branches[i].uuid;
    return NULL;
}

static int open_kept(const struct lfs_lines *lines, const struct lfs_version *version, const char *name,
                     struct lfs_arena *arena) {
    const char *line = line_of(lines, version->dir);
    char *path = line ? lfs_sprintf(arena, "_lancefs/lines/%s/_deletions/%s", line, name) : NULL;
    return path ? lfs_open_regular(lfs_dataset_root_fd(lines->dataset), path) : -ENOENT;
}

errint_t lfs_read_deletions(const struct lfs_lines *lines, const struct lfs_version *version,
                            const LanceFragment *fragment, roaring_bitmap_t **out, struct lfs_error *err) {
    const LanceDeletionFile *d = fragment->deletion_file;
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    LFS_AUTO_BUF bytes = {0};
    struct lfs_location at;
    char name[80];
    *out = NULL;
    if (!d) {
        *out = roaring_bitmap_create();
        return *out ? 0 : lfs_fail_nomem(err);
    }
    if (!arena)
        return lfs_fail_nomem(err);
    if (d->num_deleted_rows > fragment->physical_rows)
        return lfs_fail(err, LFS_E_CORRUPT, "fragment %" PRIu64 " of %s: %" PRIu64 " of its %" PRIu64 " rows are deleted",
                        fragment->id, *version->dir ? version->dir : "main", d->num_deleted_rows, fragment->physical_rows);
    lfs_deletion_file_name(fragment->id, d, name, sizeof name);
    LFS_TRY(lfs_locate(version, LFS_FILE_DELETION, d->has_base_id ? (int64_t)d->base_id : LFS_NO_BASE, name, arena, &at,
                       err));
    struct lfs_error why;
    LFS_AUTO_FD fd = lfs_location_open(lines->dataset, &at, &why);
    if (fd == -ENOENT)
        fd = open_kept(lines, version, name, arena);
    if (fd == -ENOENT)
        return lfs_fail(err, LFS_E_CORRUPT, "the deletion file %s/%s of %s is gone, so it cannot be told which rows live",
                        at.directory, name, *version->dir ? version->dir : "main");
    if (fd < 0)
        return lfs_fail_errno(err, -fd, "cannot open the deletion file %s/%s", at.directory, name);
    LFS_TRY(lfs_read_fd(fd, name, LFS_DELETION_BYTES_MAX, &bytes, NULL, err));
    return lfs_deletion_decode(d, bytes.data, bytes.length, fragment->physical_rows, name, out, err);
}

static errint_t deletions(void *context, const struct lfs_version *version, const LanceFragment *fragment,
                          roaring_bitmap_t **out, struct lfs_error *err) {
    const struct lfs_reader *r = context;
    for (size_t i = 0; i < r->n_virtual; i++)
        if (version == &r->virtual_versions[i]->version)
            return lfs_virtual_deletions(r->virtual_versions[i], fragment, &r->reader, out, err);
    return lfs_read_deletions(r->lines, version, fragment, out, err);
}

static errint_t read_history(struct lfs_reader *r, enum lfs_side side, struct lfs_history *out, struct lfs_error *err) {
    const struct lfs_state *state = side == LFS_OURS ? r->ours : r->theirs;
    bool up_to_base = side == LFS_BASE || (side == LFS_THEIRS && r->backward);
    if (up_to_base && !r->base) { /* a base that nobody knows a way to */
        *out = (struct lfs_history){.complete = false};
        return 0;
    }
    LFS_TRY(lfs_history_read(r->lines, &state->branch, up_to_base ? r->base : state->version->number,
                             &r->since[side == LFS_THEIRS], out, err));
    out->backward = side == LFS_THEIRS && r->backward;
    for (size_t i = 0; side == LFS_OURS && i < r->n_also; i++)
        LFS_TRY(lfs_history_add(r->lines, &r->also[i].branch, r->also[i].version->number, out, err));
    return 0;
}

static errint_t history(void *context, enum lfs_side side, const struct lfs_history **out, struct lfs_error *err) {
    struct lfs_reader *r = context;
    if (!r->has_history[side])
        LFS_TRY(read_history(r, side, &r->history[side], err));
    r->has_history[side] = true;
    *out = &r->history[side];
    return 0;
}

/* --- origins of columns --- */

void lfs_reader_know_base(struct lfs_reader *reader, const struct lfs_standing *standing, const struct lfs_vector *vector) {
    bool picks = false; /* of them no vector tells */
    for (size_t i = 0; i < standing->n; i++)
        picks |= lfs_version_has_picks(standing->states[i].version);
    reader->standing[LFS_BASE] = *standing;
    reader->base_vector = picks ? NULL : vector;
}

/* A virtual state keeps the ids of the first one that it was merged of; what that lacks is called the same in another. */
static struct lfs_origin origin_of(const struct lfs_reader *r, const struct lfs_standing *s, int32_t id) {
    const LanceField *shown = s->n > 1 ? lfs_field_by_id(s->shown->manifest.message, id) : NULL;
    const char *path = shown ? lfs_field_path(r->lines->arena, s->shown->manifest.message, shown) : "";
    for (size_t i = 0; i < s->n; i++) {
        const struct lfs_state *state = &s->states[i];
        const LanceManifest *m = state->version->manifest.message;
        for (size_t k = 0; k < m->n_fields; k++)
            if (i == 0 ? m->fields[k]->id == id : strcmp(lfs_field_path(r->lines->arena, m, m->fields[k]), path) == 0)
                return (struct lfs_origin){state->branch.uuid, state->version->number, m->fields[k]->id, false};
    }
    return (struct lfs_origin){.line = "main", .nowhere = true};
}

static errint_t trace(void *context, struct lfs_column_trace *list, size_t n_first, size_t n, struct lfs_error *err) {
    const struct lfs_reader *r = context;
    struct lfs_origin *from = LFS_NEW_ARRAY(r->lines->arena, struct lfs_origin, n + 1);
    if (!from)
        return lfs_fail_nomem(err);
    for (size_t i = 0; i < n; i++)
        from[i] = origin_of(r, &r->standing[list[i].side], list[i].id);
    bool of_base = n_first && list[0].side == LFS_BASE;
    return lfs_origins_trace(r->lines, from, of_base ? r->base_vector : NULL, list, n_first, n, err);
}

errint_t lfs_reader_on_their_line(struct lfs_reader *reader, uint64_t base, bool backward, const struct lfs_vector *to,
                                  struct lfs_error *err) {
    reader->base = base;
    reader->backward = backward;
    if (!backward)
        return 0;
    lfs_vector_init(&reader->since[1], reader->lines->arena);
    return lfs_vector_join(&reader->since[1], to, err);
}

errint_t lfs_reader_init(struct lfs_reader *out, const struct lfs_lines *lines, const struct lfs_state *ours,
                         const struct lfs_state *theirs, const struct lfs_vector *ours_vector,
                         const struct lfs_vector *base_vector, struct lfs_error *err) {
    *out = (struct lfs_reader){.lines = lines, .ours = ours, .theirs = theirs};
    out->reader = (struct lfs_merge_reader){out, deletions, history, trace};
    out->standing[LFS_OURS] = (struct lfs_standing){ours->version, ours, 1};
    out->standing[LFS_THEIRS] = (struct lfs_standing){theirs->version, theirs, 1};
    for (size_t i = 0; i < 2; i++)
        lfs_vector_init(&out->since[i], lines->arena);
    LFS_TRY(lfs_vector_meet(ours_vector, base_vector, &out->since[0], err));
    return lfs_vector_join(&out->since[1], base_vector, err);
}

void lfs_reader_release(struct lfs_reader *reader) {
    for (size_t i = 0; i < 3; i++)
        if (reader->has_history[i])
            lfs_history_release(&reader->history[i]);
}
