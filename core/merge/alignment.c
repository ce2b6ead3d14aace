/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/alignment.h"

#include <inttypes.h>
#include <string.h>

#include "merge/choices.h"
#include "merge/field.h"
#include "merge/report.h"
#include "merge/rows_state.h"
#include "util/cleanup.h"
#include "util/map.h"

/* Did a side give a column of the base new data in this fragment? (Adding a column does not.) */
static bool rewrote_data(const struct lfs_alignment *m, const struct lfs_match *x, enum lfs_side side) {
    const LanceFragment *mine = side == LFS_OURS ? x->ours : x->theirs;
    for (size_t i = 0; x->base && mine && i < m->n_fields; i++) {
        const LanceField *base = m->fields[i].base, *now = side == LFS_OURS ? m->fields[i].ours : m->fields[i].theirs;
        if (!base || !now)
            continue;
        struct lfs_field_place a = lfs_field_place(x->base, base->id), b = lfs_field_place(mine, now->id);
        if (a.file && b.file && strcmp(a.file->path ? a.file->path : "", b.file->path ? b.file->path : ""))
            return true;
    }
    return false;
}

/* What a fragment is made of. */
static uint64_t print_of(const LanceFragment *f) {
    uint64_t hash = f && f->deletion_file ? f->deletion_file->id : 1;
    for (size_t i = 0; f && i < f->n_files; i++)
        if (f->files[i]->path)
            hash = lfs_hash(f->files[i]->path, strlen(f->files[i]->path), hash);
    return hash;
}

/* One side gave the fragment new data, the other removed it: two values of one unit. Theirs cannot win where ours has
 * removed what it would stand in. */
static errint_t settle_removed(const struct lfs_alignment *m, size_t i, enum lfs_side remover, bool *keep) {
    const struct lfs_fragment_state *s = &m->rows->states[i];
    const struct lfs_fragment_side *mine = remover == LFS_OURS ? &s->ours : &s->theirs;
    bool by_ours = remover == LFS_OURS;
    if (mine->change != LFS_GONE || mine->moved || m->plan->refusal)
        return 0;
    enum lfs_strategy takes;
    struct lfs_conflict c = LFS_CONFLICT(by_ours ? "remove-rewrite" : "rewrite-remove",
                             lfs_sprintf(m->plan->arena, "fragment %" PRIu64, s->id), "there",
                             by_ours ? "removed" : "a column rewritten", by_ours ? "a column rewritten" : "removed");
    c.key = lfs_sprintf(m->plan->arena, "%s\t%s", c.kind, s->path);
    c.print = print_of(by_ours ? m->matches[i].theirs : m->matches[i].ours);
    c.no_theirs = by_ours ? "the rows that the column belongs to are gone here" : NULL;
    LFS_TRY(lfs_settle(&m->input->policy, m->input->policy.rows, m->plan, &c, &takes, m->err));
    *keep = !by_ours && takes == LFS_STRATEGY_DEST;
    return 0;
}

/* One side rewrote a column in place while the other moved rows of the fragment elsewhere: those rows would keep the old
 * value. *keep: ours' fragment stays as it is. */
errint_t lfs_align_rewritten(const struct lfs_alignment *m, size_t i, bool *keep) {
    const struct lfs_match *x = &m->matches[i];
    *keep = false;
    for (int side = LFS_OURS; side <= LFS_THEIRS; side++) {
        enum lfs_departure departure;
        enum lfs_side other = side == LFS_OURS ? LFS_THEIRS : LFS_OURS;
        if (!m->rows->states[i].ours.other_files && !m->rows->states[i].theirs.other_files)
            break;
        if (!rewrote_data(m, x, other))
            continue;
        LFS_TRY(lfs_rows_departure(m->rows, i, (enum lfs_side)side, &departure, m->err));
        if (departure != LFS_DELETED_ONLY)
            LFS_TRY(lfs_report_refusal(m->plan, m->err,
                                       "one side rewrote a column of fragment %" PRIu64
                                       " and %s updated rows of it: not merged",
                                       x->base->id, side == LFS_OURS ? m->input->ours_name : m->input->theirs_name));
        LFS_TRY(settle_removed(m, i, (enum lfs_side)side, keep));
    }
    return 0;
}

/* A new column of `side` that has values in this fragment, or NULL. */
static const char *new_column(const struct lfs_alignment *m, const struct lfs_match *x, enum lfs_side side) {
    const LanceFragment *mine = side == LFS_OURS ? x->ours : x->theirs;
    const struct lfs_new_field *added = side == LFS_OURS ? m->schema->ours : m->schema->theirs;
    for (size_t i = 0; mine && i < (side == LFS_OURS ? m->schema->n_ours : m->schema->n_theirs); i++)
        if (lfs_field_place(mine, added[i].field->id).file)
            return added[i].path;
    return NULL;
}

/* Rows of which nobody can tell how they moved may have been compacted, and a compaction loses nothing: refused. */
errint_t lfs_align_moved(const struct lfs_alignment *m, size_t i) {
    const struct lfs_match *x = &m->matches[i];
    for (int side = LFS_OURS; side <= LFS_THEIRS; side++) {
        enum lfs_departure departure;
        enum lfs_side other = side == LFS_OURS ? LFS_THEIRS : LFS_OURS;
        if (!x->base || !(other == LFS_OURS ? m->schema->n_ours : m->schema->n_theirs))
            continue;
        LFS_TRY(lfs_rows_departure(m->rows, i, (enum lfs_side)side, &departure, m->err));
        const char *column = new_column(m, x, other);
        if (departure == LFS_UNEXPLAINED)
            LFS_TRY(lfs_report_refusal(m->plan, m->err,
                                       "no commit at hand tells how rows of fragment %" PRIu64 " left %s, and the other side "
                                       "added columns: not merged",
                                       x->base->id, side == LFS_OURS ? m->input->ours_name : m->input->theirs_name));
        else if (departure == LFS_MOVED_AWAY && column)
            LFS_TRY(lfs_rows_report_bare(m->rows, i, (enum lfs_side)side, column, m->err));
    }
    return 0;
}

/* Does the result read a column from a file of ours that theirs does not read it from? */
static bool reads_ours(const struct lfs_alignment *m, const struct lfs_match *x) {
    for (size_t i = 0; i < m->n_fields; i++) {
        const struct lfs_field_match *field = &m->fields[i];
        struct lfs_field_place ours = {0}, theirs = {0};
        if (!field->ours || !lfs_schema_has(m->schema, field->ours->id))
            continue;
        ours = lfs_field_place(x->ours, field->ours->id);
        if (field->theirs)
            theirs = lfs_field_place(x->theirs, field->theirs->id);
        if (ours.file && (!theirs.file ||
                          strcmp(ours.file->path ? ours.file->path : "", theirs.file->path ? theirs.file->path : "")))
            return true;
    }
    return false;
}

/* A column file holds no values for rows that were deleted when it was written: those of one side cannot serve rows that
 * the side deleted and that live in the result. */
errint_t lfs_align_holes(const struct lfs_alignment *m, size_t i, const struct lfs_plan_fragment *f) {
    struct lfs_fragment_state *s = &m->rows->states[i];
    const struct lfs_match *x = &m->matches[i];
    static const roaring_bitmap_t none;
    bool from[2] = {reads_ours(m, x), false};
    for (size_t k = 0; f->files && k < f->n_files; k++)
        from[1] |= f->files[k].is_theirs;
    for (int k = 0; k < 2; k++) {
        enum lfs_side side = k ? LFS_THEIRS : LFS_OURS;
        if (!from[k])
            continue;
        LFS_TRY(lfs_rows_load(m->rows, s, LFS_OURS, m->err));
        LFS_TRY(lfs_rows_load(m->rows, s, side, m->err));
        const roaring_bitmap_t *result = f->deletion == LFS_DELETION_KEPT ? s->ours.deleted
                                         : f->deleted                     ? f->deleted
                                                                          : &none;
        if (!roaring_bitmap_is_subset(lfs_rows_side(s, side)->deleted, result))
            return lfs_report_refusal(m->plan, m->err,
                                      "rows of fragment %" PRIu64
                                      " that %s had deleted would live, and its column files "
                                      "hold no values for them: not merged",
                                      f->id, k ? m->input->theirs_name : m->input->ours_name);
    }
    return 0;
}
