/* SPDX-License-Identifier: Apache-2.0 */
/* What is open: fuse_file_info.fh points to a handle of an open file, or to a directory's stream. */
#ifndef LFS_FUSE_HANDLES_H
#define LFS_FUSE_HANDLES_H

#include <stdatomic.h>

#include "fuse/mount.h"
#include "table/view.h"

struct lfs_talk;
struct lfs_text;
struct lfs_image;

/* The first member of both. What the kernel never releases, since a forced unmount came before, is closed at the end. */
struct lfs_opened {
    void (*close)(struct lfs_mount *m, struct lfs_opened *opened); /* frees it too */
    struct lfs_opened *next, **at;                                 /* the list's own */
};

struct lfs_opens;

struct lfs_opens *lfs_opens_new(void); /* NULL when memory is short */
void lfs_opens_add(struct lfs_opens *opens, struct lfs_opened *opened);
void lfs_opens_remove(struct lfs_opens *opens, struct lfs_opened *opened);
size_t lfs_opens_count(struct lfs_opens *opens);
/* Close what is left, once no request can come. */
void lfs_opens_free(struct lfs_mount *m, struct lfs_opens *opens);

struct lfs_handle {
    struct lfs_opened opened;
    struct lfs_node *node;         /* held */
    int fd;                        /* of the real file; -1 = none */
    struct lfs_rendered *rendered; /* pinned while open; NULL = none */
    struct lfs_text *text;         /* held while open; NULL = none */
    struct lfs_image *image;       /* held while open; NULL = none */
    const uint8_t *image_bytes;    /* of the file in it */
    size_t image_size;
    struct lfs_talk *control;      /* what is said through this open control file; NULL = it is none */
    bool writes;                   /* `fd` is a staged file's, and may be written to */
    atomic_bool dirty;             /* it was, since the last flush */
    bool counted, passed;          /* passthrough.c's own: a data file; one that the kernel reads itself, `fd` is -1 */
};

/* A handle that holds `node` and nothing else. NULL when memory is short. */
struct lfs_handle *lfs_handle_new(struct lfs_mount *m, struct lfs_node *node);
/* Close, and let go of the node. */
void lfs_handle_free(struct lfs_mount *m, struct lfs_handle *handle);
void lfs_talk_free(struct lfs_talk *talk); /* NULL is fine */

#endif
