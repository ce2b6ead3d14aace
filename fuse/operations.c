/* SPDX-License-Identifier: Apache-2.0 */
/* The operations table, and those operations that are short. Each says which replies are valid. */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fuse/mount.h"
#include "fuse/stats.h"
#include "util/cleanup.h"
#include "fuse/start.h"

/* A base path, or a link, that leads into this very mount would make the daemon wait for itself: its own threads get
 * no answer but this one. */
static bool is_own_request(fuse_req_t req) {
    pid_t tid = fuse_req_ctx(req)->pid;
    return tid > 0 && syscall(SYS_tgkill, getpid(), tid, 0) == 0;
}

/* The node of a request; replies and returns NULL when there is none or the request is our own. */
static struct lfs_node *node_of(fuse_req_t req, fuse_ino_t ino) {
    if (is_own_request(req)) {
        fuse_reply_err(req, ELOOP);
        return NULL;
    }
    struct lfs_node *node = lfs_nodes_find(lfs_mount_of(req)->nodes, ino);
    if (!node)
        fuse_reply_err(req, ESTALE);
    return node;
}

/* The kernel's features: whole entries in listings, no looking up of "." and "..", which file handles would need. */
static void op_init(void *data, struct fuse_conn_info *conn) {
    struct lfs_mount *m = data;
#if FUSE_VERSION >= FUSE_MAKE_VERSION(3, 17)
    fuse_set_feature_flag(conn, FUSE_CAP_READDIRPLUS);
    fuse_unset_feature_flag(conn, FUSE_CAP_READDIRPLUS_AUTO);
    fuse_unset_feature_flag(conn, FUSE_CAP_EXPORT_SUPPORT);
    fuse_unset_feature_flag(conn, FUSE_CAP_SPLICE_READ);
#else
    conn->want |= conn->capable & FUSE_CAP_READDIRPLUS;
    conn->want &= ~(unsigned)(FUSE_CAP_READDIRPLUS_AUTO | FUSE_CAP_EXPORT_SUPPORT | FUSE_CAP_SPLICE_READ);
#endif
    lfs_start_ready(m);
}

/* Valid replies: entry, err. */
static void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name) {
    struct lfs_mount *m = lfs_mount_of(req);
    struct lfs_node *node = node_of(req, parent);
    struct fuse_entry_param e;
    if (!node)
        return;
    errint_t result = lfs_look_up(m, node, name, false, &e);
    if (result < 0)
        fuse_reply_err(req, -result);
    else if (fuse_reply_entry(req, &e) != 0)
        lfs_nodes_forget(m->nodes, e.ino, 1);
}

/* Valid replies: none. */
static void op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t count) {
    lfs_nodes_forget(lfs_mount_of(req)->nodes, ino, count);
    fuse_reply_none(req);
}

/* Valid replies: none. */
static void op_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets) {
    for (size_t i = 0; i < count; i++)
        lfs_nodes_forget(lfs_mount_of(req)->nodes, forgets[i].ino, forgets[i].nlookup);
    fuse_reply_none(req);
}

static void reply_attributes(fuse_req_t req, struct lfs_node *node) {
    struct stat st;
    double timeout;
    errint_t result = lfs_attributes(lfs_mount_of(req), node, &st, &timeout);
    if (result < 0)
        fuse_reply_err(req, -result);
    else
        fuse_reply_attr(req, &st, timeout);
}

/* Valid replies: attr, err. */
static void op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi) {
    (void)fi;
    lfs_start_tune();
    struct lfs_node *node = node_of(req, ino);
    if (node)
        reply_attributes(req, node);
}

/* Valid replies: attr, err. Cutting a control file or setting its times means nothing and succeeds. */
static void op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *st, int to_set, struct fuse_file_info *fi) {
    struct lfs_node *node = node_of(req, ino);
    (void)st;
    (void)fi;
    if (!node)
        return;
    if (node->kind != LFS_NODE_CONTROL || lfs_mount_of(req)->options->read_only)
        fuse_reply_err(req, EROFS);
    else if (to_set & (FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID))
        fuse_reply_err(req, EPERM);
    else
        reply_attributes(req, node);
}

/* Valid replies: readlink, err. */
static void op_readlink(fuse_req_t req, fuse_ino_t ino) {
    struct lfs_node *node = node_of(req, ino);
    if (!node)
        return;
    if (node->kind == LFS_NODE_TABLE || node->kind == LFS_NODE_TAG)
        fuse_reply_readlink(req, node->text);
    else
        fuse_reply_err(req, EINVAL);
}

/* Valid replies: statfs, err. */
static void op_statfs(fuse_req_t req, fuse_ino_t ino) {
    struct statvfs st;
    (void)ino;
    if (fstatvfs(lfs_dataset_root_fd(lfs_mount_of(req)->dataset), &st) < 0)
        fuse_reply_err(req, errno);
    else
        fuse_reply_statfs(req, &st);
}

/* Size 0 asks how long it is. */
static void reply_xattr(fuse_req_t req, errint_t result, const struct lfs_buf *value, size_t size) {
    if (result < 0)
        fuse_reply_err(req, -result);
    else if (size == 0)
        fuse_reply_xattr(req, value->length);
    else if (value->length > size)
        fuse_reply_err(req, ERANGE);
    else
        fuse_reply_buf(req, (const char *)value->data, value->length);
}

/* Valid replies: buf, xattr, err. Tools that list files ask for security.* and system.* of each; "not supported" makes
 * them stop asking, "no such attribute" does not. */
static void op_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size) {
    LFS_AUTO_BUF value = {0};
    if (strncmp(name, "user.", 5) != 0) {
        fuse_reply_err(req, EOPNOTSUPP);
        return;
    }
    struct lfs_node *node = node_of(req, ino);
    if (node)
        reply_xattr(req, lfs_xattr_get(lfs_mount_of(req), node, name, &value), &value, size);
}

/* Valid replies: buf, xattr, err. */
static void op_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size) {
    LFS_AUTO_BUF names = {0};
    struct lfs_node *node = node_of(req, ino);
    if (node)
        reply_xattr(req, lfs_xattr_list(lfs_mount_of(req), node, &names), &names, size);
}

/* --- refusals: views are read-only, control files stay where they are. Valid replies for all: err. --- */

int lfs_refusal(fuse_req_t req, fuse_ino_t parent, const char *name) {
    struct lfs_node *node = lfs_nodes_find(lfs_mount_of(req)->nodes, parent);
    bool control = node && ((node->kind == LFS_NODE_ROOT && lfs_is_control_name(name, false)) ||
                            (node->kind == LFS_NODE_BRANCH && lfs_is_control_name(name, true)));
    return control ? EPERM : EROFS;
}

static void op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t dev) {
    (void)mode;
    (void)dev;
    fuse_reply_err(req, lfs_refusal(req, parent, name));
}

static void op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t new_parent, const char *new_name) {
    (void)ino;
    fuse_reply_err(req, lfs_refusal(req, new_parent, new_name));
}

static void op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, struct fuse_file_info *fi) {
    (void)mode;
    (void)fi;
    fuse_reply_err(req, lfs_refusal(req, parent, name));
}

static void op_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value, size_t size, int flags) {
    (void)ino;
    (void)name;
    (void)value;
    (void)size;
    (void)flags;
    fuse_reply_err(req, EROFS);
}

static void op_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name) {
    (void)ino;
    (void)name;
    fuse_reply_err(req, EROFS);
}

static void op_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t offset, off_t length,
                         struct fuse_file_info *fi) {
    (void)ino;
    (void)mode;
    (void)offset;
    (void)length;
    (void)fi;
    fuse_reply_err(req, EROFS);
}

static void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi) {
    if (node_of(req, ino))
        lfs_op_open(req, ino, fi);
}

static void op_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi) {
    if (node_of(req, ino))
        lfs_op_opendir(req, ino, fi);
}

/* --- the table: each operation is counted and timed on its way --- */

/* A request is gone once it is answered, so what it belongs to is asked for before. */
#define COUNTED(op, handler, parameters, arguments)                                                                    \
    static void counted_##handler parameters {                                                                         \
        struct lfs_stats *stats = lfs_mount_of(req)->stats;                                                            \
        uint64_t start = lfs_stats_now();                                                                              \
        handler arguments;                                                                                             \
        lfs_stats_op(stats, op, start);                                                                                \
    }

COUNTED(LFS_OP_LOOKUP, op_lookup, (fuse_req_t req, fuse_ino_t parent, const char *name), (req, parent, name))
COUNTED(LFS_OP_FORGET, op_forget, (fuse_req_t req, fuse_ino_t ino, uint64_t count), (req, ino, count))
COUNTED(LFS_OP_FORGET, op_forget_multi, (fuse_req_t req, size_t count, struct fuse_forget_data *forgets), (req, count, forgets))
COUNTED(LFS_OP_GETATTR, op_getattr, (fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi), (req, ino, fi))
COUNTED(LFS_OP_SETATTR, op_setattr, (fuse_req_t req, fuse_ino_t ino, struct stat *st, int to_set, struct fuse_file_info *fi), (req, ino, st, to_set, fi))
COUNTED(LFS_OP_READLINK, op_readlink, (fuse_req_t req, fuse_ino_t ino), (req, ino))
COUNTED(LFS_OP_OPEN, op_open, (fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi), (req, ino, fi))
COUNTED(LFS_OP_READ, lfs_op_read, (fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi), (req, ino, size, off, fi))
COUNTED(LFS_OP_WRITE, lfs_op_write, (fuse_req_t req, fuse_ino_t ino, const char *bytes, size_t size, off_t off, struct fuse_file_info *fi), (req, ino, bytes, size, off, fi))
COUNTED(LFS_OP_FLUSH, lfs_op_flush, (fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi), (req, ino, fi))
COUNTED(LFS_OP_RELEASE, lfs_op_release, (fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi), (req, ino, fi))
COUNTED(LFS_OP_OPENDIR, op_opendir, (fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi), (req, ino, fi))
COUNTED(LFS_OP_READDIR, lfs_op_readdir, (fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi), (req, ino, size, off, fi))
COUNTED(LFS_OP_READDIR, lfs_op_readdirplus, (fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi), (req, ino, size, off, fi))
COUNTED(LFS_OP_RELEASEDIR, lfs_op_releasedir, (fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi), (req, ino, fi))
COUNTED(LFS_OP_MKDIR, lfs_op_mkdir, (fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode), (req, parent, name, mode))
COUNTED(LFS_OP_RMDIR, lfs_op_rmdir, (fuse_req_t req, fuse_ino_t parent, const char *name), (req, parent, name))
COUNTED(LFS_OP_SYMLINK, lfs_op_symlink, (fuse_req_t req, const char *target, fuse_ino_t parent, const char *name), (req, target, parent, name))
COUNTED(LFS_OP_UNLINK, lfs_op_unlink, (fuse_req_t req, fuse_ino_t parent, const char *name), (req, parent, name))
COUNTED(LFS_OP_RENAME, lfs_op_rename, (fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent, const char *new_name, unsigned flags), (req, parent, name, new_parent, new_name, flags))
COUNTED(LFS_OP_STATFS, op_statfs, (fuse_req_t req, fuse_ino_t ino), (req, ino))
COUNTED(LFS_OP_XATTR, op_getxattr, (fuse_req_t req, fuse_ino_t ino, const char *name, size_t size), (req, ino, name, size))
COUNTED(LFS_OP_XATTR, op_listxattr, (fuse_req_t req, fuse_ino_t ino, size_t size), (req, ino, size))

const struct fuse_lowlevel_ops lfs_operations = {
    .init = op_init,
    .lookup = counted_op_lookup,
    .forget = counted_op_forget,
    .forget_multi = counted_op_forget_multi,
    .getattr = counted_op_getattr,
    .setattr = counted_op_setattr,
    .readlink = counted_op_readlink,
    .open = counted_op_open,
    .read = counted_lfs_op_read,
    .write = counted_lfs_op_write,
    .flush = counted_lfs_op_flush,
    .release = counted_lfs_op_release,
    .opendir = counted_op_opendir,
    .readdir = counted_lfs_op_readdir,
    .readdirplus = counted_lfs_op_readdirplus,
    .releasedir = counted_lfs_op_releasedir,
    .statfs = counted_op_statfs,
    .getxattr = counted_op_getxattr,
    .listxattr = counted_op_listxattr,
    .mknod = op_mknod,
    .mkdir = counted_lfs_op_mkdir,
    .unlink = counted_lfs_op_unlink,
    .rmdir = counted_lfs_op_rmdir,
    .symlink = counted_lfs_op_symlink,
    .rename = counted_lfs_op_rename,
    .link = op_link,
    .create = op_create,
    .setxattr = op_setxattr,
    .removexattr = op_removexattr,
    .fallocate = op_fallocate,
};
