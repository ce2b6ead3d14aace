/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/field_match.h"

#include <string.h>

#include "merge/field.h"
#include "util/cleanup.h"
#include "util/map.h"

LanceField *lfs_field_by_id(const LanceManifest *m, int32_t id) {
    for (size_t i = 0; i < m->n_fields; i++)
        if (m->fields[i]->id == id)
            return m->fields[i];
    return NULL;
}

const char *lfs_field_path(struct lfs_arena *arena, const LanceManifest *m, const LanceField *f) {
    const char *path = f->name ? f->name : "";
    for (size_t depth = 0; path && f->parent_id >= 0 && depth < m->n_fields; depth++) {
        f = lfs_field_by_id(m, f->parent_id);
        if (!f)
            break;
        path = lfs_sprintf(arena, "%s.%s", f->name ? f->name : "", path);
    }
    return path ? path : "";
}

/* Fields of one side against those of the base. */
struct pairing {
    const struct lfs_merge_input *input;
    const LanceManifest *base, *side;
    const struct lfs_match *fragments;
    size_t n_fragments;
    enum lfs_side which;
    bool whole;  /* one side is taken as a whole, or alone has changed: what is not the same is simply another column */
    bool native; /* the base lies on the side's own line: an id means the same in both */
    struct lfs_arena *arena;
    LanceField **pair;           /* for each field of the side: the base's, or NULL */
    bool *taken;                 /* base fields that have their pair */
    const LanceField **replaces; /* for each field of the side: the base's that it is another type of, or NULL */
    struct lfs_map places;       /* "file:column" -> base field */
};

static bool same_schema(const LanceManifest *a, const LanceManifest *b) {
    if (a->n_fields != b->n_fields)
        return false;
    for (size_t i = 0; i < a->n_fields; i++)
        if (!lfs_field_same(a->fields[i], b->fields[i]))
            return false;
    return true;
}

static size_t index_of(const LanceManifest *m, const LanceField *f) {
    size_t i = 0;
    while (m->fields[i] != f)
        i++;
    return i;
}

static const LanceFragment *side_fragment(const struct pairing *p, size_t i) {
    return p->which == LFS_OURS ? p->fragments[i].ours : p->fragments[i].theirs;
}

static errint_t note_places(struct pairing *p, const LanceFragment *f, struct lfs_error *err) {
    for (size_t i = 0; i < f->n_files; i++)
        for (size_t k = 0; k < f->files[i]->n_fields && k < f->files[i]->n_column_indices; k++) {
            LanceField *field = lfs_field_by_id(p->base, f->files[i]->fields[k]);
            if (!field || f->files[i]->column_indices[k] < 0)
                continue;
            char *key = lfs_sprintf(p->arena, "%d:%s", f->files[i]->column_indices[k],
                                    f->files[i]->path ? f->files[i]->path : "");
            if (!key || !lfs_map_put(&p->places, key, field))
                return lfs_fail_nomem(err);
        }
    return 0;
}

static void take(struct pairing *p, size_t i, LanceField *base) {
    size_t at = index_of(p->base, base);
    if (p->pair[i] || p->taken[at])
        return;
    p->pair[i] = base;
    p->taken[at] = true;
}

/* By the data: a leaf of the side that reads what a leaf of the base reads. */
static errint_t pair_by_data(struct pairing *p, const LanceFragment *f, struct lfs_error *err) {
    for (size_t i = 0; i < f->n_files; i++)
        for (size_t k = 0; k < f->files[i]->n_fields && k < f->files[i]->n_column_indices; k++) {
            LanceField *field = lfs_field_by_id(p->side, f->files[i]->fields[k]);
            char *key = field ? lfs_sprintf(p->arena, "%d:%s", f->files[i]->column_indices[k],
                                            f->files[i]->path ? f->files[i]->path : "")
                              : NULL;
            if (field && !key)
                return lfs_fail_nomem(err);
            LanceField *base = key ? lfs_map_get(&p->places, key) : NULL;
            if (base)
                take(p, index_of(p->side, field), base);
        }
    return 0;
}

/* A parent is one with the parent of its children's pairs. Children stand behind their parents. */
static void pair_parents(struct pairing *p) {
    for (size_t i = p->side->n_fields; i-- > 0;) {
        const LanceField *f = p->side->fields[i];
        LanceField *parent = f->parent_id >= 0 ? lfs_field_by_id(p->side, f->parent_id) : NULL;
        if (!parent || !p->pair[i] || p->pair[i]->parent_id < 0)
            continue;
        LanceField *base = lfs_field_by_id(p->base, p->pair[i]->parent_id);
        if (base)
            take(p, index_of(p->side, parent), base);
    }
}

/* Do base and side read the two fields from different places in a fragment that both have? */
static bool is_apart(const struct pairing *p, int32_t base, int32_t side) {
    for (size_t i = 0; i < p->n_fragments; i++) {
        const LanceFragment *mine = side_fragment(p, i);
        if (p->fragments[i].base && mine && lfs_field_place(p->fragments[i].base, base).file &&
            lfs_field_place(mine, side).file)
            return true; /* one place would have made a pair of them */
    }
    return false;
}

static bool same_path(const struct pairing *p, const LanceField *base, const LanceField *side) {
    return strcmp(lfs_field_path(p->arena, p->side, side), lfs_field_path(p->arena, p->base, base)) == 0;
}

/* --- what no data tells: the history --- */

/* Fields without a pair: the base's first, then the side's. */
struct question {
    struct lfs_column_trace *list;
    LanceField **fields;
    size_t n_base, n;
};

static errint_t collect(const struct pairing *p, struct question *q, struct lfs_error *err) {
    size_t most = p->base->n_fields + p->side->n_fields + 1;
    *q = (struct question){LFS_NEW_ARRAY(p->arena, struct lfs_column_trace, most),
                           LFS_NEW_ARRAY(p->arena, LanceField *, most), 0, 0};
    if (!q->list || !q->fields)
        return lfs_fail_nomem(err);
    for (size_t i = 0; i < p->base->n_fields; i++)
        if (!p->taken[i])
            q->fields[q->n_base++] = p->base->fields[i];
    q->n = q->n_base;
    for (size_t i = 0; i < p->side->n_fields; i++)
        if (!p->pair[i])
            q->fields[q->n++] = p->side->fields[i];
    for (size_t i = 0; i < q->n; i++)
        q->list[i] = (struct lfs_column_trace){.side = i < q->n_base ? p->input->base_side : p->which,
                                               .id = q->fields[i]->id,
                                               .same_as = i,
                                               .unknown = true};
    return 0;
}

/* Others could be one under two names, or two of one name. */
static errint_t doubt(const struct pairing *p, const LanceField *base, const LanceField *side, struct lfs_error *err) {
    return p->whole
               ? 0
               : lfs_fail(err, LFS_E_UNSUPPORTED,
                          "columns %s and %s have no data in common any more by which they could be told apart: not "
                          "merged",
                          base->name ? base->name : "", side->name ? side->name : "");
}

/* One field of the side and one of the base. Where the history is gone, one id and one name on the side's own line are one
 * column; one that reads other data under that name may be a new one, or the old one with another type: nobody's rows are
 * mixed with it. */
static errint_t judge(struct pairing *p, const struct question *q, size_t base, size_t side, struct lfs_error *err) {
    const struct lfs_column_trace *b = &q->list[base], *s = &q->list[side];
    bool apart = is_apart(p, b->id, s->id), same = s->same_as == base,
         named = same_path(p, q->fields[base], q->fields[side]);
    bool told = !b->unknown && !s->unknown && !(same && s->assumed && apart);
    size_t at = index_of(p->side, q->fields[side]);
    if (told && !same)
        return 0;
    if (told ? s->retyped : apart && named)
        p->replaces[at] = q->fields[base];
    else if (told || (!apart && named && b->id == s->id && p->native))
        take(p, at, q->fields[base]);
    else if (!apart)
        return doubt(p, q->fields[base], q->fields[side], err);
    return 0;
}

static bool is_open(const struct pairing *p, const struct question *q, size_t base, size_t side) {
    return !p->taken[index_of(p->base, q->fields[base])] && !p->pair[index_of(p->side, q->fields[side])];
}

/* First those that are surely one, so that nobody doubts about them. */
static errint_t pair_by_history(struct pairing *p, struct lfs_error *err) {
    const struct lfs_merge_reader *reader = p->input->reader;
    struct question q;
    LFS_TRY(collect(p, &q, err));
    if (q.n_base == 0 || q.n == q.n_base)
        return 0;
    if (reader && reader->trace)
        LFS_TRY(reader->trace(reader->context, q.list, q.n_base, q.n, err));
    for (size_t s = q.n_base; s < q.n; s++)
        if (q.list[s].same_as < q.n_base)
            LFS_TRY(judge(p, &q, q.list[s].same_as, s, err));
    for (size_t s = q.n_base; s < q.n; s++)
        for (size_t b = 0; b < q.n_base; b++)
            if (q.fields[b]->id == q.fields[s]->id && is_open(p, &q, b, s) && same_path(p, q.fields[b], q.fields[s]))
                LFS_TRY(judge(p, &q, b, s, err));
    for (size_t s = q.n_base; s < q.n; s++)
        for (size_t b = 0; b < q.n_base; b++)
            if (is_open(p, &q, b, s))
                LFS_TRY(judge(p, &q, b, s, err));
    return 0;
}

/* --- all of it --- */

/* Every column of the base lies in a fragment that both have as it is, or above one that does. */
static bool is_confirmed(const struct pairing *p, bool *seen) {
    size_t left = p->base->n_fields;
    for (size_t i = 0; i < p->n_fragments && left; i++) {
        const LanceFragment *f = p->fragments[i].base, *mine = side_fragment(p, i);
        if (!f || !mine || (f != mine && !lfs_match_same_files(f, mine)))
            continue;
        for (size_t k = 0; k < p->base->n_fields; k++)
            for (const LanceField *at = !seen[k] && lfs_field_place(f, p->base->fields[k]->id).file ? p->base->fields[k]
                                                                                                    : NULL;
                 at && !seen[index_of(p->base, at)];
                 at = at->parent_id < 0 ? NULL : lfs_field_by_id(p->base, at->parent_id)) {
                seen[index_of(p->base, at)] = true;
                left--;
            }
    }
    return !left;
}

static errint_t pair_by_files(struct pairing *p, struct lfs_error *err) {
    lfs_map_init(&p->places, p->arena);
    for (size_t i = 0; i < p->n_fragments; i++)
        if (p->fragments[i].base && side_fragment(p, i))
            LFS_TRY(note_places(p, p->fragments[i].base, err));
    for (size_t i = 0; i < p->n_fragments; i++)
        if (p->fragments[i].base && side_fragment(p, i))
            LFS_TRY(pair_by_data(p, side_fragment(p, i), err));
    pair_parents(p);
    return 0;
}

static errint_t pair_side(struct pairing *p, struct lfs_error *err) {
    p->pair = LFS_NEW_ARRAY(p->arena, LanceField *, p->side->n_fields + 1);
    p->taken = LFS_NEW_ARRAY(p->arena, bool, p->base->n_fields + 1);
    p->replaces = LFS_NEW_ARRAY(p->arena, const LanceField *, p->side->n_fields + 1);
    bool *seen = LFS_NEW_ARRAY(p->arena, bool, p->base->n_fields + 1);
    if (!p->pair || !p->taken || !p->replaces || !seen)
        return lfs_fail_nomem(err);
    if (same_schema(p->base, p->side) && is_confirmed(p, seen)) {
        for (size_t i = 0; i < p->side->n_fields; i++)
            p->pair[i] = p->base->fields[i];
        return 0;
    }
    LFS_TRY(pair_by_files(p, err));
    return pair_by_history(p, err);
}

static LanceField *paired_with(const struct pairing *p, const LanceField *base) {
    for (size_t i = 0; i < p->side->n_fields; i++)
        if (p->pair[i] == base)
            return p->side->fields[i];
    return NULL;
}

/* --- new on both sides --- */

/* Do both read the two fields from different places in a fragment that both have? */
static bool twins_apart(const struct pairing *ours, const LanceField *f, const LanceField *other) {
    for (size_t i = 0; i < ours->n_fragments; i++) {
        const LanceFragment *a = ours->fragments[i].ours, *b = ours->fragments[i].theirs;
        if (!a || !b)
            continue;
        struct lfs_field_place x = lfs_field_place(a, f->id), y = lfs_field_place(b, other->id);
        if (x.file && y.file &&
            (x.column != y.column || strcmp(x.file->path ? x.file->path : "", y.file->path ? y.file->path : "")))
            return true;
    }
    return false;
}

/* A new column of theirs that is the same in all but ids. */
static LanceField *lookalike(const struct pairing *ours, const struct pairing *theirs, const LanceField *f) {
    const char *path = lfs_field_path(ours->arena, ours->side, f);
    for (size_t i = 0; i < theirs->side->n_fields; i++) {
        LanceField *other = theirs->side->fields[i];
        if (!theirs->pair[i] && lfs_field_same_but_id(f, other) &&
            strcmp(lfs_field_path(ours->arena, theirs->side, other), path) == 0)
            return other;
    }
    return NULL;
}

/* Both took it from one place: that is told by the data, or by the history where they have none in common. */
static errint_t find_twins(const struct pairing *ours, const struct pairing *theirs, LanceField **twins,
                           struct lfs_error *err) {
    const struct lfs_merge_reader *reader = ours->input->reader;
    size_t most = ours->side->n_fields, n = 0;
    struct lfs_column_trace *list = LFS_NEW_ARRAY(ours->arena, struct lfs_column_trace, 2 * most + 1);
    size_t *at = LFS_NEW_ARRAY(ours->arena, size_t, most + 1);
    if (!list || !at)
        return lfs_fail_nomem(err);
    for (size_t i = 0; i < most; i++) {
        const LanceField *f = ours->side->fields[i];
        LanceField *other = ours->pair[i] ? NULL : lookalike(ours, theirs, f);
        if (!other)
            continue;
        if (lfs_field_same_data(ours->input->finder, ours->side, f->id, theirs->side, other->id))
            twins[i] = other;
        else if (reader && reader->trace && !twins_apart(ours, f, other))
            at[n++] = i;
    }
    for (size_t k = 0; k < n; k++) {
        const LanceField *f = ours->side->fields[at[k]];
        list[k] = (struct lfs_column_trace){.side = LFS_OURS, .id = f->id, .same_as = k};
        list[n + k] =
            (struct lfs_column_trace){.side = LFS_THEIRS, .id = lookalike(ours, theirs, f)->id, .same_as = n + k};
    }
    if (n)
        LFS_TRY(reader->trace(reader->context, list, n, 2 * n, err));
    for (size_t k = 0; k < n; k++)
        if (list[n + k].same_as == k && !list[n + k].retyped)
            twins[at[k]] = lookalike(ours, theirs, ours->side->fields[at[k]]);
    return 0;
}

/* Did the side that kept the column give it new data, in place? */
static bool has_new_data(const struct pairing *p, const LanceField *base, const LanceField *side) {
    for (size_t i = 0; i < p->n_fragments; i++) {
        const LanceFragment *mine = side_fragment(p, i);
        if (!p->fragments[i].base || !mine || lfs_match_same_files(p->fragments[i].base, mine))
            continue;
        struct lfs_field_place a = lfs_field_place(p->fragments[i].base, base->id), b = lfs_field_place(mine, side->id);
        if (b.file && (!a.file || a.column != b.column ||
                       strcmp(a.file->path ? a.file->path : "", b.file->path ? b.file->path : "")))
            return true;
    }
    return false;
}

static void note_data(const struct pairing *ours, const struct pairing *theirs, struct lfs_field_match *m) {
    m->our_data = m->base && m->ours && !m->theirs && has_new_data(ours, m->base, m->ours);
    m->their_data = m->base && m->theirs && !m->ours && has_new_data(theirs, m->base, m->theirs);
}

errint_t lfs_match_fields(const struct lfs_merge_input *input, const struct lfs_match *fragments, size_t n_fragments,
                          struct lfs_arena *arena, struct lfs_field_match **out, size_t *n_out, struct lfs_error *err) {
    const LanceManifest *base = input->base->manifest.message;
    struct pairing o = {.input = input,
                        .base = base,
                        .side = input->ours->manifest.message,
                        .which = LFS_OURS,
                        .native = input->base_is_ours,
                        .arena = arena,
                        .whole = input->without_history || input->ours_is_base,
                        .fragments = fragments,
                        .n_fragments = n_fragments};
    struct pairing t = o;
    t.side = input->theirs->manifest.message;
    t.which = LFS_THEIRS;
    t.native = input->base_is_theirs;
    LFS_TRY(pair_side(&o, err));
    LFS_TRY(pair_side(&t, err));
    struct lfs_field_match *list =
        LFS_NEW_ARRAY(arena, struct lfs_field_match, base->n_fields + o.side->n_fields + t.side->n_fields + 1);
    bool *seen = LFS_NEW_ARRAY(arena, bool, t.side->n_fields + 1);
    LanceField **twins = LFS_NEW_ARRAY(arena, LanceField *, o.side->n_fields + 1);
    size_t n = 0;
    if (!list || !seen || !twins)
        return lfs_fail_nomem(err);
    LFS_TRY(find_twins(&o, &t, twins, err));
    for (size_t i = 0; i < o.side->n_fields; i++) {
        LanceField *f = o.side->fields[i];
        const char *path = lfs_field_path(arena, o.side, f);
        LanceField *theirs = o.pair[i] ? paired_with(&t, o.pair[i]) : twins[i];
        if (theirs)
            seen[index_of(t.side, theirs)] = true;
        list[n++] = (struct lfs_field_match){
            .base = o.pair[i], .ours = f, .theirs = theirs, .path = path, .replaces = o.replaces[i]};
    }
    for (size_t i = 0; i < base->n_fields; i++) {
        LanceField *theirs = paired_with(&t, base->fields[i]);
        if (paired_with(&o, base->fields[i]))
            continue;
        if (theirs)
            seen[index_of(t.side, theirs)] = true;
        list[n++] = (struct lfs_field_match){.base = base->fields[i],
                                             .theirs = theirs,
                                             .path = theirs ? lfs_field_path(arena, t.side, theirs)
                                                            : lfs_field_path(arena, base, base->fields[i])};
    }
    for (size_t i = 0; i < t.side->n_fields; i++)
        if (!seen[i])
            list[n++] = (struct lfs_field_match){.theirs = t.side->fields[i],
                                                 .replaces = t.replaces[i],
                                                 .path = lfs_field_path(arena, t.side, t.side->fields[i])};
    for (size_t i = 0; i < n; i++)
        note_data(&o, &t, &list[i]);
    *out = list;
    *n_out = n;
    return 0;
}
