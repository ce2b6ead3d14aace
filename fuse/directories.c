/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listings. What a directory holds is looked at when its stream is read from the start, and stays so for that stream:
 * an offset is a place in that list, so names that come or go meanwhile neither hide nor repeat others.
 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "format/names.h"
#include "fuse/conflicts.h"
#include "fuse/handles.h"
#include "fuse/images.h"
#include "fuse/tag_refs.h"
#include "fuse/texts.h"
#include "report/report.h"
#include "util/cleanup.h"
#include "util/map.h"

struct item {
    const char *name;
    uint64_t ino;
    mode_t type; /* S_IFDIR, S_IFREG, S_IFLNK */
};

/* An open directory. */
struct stream {
    struct lfs_opened opened;
    struct lfs_node *node;   /* held */
    pthread_mutex_t lock;    /* guards the list; the kernel may read one stream from two threads */
    struct lfs_arena *arena; /* owns the list; NULL until it is read */
    struct item *items;      /* "." and ".." first, the rest by name */
    size_t count;
};

/* --- what a directory holds --- */

struct listing {
    struct lfs_mount *m;
    struct lfs_node *node;
    struct lfs_arena *arena;
    struct item *items;
    size_t count, capacity;
};

static errint_t add(struct listing *l, const char *name, uint64_t ino, mode_t type) {
    if (l->count == l->capacity) {
        size_t capacity = l->capacity ? l->capacity * 2 : 32;
        struct item *grown = LFS_NEW_ARRAY(l->arena, struct item, capacity);
        if (!grown)
            return -ENOMEM;
        if (l->count)
            memcpy(grown, l->items, l->count * sizeof *grown);
        l->items = grown;
        l->capacity = capacity;
    }
    l->items[l->count++] = (struct item){name, ino, type};
    return 0;
}

static errint_t add_virtual(struct listing *l, const char *name, uint64_t salt, mode_t type) {
    return add(l, name, lfs_virtual_ino(l->node->st_ino, name, salt), type);
}

/* Branches that are shown below `prefix`, and the directories that lead to them. */
static errint_t add_branches(struct listing *l, const struct lfs_tree *tree, const char *prefix) {
    struct lfs_map seen;
    size_t length = strlen(prefix);
    bool encoded;
    lfs_map_init(&seen, l->arena);
    for (size_t i = 0; i < tree->count; i++) {
        const char *rest = tree->list[i].path;
        if (length && (!tree->list[i].prefix || strncmp(rest, prefix, length) != 0 || rest[length] != '/'))
            continue;
        rest += length ? length + 1 : 0;
        char *name = lfs_strndup(l->arena, rest, strcspn(rest, "/"));
        char *path = name ? lfs_join(l->arena, prefix, name) : NULL;
        if (!path)
            return -ENOMEM;
        if (lfs_map_get(&seen, name))
            continue;
        if (!lfs_map_put(&seen, name, name))
            return -ENOMEM;
        const struct lfs_shown_branch *shown = lfs_tree_at(tree, path, &encoded);
        uint64_t salt = shown ? lfs_hash(shown->branch->uuid, strlen(shown->branch->uuid), 0) : 0;
        LFS_TRY(add_virtual(l, name, salt, S_IFDIR));
    }
    return 0;
}

static errint_t add_files(struct listing *l, const char *const *files) {
    for (size_t i = 0; files[i]; i++)
        LFS_TRY(add_virtual(l, files[i], 0, S_IFREG));
    return 0;
}

static errint_t list_tables(struct listing *l, const struct lfs_tree *tree) {
    for (size_t i = 0; i < tree->n_tables; i++) {
        char *name = lfs_strdup(l->arena, tree->tables[i].name);
        if (!name)
            return -ENOMEM;
        LFS_TRY(add_virtual(l, name, 0, S_IFLNK));
    }
    return 0;
}

static errint_t with_tree(struct listing *l, const char *prefix) {
    struct lfs_tree *tree;
    LFS_TRY(lfs_tree_get(l->m->trees, &tree, NULL));
    errint_t result = l->node->kind == LFS_NODE_TABLES ? list_tables(l, tree) : add_branches(l, tree, prefix);
    lfs_tree_put(l->m->trees, tree);
    return result;
}

static errint_t list_tags(struct listing *l) {
    struct lfs_tag *tags;
    size_t n;
    LFS_TRY(lfs_dataset_tags(l->m->dataset, l->arena, &tags, &n, NULL, NULL));
    for (size_t i = 0; i < n; i++)
        LFS_TRY(add_virtual(l, tags[i].name, 0, S_IFLNK));
    return 0;
}

/* .versions of a branch: the numbers. */
static errint_t list_history(struct listing *l) {
    struct lfs_versions versions;
    LFS_TRY(lfs_dataset_versions(l->m->dataset, l->node->branch->dir, l->arena, &versions, NULL));
    for (size_t i = 0; i < versions.count; i++) {
        char *name = lfs_sprintf(l->arena, "%llu", (unsigned long long)versions.numbers[i]);
        LFS_TRY(name ? add_virtual(l, name, 0, S_IFDIR) : -ENOMEM);
    }
    return 0;
}

static errint_t list_root(struct listing *l) {
    LFS_TRY(add_virtual(l, "tree", 0, S_IFDIR));
    LFS_TRY(add_virtual(l, "tags", 0, S_IFDIR));
    LFS_TRY(add_virtual(l, "tables", 0, S_IFDIR));
    LFS_TRY(add_files(l, lfs_root_control_files));
    return add_files(l, lfs_text_names(l->node));
}

static errint_t list_branch(struct listing *l) {
    static const char *const layout[] = {"data", "_deletions", "_indices", "_transactions", "_versions"};
    for (size_t i = 0; i < sizeof layout / sizeof *layout; i++)
        LFS_TRY(add_virtual(l, layout[i], 0, S_IFDIR));
    if (l->node->version)
        return 0; /* one version is only read */
    LFS_TRY(add_files(l, lfs_branch_control_files));
    LFS_TRY(add_files(l, lfs_text_names(l->node)));
    LFS_TRY(add_virtual(l, LFS_REPORT_DIFF, 0, S_IFDIR));
    return l->node->shown ? with_tree(l, l->node->shown) : 0;
}

static errint_t add_entries(struct listing *l, const struct lfs_view_entry *entries, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const struct lfs_view_entry *e = &entries[i];
        if (e->reached && !e->is_dir)
            LFS_TRY(add(l, e->name, lfs_real_ino(l->m->nodes, &e->st), S_IFREG));
        else
            LFS_TRY(add_virtual(l, e->name, 0, e->is_dir ? S_IFDIR : S_IFREG));
    }
    return 0;
}

static errint_t list_image(struct listing *l) {
    struct lfs_view_entry *entries;
    size_t n;
    LFS_TRY(lfs_image_entries(l->m, l->node, l->arena, &entries, &n));
    return add_entries(l, entries, n);
}

static errint_t list_files(struct listing *l) {
    struct lfs_view_entry *entries;
    size_t n;
    const struct lfs_node *node = l->node;
    const struct lfs_node *branch = node->branch;
    LFS_TRY(branch->version ? lfs_views_list_version(l->m->views, branch->dir, branch->version, node->file_kind, node->text,
                                                     l->arena, &entries, &n, NULL)
                            : lfs_views_list(l->m->views, branch->dir, node->file_kind, node->text, l->arena, &entries, &n,
                                             NULL));
    return add_entries(l, entries, n);
}

/* .conflicts lists its conflicts, and each of those what is told of it; .diff nothing: a walk must not plan every merge. */
static errint_t list_conflicts(struct listing *l) {
    struct lfs_conflicts_at at = lfs_conflicts_at(l->m, l->node->branch, l->node->text);
    const char **names;
    size_t n, length = strlen(l->node->text);
    LFS_TRY(lfs_conflicts_list(&at, l->arena, &names, &n, NULL));
    for (size_t i = 0; i < n; i++) {
        bool is_dir = length == strlen(LFS_CONFLICTS) || strstr(names[i], ".lance");
        LFS_TRY(add_virtual(l, names[i], 0, is_dir ? S_IFDIR : S_IFREG));
    }
    return 0;
}

static bool is_shown_file(struct lfs_mount *m, const struct lfs_node *node, const char *name) {
    uint64_t version;
    enum lfs_naming naming;
    size_t length = strlen(name);
    if (node->branch->version)
        return lfs_shows_file(m, node, name);
    if (node->kind == LFS_NODE_TRANSACTIONS)
        return length > 4 && strcmp(name + length - 4, ".txn") == 0;
    return lfs_manifest_name_parse(name, &version, &naming) || strcmp(name, "latest_version_hint.json") == 0;
}

/* _versions and _transactions: what the storage holds, by name. */
static errint_t list_stored(struct listing *l) {
    const char *dir = l->node->branch->dir;
    char *path = lfs_join(l->arena, dir, l->node->name);
    int fd = path ? lfs_dataset_open_beneath(l->m->dataset, path, O_RDONLY | O_DIRECTORY) : -ENOMEM;
    if (fd < 0)
        return fd == -ENOENT || fd == -ENOTDIR ? 0 : fd;
    DIR *list = fdopendir(fd);
    if (!list) {
        close(fd);
        return -ENOMEM;
    }
    errint_t result = 0;
    for (struct dirent *e; result == 0 && (e = readdir(list));) {
        char *name = is_shown_file(l->m, l->node, e->d_name) ? lfs_strdup(l->arena, e->d_name) : NULL;
        if (name)
            result = add_virtual(l, name, 0, S_IFREG);
    }
    closedir(list);
    return result;
}

/* Texts are looked up by name: a walk over the tree must not plan every merge. */
/* _refs of a branch; a .diff lists nothing. */
static errint_t list_refs(struct listing *l) {
    char **names;
    size_t n;
    if (strcmp(l->node->text, "_refs") == 0)
        return add_virtual(l, "tags", 0, S_IFDIR);
    if (!lfs_is_tag_refs(l->node))
        return 0;
    LFS_TRY(lfs_tag_refs_list(l->m, l->node, l->arena, &names, &n));
    for (size_t i = 0; i < n; i++)
        LFS_TRY(add_virtual(l, names[i], 0, S_IFREG));
    return 0;
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct item *)a)->name, ((const struct item *)b)->name);
}

static errint_t list(struct listing *l) {
    const struct lfs_node *parent = l->node->parent ? l->node->parent : l->node;
    LFS_TRY(add(l, ".", l->node->st_ino, S_IFDIR));
    LFS_TRY(add(l, "..", parent->st_ino, S_IFDIR));
    errint_t result = -ENOTDIR;
    switch (l->node->kind) {
    case LFS_NODE_ROOT: result = list_root(l); break;
    case LFS_NODE_TREE: result = with_tree(l, l->node->text); break;
    case LFS_NODE_TABLES: result = with_tree(l, ""); break;
    case LFS_NODE_TAGS: result = list_tags(l); break;
    case LFS_NODE_HISTORY: result = list_history(l); break;
    case LFS_NODE_BRANCH: result = list_branch(l); break;
    case LFS_NODE_FILES: result = list_files(l); break;
    case LFS_NODE_VERSIONS:
    case LFS_NODE_TRANSACTIONS: result = list_stored(l); break;
    case LFS_NODE_IMAGE:
    case LFS_NODE_IMAGE_DIR: result = list_image(l); break;
    case LFS_NODE_TEXTS: result = lfs_is_conflicts_path(l->node->text) ? list_conflicts(l) : list_refs(l); break;
    case LFS_NODE_PREVIEWS: result = 0; break; /* looked up by name: a walk over the tree must not plan every merge */
    default: break;
    }
    LFS_TRY(result);
    qsort(l->items + 2, l->count - 2, sizeof *l->items, by_name);
    return 0;
}

/* Look again when the stream is at its start, as rewinddir(3) has it. With the stream's lock held. */
static errint_t refresh(struct lfs_mount *m, struct stream *s, off_t off) {
    if (off != 0 && s->arena)
        return 0;
    struct listing l = {.m = m, .node = s->node, .arena = lfs_arena_new()};
    if (!l.arena)
        return -ENOMEM;
    errint_t result = list(&l);
    if (result < 0) {
        lfs_arena_free(l.arena);
        return result;
    }
    lfs_arena_free(s->arena);
    s->arena = l.arena;
    s->items = l.items;
    s->count = l.count;
    return 0;
}

/* --- replies --- */

struct reply {
    fuse_req_t req;
    struct lfs_mount *m;
    struct stream *stream;
    char *buffer;
    size_t size, used;
    uint64_t *looked_up; /* nodes whose lookup is undone when the reply does not arrive */
    size_t n_looked_up;
};

static bool put_plain(struct reply *r, const struct item *item, off_t next) {
    struct stat st = {.st_ino = item->ino, .st_mode = item->type};
    size_t n = fuse_add_direntry(r->req, r->buffer + r->used, r->size - r->used, item->name, &st, next);
    if (n > r->size - r->used)
        return false;
    r->used += n;
    return true;
}

/* An entry with what a lookup of it gives; without (node id 0: "ask if you want to know") where that is costly or fails. */
static bool put_plus(struct reply *r, const struct item *item, off_t next) {
    struct fuse_entry_param e = {0};
    size_t room = r->size - r->used;
    if (fuse_add_direntry_plus(r->req, NULL, 0, item->name, NULL, 0) > room)
        return false;
    bool dots = strcmp(item->name, ".") == 0 || strcmp(item->name, "..") == 0;
    if (dots || lfs_look_up(r->m, r->stream->node, item->name, true, &e) < 0) {
        e = (struct fuse_entry_param){0};
        e.attr.st_ino = item->ino;
        e.attr.st_mode = item->type;
    } else {
        r->looked_up[r->n_looked_up++] = e.ino;
    }
    r->used += fuse_add_direntry_plus(r->req, r->buffer + r->used, room, item->name, &e, next);
    return true;
}

static void read_stream(fuse_req_t req, size_t size, off_t off, struct fuse_file_info *fi, bool plus) {
    struct stream *s = (struct stream *)(uintptr_t)fi->fh;
    struct reply r = {.req = req, .m = lfs_mount_of(req), .stream = s, .size = size};
    LFS_AUTO_FREE char *buffer = r.buffer = malloc(size ? size : 1);
    LFS_AUTO_FREE uint64_t *looked_up = r.looked_up = plus ? calloc(size / 128 + 1, sizeof *looked_up) : NULL;
    if (!buffer || (plus && !looked_up)) {
        fuse_reply_err(req, ENOMEM);
        return;
    }
    pthread_mutex_lock(&s->lock);
    errint_t result = refresh(r.m, s, off);
    for (size_t i = off < 0 ? s->count : (size_t)off; result == 0 && i < s->count; i++)
        if (!(plus ? put_plus(&r, &s->items[i], (off_t)i + 1) : put_plain(&r, &s->items[i], (off_t)i + 1)))
            break;
    pthread_mutex_unlock(&s->lock);
    int sent = result < 0 ? fuse_reply_err(req, -result) : fuse_reply_buf(req, buffer, r.used);
    if (sent != 0)
        for (size_t i = 0; i < r.n_looked_up; i++)
            lfs_nodes_forget(r.m->nodes, r.looked_up[i], 1);
}

static void free_stream(struct lfs_mount *m, struct lfs_opened *opened) {
    struct stream *s = (struct stream *)opened;
    lfs_opens_remove(m->opens, opened);
    lfs_nodes_release(m->nodes, s->node);
    pthread_mutex_destroy(&s->lock);
    lfs_arena_free(s->arena);
    free(s);
}

/* What one version of a branch holds never changes: the kernel may keep such a listing. All other directories show what is
 * there now, and the kernel must ask for them. */
static bool is_lasting(const struct lfs_node *node) {
    return node->branch && node->branch->version &&
           (node->kind == LFS_NODE_FILES || node->kind == LFS_NODE_VERSIONS || node->kind == LFS_NODE_TRANSACTIONS);
}

/* Valid replies: open, err. */
void lfs_op_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi) {
    struct lfs_mount *m = lfs_mount_of(req);
    struct lfs_node *node = lfs_nodes_find(m->nodes, ino);
    struct stream *s = node ? calloc(1, sizeof *s) : NULL;
    if (!s) {
        fuse_reply_err(req, node ? ENOMEM : ESTALE);
        return;
    }
    s->opened.close = free_stream;
    s->node = node;
    pthread_mutex_init(&s->lock, NULL);
    lfs_nodes_hold(m->nodes, node);
    lfs_opens_add(m->opens, &s->opened);
    fi->fh = (uintptr_t)s;
    fi->cache_readdir = fi->keep_cache = is_lasting(node);
    if (fuse_reply_open(req, fi) == -ENOENT)
        free_stream(m, &s->opened);
}

/* Valid replies: buf, err. */
void lfs_op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi) {
    (void)ino;
    read_stream(req, size, off, fi, false);
}

/* Valid replies: buf, err. */
void lfs_op_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi) {
    (void)ino;
    read_stream(req, size, off, fi, true);
}

/* Valid replies: err. */
void lfs_op_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi) {
    struct stream *s = (struct stream *)(uintptr_t)fi->fh;
    (void)ino;
    free_stream(lfs_mount_of(req), &s->opened);
    fuse_reply_err(req, 0);
}
