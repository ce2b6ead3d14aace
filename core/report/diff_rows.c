/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of the base's fragments by what became of them on each side, fragments that came, columns that were written anew. */
#include <string.h>

#include "merge/classes.h"
#include "merge/field.h"
#include "merge/field_match.h"
#include "merge/match.h"
#include "report/diff.h"
#include "util/bitmap.h"

/* What can have become of a row of the base. */
enum state { KEPT, DELETED, UPDATED, REWRITTEN, BACK, GONE, STATES };
static const char *const words[STATES] = {NULL, "deleted", "updated", "rewritten", "restored", "gone"};

struct rows {
    roaring_bitmap_t *in[STATES]; /* [KEPT] is not filled in */
};

static void free_rows(struct rows *rows) {
    for (size_t i = 0; i < STATES; i++)
        lfs_cleanup_bitmap(&rows->in[i]);
}

static uint64_t all_rows(const LanceFragment *f) { return f->physical_rows; }

/* The rows of the base's fragment that live on this side no more, and those that live there though the base deleted them. */
static errint_t changed_rows(const struct lfs_diff *d, const struct lfs_match *x, enum lfs_side side,
                             roaring_bitmap_t **gone, roaring_bitmap_t **back, struct lfs_error *err) {
    const struct lfs_merge_reader *r = d->input.reader;
    const LanceFragment *mine = side == LFS_OURS ? x->ours : x->theirs;
    const struct lfs_version *version = side == LFS_OURS ? d->input.ours : d->input.theirs;
    AUTO_BITMAP *base = NULL, *now = NULL;
    LFS_TRY(r->deletions(r->context, d->input.base, x->base, &base, err));
    if (mine)
        LFS_TRY(r->deletions(r->context, version, mine, &now, err));
    else if (!(now = roaring_bitmap_from_range(0, all_rows(x->base), 1)) && !(now = roaring_bitmap_create()))
        return lfs_fail_nomem(err);
    *gone = roaring_bitmap_andnot(now, base);
    *back = mine ? roaring_bitmap_andnot(base, now) : roaring_bitmap_create();
    return *gone && *back ? 0 : lfs_fail_nomem(err);
}

/* Told by the same transactions that a merge asks (merge/classes.h). */
static errint_t split(const struct lfs_diff *d, const struct lfs_match *x, enum lfs_side side, roaring_bitmap_t *gone,
                      struct rows *out, struct lfs_error *err) {
    struct lfs_row_question q = {.path = x->base->files[0]->path, .rows = gone};
    struct lfs_row_classes classes;
    errint_t result = lfs_classify_rows(&d->input, side, &q, &classes, err);
    if (result == 0) {
        out->in[DELETED] = roaring_bitmap_and(gone, classes.deleted);
        out->in[REWRITTEN] = roaring_bitmap_and(gone, classes.rewritten);
        out->in[UPDATED] = roaring_bitmap_create();
        out->in[GONE] = roaring_bitmap_copy(gone);
        for (size_t i = DELETED; i <= GONE; i++)
            if (i != BACK && !out->in[i])
                result = lfs_fail_nomem(err);
    }
    for (struct lfs_row_update *u = classes.updates; result == 0 && u; u = u->next)
        roaring_bitmap_or_inplace(out->in[UPDATED], u->rows);
    if (result == 0) {
        roaring_bitmap_and_inplace(out->in[UPDATED], gone);
        roaring_bitmap_andnot_inplace(out->in[UPDATED], out->in[DELETED]);
        roaring_bitmap_andnot_inplace(out->in[UPDATED], out->in[REWRITTEN]);
        for (size_t i = DELETED; i <= REWRITTEN; i++) /* what is left no commit at hand explains */
            roaring_bitmap_andnot_inplace(out->in[GONE], out->in[i]);
    }
    lfs_row_classes_free(&classes);
    return result;
}

static errint_t side_rows(const struct lfs_diff *d, const struct lfs_match *x, enum lfs_side side, struct rows *out,
                          struct lfs_error *err) {
    AUTO_BITMAP *gone = NULL;
    const LanceFragment *mine = side == LFS_OURS ? x->ours : x->theirs;
    if (mine && lfs_match_same_deletions(x->base, mine))
        return 0;
    LFS_TRY(changed_rows(d, x, side, &gone, &out->in[BACK], err));
    return roaring_bitmap_is_empty(gone) ? 0 : split(d, x, side, gone, out, err);
}

/* "0..9,12,15..20" */
struct ranges {
    struct lfs_buf *out;
    uint64_t first, last;
    bool any;
};

static void end_range(struct ranges *r) {
    if (!r->any)
        return;
    if (r->out->length)
        lfs_buf_puts(r->out, ",");
    lfs_buf_printf(r->out, r->first == r->last ? "%" PRIu64 : "%" PRIu64 "..%" PRIu64, r->first, r->last);
}

static bool add_row(uint32_t row, void *state) {
    struct ranges *r = state;
    if (r->any && row == r->last + 1) {
        r->last = row;
        return true;
    }
    end_range(r);
    r->first = r->last = row;
    r->any = true;
    return true;
}

static void put_ranges(const roaring_bitmap_t *rows, struct lfs_buf *out) {
    struct ranges r = {.out = out};
    roaring_iterate(rows, add_row, &r);
    end_range(&r);
}

static errint_t put_group(struct lfs_diff *d, const char *unit, const struct rows *ours, const struct rows *theirs,
                          enum state a, enum state b, struct lfs_error *err) {
    LFS_AUTO_BUF where = {0};
    const roaring_bitmap_t *start = a ? ours->in[a] : theirs->in[b];
    if (!start || (a && b && !theirs->in[b]))
        return 0;
    AUTO_BITMAP *rows = roaring_bitmap_copy(start);
    if (!rows)
        return lfs_fail_nomem(err);
    if (a && b)
        roaring_bitmap_and_inplace(rows, theirs->in[b]);
    for (size_t i = DELETED; i < STATES; i++) { /* "nothing" is what none of the others says */
        if (!b && theirs->in[i])
            roaring_bitmap_andnot_inplace(rows, theirs->in[i]);
        if (!a && ours->in[i])
            roaring_bitmap_andnot_inplace(rows, ours->in[i]);
    }
    if (roaring_bitmap_is_empty(rows))
        return 0;
    put_ranges(rows, &where);
    LFS_TRY(lfs_buf_check(&where, err));
    bool same = a == b && (a == DELETED || a == BACK);
    lfs_diff_put(d, "rows", unit, words[a], words[b], same, roaring_bitmap_get_cardinality(rows), &where);
    return 0;
}

static errint_t put_base_fragment(struct lfs_diff *d, const struct lfs_match *x, struct lfs_error *err) {
    char unit[40];
    LFS_CLEANUP(free_rows) struct rows ours = {0};
    LFS_CLEANUP(free_rows) struct rows theirs = {0};
    snprintf(unit, sizeof unit, "fragment %" PRIu64, x->ours ? x->ours->id : x->base->id);
    if (x->base->n_files == 0 || !x->base->files[0]->path)
        return 0;
    LFS_TRY(side_rows(d, x, LFS_OURS, &ours, err));
    LFS_TRY(side_rows(d, x, LFS_THEIRS, &theirs, err));
    for (size_t a = KEPT; a < STATES; a++)
        for (size_t b = KEPT; b < STATES; b++)
            if (a || b)
                LFS_TRY(put_group(d, unit, &ours, &theirs, (enum state)a, (enum state)b, err));
    return 0;
}

/* A fragment that the base does not hold, by one of its files. */
static void put_new_fragment(struct lfs_diff *d, const struct lfs_match *x) {
    char unit[40];
    LFS_AUTO_BUF where = {0};
    const LanceFragment *f = x->ours ? x->ours : x->theirs;
    const char *path = lfs_match_name(f);
    snprintf(unit, sizeof unit, "fragment %" PRIu64, f->id);
    lfs_buf_puts(&where, path);
    bool same = x->ours && x->theirs && lfs_match_same_deletions(x->ours, x->theirs);
    lfs_diff_put(d, "fragment", unit, x->ours ? "added" : NULL, x->theirs ? "added" : NULL, same, lfs_report_live(f),
                 &where);
}

/* --- columns of a fragment that read from other files now --- */

static bool moved(const LanceFragment *base, int32_t base_id, const LanceFragment *mine, int32_t id) {
    struct lfs_field_place was = lfs_field_place(base, base_id), is = lfs_field_place(mine, id);
    if (!was.file || !is.file)
        return was.file != is.file;
    return was.column != is.column ||
           strcmp(was.file->path ? was.file->path : "", is.file->path ? is.file->path : "") != 0;
}

static void put_columns(struct lfs_diff *d, const struct lfs_match *x, const struct lfs_field_match *fields, size_t n) {
    char unit[40];
    bool ours_differ = x->ours && !lfs_match_same_files(x->base, x->ours),
         theirs_differ = x->theirs && !lfs_match_same_files(x->base, x->theirs);
    if (!ours_differ && !theirs_differ)
        return;
    snprintf(unit, sizeof unit, "fragment %" PRIu64, x->ours ? x->ours->id : x->base->id);
    for (size_t i = 0; i < n; i++) {
        const struct lfs_field_match *f = &fields[i];
        int32_t was = f->base ? f->base->id : -1;
        bool ours = ours_differ && f->ours && moved(x->base, was, x->ours, f->ours->id),
             theirs = theirs_differ && f->theirs && moved(x->base, was, x->theirs, f->theirs->id);
        if (!ours && !theirs)
            continue;
        LFS_AUTO_BUF where = {0};
        lfs_buf_puts(&where, f->path);
        bool same = ours && theirs && !moved(x->ours, f->ours->id, x->theirs, f->theirs->id);
        lfs_diff_put(d, "column", unit, ours ? "written" : NULL, theirs ? "written" : NULL, same, all_rows(x->base),
                     &where);
    }
}

errint_t lfs_diff_rows(struct lfs_diff *d, struct lfs_error *err) {
    struct lfs_field_match *fields;
    size_t n;
    for (size_t i = 0; i < d->n_matches; i++) {
        if (d->matches[i].base)
            LFS_TRY(put_base_fragment(d, &d->matches[i], err));
        else
            put_new_fragment(d, &d->matches[i]);
    }
    LFS_TRY(lfs_match_fields(&d->input, d->matches, d->n_matches, d->report->arena, &fields, &n, err));
    for (size_t i = 0; i < d->n_matches; i++)
        if (d->matches[i].base)
            put_columns(d, &d->matches[i], fields, n);
    return 0;
}
