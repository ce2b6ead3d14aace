/* SPDX-License-Identifier: Apache-2.0 */
/* Open files: data, deletion and index files, manifests and transactions; what is staged and control files hand on. */
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "fuse/handles.h"
#include "fuse/images.h"
#include "fuse/mount.h"
#include "fuse/passthrough.h"
#include "fuse/removals.h"
#include "fuse/reply.h"
#include "fuse/staged.h"
#include "fuse/stats.h"
#include "fuse/texts.h"
#include "fuse/told.h"
#include "util/cleanup.h"
#include "util/log.h"

/* --- opening --- */

/* The file, where it was last found. What stands there now may be another one, or nothing: ESTALE makes the kernel look
 * the name up again. */
static int open_file(struct lfs_mount *m, const struct lfs_node *node) {
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    struct lfs_location location;
    struct lfs_error err;
    struct stat st;
    if (!arena || !lfs_nodes_location(m->nodes, node, arena, &location))
        return -ENOMEM;
    LFS_AUTO_FD fd = lfs_location_open(m->dataset, &location, &err);
    if (fd == -ENOENT || fd == -ENOTDIR)
        return -ESTALE;
    if (fd < 0)
        return fd;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (lfs_file_token(&st) != node->token)
        return -ESTALE;
    return LFS_STEAL_FD(fd);
}

static errint_t open_data(struct lfs_mount *m, const struct lfs_node *node, struct lfs_handle *h,
                          struct fuse_file_info *fi) {
    fi->noflush = 1;
    h->fd = open_file(m, node);
    return h->fd < 0 ? h->fd : lfs_passthrough_open(m, h, fi);
}

static errint_t open_rendered(struct lfs_mount *m, const struct lfs_node *node, struct lfs_handle *h) {
    struct lfs_rendered_info info;
    enum lfs_rendered_kind kind =
        node->parent->kind == LFS_NODE_VERSIONS ? LFS_RENDER_MANIFEST : LFS_RENDER_TRANSACTION;
    errint_t result = lfs_views_open(m->views, node->branch->dir, kind, node->name, &h->rendered, &h->fd, &info, NULL);
    if (result == -ENOENT || (result == 0 && lfs_file_token(&info.st) != node->token))
        return -ESTALE;
    return result;
}

static errint_t open_hint(struct lfs_mount *m, const struct lfs_node *node, struct lfs_handle *h) {
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    const char *dir = node->branch->dir;
    char *directory = arena ? lfs_sprintf(arena, "%s%s_versions", dir, *dir ? "/" : "") : NULL;
    if (!directory)
        return -ENOMEM;
    struct lfs_location location = {true, directory, node->name};
    h->fd = lfs_location_open(m->dataset, &location, NULL);
    return h->fd < 0 ? h->fd : 0;
}

/* It may have come back: then the name leads to another node. */
static errint_t open_unreached(struct lfs_mount *m, const struct lfs_node *node) {
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    struct lfs_view_entry entry;
    const struct lfs_node *parent = node->parent;
    char *path = arena ? lfs_join(arena, parent->text, node->name) : NULL;
    if (!path)
        return -ENOMEM;
    errint_t result = lfs_views_find(m->views, node->branch->dir, parent->file_kind, path, arena, &entry, NULL);
    return result < 0 || entry.reached ? -ESTALE : entry.cause;
}

static errint_t open_node(struct lfs_mount *m, const struct lfs_node *node, struct lfs_handle *h,
                          struct fuse_file_info *fi) {
    switch (node->kind) {
    case LFS_NODE_FILE: return open_data(m, node, h, fi);
    case LFS_NODE_RENDERED:
        fi->keep_cache = 1;
        fi->noflush = 1;
        return open_rendered(m, node, h);
    case LFS_NODE_TEXT:
        fi->keep_cache = 1;
        fi->noflush = 1;
        return lfs_text_of(m, node, &h->text);
    case LFS_NODE_IMAGE_FILE:
        fi->keep_cache = 1;
        fi->noflush = 1;
        return lfs_image_open(m, node, h);
    case LFS_NODE_HINT: fi->noflush = 1; return open_hint(m, node, h);
    case LFS_NODE_UNREACHED: return open_unreached(m, node);
    default: return -EISDIR;
    }
}

/* Valid replies: open, err. */
void lfs_op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi) {
    struct lfs_mount *m = lfs_mount_of(req);
    struct lfs_node *node = lfs_nodes_find(m->nodes, ino);
    if (!node) {
        fuse_reply_err(req, ESTALE);
        return;
    }
    if (node->kind == LFS_NODE_CONTROL) {
        lfs_control_open(m, req, node, fi);
        return;
    }
    if (((fi->flags & O_ACCMODE) != O_RDONLY || fi->flags & O_TRUNC) &&
        (m->options->read_only || node->kind != LFS_NODE_STAGED)) {
        /* what is published never changes, and what no storage holds cannot */
        lfs_refuse(req, "open", node, NULL, m->options->read_only || node->kind == LFS_NODE_IMAGE_FILE ? EROFS : EPERM);
        return;
    }
    if (node->kind == LFS_NODE_TEXT && lfs_text_is_slow(lfs_text_place(node), node->text)) {
        lfs_text_open(m, req, node, fi);
        return;
    }
    struct lfs_handle *h = lfs_handle_new(m, node);
    if (!h) {
        fuse_reply_err(req, ENOMEM);
        return;
    }
    errint_t result = node->kind == LFS_NODE_STAGED ? lfs_staged_open(m, node, h, fi) : open_node(m, node, h, fi);
    fi->fh = (uintptr_t)h;
    if (result == 0 && node->parent && node->parent->kind == LFS_NODE_VERSIONS)
        lfs_removals_read(m, node->branch, fuse_req_ctx(req)->pid);
    if (result < 0)
        lfs_refuse(req, "open", node, NULL, -result);
    if (result < 0 || lfs_passthrough_reply(req, h, fi) == -ENOENT)
        lfs_handle_free(m, h);
}

static void read_memory(struct lfs_mount *m, fuse_req_t req, const struct lfs_handle *h, size_t size, off_t off) {
    const uint8_t *bytes = h->text ? h->text->bytes : h->image ? h->image_bytes : h->rendered->bytes;
    size_t all = h->text ? h->text->size : h->image ? h->image_size : h->rendered->size,
           start = off < 0 || (size_t)off > all ? all : (size_t)off;
    size = size < all - start ? size : all - start;
    lfs_stats_read(m->stats, h->rendered || h->image ? LFS_READ_RENDERED : LFS_READ_TEXT, size);
    lfs_reply_bytes(req, size ? lfs_reply_copy(bytes + start, size) : "", size);
}

static errint_t read_fully(int fd, char *buffer, size_t size, off_t off) {
    size_t done = 0;
    while (done < size) {
        ssize_t n = pread(fd, buffer + done, size - done, off + (off_t)done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        done += (size_t)n;
    }
    return (errint_t)done;
}

/* Where the kernel reads itself it still asks here for what posix_fadvise(2) wants read ahead. Nobody waits for it. */
static errint_t read_stored(struct lfs_mount *m, const struct lfs_handle *h, char *buffer, size_t size, off_t off) {
    if (!h->passed)
        return read_fully(h->fd, buffer, size, off);
    LFS_AUTO_FD fd = open_file(m, h->node);
    return fd < 0 ? fd : read_fully(fd, buffer, size, off);
}

/* Valid replies: buf, err. */
void lfs_op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi) {
    struct lfs_mount *m = lfs_mount_of(req);
    struct lfs_handle *h = (struct lfs_handle *)(uintptr_t)fi->fh;
    (void)ino;
    if (h->control) {
        lfs_control_read(m, req, size, off, fi);
        return;
    }
    if (h->rendered || h->text || h->image) {
        read_memory(m, req, h, size, off);
        return;
    }
    char *buffer = lfs_reply_buffer(size);
    if (!buffer) {
        fuse_reply_err(req, ENOMEM);
        return;
    }
    errint_t done = read_stored(m, h, buffer, size, off);
    if (done < 0) {
        lfs_refuse(req, "read", h->node, NULL, -done);
        return;
    }
    lfs_stats_read(m->stats, LFS_READ_STORED, (size_t)done);
    fuse_reply_buf(req, buffer, (size_t)done);
}

/* Valid replies: write, err. */
void lfs_op_write(fuse_req_t req, fuse_ino_t ino, const char *bytes, size_t size, off_t off, struct fuse_file_info *fi) {
    struct lfs_handle *h = (struct lfs_handle *)(uintptr_t)fi->fh;
    (void)ino;
    if (h->control)
        lfs_control_write(req, h, bytes, size, off, fi);
    else if (h->writes)
        lfs_staged_write(req, h, bytes, size, off);
    else
        fuse_reply_err(req, EBADF);
}

/* Valid replies: err. */
void lfs_op_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi) {
    struct lfs_handle *h = (struct lfs_handle *)(uintptr_t)fi->fh;
    (void)ino;
    if (h->control)
        lfs_control_flush(req, h, fi);
    else
        fuse_reply_err(req, -lfs_staged_flush(lfs_mount_of(req), h));
}

/* Valid replies: err. */
void lfs_op_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi) {
    struct lfs_mount *m = lfs_mount_of(req);
    struct lfs_handle *h = (struct lfs_handle *)(uintptr_t)fi->fh;
    (void)ino;
    if (h->control) {
        lfs_control_release(m, req, h);
        return;
    }
    lfs_handle_free(m, h);
    fuse_reply_err(req, 0);
}

/* What is no control file never makes anybody wait. Valid replies: poll, err. */
void lfs_op_poll(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, struct fuse_pollhandle *ph) {
    struct lfs_handle *h = (struct lfs_handle *)(uintptr_t)fi->fh;
    (void)ino;
    if (h->control) {
        lfs_control_poll(req, h, ph);
        return;
    }
    if (ph)
        fuse_pollhandle_destroy(ph);
    fuse_reply_poll(req, POLLIN | POLLRDNORM | POLLOUT | POLLWRNORM);
}
