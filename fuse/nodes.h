/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes: what the kernel has looked up, by the number that it calls it by. A number is never used twice, so what was
 * replaced (a branch that was deleted and made again, a data file whose inode number was reused) is a new node and
 * nothing that the kernel remembers of the old one is taken for it.
 *
 * The table counts the kernel's lookups; handles hold their node besides. While a request on a node runs, the kernel
 * holds the node, so a request need not.
 */
#ifndef LFS_FUSE_NODES_H
#define LFS_FUSE_NODES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "table/location.h"

enum lfs_node_kind {
    LFS_NODE_ROOT,         /* MNT */
    LFS_NODE_TREE,         /* MNT/tree, and directories in it that only lead to branches */
    LFS_NODE_TABLES,       /* MNT/tables */
    LFS_NODE_TABLE,        /* a link in it */
    LFS_NODE_TAGS,         /* MNT/tags */
    LFS_NODE_TAG,          /* a link in it */
    LFS_NODE_BRANCH,       /* a branch's directory, or one version of it in HISTORY */
    LFS_NODE_HISTORY,      /* .versions of a branch */
    LFS_NODE_FILES,        /* data, _deletions, _indices of a branch, and directories below them */
    LFS_NODE_VERSIONS,     /* _versions */
    LFS_NODE_TRANSACTIONS, /* _transactions */
    LFS_NODE_RENDERED,     /* a manifest or a transaction */
    LFS_NODE_HINT,         /* latest_version_hint.json */
    LFS_NODE_FILE,         /* a data, deletion or index file, by its own identity: one node for all its names */
    LFS_NODE_UNREACHED,    /* such a file, listed but not to be had */
    LFS_NODE_STAGED,       /* a file of the branch's own storage that its writer has not published */
    LFS_NODE_CONTROL,      /* a control file, of a branch or of the mount */
    LFS_NODE_TEXT,         /* one text of a file that is made when it is looked at (texts.h) */
    LFS_NODE_TEXTS,        /* a directory that such files are looked up in: .diff, and below it */
    LFS_NODE_PREVIEWS,     /* a directory that previews are looked up in: .preview, and below it */
    LFS_NODE_IMAGE,        /* a data set that no directory holds (images.h) */
    LFS_NODE_IMAGE_DIR,    /* a directory in it */
    LFS_NODE_IMAGE_FILE,   /* a file in it that only memory holds, or that cannot be had */
};

struct lfs_node {
    uint64_t id;     /* what the kernel calls it */
    uint64_t st_ino; /* what people see */
    enum lfs_node_kind kind;
    struct lfs_node *parent; /* held; NULL for the root and for LFS_NODE_FILE */
    struct lfs_node *branch; /* the branch's node, for what lies in a branch (held through `parent`), and for itself */
    const char *name;        /* in its parent */
    const char *text;        /* TREE: path below tree/; BRANCH: the branch's name; FILES: path below data/ and the like;
                                TABLE, TAG: where it leads; CONTROL: the file's name; TEXT, TEXTS, PREVIEWS, IMAGE: path
                                below the branch's directory (or the mount's); IMAGE_DIR, IMAGE_FILE: path below the
                                image */
    const char *dir;         /* BRANCH: its directory below the root of the data set */
    const char *shown;       /* BRANCH: its path below tree/ where its sub-branches are; NULL: it shows none */
    uint64_t version;        /* BRANCH: which one is shown; 0 = the newest, with all that is before it */
    enum lfs_file_kind file_kind; /* FILES, UNREACHED */
    struct stat st;               /* RENDERED, FILE, TEXT, IMAGE*: all that stat says, for ever; UNREACHED: the size */
    int cause;                    /* UNREACHED, RENDERED, IMAGE_FILE: what opening it gives (negative), 0 = it can be opened */
    uint64_t token;               /* tells things of one name and kind apart */
    struct lfs_location location; /* FILE: where it was found last; read by lfs_nodes_location */
    int backing;                  /* FILE: passthrough.c's own, as the next: what the kernel reads it by, 0 = nothing */
    unsigned opens;
    /* the table's own */
    uint64_t lookups;
    unsigned holds;
    struct lfs_node *next_by_id, *next_by_key, *next_by_ino;
};

/* What a node is to be. Strings are copied. */
struct lfs_node_spec {
    enum lfs_node_kind kind;
    struct lfs_node *parent;
    const char *name, *text, *dir, *shown;
    uint64_t version;
    enum lfs_file_kind file_kind;
    uint64_t token;
    uint64_t salt; /* goes into st_ino, beside the parent's and the name */
    bool shares_ino; /* st_ino is the name's, though nodes of other texts may have it too */
    const struct stat *st;
    int cause;
};

struct lfs_nodes;
enum { LFS_ROOT_ID = 1 };

/* NULL when memory is short. `root_dev` is the data set's: inode numbers of files there are shown as they are. */
struct lfs_nodes *lfs_nodes_new(dev_t root_dev);
void lfs_nodes_free(struct lfs_nodes *nodes);
/* Nodes that the kernel still knows, the root not counted: for the check at the end that none leaked. */
size_t lfs_nodes_count(struct lfs_nodes *nodes);

/* All lookups of those. */
uint64_t lfs_nodes_lookups(struct lfs_nodes *nodes);

/* NULL for a number that was never given out or is forgotten. */
struct lfs_node *lfs_nodes_find(struct lfs_nodes *nodes, uint64_t id);

/* Find or make a node, with one lookup more. NULL when memory is short. */
struct lfs_node *lfs_nodes_look_up(struct lfs_nodes *nodes, const struct lfs_node_spec *spec);
/* The same for a real file, which all its names share; `location` is remembered as where it is found. */
struct lfs_node *lfs_nodes_look_up_file(struct lfs_nodes *nodes, const struct stat *st,
                                        const struct lfs_location *location);

/* Take `count` lookups away: when none and no hold is left, the node is gone. */
void lfs_nodes_forget(struct lfs_nodes *nodes, uint64_t id, uint64_t count);
void lfs_nodes_hold(struct lfs_nodes *nodes, struct lfs_node *node);
void lfs_nodes_release(struct lfs_nodes *nodes, struct lfs_node *node);

/* A copy of where a file lies, in `arena`. False when memory is short. */
bool lfs_nodes_location(struct lfs_nodes *nodes, const struct lfs_node *node, struct lfs_arena *arena,
                        struct lfs_location *out);

/* The inode number of a thing that has none of its own, from its place: the top bit is set. */
uint64_t lfs_virtual_ino(uint64_t parent_ino, const char *name, uint64_t salt);
/* The inode number to show for a real file. */
uint64_t lfs_real_ino(const struct lfs_nodes *nodes, const struct stat *st);

/* A hash of what a file is: device, inode, size, time of its last change. */
uint64_t lfs_file_token(const struct stat *st);

/* An entry of a directory that a change of names may have made wrong: of branches, of tags, and of links to them. */
struct lfs_node_entry {
    uint64_t parent; /* the id of the directory */
    char *name;      /* owned */
};
/* All that the kernel knows; free them and the list with lfs_node_entries_free. Count in `*n`. */
struct lfs_node_entry *lfs_nodes_names(struct lfs_nodes *nodes, size_t *n);
void lfs_node_entries_free(struct lfs_node_entry *entries, size_t n);

/* The ids of all directories and control files of a branch that the kernel knows; free(3) them. Count in `*n`. */
uint64_t *lfs_nodes_of_branch(struct lfs_nodes *nodes, const char *branch, size_t *n);

#endif
