/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/plan.h"

#include <string.h>

bool lfs_list_add(struct lfs_list *list, struct lfs_arena *arena, void *item) {
    if (!item)
        return false;
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? list->capacity * 2 : 8;
        void **grown = LFS_NEW_ARRAY(arena, void *, capacity);
        if (!grown)
            return false;
        if (list->count)
            memcpy(grown, list->items, list->count * sizeof *grown);
        list->items = grown;
        list->capacity = capacity;
    }
    list->items[list->count++] = item;
    return true;
}

LanceFragment *lfs_plan_record(const struct lfs_plan_fragment *from, struct lfs_arena *arena) {
    LanceFragment *f = lfs_memdup(arena, from->record, sizeof *f);
    if (!f)
        return NULL;
    f->has_id = true;
    f->id = from->id;
    if (from->row_ids.data) {
        f->row_id_sequence_case = LANCE__TABLE__DATA_FRAGMENT__ROW_ID_SEQUENCE_INLINE_ROW_IDS;
        f->inline_row_ids = from->row_ids;
    }
    if (from->created_versions.data) {
        f->created_at_version_sequence_case =
            LANCE__TABLE__DATA_FRAGMENT__CREATED_AT_VERSION_SEQUENCE_INLINE_CREATED_AT_VERSIONS;
        f->inline_created_at_versions = from->created_versions;
    }
    if (from->updated_versions.data) {
        f->last_updated_at_version_sequence_case =
            LANCE__TABLE__DATA_FRAGMENT__LAST_UPDATED_AT_VERSION_SEQUENCE_INLINE_LAST_UPDATED_AT_VERSIONS;
        f->inline_last_updated_at_versions = from->updated_versions;
    }
    return f;
}

static uint64_t live(uint64_t rows, uint64_t deleted) { return rows > deleted ? rows - deleted : 0; }

struct lfs_plan_fragment *lfs_plan_find(const struct lfs_plan *plan, uint64_t id) {
    size_t low = 0, high = plan->n_fragments;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (plan->fragments[mid].id == id)
            return &plan->fragments[mid];
        if (plan->fragments[mid].id < id)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

/* What became of one fragment of ours. */
static void count_ours(struct lfs_plan *plan, const LanceFragment *f, struct lfs_plan_fragment *now) {
    uint64_t before = live(f->physical_rows, f->deletion_file ? f->deletion_file->num_deleted_rows : 0);
    if (!now) {
        plan->removed_ids[plan->n_removed++] = f->id;
        plan->fragments_removed++;
        plan->rows_removed += before;
        return;
    }
    uint64_t after = live(now->record->physical_rows, now->n_deleted);
    now->is_new = false;
    plan->rows_added += after > before ? after - before : 0;
    plan->rows_removed += before > after ? before - after : 0;
    plan->fragments_changed_count += (now->deletion != LFS_DELETION_KEPT && !now->as_ours) || now->files || now->is_theirs;
}

errint_t lfs_plan_count(struct lfs_plan *plan, const LanceManifest *ours, struct lfs_error *err) {
    plan->removed_ids = LFS_NEW_ARRAY(plan->arena, uint64_t, ours->n_fragments + 1);
    if (!plan->removed_ids)
        return lfs_fail_nomem(err);
    plan->n_removed = 0;
    plan->fragments_added = plan->fragments_removed = plan->fragments_changed_count = 0;
    plan->rows_added = plan->rows_removed = 0;
    for (size_t i = 0; i < plan->n_fragments; i++)
        plan->fragments[i].is_new = true;
    for (size_t i = 0; i < ours->n_fragments; i++)
        count_ours(plan, ours->fragments[i], lfs_plan_find(plan, ours->fragments[i]->id));
    for (size_t i = 0; i < plan->n_fragments; i++) {
        const struct lfs_plan_fragment *f = &plan->fragments[i];
        plan->fragments_added += f->is_new;
        plan->rows_added += f->is_new ? live(f->record->physical_rows, f->n_deleted) : 0;
    }
    plan->fragments_changed = plan->fragments_added + plan->fragments_removed + plan->fragments_changed_count > 0;
    return 0;
}

void lfs_plan_release(struct lfs_plan *plan) {
    for (size_t i = 0; i < plan->n_fragments; i++)
        if (plan->fragments[i].deleted)
            roaring_bitmap_free(plan->fragments[i].deleted);
    plan->n_fragments = 0;
}
