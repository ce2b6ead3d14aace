/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/keys.h"

#include <string.h>

#include "merge/report.h"
#include "util/cleanup.h"

/* Field metadata by which Lance's writers declare one; the field's own flag follows from it. */
static const char declaration[] = "lance-schema:unenforced-primary-key";

static bool is_key(const LanceField *f) {
    bool key = f->unenforced_primary_key || f->unenforced_primary_key_position;
    for (size_t i = 0; i < f->n_metadata; i++)
        key |= f->metadata[i]->key && strncmp(f->metadata[i]->key, declaration, sizeof declaration - 1) == 0;
    return key;
}

static const LanceField *key_of(const struct lfs_schema_merge *s) {
    for (size_t i = 0; i < s->n_fields; i++)
        if (is_key(s->fields[i]))
            return s->fields[i];
    return NULL;
}

static bool has_own_fragments(const struct lfs_match *matches, size_t n, enum lfs_side side) {
    for (size_t i = 0; i < n; i++)
        if (!matches[i].base && (side == LFS_OURS ? matches[i].ours && !matches[i].theirs
                                                  : matches[i].theirs && !matches[i].ours))
            return true;
    return false;
}

static uint64_t live(const LanceFragment *f) {
    uint64_t deleted = f->deletion_file ? f->deletion_file->num_deleted_rows : 0;
    return f->physical_rows > deleted ? f->physical_rows - deleted : 0;
}

static uint64_t live_rows(const LanceManifest *m) {
    uint64_t rows = 0;
    for (size_t i = 0; i < m->n_fragments; i++)
        rows += live(m->fragments[i]);
    return rows;
}

/* An update() names the columns that it set, a merge_insert all of them. One that leaves the key alone, and the number of
 * rows, gave no row another key. */
static bool may_insert(const struct lfs_step *step) {
    const Lance__Table__Update *u = step->after->manifest.transaction->update;
    const LanceManifest *after = step->after->manifest.message;
    size_t n = u->n_fields_modified + u->n_fields_for_preserving_frag_bitmap;
    if (!n || !step->before || live_rows(step->before->manifest.message) != live_rows(after))
        return true;
    for (size_t i = 0; i < n; i++) {
        uint32_t id = i < u->n_fields_modified ? u->fields_modified[i]
                                               : u->fields_for_preserving_frag_bitmap[i - u->n_fields_modified];
        const LanceField *f = lfs_field_by_id(after, (int32_t)id);
        if (!f || is_key(f))
            return true;
    }
    return false;
}

static bool inserts(const struct lfs_step *step) {
    const LanceTransaction *t = step->after->manifest.transaction;
    if (step->is_merge)
        return false; /* what it brought has steps of its own */
    switch (t ? t->operation_case : LANCE__TABLE__TRANSACTION__OPERATION__NOT_SET) {
    case LANCE__TABLE__TRANSACTION__OPERATION_DELETE:
    case LANCE__TABLE__TRANSACTION__OPERATION_CREATE_INDEX:
    case LANCE__TABLE__TRANSACTION__OPERATION_REWRITE:
    case LANCE__TABLE__TRANSACTION__OPERATION_RESERVE_FRAGMENTS:
    case LANCE__TABLE__TRANSACTION__OPERATION_UPDATE_CONFIG:
    case LANCE__TABLE__TRANSACTION__OPERATION_UPDATE_BASES:
    case LANCE__TABLE__TRANSACTION__OPERATION_PROJECT:
    case LANCE__TABLE__TRANSACTION__OPERATION_MERGE:
    case LANCE__TABLE__TRANSACTION__OPERATION_CLONE: return false;
    case LANCE__TABLE__TRANSACTION__OPERATION_UPDATE: return !t->update || may_insert(step);
    default: return true;
    }
}

static errint_t has_inserted(const struct lfs_merge_input *in, const struct lfs_match *matches, size_t n,
                             enum lfs_side side, bool *out, struct lfs_error *err) {
    const struct lfs_history *history;
    *out = has_own_fragments(matches, n, side);
    if (!*out)
        return 0;
    LFS_TRY(in->reader->history(in->reader->context, side, &history, err));
    *out = !history->complete;
    for (size_t i = 0; i < history->count; i++)
        *out |= inserts(&history->steps[i]);
    return 0;
}

errint_t lfs_keys_check(const struct lfs_merge_input *in, const struct lfs_match *matches, size_t n,
                        const struct lfs_schema_merge *schema, struct lfs_plan *plan, struct lfs_error *err) {
    const LanceField *key = key_of(schema);
    bool ours, theirs;
    if (!key || in->without_history)
        return 0;
    LFS_TRY(has_inserted(in, matches, n, LFS_OURS, &ours, err));
    LFS_TRY(has_inserted(in, matches, n, LFS_THEIRS, &theirs, err));
    if (!ours || !theirs)
        return 0;
    return lfs_report_refusal(plan, err,
                              "both %s and %s inserted rows, and the table declares a primary key (%s): whether they share "
                              "one only the data tells, which is not read, so they are not merged; a stock merge_insert on "
                              "the key brings the rows of %s over",
                              in->ours_name, in->theirs_name, key->name ? key->name : "", in->theirs_name);
}
