/* SPDX-License-Identifier: Apache-2.0 */
#include "fuse/copies.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "fuse/callers.h"
#include "fuse/control.h"
#include "table/homes.h"
#include "util/cleanup.h"
#include "util/log.h"
#include "verbs/names.h"

enum { MADE_MAX = 64, ANCESTORS_MAX = 8, ARGUMENT_BYTES_MAX = 65536, ARGUMENTS_MAX = 256 };

/* A branch that a process which may still run has made. */
struct made {
    char *branch, *uuid;
    struct lfs_caller maker;
    bool caught; /* it was one of a copy and was taken back: tar makes it again */
};

struct lfs_copies {
    pthread_mutex_t lock;
    struct made list[MADE_MAX]; /* the newest last */
    size_t count;
};

struct lfs_copies *lfs_copies_new(void) {
    struct lfs_copies *copies = calloc(1, sizeof *copies);
    if (copies)
        pthread_mutex_init(&copies->lock, NULL);
    return copies;
}

/* With the lock held. */
static void drop(struct lfs_copies *copies, size_t i) {
    free(copies->list[i].branch);
    free(copies->list[i].uuid);
    copies->count--;
    memmove(&copies->list[i], &copies->list[i + 1], (copies->count - i) * sizeof *copies->list);
}

void lfs_copies_free(struct lfs_copies *copies) {
    if (!copies)
        return;
    while (copies->count)
        drop(copies, copies->count - 1);
    pthread_mutex_destroy(&copies->lock);
    free(copies);
}

/* The maker itself, or what it has forked to copy for it (rsync). What another program does that it started, say an editor's
 * swap file, is no copy. */
static bool comes_from(pid_t tid, const struct lfs_caller *maker) {
    struct lfs_caller p = {.parent = lfs_caller_of(tid)};
    if (!lfs_caller_runs_same(p.parent, maker->pid))
        return false;
    for (int i = 0; i < ANCESTORS_MAX && p.parent > 1; i++) {
        if (!lfs_caller_read(p.parent, &p))
            return false;
        if (lfs_caller_is_same(&p, maker))
            return true;
    }
    return false;
}

/* --- what was made --- */

void lfs_copies_made(struct lfs_mount *m, const char *branch, pid_t tid) {
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    struct lfs_copies *copies = m->copies;
    struct lfs_branch b;
    struct lfs_caller maker, now;
    if (!arena || !lfs_caller_read(lfs_caller_of(tid), &maker) || lfs_dataset_branch(m->dataset, arena, branch, &b, NULL) < 0)
        return;
    pthread_mutex_lock(&copies->lock);
    for (size_t i = copies->count; i-- > 0;) /* whoever has ended copies nothing */
        if (!lfs_caller_read(copies->list[i].maker.pid, &now) || !lfs_caller_is_same(&now, &copies->list[i].maker))
            drop(copies, i);
    if (copies->count == MADE_MAX)
        drop(copies, 0);
    struct made *made = &copies->list[copies->count];
    *made = (struct made){strdup(branch), strdup(b.uuid), maker, false};
    copies->count++;
    if (!made->branch || !made->uuid)
        drop(copies, copies->count - 1);
    pthread_mutex_unlock(&copies->lock);
}

static bool is_below(const char *name, const char *prefix) {
    size_t length = strlen(prefix);
    return strncmp(name, prefix, length) == 0 && (name[length] == '/' || !name[length]);
}

/* With the lock held. */
static const struct made *find(const struct lfs_copies *copies, const char *branch) {
    for (size_t i = copies->count; i-- > 0;)
        if (strcmp(copies->list[i].branch, branch) == 0 && !copies->list[i].caught)
            return &copies->list[i];
    return NULL;
}

/* --- taking back --- */

struct list {
    struct made made[MADE_MAX]; /* of one copy, the deepest first; owned */
    size_t count;
};

struct job {
    struct lfs_work work; /* first */
    struct lfs_mount *m;
    fuse_req_t req;
    struct list list;
};

/* It is still that branch, at its first version, with no file of its own. */
static bool is_untouched(struct lfs_mount *m, const struct made *made) {
    static const char *const parts[] = {"data", "_deletions", "_indices"};
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    struct lfs_branch b;
    struct lfs_versions versions;
    struct lfs_entry *entries;
    size_t n = 0;
    if (!arena || lfs_dataset_branch(m->dataset, arena, made->branch, &b, NULL) < 0 ||
        strcmp(b.uuid, made->uuid) != 0 || lfs_dataset_versions(m->dataset, b.dir, arena, &versions, NULL) < 0 ||
        versions.count != 1)
        return false;
    for (size_t i = 0; i < sizeof parts / sizeof *parts && n == 0; i++) {
        char *path = lfs_join(arena, b.dir, parts[i]);
        if (!path || lfs_list_dir(m->dataset, path, arena, &entries, &n, NULL) < 0)
            return false;
    }
    return n == 0;
}

static void take_back(struct lfs_mount *m, const struct list *list) {
    const struct lfs_names names = {m->dataset, &m->settings, NULL};
    struct lfs_error err;
    for (size_t i = 0; i < list->count; i++) {
        const char *branch = list->made[i].branch;
        if (!is_untouched(m, &list->made[i]))
            continue;
        if (lfs_names_remove(&names, branch, &err) < 0)
            lfs_log(LFS_LOG_WARNING, "tree/%s, which a copy into it made, stays: %s", branch, err.message);
        else
            lfs_log(LFS_LOG_WARNING,
                    "a data set cannot be copied into tree/: the branch %s that the copy began with was taken back",
                    branch);
    }
}

static void free_list(struct list *list) {
    for (size_t i = 0; i < list->count; i++) {
        free(list->made[i].branch);
        free(list->made[i].uuid);
    }
}

static void run_job(struct lfs_work *work) {
    struct job *j = (struct job *)work;
    take_back(j->m, &j->list);
    fuse_reply_err(j->req, EPERM);
}

static void refuse_job(struct lfs_work *work) { fuse_reply_err(((struct job *)work)->req, EPERM); }

static void destroy_job(struct lfs_work *work) {
    struct job *j = (struct job *)work;
    free_list(&j->list);
    free(j);
}

static int deepest_first(const void *a, const void *b) {
    size_t x = strlen(((const struct made *)a)->branch), y = strlen(((const struct made *)b)->branch);
    return x < y ? 1 : x > y ? -1 : 0;
}

static bool is_of_copy(const struct made *made, const char *branch, const struct lfs_caller *maker) {
    return lfs_caller_is_same(&made->maker, maker) && (is_below(made->branch, branch) || is_below(branch, made->branch));
}

/* All that one copy has made, which is known for one from now on. */
static void catch_copy(struct lfs_copies *copies, const char *branch, const struct lfs_caller *maker, struct list *out) {
    pthread_mutex_lock(&copies->lock);
    for (size_t i = copies->count; i-- > 0;) {
        struct made *made = &copies->list[i];
        if (made->caught || !is_of_copy(made, branch, maker))
            continue;
        made->caught = true;
        struct made *own = &out->made[out->count++];
        *own = (struct made){strdup(made->branch), strdup(made->uuid), made->maker, true};
        if (!own->branch || !own->uuid) {
            free(own->branch);
            free(own->uuid);
            out->count--;
        }
    }
    pthread_mutex_unlock(&copies->lock);
    qsort(out->made, out->count, sizeof *out->made, deepest_first);
}

static bool was_caught(struct lfs_copies *copies, const char *branch, const struct lfs_caller *maker) {
    bool caught = false;
    pthread_mutex_lock(&copies->lock);
    for (size_t i = 0; i < copies->count && !caught; i++)
        caught = copies->list[i].caught && is_of_copy(&copies->list[i], branch, maker);
    pthread_mutex_unlock(&copies->lock);
    return caught;
}

/* --- a copy by its arguments --- */

/* An existing directory outside the mount, as the process names it; -1 for anything else. The kernel answers from what it
 * knows (the process has just looked there) or not at all, so nothing waits for the directory that it has locked. */
static int open_argument(struct lfs_mount *m, int cwd, const char *argument) {
    char link[40], real[4096];
    struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_CACHED};
    LFS_AUTO_FD fd = (int)syscall(SYS_openat2, cwd, argument, &how, sizeof how);
    if (fd < 0)
        return -1;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, real, sizeof real - 1);
    if (n < 0)
        return -1;
    real[n] = 0;
    return is_below(real, m->mountpoint) ? -1 : LFS_STEAL_FD(fd);
}

static bool holds_versions(int dir, const char *name) {
    char path[NAME_MAX + sizeof "/_versions"];
    struct stat st;
    snprintf(path, sizeof path, "%s%s_versions", name, *name ? "/" : "");
    return fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

/* Is one of them a data set, or a directory with a data set of that name in it? */
static bool names_data_set(struct lfs_mount *m, pid_t pid, const char *name) {
    char path[40];
    snprintf(path, sizeof path, "/proc/%d/cmdline", (int)pid);
    LFS_AUTO_FREE char *text = malloc(ARGUMENT_BYTES_MAX);
    FILE *file = text ? fopen(path, "re") : NULL;
    size_t size = file ? fread(text, 1, ARGUMENT_BYTES_MAX - 1, file) : 0;
    if (file)
        fclose(file);
    snprintf(path, sizeof path, "/proc/%d/cwd", (int)pid);
    LFS_AUTO_FD cwd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (!size || cwd < 0 || strlen(name) > NAME_MAX)
        return false;
    text[size] = 0;
    const char *argument = text + strlen(text) + 1;
    for (size_t i = 0; i < ARGUMENTS_MAX && argument < text + size; i++, argument += strlen(argument) + 1) {
        LFS_AUTO_FD dir = *argument == '-' ? -1 : open_argument(m, cwd, argument);
        if (dir >= 0 && (holds_versions(dir, "") || holds_versions(dir, name)))
            return true;
    }
    return false;
}

bool lfs_copies_begins(struct lfs_mount *m, const char *branch, const char *name, pid_t tid) {
    struct lfs_caller maker;
    LFS_CLEANUP(free_list) struct list list = {.count = 0};
    pid_t pid = lfs_caller_of(tid);
    if (!pid || !lfs_caller_read(pid, &maker))
        return false;
    if (was_caught(m->copies, branch, &maker))
        return true;
    if (!names_data_set(m, pid, name))
        return false;
    lfs_log(LFS_LOG_WARNING, "a data set cannot be copied into tree/: no branch %s was made", branch);
    catch_copy(m->copies, branch, &maker, &list);
    take_back(m, &list);
    return true;
}

/* --- a copy by what it does --- */

/* Stock's names until a file is whole (lance-format section 7). */
static bool is_writers_name(const char *name) { return strncmp(name, ".tmp", 4) == 0 || strchr(name, '#'); }

bool lfs_copies_caught(fuse_req_t req, const struct lfs_node *node, const char *name) {
    struct lfs_mount *m = lfs_mount_of(req);
    struct lfs_caller maker;
    if (m->options->read_only || !node->branch || node->branch->version || (name && is_writers_name(name)))
        return false;
    pthread_mutex_lock(&m->copies->lock);
    const struct made *made = find(m->copies, node->branch->text);
    if (made)
        maker = made->maker;
    pthread_mutex_unlock(&m->copies->lock);
    if (!made || !comes_from(fuse_req_ctx(req)->pid, &maker))
        return false;
    struct job *j = calloc(1, sizeof *j);
    if (!j) {
        fuse_reply_err(req, ENOMEM);
        return true;
    }
    j->work = (struct lfs_work){.run = run_job, .refuse = refuse_job, .destroy = destroy_job};
    j->m = m;
    j->req = req;
    catch_copy(m->copies, node->branch->text, &maker, &j->list);
    if (lfs_workers_submit(lfs_control_workers(m->control), &j->work) < 0) {
        fuse_reply_err(req, EPERM);
        destroy_job(&j->work);
    }
    return true;
}
