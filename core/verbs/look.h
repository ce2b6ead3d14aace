/* SPDX-License-Identifier: Apache-2.0 */
/* A verb's context without a command to carry out: previews and reports resolve refs and make plans as the verb would. */
#ifndef LFS_VERBS_LOOK_H
#define LFS_VERBS_LOOK_H

#include "verbs/verb.h"

/* It points into itself. End it with lfs_look_close. */
struct lfs_look {
    struct lfs_verb_settings settings;
    struct lfs_verb_call call;
    struct lfs_command command;
    struct lfs_verb_context context;
    struct lfs_buf answer;
};

/* `settings` is copied; NULL: those of a read-only mount. `branch` may be NULL where none is needed. */
void lfs_look_open(struct lfs_look *look, struct lfs_dataset *ds, const struct lfs_verb_settings *settings,
                   const char *branch, struct lfs_arena *arena);
void lfs_look_close(struct lfs_look *look);

#endif
