/* SPDX-License-Identifier: Apache-2.0 */
/* Units that are known by a name: columns of the schema, keys of the maps, indexes. */
#include <string.h>

#include "format/vector.h"
#include "merge/field.h"
#include "merge/field_match.h"
#include "report/diff.h"
#include "util/map.h"

/* What a side did, from a value or its absence before and after. */
static const char *change(const void *before, const void *after, bool equal) {
    if (!before && !after)
        return NULL;
    return !before ? "added" : !after ? "dropped" : equal ? NULL : "changed";
}

/* --- columns --- */

static bool same_field(const LanceField *a, const LanceField *b) { return a && b && lfs_field_same_but_id(a, b); }

static errint_t diff_schema(struct lfs_diff *d, struct lfs_error *err) {
    struct lfs_field_match *fields;
    size_t n;
    LFS_TRY(lfs_match_fields(&d->input, d->matches, d->n_matches, d->report->arena, &fields, &n, err));
    for (size_t i = 0; i < n; i++) {
        const struct lfs_field_match *f = &fields[i];
        const char *ours = change(f->base, f->ours, same_field(f->base, f->ours)),
                   *theirs = change(f->base, f->theirs, same_field(f->base, f->theirs));
        if (ours || theirs)
            lfs_diff_put(d, "schema", f->path, ours, theirs, (!f->ours && !f->theirs) || same_field(f->ours, f->theirs),
                         1, NULL);
    }
    return 0;
}

/* --- maps --- */

struct value {
    const char *key;
    const void *bytes;
    size_t length;
};

struct map_kind {
    const char *name;
    size_t (*count)(const LanceManifest *m);
    struct value (*at)(const LanceManifest *m, size_t i);
};

static struct value of_string(const LanceStringEntry *e) {
    const char *v = e->value ? e->value : "";
    return (struct value){e->key ? e->key : "", v, strlen(v)};
}
static size_t count_config(const LanceManifest *m) { return m->n_config; }
static size_t count_table(const LanceManifest *m) { return m->n_table_metadata; }
static size_t count_schema(const LanceManifest *m) { return m->n_schema_metadata; }
static struct value config_at(const LanceManifest *m, size_t i) { return of_string(m->config[i]); }
static struct value table_at(const LanceManifest *m, size_t i) { return of_string(m->table_metadata[i]); }
static struct value schema_at(const LanceManifest *m, size_t i) {
    const LanceBytesEntry *e = m->schema_metadata[i];
    return (struct value){e->key ? e->key : "", e->has_value ? (const void *)e->value.data : "",
                          e->has_value ? e->value.len : 0};
}
static const struct map_kind map_kinds[] = {{"config", count_config, config_at},
                                            {"table-metadata", count_table, table_at},
                                            {"schema-metadata", count_schema, schema_at}};

/* A key's values in base, ours, theirs; bytes NULL where it is absent. */
struct trio {
    struct value in[3];
};

static bool same_value(const struct value *a, const struct value *b) {
    if (!a->bytes || !b->bytes)
        return !a->bytes && !b->bytes;
    return a->length == b->length && memcmp(a->bytes, b->bytes, a->length) == 0;
}

static void put_trio(struct lfs_diff *d, const char *class, const struct trio *t, const char *key) {
    static const char *const names[] = {"base", "ours", "theirs"};
    const struct value *v = t->in;
    const char *ours = change(v[0].bytes, v[1].bytes, same_value(&v[0], &v[1])),
               *theirs = change(v[0].bytes, v[2].bytes, same_value(&v[0], &v[2]));
    LFS_AUTO_BUF where = {0};
    if (!ours && !theirs)
        return;
    for (size_t i = 0; i < 3; i++)
        if (v[i].bytes) {
            lfs_buf_printf(&where, "%s%s=", where.length ? " " : "", names[i]);
            lfs_buf_add(&where, v[i].bytes, v[i].length);
        }
    lfs_diff_put(d, class, key, ours, theirs, same_value(&v[1], &v[2]), 1, &where);
}

static errint_t diff_map(struct lfs_diff *d, const struct map_kind *kind, struct lfs_error *err) {
    const LanceManifest *all[] = {d->input.base->manifest.message, d->input.ours->manifest.message,
                                  d->input.theirs->manifest.message};
    struct lfs_map keys;
    lfs_map_init(&keys, d->report->arena);
    for (size_t side = 0; side < 3; side++)
        for (size_t i = 0; i < kind->count(all[side]); i++) {
            struct value v = kind->at(all[side], i);
            struct trio *t = lfs_map_get(&keys, v.key);
            if (strncmp(v.key, LFS_KEY_PREFIX, strlen(LFS_KEY_PREFIX)) == 0)
                continue;
            if (!t && (!(t = LFS_NEW(d->report->arena, struct trio)) || !lfs_map_put(&keys, v.key, t)))
                return lfs_fail_nomem(err);
            t->in[side] = v;
        }
    for (size_t i = 0; i < keys.count; i++)
        put_trio(d, kind->name, keys.entries[i].value, keys.entries[i].key);
    return 0;
}

/* --- indexes --- */

/* Segments of a name in one state: none, or what they are. */
static errint_t segments(const struct lfs_version *v, const char *name, struct lfs_arena *arena, struct value *out,
                         struct lfs_error *err) {
    const LanceIndexSection *list = v->manifest.indices;
    LFS_AUTO_BUF text = {0};
    bool any = false;
    for (size_t i = 0; list && i < list->n_indices; i++) {
        const LanceIndex *x = list->indices[i];
        if (strcmp(x->name ? x->name : "", name) != 0)
            continue;
        any = true;
        if (x->uuid)
            lfs_buf_add(&text, x->uuid->uuid.data, x->uuid->uuid.len);
    }
    LFS_TRY(lfs_buf_check(&text, err));
    *out = (struct value){
        .length = text.length,
        .bytes = any ? lfs_memdup(arena, text.length ? text.data : (uint8_t *)"", text.length + !text.length) : NULL};
    return any && !out->bytes ? lfs_fail_nomem(err) : 0;
}

/* The same of the result. */
static errint_t planned_segments(const struct lfs_plan *plan, const char *name, struct lfs_arena *arena,
                                 struct value *out, struct lfs_error *err) {
    struct lfs_version result = {0};
    LanceIndexSection section = {0};
    section.indices = LFS_NEW_ARRAY(arena, LanceIndex *, plan->n_indices + 1);
    if (!section.indices)
        return lfs_fail_nomem(err);
    for (size_t i = 0; i < plan->n_indices; i++)
        section.indices[section.n_indices++] = (LanceIndex *)plan->indices[i].record;
    result.manifest.indices = &section;
    return segments(&result, name, arena, out, err);
}

static bool is_conflict(const struct lfs_plan *plan, const char *name) {
    for (size_t i = 0; i < plan->conflicts.count; i++) {
        const struct lfs_conflict *c = plan->conflicts.items[i];
        if (strcmp(c->kind, "index") == 0 && strcmp(c->unit + strlen("index "), name) == 0)
            return true;
    }
    return false;
}

/* What both did, or what came true of theirs: an index is cut to what it can tell of the result, or stays behind
 * (section 7). */
static errint_t index_fate(const struct lfs_diff *d, const char *name, const struct value *ours,
                           const struct value *theirs, const char **out, struct lfs_error *err) {
    const struct lfs_plan *plan = &d->job->plan;
    struct value result;
    *out = is_conflict(plan, name) ? "conflict" : "ours";
    if (d->blocked)
        return 0;
    LFS_TRY(planned_segments(plan, name, d->report->arena, &result, err));
    *out = same_value(&result, theirs) ? "theirs" : same_value(&result, ours) ? "ours" : "united";
    if (!result.bytes && theirs->bytes)
        *out = "left-out";
    return 0;
}

static errint_t diff_index(struct lfs_diff *d, const char *name, struct lfs_error *err) {
    const struct lfs_version *all[] = {d->input.base, d->input.ours, d->input.theirs};
    struct value v[3];
    for (size_t i = 0; i < 3; i++)
        LFS_TRY(segments(all[i], name, d->report->arena, &v[i], err));
    const char *ours = change(v[0].bytes, v[1].bytes, same_value(&v[0], &v[1])),
               *theirs = change(v[0].bytes, v[2].bytes, same_value(&v[0], &v[2])), *fate;
    struct lfs_buf *out = d->report->out;
    if (!ours && !theirs)
        return 0;
    if (!d->planned || d->refused || !theirs || same_value(&v[1], &v[2]) || (d->blocked && !ours)) {
        lfs_diff_put(d, "index", name, ours, theirs, same_value(&v[1], &v[2]), 1, NULL);
        return 0;
    }
    LFS_TRY(index_fate(d, name, &v[1], &v[2], &fate, err));
    lfs_line_words(out, "index");
    lfs_line_text(out, name);
    lfs_line_text(out, ours);
    lfs_line_text(out, theirs);
    lfs_line_words(out, "%s", fate);
    lfs_line_number(out, 1);
    lfs_line_text(out, NULL);
    lfs_line_end(out);
    return 0;
}

static errint_t diff_indexes(struct lfs_diff *d, struct lfs_error *err) {
    const struct lfs_version *all[] = {d->input.base, d->input.ours, d->input.theirs};
    struct lfs_map names;
    lfs_map_init(&names, d->report->arena);
    for (size_t side = 0; side < 3; side++) {
        const LanceIndexSection *list = all[side]->manifest.indices;
        for (size_t i = 0; list && i < list->n_indices; i++) {
            const char *name = list->indices[i]->name ? list->indices[i]->name : "";
            if (!lfs_map_get(&names, name) && !lfs_map_put(&names, name, (void *)name))
                return lfs_fail_nomem(err);
        }
    }
    for (size_t i = 0; i < names.count; i++)
        LFS_TRY(diff_index(d, names.entries[i].key, err));
    return 0;
}

errint_t lfs_diff_names(struct lfs_diff *d, struct lfs_error *err) {
    LFS_TRY(diff_schema(d, err));
    for (size_t i = 0; i < sizeof map_kinds / sizeof *map_kinds; i++)
        LFS_TRY(diff_map(d, &map_kinds[i], err));
    return diff_indexes(d, err);
}
