/* SPDX-License-Identifier: Apache-2.0 */
#include "fuse/conflicts.h"

#include <errno.h>

#include "util/log.h"

struct lfs_conflicts_at lfs_conflicts_at(struct lfs_mount *m, const struct lfs_node *place, const char *what) {
    return (struct lfs_conflicts_at){m->conflicts, m->dataset, place->text, what};
}

static errint_t stamp(const struct lfs_conflicts_at *at, enum lfs_conflicts_is wanted, struct lfs_stamp *out) {
    return lfs_conflicts_look(at, &out->hash) == wanted ? 0 : -ENOENT;
}

errint_t lfs_conflicts_text_stamp(struct lfs_mount *m, const struct lfs_node *place, const char *what,
                                  struct lfs_stamp *out) {
    struct lfs_conflicts_at at = lfs_conflicts_at(m, place, what);
    return stamp(&at, LFS_CONFLICTS_TEXT, out);
}

errint_t lfs_conflicts_text_render(struct lfs_mount *m, const struct lfs_node *place, const char *what, const atomic_bool *cancel,
                                   struct lfs_buf *out, struct timespec *time, struct lfs_error *err) {
    (void)cancel;
    struct lfs_conflicts_at at = lfs_conflicts_at(m, place, what);
    return lfs_conflicts_text(&at, out, time, err);
}

static errint_t stamp_rows(struct lfs_mount *m, const struct lfs_node *place, const char *what, struct lfs_stamp *out) {
    struct lfs_conflicts_at at = lfs_conflicts_at(m, place, what);
    return stamp(&at, LFS_CONFLICTS_ROWS, out);
}

static errint_t make_rows(struct lfs_mount *m, const struct lfs_node *place, const char *what, struct lfs_image **out) {
    struct lfs_conflicts_at at = lfs_conflicts_at(m, place, what);
    struct lfs_error err = {0};
    errint_t result = lfs_conflicts_image(&at, m->views, out, &err);
    if (result < 0)
        lfs_log(LFS_LOG_WARNING, "%s of %s: %s", what, place->text, err.message);
    return result;
}

const struct lfs_image_source lfs_conflict_rows_source = {LFS_CONFLICTS "/", stamp_rows, make_rows};
