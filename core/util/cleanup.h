/* SPDX-License-Identifier: Apache-2.0 */
/* Cleanup by scope, keeping errno, so that a failure's cause is not lost while leaving. */
#ifndef LFS_UTIL_CLEANUP_H
#define LFS_UTIL_CLEANUP_H

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "util/arena.h"
#include "util/buf.h"

static inline void lfs_cleanup_fd(int *fd) {
    if (*fd >= 0) {
        int saved = errno;
        close(*fd);
        errno = saved;
    }
}
static inline void lfs_cleanup_free(void *pointer) {
    int saved = errno;
    free(*(void **)pointer);
    errno = saved;
}
static inline void lfs_cleanup_buf(struct lfs_buf *buf) { lfs_buf_free(buf); }
static inline void lfs_cleanup_arena(struct lfs_arena **arena) { lfs_arena_free(*arena); }

#define LFS_CLEANUP(function) __attribute__((cleanup(function)))
#define LFS_AUTO_FD LFS_CLEANUP(lfs_cleanup_fd) int
#define LFS_AUTO_FREE LFS_CLEANUP(lfs_cleanup_free)
#define LFS_AUTO_BUF LFS_CLEANUP(lfs_cleanup_buf) struct lfs_buf
#define LFS_AUTO_ARENA LFS_CLEANUP(lfs_cleanup_arena) struct lfs_arena

/* Hand a value on to the caller and leave `empty` behind for the cleanup. */
#define LFS_STEAL_FD(fd)                                                                                               \
    ({                                                                                                                 \
        int stolen_ = (fd);                                                                                            \
        (fd) = -1;                                                                                                     \
        stolen_;                                                                                                       \
    })
#define LFS_STEAL_PTR(pointer)                                                                                         \
    ({                                                                                                                 \
        __typeof__(pointer) stolen_ = (pointer);                                                                       \
        (pointer) = NULL;                                                                                              \
        stolen_;                                                                                                       \
    })

#define LFS_TRY(expression)                                                                                            \
    do {                                                                                                               \
        errint_t try_result_ = (expression);                                                                           \
        if (try_result_ < 0)                                                                                           \
            return try_result_;                                                                                        \
    } while (0)

#endif
