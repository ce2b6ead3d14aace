/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/look.h"

#include "util/buf.h"

void lfs_look_open(struct lfs_look *l, struct lfs_dataset *ds, const struct lfs_verb_settings *settings,
                   const char *branch, struct lfs_arena *arena) {
    *l = (struct lfs_look){.settings = {.read_only = true}};
    if (settings)
        l->settings = *settings;
    l->call = (struct lfs_verb_call){.dataset = ds, .settings = &l->settings, .branch = branch, .line = ""};
    l->context =
        (struct lfs_verb_context){.call = &l->call, .command = &l->command, .arena = arena, .answer = &l->answer};
}

void lfs_look_close(struct lfs_look *l) { lfs_buf_free(&l->answer); }
