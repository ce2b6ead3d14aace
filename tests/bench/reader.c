// SPDX-License-Identifier: Apache-2.0
// Reads of one file, timed: `reader FILE seq|random BLOCK COUNT READERS [drop]` prints milliseconds. COUNT blocks are read
// by each of READERS processes, at offsets that are the same in every run. With `drop` what the kernel has cached for this
// very path goes before the clock starts: on a FUSE mount its own copy, not the base's.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static _Noreturn void fail(const char *what) {
    perror(what);
    exit(1);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void drop(const char *path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED))
        fail(path);
    close(fd);
}

static void read_blocks(const char *path, int random, size_t block, long count, uint64_t seed) {
    struct stat st;
    char *buffer = malloc(block);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0 || !buffer || st.st_size < (off_t)block)
        fail(path);
    uint64_t blocks = (uint64_t)st.st_size / block, at = seed * (blocks / 4), state = 88172645463325252u + seed;
    for (long i = 0; i < count; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        uint64_t k = random ? state % blocks : (at + (uint64_t)i) % blocks;
        if (pread(fd, buffer, block, (off_t)(k * block)) != (ssize_t)block)
            fail("pread");
    }
    close(fd);
    free(buffer);
}

int main(int argc, char **argv) {
    if (argc < 6)
        return 2;
    int random = !strcmp(argv[2], "random"), readers = atoi(argv[5]);
    size_t block = strtoul(argv[3], NULL, 10);
    long count = atol(argv[4]);
    if (argc > 6)
        drop(argv[1]);
    double start = now();
    for (int r = 0; r < readers; r++) {
        pid_t pid = fork();
        if (pid < 0)
            fail("fork");
        if (pid == 0) {
            read_blocks(argv[1], random, block, count, (uint64_t)r);
            _exit(0);
        }
    }
    int status, failed = 0;
    while (wait(&status) > 0)
        failed |= status != 0;
    printf("%.3f\n", now() - start);
    return failed;
}
