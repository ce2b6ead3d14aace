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
 * To add a file: an entry of `sources` in texts.c.
 */
#ifndef LFS_FUSE_TEXTS_H
#define LFS_FUSE_TEXTS_H

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
 * size. NULL when memory is short. */
struct lfs_texts *lfs_texts_new(size_t bytes_max);
void lfs_texts_free(struct lfs_texts *texts);
void lfs_texts_count(struct lfs_texts *texts, struct lfs_cache_counts *out);

enum lfs_text_is { LFS_TEXT_NONE, LFS_TEXT_FILE, LFS_TEXT_DIRECTORY };
/* Is `what` a text of the directory `place` (a branch's, or the root of the mount), or a directory that leads to some?
 * `what` is a path below `place`: ".log", ".diff/main". */
enum lfs_text_is lfs_text_is(struct lfs_mount *m, const struct lfs_node *place, const char *what);
/* Is the text made anew at each look? Such a file keeps its inode number whatever its text. */
bool lfs_text_is_volatile(const struct lfs_node *place, const char *what);

/* The text as it is now. With `known_only` -EAGAIN where it would have to be made. Release. */
errint_t lfs_text_get(struct lfs_mount *m, const struct lfs_node *place, const char *what, bool known_only,
                      struct lfs_text **out);
/* The text that a LFS_NODE_TEXT is; -ESTALE when it cannot be had any more. Release. */
errint_t lfs_text_of(struct lfs_mount *m, const struct lfs_node *node, struct lfs_text **out);
void lfs_text_release(struct lfs_text *text); /* NULL is fine */

/* Names for listings, NULL-terminated. */
const char *const *lfs_text_names(const struct lfs_node *place);

#endif
