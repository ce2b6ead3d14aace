/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/classes.h"

#include <string.h>

#include "util/bitmap.h"
#include "util/cleanup.h"

enum kind { KIND_NOTHING, KIND_DELETE, KIND_UPDATE, KIND_REWRITE, KIND_REPLACE };

static enum kind transaction_kind(const LanceTransaction *txn) {
    if (!txn)
        return KIND_UPDATE; /* nobody says what it was: never taken for a clean delete */
    if (lfs_transaction_restates(txn))
        return KIND_NOTHING;
    switch (txn->operation_case) {
    case LANCE__TABLE__TRANSACTION__OPERATION_DELETE: return KIND_DELETE;
    case LANCE__TABLE__TRANSACTION__OPERATION_REWRITE: return KIND_REWRITE;
    case LANCE__TABLE__TRANSACTION__OPERATION_OVERWRITE:
    case LANCE__TABLE__TRANSACTION__OPERATION_RESTORE: return KIND_REPLACE;
    case LANCE__TABLE__TRANSACTION__OPERATION_APPEND:
    case LANCE__TABLE__TRANSACTION__OPERATION_CREATE_INDEX:
    case LANCE__TABLE__TRANSACTION__OPERATION_RESERVE_FRAGMENTS:
    case LANCE__TABLE__TRANSACTION__OPERATION_UPDATE_CONFIG:
    case LANCE__TABLE__TRANSACTION__OPERATION_UPDATE_BASES:
    case LANCE__TABLE__TRANSACTION__OPERATION_CLONE: return KIND_NOTHING;
    default: return KIND_UPDATE;
    }
}

/* The rows among `rows` that went away between two versions. */
static errint_t step_rows(const struct lfs_merge_input *input, const struct lfs_step *step, const char *path,
                          const roaring_bitmap_t *rows, roaring_bitmap_t **out, struct lfs_error *err) {
    const struct lfs_merge_reader *r = input->reader;
    const LanceFragment *before = lfs_match_find_in(input->finder, step->before->manifest.message, path);
    const LanceFragment *after = lfs_match_find_in(input->finder, step->after->manifest.message, path);
    *out = NULL;
    if (!before || (after && lfs_match_same_deletions(before, after)))
        return 0;
    AUTO_BITMAP *dv_before = NULL;
    AUTO_BITMAP *dv_after = NULL;
    LFS_TRY(r->deletions(r->context, step->before, before, &dv_before, err));
    if (after)
        LFS_TRY(r->deletions(r->context, step->after, after, &dv_after, err));
    roaring_bitmap_t *gone = after ? roaring_bitmap_and(rows, dv_after) : roaring_bitmap_copy(rows);
    if (!gone)
        return lfs_fail_nomem(err);
    roaring_bitmap_andnot_inplace(gone, dv_before);
    *out = gone;
    return 0;
}

static bool has_new_fragments(const struct lfs_merge_input *input, const struct lfs_version *tip) {
    const LanceManifest *m = tip->manifest.message;
    for (size_t i = 0; i < m->n_fragments; i++)
        if (m->fragments[i]->n_files &&
            !lfs_match_find_in(input->finder, input->base->manifest.message, lfs_match_name(m->fragments[i])))
            return true;
    return false;
}

static errint_t add_update(struct lfs_row_classes *out, const LanceTransaction *t, roaring_bitmap_t **rows,
                           struct lfs_error *err) {
    struct lfs_row_update *update = calloc(1, sizeof *update);
    if (!update)
        return lfs_fail_nomem(err);
    *update = (struct lfs_row_update){t && t->uuid ? t->uuid : NULL, LFS_STEAL_PTR(*rows), out->updates};
    out->updates = update;
    return 0;
}

/* No update but this one took those rows away. */
static void disown(struct lfs_row_classes *out, const roaring_bitmap_t *rows, const char *but) {
    for (struct lfs_row_update *u = out->updates; u; u = u->next)
        if (!but || !u->transaction || strcmp(u->transaction, but) != 0)
            roaring_bitmap_andnot_inplace(u->rows, rows);
}

/* An update that a merge brought took nothing from rows that were gone here already, as when a strategy or an undo let it
 * not stand. How they went can no longer be told: not as a plain delete, and by no update but where both are one. A delete
 * that a merge brought changes nothing at all in how they went: one that was updated here has its new copy still. */
static errint_t leave_earlier(roaring_bitmap_t *gone, const roaring_bitmap_t *seen, const LanceTransaction *t,
                              struct lfs_row_classes *out, struct lfs_error *err) {
    AUTO_BITMAP *again = roaring_bitmap_and(gone, seen);
    if (!again)
        return lfs_fail_nomem(err);
    roaring_bitmap_andnot_inplace(out->deleted, again);
    roaring_bitmap_andnot_inplace(gone, again);
    disown(out, again, t && t->uuid && *t->uuid ? t->uuid : NULL);
    return 0;
}

/* What lives after a step of that side's own line has not gone yet, whatever was told of it: an undo or a restore brought it
 * back, or a merge did not let it go. How it goes the next time is another story. */
static errint_t forget_living(const struct lfs_merge_input *input, const struct lfs_step *step,
                              const struct lfs_row_question *q, roaring_bitmap_t *seen, struct lfs_row_classes *out,
                              struct lfs_error *err) {
    const struct lfs_merge_reader *r = input->reader;
    struct lfs_match_finder *finder = input->finder;
    const LanceFragment *before = step->before ? lfs_match_find_in(finder, step->before->manifest.message, q->path) : NULL;
    const LanceFragment *after = lfs_match_find_in(finder, step->after->manifest.message, q->path);
    if (step->brought || !after || roaring_bitmap_is_empty(seen) ||
        (before && !step->is_merge && lfs_match_same_deletions(before, after)))
        return 0;
    AUTO_BITMAP *gone = NULL;
    LFS_TRY(r->deletions(r->context, step->after, after, &gone, err));
    AUTO_BITMAP *living = roaring_bitmap_andnot(q->rows, gone);
    if (!living)
        return lfs_fail_nomem(err);
    roaring_bitmap_andnot_inplace(seen, living);
    roaring_bitmap_andnot_inplace(out->deleted, living);
    roaring_bitmap_andnot_inplace(out->rewritten, living);
    disown(out, living, NULL);
    return 0;
}

static errint_t take_step(const struct lfs_merge_input *input, const struct lfs_step *step,
                          const struct lfs_row_question *q, bool is_there, roaring_bitmap_t *seen,
                          struct lfs_row_classes *out, struct lfs_error *err) {
    enum kind kind = transaction_kind(step->after->manifest.transaction);
    if (kind == KIND_NOTHING || !step->before)
        return 0;
    if (kind == KIND_REWRITE && step->brought && is_there) /* of another line, and left out here */
        return 0;
    AUTO_BITMAP *gone = NULL;
    LFS_TRY(step_rows(input, step, q->path, q->rows, &gone, err));
    if (gone && step->is_merge) /* what it brought has told its own story already */
        roaring_bitmap_andnot_inplace(gone, seen);
    if (gone && step->brought && kind == KIND_UPDATE)
        LFS_TRY(leave_earlier(gone, seen, step->after->manifest.transaction, out, err));
    if (gone && step->brought && kind == KIND_DELETE)
        roaring_bitmap_andnot_inplace(gone, seen);
    if (!gone || roaring_bitmap_is_empty(gone))
        return 0;
    roaring_bitmap_or_inplace(seen, gone);
    out->by_merge |= step->is_merge;
    /* How they went the last time counts. */
    roaring_bitmap_andnot_inplace(out->deleted, gone);
    roaring_bitmap_andnot_inplace(out->rewritten, gone);
    disown(out, gone, NULL);
    if (kind == KIND_DELETE)
        roaring_bitmap_or_inplace(out->deleted, gone);
    else if (kind == KIND_REWRITE)
        roaring_bitmap_or_inplace(out->rewritten, gone);
    else if (kind == KIND_REPLACE)
        out->replaced = true;
    else
        return add_update(out, step->after->manifest.transaction, &gone, err);
    return 0;
}

/* The commit that made the fragment; what a merge brought comes before the merge's own step. NULL when none at hand did. */
static const struct lfs_step *made_by(const struct lfs_merge_input *input, const struct lfs_history *history,
                                      const char *path) {
    for (size_t i = 0; i < history->count; i++) {
        const struct lfs_step *step = &history->steps[i];
        if (lfs_match_find_in(input->finder, step->after->manifest.message, path) &&
            !(step->before && lfs_match_find_in(input->finder, step->before->manifest.message, path)))
            return step;
    }
    return NULL;
}

/*
 * Rows of the base that a side lacks since it does not hold what made their fragment: it goes back to before that, or it
 * never came to it (the base of a pick is a state of another branch). Appended rows are gone, as if deleted. Rows that an
 * update or a compaction made are there all the same, as they were before.
 */
static errint_t classify_unmade(const struct lfs_merge_input *input, const struct lfs_history *history, const char *path,
                                const roaring_bitmap_t *rows, struct lfs_row_classes *out, struct lfs_error *err) {
    const struct lfs_step *step = made_by(input, history, path);
    enum kind kind = step ? transaction_kind(step->after->manifest.transaction) : KIND_UPDATE;
    if (!step) {
        out->unknown = true;
    } else if (kind == KIND_NOTHING) {
        roaring_bitmap_or_inplace(out->deleted, rows);
    } else if (kind == KIND_REWRITE) {
        roaring_bitmap_or_inplace(out->rewritten, rows);
        out->unmade = true;
    } else if (kind == KIND_REPLACE) {
        out->replaced = true;
    } else {
        roaring_bitmap_t *updated = roaring_bitmap_copy(rows);
        out->by_merge |= step->is_merge;
        return updated ? add_update(out, NULL, &updated, err) : lfs_fail_nomem(err);
    }
    return 0;
}

/* Did that side never hold the fragment? (A pick's base is a state of another branch.) Then it did nothing to its rows. */
static bool never_held(const struct lfs_merge_input *input, const struct lfs_history *history,
                       const struct lfs_version *tip, const char *path) {
    if (!history->complete || lfs_match_find_in(input->finder, tip->manifest.message, path))
        return false;
    for (size_t i = 0; i < history->count; i++)
        if (!history->steps[i].is_merge &&
            lfs_match_find_in(input->finder, history->steps[i].before->manifest.message, path))
            return false;
    return true;
}

/* Rows that a compaction took along went away later, from where it put them. If nothing but deletes can have done that
 * they were deleted; else they count as updated. */
static void settle_late_rows(const struct lfs_history *history, struct lfs_row_classes *out) {
    bool only_deletes = history->complete;
    for (size_t i = 0; i < history->count; i++) {
        enum kind kind = transaction_kind(history->steps[i].after->manifest.transaction);
        only_deletes &= history->steps[i].is_merge || kind == KIND_NOTHING || kind == KIND_DELETE || kind == KIND_REWRITE;
    }
    if (only_deletes)
        roaring_bitmap_or_inplace(out->deleted, out->rewritten);
    roaring_bitmap_clear(out->rewritten);
}

errint_t lfs_classify_rows(const struct lfs_merge_input *input, enum lfs_side side,
                           const struct lfs_row_question *q, struct lfs_row_classes *out, struct lfs_error *err) {
    const struct lfs_history *history;
    AUTO_BITMAP *seen = roaring_bitmap_create();
    *out = (struct lfs_row_classes){.deleted = roaring_bitmap_create(), .rewritten = roaring_bitmap_create()};
    if (!seen || !out->deleted || !out->rewritten)
        return lfs_fail_nomem(err);
    LFS_TRY(input->reader->history(input->reader->context, side, &history, err));
    if (history->backward)
        return classify_unmade(input, history, q->path, q->rows, out, err);
    const struct lfs_version *tip = side == LFS_OURS ? input->ours : input->theirs;
    bool is_there = lfs_match_find_in(input->finder, tip->manifest.message, q->path) != NULL;
    for (size_t i = 0; i < history->count; i++) {
        LFS_TRY(take_step(input, &history->steps[i], q, is_there, seen, out, err));
        LFS_TRY(forget_living(input, &history->steps[i], q, seen, out, err));
    }
    if (q->moved)
        settle_late_rows(history, out);
    if (roaring_bitmap_is_subset(q->rows, seen))
        return 0;
    AUTO_BITMAP *rest = roaring_bitmap_andnot(q->rows, seen);
    if (!rest)
        return lfs_fail_nomem(err);
    if (input->given_up_told && q->absent && never_held(input, history, tip, q->path)) {
        roaring_bitmap_or_inplace(out->deleted, rest);
        return 0;
    }
    if (never_held(input, history, tip, q->path)) {
        LFS_TRY(input->reader->history(input->reader->context, LFS_BASE, &history, err));
        return classify_unmade(input, history, q->path, rest, out, err);
    }
    /* Rows that no transaction at hand explains: on a side without new fragments they can only have been deleted. */
    if (has_new_fragments(input, tip))
        out->unknown = true;
    else
        roaring_bitmap_or_inplace(out->deleted, rest);
    return 0;
}

const char *lfs_row_update_of(const struct lfs_row_classes *classes, uint32_t row) {
    for (const struct lfs_row_update *u = classes->updates; u; u = u->next)
        if (roaring_bitmap_contains(u->rows, row))
            return u->transaction;
    return NULL;
}

void lfs_row_classes_free(struct lfs_row_classes *classes) {
    for (struct lfs_row_update *u = classes->updates, *next; u; u = next) {
        next = u->next;
        roaring_bitmap_free(u->rows);
        free(u);
    }
    classes->updates = NULL;
    lfs_cleanup_bitmap(&classes->deleted);
    lfs_cleanup_bitmap(&classes->rewritten);
    classes->deleted = classes->rewritten = NULL;
}

errint_t lfs_side_was_replaced(const struct lfs_merge_input *input, enum lfs_side side, bool *out,
                               struct lfs_error *err) {
    const struct lfs_history *history;
    *out = false;
    LFS_TRY(input->reader->history(input->reader->context, side, &history, err));
    for (size_t i = 0; i < history->count && !history->backward; i++) /* taken back, it is settled row by row */
        *out |= transaction_kind(history->steps[i].after->manifest.transaction) == KIND_REPLACE;
    return 0;
}

errint_t lfs_side_changed_rows(const struct lfs_merge_input *input, enum lfs_side side, bool *out,
                               struct lfs_error *err) {
    const struct lfs_history *history;
    LFS_TRY(input->reader->history(input->reader->context, side, &history, err));
    *out = !history->complete;
    for (size_t i = 0; i < history->count; i++) {
        const LanceTransaction *t = history->steps[i].after->manifest.transaction;
        enum kind kind = transaction_kind(t);
        if (!history->steps[i].is_merge) /* what one brought has steps of its own */
            *out |= (kind != KIND_NOTHING && kind != KIND_REWRITE) ||
                    t->operation_case == LANCE__TABLE__TRANSACTION__OPERATION_APPEND;
    }
    return 0;
}
