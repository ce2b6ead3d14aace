/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libfuse 3.17 and later has an API for the two replies that passthrough needs. Before, a session may send its replies
 * itself (fuse_session_custom_io, 3.13): we complete the two on their way. Offsets and bits are the kernel's, of
 * include/uapi/linux/fuse.h, which never change.
 */
#include "fuse/passthrough.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "util/log.h"

#define WITH_API (FUSE_VERSION >= FUSE_MAKE_VERSION(3, 17))
#define WITH_HOOK (!WITH_API && FUSE_VERSION >= FUSE_MAKE_VERSION(3, 13))

struct backing_map { /* struct fuse_backing_map */
    int32_t fd;
    uint32_t flags;
    uint64_t padding;
};
#define BACKING_OPEN _IOW(229, 1, struct backing_map)
#define BACKING_CLOSE _IOW(229, 2, uint32_t)

enum { CAP_SYS_ADMIN_BIT = 21, OVERLAYFS_MAGIC = 0x794c7630 };

struct lfs_passthrough {
    enum lfs_passing wanted;
    pthread_mutex_t lock; /* guards `backing` and `opens` of all nodes, too */
    bool given_up;        /* the kernel said that it never will */
    bool told;            /* the log knows of files that could not be handed over */
    struct lfs_passthrough_counts counts;
};

struct lfs_passthrough *lfs_passthrough_new(enum lfs_passing wanted) {
    struct lfs_passthrough *p = calloc(1, sizeof *p);
    if (p) {
        p->wanted = wanted;
        pthread_mutex_init(&p->lock, NULL);
    }
    return p;
}

void lfs_passthrough_free(struct lfs_passthrough *p) {
    if (p)
        pthread_mutex_destroy(&p->lock);
    free(p);
}

void lfs_passthrough_count(struct lfs_passthrough *p, struct lfs_passthrough_counts *out) {
    pthread_mutex_lock(&p->lock);
    *out = p->counts;
    pthread_mutex_unlock(&p->lock);
}

/* --- can it be had? --- */

static bool may_administrate(void) {
    unsigned long long effective = 0;
    char line[256];
    FILE *status = fopen("/proc/self/status", "re");
    while (status && fgets(line, sizeof line, status))
        if (sscanf(line, "CapEff: %llx", &effective) == 1)
            break;
    if (status)
        fclose(status);
    return effective >> CAP_SYS_ADMIN_BIT & 1;
}

static bool is_kernel_new_enough(void) {
    struct utsname name;
    unsigned major = 0, minor = 0;
    return uname(&name) == 0 && sscanf(name.release, "%u.%u", &major, &minor) == 2 &&
           (major > 6 || (major == 6 && minor >= 9));
}

/* NULL when nothing is known that stands in the way. */
static const char *obstacle(void) {
    if (!WITH_API && !WITH_HOOK)
        return "it was built with a libfuse before 3.13";
    if (!is_kernel_new_enough())
        return "it needs Linux 6.9";
    return may_administrate() ? NULL : "only root's daemon may hand files to the kernel";
}

errint_t lfs_passthrough_check(enum lfs_passing wanted, struct lfs_error *err) {
    const char *why = wanted == LFS_PASS_ON ? obstacle() : NULL;
    return why ? lfs_fail(err, LFS_E_USAGE, "-o passthrough=on cannot be kept: %s; say passthrough=auto", why) : 0;
}

/* --- the two replies --- */

#if WITH_HOOK

/* struct fuse_init_out and struct fuse_open_out, which follow the header of a reply. */
enum {
    INIT_OUT_SIZE = 64,
    INIT_FLAGS = 12,
    INIT_FLAGS2 = 32,
    INIT_STACK_DEPTH = 36,
    OPEN_OUT_SIZE = 16,
    OPEN_FLAGS = 8,
    OPEN_BACKING = 12,
};
#define INIT_EXT (UINT32_C(1) << 30)
#define INIT2_PASSTHROUGH (UINT32_C(1) << 5) /* bit 37 of all */
#define OPEN_PASSTHROUGH (UINT32_C(1) << 7)

/* libfuse sends a reply in the thread that gives it, before the call returns: what this thread's next reply is to be
 * completed with. */
static _Thread_local struct {
    uint32_t stack_depth; /* the reply to INIT; 0 = it is none */
    int32_t backing;      /* the reply to an open; 0 = it is none */
} next_reply;

static void put_u32(uint8_t *at, uint32_t value) { memcpy(at, &value, sizeof value); }

static void or_u32(uint8_t *at, uint32_t bits) {
    uint32_t value;
    memcpy(&value, at, sizeof value);
    put_u32(at, value | bits);
}

static void complete_init(const struct iovec *out) {
    uint8_t *bytes = out->iov_base;
    if (out->iov_len != INIT_OUT_SIZE)
        return; /* a protocol before 7.23, which has no passthrough */
    or_u32(bytes + INIT_FLAGS, INIT_EXT);
    or_u32(bytes + INIT_FLAGS2, INIT2_PASSTHROUGH);
    put_u32(bytes + INIT_STACK_DEPTH, next_reply.stack_depth);
}

static ssize_t send_reply(int fd, struct iovec *iov, int count, void *userdata) {
    (void)userdata;
    if (count == 2 && next_reply.stack_depth) {
        complete_init(&iov[1]);
    } else if (count == 2 && next_reply.backing && iov[1].iov_len == OPEN_OUT_SIZE) {
        uint8_t *bytes = iov[1].iov_base;
        or_u32(bytes + OPEN_FLAGS, OPEN_PASSTHROUGH);
        put_u32(bytes + OPEN_BACKING, (uint32_t)next_reply.backing);
    }
    next_reply.stack_depth = 0;
    return writev(fd, iov, count);
}

static ssize_t receive(int fd, void *buffer, size_t size, void *userdata) {
    (void)userdata;
    return read(fd, buffer, size);
}

static bool hook(struct fuse_session *session) {
    static const struct fuse_custom_io io = {.writev = send_reply, .read = receive};
    return fuse_session_custom_io(session, &io, fuse_session_fd(session)) == 0;
}

static void ask_in_init(struct fuse_conn_info *conn, uint32_t stack_depth) {
    (void)conn;
    next_reply.stack_depth = stack_depth;
}

static int reply_open(fuse_req_t req, struct fuse_file_info *fi, int32_t backing) {
    next_reply.backing = backing;
    int result = fuse_reply_open(req, fi);
    next_reply.backing = 0;
    return result;
}

#elif WITH_API

static bool hook(struct fuse_session *session) { return session != NULL; }

static void ask_in_init(struct fuse_conn_info *conn, uint32_t stack_depth) {
    if (fuse_set_feature_flag(conn, FUSE_CAP_PASSTHROUGH))
        conn->max_backing_stack_depth = stack_depth - 1; /* libfuse adds one on the way to the kernel */
}

static int reply_open(fuse_req_t req, struct fuse_file_info *fi, int32_t backing) {
    fi->backing_id = backing;
    return fuse_reply_open(req, fi);
}

#else

static bool hook(struct fuse_session *session) { return !session; }

static void ask_in_init(struct fuse_conn_info *conn, uint32_t stack_depth) {
    (void)conn;
    (void)stack_depth;
}

static int reply_open(fuse_req_t req, struct fuse_file_info *fi, int32_t backing) {
    (void)backing;
    return fuse_reply_open(req, fi);
}

#endif

/* --- the session --- */

void lfs_passthrough_attach(struct lfs_mount *m) {
    struct lfs_passthrough *p = m->passthrough;
    const char *why = NULL;
    if (p->wanted != LFS_PASS_OFF)
        why = obstacle();
    if (p->wanted != LFS_PASS_OFF && !why && !hook(m->session))
        why = "libfuse does not let us complete its replies";
    if (why)
        lfs_log(LFS_LOG_INFO, "no passthrough, data files are read by the daemon: %s", why);
    p->given_up = why || p->wanted == LFS_PASS_OFF;
}

/* Backing files may lie on a file system that is stacked less deep than we say to be; two is the kernel's most, and then
 * no overlay can be made of the mount. So it is said only where it is needed: in containers the root is an overlay. */
void lfs_passthrough_init(struct lfs_mount *m, struct fuse_conn_info *conn) {
    struct statfs fs;
    bool stacked = fstatfs(lfs_dataset_root_fd(m->dataset), &fs) == 0 && fs.f_type == OVERLAYFS_MAGIC;
    if (!m->passthrough->given_up)
        ask_in_init(conn, stacked ? 2 : 1);
}

/* --- opens --- */

/* The kernel refuses all files, not this one: no permission, no such feature. */
static bool is_final(int error) { return error == EPERM || error == ENOTTY || error == ENOSYS; }

/* Gives the backing file's id, 0 when it is to be read by the daemon. With the lock held. */
static errint_t hand_over(struct lfs_mount *m, int fd) {
    struct lfs_passthrough *p = m->passthrough;
    struct backing_map map = {.fd = fd};
    int id = ioctl(fuse_session_fd(m->session), BACKING_OPEN, &map), error = errno;
    if (id > 0) {
        p->counts.backing++;
        return id;
    }
    bool last = is_final(error), strict = p->wanted == LFS_PASS_ON;
    if (!p->told || last)
        lfs_log(strict ? LFS_LOG_ERROR : LFS_LOG_INFO, "no passthrough, %sdata files %s: the kernel says \"%s\"",
                last ? "" : "some ", strict ? "cannot be opened" : "are read by the daemon", strerror(error));
    p->told = true;
    if (strict)
        return error ? -error : -EIO;
    p->given_up |= last;
    return 0;
}

errint_t lfs_passthrough_open(struct lfs_mount *m, struct lfs_handle *h, struct fuse_file_info *fi) {
    struct lfs_passthrough *p = m->passthrough;
    struct lfs_node *node = h->node;
    errint_t result = 0;
    pthread_mutex_lock(&p->lock);
    if (!node->opens && !p->given_up)
        result = hand_over(m, h->fd);
    if (result > 0)
        node->backing = result;
    if (result >= 0) {
        node->opens++;
        h->counted = true;
        h->passed = node->backing != 0;
        *(h->passed ? &p->counts.passed : &p->counts.read) += 1;
    }
    pthread_mutex_unlock(&p->lock);
    if (result < 0)
        return result;
    fi->keep_cache = !h->passed; /* the kernel takes it for a mistake on a file that it reads itself */
    if (h->passed) {
        close(h->fd);
        h->fd = -1;
    }
    return 0;
}

int lfs_passthrough_reply(fuse_req_t req, const struct lfs_handle *h, struct fuse_file_info *fi) {
    return h->passed ? reply_open(req, fi, h->node->backing) : fuse_reply_open(req, fi);
}

void lfs_passthrough_release(struct lfs_mount *m, struct lfs_handle *h) {
    struct lfs_passthrough *p = m->passthrough;
    if (!h->counted)
        return;
    pthread_mutex_lock(&p->lock);
    if (--h->node->opens == 0 && h->node->backing) {
        uint32_t id = (uint32_t)h->node->backing;
        ioctl(fuse_session_fd(m->session), BACKING_CLOSE, &id); /* behind an unmount the kernel has done so */
        h->node->backing = 0;
        p->counts.backing--;
    }
    pthread_mutex_unlock(&p->lock);
    h->counted = false;
}
