/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images on the mount: data sets that no directory holds (table/image.h), shown as directories that any Lance program
 * opens. They are made when their name is looked up, and kept in bounds while nothing that they are made of has changed.
 *
 * A node is one image: what stands below it never changes, and whoever opened a file of it reads that file to the end.
 * When the image changes, its name leads to another node; below it the names that only the old one had are found too, as
 * long as the cache has it, so that a program which began with it can go on. Below an old node everything is ESTALE once
 * the cache has lost it, and the kernel looks the path up again. Nodes hold no image: what the kernel remembers of many
 * costs little.
 *
 * To add a kind of image: an entry of `sources` in images.c. Where its names are looked up, in lookup.c, call
 * lfs_image_node; all that lies below is done here.
 */
#ifndef LFS_FUSE_IMAGES_H
#define LFS_FUSE_IMAGES_H

#include "fuse/mount.h"
#include "table/image.h"
#include "table/stamp.h"

struct lfs_images;
struct lfs_handle;

/* Where images of one kind come from. `place` is a branch's node; `what` the path of the image below the branch's
 * directory, ".preview/feature". */
struct lfs_image_source {
    const char *prefix; /* ".preview/" */
    /* What it is made of, looked at each time: cheap. -ENOENT: there is no such image. */
    errint_t (*stamp)(struct lfs_mount *m, const struct lfs_node *place, const char *what, struct lfs_stamp *out);
    /* The image, with one user; no lock is held. Why there is none is an errno. */
    errint_t (*make)(struct lfs_mount *m, const struct lfs_node *place, const char *what, struct lfs_image **out);
};

/* `bytes_max` bounds what is kept; the newest image is kept whatever its size. NULL when memory is short. */
struct lfs_images *lfs_images_new(size_t bytes_max);
void lfs_images_free(struct lfs_images *images);
void lfs_images_count(struct lfs_images *images, struct lfs_cache_counts *out);

/*
 * The node of the image `what`, under `name` in the directory `parent` (of any kind, in a branch): with one lookup counted.
 * With `known_only` -EAGAIN where it would have to be made. Names of images are not to be remembered by the kernel.
 */
errint_t lfs_image_node(struct lfs_mount *m, struct lfs_node *parent, const char *name, const char *what,
                        bool known_only, struct lfs_node **out);

/* Is it an image, or something in one? Files that lie on the disk are nodes like all others and are none. */
bool lfs_is_in_image(const struct lfs_node *node);

/* A name in an image (IMAGE, IMAGE_DIR): its node, with one lookup counted, and for how long its name is good. */
errint_t lfs_image_look_up(struct lfs_mount *m, struct lfs_node *parent, const char *name, struct lfs_arena *arena,
                           struct lfs_node **out, double *timeout);

/* What a directory of an image holds. */
errint_t lfs_image_entries(struct lfs_mount *m, const struct lfs_node *node, struct lfs_arena *arena,
                           struct lfs_view_entry **out, size_t *n_out);

/* Open an IMAGE_FILE: the handle holds the image until it is freed. */
errint_t lfs_image_open(struct lfs_mount *m, const struct lfs_node *node, struct lfs_handle *h);

#endif
