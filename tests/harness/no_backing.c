// SPDX-License-Identifier: Apache-2.0
// A library for LD_PRELOAD in which the kernel refuses to take a backing file: NO_BACKING is the errno's number, and
// how many calls are refused behind a colon (all, if it says none). Every other ioctl goes through.
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

struct backing_map {
    int32_t fd;
    uint32_t flags;
    uint64_t padding;
};
#define BACKING_OPEN _IOW(229, 1, struct backing_map)

static atomic_long calls;

int ioctl(int fd, unsigned long request, ...) {
    va_list args;
    va_start(args, request);
    void *argument = va_arg(args, void *);
    va_end(args);
    const char *word = getenv("NO_BACKING"), *many = word ? strchr(word, ':') : NULL;
    if (word && request == BACKING_OPEN && atomic_fetch_add(&calls, 1) < (many ? atol(many + 1) : 1000000)) {
        errno = atoi(word);
        return -1;
    }
    return (int)syscall(SYS_ioctl, fd, request, argument);
}
