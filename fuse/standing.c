/* SPDX-License-Identifier: Apache-2.0 */
#include "fuse/standing.h"

#include <fcntl.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/map.h"

errint_t lfs_branch_identity(struct lfs_mount *m, const struct lfs_branch *branch, uint64_t *token, uint64_t *salt) {
    struct stat st;
    LFS_AUTO_FD fd = lfs_dataset_open_beneath(m->dataset, branch->dir, O_PATH | O_DIRECTORY);
    if (fd < 0 || fstat(fd, &st) < 0)
        return -ENOENT;
    *salt = lfs_hash(branch->uuid, strlen(branch->uuid), 0);
    uint64_t place[3] = {(uint64_t)st.st_dev, st.st_ino, *salt};
    *token = lfs_hash(place, sizeof place, 0);
    return 0;
}

/* The node of the branch itself: a version of one lies in its .versions. */
static const struct lfs_node *whole_branch(const struct lfs_node *node) {
    const struct lfs_node *branch = node->branch;
    while (branch && branch->version)
        branch = branch->parent ? branch->parent->branch : NULL;
    return branch;
}

bool lfs_node_stands(struct lfs_mount *m, const struct lfs_node *node) {
    const struct lfs_node *branch = whole_branch(node);
    struct lfs_tree *tree;
    uint64_t token, salt;
    bool encoded;
    if (node->kind != LFS_NODE_TABLE && (!branch || !*branch->dir))
        return true;
    if (lfs_tree_get(m->trees, &tree, NULL) < 0)
        return true; /* nobody can tell: what is asked for fails by itself, or does not need to know */
    const struct lfs_shown_branch *shown = node->kind == LFS_NODE_TABLE
                                               ? lfs_tree_at(tree, node->text + strlen("../tree/"), &encoded)
                                               : lfs_tree_branch(tree, branch->text);
    bool stands = shown && (node->kind == LFS_NODE_TABLE ||
                            (lfs_branch_identity(m, shown->branch, &token, &salt) == 0 && token == branch->token));
    lfs_tree_put(m->trees, tree);
    return stands;
}

/* "..", and a percent sign, stand for the '/' of some branch: whose, another branch that is made may put in doubt. */
double lfs_table_timeout(struct lfs_mount *m, const char *name) {
    bool own = !strstr(name, "..") && !strchr(name, '%');
    return own ? LFS_IMMUTABLE_TIMEOUT : m->options->entry_timeout;
}

double lfs_inner_timeout(const struct lfs_node *branch) {
    return branch->version || !*branch->dir ? LFS_IMMUTABLE_TIMEOUT : 0;
}
