/* SPDX-License-Identifier: Apache-2.0 */
/* How far a long command has come: written by the one that runs it, read by anybody at any time. */
#ifndef LFS_UTIL_PROGRESS_H
#define LFS_UTIL_PROGRESS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct lfs_progress {
    _Atomic(const char *) stage;      /* a string that lives for ever; NULL: nothing to tell */
    atomic_uint_fast64_t done, total; /* total 0: nobody knows */
};

/* Begin a stage. `p` may be NULL in both. */
static inline void lfs_progress_stage(struct lfs_progress *p, const char *stage, uint64_t total) {
    if (!p)
        return;
    atomic_store(&p->done, 0);
    atomic_store(&p->total, total);
    atomic_store(&p->stage, stage);
}
static inline void lfs_progress_step(struct lfs_progress *p) {
    if (p)
        atomic_fetch_add(&p->done, 1);
}

#endif
