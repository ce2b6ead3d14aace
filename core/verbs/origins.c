/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/origins.h"

#include <stdlib.h>
#include <string.h>

#include "merge/field_match.h"
#include "util/cleanup.h"
#include "util/limits.h"

/* One column on its way back. */
struct walker {
    const char *line;
    uint64_t version;
    int32_t id;
    const char *path, *type; /* there; NULL where the version itself tells */
    bool ended, found;       /* at the commit that made it, or somewhere unknown; it is one with an earlier column */
};

struct trace {
    const struct lfs_lines *lines;
    const struct lfs_vector *known;
    struct lfs_column_trace *list;
    struct walker *walkers;
    size_t n_first, n;
    struct lfs_error *err;
};

static errint_t read_version(struct trace *t, const char *line, uint64_t number, struct lfs_version **out) {
    errint_t result = lfs_lines_version(t->lines, line, number, out, t->err);
    if (result == -ENODATA)
        *out = NULL;
    return result == -ENODATA ? 0 : result;
}

static void end(struct trace *t, size_t i, bool unknown) {
    t->walkers[i].ended = true;
    t->list[i].unknown = unknown;
}

static const char *type_of(const LanceField *f) { return f->logical_type ? f->logical_type : ""; }

/* What the column is called and made of in a version that it stands in. */
static errint_t describe(struct trace *t, struct walker *w, const struct lfs_version *v) {
    const LanceField *f = lfs_field_by_id(v->manifest.message, w->id);
    w->path = w->type = NULL;
    if (!f)
        return 0;
    w->path = lfs_strdup(t->lines->arena, lfs_field_path(t->lines->arena, v->manifest.message, f));
    w->type = lfs_strdup(t->lines->arena, type_of(f));
    return w->path && w->type ? 0 : lfs_fail_nomem(t->err);
}

static const LanceField *by_path(struct trace *t, const struct lfs_version *v, const char *path) {
    const LanceManifest *m = v->manifest.message;
    for (size_t i = 0; i < m->n_fields; i++)
        if (strcmp(lfs_field_path(t->lines->arena, m, m->fields[i]), path) == 0)
            return m->fields[i];
    return NULL;
}

/* A branch's first version is a state of its parent. */
static errint_t to_parent(struct trace *t, size_t i, bool *moved) {
    struct walker *w = &t->walkers[i];
    struct lfs_branch branch;
    errint_t result = lfs_lines_any_branch(t->lines, w->line, &branch, t->err);
    *moved = false;
    if (result == -ENODATA)
        end(t, i, true);
    if (result < 0)
        return result == -ENODATA ? 0 : result;
    size_t n = branch.n_forks;
    *moved = n && w->version <= branch.forks[n - 1].version;
    if (!*moved)
        return 0;
    w->line = n > 1 ? branch.forks[n - 2].uuid : "main";
    return 0;
}

static errint_t settle(struct trace *t, size_t i) {
    for (bool moved = true; moved && !t->walkers[i].ended;)
        LFS_TRY(to_parent(t, i, &moved));
    return 0;
}

static bool at(const struct walker *w, const char *line, uint64_t version) {
    return w->version == version && strcmp(w->line, line) == 0;
}

static bool is_active(const struct walker *w) { return !w->ended && !w->found; }

/* --- meeting --- */

static bool same_text(const char *a, const char *b) { return !a || !b || strcmp(a, b) == 0; }

static bool can_meet(const struct trace *t, size_t i, const char *line, uint64_t version) {
    return !t->walkers[i].found && !t->list[i].unknown && at(&t->walkers[i], line, version);
}

/* Columns of the first kind and of the second that stand in one place under one id are one. */
static void meet(struct trace *t, const char *line, uint64_t version) {
    for (size_t i = 0; i < t->n_first; i++)
        for (size_t k = t->n_first; k < t->n && can_meet(t, i, line, version); k++) {
            struct walker *a = &t->walkers[i], *b = &t->walkers[k];
            if (!can_meet(t, k, line, version) || a->id != b->id || !same_text(a->path, b->path) ||
                !same_text(a->type, b->type))
                continue;
            t->list[k].same_as = i;
            t->list[k].assumed |= t->list[i].assumed;
            t->list[k].retyped |= t->list[i].retyped;
            a->found = b->found = true;
        }
}

/* --- versions that are gone --- */

/* The next lower version of the line that is there, or that another column stands in; else its first one. */
static errint_t below(struct trace *t, const char *line, uint64_t version, struct lfs_version **out, uint64_t *number) {
    struct lfs_branch branch;
    LFS_TRY(lfs_lines_any_branch(t->lines, line, &branch, t->err));
    *out = NULL;
    for (*number = version - 1; *number > lfs_branch_first(&branch); --*number) {
        LFS_TRY(read_version(t, line, *number, out));
        if (*out)
            return 0;
        for (size_t i = 0; i < t->n; i++)
            if (!t->walkers[i].found && at(&t->walkers[i], line, *number))
                return 0;
    }
    return 0;
}

/* What is there before and after, under one id, with one name and of one type, is taken for one column. */
static errint_t cross(struct trace *t, const char *line, uint64_t version, const struct lfs_version *here) {
    struct lfs_version *lower;
    uint64_t number;
    LFS_TRY(below(t, line, version, &lower, &number));
    errint_t result = 0;
    for (size_t i = 0; i < t->n && result == 0; i++) {
        struct walker *w = &t->walkers[i];
        if (!is_active(w) || !at(w, line, version))
            continue;
        if (here)
            result = describe(t, w, here);
        const LanceField *f = lower ? lfs_field_by_id(lower->manifest.message, w->id) : NULL;
        bool there = f && w->path &&
                     strcmp(lfs_field_path(t->lines->arena, lower->manifest.message, f), w->path) == 0 &&
                     strcmp(type_of(f), w->type) == 0;
        if (!w->path || (lower && !there) || number < 1) {
            end(t, i, true);
            continue;
        }
        t->list[i].assumed = true;
        w->version = number;
        if (result == 0)
            result = settle(t, i);
    }
    lfs_version_release(lower);
    return result;
}

/* --- one commit --- */

struct commit {
    const struct lfs_version *before, *after;
    const char *operation, *line; /* of ours; where it took things from */
    uint64_t version;
};

static struct commit commit_of(const struct lfs_version *before, const struct lfs_version *after) {
    const LanceTransaction *t = after->manifest.transaction;
    const char *version = lfs_transaction_property(t, LFS_PROPERTY_SOURCE_VERSION);
    return (struct commit){before, after, lfs_transaction_property(t, LFS_PROPERTY_OPERATION),
                           lfs_transaction_property(t, LFS_PROPERTY_SOURCE_LINE),
                           version ? strtoull(version, NULL, 10) : 0};
}

/* Into a state that is elsewhere, under the id that the column has there. */
static errint_t jump(struct trace *t, size_t i, const struct lfs_version *from, const char *line, uint64_t version,
                     bool by_id) {
    struct walker *w = &t->walkers[i];
    struct lfs_version *there;
    LFS_TRY(describe(t, w, from));
    LFS_TRY(read_version(t, line, version, &there));
    const LanceField *f = !there || !w->path ? NULL
                          : by_id            ? lfs_field_by_id(there->manifest.message, w->id)
                                             : by_path(t, there, w->path);
    if (f) {
        w->line = lfs_strdup(t->lines->arena, line);
        w->version = version;
        w->id = f->id;
    } else
        end(t, i, true);
    lfs_version_release(there);
    return !w->line ? lfs_fail_nomem(t->err) : f ? settle(t, i) : 0;
}

/* A change of type: in one commit a column goes, and another one stands under its name. */
static errint_t before_retype(struct trace *t, size_t i, const struct commit *c, const LanceField **before) {
    struct walker *w = &t->walkers[i];
    LFS_TRY(describe(t, w, c->after));
    *before = w->path ? by_path(t, c->before, w->path) : NULL;
    if (*before && lfs_field_by_id(c->after->manifest.message, (*before)->id))
        *before = NULL;
    t->list[i].retyped |= *before != NULL;
    return 0;
}

static errint_t step_back(struct trace *t, size_t i, const struct commit *c) {
    struct walker *w = &t->walkers[i];
    const LanceTransaction *tx = c->after->manifest.transaction;
    const LanceField *before = lfs_field_by_id(c->before->manifest.message, w->id);
    int operation = tx && !c->operation ? (int)tx->operation_case : 0; /* of ours, its property tells more */
    if (operation == LANCE__TABLE__TRANSACTION__OPERATION_RESTORE && tx->restore->version < w->version)
        return jump(t, i, c->after, w->line, tx->restore->version, true);
    if (operation ==
        LANCE__TABLE__TRANSACTION__OPERATION_OVERWRITE) { /* other rows; the columns are what they are called */
        LFS_TRY(describe(t, w, c->after));
        before = w->path ? by_path(t, c->before, w->path) : NULL;
        before = before && strcmp(type_of(before), w->type) == 0 ? before : NULL;
    }
    if (!before && c->operation && c->line && c->version)
        return jump(t, i, c->after, c->line, c->version, false);
    if (!before && operation != LANCE__TABLE__TRANSACTION__OPERATION_OVERWRITE)
        LFS_TRY(before_retype(t, i, c, &before));
    if (!before) {
        end(t, i, false);
        return 0;
    }
    w->path = w->type = NULL;
    w->id = before->id;
    w->version--;
    return settle(t, i);
}

static errint_t step_all(struct trace *t, const char *line, uint64_t version, const struct commit *c) {
    for (size_t i = 0; i < t->n; i++)
        if (is_active(&t->walkers[i]) && at(&t->walkers[i], line, version))
            LFS_TRY(step_back(t, i, c));
    return 0;
}

/* All columns that stand in this version go one commit back. */
static errint_t pass(struct trace *t, const char *line, uint64_t version) {
    struct lfs_version *after, *before = NULL;
    meet(t, line, version);
    LFS_TRY(read_version(t, line, version, &after));
    errint_t result = after && version > 1 ? read_version(t, line, version - 1, &before) : 0;
    if (result == 0 && after && version <= 1) {
        for (size_t i = 0; i < t->n; i++)
            if (is_active(&t->walkers[i]) && at(&t->walkers[i], line, version))
                end(t, i, false);
    } else if (result == 0 && before) {
        struct commit c = commit_of(before, after);
        result = step_all(t, line, version, &c);
    } else if (result == 0) {
        result = cross(t, line, version, after);
    }
    lfs_version_release(before);
    lfs_version_release(after);
    return result;
}

/* --- the whole --- */

/* Nothing more can be found out that is asked for: each column of the second kind is told. One made by a commit that the
 * states of the first kind do not hold is none of theirs. */
static bool is_settled(const struct trace *t) {
    bool first = false, second = false;
    for (size_t i = 0; i < t->n_first; i++)
        first |= !t->walkers[i].found;
    for (size_t k = t->n_first; k < t->n; k++) {
        const struct walker *w = &t->walkers[k];
        bool beyond = t->known && w->ended && w->version > lfs_vector_get(t->known, w->line);
        second |= !w->found && !t->list[k].unknown && !beyond;
    }
    return !first || !second;
}

static struct walker *newest(const struct trace *t) {
    struct walker *top = NULL;
    for (size_t i = 0; i < t->n; i++)
        if (is_active(&t->walkers[i]) && (!top || t->walkers[i].version > top->version))
            top = &t->walkers[i];
    return top;
}

errint_t lfs_origins_trace(const struct lfs_lines *lines, const struct lfs_origin *from, const struct lfs_vector *known,
                           struct lfs_column_trace *list, size_t n_first, size_t n, struct lfs_error *err) {
    struct trace t = {.lines = lines, .known = known, .list = list, .n_first = n_first, .n = n, .err = err};
    t.walkers = LFS_NEW_ARRAY(lines->arena, struct walker, n + 1);
    if (!t.walkers)
        return lfs_fail_nomem(err);
    for (size_t i = 0; i < n; i++) {
        t.walkers[i] = (struct walker){.line = from[i].line, .version = from[i].version, .id = from[i].id};
        list[i].same_as = i;
        list[i].unknown = list[i].assumed = list[i].retyped = false;
        if (from[i].nowhere)
            end(&t, i, true);
        else
            LFS_TRY(settle(&t, i));
    }
    unsigned left = LFS_ORIGIN_STEPS_MAX;
    for (struct walker *w; !is_settled(&t) && (w = newest(&t)); left--) {
        if (!left)
            break;
        LFS_TRY(pass(&t, w->line, w->version));
    }
    for (size_t i = 0; i < n; i++)
        if (!left && is_active(&t.walkers[i]))
            end(&t, i, true);
    return 0;
}
