/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/reader.h"

#include <string.h>

#include "merge/field_match.h"
#include "util/cleanup.h"
#include "verbs/origins.h"

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
