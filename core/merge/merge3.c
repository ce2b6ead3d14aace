/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/merge3.h"

#include <inttypes.h>
#include <string.h>

#include "merge/alignment.h"
#include "merge/columns.h"
#include "merge/indexes.h"
#include "merge/keys.h"
#include "merge/maps.h"
#include "merge/match.h"
#include "merge/only.h"
#include "merge/replaced.h"
#include "merge/report.h"
#include "merge/row_ids.h"
#include "merge/rows.h"
#include "merge/virtual.h"
#include "util/cleanup.h"

struct merge {
    const struct lfs_merge_input *real; /* as it was asked for */
    const struct lfs_merge_input *in;   /* what is compared */
    struct lfs_only only;               /* what `in` points to where classes of theirs stay behind */
    struct lfs_merge_input whole; /* what `in` points to where one side's data is taken as a whole */
    struct lfs_merge_input before; /* and what that was made from: rows are the same ones by the base that both sides had */
    enum lfs_replacement replacement;
    enum lfs_side replacer;
    struct lfs_plan *plan;
    const LanceManifest *base, *ours, *theirs;
    struct lfs_match *matches, *real_matches, *matches_before;
    size_t n_matches, n_real_matches, n_matches_before;
    struct lfs_field_match *fields;
    size_t n_fields;
    struct lfs_rows rows;
    struct lfs_schema_merge schema;
    struct lfs_columns columns;
    struct lfs_alignment alignment;
    struct lfs_indexes indexes;
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
    return 0;
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

static errint_t merge_files(struct merge *m, size_t i, struct lfs_plan_fragment *f) {
    LFS_TRY(lfs_columns_merge(&m->columns, &m->matches[i], f, m->err));
    return lfs_align_holes(&m->alignment, i, f);
}

static errint_t decide(struct merge *m, size_t i, uint64_t *next_id) {
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
    case LFS_FATE_RETURNED: return add_theirs(m, x->theirs, next_id);
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
    LFS_TRY(lfs_rows_init(&m->rows, m->in, plan, &m->schema, m->matches, m->n_matches, m->err));
    m->alignment = (struct lfs_alignment){m->in, plan, m->matches, m->fields, m->n_fields, &m->rows, &m->schema, m->err};
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
        LFS_TRY(lfs_align_rewritten(&m->alignment, i, &keep)); /* first: deciding hands vectors over */
        LFS_TRY(lfs_align_moved(&m->alignment, i));
        if (keep)
            LFS_TRY(keep_ours(m, m->matches[i].ours, &f));
        else
            LFS_TRY(decide(m, i, &next_id));
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

/* New ones mostly come last, with the highest ids. */
static bool is_sorted(const struct lfs_plan *plan) {
    for (size_t i = 1; i < plan->n_fragments; i++)
        if (plan->fragments[i].id < plan->fragments[i - 1].id)
            return false;
    return true;
}

static errint_t finish_fragments(struct merge *m) {
    struct lfs_plan *plan = m->plan;
    bool any, theirs_any;
    uint64_t highest = highest_id(m->ours, &any), theirs = highest_id(m->theirs, &theirs_any);
    if (!is_sorted(plan))
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

/* The winner's data as a whole is what a merge gives whose base is the loser. */
static errint_t take_whole(struct merge *m, enum lfs_side winner) {
    m->before = *m->in;
    m->before.without_history = true;
    m->matches_before = m->matches;
    m->n_matches_before = m->n_matches;
    m->whole = *m->in;
    m->whole.base = winner == LFS_OURS ? m->in->theirs : m->in->ours;
    m->whole.base_side = winner == LFS_OURS ? LFS_THEIRS : LFS_OURS;
    m->whole.base_is_ours = winner == LFS_THEIRS;
    m->whole.base_is_theirs = winner == LFS_OURS;
    m->whole.ours_is_base = false;
    m->whole.without_history = true;
    m->in = m->real = &m->whole;
    m->base = m->in->base->manifest.message;
    return lfs_match_fragments(m->in, m->plan->arena, &m->matches, &m->n_matches, m->err);
}

static errint_t check_replaced(struct merge *m) {
    if (!m->agree)
        LFS_TRY(lfs_replaced_check(m->in, m->matches, m->n_matches, m->plan, &m->replacement, &m->replacer, m->err));
    if (m->replacement != LFS_NOT_REPLACED && lfs_only_applies(&m->in->policy))
        return lfs_report_refusal(m->plan, m->err, "the table was replaced since %s and %s parted: only= cannot take a part of that",
                                  m->in->ours_name, m->in->theirs_name);
    if (m->replacement == LFS_REPLACED_WHOLE)
        LFS_TRY(take_whole(m, m->replacer));
    m->real_matches = m->matches;
    m->n_real_matches = m->n_matches;
    return 0;
}

/* only=: what of theirs is not named is as if theirs had left it alone. */
static errint_t mask(struct merge *m) {
    if (!lfs_only_applies(&m->in->policy))
        return 0;
    LFS_TRY(lfs_only_mask(&m->only, m->in, m->matches, m->n_matches, m->plan, m->err));
    m->in = &m->only.input;
    m->theirs = m->in->theirs->manifest.message;
    LFS_TRY(lfs_match_fragments(m->in, m->plan->arena, &m->matches, &m->n_matches, m->err));
    m->agree = sides_agree(m);
    return 0;
}

/* --- the whole --- */

static errint_t merge_data(struct merge *m) {
    struct lfs_plan *plan = m->plan;
    LFS_TRY(mask(m));
    LFS_TRY(lfs_match_fields(m->in, m->matches, m->n_matches, plan->arena, &m->fields, &m->n_fields, m->err));
    if (m->in != m->real)
        LFS_TRY(lfs_only_mask_fields(m->in, m->matches, m->n_matches, m->fields, &m->n_fields, plan, m->err));
    lfs_indexes_mark(m->in, m->fields, m->n_fields);
    decide_ids(m);
    LFS_TRY(merge_schema(m));
    LFS_TRY(lfs_keys_check(m->in, m->matches, m->n_matches, &m->schema, plan, m->err));
    LFS_TRY(merge_fragments(m));
    LFS_TRY(lfs_columns_check_gaps(&m->columns, m->matches, m->n_matches, m->err));
    m->indexes = (struct lfs_indexes){.input = m->real, .schema = &m->schema, .plan = plan, .err = m->err};
    m->indexes.keep_their_ids = m->keep_their_ids;
    m->indexes.taken = m->replacement == LFS_REPLACED_ONE ? m->replacer : LFS_BASE;
    LFS_TRY(lfs_indexes_decide(&m->indexes));
    bool whole = m->replacement == LFS_REPLACED_WHOLE;
    LFS_TRY(lfs_merge_row_ids(whole ? &m->before : m->in, whole ? m->matches_before : m->matches,
                              whole ? m->n_matches_before : m->n_matches, plan, m->err));
    if (plan->refusal || plan->n_conflicts)
        return 0;
    LFS_TRY(finish_fragments(m));
    return lfs_indexes_settle(&m->indexes, m->real_matches, m->n_real_matches);
}

static errint_t run(struct merge *m) {
    struct lfs_plan *plan = m->plan;
    LFS_TRY(lfs_match_fragments(m->in, plan->arena, &m->matches, &m->n_matches, m->err));
    m->agree = sides_agree(m);
    LFS_TRY(check_formats(m));
    LFS_TRY(lfs_merge_maps(m->in, plan, m->err));
    LFS_TRY(check_replaced(m));
    if (m->replacement != LFS_REPLACED_CLASH && !plan->refusal)
        LFS_TRY(merge_data(m));
    if (plan->refusal)
        plan->outcome = LFS_OUTCOME_REFUSED;
    else if (plan->n_conflicts)
        plan->outcome = LFS_OUTCOME_CONFLICT;
    else if (!plan->fragments_changed && !plan->schema_changed && !plan->maps_changed && !plan->indices_changed)
        plan->outcome = LFS_OUTCOME_EMPTY;
    else
        plan->outcome = m->in->ours_is_base ? LFS_OUTCOME_FAST_FORWARD : LFS_OUTCOME_MERGED;
    return 0;
}

errint_t lfs_merge3(const struct lfs_merge_input *input, struct lfs_arena *arena, struct lfs_plan *out,
                    struct lfs_error *err) {
    struct lfs_merge_input asked = *input;
    asked.finder = lfs_match_finder_new(arena);
    struct merge m = {.real = &asked,
                      .in = &asked,
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
