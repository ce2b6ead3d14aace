/* SPDX-License-Identifier: Apache-2.0 */
/* How far a long command has come: written by the one thread that runs it, read by anybody at any time. */
#ifndef LFS_UTIL_PROGRESS_H
#define LFS_UTIL_PROGRESS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

struct lfs_progress {
    _Atomic(const char *) stage;             /* a string that lives for ever; NULL: nothing to tell */
    atomic_uint_fast64_t began_ns;           /* of the monotonic clock */
    atomic_uint_fast64_t done, total;        /* things; total 0: nobody knows */
    atomic_uint_fast64_t bytes, bytes_total; /* of what is copied; total 0: it is no matter of bytes */
};

static inline uint64_t lfs_progress_clock(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Begin a stage. `p` may be NULL in all of these. */
static inline void lfs_progress_stage(struct lfs_progress *p, const char *stage, uint64_t total) {
    if (!p)
        return;
    atomic_store(&p->done, 0);
    atomic_store(&p->total, total);
    atomic_store(&p->bytes, 0);
    atomic_store(&p->bytes_total, 0);
    atomic_store(&p->began_ns, lfs_progress_clock());
    atomic_store(&p->stage, stage);
}
static inline void lfs_progress_step(struct lfs_progress *p) {
    if (p)
        atomic_fetch_add(&p->done, 1);
}
/* There is more to do than was said. */
static inline void lfs_progress_expect(struct lfs_progress *p, uint64_t things, uint64_t bytes) {
    if (!p)
        return;
    atomic_fetch_add(&p->total, things);
    atomic_fetch_add(&p->bytes_total, bytes);
}
static inline void lfs_progress_bytes(struct lfs_progress *p, uint64_t bytes) {
    if (p)
        atomic_fetch_add(&p->bytes, bytes);
}

#endif
