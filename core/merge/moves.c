/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/moves.h"

#include <inttypes.h>
#include <string.h>

#include "merge/match.h"
#include "util/bitmap.h"
#include "util/cleanup.h"

/* --- reading the groups --- */

static errint_t add_group(struct lfs_moves *m, const struct lfs_version *version,
                          const Lance__Table__RewriteGroup *from, struct lfs_error *err) {
    struct lfs_moved_group *g = &m->groups[m->n_groups++];
    *g = (struct lfs_moved_group){.version = version, .n_parts = from->n_old_fragments, .n_outs = from->n_new_fragments};
    g->parts = LFS_NEW_ARRAY(m->arena, struct lfs_moved_part, g->n_parts + 1);
    g->outs = LFS_NEW_ARRAY(m->arena, struct lfs_moved_out, g->n_outs + 1);
    if (!g->parts || !g->outs)
        return lfs_fail_nomem(err);
    for (size_t i = 0; i < g->n_parts; i++)
        g->parts[i] = (struct lfs_moved_part){.record = from->old_fragments[i], .path = lfs_match_name(from->old_fragments[i])};
    for (size_t i = 0, start = 0; i < g->n_outs; i++) {
        const LanceFragment *f = from->new_fragments[i];
        g->outs[i] = (struct lfs_moved_out){f, lfs_match_name(f), start, f->physical_rows};
        start += f->physical_rows;
        if (!lfs_map_put(&m->by_new, g->outs[i].path, g))
            return lfs_fail_nomem(err);
    }
    return 0;
}

static const Lance__Table__Rewrite *rewrite_of(const struct lfs_step *step) {
    const LanceTransaction *t = step->after->manifest.transaction;
    return t && t->operation_case == LANCE__TABLE__TRANSACTION__OPERATION_REWRITE ? t->rewrite : NULL;
}

static bool leads_to_tip(const struct lfs_moves *m, const struct lfs_moved_group *g) {
    const struct lfs_version *tip = m->side == LFS_OURS ? m->input->ours : m->input->theirs;
    for (size_t i = 0; i < g->n_outs; i++)
        if (lfs_map_get(&m->by_old, g->outs[i].path) ||
            lfs_match_find_in(m->input->finder, tip->manifest.message, g->outs[i].path))
            return true;
    return false;
}

static errint_t claim_parts(struct lfs_moves *m, struct lfs_moved_group *g, struct lfs_error *err) {
    for (size_t i = 0; i < g->n_parts; i++)
        if (!lfs_map_get(&m->by_old, g->parts[i].path) && !lfs_map_put(&m->by_old, g->parts[i].path, g))
            return lfs_fail_nomem(err);
    return 0;
}

/* One fragment can have been compacted on several lines that this side has merged since, and only one of these
 * compactions stayed: the one whose rows stand in the tip. The others get what is left. */
static errint_t find_standing(struct lfs_moves *m, struct lfs_error *err) {
    for (bool again = true; again;) {
        again = false;
        for (size_t i = m->n_groups; i-- > 0;) {
            struct lfs_moved_group *g = &m->groups[i];
            if (g->stands || !leads_to_tip(m, g))
                continue;
            again = g->stands = true;
            LFS_TRY(claim_parts(m, g, err));
        }
    }
    for (size_t i = 0; i < m->n_groups; i++)
        LFS_TRY(claim_parts(m, &m->groups[i], err));
    return 0;
}

errint_t lfs_moves_read(const struct lfs_merge_input *input, enum lfs_side side, struct lfs_arena *arena,
                        struct lfs_moves *out, struct lfs_error *err) {
    const struct lfs_history *history;
    size_t n = 0;
    *out = (struct lfs_moves){.input = input, .side = side, .arena = arena};
    lfs_map_init(&out->by_old, arena);
    lfs_map_init(&out->by_new, arena);
    LFS_TRY(input->reader->history(input->reader->context, side, &history, err));
    if (history->backward) /* what is taken back moved nothing here */
        return 0;
    for (size_t i = 0; i < history->count; i++)
        n += rewrite_of(&history->steps[i]) ? rewrite_of(&history->steps[i])->n_groups : 0;
    out->groups = LFS_NEW_ARRAY(arena, struct lfs_moved_group, n + 1); /* never grows: the maps point into it */
    if (!out->groups)
        return lfs_fail_nomem(err);
    for (size_t i = 0; i < history->count; i++) {
        const Lance__Table__Rewrite *rewrite = rewrite_of(&history->steps[i]);
        for (size_t k = 0; rewrite && k < rewrite->n_groups; k++)
            LFS_TRY(add_group(out, history->steps[i].after, rewrite->groups[k], err));
    }
    return find_standing(out, err);
}

void lfs_moves_free(struct lfs_moves *moves) {
    for (size_t i = 0; i < moves->n_groups; i++)
        for (size_t k = 0; k < moves->groups[i].n_parts; k++)
            lfs_cleanup_bitmap(&moves->groups[i].parts[k].live);
    moves->n_groups = 0;
}

bool lfs_moves_has(const struct lfs_moves *moves, const char *path) { return lfs_map_get(&moves->by_old, path) != NULL; }

/* From one group to those before it (whose new fragments it took) and after it (that took its new fragments). */
static void mark_left_out(struct lfs_moves *m, struct lfs_moved_group *g) {
    if (!g || g->left_out)
        return;
    g->left_out = true; /* first, so that the walk ends */
    for (size_t i = 0; i < g->n_parts; i++)
        mark_left_out(m, lfs_map_get(&m->by_new, g->parts[i].path));
    for (size_t i = 0; i < g->n_outs; i++)
        mark_left_out(m, lfs_map_get(&m->by_old, g->outs[i].path));
}

void lfs_moves_leave_out(struct lfs_moves *moves, const char *path) {
    mark_left_out(moves, lfs_map_get(&moves->by_old, path));
}

bool lfs_moves_is_left_out(const struct lfs_moves *moves, const char *path) {
    const struct lfs_moved_group *g = lfs_map_get(&moves->by_old, path);
    return g && g->left_out;
}

/* --- the order of rows --- */

static errint_t unproved(const struct lfs_moved_group *g, const char *why, struct lfs_error *err) {
    return lfs_fail(err, LFS_E_CONFLICT, "the compaction in version %" PRIu64 " of %s cannot be followed: %s",
                    g->version->number, *g->version->dir ? g->version->dir : "main", why);
}

static errint_t measure_part(const struct lfs_moves *m, const struct lfs_moved_group *g, struct lfs_moved_part *part,
                             struct lfs_error *err) {
    const struct lfs_merge_reader *r = m->input->reader;
    AUTO_BITMAP *deleted = NULL;
    if (part->record->physical_rows > UINT32_MAX)
        return unproved(g, "a fragment claims too many rows", err);
    if (r->deletions(r->context, g->version, part->record, &deleted, err) < 0)
        return unproved(g, "a deletion file of that time is gone", err);
    part->live = roaring_bitmap_from_range(0, part->record->physical_rows, 1);
    if (!part->live)
        return lfs_fail_nomem(err);
    roaring_bitmap_andnot_inplace(part->live, deleted);
    part->count = roaring_bitmap_get_cardinality(part->live);
    return 0;
}

static errint_t measure(const struct lfs_moves *m, struct lfs_moved_group *g, struct lfs_error *err) {
    uint64_t old_rows = 0, new_rows = 0;
    if (g->measured)
        return 0;
    for (size_t i = 0; i < g->n_parts; i++) {
        if (!g->parts[i].live)
            LFS_TRY(measure_part(m, g, &g->parts[i], err));
        g->parts[i].start = old_rows;
        old_rows += g->parts[i].count;
    }
    for (size_t i = 0; i < g->n_outs; i++)
        new_rows += g->outs[i].rows;
    if (old_rows != new_rows)
        return unproved(g, "the new fragments do not hold as many rows as lived in the old ones", err);
    g->measured = true;
    return 0;
}

static struct lfs_moved_part *part_of(struct lfs_moved_group *g, const char *path) {
    for (size_t i = 0; i < g->n_parts; i++)
        if (strcmp(g->parts[i].path, path) == 0)
            return &g->parts[i];
    return NULL;
}

/* Live rows of a part -> their places in the group's sequence. */
static roaring_bitmap_t *places(const struct lfs_moved_part *part, const roaring_bitmap_t *rows) {
    roaring_bitmap_t *moved = roaring_bitmap_and(part->live, rows);
    if (!moved || roaring_bitmap_get_cardinality(moved) == part->count) { /* all of them: a range */
        if (moved)
            roaring_bitmap_free(moved);
        return roaring_bitmap_from_range(part->start, part->start + part->count, 1);
    }
    roaring_bitmap_t *out = roaring_bitmap_create();
    roaring_uint32_iterator_t *it = roaring_create_iterator(moved);
    for (; out && it && it->has_value; roaring_advance_uint32_iterator(it))
        roaring_bitmap_add(out, (uint32_t)(part->start + roaring_bitmap_rank(part->live, it->current_value) - 1));
    if (it)
        roaring_free_uint32_iterator(it);
    roaring_bitmap_free(moved);
    return out;
}

/* The members of `set` in [start, start + count), counted from `start`. */
static roaring_bitmap_t *window(const roaring_bitmap_t *set, uint64_t start, uint64_t count) {
    AUTO_BITMAP *range = roaring_bitmap_from_range(start, start + count, 1);
    AUTO_BITMAP *inside = range ? roaring_bitmap_and(set, range) : NULL;
    roaring_bitmap_t *out = roaring_bitmap_create();
    roaring_uint32_iterator_t *it = inside ? roaring_create_iterator(inside) : NULL;
    if (inside && roaring_bitmap_get_cardinality(inside) == count && out && count) {
        roaring_bitmap_add_range(out, 0, count);
    } else {
        for (; out && it && it->has_value; roaring_advance_uint32_iterator(it))
            roaring_bitmap_add(out, (uint32_t)(it->current_value - start));
    }
    if (it)
        roaring_free_uint32_iterator(it);
    return out;
}

bool lfs_moves_kept_files(const struct lfs_moves *m, const char *path, const LanceFragment *before) {
    struct lfs_moved_group *g = lfs_map_get(&m->by_old, path);
    const struct lfs_version *tip = m->side == LFS_OURS ? m->input->ours : m->input->theirs;
    if (!g) { /* stands in the tip, or is gone for good */
        const LanceFragment *now = lfs_match_find_in(m->input->finder, tip->manifest.message, path);
        return !now || lfs_match_same_files(now, before);
    }
    const struct lfs_moved_part *part = part_of(g, path);
    bool kept = part && lfs_match_same_files(part->record, before);
    for (size_t i = 0; i < g->n_outs && kept; i++)
        kept = lfs_moves_kept_files(m, g->outs[i].path, g->outs[i].record);
    return kept;
}

bool lfs_moves_only_base(const struct lfs_moves *m, const LanceManifest *base, const char *path) {
    const struct lfs_moved_group *g = lfs_map_get(&m->by_new, path);
    bool only = g != NULL;
    for (size_t i = 0; only && i < g->n_parts; i++) {
        const LanceFragment *was = lfs_match_find_in(m->input->finder, base, g->parts[i].path);
        only = was ? lfs_match_same_files(was, g->parts[i].record) : lfs_moves_only_base(m, base, g->parts[i].path);
    }
    return only;
}

errint_t lfs_moves_up(struct lfs_moves *m, const char *path, const roaring_bitmap_t *rows, lfs_moves_visit visit,
                      void *context, struct lfs_error *err) {
    struct lfs_moved_group *g = lfs_map_get(&m->by_old, path);
    if (!g)
        return visit(context, path, rows, err);
    LFS_TRY(measure(m, g, err));
    AUTO_BITMAP *sequence = places(part_of(g, path), rows);
    if (!sequence)
        return lfs_fail_nomem(err);
    for (size_t i = 0; i < g->n_outs; i++) {
        AUTO_BITMAP *there = window(sequence, g->outs[i].start, g->outs[i].rows);
        if (!there)
            return lfs_fail_nomem(err);
        if (!roaring_bitmap_is_empty(there)) /* groups are of successive versions: this ends */
            LFS_TRY(lfs_moves_up(m, g->outs[i].path, there, visit, context, err));
    }
    return 0;
}

/* --- back: rows of a new fragment -> rows of the fragment `root` --- */

static errint_t down(struct lfs_moves *m, const char *path, const roaring_bitmap_t *rows, const char *root,
                     roaring_bitmap_t *out, struct lfs_error *err) {
    if (strcmp(path, root) == 0) {
        roaring_bitmap_or_inplace(out, rows);
        return 0;
    }
    struct lfs_moved_group *g = lfs_map_get(&m->by_new, path);
    if (!g)
        return 0; /* another fragment's rows */
    uint64_t start = 0;
    LFS_TRY(measure(m, g, err));
    for (size_t i = 0; i < g->n_outs; i++)
        if (strcmp(g->outs[i].path, path) == 0)
            start = g->outs[i].start;
    for (size_t i = 0; i < g->n_parts; i++) {
        AUTO_BITMAP *old = roaring_bitmap_create();
        roaring_uint32_iterator_t *it = roaring_create_iterator(rows);
        for (; old && it && it->has_value; roaring_advance_uint32_iterator(it)) {
            uint64_t place = start + it->current_value;
            uint32_t row;
            if (place >= g->parts[i].start && place < g->parts[i].start + g->parts[i].count &&
                roaring_bitmap_select(g->parts[i].live, (uint32_t)(place - g->parts[i].start), &row))
                roaring_bitmap_add(old, row);
        }
        if (it)
            roaring_free_uint32_iterator(it);
        if (!old)
            return lfs_fail_nomem(err);
        if (!roaring_bitmap_is_empty(old))
            LFS_TRY(down(m, g->parts[i].path, old, root, out, err));
    }
    return 0;
}

/* --- the vector that a compacted fragment would have --- */

struct effective {
    struct lfs_moves *moves;
    const char *root;
    roaring_bitmap_t *live; /* rows of the root that live today, wherever they stand */
};

/* Rows that stand in a fragment of today. What went away before, from a fragment between two compactions too, is not
 * among them. */
static errint_t visit_today(void *context, const char *path, const roaring_bitmap_t *rows, struct lfs_error *err) {
    struct effective *e = context;
    const struct lfs_merge_input *in = e->moves->input;
    const struct lfs_version *tip = e->moves->side == LFS_OURS ? in->ours : in->theirs;
    const LanceFragment *f = lfs_match_find_in(in->finder, tip->manifest.message, path);
    if (!f)
        return 0;
    AUTO_BITMAP *deleted = NULL;
    LFS_TRY(in->reader->deletions(in->reader->context, tip, f, &deleted, err));
    AUTO_BITMAP *live = roaring_bitmap_andnot(rows, deleted);
    if (!live)
        return lfs_fail_nomem(err);
    return down(e->moves, path, live, e->root, e->live, err);
}

errint_t lfs_moves_effective(struct lfs_moves *m, const char *path, uint64_t physical_rows, roaring_bitmap_t **out,
                             struct lfs_error *err) {
    struct lfs_moved_group *g = lfs_map_get(&m->by_old, path);
    *out = NULL;
    LFS_TRY(measure(m, g, err));
    AUTO_BITMAP *live = roaring_bitmap_create();
    struct effective e = {m, path, live};
    if (!live)
        return lfs_fail_nomem(err);
    LFS_TRY(lfs_moves_up(m, path, part_of(g, path)->live, visit_today, &e, err));
    roaring_bitmap_t *deleted = roaring_bitmap_from_range(0, physical_rows, 1);
    if (!deleted)
        return lfs_fail_nomem(err);
    roaring_bitmap_andnot_inplace(deleted, live);
    *out = deleted;
    return 0;
}
