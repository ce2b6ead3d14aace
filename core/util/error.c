/* SPDX-License-Identifier: Apache-2.0 */
#include "util/error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int lfs_code_errno(enum lfs_code code) {
    switch (code) {
    case LFS_OK: return 0;
    case LFS_E_SYSTEM: return EIO;
    case LFS_E_USAGE: return EINVAL;
    case LFS_E_NOT_FOUND: return ENOENT;
    case LFS_E_CORRUPT: return EIO;
    case LFS_E_UNSUPPORTED: return EOPNOTSUPP;
    case LFS_E_CONFLICT: return ECANCELED;
    case LFS_E_STALE: return ESTALE;
    case LFS_E_RACE: return EAGAIN;
    case LFS_E_NO_BASE: return ENODATA;
    case LFS_E_DENIED: return EPERM;
    case LFS_E_FORBIDDEN: return EACCES;
    case LFS_E_BUSY: return EBUSY;
    case LFS_E_EXISTS: return EEXIST;
    case LFS_E_READ_ONLY: return EROFS;
    case LFS_E_INTERRUPTED: return EINTR;
    case LFS_E_TOO_BIG: return EFBIG;
    case LFS_E_NOMEM: return ENOMEM;
    }
    return EIO;
}

errint_t lfs_fail(struct lfs_error *err, enum lfs_code code, const char *format, ...) {
    if (err) {
        va_list args;
        va_start(args, format);
        err->code = code;
        err->sys_errno = lfs_code_errno(code);
        vsnprintf(err->message, sizeof err->message, format, args);
        va_end(args);
    }
    return -lfs_code_errno(code);
}

errint_t lfs_fail_errno(struct lfs_error *err, int sys_errno, const char *format, ...) {
    if (err) {
        va_list args;
        va_start(args, format);
        err->code = LFS_E_SYSTEM;
        err->sys_errno = sys_errno;
        int n = vsnprintf(err->message, sizeof err->message, format, args);
        va_end(args);
        if (n >= 0 && (size_t)n < sizeof err->message)
            snprintf(err->message + n, sizeof err->message - (size_t)n, ": %s", strerror(sys_errno));
    }
    return -sys_errno;
}

errint_t lfs_fail_nomem(struct lfs_error *err) { return lfs_fail(err, LFS_E_NOMEM, "out of memory"); }
