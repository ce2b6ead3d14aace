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

void lfs_plan_release(struct lfs_plan *plan) {
    for (size_t i = 0; i < plan->n_fragments; i++)
        if (plan->fragments[i].deleted)
            roaring_bitmap_free(plan->fragments[i].deleted);
    plan->n_fragments = 0;
}
