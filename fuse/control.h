/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the control files: what was said and answered (answers.c), who runs it (workers.c), the files themselves
 * (control.c). */
#ifndef LFS_FUSE_CONTROL_H
#define LFS_FUSE_CONTROL_H

#include <pthread.h>
#include <stdatomic.h>

#include "fuse/mount.h"
#include "util/buf.h"
#include "util/map.h"
#include "util/progress.h"

/* --- answers.c: the text that each control file shows --- */

struct lfs_answers;

/* A command that runs; its memory is the caller's until lfs_answers_end. */
struct lfs_running {
    const char *file, *branch; /* `branch` is "" for a control file of the mount */
    const char *line;
    struct lfs_progress progress; /* written by the command */
    /* the answers' own */
    struct timespec started;
    uint64_t began_ns; /* of the monotonic clock */
    uint64_t id;
    struct lfs_buf log;      /* lines of progress: what has been shown only grows */
    uint64_t logged_ns;      /* when the last of them was added */
    struct lfs_progress then; /* what it was then */
    struct lfs_running *next;
};

/* What an open file has shown, so that reading on at its end gives what came since, as `tail -f` does. */
struct lfs_shown {
    uint64_t id;   /* of the command whose progress its text ends with; 0: none */
    size_t logged; /* bytes of that command's log that it has */
    uint64_t ends; /* commands of the file that had ended when it was read last */
};

/* An open file that may be polled. */
struct lfs_watch {
    struct lfs_answers *answers;
    const char *file, *branch;
    struct fuse_pollhandle *handle; /* NULL: nobody waits */
    struct lfs_watch *next, **at;   /* among those that somebody waits for */
};

struct lfs_answers *lfs_answers_new(void);
void lfs_answers_free(struct lfs_answers *answers);
void lfs_answers_begin(struct lfs_answers *answers, struct lfs_running *running);
/* The command is done; `text` becomes what its file shows, and what the target's file shows where a file of the mount
 * named the target. */
void lfs_answers_end(struct lfs_answers *answers, struct lfs_running *running, const char *text, size_t length);
/* Usage, then what runs or the last answer. `shown` (may be NULL) is filled in. */
void lfs_answers_show(struct lfs_answers *answers, const char *file, const char *branch, struct lfs_buf *out,
                      struct lfs_shown *shown);
/* Append what came since: progress of the command that the text ends with, and once it has ended "---" and its answer. */
void lfs_answers_go_on(struct lfs_answers *answers, const char *file, const char *branch, struct lfs_buf *out,
                       struct lfs_shown *shown);
/* How many commands of the file have ended? */
uint64_t lfs_answers_ends(struct lfs_answers *answers, const char *file, const char *branch);

/*
 * poll(2). POLLIN and POLLOUT: no command of this file runs (`busy`: none of this open file waits or runs). POLLPRI: one has
 * ended since the file was opened or read last, through this descriptor. `handle` (may be NULL) is taken over, and notified
 * when a command of the file ends. Returns the events.
 */
unsigned lfs_answers_poll(struct lfs_watch *watch, bool busy, uint64_t seen, struct fuse_pollhandle *handle);
/* Those who wait for this file look again. */
void lfs_answers_wake(struct lfs_answers *answers, const char *file, const char *branch);
void lfs_answers_unwatch(struct lfs_watch *watch);
/* The branch that an answer says it committed to; false when it names none. */
bool lfs_answer_target(const char *text, size_t length, char *branch, size_t size);

/* --- workers.c: threads for commands, so that they never keep the mount's own from other requests --- */

struct lfs_workers;

struct lfs_work {
    void (*run)(struct lfs_work *work);    /* on a worker */
    void (*refuse)(struct lfs_work *work); /* instead of run, once the workers stop */
    void (*destroy)(struct lfs_work *work);
    atomic_bool cancel;
    struct lfs_work *next; /* the workers' own */
};

struct lfs_workers *lfs_workers_new(void);
/* Queue work. 0, or a negative errno when it could not be: -ESHUTDOWN once they stop. */
errint_t lfs_workers_submit(struct lfs_workers *workers, struct lfs_work *work);
/* Refuse what waits and what comes, set `cancel` of what runs, wait for it at most `seconds`. True when nothing runs. */
bool lfs_workers_stop(struct lfs_workers *workers, unsigned seconds);
void lfs_workers_free(struct lfs_workers *workers);

#endif
