/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/schema.h"

#include <string.h>

#include "merge/choices.h"
#include "merge/field.h"
#include "merge/report.h"
#include "util/cleanup.h"
#include "util/map.h"

struct schema {
    const struct lfs_merge_input *in;
    const LanceManifest *base, *ours, *theirs;
    struct lfs_plan *plan;
    struct lfs_schema_merge *out;
    int32_t next_id;
    bool keep_ids;
    struct lfs_error *err;
};

/* Ids are given above all that the schema and the data files name (lance-format section 6.2). */
static int32_t highest_id(const LanceManifest *m) {
    int32_t highest = -1;
    for (size_t i = 0; i < m->n_fields; i++)
        highest = m->fields[i]->id > highest ? m->fields[i]->id : highest;
    for (size_t i = 0; i < m->n_fragments; i++)
        for (size_t k = 0; k < m->fragments[i]->n_files; k++)
            for (size_t j = 0; j < m->fragments[i]->files[k]->n_fields; j++)
                if (m->fragments[i]->files[k]->fields[j] > highest)
                    highest = m->fragments[i]->files[k]->fields[j];
    return highest;
}

bool lfs_schema_has(const struct lfs_schema_merge *s, int32_t id) {
    for (size_t i = 0; i < s->n_fields; i++)
        if (s->fields[i]->id == id)
            return true;
    return false;
}

int32_t lfs_schema_their_id(const struct lfs_schema_merge *s, int32_t id, const struct lfs_field_match **match) {
    for (size_t i = 0; i < s->n_matches; i++)
        if (s->matches[i].theirs && s->matches[i].theirs->id == id) {
            *match = &s->matches[i];
            return s->ids[i];
        }
    *match = NULL;
    return LFS_FIELD_TOMBSTONE;
}

bool lfs_schema_ids_fit(const struct lfs_merge_input *input, const struct lfs_field_match *matches, size_t n_matches) {
    int32_t ours = highest_id(input->ours->manifest.message);
    for (size_t i = 0; i < n_matches; i++) {
        const struct lfs_field_match *m = &matches[i];
        if (m->theirs && (m->ours ? m->ours->id != m->theirs->id : m->base == NULL && m->theirs->id <= ours))
            return false;
    }
    return true;
}

static uint64_t print_of(const LanceField *f, uint64_t hash) {
    if (!f)
        return ~hash;
    uint64_t numbers[] = {(uint64_t)f->id, (uint64_t)f->parent_id, f->nullable, f->n_metadata};
    hash = lfs_hash(f->name ? f->name : "", f->name ? strlen(f->name) : 0, lfs_hash(numbers, sizeof numbers, hash));
    return lfs_hash(f->logical_type ? f->logical_type : "", f->logical_type ? strlen(f->logical_type) : 0, hash);
}

/* Both sides changed a column: `c` lacks its unit. */
static errint_t settle_column(struct schema *s, struct lfs_conflict c, const struct lfs_field_match *m,
                              enum lfs_strategy strategy, enum lfs_strategy *takes) {
    const char *path = m->path;
    c.print = print_of(m->theirs, print_of(m->ours, c.print + 1));
    c.unit = lfs_sprintf(s->plan->arena, "column %s", path);
    return lfs_settle(&s->in->policy, strategy, s->plan, &c, takes, s->err);
}

/* The same where no strategy decides. */
static errint_t column_conflict(struct schema *s, const struct lfs_conflict *c, const struct lfs_field_match *m) {
    enum lfs_strategy takes;
    return settle_column(s, *c, m, LFS_STRATEGY_FAIL, &takes);
}

/* The same but for ids, which a merge renumbers. */
static bool unchanged(const LanceField *base, const LanceField *side) { return lfs_field_same_but_id(base, side); }

static void keep(struct schema *s, size_t i, LanceField *field) {
    s->out->ids[i] = field->id;
    s->out->fields[s->out->n_fields++] = field;
}

/* Is it one of the base's with another type, which that side has no more? */
static struct lfs_new_field new_field(const struct lfs_field_match *m, const LanceField *f) {
    return (struct lfs_new_field){f, m->path, m->replaces != NULL, m->replaces};
}

/* A retyped column is a new one in the place of the base's. Did the other side drop that one, and put none there? */
static bool dropped_there(struct schema *s, const struct lfs_new_field *added, enum lfs_side there) {
    bool dropped = false;
    for (size_t i = 0; added->replaces && i < s->out->n_matches; i++) {
        const struct lfs_field_match *m = &s->out->matches[i];
        if (!m->base && (there == LFS_OURS ? m->ours : m->theirs) && strcmp(m->path, added->path) == 0)
            return false;
        dropped |= m->base && m->base == added->old && !m->ours && !m->theirs;
    }
    return dropped;
}

/* What decides between a dropped column and what the other side did with it; an index on it is a matter of both classes. */
static enum lfs_strategy drop_strategy(const struct schema *s, bool altered) {
    const struct lfs_policy *p = &s->in->policy;
    return altered || p->schema != LFS_STRATEGY_FAIL ? p->schema : p->indexes;
}

/* Does it stand in another column than in the base? Parents are compared by their matches: ids differ from line to line. */
static bool was_moved(const struct schema *s, const struct lfs_field_match *m, enum lfs_side side) {
    const LanceField *f = side == LFS_OURS ? m->ours : m->theirs;
    if (!m->base || !f || (m->base->parent_id < 0) != (f->parent_id < 0))
        return m->base && f;
    for (size_t i = 0; f->parent_id >= 0 && i < s->out->n_matches; i++) {
        const struct lfs_field_match *p = &s->out->matches[i];
        const LanceField *now = side == LFS_OURS ? p->ours : p->theirs;
        if (p->base && p->base->id == m->base->parent_id)
            return now && now->id != f->parent_id;
    }
    return false;
}

/* A column that ours has. */
static errint_t merge_ours(struct schema *s, size_t i) {
    const struct lfs_field_match *m = &s->out->matches[i];
    LanceField *merged;
    if (was_moved(s, m, LFS_OURS) || was_moved(s, m, LFS_THEIRS))
        return lfs_report_refusal(s->plan, s->err, "column %s was moved into another one: not merged", m->path);
    if (!m->base) {
        struct lfs_new_field added = new_field(m, m->ours);
        struct lfs_conflict c = LFS_CONFLICT("alter-drop", NULL, "there", "altered", "dropped");
        enum lfs_strategy takes = LFS_STRATEGY_DEST;
        if (!m->theirs && dropped_there(s, &added, LFS_THEIRS))
            LFS_TRY(settle_column(s, c, m, s->in->policy.schema, &takes));
        if (takes == LFS_STRATEGY_SOURCE) {
            s->out->changed = true;
            return 0;
        }
        keep(s, i, m->ours);
        if (!m->theirs)
            s->out->ours[s->out->n_ours++] = added;
        return 0;
    }
    if (!m->theirs) { /* theirs dropped it */
        bool altered = !unchanged(m->base, m->ours) || m->our_data;
        struct lfs_conflict c = LFS_CONFLICT(altered ? "alter-drop" : "index-drop", NULL, "there", altered ? "altered" : "indexed",
                                 "dropped");
        enum lfs_strategy takes = LFS_STRATEGY_SOURCE;
        if (altered || m->our_index)
            LFS_TRY(settle_column(s, c, m, drop_strategy(s, altered), &takes));
        if (takes == LFS_STRATEGY_DEST)
            keep(s, i, m->ours);
        else
            s->out->changed = true;
        return 0;
    }
    if (unchanged(m->base, m->theirs)) {
        keep(s, i, m->ours);
        return 0;
    }
    struct lfs_field_trio trio = {m->base, m->ours, m->theirs, m->path, &s->in->policy};
    LFS_TRY(lfs_merge_field(&trio, s->plan, &merged, s->err));
    s->out->changed |= !lfs_field_same(merged, m->ours);
    keep(s, i, merged);
    return 0;
}

/* A column of the base that ours dropped. Theirs cannot win here: ours may have removed its data. */
static errint_t merge_dropped(struct schema *s, size_t i) {
    const struct lfs_field_match *m = &s->out->matches[i];
    bool altered = m->theirs && (!unchanged(m->base, m->theirs) || m->their_data);
    struct lfs_conflict c = LFS_CONFLICT(altered ? "drop-alter" : "drop-index", NULL, "there", "dropped",
                             altered ? "altered" : "indexed");
    enum lfs_strategy takes;
    c.no_theirs = "the column is dropped here, and its data may be gone";
    return altered || m->their_index ? settle_column(s, c, m, drop_strategy(s, altered), &takes) : 0;
}

/* --- columns that only theirs has --- */

static bool is_below(const struct lfs_schema_merge *out, int32_t id, int32_t ancestor) {
    for (size_t depth = 0; id >= 0 && depth <= out->n_fields; depth++) {
        if (id == ancestor)
            return true;
        int32_t up = -1;
        for (size_t k = 0; k < out->n_fields; k++)
            if (out->fields[k]->id == id)
                up = out->fields[k]->parent_id;
        id = up;
    }
    return false;
}

/* A new child goes behind the last field below its parent, a new top-level column last; a retyped one where theirs has
 * it: behind the last column that stands before it there. */
static size_t place_for(struct schema *s, const struct lfs_new_field *f, int32_t parent) {
    struct lfs_schema_merge *out = s->out;
    const struct lfs_field_match *ignored;
    size_t at = out->n_fields;
    if (parent >= 0) {
        for (size_t i = 0; i < out->n_fields; i++)
            at = is_below(out, out->fields[i]->id, parent) ? i + 1 : at;
    } else if (f->replaces) {
        at = 0;
        for (size_t i = 0; i < s->theirs->n_fields && s->theirs->fields[i] != f->field; i++)
            for (size_t k = 0; k < out->n_fields; k++)
                if (out->fields[k]->id == lfs_schema_their_id(out, s->theirs->fields[i]->id, &ignored))
                    at = k + 1 > at ? k + 1 : at;
    }
    return at;
}

static errint_t insert(struct schema *s, const LanceField *theirs, int32_t id, int32_t parent, size_t at) {
    struct lfs_schema_merge *out = s->out;
    LanceField *f = lfs_memdup(s->plan->arena, theirs, sizeof *f);
    if (!f)
        return lfs_fail_nomem(s->err);
    f->has_id = f->has_parent_id = true;
    f->id = id;
    f->parent_id = parent;
    memmove(out->fields + at + 1, out->fields + at, (out->n_fields - at) * sizeof *out->fields);
    out->fields[at] = f;
    out->n_fields++;
    out->changed = true;
    return 0;
}

/* A column of that path in the result, under the parent given. */
static const LanceField *name_taken(const struct lfs_schema_merge *out, const char *name, int32_t parent) {
    for (size_t i = 0; i < out->n_fields; i++)
        if (out->fields[i]->parent_id == parent && out->fields[i]->name && strcmp(out->fields[i]->name, name) == 0)
            return out->fields[i];
    return NULL;
}

static bool ours_added(const struct schema *s, const LanceField *field) {
    for (size_t i = 0; i < s->out->n_ours; i++)
        if (s->out->ours[i].field == field)
            return true;
    return false;
}

/* A column that ours added gives way to theirs of that name, with all below it. */
static void remove_column(struct schema *s, int32_t id) {
    struct lfs_schema_merge *out = s->out;
    size_t kept = 0;
    bool *below = LFS_NEW_ARRAY(s->plan->arena, bool, out->n_fields + 1);
    for (size_t i = 0; below && i < out->n_fields; i++)
        below[i] = is_below(out, out->fields[i]->id, id);
    for (size_t i = 0; below && i < out->n_fields; i++)
        if (!below[i])
            out->fields[kept++] = out->fields[i];
    out->n_fields = below ? kept : out->n_fields;
    out->changed = true;
    kept = 0;
    for (size_t i = 0; i < out->n_ours; i++) /* nobody's rows lack it now */
        if (lfs_schema_has(out, out->ours[i].field->id))
            out->ours[kept++] = out->ours[i];
    out->n_ours = kept;
}

/* fieldids=strict: both sides gave one id to a new column of their own. No strategy decides that: neither side's id can be
 * kept without the other's being changed. */
static errint_t check_strict_id(struct schema *s, const struct lfs_field_match *m, bool *clashes) {
    *clashes = false;
    for (size_t i = 0; s->in->policy.strict_field_ids && i < s->out->n_matches; i++) {
        const struct lfs_field_match *other = &s->out->matches[i];
        if (other == m || other->base || !other->ours || other->theirs || other->ours->id != m->theirs->id)
            continue;
        struct lfs_conflict c = LFS_CONFLICT("field-id", NULL, "absent",
                                 lfs_sprintf(s->plan->arena, "%s has id %d", other->path, other->ours->id),
                                 lfs_sprintf(s->plan->arena, "id %d", m->theirs->id));
        c.no_ours = c.no_theirs = "one id cannot name two columns: merge with fieldids=renumber";
        *clashes = true;
        return column_conflict(s, &c, m);
    }
    return 0;
}

/* May a new column of theirs come? Not where its name is taken, or where it is the base's under another type that ours
 * dropped. */
static errint_t settle_added(struct schema *s, const struct lfs_field_match *m, int32_t parent, struct lfs_new_field *added,
                             enum lfs_strategy *takes) {
    const LanceField *taken = name_taken(s->out, m->theirs->name ? m->theirs->name : "", parent);
    struct lfs_conflict add = LFS_CONFLICT("add-add", NULL, "absent", "added", "added otherwise"),
                        name = LFS_CONFLICT("name", NULL, "absent", "the name of another column", "added"),
                        drop = LFS_CONFLICT("drop-alter", NULL, "there", "dropped", "altered");
    name.no_theirs = "another column has that name here: rename one of them first";
    add.print = print_of(taken, 2);
    *takes = LFS_STRATEGY_SOURCE;
    if (taken)
        LFS_TRY(settle_column(s, ours_added(s, taken) ? add : name, m, s->in->policy.schema, takes));
    if (taken && *takes == LFS_STRATEGY_SOURCE)
        remove_column(s, taken->id);
    *added = new_field(m, m->theirs);
    return *takes == LFS_STRATEGY_SOURCE && dropped_there(s, added, LFS_OURS)
               ? settle_column(s, drop, m, s->in->policy.schema, takes)
               : 0;
}

static errint_t add_theirs(struct schema *s, size_t i) {
    struct lfs_schema_merge *out = s->out;
    const struct lfs_field_match *m = &out->matches[i], *parent_match = NULL;
    const LanceField *f = m->theirs;
    bool clashes;
    LFS_TRY(check_strict_id(s, m, &clashes));
    if (clashes)
        return 0;
    int32_t parent = f->parent_id < 0 ? -1 : lfs_schema_their_id(out, f->parent_id, &parent_match);
    if (f->parent_id >= 0 && parent < 0) {
        struct lfs_conflict c = LFS_CONFLICT("drop-add", NULL, "absent", "inside a dropped column", "added");
        c.no_theirs = "the column that it would stand in is dropped here";
        return parent_match && !parent_match->base ? 0 /* the parent is in conflict itself */ : column_conflict(s, &c, m);
    }
    struct lfs_new_field added;
    enum lfs_strategy takes;
    LFS_TRY(settle_added(s, m, parent, &added, &takes));
    if (takes != LFS_STRATEGY_SOURCE)
        return 0; /* theirs' column stays behind */
    out->ids[i] = s->keep_ids ? f->id : s->next_id++;
    out->theirs[out->n_theirs++] = added;
    return insert(s, f, out->ids[i], parent, place_for(s, &added, parent));
}

static errint_t prepare(struct schema *s) {
    struct lfs_schema_merge *out = s->out;
    const LanceManifest *all[] = {s->base, s->ours, s->theirs};
    for (size_t i = 0; i < 3; i++)
        s->next_id = highest_id(all[i]) >= s->next_id ? highest_id(all[i]) + 1 : s->next_id;
    out->fields = LFS_NEW_ARRAY(s->plan->arena, LanceField *, out->n_matches + 1);
    out->ours = LFS_NEW_ARRAY(s->plan->arena, struct lfs_new_field, out->n_matches + 1);
    out->theirs = LFS_NEW_ARRAY(s->plan->arena, struct lfs_new_field, out->n_matches + 1);
    out->ids = LFS_NEW_ARRAY(s->plan->arena, int32_t, out->n_matches + 1);
    if (!out->fields || !out->ours || !out->theirs || !out->ids)
        return lfs_fail_nomem(s->err);
    for (size_t i = 0; i < out->n_matches; i++)
        out->ids[i] = LFS_FIELD_TOMBSTONE;
    return 0;
}

/* Columns that ours added, or keeps, inside one that theirs dropped. */
static errint_t check_parents(struct schema *s) {
    const struct lfs_schema_merge *out = s->out;
    for (size_t i = 0; out->changed && i < out->n_matches; i++) {
        const struct lfs_field_match *m = &out->matches[i];
        if (!m->ours || !lfs_schema_has(out, out->ids[i]) || m->ours->parent_id < 0 || lfs_schema_has(out, m->ours->parent_id))
            continue;
        struct lfs_conflict c = LFS_CONFLICT(m->base ? "alter-drop" : "add-drop", NULL, m->base ? "there" : "absent",
                                 m->base ? "altered" : "added", "inside a dropped column");
        enum lfs_strategy takes;
        c.key = lfs_sprintf(s->plan->arena, "parent\t%s", m->path);
        c.no_ours = "the column that it stands in is dropped there";
        LFS_TRY(settle_column(s, c, m, LFS_STRATEGY_FAIL, &takes));
        if (takes == LFS_STRATEGY_SOURCE)
            remove_column(s, m->ours->id);
    }
    return 0;
}

/* Columns that were renamed into each other's names, or into that of a new one. */
static errint_t check_names(struct schema *s) {
    const struct lfs_schema_merge *out = s->out;
    for (size_t i = 0; out->changed && i < out->n_fields; i++) {
        const LanceField *f = out->fields[i];
        const LanceField *first = name_taken(out, f->name ? f->name : "", f->parent_id);
        struct lfs_conflict c = LFS_CONFLICT("name", NULL, "absent", "one column of that name", "another one");
        enum lfs_strategy takes;
        c.no_ours = c.no_theirs = "two columns would have one name: rename one of them first";
        c.unit = lfs_sprintf(s->plan->arena, "column %s", f->name ? f->name : "");
        if (first && first != f)
            LFS_TRY(lfs_settle(&s->in->policy, LFS_STRATEGY_FAIL, s->plan, &c, &takes, s->err));
    }
    return 0;
}

errint_t lfs_merge_schema(const struct lfs_merge_input *input, const struct lfs_field_match *matches, size_t n_matches,
                          bool keep_ids, struct lfs_plan *plan, struct lfs_schema_merge *out, struct lfs_error *err) {
    struct schema s = {.in = input,
                       .base = input->base->manifest.message,
                       .ours = input->ours->manifest.message,
                       .theirs = input->theirs->manifest.message,
                       .plan = plan,
                       .out = out,
                       .keep_ids = keep_ids,
                       .err = err};
    *out = (struct lfs_schema_merge){.matches = matches, .n_matches = n_matches};
    LFS_TRY(prepare(&s));
    for (size_t i = 0; i < n_matches; i++) /* in ours' order, then what ours lacks */
        LFS_TRY(matches[i].ours    ? merge_ours(&s, i)
                : matches[i].base  ? merge_dropped(&s, i)
                                   : add_theirs(&s, i));
    LFS_TRY(check_parents(&s));
    return check_names(&s);
}
