/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Staged files: what a writer made below a branch's directory and has not published. They lie in the branch's own storage
 * under the name that the writer gave them and can be written, cut, renamed, linked and removed. A data, deletion or index
 * file is published by being closed under its last name; a manifest by being linked to its version's name (changes.c).
 */
#ifndef LFS_FUSE_STAGED_H
#define LFS_FUSE_STAGED_H

#include "fuse/handles.h"

struct lfs_stage;

struct lfs_stage *lfs_stage_new(void); /* NULL when memory is short */
void lfs_stage_free(struct lfs_stage *stage);

/* May files be made in that directory? data, _deletions, _indices and what lies in them, _versions, _transactions,
 * _refs/tags. */
bool lfs_is_stage(const struct lfs_node *directory);

/* The directory of the storage that a node's files lie in, relative to the data set's root; NULL when memory is short. */
char *lfs_stage_directory(const struct lfs_node *directory, struct lfs_arena *arena);

/* May a file be made under that name? Others only a link, or a rename, gives: one made so would be seen half written. */
bool lfs_is_stage_name(const struct lfs_node *directory, const char *name);

/* Is this file to be shown as staged: by its name one that is never published under it, or open for writing? */
bool lfs_is_staged(struct lfs_mount *m, const char *name, const struct stat *st);

/* -ESTALE when the branch is gone: no directory is made for it again. */
errint_t lfs_staged_expect_branch(struct lfs_mount *m, const struct lfs_node *branch);

/* Look up a staged file by its name. -ENOENT when there is none. */
errint_t lfs_staged_look_up(struct lfs_mount *m, struct lfs_node *parent, const char *name, struct lfs_node **out);
errint_t lfs_staged_attributes(struct lfs_mount *m, struct lfs_node *node, struct stat *st);

/* The parts of open, write, flush and release that are a staged file's. */
errint_t lfs_staged_open(struct lfs_mount *m, const struct lfs_node *node, struct lfs_handle *h,
                         struct fuse_file_info *fi);
void lfs_staged_write(fuse_req_t req, struct lfs_handle *h, const char *bytes, size_t size, off_t off);
errint_t lfs_staged_flush(struct lfs_mount *m, const struct lfs_handle *h);
void lfs_staged_release(struct lfs_mount *m, const struct lfs_handle *h);

/* A descriptor of the file, to be closed; negative errno. */
int lfs_staged_reach(struct lfs_mount *m, const struct lfs_node *node, int flags);

/* operations.c's own: operations of fuse_lowlevel.h on staged files. */
void lfs_op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, struct fuse_file_info *fi);
void lfs_op_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi);
errint_t lfs_staged_set(struct lfs_mount *m, struct lfs_node *node, const struct stat *to, int which,
                        struct fuse_file_info *fi);

#endif
