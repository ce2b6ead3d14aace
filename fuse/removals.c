/* SPDX-License-Identifier: Apache-2.0 */
#include "fuse/removals.h"

#include <stdlib.h>
#include <string.h>

#include "fuse/changes.h"
#include "fuse/control.h"
#include "util/cleanup.h"
#include "util/log.h"
#include "verbs/discard.h"

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
