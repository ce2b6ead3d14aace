/* SPDX-License-Identifier: Apache-2.0 */
#include "fuse/removals.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "fuse/callers.h"
#include "fuse/changes.h"
#include "fuse/control.h"
#include "util/cleanup.h"
#include "util/log.h"
#include "util/map.h"
#include "verbs/discard.h"

enum { READERS_MAX = 1024 };

/* A process that has read manifests of a branch. */
struct reader {
    struct lfs_caller caller;
    uint64_t branch; /* hash of its name */
};

struct lfs_removals {
    pthread_mutex_t lock;
    struct reader list[READERS_MAX]; /* a ring */
    size_t count, next;
};

struct lfs_removals *lfs_removals_new(void) {
    struct lfs_removals *removals = calloc(1, sizeof *removals);
    if (removals)
        pthread_mutex_init(&removals->lock, NULL);
    return removals;
}

void lfs_removals_free(struct lfs_removals *removals) {
    if (!removals)
        return;
    pthread_mutex_destroy(&removals->lock);
    free(removals);
}

static bool identify(const struct lfs_node *branch, pid_t tid, struct reader *out) {
    out->branch = lfs_hash(branch->text, strlen(branch->text), 0);
    return lfs_caller_read(lfs_caller_of(tid), &out->caller);
}

/* With the lock held. */
static bool is_known(const struct lfs_removals *r, const struct reader *reader) {
    for (size_t i = 0; i < r->count; i++)
        if (r->list[i].branch == reader->branch && lfs_caller_is_same(&r->list[i].caller, &reader->caller))
            return true;
    return false;
}

void lfs_removals_read(struct lfs_mount *m, const struct lfs_node *branch, pid_t tid) {
    struct lfs_removals *r = m->removals;
    struct reader reader;
    if (m->options->read_only || !branch || !identify(branch, tid, &reader))
        return;
    pthread_mutex_lock(&r->lock);
    if (!is_known(r, &reader)) {
        r->list[r->next] = reader;
        r->next = (r->next + 1) % READERS_MAX;
        r->count += r->count < READERS_MAX;
    }
    pthread_mutex_unlock(&r->lock);
}

static bool has_read(struct lfs_mount *m, const struct lfs_node *branch, pid_t tid) {
    struct reader reader;
    if (!identify(branch, tid, &reader))
        return false;
    pthread_mutex_lock(&m->removals->lock);
    bool known = is_known(m->removals, &reader);
    pthread_mutex_unlock(&m->removals->lock);
    return known;
}

/* --- removing --- */

struct job {
    struct lfs_work work; /* first */
    struct lfs_mount *m;
    fuse_req_t req;
    struct lfs_node *directory; /* held */
    char *name;                 /* in the branch's storage */
};

static void interrupted(fuse_req_t req, void *cancel) {
    (void)req;
    atomic_store((atomic_bool *)cancel, true);
}

static void reply(struct job *j, errint_t result) {
    fuse_req_interrupt_func(j->req, NULL, NULL);
    fuse_reply_err(j->req, result < 0 ? -result : 0);
}

static void run_job(struct lfs_work *work) {
    struct job *j = (struct job *)work;
    struct lfs_error err = {0};
    int result = lfs_discard(j->m->discards, j->directory->branch->text, j->name, &work->cancel, &err);
    if (result < 0)
        lfs_log(LFS_LOG_WARNING, "%s", err.message);
    reply(j, result);
}

static void refuse_job(struct lfs_work *work) { reply((struct job *)work, -ESHUTDOWN); }

static void destroy_job(struct lfs_work *work) {
    struct job *j = (struct job *)work;
    lfs_nodes_release(j->m->nodes, j->directory);
    free(j->name);
    free(j);
}

void lfs_op_unlink_in_stage(fuse_req_t req, struct lfs_node *directory, const char *name) {
    struct lfs_mount *m = lfs_mount_of(req);
    LFS_AUTO_FREE char *published = NULL;
    errint_t result = lfs_change_unlink(m, directory, name, &published);
    if (result == 0 && published && !has_read(m, directory->branch, fuse_req_ctx(req)->pid)) {
        lfs_log(LFS_LOG_INFO,
                "%s of %s is not removed for a process that has read no manifest of it: .gc removes what is not needed",
                published, directory->branch->text);
        result = -EPERM;
    }
    struct job *j = result == 0 && published ? calloc(1, sizeof *j) : NULL;
    if (!j) {
        fuse_reply_err(req, result < 0 ? -result : published ? ENOMEM : 0);
        return;
    }
    lfs_nodes_hold(m->nodes, directory);
    *j = (struct job){.work = {.run = run_job, .refuse = refuse_job, .destroy = destroy_job},
                      .m = m,
                      .req = req,
                      .directory = directory,
                      .name = LFS_STEAL_PTR(published)};
    fuse_req_interrupt_func(req, interrupted, &j->work.cancel);
    result = lfs_workers_submit(lfs_control_workers(m->control), &j->work);
    if (result < 0) {
        reply(j, result);
        destroy_job(&j->work);
    }
}
