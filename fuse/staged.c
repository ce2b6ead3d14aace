/* SPDX-License-Identifier: Apache-2.0 */
#include "fuse/staged.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuse/tag_refs.h"
#include "fuse/told.h"
#include "store/file.h"
#include "util/cleanup.h"

/* A file that some handle may write to. */
struct open_file {
    dev_t dev;
    ino_t ino;
    unsigned handles;
    int fd; /* of one of them: stat of a file that has no name any more goes by it */
    struct open_file *next;
};

struct lfs_stage {
    pthread_mutex_t lock;
    struct open_file *first;
};

struct lfs_stage *lfs_stage_new(void) {
    struct lfs_stage *stage = calloc(1, sizeof *stage);
    if (stage)
        pthread_mutex_init(&stage->lock, NULL);
    return stage;
}

void lfs_stage_free(struct lfs_stage *stage) {
    if (!stage)
        return;
    for (struct open_file *f = stage->first, *next; f; f = next) {
        next = f->next;
        close(f->fd);
        free(f);
    }
    pthread_mutex_destroy(&stage->lock);
    free(stage);
}

/* --- which files are being written --- */

/* With the lock held. */
static struct open_file **find(struct lfs_stage *stage, dev_t dev, ino_t ino) {
    struct open_file **at = &stage->first;
    while (*at && ((*at)->dev != dev || (*at)->ino != ino))
        at = &(*at)->next;
    return at;
}

static errint_t note_open(struct lfs_stage *stage, int fd) {
    struct stat st;
    struct open_file *fresh = calloc(1, sizeof *fresh);
    int own = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (!fresh || own < 0 || fstat(fd, &st) < 0) {
        errint_t result = !fresh ? -ENOMEM : -errno;
        free(fresh);
        if (own >= 0)
            close(own);
        return result;
    }
    *fresh = (struct open_file){st.st_dev, st.st_ino, 1, own, NULL};
    pthread_mutex_lock(&stage->lock);
    struct open_file **at = find(stage, st.st_dev, st.st_ino);
    if (*at) {
        (*at)->handles++;
    } else {
        *at = LFS_STEAL_PTR(fresh);
        own = -1;
    }
    pthread_mutex_unlock(&stage->lock);
    free(fresh);
    if (own >= 0)
        close(own);
    return 0;
}

static void note_close(struct lfs_stage *stage, int fd) {
    struct stat st;
    struct open_file *last = NULL;
    if (fstat(fd, &st) < 0)
        return;
    pthread_mutex_lock(&stage->lock);
    struct open_file **at = find(stage, st.st_dev, st.st_ino);
    if (*at && --(*at)->handles == 0) {
        last = *at;
        *at = last->next;
    }
    pthread_mutex_unlock(&stage->lock);
    if (last)
        close(last->fd);
    free(last);
}

void lfs_staged_release(struct lfs_mount *m, const struct lfs_handle *h) {
    if (h->writes)
        note_close(m->stage, h->fd);
}

static bool is_open(struct lfs_stage *stage, const struct stat *st) {
    pthread_mutex_lock(&stage->lock);
    bool open = *find(stage, st->st_dev, st->st_ino) != NULL;
    pthread_mutex_unlock(&stage->lock);
    return open;
}

/* --- names --- */

bool lfs_is_stage(const struct lfs_node *directory) {
    if (directory->branch && directory->branch->version)
        return false; /* the past does not change */
    return directory->kind == LFS_NODE_FILES || directory->kind == LFS_NODE_VERSIONS ||
           directory->kind == LFS_NODE_TRANSACTIONS || lfs_is_tag_refs(directory);
}

char *lfs_stage_directory(const struct lfs_node *directory, struct lfs_arena *arena) {
    if (directory->kind == LFS_NODE_TEXTS)
        return lfs_strdup(arena, LFS_TAG_REFS); /* the data set's: no branch has one of its own */
    const char *dir = directory->branch->dir, *below = directory->kind == LFS_NODE_FILES ? directory->text : "";
    const char *part = directory->kind == LFS_NODE_VERSIONS       ? "_versions"
                       : directory->kind == LFS_NODE_TRANSACTIONS ? "_transactions"
                                                                  : lfs_kind_directory[directory->file_kind];
    return lfs_sprintf(arena, "%s%s%s%s%s", dir, *dir ? "/" : "", part, *below ? "/" : "", below);
}

static char *path_of(const struct lfs_node *parent, const char *name, struct lfs_arena *arena) {
    char *directory = lfs_stage_directory(parent, arena);
    return directory ? lfs_sprintf(arena, "%s/%s", directory, name) : NULL;
}

bool lfs_is_stage_name(const struct lfs_node *directory, const char *name) {
    if (name[0] == '.')
        return strncmp(name, ".tmp", 4) == 0; /* rsync's ".x.lance.a1B2c3" must not become a version by its rename */
    return directory->kind == LFS_NODE_FILES || strchr(name, '#') ||
           (directory->kind == LFS_NODE_TEXTS && !lfs_is_tag_ref_name(name));
}

bool lfs_is_staged(struct lfs_mount *m, const char *name, const struct stat *st) {
    return name[0] == '.' || strchr(name, '#') || is_open(m->stage, st);
}

static struct lfs_node *node_of(struct lfs_mount *m, struct lfs_node *parent, const char *name, const struct stat *st) {
    uint64_t identity[2] = {(uint64_t)st->st_dev, st->st_ino};
    struct lfs_node_spec spec = {.kind = LFS_NODE_STAGED,
                                 .parent = parent,
                                 .name = name,
                                 .token = lfs_hash(identity, sizeof identity, 5)};
    return lfs_nodes_look_up(m->nodes, &spec);
}

errint_t lfs_staged_look_up(struct lfs_mount *m, struct lfs_node *parent, const char *name, struct lfs_node **out) {
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    struct stat st;
    char *path = arena ? path_of(parent, name, arena) : NULL;
    if (!path)
        return -ENOMEM;
    LFS_AUTO_FD fd = lfs_dataset_open_beneath(m->dataset, path, O_PATH | O_NOFOLLOW);
    if (fd < 0 || fstat(fd, &st) < 0)
        return fd < 0 ? fd : -errno;
    bool found = S_ISREG(st.st_mode) &&
                 (parent->kind == LFS_NODE_TEXTS ? lfs_is_stage_name(parent, name) : lfs_is_staged(m, name, &st));
    if (!found)
        return -ENOENT;
    *out = node_of(m, parent, name, &st);
    return *out ? 0 : -ENOMEM;
}

/* --- the file behind a node --- */

static bool is_file_of(const struct lfs_node *node, const struct stat *st) {
    uint64_t identity[2] = {(uint64_t)st->st_dev, st->st_ino};
    return S_ISREG(st->st_mode) && lfs_hash(identity, sizeof identity, 5) == node->token;
}

/* One that has been renamed or removed since is reached as long as somebody has it open. */
static int reach_open(struct lfs_mount *m, const struct lfs_node *node) {
    int fd = -ESTALE;
    pthread_mutex_lock(&m->stage->lock);
    for (struct open_file *f = m->stage->first; f && fd < 0; f = f->next) {
        struct stat st = {.st_dev = f->dev, .st_ino = f->ino, .st_mode = S_IFREG};
        if (is_file_of(node, &st))
            fd = fcntl(f->fd, F_DUPFD_CLOEXEC, 3);
    }
    pthread_mutex_unlock(&m->stage->lock);
    return fd == -1 ? -errno : fd;
}

int lfs_staged_reach(struct lfs_mount *m, const struct lfs_node *node, int flags) {
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    struct stat st;
    char *path = arena ? path_of(node->parent, node->name, arena) : NULL;
    if (!path)
        return -ENOMEM;
    int careful = flags & O_PATH ? 0 : O_NONBLOCK; /* a fifo must not hold the daemon */
    LFS_AUTO_FD fd = lfs_open_beneath(lfs_dataset_root_fd(m->dataset), path, flags | O_CLOEXEC | O_NOFOLLOW | careful, 0);
    if (fd >= 0 && fstat(fd, &st) == 0 && is_file_of(node, &st))
        return LFS_STEAL_FD(fd);
    return fd < 0 && fd != -ENOENT ? fd : reach_open(m, node);
}

errint_t lfs_staged_attributes(struct lfs_mount *m, struct lfs_node *node, struct stat *st) {
    ino_t ino = st->st_ino;
    LFS_AUTO_FD fd = lfs_staged_reach(m, node, O_PATH);
    if (fd < 0)
        return fd;
    if (fstat(fd, st) < 0)
        return -errno;
    st->st_ino = ino;
    return 0;
}

/* --- operations --- */

/* A commit names only what is on the disk: with `sync` a file is flushed when its writer closes it. Manifests, transactions
 * and tags are not: what is published of them is made anew, and flushed by the commit. */
static bool flushes(const struct lfs_mount *m, const struct lfs_node *node) {
    return m->settings.sync && node->parent->kind == LFS_NODE_FILES;
}

errint_t lfs_staged_open(struct lfs_mount *m, const struct lfs_node *node, struct lfs_handle *h,
                         struct fuse_file_info *fi) {
    bool writes = (fi->flags & O_ACCMODE) != O_RDONLY;
    fi->noflush = !writes || !flushes(m, node);
    h->fd = lfs_staged_reach(m, node, (writes ? O_RDWR : O_RDONLY) | (fi->flags & O_TRUNC));
    if (h->fd < 0)
        return h->fd;
    h->writes = writes;
    errint_t result = writes ? note_open(m->stage, h->fd) : 0;
    h->writes = writes && result == 0;
    return result;
}

void lfs_staged_write(fuse_req_t req, struct lfs_handle *h, const char *bytes, size_t size, off_t off) {
    size_t done = 0;
    while (done < size) {
        ssize_t n = pwrite(h->fd, bytes + done, size - done, off + (off_t)done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            break;
        done += (size_t)n;
    }
    atomic_store(&h->dirty, true);
    if (done)
        fuse_reply_write(req, done);
    else
        fuse_reply_err(req, size ? errno : 0);
}

errint_t lfs_staged_flush(struct lfs_mount *m, const struct lfs_handle *h) {
    struct lfs_handle *own = (struct lfs_handle *)h;
    const struct lfs_node *directory = h->node->parent;
    if (!h->writes || !flushes(m, h->node) || !atomic_exchange(&own->dirty, false))
        return 0;
    if (fdatasync(h->fd) < 0)
        return -errno;
    if (!*directory->text)
        return 0; /* its name is flushed by the commit */
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    struct lfs_error err;
    char *path = arena ? lfs_stage_directory(directory, arena) : NULL;
    return path ? lfs_sync_dir(lfs_dataset_root_fd(m->dataset), path, &err) : -ENOMEM;
}

void lfs_op_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi) {
    const struct lfs_handle *h = (const struct lfs_handle *)(uintptr_t)fi->fh;
    (void)ino;
    int result = h->fd < 0 ? 0 : datasync ? fdatasync(h->fd) : fsync(h->fd);
    fuse_reply_err(req, result < 0 && errno != EINVAL && errno != EROFS ? errno : 0);
}

static errint_t check_new_name(struct lfs_mount *m, const struct lfs_node *parent, const char *name,
                               struct lfs_arena *arena) {
    struct lfs_view_entry entry;
    if (m->options->read_only)
        return -EROFS;
    if (!lfs_is_stage(parent) || !lfs_is_stage_name(parent, name))
        return -EPERM;
    if (parent->kind != LFS_NODE_FILES || name[0] == '.')
        return 0;
    char *path = lfs_join(arena, parent->text, name);
    if (!path)
        return -ENOMEM;
    return lfs_views_find(m->views, parent->branch->dir, parent->file_kind, path, arena, &entry, NULL) == 0 ? -EEXIST : 0;
}

/* A file that somebody else makes through root's daemon is theirs. */
static errint_t give_to(fuse_req_t req, int fd) {
    const struct fuse_ctx *who = fuse_req_ctx(req);
    if (geteuid() != 0 || (who->uid == 0 && who->gid == 0))
        return 0;
    return fchown(fd, who->uid, who->gid) < 0 ? -errno : 0;
}

/* The handle and the node of a new file, whose descriptor is taken over. */
static errint_t take_in(struct lfs_mount *m, struct lfs_node *parent, const char *name, int fd, struct lfs_handle **out,
                        struct fuse_entry_param *e) {
    LFS_AUTO_FD own = fd;
    struct stat st;
    struct lfs_node *node = fstat(own, &st) == 0 ? node_of(m, parent, name, &st) : NULL;
    struct lfs_handle *h = node ? lfs_handle_new(m, node) : NULL;
    if (h) {
        h->fd = LFS_STEAL_FD(own);
        h->writes = note_open(m->stage, h->fd) == 0;
        *out = h;
        *e = (struct fuse_entry_param){.ino = node->id, .generation = 1, .attr = st};
        e->attr.st_ino = node->st_ino;
        if (h->writes)
            return 0;
        lfs_handle_free(m, h);
    }
    if (node)
        lfs_nodes_forget(m->nodes, node->id, 1);
    return -ENOMEM;
}

errint_t lfs_staged_expect_branch(struct lfs_mount *m, const struct lfs_node *branch) {
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    if (!arena)
        return -ENOMEM;
    char *versions = lfs_join(arena, branch->dir, "_versions");
    LFS_AUTO_FD fd = versions ? lfs_dataset_open_beneath(m->dataset, versions, O_PATH | O_DIRECTORY) : -ENOMEM;
    return fd == -ENOENT ? -ESTALE : fd < 0 ? fd : 0;
}

static errint_t create(fuse_req_t req, struct lfs_node *parent, const char *name, mode_t mode, int flags,
                       struct lfs_handle **out, struct fuse_entry_param *e) {
    struct lfs_mount *m = lfs_mount_of(req);
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    struct lfs_error err;
    if (!arena)
        return -ENOMEM;
    LFS_TRY(check_new_name(m, parent, name, arena));
    char *directory = lfs_stage_directory(parent, arena), *path = path_of(parent, name, arena);
    if (!directory || !path)
        return -ENOMEM;
    int root = lfs_dataset_root_fd(m->dataset);
    LFS_TRY(lfs_staged_expect_branch(m, parent->branch));
    if (parent->kind != LFS_NODE_FILES || !*parent->text)
        LFS_TRY(lfs_make_dirs(root, directory, m->settings.sync, &err));
    /* a name that a lookup has not found may have come meanwhile: never opened by accident */
    int fd = lfs_open_beneath(root, path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode & 07777);
    if (fd < 0)
        return fd == -EEXIST && !(flags & O_EXCL) ? -ESTALE : fd;
    errint_t result = give_to(req, fd);
    if (result < 0)
        close(fd);
    else
        result = take_in(m, parent, name, fd, out, e);
    if (result < 0)
        unlinkat(root, path, 0);
    return result;
}

/* Valid replies: create, err. */
void lfs_op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, struct fuse_file_info *fi) {
    struct lfs_mount *m = lfs_mount_of(req);
    struct lfs_node *node = lfs_nodes_find(m->nodes, parent);
    struct lfs_handle *h = NULL;
    struct fuse_entry_param e;
    errint_t result = node ? create(req, node, name, mode, fi->flags, &h, &e) : -ESTALE;
    if (result < 0) {
        lfs_refuse(req, "create", node, name, -result);
        return;
    }
    fi->fh = (uintptr_t)h;
    fi->noflush = !flushes(m, h->node);
    if (fuse_reply_create(req, &e, fi) == -ENOENT) {
        lfs_handle_free(m, h);
        lfs_nodes_forget(m->nodes, e.ino, 1);
    }
}

static errint_t set_times(int fd, const struct stat *to, int which) {
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_nsec = UTIME_OMIT}};
    if (which & FUSE_SET_ATTR_ATIME)
        times[0] = to->st_atim;
    if (which & FUSE_SET_ATTR_MTIME)
        times[1] = to->st_mtim;
    if (which & FUSE_SET_ATTR_ATIME_NOW)
        times[0].tv_nsec = UTIME_NOW;
    if (which & FUSE_SET_ATTR_MTIME_NOW)
        times[1].tv_nsec = UTIME_NOW;
    return futimens(fd, times) < 0 ? -errno : 0;
}

errint_t lfs_staged_set(struct lfs_mount *m, struct lfs_node *node, const struct stat *to, int which,
                        struct fuse_file_info *fi) {
    const struct lfs_handle *h = fi ? (const struct lfs_handle *)(uintptr_t)fi->fh : NULL;
    LFS_AUTO_FD own = h && h->fd >= 0 ? -1 : lfs_staged_reach(m, node, which & FUSE_SET_ATTR_SIZE ? O_RDWR : O_RDONLY);
    int fd = h && h->fd >= 0 ? h->fd : own;
    if (fd < 0)
        return fd;
    if (which & FUSE_SET_ATTR_SIZE && ftruncate(fd, to->st_size) < 0)
        return -errno;
    if (which & FUSE_SET_ATTR_MODE && fchmod(fd, to->st_mode & 07777) < 0)
        return -errno;
    if (which & (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID) &&
        fchown(fd, which & FUSE_SET_ATTR_UID ? to->st_uid : (uid_t)-1, which & FUSE_SET_ATTR_GID ? to->st_gid : (gid_t)-1) < 0)
        return -errno;
    if (which & (FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_ATIME_NOW | FUSE_SET_ATTR_MTIME_NOW))
        return set_times(fd, to, which);
    return 0;
}
