/* SPDX-License-Identifier: Apache-2.0 */
#include "table/stamp.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "table/location.h"
#include "util/cleanup.h"
#include "util/map.h"

/* What changed this shortly before it was looked at may change again within one tick of the file system's clock, unseen. */
enum { CLOCK_TICK_NS = 50000000 };

static bool is_later(struct timespec a, struct timespec b) {
    return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec > b.tv_nsec;
}

errint_t lfs_stamp_directory(struct lfs_dataset *ds, const char *dir, const char *name, struct lfs_stamp *stamp) {
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    struct stat st = {0};
    char *path = arena ? lfs_join(arena, dir, name) : NULL;
    if (!path)
        return -ENOMEM;
    LFS_AUTO_FD fd = lfs_dataset_open_beneath(ds, path, O_PATH | O_DIRECTORY);
    if (fd >= 0 && fstat(fd, &st) < 0)
        return -errno;
    uint64_t seen[] = {(uint64_t)st.st_dev,         st.st_ino,
                       (uint64_t)st.st_mtim.tv_sec, (uint64_t)st.st_mtim.tv_nsec,
                       (uint64_t)st.st_ctim.tv_sec, (uint64_t)st.st_ctim.tv_nsec};
    lfs_stamp_text(path, stamp);
    stamp->hash = lfs_hash(seen, sizeof seen, stamp->hash);
    if (is_later(st.st_mtim, stamp->newest))
        stamp->newest = st.st_mtim;
    if (is_later(st.st_ctim, stamp->newest))
        stamp->newest = st.st_ctim;
    return 0;
}

void lfs_stamp_text(const char *text, struct lfs_stamp *stamp) {
    stamp->hash = lfs_hash(text, strlen(text), stamp->hash);
}

bool lfs_is_settled(struct timespec newest, struct timespec made) {
    int64_t age = (int64_t)(made.tv_sec - newest.tv_sec) * 1000000000 + (made.tv_nsec - newest.tv_nsec);
    return age > CLOCK_TICK_NS;
}

bool lfs_stamp_is_settled(const struct lfs_stamp *stamp, struct timespec made) {
    return lfs_is_settled(stamp->newest, made);
}
