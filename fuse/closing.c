/* SPDX-License-Identifier: Apache-2.0 */
#include "fuse/closing.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fuse/callers.h"

/* Process flags and fields of /proc/PID/stat (proc(5)); the flags are the kernel's PF_*. */
enum { FLAG_EXITING = 0x4, FLAG_SIGNALED = 0x400, FLAG_KERNEL_THREAD = 0x200000 };
enum { FIELD_FLAGS = 9, FIELD_EXIT_CODE = 52 };

/* ioctl(2) of a pidfd, Linux 6.13; the exit status of a process that was waited for, Linux 6.15. */
struct pidfd_info {
    uint64_t mask, cgroup_id;
    uint32_t ids[11]; /* pid, tgid, ppid and the user and group ids */
    int32_t exit_code;
};
#define PIDFD_GET_INFO _IOWR(0xFF, 11, struct pidfd_info)
#define PIDFD_INFO_EXIT (UINT64_C(1) << 3)

struct process {
    unsigned long flags;
    long exit_code;
};

static bool look(pid_t pid, struct process *out) {
    char text[2048];
    if (pid <= 0 || lfs_proc_read(pid, "stat", text, sizeof text) < 0)
        return false;
    char *p = strrchr(text, ')'); /* the name before it may hold anything */
    *out = (struct process){0};
    if (!p)
        return false;
    int field = 2;
    for (char *save, *word = strtok_r(p + 1, " \n", &save); word; word = strtok_r(NULL, " \n", &save)) {
        field++;
        if (field == FIELD_FLAGS)
            out->flags = strtoul(word, NULL, 10);
        else if (field == FIELD_EXIT_CODE)
            out->exit_code = strtol(word, NULL, 10);
    }
    return field >= FIELD_FLAGS;
}

static bool died_of_signal(long exit_code) { return (exit_code & 0x7f) != 0; }

void lfs_writer_forget(struct lfs_writer *writer) {
    if (writer->watch >= 0)
        close(writer->watch);
    *writer = (struct lfs_writer){.watch = -1};
}

void lfs_writer_remember(struct lfs_writer *writer, pid_t tid) {
    if (writer->thread == tid && writer->watch >= 0)
        return;
    lfs_writer_forget(writer);
    writer->thread = tid;
    pid_t process = lfs_caller_of(tid);
    if (process <= 0)
        return;
    writer->process = process;
    writer->watch = (int)syscall(SYS_pidfd_open, writer->process, 0);
}

static bool is_descriptor_of(pid_t pid, const char *number, uint64_t ino, off_t position) {
    char name[64], text[1024];
    snprintf(name, sizeof name, "fdinfo/%.20s", number);
    if (lfs_proc_read(pid, name, text, sizeof text) < 0)
        return false;
    const char *pos = strstr(text, "pos:"), *inode = strstr(text, "\nino:");
    return pos && inode && strtoll(pos + strlen("pos:"), NULL, 10) == position &&
           strtoull(inode + strlen("\nino:"), NULL, 10) == ino;
}

/* The descriptor that is being closed is out of the table already. */
static bool has_other_descriptor(pid_t pid, uint64_t ino, off_t position) {
    char path[64];
    bool found = false;
    snprintf(path, sizeof path, "/proc/%ld/fdinfo", (long)pid);
    DIR *list = opendir(path);
    for (struct dirent *e; list && !found && (e = readdir(list));)
        found = e->d_name[0] != '.' && is_descriptor_of(pid, e->d_name, ino, position);
    if (list)
        closedir(list);
    return found;
}

/* How did a process end that is no more, or nearly so? */
static enum lfs_closing ending_of(const struct lfs_writer *writer) {
    struct process p;
    if (look(writer->process, &p)) { /* exiting, or a zombie */
        bool meant = p.flags & FLAG_EXITING && !(p.flags & FLAG_SIGNALED) && !died_of_signal(p.exit_code);
        return meant ? LFS_CLOSING_MEANT : LFS_CLOSING_IN_DOUBT;
    }
    struct pidfd_info info = {.mask = PIDFD_INFO_EXIT};
    if (writer->watch < 0 || ioctl(writer->watch, PIDFD_GET_INFO, &info) < 0 || !(info.mask & PIDFD_INFO_EXIT))
        return LFS_CLOSING_IN_DOUBT;
    return died_of_signal(info.exit_code) ? LFS_CLOSING_IN_DOUBT : LFS_CLOSING_MEANT;
}

enum lfs_closing lfs_closing_of(pid_t closer, const struct lfs_writer *writer, uint64_t ino, off_t position) {
    struct process p;
    if (!look(closer, &p) || p.flags & FLAG_KERNEL_THREAD)
        return ending_of(writer);
    if (p.flags & FLAG_SIGNALED)
        return LFS_CLOSING_IN_DOUBT;
    if (!(p.flags & FLAG_EXITING) && has_other_descriptor(closer, ino, position))
        return LFS_CLOSING_DUPLICATE;
    return LFS_CLOSING_MEANT;
}
