/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/field.h"

#include <string.h>

#include "merge/choices.h"
#include "merge/match.h"
#include "util/cleanup.h"

typedef Lance__File__MetadataEntry Entry;

static bool same_text(const char *a, const char *b) { return strcmp(a ? a : "", b ? b : "") == 0; }

/* --- metadata, by key --- */

static const Entry *find_entry(const LanceField *f, const char *key) {
    const Entry *found = NULL;
    for (size_t i = 0; f && i < f->n_metadata; i++)
        if (same_text(f->metadata[i]->key, key))
            found = f->metadata[i];
    return found;
}

static bool same_entry(const Entry *a, const Entry *b) {
    if (!a || !b)
        return a == b;
    size_t n = a->has_value ? a->value.len : 0;
    return n == (b->has_value ? b->value.len : 0) && (n == 0 || memcmp(a->value.data, b->value.data, n) == 0);
}

static bool same_metadata(const LanceField *a, const LanceField *b) {
    if (a->n_metadata != b->n_metadata)
        return false;
    for (size_t i = 0; i < a->n_metadata; i++)
        if (!same_entry(a->metadata[i], find_entry(b, a->metadata[i]->key)))
            return false;
    return true;
}

/* --- comparing --- */

bool lfs_field_same_but_id(const LanceField *a, const LanceField *b) {
    return a->type == b->type && same_text(a->name, b->name) && same_text(a->logical_type, b->logical_type) &&
           a->nullable == b->nullable && a->encoding == b->encoding && same_text(a->extension_name, b->extension_name) &&
           a->unenforced_primary_key == b->unenforced_primary_key &&
           a->unenforced_primary_key_position == b->unenforced_primary_key_position && same_metadata(a, b) &&
           a->base.n_unknown_fields == b->base.n_unknown_fields;
}

bool lfs_field_same(const LanceField *a, const LanceField *b) {
    return a->id == b->id && a->parent_id == b->parent_id && lfs_field_same_but_id(a, b);
}

struct lfs_field_place lfs_field_place(const LanceFragment *fragment, int32_t id) {
    for (size_t i = 0; i < fragment->n_files; i++)
        for (size_t k = 0; k < fragment->files[i]->n_fields; k++)
            if (fragment->files[i]->fields[k] == id)
                return (struct lfs_field_place){fragment->files[i], k < fragment->files[i]->n_column_indices
                                                                        ? fragment->files[i]->column_indices[k]
                                                                        : -1};
    return (struct lfs_field_place){NULL, -1};
}

static bool same_place(const LanceFragment *a, int32_t a_id, const LanceFragment *b, int32_t b_id) {
    struct lfs_field_place x = lfs_field_place(a, a_id), y = lfs_field_place(b, b_id);
    if (!x.file || !y.file)
        return x.file == y.file;
    return same_text(x.file->path, y.file->path) && x.column == y.column;
}

bool lfs_field_same_data(struct lfs_match_finder *finder, const LanceManifest *a, int32_t a_id, const LanceManifest *b,
                         int32_t b_id) {
    bool any = false;
    for (size_t i = 0; i < a->n_fragments; i++) {
        const LanceFragment *f = a->fragments[i];
        const LanceFragment *other = f->n_files ? lfs_match_find_in(finder, b, lfs_match_name(f)) : NULL;
        if (!other)
            continue;
        if (!same_place(a->fragments[i], a_id, other, b_id))
            return false;
        any |= lfs_field_place(a->fragments[i], a_id).file != NULL;
    }
    return any;
}

/* --- merging --- */

struct merge {
    const struct lfs_field_trio *trio;
    struct lfs_plan *plan;
    LanceField *out;
    struct lfs_error *err;
};

/* Which side's value an attribute takes, by the table of merge-semantics section 3. */
static errint_t choose(struct merge *m, const char *what, bool ours_changed, bool theirs_changed, bool agree,
                       const char *texts[3], bool *take_theirs) {
    enum lfs_strategy takes;
    bool both = ours_changed && theirs_changed && !agree;
    *take_theirs = theirs_changed && !agree && !ours_changed;
    if (!both)
        return 0;
    struct lfs_conflict c = LFS_CONFLICT("alter-alter", lfs_sprintf(m->plan->arena, "%s of column %s", what, m->trio->path),
                             texts[0] ? texts[0] : "(absent)", texts[1] ? texts[1] : "(absent)",
                             texts[2] ? texts[2] : "(absent)");
    LFS_TRY(lfs_settle(m->trio->policy, m->trio->policy->schema, m->plan, &c, &takes, m->err));
    *take_theirs = takes == LFS_STRATEGY_SOURCE;
    return 0;
}

static errint_t merge_text(struct merge *m, const char *what, const char *base, char **ours, const char *theirs) {
    const char *texts[3] = {base, *ours, theirs};
    bool take;
    LFS_TRY(choose(m, what, !same_text(base, *ours), !same_text(base, theirs), same_text(*ours, theirs), texts, &take));
    if (take)
        *ours = (char *)theirs;
    return 0;
}

static errint_t merge_flag(struct merge *m, const char *what, bool base, bool ours, bool theirs, bool *out) {
    const char *texts[3] = {base ? "yes" : "no", ours ? "yes" : "no", theirs ? "yes" : "no"};
    bool take;
    LFS_TRY(choose(m, what, base != ours, base != theirs, ours == theirs, texts, &take));
    *out = take ? theirs : ours;
    return 0;
}

static const char *entry_text(struct lfs_arena *arena, const Entry *e) {
    return e ? lfs_strndup(arena, (const char *)e->value.data, e->has_value ? e->value.len : 0) : NULL;
}

static errint_t merge_key(struct merge *m, const char *key, Entry **list, size_t *n) {
    const struct lfs_field_trio *t = m->trio;
    const Entry *b = find_entry(t->base, key), *o = find_entry(t->ours, key), *x = find_entry(t->theirs, key);
    const char *texts[3] = {entry_text(m->plan->arena, b), entry_text(m->plan->arena, o), entry_text(m->plan->arena, x)};
    char *what = lfs_sprintf(m->plan->arena, "metadata key %s", key ? key : "");
    bool take;
    if (!what)
        return lfs_fail_nomem(m->err);
    LFS_TRY(choose(m, what, !same_entry(b, o), !same_entry(b, x), same_entry(o, x), texts, &take));
    const Entry *result = take ? x : o;
    if (result)
        list[(*n)++] = (Entry *)result;
    return 0;
}

static errint_t merge_metadata(struct merge *m) {
    const struct lfs_field_trio *t = m->trio;
    size_t n = 0;
    Entry **list = LFS_NEW_ARRAY(m->plan->arena, Entry *, t->ours->n_metadata + t->theirs->n_metadata + 1);
    if (!list)
        return lfs_fail_nomem(m->err);
    for (size_t i = 0; i < t->ours->n_metadata; i++)
        LFS_TRY(merge_key(m, t->ours->metadata[i]->key, list, &n));
    for (size_t i = 0; i < t->theirs->n_metadata; i++)
        if (!find_entry(t->ours, t->theirs->metadata[i]->key))
            LFS_TRY(merge_key(m, t->theirs->metadata[i]->key, list, &n));
    m->out->metadata = list;
    m->out->n_metadata = n;
    return 0;
}

errint_t lfs_merge_field(const struct lfs_field_trio *t, struct lfs_plan *plan, LanceField **out, struct lfs_error *err) {
    struct merge m = {t, plan, lfs_memdup(plan->arena, t->ours, sizeof *m.out), err};
    bool nullable = false, key = false;
    if (!m.out)
        return lfs_fail_nomem(err);
    *out = m.out;
    LFS_TRY(merge_text(&m, "name", t->base->name, &m.out->name, t->theirs->name));
    LFS_TRY(merge_text(&m, "type", t->base->logical_type, &m.out->logical_type, t->theirs->logical_type));
    LFS_TRY(merge_text(&m, "extension", t->base->extension_name, &m.out->extension_name, t->theirs->extension_name));
    LFS_TRY(merge_flag(&m, "nullability", t->base->nullable, t->ours->nullable, t->theirs->nullable, &nullable));
    LFS_TRY(merge_flag(&m, "primary key", t->base->unenforced_primary_key, t->ours->unenforced_primary_key,
                       t->theirs->unenforced_primary_key, &key));
    m.out->has_nullable = m.out->has_nullable || nullable;
    m.out->nullable = nullable;
    if (key != (bool)t->ours->unenforced_primary_key) {
        m.out->has_unenforced_primary_key = t->theirs->has_unenforced_primary_key;
        m.out->unenforced_primary_key = t->theirs->unenforced_primary_key;
        m.out->has_unenforced_primary_key_position = t->theirs->has_unenforced_primary_key_position;
        m.out->unenforced_primary_key_position = t->theirs->unenforced_primary_key_position;
    }
    return merge_metadata(&m);
}
