/* SPDX-License-Identifier: Apache-2.0 */
/* A temporary directory with files in it, for targets that need one. It goes when the program ends. */
#ifndef LFS_TESTS_FUZZ_DISK_H
#define LFS_TESTS_FUZZ_DISK_H

#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <sys/stat.h>

#include "fuzz.h"

static char disk_root[128];

static inline int disk_remove_one(const char *path, const struct stat *st, int type, struct FTW *where) {
    (void)st, (void)type, (void)where;
    return remove(path);
}

static inline void disk_remove(void) { nftw(disk_root, disk_remove_one, 16, FTW_DEPTH | FTW_PHYS); }

static inline void disk_make(void) {
    const char *tmp = getenv("TMPDIR");
    snprintf(disk_root, sizeof disk_root, "%s/lancefs-fuzz-XXXXXX", tmp ? tmp : "/tmp");
    FUZZ_MUST(mkdtemp(disk_root));
    atexit(disk_remove);
}

/* The path below the root, with every directory on the way made. */
static inline char *disk_path(const char *path, char full[PATH_MAX]) {
    snprintf(full, PATH_MAX, "%s/%s", disk_root, path);
    for (char *p = full + strlen(disk_root) + 1; (p = strchr(p, '/')); *p++ = '/') {
        *p = '\0';
        mkdir(full, 0755);
    }
    return full;
}

static inline void disk_put(const char *path, const void *bytes, size_t length) {
    char full[PATH_MAX];
    FILE *file = fopen(disk_path(path, full), "w");
    FUZZ_MUST(file && fwrite(bytes, 1, length, file) == length && fclose(file) == 0);
}

static inline void disk_link(const char *path, const char *target) {
    char full[PATH_MAX];
    FUZZ_MUST(symlink(target, disk_path(path, full)) == 0);
}

#endif
