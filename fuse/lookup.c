/* SPDX-License-Identifier: Apache-2.0 */
/* Names to nodes, by the kind of the directory that they are looked up in. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "format/names.h"
#include "fuse/conflicts.h"
#include "fuse/images.h"
#include "fuse/mount.h"
#include "fuse/previews.h"
#include "fuse/staged.h"
#include "fuse/standing.h"
#include "fuse/tag_refs.h"
#include "fuse/texts.h"
#include "util/cleanup.h"

#define HINT_NAME "latest_version_hint.json"

struct lookup {
    struct lfs_mount *m;
    struct lfs_node *parent;
    const char *name;
    bool known_only;
    struct lfs_arena *arena;
    struct lfs_node *node; /* what was found, with one lookup counted */
    double entry_timeout;  /* seconds */
};

static errint_t settle(struct lookup *l, struct lfs_node_spec *spec, double entry_timeout) {
    spec->parent = l->parent;
    spec->name = l->name;
    l->entry_timeout = entry_timeout;
    l->node = lfs_nodes_look_up(l->m->nodes, spec);
    return l->node ? 0 : -ENOMEM;
}

static errint_t control_file(struct lookup *l) {
    struct lfs_node_spec spec = {.kind = LFS_NODE_CONTROL, .text = l->name};
    return settle(l, &spec, LFS_IMMUTABLE_TIMEOUT);
}

/* A text by its path below `place`, or a directory that leads to some; -ENOENT when it is neither. */
static errint_t text(struct lookup *l, const struct lfs_node *place, const char *what) {
    struct lfs_text *made;
    struct stat st = {.st_uid = l->m->uid, .st_gid = l->m->gid};
    struct lfs_node_spec directory = {.kind = LFS_NODE_TEXTS, .text = what};
    enum lfs_text_is is = lfs_text_is(l->m, place, what);
    if (is != LFS_TEXT_FILE)
        return is == LFS_TEXT_DIRECTORY ? settle(l, &directory, 0) : -ENOENT;
    if (lfs_text_is_slow(place, what)) {
        struct lfs_node_spec slow = {.kind = LFS_NODE_TEXT, .text = what};
        return settle(l, &slow, LFS_IMMUTABLE_TIMEOUT);
    }
    LFS_TRY(lfs_text_get(l->m, place, what, l->known_only, &made));
    errint_t result = lfs_text_attributes(l->m, place, made, &st);
    struct lfs_node_spec spec = {.kind = LFS_NODE_TEXT,
                                 .text = what,
                                 .st = &st,
                                 .token = made->token,
                                 .shares_ino = lfs_text_is_volatile(place, what)};
    if (result == 0)
        result = settle(l, &spec, 0);
    lfs_text_release(made);
    return result;
}

/* Below .conflicts there is a file that is written to, and data sets, beside texts. */
static errint_t in_conflicts(struct lookup *l, const char *what) {
    struct lfs_conflicts_at at = lfs_conflicts_at(l->m, l->parent->branch, what);
    struct lfs_node_spec choice = {.kind = LFS_NODE_CONTROL, .text = what};
    l->entry_timeout = 0;
    switch (lfs_conflicts_look(&at, &choice.token)) {
    case LFS_CONFLICTS_CHOICE: return settle(l, &choice, 0);
    case LFS_CONFLICTS_ROWS: return lfs_image_node(l->m, l->parent, l->name, what, l->known_only, &l->node);
    default: return text(l, l->parent->branch, what);
    }
}

/* Others may write to it, rename and remove it: nothing of it is remembered. */
static errint_t staged(struct lookup *l) {
    l->entry_timeout = 0;
    return lfs_staged_look_up(l->m, l->parent, l->name, &l->node);
}

static errint_t in_texts(struct lookup *l) {
    char *what = lfs_sprintf(l->arena, "%s/%s", l->parent->text, l->name);
    if (!what)
        return -ENOMEM;
    if (lfs_is_tag_refs(l->parent) && !lfs_is_tag_ref_name(l->name))
        return staged(l);
    return lfs_is_conflicts_path(what) ? in_conflicts(l, what) : text(l, l->parent->branch, what);
}

/* .preview/<source> of a branch, or a directory that leads to one whose name holds a '/'. */
static errint_t in_previews(struct lookup *l) {
    char *what = lfs_sprintf(l->arena, "%s/%s", l->parent->text, l->name);
    if (!what)
        return -ENOMEM;
    if (lfs_is_preview_answer(what))
        return text(l, l->parent->branch, what);
    l->entry_timeout = 0;
    errint_t result = lfs_image_node(l->m, l->parent, l->name, what, l->known_only, &l->node);
    struct lfs_node_spec directory = {.kind = LFS_NODE_PREVIEWS, .text = what};
    if (result == -ENOENT && lfs_preview_is_directory(l->m, l->parent->branch, what))
        return settle(l, &directory, 0);
    return result;
}

/* The preview of a branch holds those of its sub-branches, as its directory holds them. */
static errint_t in_image(struct lookup *l) {
    errint_t result = lfs_image_look_up(l->m, l->parent, l->name, l->arena, &l->node, &l->entry_timeout);
    bool is_preview = l->parent->kind == LFS_NODE_IMAGE && lfs_is_preview(l->parent->text);
    return result == -ENOENT && is_preview ? in_previews(l) : result;
}

static errint_t in_root(struct lookup *l) {
    struct lfs_node_spec tree = {.kind = LFS_NODE_TREE, .text = ""}, tables = {.kind = LFS_NODE_TABLES},
                         tags = {.kind = LFS_NODE_TAGS};
    if (strcmp(l->name, "tree") == 0)
        return settle(l, &tree, LFS_IMMUTABLE_TIMEOUT);
    if (strcmp(l->name, "tables") == 0)
        return settle(l, &tables, LFS_IMMUTABLE_TIMEOUT);
    if (strcmp(l->name, "tags") == 0)
        return settle(l, &tags, LFS_IMMUTABLE_TIMEOUT);
    return lfs_is_control_name(l->name, false) ? control_file(l) : text(l, l->parent, l->name);
}

/* --- MNT/tree and MNT/tables --- */

/* The node of a branch is the directory's too: a branch that was deleted and made again under its name is another. */
static errint_t branch_directory(struct lookup *l, const struct lfs_shown_branch *shown, bool encoded) {
    const struct lfs_branch *branch = shown->branch;
    struct lfs_node_spec spec = {
        .kind = LFS_NODE_BRANCH,
        .text = branch->name,
        .dir = branch->dir,
        .shown = encoded ? NULL : shown->prefix,
    };
    LFS_TRY(lfs_branch_identity(l->m, branch, &spec.token, &spec.salt));
    return settle(l, &spec, LFS_IMMUTABLE_TIMEOUT); /* see standing.h */
}

/* `prefix` is the directory's path below tree/; "" for tree/ itself. */
static errint_t in_tree(struct lookup *l, const char *prefix) {
    struct lfs_tree *tree;
    bool encoded;
    char *path = lfs_join(l->arena, prefix, l->name);
    if (!path)
        return -ENOMEM;
    LFS_TRY(lfs_tree_get(l->m->trees, &tree, NULL));
    const struct lfs_shown_branch *shown = lfs_tree_at(tree, path, &encoded);
    struct lfs_node_spec spec = {.kind = LFS_NODE_TREE, .text = path};
    errint_t result = -ENOENT;
    if (shown)
        result = branch_directory(l, shown, encoded);
    else if (lfs_tree_leads_on(tree, path))
        result = settle(l, &spec, l->m->options->entry_timeout);
    lfs_tree_put(l->m->trees, tree);
    return result;
}

static errint_t in_tables(struct lookup *l) {
    struct lfs_tree *tree;
    LFS_TRY(lfs_tree_get(l->m->trees, &tree, NULL));
    const struct lfs_shown_branch *shown = lfs_tree_table(tree, l->name);
    char *target = shown ? lfs_sprintf(l->arena, "../tree/%s", shown->path) : NULL;
    lfs_tree_put(l->m->trees, tree);
    if (!shown || !target)
        return shown ? -ENOMEM : -ENOENT;
    struct lfs_node_spec spec = {.kind = LFS_NODE_TABLE, .text = target, .token = lfs_hash(target, strlen(target), 0)};
    return settle(l, &spec, lfs_table_timeout(l->m, l->name));
}

/* A tag leads to the version that it names, where its branch is shown; nowhere when that is gone. */
static errint_t in_tags(struct lookup *l) {
    struct lfs_tag tag;
    struct lfs_tree *tree;
    LFS_TRY(lfs_dataset_tag(l->m->dataset, l->arena, l->name, &tag, NULL));
    LFS_TRY(lfs_tree_get(l->m->trees, &tree, NULL));
    const struct lfs_shown_branch *shown = lfs_tree_branch(tree, tag.branch);
    char *target = lfs_sprintf(l->arena, "../tree/%s/.versions/%llu", shown ? shown->path : tag.branch,
                               (unsigned long long)tag.version);
    lfs_tree_put(l->m->trees, tree);
    if (!target)
        return -ENOMEM;
    struct lfs_node_spec spec = {.kind = LFS_NODE_TAG, .text = target, .token = lfs_hash(target, strlen(target), 0)};
    return settle(l, &spec, l->m->options->entry_timeout);
}

/* --- in a branch --- */

/* .versions/<n> of a branch: the manifest tells it from another that had its number. */
static errint_t in_history(struct lookup *l) {
    struct lfs_version *version;
    const struct lfs_node *branch = l->parent->branch;
    uint64_t number = strtoull(l->name, NULL, 10);
    char *canonical = lfs_sprintf(l->arena, "%llu", (unsigned long long)number);
    if (!canonical || !number || strcmp(canonical, l->name) != 0)
        return canonical ? -ENOENT : -ENOMEM;
    errint_t result = lfs_dataset_version(l->m->dataset, branch->dir, number, &version, NULL);
    if (result < 0)
        return result;
    struct lfs_node_spec spec = {.kind = LFS_NODE_BRANCH,
                                 .text = branch->text,
                                 .dir = branch->dir,
                                 .version = number,
                                 .token = lfs_hash(&version->ino, sizeof version->ino, number)};
    lfs_version_release(version);
    return settle(l, &spec, l->m->options->entry_timeout);
}

bool lfs_shows_file(struct lfs_mount *m, const struct lfs_node *directory, const char *name) {
    struct lfs_version *version;
    const struct lfs_node *branch = directory->branch;
    if (lfs_dataset_version(m->dataset, branch->dir, branch->version, &version, NULL) < 0)
        return false;
    const char *transaction = version->manifest.message->transaction_file;
    bool shown = directory->kind == LFS_NODE_VERSIONS ? strcmp(name, version->file_name) == 0
                                                      : transaction && strcmp(name, transaction) == 0;
    lfs_version_release(version);
    return shown;
}

static errint_t in_branch(struct lookup *l) {
    static const struct {
        const char *name;
        enum lfs_node_kind kind;
        enum lfs_file_kind file_kind;
    } layout[] = {
        {"data", LFS_NODE_FILES, LFS_FILE_DATA},      {"_deletions", LFS_NODE_FILES, LFS_FILE_DELETION},
        {"_indices", LFS_NODE_FILES, LFS_FILE_INDEX}, {"_versions", LFS_NODE_VERSIONS, 0},
        {"_transactions", LFS_NODE_TRANSACTIONS, 0},
    };
    for (size_t i = 0; i < sizeof layout / sizeof *layout; i++)
        if (strcmp(l->name, layout[i].name) == 0) {
            struct lfs_node_spec spec = {.kind = layout[i].kind, .file_kind = layout[i].file_kind, .text = ""};
            bool files = layout[i].kind == LFS_NODE_FILES; /* what they hold is remembered, and belongs to no branch */
            return settle(l, &spec, files ? lfs_inner_timeout(l->parent) : LFS_IMMUTABLE_TIMEOUT);
        }
    if (l->parent->version)
        return -ENOENT;
    if (lfs_is_control_name(l->name, true))
        return control_file(l);
    if (strcmp(l->name, ".versions") == 0) {
        struct lfs_node_spec history = {.kind = LFS_NODE_HISTORY};
        return settle(l, &history, LFS_IMMUTABLE_TIMEOUT);
    }
    if (strcmp(l->name, LFS_PREVIEW_DIR) == 0) {
        struct lfs_node_spec previews = {.kind = LFS_NODE_PREVIEWS, .text = LFS_PREVIEW_DIR};
        return settle(l, &previews, LFS_IMMUTABLE_TIMEOUT);
    }
    errint_t result = text(l, l->parent, l->name);
    if (result != -ENOENT || !l->parent->shown || lfs_is_taken_name(l->name))
        return result;
    return in_tree(l, l->parent->shown);
}

static errint_t in_files(struct lookup *l) {
    struct lfs_view_entry entry;
    struct lfs_node *parent = l->parent;
    char *path = lfs_join(l->arena, parent->text, l->name);
    if (!path)
        return -ENOMEM;
    if (l->name[0] == '.')
        return parent->branch->version ? -ENOENT : staged(l); /* no version has it: nowhere else need be looked */
    LFS_TRY(lfs_views_find(l->m->views, parent->branch->dir, parent->file_kind, path, l->arena, &entry, NULL));
    struct lfs_node_spec spec = {.kind = LFS_NODE_FILES, .file_kind = parent->file_kind, .text = path};
    if (entry.is_dir)
        return settle(l, &spec, LFS_IMMUTABLE_TIMEOUT);
    if (entry.reached && entry.location.inside && lfs_is_staged(l->m, l->name, &entry.st))
        return staged(l);
    if (entry.reached) {
        l->entry_timeout = LFS_IMMUTABLE_TIMEOUT;
        l->node = lfs_nodes_look_up_file(l->m->nodes, &entry.st, &entry.location);
        return l->node ? 0 : -ENOMEM;
    }
    struct stat st = {.st_size = (off_t)(entry.size > INT64_MAX ? INT64_MAX : entry.size)};
    spec.kind = LFS_NODE_UNREACHED;
    spec.st = &st;
    spec.cause = entry.cause;
    spec.token = entry.size;
    return settle(l, &spec, 0);
}

static errint_t rendered(struct lookup *l, enum lfs_rendered_kind kind) {
    struct lfs_rendered_info info;
    const char *dir = l->parent->branch->dir;
    if (l->known_only)
        LFS_TRY(lfs_views_stat_known(l->m->views, dir, kind, l->name, &info));
    else
        LFS_TRY(lfs_views_stat(l->m->views, dir, kind, l->name, &info, NULL));
    struct stat st = {0};
    lfs_rendered_attributes(&info, &st);
    struct lfs_node_spec spec = {
        .kind = LFS_NODE_RENDERED, .st = &st, .cause = info.cause, .token = lfs_file_token(&info.st)};
    return settle(l, &spec, info.cause ? 0 : lfs_inner_timeout(l->parent->branch));
}

static errint_t in_versions(struct lookup *l) {
    uint64_t version;
    enum lfs_naming naming;
    struct lfs_node_spec hint = {.kind = LFS_NODE_HINT};
    struct stat st;
    double timeout;
    if (l->parent->branch->version && !lfs_shows_file(l->m, l->parent, l->name))
        return -ENOENT;
    if (lfs_manifest_name_parse(l->name, &version, &naming))
        return rendered(l, LFS_RENDER_MANIFEST);
    if (strcmp(l->name, HINT_NAME) != 0)
        return staged(l);
    struct lfs_node probe = {.kind = LFS_NODE_HINT, .name = l->name, .branch = l->parent->branch};
    LFS_TRY(lfs_attributes(l->m, &probe, &st, &timeout));
    return settle(l, &hint, l->m->options->entry_timeout);
}

static errint_t in_transactions(struct lookup *l) {
    size_t length = strlen(l->name);
    if (length <= 4 || strcmp(l->name + length - 4, ".txn") != 0)
        return staged(l);
    if (l->parent->branch->version && !lfs_shows_file(l->m, l->parent, l->name))
        return -ENOENT;
    return rendered(l, LFS_RENDER_TRANSACTION);
}

static errint_t dispatch(struct lookup *l) {
    switch (l->parent->kind) {
    case LFS_NODE_ROOT: return in_root(l);
    case LFS_NODE_TREE: return in_tree(l, l->parent->text);
    case LFS_NODE_TABLES: return in_tables(l);
    case LFS_NODE_TAGS: return in_tags(l);
    case LFS_NODE_HISTORY: return in_history(l);
    case LFS_NODE_BRANCH: return in_branch(l);
    case LFS_NODE_TEXTS: return in_texts(l);
    case LFS_NODE_PREVIEWS: return in_previews(l);
    case LFS_NODE_IMAGE:
    case LFS_NODE_IMAGE_DIR: return in_image(l);
    case LFS_NODE_FILES: return in_files(l);
    case LFS_NODE_VERSIONS: return in_versions(l);
    case LFS_NODE_TRANSACTIONS: return in_transactions(l);
    default: return -ENOTDIR;
    }
}

errint_t lfs_look_up(struct lfs_mount *m, struct lfs_node *parent, const char *name, bool known_only,
                     struct fuse_entry_param *out) {
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    struct lookup l = {.m = m, .parent = parent, .name = name, .known_only = known_only, .arena = arena};
    *out = (struct fuse_entry_param){0};
    if (!arena)
        return -ENOMEM;
    if (strlen(name) > NAME_MAX)
        return -ENAMETOOLONG;
    LFS_TRY(dispatch(&l));
    out->ino = l.node->id;
    out->generation = 1;
    out->entry_timeout = l.entry_timeout;
    errint_t result = lfs_attributes(m, l.node, &out->attr, &out->attr_timeout);
    if (result < 0) {
        lfs_nodes_forget(m->nodes, l.node->id, 1);
        out->ino = 0;
    }
    return result;
}
