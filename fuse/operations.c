/* SPDX-License-Identifier: Apache-2.0 */
/* The operations table, and those operations that are short. Each says which replies are valid. */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fuse/changes.h"
#include "fuse/copies.h"
#include "fuse/images.h"
#include "fuse/mount.h"
#include "fuse/passthrough.h"
#include "fuse/removals.h"
#include "fuse/staged.h"
#include "fuse/standing.h"
#include "fuse/start.h"
#include "fuse/stats.h"
#include "fuse/told.h"
#include "util/cleanup.h"

/* A base path, or a link, that leads into this very mount would make the daemon wait for itself: its own threads get
 * no answer but this one. */
static pid_t own_pid; /* set by INIT, the first request, in the process that serves */

static bool is_own_request(fuse_req_t req) {
    pid_t tid = fuse_req_ctx(req)->pid;
    return tid > 0 && syscall(SYS_tgkill, own_pid, tid, 0) == 0;
}

/* The node of a request; replies and returns NULL when there is none, when its branch is gone, or the request is our own. */
static struct lfs_node *node_of(fuse_req_t req, fuse_ino_t ino) {
    if (is_own_request(req)) {
        fuse_reply_err(req, ELOOP);
        return NULL;
    }
    struct lfs_mount *m = lfs_mount_of(req);
    struct lfs_node *node = lfs_nodes_find(m->nodes, ino);
    if (node && lfs_node_stands(m, node))
        return node;
    fuse_reply_err(req, ESTALE);
    return NULL;
}

/* The same for a request that would change something in it: what no storage holds cannot be changed. */
static struct lfs_node *changeable_node_of(fuse_req_t req, fuse_ino_t ino) {
    struct lfs_node *node = node_of(req, ino);
    if (!node || (!lfs_is_in_image(node) && node->kind != LFS_NODE_PREVIEWS))
        return node;
    lfs_refuse(req, "change", node, NULL, EROFS);
    return NULL;
}

/* The kernel's features: whole entries in listings; where a link leads is kept, since one that leads elsewhere is another node;
 * no looking up of "." and "..", which file handles would need. */
static void op_init(void *data, struct fuse_conn_info *conn) {
    struct lfs_mount *m = data;
    own_pid = getpid();
#if FUSE_VERSION >= FUSE_MAKE_VERSION(3, 17)
    fuse_set_feature_flag(conn, FUSE_CAP_READDIRPLUS);
    fuse_set_feature_flag(conn, FUSE_CAP_CACHE_SYMLINKS);
    fuse_unset_feature_flag(conn, FUSE_CAP_READDIRPLUS_AUTO);
    fuse_unset_feature_flag(conn, FUSE_CAP_EXPORT_SUPPORT);
    fuse_unset_feature_flag(conn, FUSE_CAP_SPLICE_READ);
#else
    conn->want |= conn->capable & (FUSE_CAP_READDIRPLUS | FUSE_CAP_CACHE_SYMLINKS);
    conn->want &= ~(unsigned)(FUSE_CAP_READDIRPLUS_AUTO | FUSE_CAP_EXPORT_SUPPORT | FUSE_CAP_SPLICE_READ);
#endif
    lfs_passthrough_init(m, conn);
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
        lfs_refuse(req, "lookup", node, name, -result);
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
        lfs_refuse(req, "getattr", node, NULL, -result);
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

/* Cutting a control file, or giving it times, a mode or an owner, means nothing and succeeds: cp -p and rsync -a do so after
 * the command has run, and their exit status is to be the command's. control_mode= sets the mode. What is published never
 * changes. */
static errint_t set_attributes(struct lfs_mount *m, struct lfs_node *node, const struct stat *st, int to_set,
                               struct fuse_file_info *fi) {
    if (m->options->read_only)
        return -EROFS;
    if (node->kind == LFS_NODE_STAGED)
        return lfs_staged_set(m, node, st, to_set, fi);
    return node->kind == LFS_NODE_CONTROL ? 0 : -EPERM;
}

/* Valid replies: attr, err. */
static void op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *st, int to_set, struct fuse_file_info *fi) {
    struct lfs_node *node = changeable_node_of(req, ino);
    bool times = to_set & (FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_MTIME_NOW);
    if (!node || (times && node->kind == LFS_NODE_BRANCH && lfs_copies_caught(req, node, NULL)))
        return;
    errint_t result = set_attributes(lfs_mount_of(req), node, st, to_set, fi);
    if (result < 0)
        lfs_refuse(req, "setattr", node, NULL, -result);
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

/* --- names: in a branch's storage a writer's (changes.h), of branches and tags the verbs' (names.c) --- */

int lfs_refusal(fuse_req_t req) { return lfs_mount_of(req)->options->read_only ? EROFS : EPERM; }

static void reply_entry(fuse_req_t req, const char *operation, const struct lfs_node *parent, const char *name,
                        errint_t result, const struct fuse_entry_param *e) {
    if (result < 0)
        lfs_refuse(req, operation, parent, name, -result);
    else if (fuse_reply_entry(req, e) != 0)
        lfs_nodes_forget(lfs_mount_of(req)->nodes, e->ino, 1);
}

/* Valid replies: entry, err. */
static void op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t dev) {
    struct lfs_node *node = changeable_node_of(req, parent);
    (void)mode;
    (void)dev;
    if (node)
        lfs_refuse(req, "mknod", node, name, lfs_refusal(req));
}

/* Valid replies: entry, err. */
static void op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode) {
    struct lfs_node *node = changeable_node_of(req, parent);
    struct fuse_entry_param e;
    if (node && lfs_is_stage(node))
        reply_entry(req, "mkdir", node, name, lfs_change_mkdir(lfs_mount_of(req), node, name, mode, &e), &e);
    else if (node)
        lfs_op_mkdir(req, parent, name, mode);
}

/* Valid replies: err. */
static void op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name) {
    struct lfs_node *node = changeable_node_of(req, parent);
    if (node && lfs_is_stage(node))
        lfs_op_unlink_in_stage(req, node, name);
    else if (node)
        lfs_op_unlink(req, parent, name);
}

/* Valid replies: entry, err. */
static void op_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name) {
    if (changeable_node_of(req, parent))
        lfs_op_symlink(req, target, parent, name);
}

/* Valid replies: err. */
static void op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name) {
    struct lfs_node *node = changeable_node_of(req, parent);
    if (node && lfs_is_stage(node))
        lfs_refuse(req, "rmdir", node, name, -lfs_change_rmdir(lfs_mount_of(req), node, name));
    else if (node)
        lfs_op_rmdir(req, parent, name);
}

/* Valid replies: err. */
static void op_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent, const char *new_name,
                      unsigned flags) {
    struct lfs_node *from = changeable_node_of(req, parent), *to = from ? changeable_node_of(req, new_parent) : NULL;
    if (to && lfs_is_stage(from) && lfs_is_stage(to))
        lfs_refuse(req, "rename", to, new_name, -lfs_change_rename(lfs_mount_of(req), from, name, to, new_name, flags));
    else if (to)
        lfs_op_rename(req, parent, name, new_parent, new_name, flags);
}

/* Valid replies: entry, err. */
static void op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t new_parent, const char *new_name) {
    struct lfs_node *node = node_of(req, ino), *to = node ? changeable_node_of(req, new_parent) : NULL;
    struct fuse_entry_param e;
    if (to)
        reply_entry(req, "link", to, new_name,
                    lfs_is_stage(to) ? lfs_change_link(lfs_mount_of(req), node, to, new_name, &e) : -lfs_refusal(req), &e);
}

/* Valid replies: create, err. */
static void op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, struct fuse_file_info *fi) {
    struct lfs_node *node = changeable_node_of(req, parent);
    if (!node || lfs_copies_caught(req, node, name))
        return;
    if (lfs_is_stage(node))
        lfs_op_create(req, parent, name, mode, fi);
    else
        lfs_refuse(req, "create", node, name, lfs_refusal(req));
}

/* Valid replies: err. */
static void op_fsyncdir(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi) {
    struct lfs_node *node = node_of(req, ino);
    (void)datasync;
    (void)fi;
    if (node)
        lfs_refuse(req, "fsync", node, NULL, -lfs_change_sync_directory(lfs_mount_of(req), node));
}

static void op_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value, size_t size, int flags) {
    (void)value;
    (void)size;
    (void)flags;
    struct lfs_node *node = changeable_node_of(req, ino);
    bool acl = strncmp(name, "system.", 7) == 0; /* cp -p then sets the mode alone, and does not fail */
    if (node)
        lfs_refuse(req, "setxattr", node, NULL, acl && node->kind == LFS_NODE_CONTROL ? EOPNOTSUPP : lfs_refusal(req));
}

static void op_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name) {
    struct lfs_node *node = changeable_node_of(req, ino);
    (void)name;
    if (node)
        lfs_refuse(req, "removexattr", node, NULL, lfs_refusal(req));
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
COUNTED(LFS_OP_POLL, lfs_op_poll, (fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, struct fuse_pollhandle *ph), (req, ino, fi, ph))
COUNTED(LFS_OP_RELEASE, lfs_op_release, (fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi), (req, ino, fi))
COUNTED(LFS_OP_OPENDIR, op_opendir, (fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi), (req, ino, fi))
COUNTED(LFS_OP_READDIR, lfs_op_readdir, (fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi), (req, ino, size, off, fi))
COUNTED(LFS_OP_READDIR, lfs_op_readdirplus, (fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi), (req, ino, size, off, fi))
COUNTED(LFS_OP_RELEASEDIR, lfs_op_releasedir, (fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi), (req, ino, fi))
COUNTED(LFS_OP_MKDIR, op_mkdir, (fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode), (req, parent, name, mode))
COUNTED(LFS_OP_RMDIR, op_rmdir, (fuse_req_t req, fuse_ino_t parent, const char *name), (req, parent, name))
COUNTED(LFS_OP_SYMLINK, op_symlink, (fuse_req_t req, const char *target, fuse_ino_t parent, const char *name), (req, target, parent, name))
COUNTED(LFS_OP_UNLINK, op_unlink, (fuse_req_t req, fuse_ino_t parent, const char *name), (req, parent, name))
COUNTED(LFS_OP_RENAME, op_rename, (fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent, const char *new_name, unsigned flags), (req, parent, name, new_parent, new_name, flags))
COUNTED(LFS_OP_CREATE, op_create, (fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, struct fuse_file_info *fi), (req, parent, name, mode, fi))
COUNTED(LFS_OP_LINK, op_link, (fuse_req_t req, fuse_ino_t ino, fuse_ino_t new_parent, const char *new_name), (req, ino, new_parent, new_name))
COUNTED(LFS_OP_FSYNC, lfs_op_fsync, (fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi), (req, ino, datasync, fi))
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
    .poll = counted_lfs_op_poll,
    .release = counted_lfs_op_release,
    .opendir = counted_op_opendir,
    .readdir = counted_lfs_op_readdir,
    .readdirplus = counted_lfs_op_readdirplus,
    .releasedir = counted_lfs_op_releasedir,
    .statfs = counted_op_statfs,
    .getxattr = counted_op_getxattr,
    .listxattr = counted_op_listxattr,
    .mknod = op_mknod,
    .mkdir = counted_op_mkdir,
    .unlink = counted_op_unlink,
    .rmdir = counted_op_rmdir,
    .symlink = counted_op_symlink,
    .rename = counted_op_rename,
    .link = counted_op_link,
    .create = counted_op_create,
    .setxattr = op_setxattr,
    .removexattr = op_removexattr,
    .fsync = counted_lfs_op_fsync,
    .fsyncdir = op_fsyncdir,
};
