/* SPDX-License-Identifier: Apache-2.0 */
#include "fuse/told.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "util/cleanup.h"
#include "util/log.h"

enum { LINES_PER_SECOND = 20 };

/* Answers that programs ask for, not failures. */
static bool is_everyday(int error) {
    switch (error) {
    case ENOENT:
    case EEXIST:
    case ENOTEMPTY:
    case EISDIR:
    case ENOTDIR:
    case ENODATA:
    case ERANGE:
    case EINTR:
    case EAGAIN:
    case EXDEV:
    case EOPNOTSUPP: return true;
    default: return false;
    }
}

static bool may_say(const char *operation, const struct lfs_node *node, int error) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct {
        const char *operation;
        uint64_t node;
        int error;
    } last;
    static time_t second;
    static unsigned lines;
    uint64_t id = node ? node->id : 0;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    pthread_mutex_lock(&lock);
    bool again = now.tv_sec == second && last.operation == operation && last.node == id && last.error == error;
    if (now.tv_sec != second)
        lines = 0;
    second = now.tv_sec;
    last.operation = operation;
    last.node = id;
    last.error = error;
    bool may = !again && lines < LINES_PER_SECOND;
    lines += may;
    pthread_mutex_unlock(&lock);
    return may;
}

static const char *cause_of(fuse_req_t req, int error) {
    if (error == EROFS)
        return lfs_mount_of(req)->options->read_only
                   ? "the mount is read only (-o ro)"
                   : "versions, tags, previews and conflicts are read only: write to a branch in tree/";
    if (error == EPERM)
        return "what is published never changes, and new files here are those of a Lance writer: branches and tags are "
               "made "
               "by mkdir, mv, rmdir, ln -s and the control files, see lancefs-control(5)";
    if (error == ESTALE)
        return "what had this name has been replaced since it was looked up";
    return strerror(error);
}

static size_t add_name(char *out, size_t size, size_t n, const char *name) {
    size_t length = strlen(name);
    if (length == 0)
        return n;
    if (n && n + 1 < size)
        out[n++] = '/';
    length = length < size - 1 - n ? length : size - 1 - n;
    memcpy(out + n, name, length);
    out[n + length] = '\0';
    return n + length;
}

/* "tree/main/.versions/3": what is known of the path, from the root down. A stored file has many: where it lies, in the data
 * set or outside. */
static size_t add_path(struct lfs_mount *m, const struct lfs_node *node, char *out, size_t size) {
    if (node->parent)
        return add_name(out, size, add_path(m, node->parent, out, size), node->name);
    LFS_AUTO_ARENA *arena = node->kind == LFS_NODE_FILE ? lfs_arena_new() : NULL;
    struct lfs_location at;
    if (!arena || !lfs_nodes_location(m->nodes, node, arena, &at))
        return 0;
    return add_name(out, size, add_name(out, size, 0, at.directory), at.name);
}

void lfs_told(fuse_req_t req, const char *operation, const struct lfs_node *node, const char *name, int error,
              const char *cause) {
    char path[1024] = "", shown[1100], why[600];
    if (is_everyday(error) || !may_say(operation, node, error))
        return;
    size_t n = node ? add_path(lfs_mount_of(req), node, path, sizeof path - NAME_MAX - 2) : 0;
    if (name)
        snprintf(path + n, sizeof path - n, "%s%.*s", n ? "/" : "", NAME_MAX, name);
    if (!cause)
        cause = cause_of(req, error);
    bool refused = error == EPERM || error == EROFS;
    lfs_log(refused ? LFS_LOG_INFO : LFS_LOG_WARNING, "operation=%s path=%s errno=%d cause=%s", operation,
            lfs_log_quote(shown, sizeof shown, path, strlen(path)), error,
            lfs_log_quote(why, sizeof why, cause, strlen(cause)));
}

void lfs_refuse(fuse_req_t req, const char *operation, const struct lfs_node *node, const char *name, int error) {
    if (error)
        lfs_told(req, operation, node, name, error, NULL);
    fuse_reply_err(req, error);
}
