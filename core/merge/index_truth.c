/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/index_truth.h"

#include <string.h>

#include "format/roaring_check.h"
#include "format/rowids.h"
#include "merge/field.h"
#include "merge/virtual.h"
#include "util/bitmap.h"
#include "util/cleanup.h"

/* --- coverage --- */

errint_t lfs_index_coverage(const LanceIndex *index, roaring_bitmap_t **out, struct lfs_error *err) {
    *out = NULL;
    if (!index->has_fragment_bitmap)
        return 0;
    LFS_TRY(lfs_roaring_check(index->fragment_bitmap.data, index->fragment_bitmap.len, "the coverage of an index", err));
    *out = roaring_bitmap_portable_deserialize_safe((const char *)index->fragment_bitmap.data, index->fragment_bitmap.len);
    return *out ? 0 : lfs_fail(err, LFS_E_CORRUPT, "the coverage of index %s cannot be read", index->name ? index->name : "");
}

errint_t lfs_index_with_coverage(const LanceIndex *index, const roaring_bitmap_t *covered, struct lfs_arena *arena,
                                 LanceIndex **out, struct lfs_error *err) {
    size_t size = roaring_bitmap_portable_size_in_bytes(covered);
    uint8_t *bytes = lfs_alloc(arena, size);
    *out = lfs_memdup(arena, index, sizeof **out);
    if (!bytes || !*out)
        return lfs_fail_nomem(err);
    roaring_bitmap_portable_serialize(covered, (char *)bytes);
    (*out)->has_fragment_bitmap = true;
    (*out)->fragment_bitmap = (ProtobufCBinaryData){size, bytes};
    return 0;
}

/* --- fragments by id --- */

static uint64_t their_id(const struct lfs_match *x) { return x->theirs->id; }

static int by_their_id(const void *a, const void *b) {
    uint64_t x = their_id(*(const struct lfs_match *const *)a), y = their_id(*(const struct lfs_match *const *)b);
    return x < y ? -1 : x > y;
}

errint_t lfs_index_truth_init(struct lfs_index_truth *out, const struct lfs_merge_input *input,
                              const struct lfs_match *matches, size_t n_matches, const struct lfs_schema_merge *schema,
                              struct lfs_plan *plan, struct lfs_error *err) {
    *out = (struct lfs_index_truth){.input = input, .schema = schema, .plan = plan, .err = err};
    out->by_their = LFS_NEW_ARRAY(plan->arena, const struct lfs_match *, n_matches + 1);
    if (!out->by_their)
        return lfs_fail_nomem(err);
    for (size_t i = 0; i < n_matches; i++)
        if (matches[i].theirs)
            out->by_their[out->n_theirs++] = &matches[i];
    if (out->n_theirs)
        qsort(out->by_their, out->n_theirs, sizeof *out->by_their, by_their_id);
    return 0;
}

static const struct lfs_match *find_theirs(const struct lfs_index_truth *t, uint64_t id) {
    size_t low = 0, high = t->n_theirs;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (their_id(t->by_their[mid]) == id)
            return t->by_their[mid];
        if (their_id(t->by_their[mid]) < id)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

/* --- one fragment --- */

/* The fields that an index reads: those that it names, and all below them (data files name leaves only). */
static bool is_indexed(const LanceManifest *m, const LanceField *f, const LanceIndex *index) {
    for (size_t depth = 0; f && depth <= m->n_fields; depth++) {
        for (size_t i = 0; i < index->n_fields; i++)
            if (index->fields[i] == f->id)
                return true;
        f = f->parent_id >= 0 ? lfs_field_by_id(m, f->parent_id) : NULL;
    }
    return false;
}

static struct lfs_field_place place_in_result(const struct lfs_plan_fragment *f, int32_t id) {
    if (!f->files)
        return lfs_field_place(f->record, id);
    for (size_t i = 0; i < f->n_files; i++)
        for (size_t k = 0; k < f->files[i].record->n_fields; k++)
            if (f->files[i].record->fields[k] == id)
                return (struct lfs_field_place){f->files[i].record, k < f->files[i].record->n_column_indices
                                                                        ? f->files[i].record->column_indices[k]
                                                                        : -1};
    return (struct lfs_field_place){NULL, -1};
}

static bool same_place(struct lfs_field_place a, struct lfs_field_place b) {
    if (!a.file || !b.file)
        return a.file == b.file;
    return strcmp(a.file->path ? a.file->path : "", b.file->path ? b.file->path : "") == 0 && a.column == b.column;
}

/* Does the result read the indexed columns of the fragment from where the side does that built the index? */
static bool same_data(const struct lfs_index_truth *t, const LanceIndex *index, enum lfs_side side,
                      const struct lfs_plan_fragment *f, const LanceFragment *mine) {
    const LanceManifest *m = (side == LFS_OURS ? t->input->ours : t->input->theirs)->manifest.message;
    for (size_t i = 0; i < t->schema->n_matches; i++) {
        const LanceField *field = side == LFS_OURS ? t->schema->matches[i].ours : t->schema->matches[i].theirs;
        if (field && is_indexed(m, field, index) &&
            !same_place(place_in_result(f, t->schema->ids[i]), lfs_field_place(mine, field->id)))
            return false;
    }
    return true;
}

static errint_t result_vector(const struct lfs_index_truth *t, const struct lfs_plan_fragment *f, roaring_bitmap_t **out) {
    const struct lfs_merge_reader *r = t->input->reader;
    if (f->deletion == LFS_DELETION_KEPT)
        return r->deletions(r->context, f->is_theirs ? t->input->theirs : t->input->ours, f->record, out, t->err);
    *out = f->deleted ? roaring_bitmap_copy(f->deleted) : roaring_bitmap_create();
    return *out ? 0 : lfs_fail_nomem(t->err);
}

/* Every row that lives in the result lived on that side, too: an index need not know the others. */
static errint_t knows_rows(const struct lfs_index_truth *t, enum lfs_side side, const struct lfs_plan_fragment *f,
                           const LanceFragment *mine, bool *out) {
    const struct lfs_merge_reader *r = t->input->reader;
    AUTO_BITMAP *there = NULL;
    AUTO_BITMAP *result = NULL;
    *out = true;
    if (!mine->deletion_file || (f->deletion == LFS_DELETION_KEPT && lfs_match_same_deletions(f->record, mine)))
        return 0;
    LFS_TRY(r->deletions(r->context, side == LFS_OURS ? t->input->ours : t->input->theirs, mine, &there, t->err));
    LFS_TRY(result_vector(t, f, &result));
    *out = roaring_bitmap_is_subset(there, result);
    return 0;
}

/* Is what an index of that side says of its fragment `mine` true of the result's? */
static errint_t is_true(const struct lfs_index_truth *t, const LanceIndex *index, enum lfs_side side,
                        const struct lfs_plan_fragment *f, const LanceFragment *mine, bool *out) {
    *out = same_data(t, index, side, f, mine);
    return *out ? knows_rows(t, side, f, mine, out) : 0;
}

/* Rows go by the same stable ids on both. */
static bool same_row_ids(const struct lfs_plan_fragment *f, const LanceFragment *mine) {
    const LanceFragment *r = f->record;
    const ProtobufCBinaryData *a = f->row_ids.data ? &f->row_ids : &r->inline_row_ids, *b = &mine->inline_row_ids;
    return r->row_id_sequence_case == mine->row_id_sequence_case && a->len == b->len &&
           (a->len == 0 || memcmp(a->data, b->data, a->len) == 0);
}

/* --- rows that moved, of tables with stable row ids --- */

/* Filters look a moved row up once, wherever it stands; Lance 10 gives it twice in a search when the fragment that it came
 * from is covered and the one that it went to is not. */
static bool is_filter(const LanceIndex *index) {
    static const char *const kinds[] = {"BTree", "Bitmap", "LabelList", "ZoneMap", "BloomFilter", "NGram"};
    const char *type = index->index_details && index->index_details->type_url ? index->index_details->type_url : "";
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strstr(type, kinds[i]))
            return true;
    return false;
}

static int by_value(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static errint_t row_ids_of(const struct lfs_index_truth *t, const struct lfs_plan_fragment *f, uint64_t **out) {
    const LanceFragment *record = lfs_plan_record(f, t->plan->arena);
    return record ? lfs_row_ids_of(record, t->plan->arena, "a fragment's row ids", out, t->err) : lfs_fail_nomem(t->err);
}

/* Ids of rows in fragments that the index does not cover; of ours' index only those that the merge brings. Sorted. */
static errint_t ids_outside(const struct lfs_index_truth *t, const roaring_bitmap_t *covered, enum lfs_side side,
                            uint64_t **out, size_t *n) {
    const struct lfs_plan *p = t->plan;
    uint64_t rows = 0, *ids;
    *n = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < p->n_fragments; i++) {
            const struct lfs_plan_fragment *f = &p->fragments[i];
            if (roaring_bitmap_contains(covered, (uint32_t)f->id) || (side == LFS_OURS && !f->is_new))
                continue;
            rows += pass ? 0 : f->record->physical_rows;
            if (!pass)
                continue;
            LFS_TRY(row_ids_of(t, f, &ids));
            memcpy(*out + *n, ids, f->record->physical_rows * sizeof *ids);
            *n += f->record->physical_rows;
        }
        if (!pass && !(*out = LFS_NEW_ARRAY(p->arena, uint64_t, rows + 1)))
            return lfs_fail_nomem(t->err);
    }
    if (*n)
        qsort(*out, *n, sizeof **out, by_value);
    return 0;
}

static errint_t meets(const struct lfs_index_truth *t, const struct lfs_plan_fragment *f, const uint64_t *sorted, size_t n,
                      bool *out) {
    uint64_t *ids;
    LFS_TRY(row_ids_of(t, f, &ids));
    for (uint64_t k = 0; k < f->record->physical_rows && !*out; k++)
        *out = bsearch(&ids[k], sorted, n, sizeof *sorted, by_value) != NULL;
    return 0;
}

/* Do rows that the index knows from a fragment that it covers, or covered, stand in one that it does not? */
static errint_t has_moved_rows(const struct lfs_index_truth *t, const LanceIndex *index, enum lfs_side side, bool *out) {
    const LanceManifest *m = (side == LFS_OURS ? t->input->ours : t->input->theirs)->manifest.message;
    AUTO_BITMAP *covered = NULL;
    uint64_t *outside;
    size_t n;
    *out = false;
    if (!lfs_manifest_has_stable_row_ids(t->input->ours->manifest.message) || is_filter(index))
        return 0;
    LFS_TRY(lfs_index_coverage(index, &covered, t->err));
    if (!covered)
        return 0;
    LFS_TRY(ids_outside(t, covered, side, &outside, &n));
    for (size_t i = 0; n && i < t->plan->n_fragments && !*out; i++) {
        const struct lfs_plan_fragment *f = &t->plan->fragments[i];
        if (f->n_deleted && roaring_bitmap_contains(covered, (uint32_t)f->id))
            LFS_TRY(meets(t, f, outside, n, out));
    }
    for (size_t i = 0; n && i < m->n_fragments && !*out; i++) {
        struct lfs_plan_fragment gone = {.id = m->fragments[i]->id, .record = m->fragments[i]};
        if (roaring_bitmap_contains(covered, (uint32_t)gone.id) && !lfs_plan_find(t->plan, gone.id))
            LFS_TRY(meets(t, &gone, outside, n, out));
    }
    return 0;
}

/* --- one entry --- */

/* Ours keeps its fragments under their ids; only those count that the merge changed. */
static errint_t keep_ours(const struct lfs_index_truth *t, const LanceIndex *index, LanceIndex **out) {
    AUTO_BITMAP *covered = NULL;
    bool cut = false;
    *out = (LanceIndex *)index;
    for (size_t i = 0; i < t->plan->n_fragments; i++) {
        const struct lfs_plan_fragment *f = &t->plan->fragments[i];
        bool holds;
        if (f->is_theirs || f->is_new || (!f->files && f->deletion == LFS_DELETION_KEPT))
            continue;
        LFS_TRY(is_true(t, index, LFS_OURS, f, f->record, &holds));
        if (holds)
            continue;
        if (!covered)
            LFS_TRY(lfs_index_coverage(index, &covered, t->err));
        if (!covered) { /* nobody knows what it answers for */
            *out = NULL;
            return 0;
        }
        cut |= roaring_bitmap_remove_checked(covered, (uint32_t)f->id);
    }
    return cut ? lfs_index_with_coverage(index, covered, t->plan->arena, out, t->err) : 0;
}

enum fit { FIT_TRUE, FIT_CUT, FIT_DEAD, FIT_NEVER };

/* A fragment that an entry of theirs covers. */
static errint_t fit_theirs(const struct lfs_index_truth *t, const LanceIndex *index, uint64_t id, enum fit *out) {
    const struct lfs_plan_fragment *f = lfs_plan_find(t->plan, id);
    const struct lfs_match *x = find_theirs(t, id);
    bool holds;
    *out = FIT_NEVER;
    if (!f) { /* its id is given to no other fragment, now or later; and its rows stand under no other id */
        bool lives = x && (x->ours ? lfs_plan_find(t->plan, x->ours->id) != NULL : !x->base);
        if (!lives && t->plan->has_max_fragment_id && id <= t->plan->max_fragment_id)
            *out = FIT_DEAD;
        return 0;
    }
    if (!x || (f->record != x->theirs && f->record != x->ours) || !same_row_ids(f, x->theirs))
        return 0;
    LFS_TRY(is_true(t, index, LFS_THEIRS, f, x->theirs, &holds));
    *out = holds ? FIT_TRUE : FIT_CUT;
    return 0;
}

static errint_t rename_fields(const struct lfs_index_truth *t, LanceIndex *index) {
    const struct lfs_field_match *ignored;
    int32_t *fields = lfs_memdup(t->plan->arena, index->fields, index->n_fields * sizeof *fields + 1);
    if (!fields)
        return lfs_fail_nomem(t->err);
    for (size_t i = 0; i < index->n_fields; i++)
        fields[i] = lfs_schema_their_id(t->schema, index->fields[i], &ignored);
    index->fields = fields;
    return 0;
}

static errint_t keep_theirs(const struct lfs_index_truth *t, const LanceIndex *index, LanceIndex **out) {
    AUTO_BITMAP *covered = NULL;
    bool any = false, never = false;
    *out = NULL;
    LFS_TRY(lfs_index_coverage(index, &covered, t->err));
    AUTO_BITMAP *kept = covered ? roaring_bitmap_copy(covered) : NULL;
    roaring_uint32_iterator_t *it = kept ? roaring_create_iterator(covered) : NULL;
    errint_t result = covered && !it ? lfs_fail_nomem(t->err) : 0;
    for (; it && result == 0 && it->has_value && !never; roaring_advance_uint32_iterator(it)) {
        enum fit fit;
        result = fit_theirs(t, index, it->current_value, &fit);
        any |= result == 0 && fit == FIT_TRUE;
        never = result == 0 && fit == FIT_NEVER;
        if (result == 0 && fit == FIT_CUT)
            roaring_bitmap_remove(kept, it->current_value);
    }
    if (it)
        roaring_free_uint32_iterator(it);
    LFS_TRY(result);
    if (!any || never)
        return 0;
    LFS_TRY(lfs_index_with_coverage(index, kept, t->plan->arena, out, t->err));
    return rename_fields(t, *out);
}

errint_t lfs_index_keep(const struct lfs_index_truth *t, const LanceIndex *index, enum lfs_side side, LanceIndex **out) {
    bool moved = false;
    LFS_TRY(side == LFS_OURS ? keep_ours(t, index, out) : keep_theirs(t, index, out));
    if (*out)
        LFS_TRY(has_moved_rows(t, *out, side, &moved));
    if (moved)
        *out = NULL;
    return 0;
}
