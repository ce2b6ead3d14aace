/* SPDX-License-Identifier: Apache-2.0 */
/* Names in MNT/tables, by which LanceDB opens branches as tables of a database. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "fuse/tree.h"

#define PLAIN_SLASH "%2F"
#define LANCEDB_SLASH ".." /* in no branch's name */

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct lfs_table *)a)->name, ((const struct lfs_table *)b)->name);
}

static bool add(struct lfs_tree *tree, const struct lfs_shown_branch *shown, const char *slash) {
    const char *branch = shown->branch->name;
    char *name = lfs_alloc(tree->arena, strlen(branch) * strlen(slash) + sizeof ".lance"), *p = name;
    if (!name)
        return false;
    for (; *branch; branch++)
        p = *branch == '/' ? stpcpy(p, slash) : (*p = *branch, p + 1);
    p = stpcpy(p, ".lance");
    if (p - name <= NAME_MAX)
        tree->tables[tree->n_tables++] = (struct lfs_table){name, shown};
    return true;
}

/* "a/.b" and "a./b" would be one name: nobody could say whose, so it is neither's. */
static void drop_shared(struct lfs_tree *tree) {
    size_t kept = 0;
    for (size_t i = 0, next; i < tree->n_tables; i = next) {
        for (next = i + 1; next < tree->n_tables && by_name(&tree->tables[i], &tree->tables[next]) == 0;)
            next++;
        if (next == i + 1)
            tree->tables[kept++] = tree->tables[i];
    }
    tree->n_tables = kept;
}

bool lfs_tree_name_tables(struct lfs_tree *tree) {
    tree->tables = LFS_NEW_ARRAY(tree->arena, struct lfs_table, tree->count * 2 + 1);
    if (!tree->tables)
        return false;
    for (size_t i = 0; i < tree->count; i++) {
        const struct lfs_shown_branch *shown = &tree->list[i];
        if (!add(tree, shown, PLAIN_SLASH) || (strchr(shown->branch->name, '/') && !add(tree, shown, LANCEDB_SLASH)))
            return false;
    }
    qsort(tree->tables, tree->n_tables, sizeof *tree->tables, by_name);
    drop_shared(tree);
    return true;
}

const struct lfs_shown_branch *lfs_tree_table(const struct lfs_tree *tree, const char *name) {
    struct lfs_table key = {.name = name},
                     *found = bsearch(&key, tree->tables, tree->n_tables, sizeof *tree->tables, by_name);
    return found ? found->shown : NULL;
}
