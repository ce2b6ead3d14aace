/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/columns.h"

#include <inttypes.h>
#include <string.h>

#include "merge/choices.h"
#include "merge/field.h"
#include "merge/moves.h"
#include "merge/report.h"
#include "util/cleanup.h"
#include "util/map.h"

/* The file list of one fragment while it is made. */
struct list {
    const struct lfs_columns *c;
    struct lfs_plan_file *files;
    size_t n;
    struct lfs_error *err;
};

static bool same_place(struct lfs_field_place a, struct lfs_field_place b) {
    if (!a.file || !b.file)
        return a.file == b.file;
    return strcmp(a.file->path ? a.file->path : "", b.file->path ? b.file->path : "") == 0 && a.column == b.column;
}

/* A copy of a file's record whose field list can be changed. */
static LanceDataFile *editable(struct list *l, const LanceDataFile *file) {
    LanceDataFile *copy = lfs_memdup(l->c->plan->arena, file, sizeof *copy);
    if (copy)
        copy->fields = lfs_memdup(l->c->plan->arena, file->fields, file->n_fields * sizeof *file->fields);
    return copy && copy->fields ? copy : NULL;
}

static errint_t add_ours(struct list *l, const LanceFragment *ours) {
    for (size_t i = 0; i < ours->n_files; i++)
        l->files[l->n++] = (struct lfs_plan_file){ours->files[i], false};
    return 0;
}

/* Ours holds the field no more: theirs' file does. */
static errint_t bury(struct list *l, int32_t id) {
    for (size_t i = 0; i < l->n; i++)
        for (size_t k = 0; k < l->files[i].record->n_fields; k++) {
            if (l->files[i].record->fields[k] != id || l->files[i].is_theirs)
                continue;
            LanceDataFile *copy = editable(l, l->files[i].record);
            if (!copy)
                return lfs_fail_nomem(l->err);
            copy->fields[k] = LFS_FIELD_TOMBSTONE;
            l->files[i].record = copy;
        }
    return 0;
}

static errint_t settle_data(struct list *l, const struct lfs_match *x, int32_t id, const LanceDataFile *ours,
                            const LanceDataFile *theirs, enum lfs_strategy *takes) {
    const struct lfs_policy *policy = &l->c->input->policy;
    struct lfs_arena *arena = l->c->plan->arena;
    const char *name = "";
    for (size_t i = 0; i < l->c->schema->n_fields; i++)
        if (l->c->schema->fields[i]->id == id)
            name = l->c->schema->fields[i]->name;
    struct lfs_conflict c = LFS_CONFLICT("rewrite-rewrite",
                             lfs_sprintf(arena, "data of column %s in fragment %" PRIu64, name ? name : "", x->ours->id),
                             "there", "rewritten", "rewritten otherwise");
    const char *mine = ours && ours->path ? ours->path : "", *other = theirs->path ? theirs->path : "";
    c.key = lfs_sprintf(arena, "rewrite-rewrite\t%s\t%s", lfs_match_name(x->ours), name ? name : "");
    c.print = lfs_hash(other, strlen(other), lfs_hash(mine, strlen(mine), 1));
    return lfs_settle(policy, policy->columns, l->c->plan, &c, takes, l->err);
}

/* Is this slot of a file of theirs the one that the result should read the column from? */
static errint_t wanted(struct list *l, const struct lfs_match *x, const LanceDataFile *file, size_t slot, int32_t *id) {
    const struct lfs_field_match *m = NULL;
    *id = file->fields[slot] < 0 ? LFS_FIELD_TOMBSTONE : lfs_schema_their_id(l->c->schema, file->fields[slot], &m);
    if (*id < 0 || !lfs_schema_has(l->c->schema, *id)) {
        *id = LFS_FIELD_TOMBSTONE;
        return 0;
    }
    int32_t result = *id;
    struct lfs_field_place none = {NULL, -1};
    struct lfs_field_place theirs = lfs_field_place(x->theirs, m->theirs->id);
    struct lfs_field_place ours = m->ours ? lfs_field_place(x->ours, m->ours->id) : none;
    struct lfs_field_place base = m->base && x->base ? lfs_field_place(x->base, m->base->id) : none;
    if (same_place(theirs, base) || same_place(theirs, ours)) {
        *id = LFS_FIELD_TOMBSTONE;
        return 0;
    }
    enum lfs_strategy takes = LFS_STRATEGY_SOURCE;
    if (!same_place(ours, base))
        LFS_TRY(settle_data(l, x, result, ours.file, file, &takes));
    if (takes == LFS_STRATEGY_SOURCE)
        return bury(l, result);
    *id = LFS_FIELD_TOMBSTONE;
    return 0;
}

/* Ours' entry for the same file, or NULL. */
static struct lfs_plan_file *our_file(struct list *l, const LanceDataFile *file) {
    for (size_t i = 0; i < l->n; i++)
        if (!l->files[i].is_theirs &&
            strcmp(l->files[i].record->path ? l->files[i].record->path : "", file->path ? file->path : "") == 0)
            return &l->files[i];
    return NULL;
}

/* Ours dropped columns of a file of which it reads others: their values still lie there, and are read again. */
static errint_t read_again(struct list *l, struct lfs_plan_file *ours, const LanceDataFile *wanted) {
    LanceDataFile *copy = editable(l, ours->record);
    if (!copy)
        return lfs_fail_nomem(l->err);
    for (size_t k = 0; k < wanted->n_fields; k++) {
        size_t at = 0;
        if (wanted->fields[k] < 0)
            continue;
        while (at < copy->n_fields && at < copy->n_column_indices && k < wanted->n_column_indices &&
               copy->column_indices[at] != wanted->column_indices[k])
            at++;
        if (at >= copy->n_fields || at >= copy->n_column_indices || k >= wanted->n_column_indices ||
            wanted->column_indices[k] < 0 || lfs_schema_has(l->c->schema, copy->fields[at]))
            return lfs_report_refusal(l->c->plan, l->err, "%s and %s read different columns from one data file: not merged",
                                      l->c->input->ours_name, l->c->input->theirs_name);
        copy->fields[at] = wanted->fields[k];
    }
    ours->record = copy;
    return 0;
}

/* A file of theirs, for those of its fields that the result reads from it. */
static errint_t add_theirs(struct list *l, const struct lfs_match *x, const LanceDataFile *file) {
    LanceDataFile *copy = editable(l, file);
    bool any = false;
    if (!copy)
        return lfs_fail_nomem(l->err);
    for (size_t k = 0; k < file->n_fields; k++) {
        LFS_TRY(wanted(l, x, file, k, &copy->fields[k]));
        any |= copy->fields[k] >= 0;
    }
    struct lfs_plan_file *ours = any ? our_file(l, file) : NULL;
    if (ours)
        return read_again(l, ours, copy);
    if (any)
        l->files[l->n++] = (struct lfs_plan_file){copy, true};
    return 0;
}

/* Files in which no field of the schema is left go (lance-format section 6.2), but one: a fragment has a file. */
static void drop_empty(struct list *l) {
    size_t kept = 0;
    for (size_t i = 0; i < l->n; i++) {
        bool used = false;
        for (size_t k = 0; k < l->files[i].record->n_fields; k++)
            used |= lfs_schema_has(l->c->schema, l->files[i].record->fields[k]);
        if (used || (i + 1 == l->n && kept == 0))
            l->files[kept++] = l->files[i];
    }
    l->n = kept;
}

errint_t lfs_columns_merge(const struct lfs_columns *columns, const struct lfs_match *x,
                           struct lfs_plan_fragment *fragment, struct lfs_error *err) {
    struct list l = {.c = columns, .err = err};
    if (!columns->schema->changed && lfs_match_same_files(x->ours, x->theirs))
        return 0;
    l.files = LFS_NEW_ARRAY(columns->plan->arena, struct lfs_plan_file, x->ours->n_files + x->theirs->n_files + 1);
    if (!l.files)
        return lfs_fail_nomem(err);
    LFS_TRY(add_ours(&l, x->ours));
    for (size_t i = 0; i < x->theirs->n_files; i++)
        LFS_TRY(add_theirs(&l, x, x->theirs->files[i]));
    drop_empty(&l);
    bool changed = l.n != x->ours->n_files;
    for (size_t i = 0; i < l.n && !changed; i++)
        changed = l.files[i].record != x->ours->files[i];
    if (changed) {
        fragment->files = l.files;
        fragment->n_files = l.n;
    }
    return 0;
}

errint_t lfs_columns_take(const struct lfs_columns *columns, const LanceFragment *theirs,
                          struct lfs_plan_fragment *fragment, struct lfs_error *err) {
    struct list l = {.c = columns, .err = err};
    const struct lfs_field_match *ignored;
    l.files = LFS_NEW_ARRAY(columns->plan->arena, struct lfs_plan_file, theirs->n_files + 1);
    if (!l.files)
        return lfs_fail_nomem(err);
    for (size_t i = 0; i < theirs->n_files; i++) {
        LanceDataFile *copy = editable(&l, theirs->files[i]);
        if (!copy)
            return lfs_fail_nomem(err);
        for (size_t k = 0; k < copy->n_fields; k++)
            if (copy->fields[k] >= 0)
                copy->fields[k] = lfs_schema_their_id(columns->schema, copy->fields[k], &ignored);
        l.files[l.n++] = (struct lfs_plan_file){copy, true};
    }
    drop_empty(&l);
    fragment->files = l.files;
    fragment->n_files = l.n;
    return 0;
}

/* --- rows without a value for a new column --- */

/* What is asked of the fragments that only one side has: of what the result keeps of them. */
struct gaps {
    const struct lfs_columns *c;
    const struct lfs_match *matches;
    size_t n_matches;
    struct lfs_map kept; /* of fragments that one side alone has: path -> fragment of the plan, NULL where it has none */
    uint64_t rows[2], fragments[2]; /* ours, theirs */
    struct lfs_error *err;
};

/* The fragment of the i-th match, where only `side` has it; else NULL. */
static const LanceFragment *alone(const struct gaps *g, size_t i, enum lfs_side side) {
    const struct lfs_match *x = &g->matches[i];
    return x->base || (x->ours && x->theirs) ? NULL : side == LFS_OURS ? x->ours : x->theirs;
}

/* What the plan has of it: NULL where no row of it is kept. */
static const struct lfs_plan_fragment *only_of(const struct gaps *g, size_t i, enum lfs_side side) {
    const LanceFragment *mine = alone(g, i, side);
    return mine ? lfs_map_get(&g->kept, lfs_match_name(mine)) : NULL;
}

/* Few have one side alone: a map of all fragments would be the largest thing of a merge. */
static errint_t find_kept(struct gaps *g) {
    struct lfs_plan *plan = g->c->plan;
    lfs_map_init(&g->kept, plan->arena);
    for (size_t i = 0; i < g->n_matches; i++)
        for (int k = 0; k < 2; k++) {
            const LanceFragment *mine = alone(g, i, k ? LFS_THEIRS : LFS_OURS);
            if (mine && !lfs_map_put(&g->kept, lfs_match_name(mine), NULL))
                return lfs_fail_nomem(g->err);
        }
    for (size_t i = 0; g->kept.count && i < plan->n_fragments; i++) {
        struct lfs_map_entry *e = lfs_map_find(&g->kept, lfs_match_name(plan->fragments[i].record));
        if (e)
            e->value = &plan->fragments[i];
    }
    return 0;
}

static errint_t find_gaps(struct gaps *g) {
    LFS_TRY(find_kept(g));
    for (size_t i = 0; i < g->n_matches; i++)
        for (int k = 0; k < 2; k++) {
            const struct lfs_plan_fragment *f = only_of(g, i, k ? LFS_THEIRS : LFS_OURS);
            if (!f)
                continue;
            g->fragments[k]++;
            g->rows[k] += f->record->physical_rows > f->n_deleted ? f->record->physical_rows - f->n_deleted : 0;
        }
    return 0;
}

static const char *name_of(const struct gaps *g, enum lfs_side side) {
    return side == LFS_OURS ? g->c->input->ours_name : g->c->input->theirs_name;
}

/* `change` is what one side did to the column, and the other one has rows that do not go with it: only the rows can win, if
 * either. */
static errint_t settle_rows(const struct gaps *g, const char *unit, const char *path, const char *base, const char *change,
                            const char *done, enum lfs_side changer, bool rows_can_win, enum lfs_strategy *takes) {
    static const char *const stuck = "the new rows may hold nulls in it, and then nobody could read the table";
    static const char *const helpless = "the new rows have no value for it: let the column be null, or fill it in on the other side";
    const struct lfs_policy *policy = &g->c->input->policy;
    struct lfs_arena *arena = g->c->plan->arena;
    bool ours = changer == LFS_OURS;
    const char *rows = lfs_sprintf(arena, "%" PRIu64 " new rows", g->rows[ours]);
    struct lfs_conflict c = LFS_CONFLICT(lfs_sprintf(arena, "%s-%s", ours ? change : "rows", ours ? "rows" : change),
                             lfs_sprintf(arena, "%s %s", unit, path), base, ours ? done : rows, ours ? rows : done);
    c.no_ours = !rows_can_win ? helpless : ours ? stuck : NULL;
    c.no_theirs = !rows_can_win ? helpless : ours ? NULL : stuck;
    return rows && c.kind && c.unit ? lfs_settle(policy, policy->schema, g->c->plan, &c, takes, g->err)
                                    : lfs_fail_nomem(g->err);
}

/* A column that is new on `adder`, and the rows of the other side. */
static errint_t check_gap(const struct gaps *g, const struct lfs_new_field *f, enum lfs_side adder) {
    const char *other = name_of(g, adder == LFS_OURS ? LFS_THEIRS : LFS_OURS);
    bool at = adder == LFS_OURS;
    enum lfs_strategy takes;
    if (!g->fragments[at])
        return 0;
    if (f->replaces)
        return lfs_report_refusal(g->c->plan, g->err,
                                  "column %s changed its type on one side, and %s has new rows of the old type: not merged",
                                  f->path, other);
    if (!f->field->nullable)
        return settle_rows(g, "column", f->path, "absent", "add", "added, without nulls", adder, false, &takes);
    if (f->field->parent_id >= 0)
        return 0; /* its parent is noted */
    return lfs_report_note(g->c->plan, g->err, "column %s is null in %" PRIu64 " rows that came with %s: fill it in", f->path,
                           g->rows[at], other);
}

/* A column that is the same, but of another type now: new rows of the other side still have the old one. */
static errint_t check_type(const struct gaps *g, const LanceField *base, const LanceField *side, enum lfs_side changer) {
    bool at = changer == LFS_OURS;
    if (!g->fragments[at] || !base || !side ||
        strcmp(side->logical_type ? side->logical_type : "", base->logical_type ? base->logical_type : "") == 0)
        return 0;
    return lfs_report_refusal(g->c->plan, g->err,
                              "column %s changed its type on one side, and %s has new rows of the old type: not merged",
                              base->name ? base->name : "", name_of(g, at ? LFS_THEIRS : LFS_OURS));
}

/* --- a column that may not be null any more --- */

/* Did the side give the column of the base new data in a fragment that it still has? */
static bool rewrote(const struct gaps *g, const struct lfs_field_match *m, enum lfs_side side) {
    bool found = false;
    for (size_t i = 0; i < g->n_matches && !found; i++) {
        const struct lfs_match *x = &g->matches[i];
        const LanceFragment *mine = side == LFS_OURS ? x->ours : x->theirs;
        int32_t id = side == LFS_OURS ? m->ours->id : m->theirs->id;
        found = x->base && mine && !same_place(lfs_field_place(x->base, m->base->id), lfs_field_place(mine, id));
    }
    return found;
}

/* Does the side hold values of the column that it wrote since the base? (A compaction writes none.) */
static errint_t has_written(const struct gaps *g, const struct lfs_field_match *m, enum lfs_side side, bool *out) {
    const struct lfs_merge_input *in = g->c->input;
    struct lfs_moves moves;
    *out = rewrote(g, m, side);
    errint_t result = g->fragments[side == LFS_THEIRS]
                          ? lfs_moves_read(in, side, g->c->plan->arena, &moves, g->err)
                          : 0;
    for (size_t i = 0; i < g->n_matches && result == 0 && g->fragments[side == LFS_THEIRS] && !*out; i++) {
        const struct lfs_plan_fragment *f = only_of(g, i, side);
        *out = f && !lfs_moves_only_base(&moves, in->base->manifest.message, lfs_match_name(f->record));
    }
    return result;
}

/* The rows' side wins: the column may be null, as it was. */
static errint_t allow_nulls(const struct gaps *g, int32_t id) {
    LanceField **fields = g->c->schema->fields;
    for (size_t i = 0; i < g->c->schema->n_fields; i++)
        if (fields[i]->id == id) {
            fields[i] = lfs_memdup(g->c->plan->arena, fields[i], sizeof *fields[i]);
            if (!fields[i])
                return lfs_fail_nomem(g->err);
            fields[i]->has_nullable = fields[i]->nullable = true;
        }
    return 0;
}

/* Stock Lance looks through the rows before it forbids nulls. Those of the other side nobody has looked through, and one
 * null in them would make the table unreadable. */
static errint_t check_nulls(const struct gaps *g, const struct lfs_field_match *m, enum lfs_side changer) {
    const LanceField *mine = changer == LFS_OURS ? m->ours : m->theirs, *others = changer == LFS_OURS ? m->theirs : m->ours;
    enum lfs_strategy takes;
    bool written;
    if (!m->base || !mine || !others || !m->base->nullable || mine->nullable || !others->nullable)
        return 0;
    LFS_TRY(has_written(g, m, changer == LFS_OURS ? LFS_THEIRS : LFS_OURS, &written));
    if (!written)
        return 0;
    LFS_TRY(settle_rows(g, "nullability of column", m->path, "nulls allowed", "alter", "no nulls", changer, true, &takes));
    if (takes == LFS_STRATEGY_FAIL)
        return 0;
    g->c->plan->schema_changed |= changer == LFS_OURS;
    return allow_nulls(g, m->ours->id);
}

/* --- a column that one side dropped and the other wrote --- */

/* Does the list of an update name that column? By name, since ids are given anew from line to line. */
static errint_t names_column(const struct lfs_columns *c, const struct lfs_step *step, const struct lfs_field_match *m,
                             bool *out, struct lfs_error *err) {
    const LanceTransaction *t = step->after->manifest.transaction;
    const LanceManifest *after = step->after->manifest.message;
    if (!t || t->operation_case != LANCE__TABLE__TRANSACTION__OPERATION_UPDATE || !t->update)
        return 0;
    const char *base = lfs_field_path(c->plan->arena, c->input->base->manifest.message, m->base);
    const Lance__Table__Update *u = t->update;
    if (!u->n_updated_fragments && !u->n_removed_fragment_ids)
        return 0; /* a merge_insert that only inserted */
    if (!u->n_fields_modified && !u->n_fields_for_preserving_frag_bitmap && !step->is_merge)
        *out = true; /* it says nothing: it may have set any */
    for (size_t i = 0; i < u->n_fields_modified + u->n_fields_for_preserving_frag_bitmap; i++) {
        uint32_t id = i < u->n_fields_modified ? u->fields_modified[i]
                                               : u->fields_for_preserving_frag_bitmap[i - u->n_fields_modified];
        const LanceField *field = lfs_field_by_id(after, (int32_t)id);
        const char *path = field ? lfs_field_path(c->plan->arena, after, field) : NULL;
        if (field && !path)
            return lfs_fail_nomem(err);
        *out |= path && (strcmp(path, base) == 0 || strcmp(path, m->path) == 0);
    }
    return 0;
}

/* Values of it were written since the base, and would be lost with it: a conflict, unless the side that dropped it wins. */
static errint_t check_dropped(const struct lfs_columns *c, const struct lfs_field_match *m, enum lfs_side writer,
                              struct lfs_error *err) {
    const struct lfs_merge_input *in = c->input;
    const struct lfs_history *history;
    enum lfs_strategy takes;
    bool written = false;
    if (!in->policy.choices && in->policy.schema == (writer == LFS_OURS ? LFS_STRATEGY_SOURCE : LFS_STRATEGY_DEST))
        return 0;
    LFS_TRY(in->reader->history(in->reader->context, writer, &history, err));
    for (size_t i = 0; i < history->count && !written; i++)
        LFS_TRY(names_column(c, &history->steps[i], m, &written, err));
    struct lfs_conflict conflict = LFS_CONFLICT(writer == LFS_OURS ? "update-drop" : "drop-update",
                                    lfs_sprintf(c->plan->arena, "column %s", m->path), "there",
                                    writer == LFS_OURS ? "values updated" : "dropped",
                                    writer == LFS_OURS ? "dropped" : "values updated");
    *(writer == LFS_OURS ? &conflict.no_ours : &conflict.no_theirs) =
        "the other side's new rows do not hold the column: only the drop can be taken";
    return written ? lfs_settle(&in->policy, in->policy.schema, c->plan, &conflict, &takes, err) : 0;
}

/* Rows that an update of ours moved lose the values of a column that theirs added: they are counted among ours' new rows,
 * and noted. */
errint_t lfs_columns_check_gaps(const struct lfs_columns *c, const struct lfs_match *matches, size_t n_matches,
                                struct lfs_error *err) {
    struct gaps g = {.c = c, .matches = matches, .n_matches = n_matches, .err = err};
    const struct lfs_schema_merge *s = c->schema;
    if (c->plan->refusal)
        return 0; /* the fragments are not complete */
    LFS_TRY(find_gaps(&g));
    for (size_t i = 0; i < s->n_theirs; i++)
        LFS_TRY(check_gap(&g, &s->theirs[i], LFS_THEIRS));
    for (size_t i = 0; i < s->n_ours; i++)
        if (!c->input->ours_is_base)
            LFS_TRY(check_gap(&g, &s->ours[i], LFS_OURS));
    for (size_t i = 0; i < s->n_matches; i++) {
        const struct lfs_field_match *m = &s->matches[i];
        if (m->base && m->ours && !m->theirs && g.fragments[0]) /* an update makes fragments */
            LFS_TRY(check_dropped(c, m, LFS_OURS, err));
        if (m->base && m->theirs && !m->ours && g.fragments[1])
            LFS_TRY(check_dropped(c, m, LFS_THEIRS, err));
        LFS_TRY(check_type(&g, m->base, m->ours, LFS_OURS));
        LFS_TRY(check_type(&g, m->base, m->theirs, LFS_THEIRS));
        LFS_TRY(check_nulls(&g, m, LFS_OURS));
        LFS_TRY(check_nulls(&g, m, LFS_THEIRS));
    }
    return 0;
}
