/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernel passthrough (Linux 6.9 and later): a data file is handed to the kernel as a backing file when it is opened, and
 * reads and mappings of it never come to the daemon. All that is known of it stands in passthrough.c.
 *
 * The kernel's rules: one backing file for an inode while any open of it exists, and no open of it that reads through
 * the daemon beside one that does not. So it is decided for a node by its first open, and kept until the last is closed.
 */
#ifndef LFS_FUSE_PASSTHROUGH_H
#define LFS_FUSE_PASSTHROUGH_H

#include "fuse/handles.h"

struct lfs_passthrough;

struct lfs_passthrough_counts {
    uint64_t passed, read; /* opens of data files whose reads the kernel answers, and the others */
    size_t backing;        /* files that the kernel holds for us now */
};

struct lfs_passthrough *lfs_passthrough_new(enum lfs_passing wanted); /* NULL when memory is short */
void lfs_passthrough_free(struct lfs_passthrough *p);

/* Before mounting. LFS_E_USAGE when -o passthrough=on cannot be kept. */
errint_t lfs_passthrough_check(enum lfs_passing wanted, struct lfs_error *err);
/* Behind fuse_session_mount. What cannot be had is said in the log, and data files are read by the daemon. */
void lfs_passthrough_attach(struct lfs_mount *m);
/* In INIT. */
void lfs_passthrough_init(struct lfs_mount *m, struct fuse_conn_info *conn);

/* Of a data file's open, whose `fd` is open: hand it to the kernel, and close it here then. Without passthrough `fi` says
 * that the kernel may keep what it has read. An error only where -o passthrough=on cannot be kept. */
errint_t lfs_passthrough_open(struct lfs_mount *m, struct lfs_handle *h, struct fuse_file_info *fi);
/* fuse_reply_open for any open. */
int lfs_passthrough_reply(fuse_req_t req, const struct lfs_handle *h, struct fuse_file_info *fi);
/* The end of a handle that lfs_passthrough_open took in; of others: nothing. */
void lfs_passthrough_release(struct lfs_mount *m, struct lfs_handle *h);

void lfs_passthrough_count(struct lfs_passthrough *p, struct lfs_passthrough_counts *out);

#endif
