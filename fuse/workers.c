/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "fuse/control.h"

enum { WORKERS_MAX = 16 };

struct lfs_workers {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* work came, work was done, a thread ended, or all is to stop */
    struct lfs_work *queue, **queue_end;
    struct lfs_work *running;
    unsigned threads, idle;
    bool stopping;
};

struct lfs_workers *lfs_workers_new(void) {
    struct lfs_workers *workers = calloc(1, sizeof *workers);
    if (!workers)
        return NULL;
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&workers->lock, NULL);
    pthread_cond_init(&workers->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    workers->queue_end = &workers->queue;
    return workers;
}

/* With the lock held: the next piece of work, now among what runs. */
static struct lfs_work *take(struct lfs_workers *workers) {
    struct lfs_work *work = workers->queue;
    if (!work)
        return NULL;
    workers->queue = work->next;
    if (!workers->queue)
        workers->queue_end = &workers->queue;
    work->next = workers->running;
    workers->running = work;
    return work;
}

static void put_away(struct lfs_workers *workers, struct lfs_work *work) {
    struct lfs_work **at = &workers->running;
    while (*at != work)
        at = &(*at)->next;
    *at = work->next;
    pthread_cond_broadcast(&workers->changed);
}

static void *work_on(void *argument) {
    struct lfs_workers *workers = argument;
    pthread_mutex_lock(&workers->lock);
    for (;;) {
        struct lfs_work *work = take(workers);
        if (work) {
            bool refused = workers->stopping;
            pthread_mutex_unlock(&workers->lock);
            (refused ? work->refuse : work->run)(work);
            pthread_mutex_lock(&workers->lock);
            put_away(workers, work);
            pthread_mutex_unlock(&workers->lock);
            work->destroy(work);
            pthread_mutex_lock(&workers->lock);
            continue;
        }
        if (workers->stopping)
            break;
        workers->idle++;
        pthread_cond_wait(&workers->changed, &workers->lock);
        workers->idle--;
    }
    workers->threads--;
    pthread_cond_broadcast(&workers->changed);
    pthread_mutex_unlock(&workers->lock);
    return NULL;
}

/* With the lock held: a thread more where all are busy. */
static errint_t add_thread(struct lfs_workers *workers) {
    pthread_t thread;
    if (workers->idle || workers->threads >= WORKERS_MAX)
        return 0;
    int error = pthread_create(&thread, NULL, work_on, workers);
    if (error)
        return workers->threads ? 0 : -error; /* those that are there will come to it */
    pthread_detach(thread);
    workers->threads++;
    return 0;
}

errint_t lfs_workers_submit(struct lfs_workers *workers, struct lfs_work *work) {
    pthread_mutex_lock(&workers->lock);
    errint_t result = workers->stopping ? -ESHUTDOWN : add_thread(workers);
    if (result == 0) {
        work->next = NULL;
        *workers->queue_end = work;
        workers->queue_end = &work->next;
        pthread_cond_broadcast(&workers->changed);
    }
    pthread_mutex_unlock(&workers->lock);
    return result;
}

/* With the lock held: wait until no thread is left or the time is over. */
static bool wait_for_threads(struct lfs_workers *workers, unsigned seconds) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += seconds;
    while (workers->threads)
        if (pthread_cond_timedwait(&workers->changed, &workers->lock, &until) == ETIMEDOUT)
            break;
    return workers->threads == 0;
}

bool lfs_workers_stop(struct lfs_workers *workers, unsigned seconds) {
    pthread_mutex_lock(&workers->lock);
    workers->stopping = true;
    for (struct lfs_work *work = workers->running; work; work = work->next)
        atomic_store(&work->cancel, true);
    pthread_cond_broadcast(&workers->changed);
    bool ended = wait_for_threads(workers, seconds);
    pthread_mutex_unlock(&workers->lock);
    return ended;
}

void lfs_workers_free(struct lfs_workers *workers) {
    if (!workers || !lfs_workers_stop(workers, 0))
        return; /* a thread that could not be stopped still uses them: they go with the process */
    pthread_cond_destroy(&workers->changed);
    pthread_mutex_destroy(&workers->lock);
    free(workers);
}
