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

void lfs_plan_release(struct lfs_plan *plan) {
    for (size_t i = 0; i < plan->n_fragments; i++)
        if (plan->fragments[i].deleted)
            roaring_bitmap_free(plan->fragments[i].deleted);
    plan->n_fragments = 0;
}
