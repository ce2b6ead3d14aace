/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extended attributes: where things are (interface.md section 2). Values are made when they are asked for.
 *
 * One file that several branches use is one node, so what a branch alone could tell of it (its fragment) is told for all
 * tips that use it: one value where they agree, else "main:0 feature:6".
 */
#include <inttypes.h>
#include <string.h>

#include "fuse/mount.h"
#include "util/cleanup.h"

#define PREFIX "user.lancefs."

struct ask {
    struct lfs_mount *m;
    const struct lfs_node *node;
    struct lfs_arena *arena;
    struct lfs_buf *out;
};

static errint_t put(struct ask *a, const char *value) {
    if (!value)
        return -ENOMEM;
    lfs_buf_puts(a->out, value);
    return 0;
}

/* A place below the data set's root, as the path that the data set was opened by has it. */
static errint_t put_inside(struct ask *a, const char *dir, const char *name) {
    return put(a, lfs_sprintf(a->arena, "%s%s%s%s%s", lfs_dataset_path(a->m->dataset), *dir ? "/" : "", dir,
                              *name ? "/" : "", name));
}

/* --- files --- */

static errint_t file_source(struct ask *a) {
    struct lfs_location at;
    const struct lfs_node *node = a->node;
    if (node->kind != LFS_NODE_FILE) {
        char *dir =
            lfs_join(a->arena, node->branch->dir, node->parent->name);
        return dir ? put_inside(a, dir, node->name) : -ENOMEM;
    }
    if (!lfs_nodes_location(a->m->nodes, node, a->arena, &at))
        return -ENOMEM;
    return at.inside ? put_inside(a, at.directory, at.name)
                     : put(a, lfs_sprintf(a->arena, "%s/%s", at.directory, at.name));
}

/* The directory that is shaped like a data set, or the plain one, which the file lies in. */
static errint_t file_base(struct ask *a) {
    struct lfs_location at;
    if (a->node->kind != LFS_NODE_FILE)
        return -ENODATA;
    if (!lfs_nodes_location(a->m->nodes, a->node, a->arena, &at))
        return -ENOMEM;
    const char *slash = strrchr(at.directory, '/'), *last = slash ? slash + 1 : at.directory;
    char *base = lfs_strdup(a->arena, at.directory);
    for (size_t i = 0; base && i < LFS_FILE_KINDS; i++)
        if (strcmp(last, lfs_kind_directory[i]) == 0)
            base[slash ? slash - at.directory : 0] = '\0';
    return !base ? -ENOMEM : at.inside ? put_inside(a, base, "") : put(a, base);
}

/* Is that record, in that version, this node's file? A name can stand for other files in other bases. */
static bool is_this_file(struct ask *a, const struct lfs_version *v, const LanceDataFile *f) {
    struct lfs_location at;
    struct stat st;
    int64_t base = f->has_base_id ? (int64_t)f->base_id : LFS_NO_BASE;
    return lfs_locate(v, LFS_FILE_DATA, base, f->path, a->arena, &at, NULL) == 0 &&
           lfs_location_stat(a->m->dataset, &at, &st, NULL) == 0 && lfs_file_token(&st) == a->node->token;
}

static const LanceFragment *fragment_in(struct ask *a, const struct lfs_version *v, const char *name) {
    const LanceManifest *m = v->manifest.message;
    for (size_t i = 0; i < m->n_fragments; i++)
        for (size_t k = 0; k < m->fragments[i]->n_files; k++) {
            const LanceDataFile *f = m->fragments[i]->files[k];
            if (f->path && strcmp(f->path, name) == 0 && is_this_file(a, v, f))
                return m->fragments[i];
        }
    return NULL;
}

/* Calls `each` for each tip that has the file in a fragment. */
static errint_t each_fragment(struct ask *a,
                              errint_t (*each)(struct ask *a, const char *branch, const LanceFragment *f)) {
    struct lfs_location at;
    struct lfs_tree *tree;
    errint_t result = 0;
    if (a->node->kind != LFS_NODE_FILE)
        return -ENODATA;
    if (!lfs_nodes_location(a->m->nodes, a->node, a->arena, &at))
        return -ENOMEM;
    LFS_TRY(lfs_tree_get(a->m->trees, &tree, NULL));
    for (size_t i = 0; result >= 0 && i < tree->count; i++) {
        const struct lfs_branch *branch = tree->list[i].branch;
        struct lfs_view_tip tip;
        struct lfs_version *version;
        if (lfs_views_tip(a->m->views, branch->dir, &tip, NULL) < 0 ||
            lfs_dataset_version(a->m->dataset, branch->dir, tip.number, &version, NULL) < 0)
            continue;
        const LanceFragment *f = fragment_in(a, version, at.name);
        if (f)
            result = each(a, branch->name, f);
        lfs_version_release(version);
    }
    lfs_tree_put(a->m->trees, tree);
    return result < 0 ? result : a->out->length ? 0 : -ENODATA;
}

static errint_t add_fragment(struct ask *a, const char *branch, const LanceFragment *f) {
    lfs_buf_printf(a->out, "%s%s:%" PRIu64, a->out->length ? " " : "", branch, f->id);
    return 0;
}

/* "main:0 feature:0" says nothing that "0" does not. */
static errint_t file_fragment(struct ask *a) {
    LFS_TRY(each_fragment(a, add_fragment));
    lfs_buf_add(a->out, "", 1);
    if (a->out->failed)
        return -ENOMEM;
    char *text = lfs_strdup(a->arena, (const char *)a->out->data), *save, *id = NULL;
    if (!text)
        return -ENOMEM;
    a->out->length--;
    bool agree = true;
    for (char *word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        char *own = strrchr(word, ':') + 1;
        agree &= !id || strcmp(id, own) == 0;
        id = own;
    }
    if (agree) {
        lfs_buf_clear(a->out);
        lfs_buf_puts(a->out, id);
    }
    return 0;
}

/* Rows that the file holds, deleted ones too: the same wherever it is used. */
static errint_t set_rows(struct ask *a, const char *branch, const LanceFragment *f) {
    (void)branch;
    lfs_buf_clear(a->out);
    lfs_buf_printf(a->out, "%" PRIu64, f->physical_rows);
    return 0;
}

static errint_t file_rows(struct ask *a) { return each_fragment(a, set_rows); }

/* --- branches --- */

static errint_t branch_version(struct ask *a) {
    struct lfs_view_tip tip = {.number = a->node->version};
    if (!tip.number)
        LFS_TRY(lfs_views_tip(a->m->views, a->node->dir, &tip, NULL));
    lfs_buf_printf(a->out, "%" PRIu64, tip.number);
    return 0;
}

static errint_t read_branch(struct ask *a, struct lfs_branch *out) {
    return lfs_dataset_branch(a->m->dataset, a->arena, a->node->text, out, NULL);
}

static errint_t branch_parent(struct ask *a) {
    struct lfs_branch b;
    LFS_TRY(read_branch(a, &b));
    return b.parent_name ? put(a, lfs_sprintf(a->arena, "%s@%" PRIu64, b.parent_name, b.parent_version)) : -ENODATA;
}

static errint_t branch_uuid(struct ask *a) {
    struct lfs_branch b;
    LFS_TRY(read_branch(a, &b));
    return *b.uuid ? put(a, b.uuid) : -ENODATA;
}

static errint_t branch_storage(struct ask *a) { return put_inside(a, a->node->dir, ""); }

/* --- the table --- */

static const struct attribute {
    const char *name; /* behind the prefix */
    bool of_branch;
    errint_t (*value)(struct ask *a); /* -ENODATA: this thing has none */
} attributes[] = {
    {"source", false, file_source}, {"base", false, file_base},        {"fragment", false, file_fragment},
    {"rows", false, file_rows},     {"version", true, branch_version}, {"parent", true, branch_parent},
    {"uuid", true, branch_uuid},    {"storage", true, branch_storage},
};
enum { ATTRIBUTES = sizeof attributes / sizeof *attributes };

static bool can_have(const struct lfs_node *node, const struct attribute *attribute) {
    if (attribute->of_branch)
        return node->kind == LFS_NODE_BRANCH;
    return node->kind == LFS_NODE_FILE || node->kind == LFS_NODE_RENDERED || node->kind == LFS_NODE_HINT;
}

errint_t lfs_xattr_get(struct lfs_mount *m, const struct lfs_node *node, const char *name, struct lfs_buf *out) {
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    struct ask a = {m, node, arena, out};
    if (strncmp(name, PREFIX, strlen(PREFIX)) != 0)
        return -ENODATA;
    for (size_t i = 0; arena && i < ATTRIBUTES; i++)
        if (strcmp(name + strlen(PREFIX), attributes[i].name) == 0 && can_have(node, &attributes[i])) {
            errint_t result = attributes[i].value(&a);
            return out->failed ? -ENOMEM : result;
        }
    return arena ? -ENODATA : -ENOMEM;
}

errint_t lfs_xattr_list(struct lfs_mount *m, const struct lfs_node *node, struct lfs_buf *out) {
    for (size_t i = 0; i < ATTRIBUTES; i++) {
        LFS_AUTO_BUF value = {0};
        LFS_AUTO_ARENA *arena = lfs_arena_new();
        struct ask a = {m, node, arena, &value};
        if (!arena)
            return -ENOMEM;
        if (!can_have(node, &attributes[i]) || attributes[i].value(&a) < 0)
            continue;
        lfs_buf_puts(out, PREFIX);
        lfs_buf_add(out, attributes[i].name, strlen(attributes[i].name) + 1);
    }
    return out->failed ? -ENOMEM : 0;
}
