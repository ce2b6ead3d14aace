/* SPDX-License-Identifier: Apache-2.0 */
#include "table/lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include "table/dataset_impl.h"
#include "util/cancel.h"
#include "util/cleanup.h"

enum { RETRY_NS = 5000000 }; /* a blocking flock could not be interrupted by a command's own cancel */

int lfs_dataset_lock(struct lfs_dataset *ds, enum lfs_lock how, const atomic_bool *cancel, struct lfs_error *err) {
    LFS_AUTO_FD fd = openat(ds->root_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return lfs_fail_errno(err, errno, "cannot open %s", ds->path);
    while (flock(fd, (how == LFS_LOCK_ALONE ? LOCK_EX : LOCK_SH) | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            break; /* no locks here */
        if (lfs_is_cancelled(cancel))
            return lfs_fail(err, LFS_E_INTERRUPTED,
                            "interrupted while waiting for another command: nothing was changed");
        nanosleep(&(struct timespec){0, RETRY_NS}, NULL);
    }
    return LFS_STEAL_FD(fd);
}
