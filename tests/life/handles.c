/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File handles as a server of files keeps them (name_to_handle_at(2)):
 *   handles save OUT PATH...      one handle for each path into OUT; exit 3 where the file system gives none
 *   handles open IN MOUNT         opens each of them: a line "open <inode> <size>" or "error <errno>"; needs CAP_DAC_READ_SEARCH
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct handle {
    struct file_handle head;
    unsigned char bytes[MAX_HANDLE_SZ];
};

static int save(const char *out, char **paths, int n) {
    FILE *file = fopen(out, "w");
    if (!file)
        return perror(out), 1;
    for (int i = 0; i < n; i++) {
        struct handle h = {.head.handle_bytes = MAX_HANDLE_SZ};
        int mount;
        if (name_to_handle_at(AT_FDCWD, paths[i], &h.head, &mount, 0) < 0)
            return perror(paths[i]), errno == EOPNOTSUPP ? 3 : 1;
        if (fwrite(&h, sizeof h, 1, file) != 1)
            return 1;
    }
    return fclose(file) != 0;
}

static int open_all(const char *in, const char *mount) {
    FILE *file = fopen(in, "r");
    int at = open(mount, O_RDONLY | O_DIRECTORY);
    struct handle h;
    if (!file || at < 0)
        return perror(mount), 1;
    while (fread(&h, sizeof h, 1, file) == 1) {
        struct stat st;
        int fd = open_by_handle_at(at, &h.head, O_RDONLY);
        if (fd < 0 || fstat(fd, &st) < 0)
            printf("error %d\n", errno);
        else
            printf("open %llu %lld\n", (unsigned long long)st.st_ino, (long long)st.st_size);
        if (fd >= 0)
            close(fd);
    }
    fclose(file);
    close(at);
    return 0;
}

int main(int argc, char **argv) {
    if (argc > 3 && strcmp(argv[1], "save") == 0)
        return save(argv[2], argv + 3, argc - 3);
    if (argc == 4 && strcmp(argv[1], "open") == 0)
        return open_all(argv[2], argv[3]);
    fprintf(stderr, "usage: handles save OUT PATH... | handles open IN MOUNT\n");
    return 2;
}
