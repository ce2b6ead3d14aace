/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a text that takes long to make: a worker makes it, and replies. */
#include <errno.h>
#include <stdlib.h>

#include "fuse/control.h"
#include "fuse/handles.h"
#include "fuse/texts.h"

struct opening {
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

static void reply(struct opening *o, errint_t result) {
    fuse_req_interrupt_func(o->req, NULL, NULL);
    if (result < 0)
        fuse_reply_err(o->req, -result);
    if (result < 0 || fuse_reply_open(o->req, &o->fi) == -ENOENT)
        lfs_handle_free(o->m, o->h);
}

static void run(struct lfs_work *work) {
    struct opening *o = (struct opening *)work;
    reply(o, lfs_text_make(o->m, o->h->node, &work->cancel, &o->h->text));
}

static void refuse(struct lfs_work *work) { reply((struct opening *)work, -ESHUTDOWN); }

static void destroy(struct lfs_work *work) { free(work); }

/* Valid replies: open, err. */
void lfs_text_open(struct lfs_mount *m, fuse_req_t req, struct lfs_node *node, struct fuse_file_info *fi) {
    struct lfs_handle *h = lfs_handle_new(m, node);
    struct opening *o = h ? calloc(1, sizeof *o) : NULL;
    if (!o) {
        if (h)
            lfs_handle_free(m, h);
        fuse_reply_err(req, ENOMEM);
        return;
    }
    fi->fh = (uintptr_t)h;
    fi->direct_io = 1; /* its size is not told; each opening makes the text anew */
    *o = (struct opening){
        .work = {.run = run, .refuse = refuse, .destroy = destroy}, .m = m, .req = req, .h = h, .fi = *fi};
    fuse_req_interrupt_func(req, interrupted, &o->work.cancel);
    errint_t result = lfs_workers_submit(lfs_control_workers(m->control), &o->work);
    if (result < 0) {
        reply(o, result);
        free(o);
    }
}
