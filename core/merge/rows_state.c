/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/rows_state.h"

#include <inttypes.h>
#include <string.h>

#include "merge/field.h"
#include "merge/report.h"
#include "util/cleanup.h"

struct lfs_fragment_side *lfs_rows_side(struct lfs_fragment_state *state, enum lfs_side side) {
    return side == LFS_OURS ? &state->ours : &state->theirs;
}

static errint_t read_vector(const struct lfs_rows *rows, const struct lfs_version *version, const LanceFragment *f,
                            roaring_bitmap_t **out, struct lfs_error *err) {
    const struct lfs_merge_reader *r = rows->input->reader;
    return r->deletions(r->context, version, f, out, err);
}

/* A fragment that the base does not hold (both sides took it over) began with no row deleted. */
errint_t lfs_rows_load_base(struct lfs_rows *rows, struct lfs_fragment_state *s, struct lfs_error *err) {
    if (s->base)
        return 0;
    if (s->match->base && s->match->base->deletion_file)
        return read_vector(rows, rows->input->base, s->match->base, &s->base, err);
    s->base = roaring_bitmap_create();
    return s->base ? 0 : lfs_fail_nomem(err);
}

errint_t lfs_rows_load(struct lfs_rows *rows, struct lfs_fragment_state *s, enum lfs_side which, struct lfs_error *err) {
    struct lfs_fragment_side *side = lfs_rows_side(s, which);
    if (side->deleted)
        return 0;
    if (side->fragment)
        return read_vector(rows, which == LFS_OURS ? rows->input->ours : rows->input->theirs, side->fragment,
                           &side->deleted, err);
    if (side->moved)
        return lfs_moves_effective(&rows->moves[which == LFS_THEIRS], s->path, s->physical_rows, &side->deleted, err);
    if (s->physical_rows > UINT32_MAX)
        return lfs_fail(err, LFS_E_CORRUPT, "fragment %" PRIu64 " claims %" PRIu64 " rows", s->id, s->physical_rows);
    side->deleted = roaring_bitmap_from_range(0, s->physical_rows, 1);
    return side->deleted ? 0 : lfs_fail_nomem(err);
}

static errint_t compare(struct lfs_rows *rows, struct lfs_fragment_state *s, enum lfs_side which,
                        struct lfs_error *err) {
    struct lfs_fragment_side *side = lfs_rows_side(s, which);
    const LanceFragment *base = s->match->base, *f = side->fragment;
    side->change = LFS_GONE;
    if (!f)
        return 0;
    side->other_files = base && !lfs_match_same_files(base, f);
    side->change = LFS_UNCHANGED;
    if (base ? lfs_match_same_deletions(base, f) : !f->deletion_file)
        return 0;
    LFS_TRY(lfs_rows_load_base(rows, s, err));
    LFS_TRY(lfs_rows_load(rows, s, which, err));
    side->change = roaring_bitmap_equals(s->base, side->deleted) ? LFS_UNCHANGED : LFS_ROWS;
    return 0;
}

/* A column that the base dropped and the side has again lies in a file that the base still has. */
static void note_new_columns(struct lfs_rows *rows, const struct lfs_schema_merge *schema, enum lfs_side which) {
    const struct lfs_new_field *added = which == LFS_OURS ? schema->ours : schema->theirs;
    for (size_t i = 0; i < (which == LFS_OURS ? schema->n_ours : schema->n_theirs); i++)
        for (size_t k = 0; k < rows->n_states; k++) {
            struct lfs_fragment_side *side = lfs_rows_side(&rows->states[k], which);
            side->other_files |= rows->states[k].match->base && side->fragment &&
                                 lfs_field_place(side->fragment, added[i].field->id).file;
        }
}

/* Files of one fragment can differ between the states, rows cannot. */
static errint_t check_rows(const struct lfs_fragment_state *s, struct lfs_error *err) {
    const LanceFragment *all[] = {s->match->base, s->match->ours, s->match->theirs};
    for (size_t i = 0; i < 3; i++)
        if (all[i] && all[i]->physical_rows != s->physical_rows)
            return lfs_fail(err, LFS_E_CORRUPT, "fragment %" PRIu64 " has %" PRIu64 " rows in one version and %" PRIu64
                            " in another",
                            s->id, s->physical_rows, all[i]->physical_rows);
    return 0;
}

static errint_t compare_all(struct lfs_rows *rows, struct lfs_error *err) {
    for (size_t i = 0; i < rows->n_states; i++) {
        LFS_TRY(check_rows(&rows->states[i], err));
        LFS_TRY(compare(rows, &rows->states[i], LFS_OURS, err));
        LFS_TRY(compare(rows, &rows->states[i], LFS_THEIRS, err));
    }
    return 0;
}

/* --- compactions: only looked for where a fragment is gone on one side and not left alone by the other --- */

static bool contended(const struct lfs_fragment_state *s, enum lfs_side which) {
    const struct lfs_fragment_side *mine = which == LFS_OURS ? &s->ours : &s->theirs,
                                   *other = which == LFS_OURS ? &s->theirs : &s->ours;
    return s->match->base && mine->change == LFS_GONE && (other->change != LFS_UNCHANGED || other->other_files);
}

static errint_t find_moves(struct lfs_rows *rows, enum lfs_side which, struct lfs_error *err) {
    size_t at = which == LFS_THEIRS;
    bool any = false;
    for (size_t i = 0; i < rows->n_states && !any; i++)
        any = contended(&rows->states[i], which);
    if (!any)
        return 0;
    LFS_TRY(lfs_moves_read(rows->input, which, rows->plan->arena, &rows->moves[at], err));
    rows->has_moves[at] = true;
    for (size_t i = 0; i < rows->n_states; i++) {
        struct lfs_fragment_side *side = lfs_rows_side(&rows->states[i], which);
        if (rows->states[i].match->base && side->change == LFS_GONE)
            side->moved = lfs_moves_has(&rows->moves[at], rows->states[i].path);
    }
    return 0;
}

/*
 * A compaction of theirs is taken as a whole or left out as a whole: left out when ours changed any fragment that went
 * into it, or that went into one joined with it. The fragments of the ones that are taken are then simply gone.
 */
static void leave_out(struct lfs_rows *rows) {
    struct lfs_moves *m = &rows->moves[1];
    if (!rows->has_moves[1])
        return;
    for (size_t i = 0; i < rows->n_states; i++)
        if (contended(&rows->states[i], LFS_THEIRS) && rows->states[i].theirs.moved)
            lfs_moves_leave_out(m, rows->states[i].path);
    for (size_t i = 0; i < rows->n_states; i++) {
        struct lfs_fragment_side *side = &rows->states[i].theirs;
        side->moved = side->moved && lfs_moves_is_left_out(m, rows->states[i].path);
    }
}

errint_t lfs_rows_init(struct lfs_rows *rows, const struct lfs_merge_input *input, struct lfs_plan *plan,
                       const struct lfs_schema_merge *schema, const struct lfs_match *matches, size_t n_matches,
                       struct lfs_error *err) {
    *rows = (struct lfs_rows){.input = input, .plan = plan};
    lfs_map_init(&rows->extra[0], plan->arena);
    lfs_map_init(&rows->extra[1], plan->arena);
    rows->states = LFS_NEW_ARRAY(plan->arena, struct lfs_fragment_state, n_matches + 1);
    if (!rows->states)
        return lfs_fail_nomem(err);
    for (size_t i = 0; i < n_matches; i++) {
        const struct lfs_match *x = &matches[i];
        const LanceFragment *any = x->base ? x->base : x->ours ? x->ours : x->theirs;
        rows->states[rows->n_states++] = (struct lfs_fragment_state){
            .match = x,
            .path = lfs_match_name(any),
            .id = x->ours ? x->ours->id : any->id,
            .physical_rows = any->physical_rows,
            .ours.fragment = x->ours,
            .theirs.fragment = x->theirs,
        };
    }
    LFS_TRY(compare_all(rows, err));
    note_new_columns(rows, schema, LFS_OURS);
    note_new_columns(rows, schema, LFS_THEIRS);
    LFS_TRY(find_moves(rows, LFS_OURS, err));
    LFS_TRY(find_moves(rows, LFS_THEIRS, err));
    leave_out(rows);
    return 0;
}

static void free_bitmap(roaring_bitmap_t *bitmap) {
    if (bitmap)
        roaring_bitmap_free(bitmap);
}

void lfs_rows_free(struct lfs_rows *rows) {
    for (size_t i = 0; i < rows->n_states; i++) {
        free_bitmap(rows->states[i].base);
        free_bitmap(rows->states[i].ours.deleted);
        free_bitmap(rows->states[i].theirs.deleted);
    }
    for (size_t k = 0; k < 2; k++) {
        for (size_t i = 0; i < rows->extra[k].count; i++)
            free_bitmap(rows->extra[k].entries[i].value);
        if (rows->has_moves[k])
            lfs_moves_free(&rows->moves[k]);
    }
    *rows = (struct lfs_rows){0};
}
