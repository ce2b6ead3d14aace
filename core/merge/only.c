/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/only.h"

#include <inttypes.h>
#include <string.h>

#include "merge/field.h"
#include "merge/report.h"
#include "util/bitmap.h"
#include "util/cleanup.h"

struct lfs_only_vector {
    const LanceFragment *fragment;     /* of the masked state */
    const struct lfs_version *version; /* its vector is that of `record` there */
    const LanceFragment *record;
};

enum { NO_FIELD = -3 }; /* an id that no file holds */

static bool takes(const struct lfs_policy *p, enum lfs_class class) { return !p->only || (p->only & class); }

bool lfs_only_applies(const struct lfs_policy *p) { return p->only && (p->only & LFS_CLASS_ALL) != LFS_CLASS_ALL; }

/* --- fragments --- */

struct mask {
    struct lfs_only *out;
    const struct lfs_merge_input *real;
    LanceManifest *theirs;
    struct lfs_plan *plan;
    bool rows, columns;
    bool adds_columns; /* theirs has columns that the base has not */
    bool same_ids;     /* a field id means the same in the base and in theirs */
    struct lfs_error *err;
};

static errint_t deletions(void *context, const struct lfs_version *version, const LanceFragment *fragment,
                          roaring_bitmap_t **out, struct lfs_error *err) {
    const struct lfs_only *o = context;
    const struct lfs_merge_reader *inner = o->real->reader;
    for (size_t i = 0; version == &o->theirs && i < o->n_vectors; i++)
        if (o->vectors[i].fragment == fragment)
            return inner->deletions(inner->context, o->vectors[i].version, o->vectors[i].record, out, err);
    return inner->deletions(inner->context, version == &o->theirs ? o->real->theirs : version, fragment, out, err);
}

static errint_t history(void *context, enum lfs_side side, const struct lfs_history **out, struct lfs_error *err) {
    const struct lfs_only *o = context;
    return o->real->reader->history(o->real->reader->context, side, out, err);
}

static errint_t trace(void *context, struct lfs_column_trace *list, size_t n_first, size_t n, struct lfs_error *err) {
    const struct lfs_only *o = context;
    const struct lfs_merge_reader *inner = o->real->reader;
    return inner->trace(inner->context, list, n_first, n, err);
}

static LanceFragment *put(struct mask *m, const LanceFragment *record, const struct lfs_version *version,
                          const LanceFragment *vector_of) {
    LanceFragment *f = lfs_memdup(m->plan->arena, record, sizeof *f);
    if (!f)
        return NULL;
    f->deletion_file = vector_of->deletion_file;
    m->theirs->fragments[m->theirs->n_fragments++] = f;
    m->out->vectors[m->out->n_vectors++] = (struct lfs_only_vector){f, version, vector_of};
    return f;
}

/* Columns without rows: theirs' files of a fragment serve the base's rows only where theirs took none away (a file holds no
 * values for rows that were deleted when it was written), and a fragment that theirs has no more has none to give. */
static errint_t check_columns(struct mask *m, const struct lfs_match *x) {
    const struct lfs_merge_reader *r = m->real->reader;
    AUTO_BITMAP *before = NULL;
    AUTO_BITMAP *after = NULL;
    bool fits = x->theirs && lfs_match_same_deletions(x->base, x->theirs);
    if (x->theirs ? lfs_match_same_files(x->base, x->theirs) : !m->adds_columns)
        return 0;
    if (x->theirs && !fits) {
        LFS_TRY(r->deletions(r->context, m->real->base, x->base, &before, m->err));
        LFS_TRY(r->deletions(r->context, m->real->theirs, x->theirs, &after, m->err));
        fits = roaring_bitmap_is_subset(after, before);
    }
    return fits ? 0
                : lfs_report_refusal(m->plan, m->err,
                                     "%s took rows out of fragment %" PRIu64
                                     " that its column files hold no values for: only= "
                                     "cannot take its columns without its rows",
                                     m->real->theirs_name, x->base->id);
}

/* A fragment that the base holds. */
static errint_t mask_fragment(struct mask *m, const struct lfs_match *x) {
    bool other_files = x->theirs && !lfs_match_same_files(x->base, x->theirs);
    LanceFragment *f;
    if (m->rows && !x->theirs)
        return 0;
    if (!m->rows && m->columns)
        LFS_TRY(check_columns(m, x));
    if (!m->columns && other_files && !m->same_ids)
        return lfs_report_refusal(
            m->plan, m->err,
            "%s gives its columns other ids than the merge base: only= cannot leave the data of columns out",
            m->real->theirs_name);
    f = put(m, x->theirs ? x->theirs : x->base, m->rows ? m->real->theirs : m->real->base,
            m->rows ? x->theirs : x->base);
    if (f && !m->columns && other_files) {
        f->files = x->base->files;
        f->n_files = x->base->n_files;
    }
    return f ? 0 : lfs_fail_nomem(m->err);
}

/* What ids mean in theirs, told by the columns themselves. */
static errint_t compare_ids(struct mask *m, const struct lfs_match *matches, size_t n_matches) {
    const LanceManifest *base = m->real->base->manifest.message;
    struct lfs_field_match *fields;
    size_t n;
    LFS_TRY(lfs_match_fields(m->real, matches, n_matches, m->plan->arena, &fields, &n, m->err));
    m->same_ids = true;
    for (size_t i = 0; i < n; i++) {
        const struct lfs_field_match *f = &fields[i];
        if (!f->theirs)
            continue;
        m->same_ids &= f->base ? f->base->id == f->theirs->id : !lfs_field_by_id(base, f->theirs->id);
        m->adds_columns |= !f->base && takes(&m->real->policy, LFS_CLASS_SCHEMA);
    }
    return 0;
}

errint_t lfs_only_mask(struct lfs_only *out, const struct lfs_merge_input *real, const struct lfs_match *matches,
                       size_t n_matches, struct lfs_plan *plan, struct lfs_error *err) {
    const LanceManifest *theirs = real->theirs->manifest.message;
    struct mask m = {.out = out, .real = real, .plan = plan, .err = err};
    *out = (struct lfs_only){.input = *real, .theirs = *real->theirs, .real = real};
    m.theirs = lfs_memdup(plan->arena, theirs, sizeof *theirs);
    out->vectors = LFS_NEW_ARRAY(plan->arena, struct lfs_only_vector, n_matches + 1);
    if (!m.theirs || !out->vectors)
        return lfs_fail_nomem(err);
    m.theirs->fragments = LFS_NEW_ARRAY(plan->arena, LanceFragment *, n_matches + 1);
    if (!m.theirs->fragments)
        return lfs_fail_nomem(err);
    m.theirs->n_fragments = 0;
    m.rows = takes(&real->policy, LFS_CLASS_ROWS);
    m.columns = takes(&real->policy, LFS_CLASS_COLUMNS);
    LFS_TRY(compare_ids(&m, matches, n_matches));
    for (size_t i = 0; i < n_matches; i++) {
        const struct lfs_match *x = &matches[i];
        if (x->base)
            LFS_TRY(mask_fragment(&m, x));
        else if (x->theirs && m.rows)
            m.theirs->fragments[m.theirs->n_fragments++] = (LanceFragment *)x->theirs;
    }
    out->theirs.manifest.message = m.theirs;
    out->reader = (struct lfs_merge_reader){out, deletions, history, real->reader->trace ? trace : NULL};
    out->input.theirs = &out->theirs;
    out->input.reader = &out->reader;
    out->input.ours_is_base = false;
    return 0;
}

/* --- columns --- */

struct columns {
    const struct lfs_merge_input *in;
    struct lfs_field_match *fields;
    size_t n;
    struct lfs_plan *plan;
    uint64_t new_rows; /* of theirs */
    bool has_old;      /* fragments whose data of new columns stays behind */
    struct lfs_error *err;
};

static void count(struct columns *c, const struct lfs_match *matches, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (!matches[i].base && matches[i].theirs && !matches[i].ours)
            c->new_rows += matches[i].theirs->physical_rows;
        c->has_old |= matches[i].base && matches[i].theirs;
    }
}

static errint_t need(struct columns *c, const struct lfs_field_match *m, const char *why) {
    return lfs_report_refusal(c->plan, c->err, "%s %s column %s, and only= leaves that behind: not merged without it",
                              c->in->theirs_name, why, m->path);
}

static bool retyped(const struct columns *c, const struct lfs_field_match *m) {
    for (size_t i = 0; i < c->n; i++)
        if (!c->fields[i].base && c->fields[i].theirs && !c->fields[i].ours && c->fields[i].replaces == m->base)
            return true;
    return false;
}

static bool same_type(const LanceField *a, const LanceField *b) {
    return strcmp(a->logical_type ? a->logical_type : "", b->logical_type ? b->logical_type : "") == 0;
}

/* The schema stays behind: theirs' column is as the base has it. New rows of theirs must fit that. */
static errint_t keep_base(struct columns *c, struct lfs_field_match *m) {
    LanceField *field = lfs_memdup(c->plan->arena, m->base, sizeof *field);
    if (!field)
        return lfs_fail_nomem(c->err);
    if (m->theirs) {
        if (c->new_rows && (!same_type(m->base, m->theirs) || (!m->base->nullable && m->theirs->nullable)))
            LFS_TRY(need(c, m, "has new rows for a changed"));
        field->id = m->theirs->id;
        field->parent_id = m->theirs->parent_id;
    } else {
        field->id = NO_FIELD;
        if (c->new_rows && retyped(c, m))
            return need(c, m, "has new rows for a retyped");
        if (c->new_rows && !m->base->nullable)
            return need(c, m, "has new rows without the dropped");
        if (c->new_rows && m->ours && m->base->parent_id < 0)
            LFS_TRY(lfs_report_note(c->plan, c->err,
                                    "column %s, which %s dropped, is null in %" PRIu64 " rows that came with it",
                                    m->path, c->in->theirs_name, c->new_rows));
    }
    m->theirs = field;
    m->their_data = false;
    return 0;
}

static errint_t mask_schema(struct columns *c) {
    for (size_t i = 0; i < c->n; i++)
        if (c->fields[i].base)
            LFS_TRY(keep_base(c, &c->fields[i]));
    size_t kept = 0;
    for (size_t i = 0; i < c->n; i++) {
        if (!c->fields[i].base && !c->fields[i].ours)
            LFS_TRY(lfs_report_note(c->plan, c->err, "column %s of %s stays behind", c->fields[i].path,
                                    c->in->theirs_name));
        else
            c->fields[kept++] = c->fields[i];
    }
    c->n = kept;
    return 0;
}

/* The schema comes, the data of base fragments stays behind: new columns are null there. */
static errint_t check_new_columns(struct columns *c) {
    for (size_t i = 0; i < c->n && c->has_old; i++) {
        const struct lfs_field_match *m = &c->fields[i];
        if (m->base || m->ours)
            continue;
        for (size_t k = 0; k < c->n; k++)
            if (c->fields[k].base && !c->fields[k].theirs && c->fields[k].base == m->replaces)
                return need(c, m, "has the data of the retyped");
        if (!m->theirs->nullable)
            return need(c, m, "has the data of the required");
        if (m->theirs->parent_id < 0)
            LFS_TRY(lfs_report_note(c->plan, c->err,
                                    "column %s is null in all rows that did not come with %s: fill it in", m->path,
                                    c->in->theirs_name));
    }
    return 0;
}

errint_t lfs_only_mask_fields(const struct lfs_merge_input *in, const struct lfs_match *matches, size_t n_matches,
                              struct lfs_field_match *fields, size_t *n_fields, struct lfs_plan *plan,
                              struct lfs_error *err) {
    struct columns c = {.in = in, .fields = fields, .n = *n_fields, .plan = plan, .err = err};
    count(&c, matches, n_matches);
    if (!takes(&in->policy, LFS_CLASS_SCHEMA))
        LFS_TRY(mask_schema(&c));
    else if (!takes(&in->policy, LFS_CLASS_COLUMNS))
        LFS_TRY(check_new_columns(&c));
    *n_fields = c.n;
    return 0;
}
