/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors: a stable code, the errno that a caller of the kernel sees, and one sentence for a person.
 *
 * Functions that can fail return errint_t (0, or a negative errno) and fill a caller-owned struct lfs_error, which may
 * be NULL. The sentence says what happened, to what (file, version, id), and what to do where that is known.
 */
#ifndef LFS_UTIL_ERROR_H
#define LFS_UTIL_ERROR_H

#include <stdarg.h>

typedef int errint_t;

enum lfs_code {
    LFS_OK = 0,
    LFS_E_SYSTEM,      /* a system call failed: its own errno */
    LFS_E_USAGE,       /* EINVAL: the words of a command or a name are off */
    LFS_E_NOT_FOUND,   /* ENOENT: no such branch, version or tag */
    LFS_E_CORRUPT,     /* EIO: bytes on the disk do not mean what they should */
    LFS_E_UNSUPPORTED, /* EOPNOTSUPP: a feature that this program does not know or does not do */
    LFS_E_CONFLICT,    /* ECANCELED: both sides changed one unit */
    LFS_E_STALE,       /* ESTALE: expect= did not hold */
    LFS_E_RACE,        /* EAGAIN: other writers kept winning */
    LFS_E_NO_BASE,     /* ENODATA: the merge base was cleaned away */
    LFS_E_DENIED,      /* EPERM */
    LFS_E_FORBIDDEN,   /* EACCES: outside what bases= allows */
    LFS_E_BUSY,        /* EBUSY: somebody stands on it */
    LFS_E_EXISTS,      /* EEXIST: that name is taken */
    LFS_E_READ_ONLY,   /* EROFS */
    LFS_E_INTERRUPTED, /* EINTR */
    LFS_E_TOO_BIG,     /* EFBIG: over a limit of limits.h */
    LFS_E_NOMEM,       /* ENOMEM */
};

struct lfs_error {
    enum lfs_code code;
    int sys_errno; /* positive */
    char message[1024];
};

/* The positive errno of a code; EIO for LFS_E_SYSTEM, whose errno travels in the error itself. */
int lfs_code_errno(enum lfs_code code);

/* Fill `err` (may be NULL) and return the code's negative errno. */
errint_t lfs_fail(struct lfs_error *err, enum lfs_code code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The same for a system call that failed with `sys_errno` (positive); ": <strerror>" is added to the sentence. */
errint_t lfs_fail_errno(struct lfs_error *err, int sys_errno, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ENOMEM, with the fixed sentence "out of memory". */
errint_t lfs_fail_nomem(struct lfs_error *err);

#endif
