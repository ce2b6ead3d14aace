/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all parts of the mount share, and the functions that they offer each other. Everything in struct lfs_mount is
 * set before the first request and only read afterwards; what changes has its own lock where it lives.
 */
#ifndef LFS_FUSE_MOUNT_H
#define LFS_FUSE_MOUNT_H

#include <fuse_lowlevel.h>

#include "fuse/nodes.h"
#include "fuse/options.h"
#include "fuse/tree.h"
#include "table/dataset.h"
#include "table/view.h"
#include "verbs/verbs.h"

#define LFS_IMMUTABLE_TIMEOUT 86400.0 /* seconds: names and attributes that never change again */

struct lfs_conflicts;
struct lfs_control;
struct lfs_hooks;
struct lfs_images;
struct lfs_copies;
struct lfs_discards;
struct lfs_opens;
struct lfs_passthrough;
struct lfs_removals;
struct lfs_stage;
struct lfs_stats;
struct lfs_texts;

struct lfs_mount {
    const struct lfs_options *options;
    struct lfs_dataset *dataset;
    struct lfs_views *views;
    struct lfs_nodes *nodes;
    struct lfs_tree_cache *trees;
    struct lfs_control *control;
    struct lfs_conflicts *conflicts; /* commands that wait for choices; see verbs/conflicts.h */
    struct lfs_opens *opens; /* see handles.h */
    struct lfs_stage *stage; /* see staged.h */
    struct lfs_texts *texts; /* see texts.h */
    struct lfs_images *images; /* see images.h */
    struct lfs_stats *stats; /* see stats.h */
    struct lfs_hooks *hooks; /* see hooks.h; NULL = none */
    struct lfs_discards *discards; /* see verbs/discard.h */
    struct lfs_copies *copies; /* see copies.h */
    struct lfs_removals *removals; /* see removals.h */
    struct lfs_passthrough *passthrough; /* see passthrough.h */
    struct fuse_session *session;
    struct lfs_verb_settings settings;
    uid_t uid; /* who mounts */
    gid_t gid;
    char *mountpoint; /* without links */
    int ready_fd;     /* INIT writes a byte to it; -1 = nobody waits */
};

static inline struct lfs_mount *lfs_mount_of(fuse_req_t req) { return fuse_req_userdata(req); }

/* --- lookup.c: names to nodes --- */

/* Find `name` in directory `parent` and fill `out`, with one lookup counted. 0 or a negative errno (-ENOENT). With
 * `known_only`, things whose size is costly to find out and not known yet are -EAGAIN. */
errint_t lfs_look_up(struct lfs_mount *m, struct lfs_node *parent, const char *name, bool known_only,
                     struct fuse_entry_param *out);

/* Is a file of _versions or _transactions the manifest of the one version that `directory` shows, or its transaction? */
bool lfs_shows_file(struct lfs_mount *m, const struct lfs_node *directory, const char *name);

/* --- attributes.c --- */

/* What stat says of a node, and for how long (seconds). 0 or a negative errno. */
errint_t lfs_attributes(struct lfs_mount *m, struct lfs_node *node, struct stat *st, double *timeout);

/* When did the newest commit of a branch happen? Its directory's own time where no version can be read. */
struct timespec lfs_branch_time(struct lfs_mount *m, const char *dir);
/* The same for a node of kind BRANCH, which may show one version alone. */
struct timespec lfs_node_time(struct lfs_mount *m, const struct lfs_node *branch);
/* The newest of the branches below a directory of MNT/tree, and of the list of branches itself. */
errint_t lfs_tree_time(struct lfs_mount *m, const char *prefix, struct timespec *out);
/* A rendered file's attributes from what the views say of it; `st_ino` is left alone. */
void lfs_rendered_attributes(const struct lfs_rendered_info *info, struct stat *st);
struct lfs_text;
/* A text's in the directory `place`; `st_ino` is left alone. */
errint_t lfs_text_attributes(struct lfs_mount *m, const struct lfs_node *place, const struct lfs_text *text,
                             struct stat *st);
/* What is of an image in the branch `place`: read only. `st_ino` is left alone. */
errint_t lfs_image_attributes(struct lfs_mount *m, const struct lfs_node *place, bool is_dir, off_t size,
                              struct timespec time, struct stat *st);

/* --- xattrs.c --- */

/* Append the value of an extended attribute, or the names of all that a thing has, each ended by a NUL. -ENODATA when it
 * has none of that name. */
errint_t lfs_xattr_get(struct lfs_mount *m, const struct lfs_node *node, const char *name, struct lfs_buf *out);
errint_t lfs_xattr_list(struct lfs_mount *m, const struct lfs_node *node, struct lfs_buf *out);

/* --- directories.c, files.c, control.c: operations of fuse_lowlevel.h by their names there --- */

/* names.c: names of branches and tags made, removed, moved */
void lfs_op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode);
void lfs_op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name);
void lfs_op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name);
void lfs_op_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name);
void lfs_op_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent, const char *new_name,
                   unsigned flags);
/* operations.c: why nothing can be changed there: EROFS on a read-only mount, else EPERM. */
int lfs_refusal(fuse_req_t req);

void lfs_op_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void lfs_op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi);
void lfs_op_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi);
void lfs_op_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);

void lfs_op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void lfs_op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi);
void lfs_op_write(fuse_req_t req, fuse_ino_t ino, const char *bytes, size_t size, off_t off, struct fuse_file_info *fi);
void lfs_op_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void lfs_op_poll(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, struct fuse_pollhandle *ph);
void lfs_op_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);

/* --- control files --- */

struct lfs_handle;

struct lfs_control *lfs_control_new(struct lfs_mount *m);
/* Take no new commands; tell those that run to stop before they commit and wait for them, at most `seconds`. Requests
 * must still be served meanwhile. False when one still runs: then nothing that it uses may be freed. */
bool lfs_control_stop(struct lfs_control *control, unsigned seconds);
/* After lfs_control_stop said true and the loop ended. */
void lfs_control_free(struct lfs_control *control);

/* Threads for what may take long: commands, and changes of names. */
struct lfs_workers *lfs_control_workers(struct lfs_control *control);
/* Make the kernel look anew at all names of branches and tags. Not from within a request that it waits for. */
void lfs_tell_names(struct lfs_mount *m);

/* How long is the text that opening and reading the file gives now? */
errint_t lfs_control_size(struct lfs_mount *m, const struct lfs_node *node, off_t *size);

/* The parts of open, read, write, flush and release that are a control file's; each replies. */
void lfs_control_open(struct lfs_mount *m, fuse_req_t req, struct lfs_node *node, struct fuse_file_info *fi);
void lfs_control_read(struct lfs_mount *m, fuse_req_t req, size_t size, off_t off, struct fuse_file_info *fi);
void lfs_control_write(fuse_req_t req, struct lfs_handle *h, const char *bytes, size_t size, off_t off,
                       struct fuse_file_info *fi);
void lfs_control_flush(fuse_req_t req, struct lfs_handle *h, struct fuse_file_info *fi);
void lfs_control_poll(fuse_req_t req, struct lfs_handle *h, struct fuse_pollhandle *ph);
void lfs_control_release(struct lfs_mount *m, fuse_req_t req, struct lfs_handle *h);

/* Is `name` the name of a control file, in a branch's directory or at the root of the mount? */
bool lfs_is_control_name(const char *name, bool in_branch);

/* --- operations.c --- */

extern const struct fuse_lowlevel_ops lfs_operations;

#endif
