/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/indexes.h"

#include <string.h>

#include "merge/choices.h"
#include "merge/index_truth.h"
#include "merge/report.h"
#include "util/cleanup.h"
#include "util/map.h"

/* Lance's own: what a compaction or a write-ahead log left to be done. They tell of one line's files and mean nothing on
 * another one. */
static const char system_prefix[] = "__lance_";
static const char frag_reuse[] = "__lance_frag_reuse";
static const char mem_wal[] = "__lance_mem_wal";

/* The entries of one name on one side. */
struct entries {
    LanceIndex **items;
    size_t count;
};

enum taking { TAKE_OURS, TAKE_THEIRS };

struct lfs_index_unit {
    const char *name;
    struct entries base, ours, theirs;
    enum taking taking;
};

static bool is_system(const char *name) { return strncmp(name, system_prefix, sizeof system_prefix - 1) == 0; }

static const char *name_of(const LanceIndex *i) { return i->name ? i->name : ""; }

static const LanceIndexSection *list_of(const struct lfs_merge_input *in, enum lfs_side side) {
    if (side == LFS_THEIRS && in->policy.only && !(in->policy.only & LFS_CLASS_INDEXES))
        side = LFS_BASE;
    return (side == LFS_BASE ? in->base : side == LFS_OURS ? in->ours : in->theirs)->manifest.indices;
}

/* --- comparing --- */

/* The column that an index of that side names: its place in the list of matches; n_fields when there is none. */
static size_t column_of(const struct lfs_field_match *fields, size_t n_fields, enum lfs_side side, int32_t id) {
    size_t i = 0;
    for (; i < n_fields; i++) {
        const LanceField *f = side == LFS_BASE ? fields[i].base : side == LFS_OURS ? fields[i].ours : fields[i].theirs;
        if (f && f->id == id)
            break;
    }
    return i;
}

static bool same_details(const LanceIndex *a, const LanceIndex *b) {
    const Lance__Table__Any *x = a->index_details, *y = b->index_details;
    if (!x || !y)
        return x == y;
    size_t n = x->has_value ? x->value.len : 0;
    return strcmp(x->type_url ? x->type_url : "", y->type_url ? y->type_url : "") == 0 &&
           n == (y->has_value ? y->value.len : 0) && (n == 0 || memcmp(x->value.data, y->value.data, n) == 0);
}

/* The same columns, and the same kind of index. */
static bool same_definition(const struct lfs_field_match *fields, size_t n, const LanceIndex *a, enum lfs_side a_side,
                            const LanceIndex *b, enum lfs_side b_side) {
    if (a->n_fields != b->n_fields || !same_details(a, b))
        return false;
    for (size_t i = 0; i < a->n_fields; i++) {
        size_t column = column_of(fields, n, a_side, a->fields[i]);
        if (column == n || column != column_of(fields, n, b_side, b->fields[i]))
            return false;
    }
    return true;
}

static const LanceIndex *find(const struct entries *list, const LanceIndex *like) {
    LanceIndexSection section = {.indices = list->items, .n_indices = list->count};
    return lfs_index_find(&section, like);
}

static bool same_segments(const struct entries *a, const struct entries *b) {
    for (size_t i = 0; i < a->count; i++)
        if (!find(b, a->items[i]))
            return false;
    return a->count == b->count;
}

/* --- columns that one side dropped and the other one indexed --- */

/* An index on that column (the side's id) that the base has not under its name. */
static bool newly_indexed(const struct lfs_merge_input *in, const struct lfs_field_match *fields, size_t n, size_t at,
                          enum lfs_side side) {
    const LanceIndexSection *mine = list_of(in, side), *base = list_of(in, LFS_BASE);
    for (size_t i = 0; mine && i < mine->n_indices; i++) {
        const LanceIndex *x = mine->indices[i];
        bool known = is_system(name_of(x)), names = false;
        for (size_t k = 0; k < x->n_fields; k++)
            names |= column_of(fields, n, side, x->fields[k]) == at;
        for (size_t k = 0; names && base && k < base->n_indices; k++)
            known |= strcmp(name_of(x), name_of(base->indices[k])) == 0 &&
                     same_definition(fields, n, x, side, base->indices[k], LFS_BASE);
        if (names && !known)
            return true;
    }
    return false;
}

/* Retyped is not dropped: there is a new column of that name. */
static bool has_successor(const struct lfs_field_match *fields, size_t n, const struct lfs_field_match *m,
                          enum lfs_side side) {
    for (size_t i = 0; i < n; i++)
        if (!fields[i].base && (side == LFS_OURS ? fields[i].ours : fields[i].theirs) &&
            strcmp(fields[i].path, m->path) == 0)
            return true;
    return false;
}

void lfs_indexes_mark(const struct lfs_merge_input *in, struct lfs_field_match *fields, size_t n) {
    for (size_t i = 0; i < n; i++) {
        struct lfs_field_match *m = &fields[i];
        m->our_index = m->base && m->ours && !m->theirs && !has_successor(fields, n, m, LFS_THEIRS) &&
                       newly_indexed(in, fields, n, i, LFS_OURS);
        m->their_index = m->base && m->theirs && !m->ours && !has_successor(fields, n, m, LFS_OURS) &&
                         newly_indexed(in, fields, n, i, LFS_THEIRS);
    }
}

/* --- units --- */

static struct entries *entries_of(struct lfs_index_unit *u, enum lfs_side side) {
    return side == LFS_BASE ? &u->base : side == LFS_OURS ? &u->ours : &u->theirs;
}

static errint_t collect(struct lfs_indexes *x, enum lfs_side side) {
    const LanceIndexSection *list = list_of(x->input, side);
    for (size_t i = 0; list && i < list->n_indices; i++) {
        size_t at = 0;
        while (at < x->n_units && strcmp(x->units[at].name, name_of(list->indices[i])))
            at++;
        if (at == x->n_units)
            x->units[x->n_units++] = (struct lfs_index_unit){.name = name_of(list->indices[i])};
        struct entries *e = entries_of(&x->units[at], side);
        if (!e->items)
            e->items = LFS_NEW_ARRAY(x->plan->arena, LanceIndex *, list->n_indices);
        if (!e->items)
            return lfs_fail_nomem(x->err);
        e->items[e->count++] = list->indices[i];
    }
    return 0;
}

static const LanceField *field_of_result(const struct lfs_schema_merge *s, int32_t id) {
    for (size_t i = 0; i < s->n_fields; i++)
        if (s->fields[i]->id == id)
            return s->fields[i];
    return NULL;
}

/* Are all columns of a side's index there in the result, of the type that they had when it was built? */
static bool has_columns(const struct lfs_indexes *x, const struct entries *e, enum lfs_side side) {
    const struct lfs_schema_merge *s = x->schema;
    for (size_t i = 0; i < e->count; i++)
        for (size_t k = 0; k < e->items[i]->n_fields; k++) {
            size_t column = column_of(s->matches, s->n_matches, side, e->items[i]->fields[k]);
            const LanceField *mine = column == s->n_matches ? NULL
                                     : side == LFS_OURS     ? s->matches[column].ours
                                                            : s->matches[column].theirs;
            const LanceField *result = mine ? field_of_result(s, s->ids[column]) : NULL;
            if (!result ||
                strcmp(mine->logical_type ? mine->logical_type : "", result->logical_type ? result->logical_type : ""))
                return false;
        }
    return true;
}

/* "BTreeIndexDetails on id"; "(absent)". */
static const char *describe(const struct lfs_indexes *x, const struct entries *e, enum lfs_side side) {
    struct lfs_arena *arena = x->plan->arena;
    if (!e->count)
        return "(absent)";
    const LanceIndex *first = e->items[0];
    const char *type =
        first->index_details && first->index_details->type_url ? first->index_details->type_url : "index";
    const char *dot = strrchr(type, '.');
    const char *text = lfs_sprintf(arena, "%s on", dot ? dot + 1 : type);
    for (size_t i = 0; text && i < first->n_fields; i++) {
        size_t column = column_of(x->schema->matches, x->schema->n_matches, side, first->fields[i]);
        text =
            lfs_sprintf(arena, "%s%s %s", text, i ? "," : "",
                        column < x->schema->n_matches ? x->schema->matches[column].path : "a column that is not there");
    }
    return text;
}

/* --- the table of section 3, for one name --- */

static bool same_kind(const struct lfs_indexes *x, const struct entries *a, enum lfs_side a_side,
                      const struct entries *b, enum lfs_side b_side) {
    return a->count && b->count &&
           same_definition(x->schema->matches, x->schema->n_matches, a->items[0], a_side, b->items[0], b_side);
}

static const Lance__Table__UUID *successor(const Lance__Table__Rewrite *r, const Lance__Table__UUID *id) {
    for (size_t i = 0; i < r->n_rewritten_indices; i++) {
        const Lance__Table__UUID *old = r->rewritten_indices[i]->old_id;
        if (old && old->uuid.len == id->uuid.len && memcmp(old->uuid.data, id->uuid.data, id->uuid.len) == 0)
            return r->rewritten_indices[i]->new_id ? r->rewritten_indices[i]->new_id : id;
    }
    return id;
}

/* Are a side's segments those of the base, but for what its compactions wrote anew of them? That changes nothing that a
 * reader sees. */
static errint_t only_remapped(const struct lfs_indexes *x, const struct lfs_index_unit *u, enum lfs_side side,
                              bool *out) {
    const struct entries *mine = side == LFS_OURS ? &u->ours : &u->theirs;
    const struct lfs_history *history;
    *out = u->base.count == mine->count;
    LFS_TRY(x->input->reader->history(x->input->reader->context, side, &history, x->err));
    for (size_t i = 0; i < u->base.count && *out; i++) {
        LanceIndex now = *u->base.items[i];
        for (size_t k = 0; now.uuid && k < history->count; k++) {
            const LanceTransaction *t = history->steps[k].after->manifest.transaction;
            if (t && t->operation_case == LANCE__TABLE__TRANSACTION__OPERATION_REWRITE && t->rewrite)
                now.uuid = (Lance__Table__UUID *)successor(t->rewrite, now.uuid);
        }
        *out = find(mine, &now) != NULL;
    }
    return 0;
}

/* Which segments they are. */
static uint64_t print_of(const struct entries *e, uint64_t hash) {
    for (size_t i = 0; i < e->count; i++)
        if (e->items[i]->uuid)
            hash = lfs_hash(e->items[i]->uuid->uuid.data, e->items[i]->uuid->uuid.len, hash);
    return hash;
}

static errint_t settle(const struct lfs_indexes *x, const struct lfs_index_unit *u, enum lfs_strategy *takes) {
    struct lfs_conflict c = LFS_CONFLICT("index", lfs_sprintf(x->plan->arena, "index %s", u->name), describe(x, &u->base, LFS_BASE),
                             describe(x, &u->ours, LFS_OURS), describe(x, &u->theirs, LFS_THEIRS));
    c.print = print_of(&u->theirs, ~print_of(&u->ours, 1));
    return lfs_settle(&x->input->policy, x->input->policy.indexes, x->plan, &c, takes, x->err);
}

/* Both changed it, each in another way. */
static errint_t settle_conflict(const struct lfs_indexes *x, struct lfs_index_unit *u) {
    enum lfs_strategy takes = LFS_STRATEGY_FAIL;
    bool remapped = false;
    if (!u->ours.count || !u->theirs.count) /* one removed it */
        LFS_TRY(only_remapped(x, u, u->ours.count ? LFS_OURS : LFS_THEIRS, &remapped));
    if (remapped)
        u->taking = u->ours.count ? TAKE_THEIRS : TAKE_OURS;
    else
        LFS_TRY(settle(x, u, &takes));
    if (takes == LFS_STRATEGY_SOURCE)
        u->taking = TAKE_THEIRS;
    return 0;
}

/* An index whose column the result has no more goes with it. */
static errint_t drop_with_column(const struct lfs_indexes *x, struct lfs_index_unit *u, enum lfs_side side) {
    struct entries *e = entries_of(u, side);
    if (has_columns(x, e, side))
        return 0;
    bool is_news = side == LFS_OURS || !same_segments(&u->base, e);
    e->count = 0;
    u->base.count = 0; /* nobody removed it: what the other side has stands for itself */
    return !is_news ? 0
                    : lfs_report_note(x->plan, x->err,
                                      "index %s is dropped: its column is gone, or of another type now", u->name);
}

/* One side replaced the table, and nothing that the other indexed is left. */
static errint_t take_replaced(const struct lfs_indexes *x, struct lfs_index_unit *u) {
    struct entries *mine = entries_of(u, x->taken),
                   *other = entries_of(u, x->taken == LFS_OURS ? LFS_THEIRS : LFS_OURS);
    bool lost = other->count && !same_segments(other, mine) && !same_segments(other, &u->base);
    u->taking = x->taken == LFS_OURS ? TAKE_OURS : TAKE_THEIRS;
    return !lost ? 0
                 : lfs_report_note(x->plan, x->err, "index %s of %s is dropped: %s replaced the table", u->name,
                                   x->taken == LFS_OURS ? x->input->theirs_name : x->input->ours_name,
                                   x->taken == LFS_OURS ? x->input->ours_name : x->input->theirs_name);
}

/* --- an index that a merge left out --- */

static bool lists(const struct lfs_version *version, const char *name) {
    const LanceIndexSection *list = version ? version->manifest.indices : NULL;
    for (size_t i = 0; list && i < list->n_indices; i++)
        if (strcmp(name_of(list->indices[i]), name) == 0)
            return true;
    return false;
}

/* A merge that took everything over has the steps of what it brought before it: those say who dropped what. */
static bool drops(const struct lfs_step *step, const char *name) {
    bool whole = step->is_merge && !lfs_transaction_property(step->after->manifest.transaction, LFS_PROPERTY_ONLY);
    return lists(step->before, name) && !lists(step->after, name) && !whole;
}

/* Since the base the side lost the index without having dropped it, or never got it: it could not be carried over. That says
 * nothing about the other side's. */
static errint_t forget_left_out(const struct lfs_indexes *x, struct lfs_index_unit *u, enum lfs_side side) {
    const struct lfs_history *history;
    if (!u->base.count || entries_of(u, side)->count || x->input->without_history)
        return 0;
    LFS_TRY(x->input->reader->history(x->input->reader->context, side, &history, x->err));
    bool dropped = !history->complete || history->backward || history->count == 0;
    for (size_t i = 0; i < history->count && !dropped; i++)
        dropped = drops(&history->steps[i], u->name);
    u->base.count = dropped ? u->base.count : 0;
    return 0;
}

static errint_t decide(const struct lfs_indexes *x, struct lfs_index_unit *u) {
    u->taking = TAKE_OURS;
    if (is_system(u->name))
        return u->theirs.count && !same_segments(&u->base, &u->theirs) && !same_segments(&u->ours, &u->theirs)
                   ? lfs_report_note(x->plan, x->err, "index %s of %s is left out: it is of use there alone", u->name,
                                     x->input->theirs_name)
                   : 0;
    if (x->taken != LFS_BASE)
        return take_replaced(x, u);
    LFS_TRY(drop_with_column(x, u, LFS_OURS));
    LFS_TRY(drop_with_column(x, u, LFS_THEIRS));
    if (!same_segments(&u->base, &u->theirs))
        LFS_TRY(forget_left_out(x, u, u->theirs.count ? LFS_OURS : LFS_THEIRS));
    if (same_segments(&u->base, &u->theirs) || same_segments(&u->ours, &u->theirs))
        return 0;
    if (same_segments(&u->base, &u->ours)) {
        u->taking = TAKE_THEIRS;
        return 0;
    }
    return same_kind(x, &u->ours, LFS_OURS, &u->theirs, LFS_THEIRS) ? 0 : settle_conflict(x, u);
}

errint_t lfs_indexes_decide(struct lfs_indexes *x) {
    size_t most = 1;
    for (int side = LFS_BASE; side <= LFS_THEIRS; side++)
        most += list_of(x->input, (enum lfs_side)side) ? list_of(x->input, (enum lfs_side)side)->n_indices : 0;
    x->units = LFS_NEW_ARRAY(x->plan->arena, struct lfs_index_unit, most);
    if (!x->units)
        return lfs_fail_nomem(x->err);
    LFS_TRY(collect(x, LFS_OURS)); /* first: the result keeps their order */
    LFS_TRY(collect(x, LFS_THEIRS));
    LFS_TRY(collect(x, LFS_BASE));
    for (size_t i = 0; i < x->n_units && !x->keep_their_ids; i++)
        LFS_TRY(decide(x, &x->units[i]));
    return 0;
}

/* --- the list of the result --- */

static void put(struct lfs_plan *plan, const LanceIndex *record, bool is_theirs) {
    plan->indices[plan->n_indices++] = (struct lfs_plan_index){record, is_theirs};
}

static errint_t put_ours(const struct lfs_indexes *x, const struct lfs_index_truth *t, const struct lfs_index_unit *u) {
    for (size_t i = 0; i < u->ours.count; i++) {
        LanceIndex *kept = u->ours.items[i];
        if (!is_system(u->name))
            LFS_TRY(lfs_index_keep(t, u->ours.items[i], LFS_OURS, &kept));
        if (kept)
            put(x->plan, kept, false);
        else
            LFS_TRY(lfs_report_note(x->plan, x->err, "index %s is left out: rebuild it on %s", u->name,
                                    x->input->ours_name));
    }
    return 0;
}

/* A segment that both have covers what both say: together with theirs' others it must not cover a fragment twice. */
static errint_t keep_common(const struct lfs_index_truth *t, const LanceIndex *ours, const LanceIndex *theirs,
                            LanceIndex **out) {
    roaring_bitmap_t *a = NULL, *b = NULL;
    LFS_TRY(lfs_index_keep(t, ours, LFS_OURS, out));
    errint_t result = *out ? lfs_index_coverage(*out, &a, t->err) : 0;
    if (result == 0)
        result = lfs_index_coverage(theirs, &b, t->err);
    if (result == 0 && (!a || !b))
        *out = NULL;
    if (result == 0 && *out && !roaring_bitmap_is_subset(a, b)) {
        roaring_bitmap_and_inplace(a, b);
        result = lfs_index_with_coverage(*out, a, t->plan->arena, out, t->err);
    }
    if (a)
        roaring_bitmap_free(a);
    if (b)
        roaring_bitmap_free(b);
    return result;
}

static bool has_frag_reuse(const struct lfs_indexes *x) {
    for (size_t i = 0; i < x->n_units; i++)
        if (strcmp(x->units[i].name, frag_reuse) == 0 && (x->units[i].ours.count || x->units[i].theirs.count))
            return true;
    return false;
}

/* Theirs' value of the unit, as far as it is true here. Where some of it is not and ours has an index of the same kind,
 * that one stays. */
static errint_t put_theirs(const struct lfs_indexes *x, const struct lfs_index_truth *t,
                           const struct lfs_index_unit *u) {
    size_t before = x->plan->n_indices, lost = 0;
    bool unmapped = has_frag_reuse(x); /* addresses that are to be read through a list of one side */
    for (size_t i = 0; i < u->theirs.count; i++) {
        const LanceIndex *own = find(&u->ours, u->theirs.items[i]);
        LanceIndex *kept = NULL;
        if (own)
            LFS_TRY(keep_common(t, own, u->theirs.items[i], &kept));
        else if (!unmapped)
            LFS_TRY(lfs_index_keep(t, u->theirs.items[i], LFS_THEIRS, &kept));
        if (kept)
            put(x->plan, kept, !own);
        lost += !kept;
    }
    if (!lost)
        return 0;
    LFS_TRY(lfs_report_note(x->plan, x->err, "index %s of %s is left out%s: rebuild it on %s", u->name,
                            x->input->theirs_name, lost < u->theirs.count ? " in part" : "", x->input->ours_name));
    if (!same_kind(x, &u->ours, LFS_OURS, &u->theirs, LFS_THEIRS))
        return 0;
    x->plan->n_indices = before;
    return put_ours(x, t, u);
}

/* A fast-forward keeps theirs' fragments and ids, so all that is said of them stays true; but a write-ahead log lies in
 * the source's own storage. */
static errint_t put_all_of_theirs(const struct lfs_indexes *x, const struct lfs_index_unit *u) {
    if (strcmp(u->name, mem_wal) == 0 && u->theirs.count)
        return lfs_report_note(x->plan, x->err, "index %s of %s is left out: it is of use there alone", u->name,
                               x->input->theirs_name);
    for (size_t i = 0; i < u->theirs.count; i++)
        put(x->plan, u->theirs.items[i], true);
    return 0;
}

static bool is_of(const LanceIndexSection *list, const LanceIndex *record) {
    for (size_t i = 0; list && i < list->n_indices; i++)
        if (list->indices[i] == record)
            return true;
    return false;
}

/* A fast-forward's entries are theirs' own records: there the uuids tell. */
static bool differs(const struct lfs_indexes *x) {
    const LanceIndexSection *ours = x->input->ours->manifest.indices;
    bool changed = x->plan->n_indices != (ours ? ours->n_indices : 0);
    for (size_t i = 0; i < x->plan->n_indices && !changed; i++)
        changed = x->keep_their_ids ? !lfs_index_find(ours, x->plan->indices[i].record)
                                    : !is_of(ours, x->plan->indices[i].record);
    return changed;
}

errint_t lfs_indexes_settle(struct lfs_indexes *x, const struct lfs_match *matches, size_t n_matches) {
    struct lfs_plan *plan = x->plan;
    struct lfs_index_truth truth;
    size_t most = 1;
    for (size_t i = 0; i < x->n_units; i++)
        most += x->units[i].ours.count + x->units[i].theirs.count;
    plan->indices = LFS_NEW_ARRAY(plan->arena, struct lfs_plan_index, most);
    if (!plan->indices)
        return lfs_fail_nomem(x->err);
    LFS_TRY(lfs_index_truth_init(&truth, x->input, matches, n_matches, x->schema, plan, x->err));
    for (size_t i = 0; i < x->n_units; i++) {
        const struct lfs_index_unit *u = &x->units[i];
        LFS_TRY(x->keep_their_ids        ? put_all_of_theirs(x, u)
                : u->taking == TAKE_OURS ? put_ours(x, &truth, u)
                                         : put_theirs(x, &truth, u));
    }
    plan->indices_changed = differs(x);
    return 0;
}
