/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/merge3.h"

#include <inttypes.h>
#include <string.h>

#include "merge/classes.h"
#include "merge/columns.h"
#include "merge/field.h"
#include "merge/maps.h"
#include "merge/match.h"
#include "merge/report.h"
#include "merge/row_ids.h"
#include "merge/rows.h"
#include "merge/rows_state.h"
#include "merge/virtual.h"
#include "util/cleanup.h"

struct merge {
    const struct lfs_merge_input *in;
    struct lfs_plan *plan;
    const LanceManifest *base, *ours, *theirs;
    struct lfs_match *matches;
    size_t n_matches;
    struct lfs_field_match *fields;
    size_t n_fields;
    struct lfs_rows rows;
    struct lfs_schema_merge schema;
    struct lfs_columns columns;
    bool agree;          /* on all fragments */
    bool keep_their_ids; /* fast-forward: no id of ours is in the way */
    struct lfs_error *err;
};

/* --- what is looked at as a whole --- */

static errint_t merge_schema(struct merge *m) {
    LFS_TRY(lfs_merge_schema(m->in, m->fields, m->n_fields, m->keep_their_ids, m->plan, &m->schema, m->err));
    m->columns = (struct lfs_columns){m->in, &m->schema, m->plan};
    m->plan->fields = m->schema.fields;
    m->plan->n_fields = m->schema.n_fields;
    m->plan->schema_changed = m->schema.changed;
    return lfs_columns_check_gaps(&m->columns, m->matches, m->n_matches, m->err);
}

/* Formats differ between engines' defaults; a table that mixes them does not open in stock Lance 12 and cannot be
 * written by 10 (lance-format section 14, T14). */
static errint_t check_formats(struct merge *m) {
    const Lance__Table__DataStorageFormat *a = m->ours->data_format, *b = m->theirs->data_format;
    const char *ours = a && a->version ? a->version : "", *theirs = b && b->version ? b->version : "";
    if (strcmp(ours, theirs))
        return lfs_report_refusal(m->plan, m->err, "the data files of %s have format %s, those of %s %s: a table cannot mix them",
                                  m->in->ours_name, ours, m->in->theirs_name, theirs);
    return 0;
}

/* --- fragments --- */

static uint64_t highest_id(const LanceManifest *m, bool *any) {
    uint64_t highest = m->has_max_fragment_id ? m->max_fragment_id : 0;
    *any = m->has_max_fragment_id || m->n_fragments > 0;
    for (size_t i = 0; i < m->n_fragments; i++)
        if (m->fragments[i]->id > highest)
            highest = m->fragments[i]->id;
    return highest;
}

/* A fast-forward keeps theirs' ids where that changes no id of ours and gives out none again (section 6). */
static void decide_ids(struct merge *m) {
    bool any;
    uint64_t highest = highest_id(m->ours, &any);
    m->keep_their_ids = m->in->ours_is_base && lfs_schema_ids_fit(m->in, m->fields, m->n_fields);
    for (size_t i = 0; i < m->n_matches && m->keep_their_ids; i++) {
        const struct lfs_match *x = &m->matches[i];
        if (x->ours && x->theirs)
            m->keep_their_ids = x->ours->id == x->theirs->id;
        else if (x->theirs)
            m->keep_their_ids = !any || x->theirs->id > highest;
    }
}

static struct lfs_plan_fragment *add(struct merge *m, const LanceFragment *record) {
    struct lfs_plan_fragment *f = &m->plan->fragments[m->plan->n_fragments++];
    *f = (struct lfs_plan_fragment){.id = record->id, .record = record};
    return f;
}

/* A fragment as ours has it. One of a virtual state has its vector written, which no file holds yet. */
static errint_t keep_ours(struct merge *m, const LanceFragment *ours, struct lfs_plan_fragment **out) {
    const struct lfs_merge_reader *r = m->in->reader;
    struct lfs_plan_fragment *f = add(m, ours);
    f->n_deleted = ours->deletion_file ? ours->deletion_file->num_deleted_rows : 0;
    *out = f;
    if (!lfs_virtual_is_marker(ours->deletion_file))
        return 0;
    f->deletion = LFS_DELETION_NEW;
    f->as_ours = true;
    return r->deletions(r->context, m->in->ours, ours, &f->deleted, m->err);
}

/* A fragment of ours under the vector `deleted` (owned from here on), which is theirs' whole where `from_theirs`. */
static struct lfs_plan_fragment *change_ours(struct merge *m, const struct lfs_match *x, bool from_theirs,
                                             roaring_bitmap_t *deleted) {
    struct lfs_plan_fragment *f = add(m, x->ours);
    f->deletion = LFS_DELETION_NEW;
    f->deleted = deleted;
    f->n_deleted = deleted ? roaring_bitmap_get_cardinality(deleted) : 0;
    if (from_theirs && x->theirs->deletion_file && x->theirs->id == f->id &&
        !lfs_virtual_is_marker(x->theirs->deletion_file)) {
        f->deletion = LFS_DELETION_THEIRS; /* the file's name holds the id, which is the same */
        f->theirs = x->theirs;
    }
    return f;
}

/* A fragment that only ours has. Rows that theirs deleted before ours compacted them are deleted here. */
static errint_t keep_new(struct merge *m, const LanceFragment *ours) {
    const struct lfs_merge_reader *r = m->in->reader;
    const roaring_bitmap_t *extra = lfs_rows_extra(&m->rows, LFS_OURS, ours->files[0]->path);
    struct lfs_plan_fragment *f;
    roaring_bitmap_t *deleted;
    if (!extra)
        return keep_ours(m, ours, &f);
    LFS_TRY(r->deletions(r->context, m->in->ours, ours, &deleted, m->err));
    roaring_bitmap_or_inplace(deleted, extra);
    if (roaring_bitmap_get_cardinality(deleted) >= ours->physical_rows) {
        roaring_bitmap_free(deleted); /* nothing of it is left */
        return 0;
    }
    struct lfs_match x = {.ours = ours};
    change_ours(m, &x, false, deleted);
    return 0;
}

/* A new fragment of theirs. Its deletion vector is read: a damaged one must not be taken over. Of a compaction that is
 * left out, only the rows that are new come along. */
static errint_t add_theirs(struct merge *m, const LanceFragment *theirs, uint64_t *next_id) {
    const struct lfs_merge_reader *r = m->in->reader;
    const roaring_bitmap_t *extra = lfs_rows_extra(&m->rows, LFS_THEIRS, theirs->files[0]->path);
    roaring_bitmap_t *deleted = NULL;
    if (theirs->deletion_file || extra)
        LFS_TRY(r->deletions(r->context, m->in->theirs, theirs, &deleted, m->err));
    if (extra)
        roaring_bitmap_or_inplace(deleted, extra);
    if (extra && roaring_bitmap_get_cardinality(deleted) >= theirs->physical_rows) {
        roaring_bitmap_free(deleted);
        return lfs_report_note(m->plan, m->err, "a compaction of %s is left out: its rows live on in the fragments of %s",
                               m->in->theirs_name, m->in->ours_name);
    }
    struct lfs_plan_fragment *f = add(m, theirs);
    f->is_theirs = f->is_new = true;
    f->id = m->keep_their_ids ? theirs->id : (*next_id)++;
    f->deleted = deleted;
    f->n_deleted = deleted ? roaring_bitmap_get_cardinality(deleted) : 0;
    if (deleted) {
        f->theirs = theirs;
        f->deletion = f->id == theirs->id && !extra && !lfs_virtual_is_marker(theirs->deletion_file)
                          ? LFS_DELETION_THEIRS
                          : LFS_DELETION_NEW;
    }
    return m->keep_their_ids ? 0 : lfs_columns_take(&m->columns, theirs, f, m->err);
}

/* Did a side give a column of the base new data in this fragment? (Adding a column does not.) */
static bool rewrote_data(const struct merge *m, const struct lfs_match *x, enum lfs_side side) {
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

/* One side gave the fragment new data, the other removed it: two values of one unit. Theirs cannot win where ours has
 * removed what it would stand in. */
static errint_t settle_removed(struct merge *m, size_t i, enum lfs_side remover, bool *keep) {
    const struct lfs_fragment_state *s = &m->rows.states[i];
    const struct lfs_fragment_side *mine = remover == LFS_OURS ? &s->ours : &s->theirs;
    bool by_ours = remover == LFS_OURS;
    if (mine->change != LFS_GONE || mine->moved || m->plan->refusal)
        return 0;
    *keep = !by_ours && m->in->policy.rows == LFS_STRATEGY_DEST;
    if (m->in->policy.rows == LFS_STRATEGY_DEST || (!by_ours && m->in->policy.rows == LFS_STRATEGY_SOURCE))
        return 0;
    struct lfs_conflict c = {by_ours ? "remove-rewrite" : "rewrite-remove",
                             lfs_sprintf(m->plan->arena, "fragment %" PRIu64, s->id), "there",
                             by_ours ? "removed" : "a column rewritten", by_ours ? "a column rewritten" : "removed"};
    return lfs_report_conflict(m->plan, &c, m->err);
}

/* One side rewrote a column in place while the other moved rows of the fragment elsewhere: those rows would keep the old
 * value. *keep: ours' fragment stays as it is. */
static errint_t check_rewritten(struct merge *m, size_t i, bool *keep) {
    const struct lfs_match *x = &m->matches[i];
    *keep = false;
    for (int side = LFS_OURS; side <= LFS_THEIRS; side++) {
        enum lfs_departure departure;
        enum lfs_side other = side == LFS_OURS ? LFS_THEIRS : LFS_OURS;
        if (!m->rows.states[i].ours.other_files && !m->rows.states[i].theirs.other_files)
            break;
        if (!rewrote_data(m, x, other))
            continue;
        LFS_TRY(lfs_rows_departure(&m->rows, i, (enum lfs_side)side, &departure, m->err));
        if (departure != LFS_DELETED_ONLY)
            LFS_TRY(lfs_report_refusal(m->plan, m->err,
                                       "one side rewrote a column of fragment %" PRIu64 " and %s updated rows of it: not merged",
                                       x->base->id, side == LFS_OURS ? m->in->ours_name : m->in->theirs_name));
        LFS_TRY(settle_removed(m, i, (enum lfs_side)side, keep));
    }
    return 0;
}

/* Rows that an update moved are null in a column that the other side added, and noted. Rows of which nobody can tell how
 * they moved may have been compacted, and a compaction loses nothing: refused rather than nulled. */
static errint_t check_unexplained(struct merge *m, size_t i) {
    for (int side = LFS_OURS; side <= LFS_THEIRS; side++) {
        enum lfs_departure departure;
        if (!m->matches[i].base || !(side == LFS_OURS ? m->schema.n_theirs : m->schema.n_ours))
            continue;
        LFS_TRY(lfs_rows_departure(&m->rows, i, (enum lfs_side)side, &departure, m->err));
        if (departure == LFS_UNEXPLAINED)
            LFS_TRY(lfs_report_refusal(m->plan, m->err,
                                       "no commit at hand tells how rows of fragment %" PRIu64 " left %s, and the other side "
                                       "added columns: not merged",
                                       m->matches[i].base->id, side == LFS_OURS ? m->in->ours_name : m->in->theirs_name));
    }
    return 0;
}

/* Does the result read a column from a file of ours that theirs does not read it from? */
static bool reads_ours(const struct merge *m, const struct lfs_match *x) {
    for (size_t i = 0; i < m->n_fields; i++) {
        const struct lfs_field_match *field = &m->fields[i];
        struct lfs_field_place ours = {0}, theirs = {0};
        if (!field->ours || !lfs_schema_has(&m->schema, field->ours->id))
            continue;
        ours = lfs_field_place(x->ours, field->ours->id);
        if (field->theirs)
            theirs = lfs_field_place(x->theirs, field->theirs->id);
        if (ours.file && (!theirs.file || strcmp(ours.file->path ? ours.file->path : "",
                                                 theirs.file->path ? theirs.file->path : "")))
            return true;
    }
    return false;
}

/* A column file holds no values for rows that were deleted when it was written: those of one side cannot serve rows that
 * the side deleted and that live in the result. */
static errint_t check_holes(struct merge *m, size_t i, const struct lfs_plan_fragment *f) {
    struct lfs_fragment_state *s = &m->rows.states[i];
    const struct lfs_match *x = &m->matches[i];
    static const roaring_bitmap_t none;
    bool from[2] = {reads_ours(m, x), false};
    for (size_t k = 0; f->files && k < f->n_files; k++)
        from[1] |= f->files[k].is_theirs;
    for (int k = 0; k < 2; k++) {
        enum lfs_side side = k ? LFS_THEIRS : LFS_OURS;
        if (!from[k])
            continue;
        LFS_TRY(lfs_rows_load(&m->rows, s, LFS_OURS, m->err));
        LFS_TRY(lfs_rows_load(&m->rows, s, side, m->err));
        const roaring_bitmap_t *result = f->deletion == LFS_DELETION_KEPT ? s->ours.deleted : f->deleted ? f->deleted : &none;
        if (!roaring_bitmap_is_subset(lfs_rows_side(s, side)->deleted, result))
            return lfs_report_refusal(m->plan, m->err,
                                      "rows of fragment %" PRIu64 " that %s had deleted would live, and its column files "
                                      "hold no values for them: not merged",
                                      f->id, k ? m->in->theirs_name : m->in->ours_name);
    }
    return 0;
}

static errint_t merge_files(struct merge *m, size_t i, struct lfs_plan_fragment *f) {
    LFS_TRY(lfs_columns_merge(&m->columns, &m->matches[i], f, m->err));
    return check_holes(m, i, f);
}

static errint_t decide(struct merge *m, size_t i) {
    const struct lfs_match *x = &m->matches[i];
    struct lfs_fragment_verdict verdict;
    LFS_TRY(lfs_rows_decide(&m->rows, i, &verdict, m->err));
    struct lfs_plan_fragment *f = NULL;
    switch (verdict.fate) {
    case LFS_FATE_OURS:
        if (x->ours)
            LFS_TRY(keep_ours(m, x->ours, &f));
        break;
    case LFS_FATE_REMOVED: break;
    case LFS_FATE_THEIRS: f = change_ours(m, x, true, verdict.deleted); break;
    case LFS_FATE_UNITED: f = change_ours(m, x, false, verdict.deleted); break;
    }
    return f && x->theirs ? merge_files(m, i, f) : 0;
}

/* A fragment that is to be decided; else only one side has it. */
static bool is_shared(const struct lfs_match *x) { return x->base || (x->ours && x->theirs); }

static errint_t merge_fragments(struct merge *m) {
    struct lfs_plan *plan = m->plan;
    bool any;
    uint64_t next_id = highest_id(m->ours, &any) + any;
    plan->fragments = LFS_NEW_ARRAY(plan->arena, struct lfs_plan_fragment, m->n_matches + 1);
    if (!plan->fragments)
        return lfs_fail_nomem(m->err);
    LFS_TRY(lfs_rows_init(&m->rows, m->in, plan, m->matches, m->n_matches, m->err));
    for (size_t i = 0; m->agree && i < m->n_matches; i++) {
        struct lfs_plan_fragment *f;
        if (!m->matches[i].ours)
            continue;
        LFS_TRY(keep_ours(m, m->matches[i].ours, &f));
        LFS_TRY(merge_files(m, i, f));
    }
    for (size_t i = 0; !m->agree && i < m->n_matches && !plan->refusal; i++) {
        if (!is_shared(&m->matches[i]))
            continue;
        bool keep;
        struct lfs_plan_fragment *f;
        LFS_TRY(check_rewritten(m, i, &keep)); /* first: deciding hands vectors over */
        LFS_TRY(check_unexplained(m, i));
        if (keep)
            LFS_TRY(keep_ours(m, m->matches[i].ours, &f));
        else
            LFS_TRY(decide(m, i));
    }
    for (size_t i = 0; i < m->n_matches && !plan->refusal; i++) {
        const struct lfs_match *x = &m->matches[i];
        if (is_shared(x))
            continue;
        if (x->ours)
            LFS_TRY(keep_new(m, x->ours));
        else
            LFS_TRY(add_theirs(m, x->theirs, &next_id));
    }
    return 0;
}

static int by_id(const void *a, const void *b) {
    uint64_t x = ((const struct lfs_plan_fragment *)a)->id, y = ((const struct lfs_plan_fragment *)b)->id;
    return x < y ? -1 : x > y;
}

static errint_t finish_fragments(struct merge *m) {
    struct lfs_plan *plan = m->plan;
    bool any, theirs_any;
    uint64_t highest = highest_id(m->ours, &any), theirs = highest_id(m->theirs, &theirs_any);
    qsort(plan->fragments, plan->n_fragments, sizeof *plan->fragments, by_id);
    if (m->keep_their_ids && theirs_any) {
        highest = theirs > highest ? theirs : highest;
        any = true;
    }
    for (size_t i = 0; i < plan->n_fragments; i++) {
        if (i && plan->fragments[i].id == plan->fragments[i - 1].id)
            return lfs_fail(m->err, LFS_E_CORRUPT, "%s holds two fragments with id %" PRIu64, m->in->ours_name,
                            plan->fragments[i].id);
        if (plan->fragments[i].id > highest)
            highest = plan->fragments[i].id;
        any = true;
    }
    if (highest > UINT32_MAX)
        return lfs_fail(m->err, LFS_E_TOO_BIG, "fragment ids are used up (%" PRIu64 ")", highest);
    plan->max_fragment_id = (uint32_t)highest;
    plan->has_max_fragment_id = any;
    return lfs_plan_count(plan, m->ours, m->err);
}

/* Both sides hold the same fragments: whatever led there, they agree. */
static bool sides_agree(const struct merge *m) {
    for (size_t i = 0; i < m->n_matches; i++) {
        const struct lfs_match *x = &m->matches[i];
        if ((x->ours != NULL) != (x->theirs != NULL))
            return false;
        if (x->ours && !(lfs_match_same_files(x->ours, x->theirs) && lfs_match_same_deletions(x->ours, x->theirs)))
            return false;
    }
    return true;
}

/* --- a side that replaced the table (section 5, s1) --- */

static bool changed_data(const struct merge *m, enum lfs_side side) {
    for (size_t i = 0; i < m->n_matches; i++) {
        const struct lfs_match *x = &m->matches[i];
        const LanceFragment *mine = side == LFS_OURS ? x->ours : x->theirs;
        if ((x->base != NULL) != (mine != NULL))
            return true;
        if (mine && (!lfs_match_same_files(x->base, mine) || !lfs_match_same_deletions(x->base, mine)))
            return true;
    }
    return false;
}

static bool lost_fragments(const struct merge *m, enum lfs_side side) {
    for (size_t i = 0; i < m->n_matches; i++)
        if (m->matches[i].base && !(side == LFS_OURS ? m->matches[i].ours : m->matches[i].theirs))
            return true;
    return false;
}

static errint_t check_replaced(struct merge *m, enum lfs_side side) {
    bool replaced;
    if (m->agree || !lost_fragments(m, side) || !changed_data(m, side == LFS_OURS ? LFS_THEIRS : LFS_OURS))
        return 0;
    LFS_TRY(lfs_side_was_replaced(m->in, side, &replaced, m->err));
    if (!replaced)
        return 0;
    return lfs_report_refusal(m->plan, m->err,
                              "%s was overwritten or restored, and %s changed rows: a merge of that is not done yet",
                              side == LFS_OURS ? m->in->ours_name : m->in->theirs_name,
                              side == LFS_OURS ? m->in->theirs_name : m->in->ours_name);
}

/* --- indexes (section 7) --- */

static bool has_all(const LanceIndexSection *list, const LanceIndexSection *in) {
    for (size_t i = 0; list && i < list->n_indices; i++)
        if (!lfs_index_find(in, list->indices[i]))
            return false;
    return true;
}

/* Returns whether theirs' indexes make the result differ from ours. */
static errint_t merge_indices(struct merge *m, bool *changed) {
    const LanceIndexSection *ours = m->in->ours->manifest.indices, *theirs = m->in->theirs->manifest.indices;
    m->plan->take_their_indices = m->keep_their_ids;
    *changed = m->keep_their_ids && !(has_all(ours, theirs) && has_all(theirs, ours));
    if (m->keep_their_ids)
        return 0;
    for (size_t i = 0; theirs && i < theirs->n_indices; i++)
        if (!lfs_index_find(m->in->base->manifest.indices, theirs->indices[i]) && !lfs_index_find(ours, theirs->indices[i]))
            LFS_TRY(lfs_report_note(m->plan, m->err, "index %s of %s is left out: rebuild it on %s",
                                    theirs->indices[i]->name ? theirs->indices[i]->name : "", m->in->theirs_name,
                                    m->in->ours_name));
    return 0;
}

/* --- the whole --- */

static errint_t run(struct merge *m) {
    struct lfs_plan *plan = m->plan;
    bool indices_changed = false;
    LFS_TRY(lfs_match_fragments(m->in, plan->arena, &m->matches, &m->n_matches, m->err));
    LFS_TRY(lfs_match_fields(m->in, m->matches, m->n_matches, plan->arena, &m->fields, &m->n_fields, m->err));
    decide_ids(m);
    m->agree = sides_agree(m);
    LFS_TRY(check_formats(m));
    LFS_TRY(merge_schema(m));
    LFS_TRY(check_replaced(m, LFS_OURS));
    LFS_TRY(check_replaced(m, LFS_THEIRS));
    LFS_TRY(merge_fragments(m));
    LFS_TRY(lfs_merge_maps(m->in, plan, m->err));
    LFS_TRY(merge_indices(m, &indices_changed));
    LFS_TRY(lfs_merge_row_ids(m->in, m->matches, m->n_matches, plan, m->err));
    if (!plan->refusal && !plan->n_conflicts)
        LFS_TRY(finish_fragments(m));
    if (plan->refusal)
        plan->outcome = LFS_OUTCOME_REFUSED;
    else if (plan->n_conflicts)
        plan->outcome = LFS_OUTCOME_CONFLICT;
    else if (!plan->fragments_changed && !plan->schema_changed && !plan->maps_changed && !indices_changed)
        plan->outcome = LFS_OUTCOME_EMPTY;
    else
        plan->outcome = m->in->ours_is_base ? LFS_OUTCOME_FAST_FORWARD : LFS_OUTCOME_MERGED;
    return 0;
}

errint_t lfs_merge3(const struct lfs_merge_input *input, struct lfs_arena *arena, struct lfs_plan *out,
                    struct lfs_error *err) {
    struct merge m = {.in = input,
                      .plan = out,
                      .base = input->base->manifest.message,
                      .ours = input->ours->manifest.message,
                      .theirs = input->theirs->manifest.message,
                      .err = err};
    *out = (struct lfs_plan){.arena = arena};
    errint_t result = run(&m);
    lfs_rows_free(&m.rows);
    return result;
}
