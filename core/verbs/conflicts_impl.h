/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of conflicts share: commands that wait, as they are kept. Nobody else includes this. */
#ifndef LFS_VERBS_CONFLICTS_IMPL_H
#define LFS_VERBS_CONFLICTS_IMPL_H

#include <pthread.h>

#include "verbs/conflicts.h"
#include "verbs/waiting.h"

/* One conflict of a command that waits. */
struct entry {
    uint64_t number;
    struct lfs_found_conflict found;
    enum lfs_strategy choice;
};

/* A command that waits. */
struct state {
    struct lfs_arena *arena;
    const char *uuid; /* of the target's line */
    const char *file, *line;
    bool by_root;
    struct lfs_list pins; /* of struct lfs_pin */
    struct entry *entries;
    size_t n_entries;
    uint64_t serial, next_number, changes;
    struct timespec time;
    bool busy; /* it is being continued */
    struct state *next;
};

struct lfs_conflicts {
    pthread_mutex_t lock;
    struct state *first; /* the one that changed last */
    size_t count;
    uint64_t serials;
};

/* With the lock held. */
struct state **lfs_waiting_slot(struct lfs_conflicts *conflicts, const char *uuid); /* the end of the list: none */
void lfs_waiting_forget(struct lfs_conflicts *conflicts, struct state **at);
void lfs_waiting_free(struct state *state);

/* The state of a branch, with the lock held from here on, and given back by `leave`; NULL where nothing waits. */
struct state *lfs_conflicts_enter(const struct lfs_conflicts_at *at);
void lfs_conflicts_leave(const struct lfs_conflicts_at *at);

/* The rows of a side that a path names, copied to `arena`. LFS_E_NOT_FOUND. */
errint_t lfs_conflicts_rows(const struct lfs_conflicts_at *at, struct lfs_arena *arena, struct lfs_found_rows *out,
                            struct lfs_error *err);
errint_t lfs_conflicts_copy_rows(const struct lfs_found_rows *from, struct lfs_arena *arena, struct lfs_found_rows *to,
                                 struct lfs_error *err);

#endif
