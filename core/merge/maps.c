/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/maps.h"

#include <string.h>

#include "merge/choices.h"
#include "util/cleanup.h"
#include "util/limits.h"
#include "util/map.h"

/* One entry of either kind of map. */
struct value {
    const char *key;
    const uint8_t *bytes;
    size_t length;
    void *entry; /* the message, reused in the result */
};

struct values {
    struct value *items;
    size_t count;
    struct lfs_map by_key;
};

/* What differs between the kinds. */
struct map_kind {
    const char *name;
    bool skip_own; /* lancefs.* keys are never units of a merge */
    struct value (*get)(const LanceManifest *m, size_t i);
    size_t (*count)(const LanceManifest *m);
};

static struct value string_value(LanceStringEntry *e) {
    const char *v = e->value ? e->value : "";
    return (struct value){e->key ? e->key : "", (const uint8_t *)v, strlen(v), e};
}
static struct value get_config(const LanceManifest *m, size_t i) { return string_value(m->config[i]); }
static struct value get_table(const LanceManifest *m, size_t i) { return string_value(m->table_metadata[i]); }
static struct value get_schema(const LanceManifest *m, size_t i) {
    LanceBytesEntry *e = m->schema_metadata[i];
    return (struct value){e->key ? e->key : "", e->value.data, e->has_value ? e->value.len : 0, e};
}
static size_t count_config(const LanceManifest *m) { return m->n_config; }
static size_t count_table(const LanceManifest *m) { return m->n_table_metadata; }
static size_t count_schema(const LanceManifest *m) { return m->n_schema_metadata; }

static const struct map_kind kinds[] = {
    {"config", false, get_config, count_config},
    {"table metadata", true, get_table, count_table},
    {"schema metadata", false, get_schema, count_schema},
};

static errint_t collect(const struct map_kind *kind, const LanceManifest *m, struct lfs_arena *arena,
                        struct values *out, struct lfs_error *err) {
    size_t n = kind->count(m);
    out->items = LFS_NEW_ARRAY(arena, struct value, n + 1);
    lfs_map_init(&out->by_key, arena);
    if (!out->items)
        return lfs_fail_nomem(err);
    for (size_t i = 0; i < n; i++) {
        struct value v = kind->get(m, i);
        if (kind->skip_own && strncmp(v.key, LFS_KEY_PREFIX, strlen(LFS_KEY_PREFIX)) == 0)
            continue;
        struct value *at = lfs_map_get(&out->by_key, v.key); /* a key that stands twice: the last one wins */
        if (!at)
            at = &out->items[out->count++];
        *at = v;
        if (!lfs_map_put(&out->by_key, v.key, at))
            return lfs_fail_nomem(err);
    }
    return 0;
}

static bool equal(const struct value *a, const struct value *b) {
    if (!a || !b)
        return a == b;
    return a->length == b->length && (a->length == 0 || memcmp(a->bytes, b->bytes, a->length) == 0);
}

static const char *show(struct lfs_arena *arena, const struct value *v) {
    return v ? lfs_strndup(arena, (const char *)v->bytes, v->length < LFS_CONFLICT_TEXT_MAX ? v->length : LFS_CONFLICT_TEXT_MAX) : "(absent)";
}

struct merge {
    const struct map_kind *kind;
    struct values base, ours, theirs;
    void **result;
    size_t n_result;
    const struct lfs_policy *policy;
    struct lfs_plan *plan;
};

static uint64_t print_of(const struct value *v, uint64_t seed) {
    return v ? lfs_hash(v->bytes, v->length, seed) : lfs_hash("", 0, ~seed);
}

static errint_t settle(struct merge *m, const char *key, const struct value *b, const struct value *o,
                       const struct value *t, enum lfs_strategy *takes, struct lfs_error *err) {
    struct lfs_arena *arena = m->plan->arena;
    struct lfs_conflict c = LFS_CONFLICT("value", lfs_sprintf(arena, "%s key %s", m->kind->name, key), show(arena, b),
                             show(arena, o), show(arena, t));
    c.print = print_of(t, print_of(o, print_of(b, 1)));
    return lfs_settle(m->policy, m->policy->config, m->plan, &c, takes, err);
}

/* The table of merge-semantics section 3, for one key. */
static errint_t merge_key(struct merge *m, const char *key, struct lfs_error *err) {
    const struct value *b = lfs_map_get(&m->base.by_key, key), *o = lfs_map_get(&m->ours.by_key, key),
                       *t = lfs_map_get(&m->theirs.by_key, key), *result = o;
    if (!equal(b, t) && !equal(o, t)) {
        enum lfs_strategy takes = LFS_STRATEGY_SOURCE;
        if (!equal(b, o))
            LFS_TRY(settle(m, key, b, o, t, &takes, err));
        if (takes == LFS_STRATEGY_FAIL)
            return 0;
        if (takes == LFS_STRATEGY_SOURCE) {
            result = t;
            m->plan->maps_changed = true;
        }
    }
    if (result)
        m->result[m->n_result++] = result->entry;
    return 0;
}

static errint_t merge_map(const struct map_kind *kind, const struct lfs_merge_input *in, struct lfs_plan *plan,
                          void ***out, size_t *n_out, struct lfs_error *err) {
    struct merge m = {.kind = kind, .plan = plan, .policy = &in->policy};
    LFS_TRY(collect(kind, in->base->manifest.message, plan->arena, &m.base, err));
    LFS_TRY(collect(kind, in->ours->manifest.message, plan->arena, &m.ours, err));
    const struct lfs_version *theirs = in->policy.only && !(in->policy.only & LFS_CLASS_CONFIG) ? in->base : in->theirs;
    LFS_TRY(collect(kind, theirs->manifest.message, plan->arena, &m.theirs, err));
    m.result = LFS_NEW_ARRAY(plan->arena, void *, m.ours.count + m.theirs.count + 1);
    if (!m.result)
        return lfs_fail_nomem(err);
    for (size_t i = 0; i < m.ours.count; i++)
        LFS_TRY(merge_key(&m, m.ours.items[i].key, err));
    for (size_t i = 0; i < m.theirs.count; i++)
        if (!lfs_map_get(&m.ours.by_key, m.theirs.items[i].key))
            LFS_TRY(merge_key(&m, m.theirs.items[i].key, err));
    *out = m.result;
    *n_out = m.n_result;
    return 0;
}

errint_t lfs_merge_maps(const struct lfs_merge_input *input, struct lfs_plan *plan, struct lfs_error *err) {
    LFS_TRY(merge_map(&kinds[0], input, plan, (void ***)&plan->config, &plan->n_config, err));
    LFS_TRY(merge_map(&kinds[1], input, plan, (void ***)&plan->table_metadata, &plan->n_table_metadata, err));
    return merge_map(&kinds[2], input, plan, (void ***)&plan->schema_metadata, &plan->n_schema_metadata, err);
}
