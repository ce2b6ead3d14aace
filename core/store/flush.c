/* SPDX-License-Identifier: Apache-2.0 */
#include "store/flush.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "store/file.h"
#include "util/cleanup.h"

enum { THREADS_MAX = 8 };

errint_t lfs_flush_add(struct lfs_flush *flush, int fd, const char *name, bool is_directory, struct lfs_error *err) {
    if (flush->count == LFS_FLUSH_TOGETHER_MAX) {
        close(fd);
        return lfs_fail(err, LFS_E_TOO_BIG, "more than %u things to flush at once", LFS_FLUSH_TOGETHER_MAX);
    }
    flush->items[flush->count++] = (struct lfs_flush_item){.fd = fd, .name = name, .is_directory = is_directory};
    return 0;
}

errint_t lfs_flush_add_directory(struct lfs_flush *flush, int dirfd, const char *path, struct lfs_error *err) {
    int fd = lfs_open_beneath(dirfd, path, O_RDONLY | O_DIRECTORY, 0);
    return fd < 0 ? lfs_fail_errno(err, -fd, "cannot open %s", path) : lfs_flush_add(flush, fd, path, true, err);
}

errint_t lfs_flush_add_file(struct lfs_flush *flush, int dirfd, const char *directory, const char *name,
                            struct lfs_error *err) {
    LFS_AUTO_FD in = lfs_open_beneath(dirfd, directory, O_PATH | O_DIRECTORY, 0);
    int fd = in < 0 ? in : lfs_open_regular(in, name);
    return fd < 0 ? lfs_fail_errno(err, -fd, "cannot open %s/%s", directory, name)
                  : lfs_flush_add(flush, fd, name, false, err);
}

struct work {
    struct lfs_flush *flush;
    atomic_size_t next;
};

/* EINVAL: this file system does not flush such things; EROFS: there is nothing to flush. */
static void *flush_some(void *argument) {
    struct work *work = argument;
    for (size_t i; (i = atomic_fetch_add(&work->next, 1)) < work->flush->count;) {
        struct lfs_flush_item *item = &work->flush->items[i];
        int result = item->is_directory ? fsync(item->fd) : fdatasync(item->fd);
        item->error = result < 0 && errno != EINVAL && errno != EROFS ? errno : 0;
    }
    return NULL;
}

errint_t lfs_flush_run(struct lfs_flush *flush, struct lfs_error *err) {
    struct work work = {.flush = flush};
    pthread_t threads[THREADS_MAX - 1];
    size_t n = 0;
    while (n < THREADS_MAX - 1 && n + 1 < flush->count && pthread_create(&threads[n], NULL, flush_some, &work) == 0)
        n++; /* with fewer threads it only takes longer */
    flush_some(&work);
    for (size_t i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < flush->count; i++)
        if (flush->items[i].error)
            return lfs_fail_errno(err, flush->items[i].error, "cannot flush %s", flush->items[i].name);
    return 0;
}

void lfs_flush_close(struct lfs_flush *flush) {
    for (size_t i = 0; i < flush->count; i++)
        close(flush->items[i].fd);
    flush->count = 0;
}
