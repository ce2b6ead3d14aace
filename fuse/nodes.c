/* SPDX-License-Identifier: Apache-2.0 */
#include "fuse/nodes.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "util/map.h"

enum { FIRST_SIZE = 1024 };

#define VIRTUAL_BIT (UINT64_C(1) << 63) /* things without an inode number of their own */
#define FOREIGN_BIT (UINT64_C(1) << 62) /* files of other devices than the data set's */

struct lfs_nodes {
    pthread_mutex_t lock;
    dev_t root_dev;
    struct lfs_node root;
    struct lfs_node **by_id, **by_key, **by_ino;
    size_t size; /* of each of the three; a power of two */
    size_t count;
    uint64_t next_id, lookups;
};

uint64_t lfs_virtual_ino(uint64_t parent_ino, const char *name, uint64_t salt) {
    uint64_t place[2] = {parent_ino, salt};
    uint64_t h = lfs_hash(place, sizeof place, 1);
    return lfs_hash(name, strlen(name), h) | VIRTUAL_BIT;
}

uint64_t lfs_real_ino(const struct lfs_nodes *nodes, const struct stat *st) {
    if (st->st_dev == nodes->root_dev && st->st_ino > 1 && st->st_ino < FOREIGN_BIT)
        return st->st_ino;
    uint64_t identity[2] = {(uint64_t)st->st_dev, st->st_ino};
    return (lfs_hash(identity, sizeof identity, 2) & (FOREIGN_BIT - 1)) | FOREIGN_BIT;
}

uint64_t lfs_file_token(const struct stat *st) {
    uint64_t identity[5] = {(uint64_t)st->st_dev, st->st_ino, (uint64_t)st->st_size, (uint64_t)st->st_mtim.tv_sec,
                            (uint64_t)st->st_mtim.tv_nsec};
    return lfs_hash(identity, sizeof identity, 3);
}

/* --- the tables, with the lock held --- */

static size_t slot(const struct lfs_nodes *nodes, uint64_t hash) { return (hash ^ hash >> 32) & (nodes->size - 1); }

static size_t id_slot(const struct lfs_nodes *nodes, uint64_t id) { return id & (nodes->size - 1); }

static uint64_t key_of(enum lfs_node_kind kind, const struct lfs_node *parent, const char *name, uint64_t token) {
    uint64_t place[3] = {parent ? parent->id : 0, (uint64_t)kind, token};
    return lfs_hash(name, strlen(name), lfs_hash(place, sizeof place, 4));
}

static void insert(struct lfs_nodes *nodes, struct lfs_node *node) {
    size_t i = id_slot(nodes, node->id), k = slot(nodes, key_of(node->kind, node->parent, node->name, node->token)),
           n = slot(nodes, node->st_ino);
    node->next_by_id = nodes->by_id[i];
    nodes->by_id[i] = node;
    node->next_by_key = nodes->by_key[k];
    nodes->by_key[k] = node;
    node->next_by_ino = nodes->by_ino[n];
    nodes->by_ino[n] = node;
}

static struct lfs_node **zeroed_table(size_t size) { return calloc(size, sizeof(struct lfs_node *)); }

/* Growing is not needed for being right: without memory for it the chains only become longer. */
static void grow(struct lfs_nodes *nodes) {
    struct lfs_node **old = nodes->by_id;
    size_t old_size = nodes->size;
    struct lfs_node **id = zeroed_table(old_size * 2), **key = zeroed_table(old_size * 2),
                    **ino = zeroed_table(old_size * 2);
    if (!id || !key || !ino) {
        free(id);
        free(key);
        free(ino);
        return;
    }
    free(nodes->by_key);
    free(nodes->by_ino);
    nodes->by_id = id;
    nodes->by_key = key;
    nodes->by_ino = ino;
    nodes->size = old_size * 2;
    for (size_t i = 0; i < old_size; i++)
        for (struct lfs_node *node = old[i], *next; node; node = next) {
            next = node->next_by_id;
            insert(nodes, node);
        }
    free(old);
}

static void take_out(struct lfs_nodes *nodes, struct lfs_node *node) {
    struct lfs_node **at = &nodes->by_id[id_slot(nodes, node->id)];
    while (*at != node)
        at = &(*at)->next_by_id;
    *at = node->next_by_id;
    at = &nodes->by_key[slot(nodes, key_of(node->kind, node->parent, node->name, node->token))];
    while (*at != node)
        at = &(*at)->next_by_key;
    *at = node->next_by_key;
    at = &nodes->by_ino[slot(nodes, node->st_ino)];
    while (*at != node)
        at = &(*at)->next_by_ino;
    *at = node->next_by_ino;
    nodes->count--;
}

static struct lfs_node *find_id(struct lfs_nodes *nodes, uint64_t id) {
    if (id == LFS_ROOT_ID)
        return &nodes->root;
    struct lfs_node *node = nodes->by_id[id_slot(nodes, id)];
    while (node && node->id != id)
        node = node->next_by_id;
    return node;
}

static struct lfs_node *find_key(struct lfs_nodes *nodes, enum lfs_node_kind kind, const struct lfs_node *parent,
                                 const char *name, uint64_t token) {
    struct lfs_node *node = nodes->by_key[slot(nodes, key_of(kind, parent, name, token))];
    while (node && (node->kind != kind || node->parent != parent || node->token != token || strcmp(node->name, name)))
        node = node->next_by_key;
    return node;
}

/* Two virtual things whose hashes meet get numbers of their own. */
static uint64_t free_ino(struct lfs_nodes *nodes, uint64_t ino) {
    for (;;) {
        struct lfs_node *node = nodes->by_ino[slot(nodes, ino)];
        while (node && node->st_ino != ino)
            node = node->next_by_ino;
        if (!node && ino != nodes->root.st_ino)
            return ino;
        ino = (ino + 1) | VIRTUAL_BIT;
    }
}

/* --- making and dropping --- */

static void free_strings(struct lfs_node *node) {
    free((void *)node->name);
    free((void *)node->text);
    free((void *)node->dir);
    free((void *)node->shown);
    free((void *)node->location.directory);
    free((void *)node->location.name);
}

static bool copy_text(const char *text, const char **out) {
    *out = text ? strdup(text) : NULL;
    return !text || *out;
}

static void drop(struct lfs_nodes *nodes, struct lfs_node *node) {
    while (node && node != &nodes->root && node->lookups == 0 && node->holds == 0) {
        struct lfs_node *parent = node->parent;
        take_out(nodes, node);
        free_strings(node);
        free(node);
        if (parent)
            parent->holds--;
        node = parent;
    }
}

static struct lfs_node *make(const struct lfs_node_spec *spec) {
    struct lfs_node *node = calloc(1, sizeof *node);
    if (!node)
        return NULL;
    node->kind = spec->kind;
    node->parent = spec->parent;
    node->version = spec->version;
    node->file_kind = spec->file_kind;
    node->token = spec->token;
    node->cause = spec->cause;
    node->branch = spec->kind == LFS_NODE_BRANCH ? node : spec->parent ? spec->parent->branch : NULL;
    if (spec->st)
        node->st = *spec->st;
    if (!copy_text(spec->name, &node->name) || !copy_text(spec->text, &node->text) ||
        !copy_text(spec->dir, &node->dir) || !copy_text(spec->shown, &node->shown)) {
        free_strings(node);
        free(node);
        return NULL;
    }
    return node;
}

static void settle(struct lfs_nodes *nodes, struct lfs_node *node) {
    node->id = nodes->next_id++;
    if (nodes->count >= nodes->size)
        grow(nodes);
    insert(nodes, node);
    nodes->count++;
    if (node->parent)
        node->parent->holds++;
}

struct lfs_node *lfs_nodes_look_up(struct lfs_nodes *nodes, const struct lfs_node_spec *spec) {
    pthread_mutex_lock(&nodes->lock);
    struct lfs_node *node = find_key(nodes, spec->kind, spec->parent, spec->name, spec->token);
    if (!node && (node = make(spec))) {
        uint64_t ino = lfs_virtual_ino(spec->parent->st_ino, spec->name, spec->salt);
        node->st_ino = spec->shares_ino ? ino : free_ino(nodes, ino);
        node->st.st_ino = node->st_ino;
        settle(nodes, node);
    } else if (node && spec->kind == LFS_NODE_UNREACHED) {
        node->cause = spec->cause;
    }
    if (node) {
        node->lookups++;
        nodes->lookups++;
    }
    pthread_mutex_unlock(&nodes->lock);
    return node;
}

struct lfs_node *lfs_nodes_look_up_file(struct lfs_nodes *nodes, const struct stat *st,
                                        const struct lfs_location *location) {
    struct lfs_node_spec spec = {.kind = LFS_NODE_FILE, .name = "", .token = lfs_file_token(st), .st = st};
    const char *directory, *name;
    if (!copy_text(location->directory, &directory) || !copy_text(location->name, &name)) {
        free((void *)directory);
        return NULL;
    }
    pthread_mutex_lock(&nodes->lock);
    struct lfs_node *node = find_key(nodes, spec.kind, NULL, "", spec.token);
    if (!node && (node = make(&spec))) {
        node->st_ino = node->st.st_ino = lfs_real_ino(nodes, st);
        settle(nodes, node);
    }
    if (node) { /* the newest place is the one most likely to last */
        const char *old_directory = node->location.directory, *old_name = node->location.name;
        node->location = (struct lfs_location){location->inside, directory, name};
        directory = old_directory;
        name = old_name;
        node->lookups++;
        nodes->lookups++;
    }
    pthread_mutex_unlock(&nodes->lock);
    free((void *)directory);
    free((void *)name);
    return node;
}

void lfs_nodes_forget(struct lfs_nodes *nodes, uint64_t id, uint64_t count) {
    pthread_mutex_lock(&nodes->lock);
    struct lfs_node *node = find_id(nodes, id);
    if (node && node != &nodes->root) {
        count = count < node->lookups ? count : node->lookups;
        node->lookups -= count;
        nodes->lookups -= count;
        drop(nodes, node);
    }
    pthread_mutex_unlock(&nodes->lock);
}

void lfs_nodes_hold(struct lfs_nodes *nodes, struct lfs_node *node) {
    pthread_mutex_lock(&nodes->lock);
    node->holds++;
    pthread_mutex_unlock(&nodes->lock);
}

void lfs_nodes_release(struct lfs_nodes *nodes, struct lfs_node *node) {
    pthread_mutex_lock(&nodes->lock);
    node->holds--;
    drop(nodes, node);
    pthread_mutex_unlock(&nodes->lock);
}

struct lfs_node *lfs_nodes_find(struct lfs_nodes *nodes, uint64_t id) {
    pthread_mutex_lock(&nodes->lock);
    struct lfs_node *node = find_id(nodes, id);
    pthread_mutex_unlock(&nodes->lock);
    return node;
}

bool lfs_nodes_location(struct lfs_nodes *nodes, const struct lfs_node *node, struct lfs_arena *arena,
                        struct lfs_location *out) {
    pthread_mutex_lock(&nodes->lock);
    out->inside = node->location.inside;
    out->directory = lfs_strdup(arena, node->location.directory);
    out->name = lfs_strdup(arena, node->location.name);
    pthread_mutex_unlock(&nodes->lock);
    return out->directory && out->name;
}

/* --- the table as a whole --- */

struct lfs_nodes *lfs_nodes_new(dev_t root_dev) {
    struct lfs_nodes *nodes = calloc(1, sizeof *nodes);
    if (!nodes)
        return NULL;
    pthread_mutex_init(&nodes->lock, NULL);
    nodes->root_dev = root_dev;
    nodes->size = FIRST_SIZE;
    nodes->next_id = LFS_ROOT_ID + 1;
    nodes->by_id = zeroed_table(FIRST_SIZE);
    nodes->by_key = zeroed_table(FIRST_SIZE);
    nodes->by_ino = zeroed_table(FIRST_SIZE);
    nodes->root = (struct lfs_node){.id = LFS_ROOT_ID, .kind = LFS_NODE_ROOT, .name = ""};
    nodes->root.st_ino = lfs_virtual_ino(0, "", 0);
    if (!nodes->by_id || !nodes->by_key || !nodes->by_ino) {
        lfs_nodes_free(nodes);
        return NULL;
    }
    return nodes;
}

void lfs_nodes_free(struct lfs_nodes *nodes) {
    if (!nodes)
        return;
    for (size_t i = 0; nodes->by_id && i < nodes->size; i++)
        for (struct lfs_node *node = nodes->by_id[i], *next; node; node = next) {
            next = node->next_by_id;
            free_strings(node);
            free(node);
        }
    free(nodes->by_id);
    free(nodes->by_key);
    free(nodes->by_ino);
    pthread_mutex_destroy(&nodes->lock);
    free(nodes);
}

size_t lfs_nodes_count(struct lfs_nodes *nodes) {
    pthread_mutex_lock(&nodes->lock);
    size_t count = nodes->count;
    pthread_mutex_unlock(&nodes->lock);
    return count;
}

uint64_t lfs_nodes_lookups(struct lfs_nodes *nodes) {
    pthread_mutex_lock(&nodes->lock);
    uint64_t lookups = nodes->lookups;
    pthread_mutex_unlock(&nodes->lock);
    return lookups;
}

static bool is_of_branch(const struct lfs_node *node, const char *branch) {
    if (!node->branch || node->kind == LFS_NODE_RENDERED || node->kind == LFS_NODE_UNREACHED ||
        node->kind == LFS_NODE_TEXT || node->kind == LFS_NODE_IMAGE || node->kind == LFS_NODE_IMAGE_DIR ||
        node->kind == LFS_NODE_IMAGE_FILE)
        return false;
    return strcmp(node->branch->text, branch) == 0;
}

uint64_t *lfs_nodes_of_branch(struct lfs_nodes *nodes, const char *branch, size_t *n) {
    *n = 0;
    pthread_mutex_lock(&nodes->lock);
    uint64_t *ids = malloc((nodes->count + 1) * sizeof *ids);
    for (size_t i = 0; ids && i < nodes->size; i++)
        for (struct lfs_node *node = nodes->by_id[i]; node; node = node->next_by_id)
            if (is_of_branch(node, branch))
                ids[(*n)++] = node->id;
    pthread_mutex_unlock(&nodes->lock);
    return ids;
}

static bool is_name(const struct lfs_node *node) {
    return node->parent && (node->kind == LFS_NODE_BRANCH || node->kind == LFS_NODE_TABLE || node->kind == LFS_NODE_TAG ||
                            (node->kind == LFS_NODE_TREE && *node->text));
}

struct lfs_node_entry *lfs_nodes_names(struct lfs_nodes *nodes, size_t *n) {
    *n = 0;
    pthread_mutex_lock(&nodes->lock);
    struct lfs_node_entry *list = malloc((nodes->count + 1) * sizeof *list);
    for (size_t i = 0; list && i < nodes->size; i++)
        for (struct lfs_node *node = nodes->by_id[i]; node; node = node->next_by_id)
            if (is_name(node) && (list[*n].name = strdup(node->name)))
                list[(*n)++].parent = node->parent->id;
    pthread_mutex_unlock(&nodes->lock);
    return list;
}

void lfs_node_entries_free(struct lfs_node_entry *entries, size_t n) {
    for (size_t i = 0; i < n; i++)
        free(entries[i].name);
    free(entries);
}
