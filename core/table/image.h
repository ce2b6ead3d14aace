/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images: data sets that no directory holds. A manifest that was never stored, shown flattened like every view, with
 * files of its own that only memory holds (deletion vectors, its transaction) beside files that lie on the disk. That is
 * what a merge would give, or just some rows of a version (view_rows.h). Nothing is written for it.
 *
 * An image is immutable and counted. It owns all that it is made of, and outlives versions, plans and jobs.
 */
#ifndef LFS_TABLE_IMAGE_H
#define LFS_TABLE_IMAGE_H

#include "table/view.h"

struct lfs_image;

struct lfs_image_file {
    const char *path; /* below the image, "_deletions/0-3-77.bin" */
    const uint8_t *bytes;
    size_t size;
};

struct lfs_image_spec {
    const char *dir;   /* the directory that the manifest is of, as in struct lfs_version */
    const char *other; /* where the files are looked for that `dir` lacks, when it is a line's storage; NULL: nowhere */
    const struct lfs_manifest *manifest; /* with base ids and base paths, as it would be stored */
    enum lfs_naming naming;
    const struct lfs_image_file *files; /* that it names and no disk holds */
    size_t n_files;
};

/* All is copied. `out` has one user. */
errint_t lfs_image_new(struct lfs_views *views, const struct lfs_image_spec *spec, struct lfs_image **out,
                       struct lfs_error *err);
struct lfs_image *lfs_image_hold(struct lfs_image *image);
void lfs_image_release(struct lfs_image *image); /* NULL is fine */

uint64_t lfs_image_token(const struct lfs_image *image);       /* a hash of the bytes: of one content, one token */
size_t lfs_image_size(const struct lfs_image *image);          /* bytes of memory */
struct timespec lfs_image_time(const struct lfs_image *image); /* the manifest's */
uint64_t lfs_image_version(const struct lfs_image *image);

/* A file or directory of an image. */
struct lfs_image_entry {
    struct lfs_view_entry
        file;             /* of one that memory holds, and of directories that only lead on: neither st nor location */
    const uint8_t *bytes; /* file.size of them, good as long as the image; NULL: not in memory */
};

/* Find a path below the image: "", "data", "data/x.lance", "_versions/9.manifest". -ENOENT when it is nowhere. A file that
 * is known and cannot be had is found, not `reached`, with its `cause`. Strings live in `arena`. */
errint_t lfs_image_find(const struct lfs_image *image, const char *path, struct lfs_arena *arena,
                        struct lfs_image_entry *out, struct lfs_error *err);

/* What a directory of it holds, in no order, each name once: just what the manifest names. */
errint_t lfs_image_list(const struct lfs_image *image, const char *path, struct lfs_arena *arena,
                        struct lfs_view_entry **out, size_t *n_out, struct lfs_error *err);

#endif
