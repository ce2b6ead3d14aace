/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts: files whose bytes are made when they are looked at, with sizes that are exact all the same.
 *
 * A name is looked up at each use (the kernel does not remember it), and that makes the text, or takes it from the
 * cache while nothing that it is made of has changed. A node is one text: its size and time never change, and whoever
 * opened it reads that text to the end, whatever is committed meanwhile. When the text changes the name leads to another
 * node. A text that the cache has lost is made again at open; if it comes out differently, the kernel looks the name up
 * again (ESTALE).
 *
 * A text that takes long (MNT/.fsck) is not made by a look at its name: its size is told as 0, a worker makes it when the file
 * is opened, and it is read to its end anyhow.
 *
 * To add a file: an entry of `sources` in texts.c.
 */
#ifndef LFS_FUSE_TEXTS_H
#define LFS_FUSE_TEXTS_H

#include <stdatomic.h>

#include "fuse/mount.h"

/* A text: immutable, counted. */
struct lfs_text {
    const uint8_t *bytes;
    size_t size;
    struct timespec time;
    uint64_t token; /* of its bytes and time: nodes are told apart by it */
};

struct lfs_texts;

/* `bytes_max` bounds what is kept, of texts and of what histories were found to be; the newest text is kept whatever its
 * size. Texts that every look makes anew are kept besides, a few of them, since they are only for who is about to open them. NULL when memory is short. */
struct lfs_texts *lfs_texts_new(size_t bytes_max);
void lfs_texts_free(struct lfs_texts *texts);
void lfs_texts_count(struct lfs_texts *texts, struct lfs_cache_counts *out);

enum lfs_text_is { LFS_TEXT_NONE, LFS_TEXT_FILE, LFS_TEXT_DIRECTORY };
/* Is `what` a text of the directory `place` (a branch's, or the root of the mount), or a directory that leads to some?
 * `what` is a path below `place`: ".log", ".diff/main". */
enum lfs_text_is lfs_text_is(struct lfs_mount *m, const struct lfs_node *place, const char *what);
/* Is the text made anew at each look? Such a file keeps its inode number whatever its text. */
bool lfs_text_is_volatile(const struct lfs_node *place, const char *what);

/* Is it made when it is opened? It has no text of its own before. */
bool lfs_text_is_slow(const struct lfs_node *place, const char *what);
/* The directory that a LFS_NODE_TEXT is a text of. */
const struct lfs_node *lfs_text_place(const struct lfs_node *node);

/* The text as it is now. With `known_only` -EAGAIN where it would have to be made. Release. */
errint_t lfs_text_get(struct lfs_mount *m, const struct lfs_node *place, const char *what, bool known_only,
                      struct lfs_text **out);
/* The text that a LFS_NODE_TEXT is; -ESTALE when it cannot be had any more. Release. */
errint_t lfs_text_of(struct lfs_mount *m, const struct lfs_node *node, struct lfs_text **out);
/* A slow one, made now and kept by nobody else. -EINTR once `cancel`. Release. */
errint_t lfs_text_make(struct lfs_mount *m, const struct lfs_node *node, const atomic_bool *cancel, struct lfs_text **out);
/* Open a slow one. Replies, perhaps later, from a worker. (texts_open.c) */
void lfs_text_open(struct lfs_mount *m, fuse_req_t req, struct lfs_node *node, struct fuse_file_info *fi);
void lfs_text_release(struct lfs_text *text); /* NULL is fine */

/* Names for listings, NULL-terminated. */
const char *const *lfs_text_names(const struct lfs_node *place);

#endif
