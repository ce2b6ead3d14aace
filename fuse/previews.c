/* SPDX-License-Identifier: Apache-2.0 */
#include "fuse/previews.h"

#include <string.h>

#include "util/log.h"
#include "verbs/preview.h"

#define PREFIX LFS_PREVIEW_DIR "/"

bool lfs_is_preview(const char *what) { return strncmp(what, PREFIX, strlen(PREFIX)) == 0; }

static struct lfs_preview_call call_of(struct lfs_mount *m, const struct lfs_node *place, const char *what) {
    return (struct lfs_preview_call){m->dataset, &m->settings, place->text, what + strlen(PREFIX)};
}

bool lfs_is_preview_answer(const char *what) {
    return lfs_is_preview(what) && lfs_preview_is_answer(what + strlen(PREFIX));
}

bool lfs_preview_is_directory(struct lfs_mount *m, const struct lfs_node *place, const char *what) {
    struct lfs_preview_call call = call_of(m, place, what);
    return lfs_preview_leads_on(&call);
}

static errint_t stamp(struct lfs_mount *m, const struct lfs_node *place, const char *what, struct lfs_stamp *out) {
    struct lfs_preview_call call = call_of(m, place, what);
    return lfs_preview_stamp(&call, out, NULL);
}

static errint_t make(struct lfs_mount *m, const struct lfs_node *place, const char *what, struct lfs_image **out) {
    struct lfs_preview_call call = call_of(m, place, what);
    struct lfs_error err = {0};
    errint_t result = lfs_preview_make(&call, m->views, out, &err);
    if (result < 0)
        lfs_log(LFS_LOG_INFO, "%s of %s: %s", what, place->text, err.message);
    return result;
}

const struct lfs_image_source lfs_preview_source = {PREFIX, stamp, make};

errint_t lfs_preview_answer_stamp(struct lfs_mount *m, const struct lfs_node *place, const char *what,
                                  struct lfs_stamp *out) {
    return stamp(m, place, what, out);
}

errint_t lfs_preview_answer_render(struct lfs_mount *m, const struct lfs_node *place, const char *what,
                                   const atomic_bool *cancel, struct lfs_buf *out, struct timespec *time,
                                   struct lfs_error *err) {
    (void)cancel;
    struct lfs_preview_call call = call_of(m, place, what);
    *time = lfs_branch_time(m, place->dir);
    errint_t result = lfs_preview_answer(&call, out);
    return result < 0 ? lfs_fail_nomem(err) : 0;
}
