/* SPDX-License-Identifier: Apache-2.0 */
#include "fuse/reports.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fuse/control.h"
#include "fuse/handles.h"
#include "verbs/fsck.h"

const char *const lfs_root_reports[] = {".fsck", NULL};

bool lfs_is_report_name(const char *name) {
    for (const char *const *report = lfs_root_reports; *report; report++)
        if (strcmp(*report, name) == 0)
            return true;
    return false;
}

static errint_t make(struct lfs_mount *m, const atomic_bool *cancel, struct lfs_buf *out) {
    struct lfs_error err = {0};
    struct lfs_fsck_result found;
    struct lfs_fsck_options options = {.cancel = cancel};
    errint_t result = lfs_fsck_run(m->dataset, &options, out, &found, &err);
    if (result == 0 || result == -EINTR || result == -ENOMEM)
        return result;
    lfs_buf_clear(out); /* why there is no report is the report */
    lfs_buf_printf(out, "# %s\n", err.message);
    return lfs_buf_check(out, NULL);
}

struct report {
    struct lfs_work work; /* first */
    struct lfs_mount *m;
    fuse_req_t req;
    struct lfs_handle *h;
    struct fuse_file_info fi;
};

static void interrupted(fuse_req_t req, void *cancel) {
    (void)req;
    atomic_store((atomic_bool *)cancel, true);
}

static void reply(struct report *r, errint_t result) {
    fuse_req_interrupt_func(r->req, NULL, NULL);
    if (result < 0)
        fuse_reply_err(r->req, -result);
    if (result < 0 || fuse_reply_open(r->req, &r->fi) == -ENOENT)
        lfs_handle_free(r->m, r->h);
}

static void run(struct lfs_work *work) {
    struct report *r = (struct report *)work;
    reply(r, make(r->m, &work->cancel, r->h->report));
}

static void refuse(struct lfs_work *work) { reply((struct report *)work, -ESHUTDOWN); }

static void destroy(struct lfs_work *work) { free(work); }

/* Valid replies: open, err. */
void lfs_report_open(struct lfs_mount *m, fuse_req_t req, struct lfs_node *node, struct fuse_file_info *fi) {
    struct lfs_handle *h = lfs_handle_new(m, node);
    struct report *r = h ? calloc(1, sizeof *r) : NULL;
    struct lfs_buf *text = r ? calloc(1, sizeof *text) : NULL;
    if (!text) {
        free(r);
        if (h)
            lfs_handle_free(m, h);
        fuse_reply_err(req, ENOMEM);
        return;
    }
    h->report = text;
    fi->fh = (uintptr_t)h;
    fi->direct_io = 1; /* its size is not told; each opening makes the text anew */
    *r = (struct report){
        .work = {.run = run, .refuse = refuse, .destroy = destroy}, .m = m, .req = req, .h = h, .fi = *fi};
    fuse_req_interrupt_func(req, interrupted, &r->work.cancel);
    errint_t result = lfs_workers_submit(lfs_control_workers(m->control), &r->work);
    if (result < 0) {
        reply(r, result);
        free(r);
    }
}
