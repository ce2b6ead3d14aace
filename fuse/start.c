/* SPDX-License-Identifier: Apache-2.0 */
#include "fuse/start.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/log.h"

#define OWN_TYPE "fuse.lancefs"
#define READ_AHEAD_KB                                                                                                  \
    "1024\n" /* measured: 128 KiB, the default, costs half of the speed of long reads; more brings nothing */

/* Undo the \ooo escapes of mountinfo, in place. */
static void unescape(char *text) {
    char *out = text;
    for (const char *p = text; *p;) {
        if (p[0] == '\\' && p[1] >= '0' && p[1] <= '3' && p[2] && p[3]) {
            *out++ = (char)((p[1] - '0') << 6 | (p[2] - '0') << 3 | (p[3] - '0'));
            p += 4;
        } else {
            *out++ = *p++;
        }
    }
    *out = '\0';
}

struct mounted {
    char type[64];
    unsigned major, minor;
};

/* The topmost mount at exactly this path, from /proc/self/mountinfo (proc(5)). */
static bool find_mount(const char *path, struct mounted *out) {
    bool found = false;
    char *line = NULL;
    size_t size = 0;
    FILE *file = fopen("/proc/self/mountinfo", "re");
    while (file && getline(&line, &size, file) > 0) {
        unsigned major, minor;
        char *save, *field = strtok_r(line, " ", &save); /* id, parent, device, root, mount point, ..., "-", type */
        for (int i = 0; field && i < 2; i++)
            field = strtok_r(NULL, " ", &save);
        if (!field || sscanf(field, "%u:%u", &major, &minor) != 2 || !strtok_r(NULL, " ", &save) ||
            !(field = strtok_r(NULL, " ", &save)))
            continue;
        unescape(field);
        if (strcmp(field, path) != 0)
            continue;
        while ((field = strtok_r(NULL, " ", &save)) && strcmp(field, "-") != 0) {
        }
        field = field ? strtok_r(NULL, " ", &save) : NULL;
        if (!field)
            continue;
        found = true;
        snprintf(out->type, sizeof out->type, "%s", field);
        out->major = major;
        out->minor = minor;
    }
    free(line);
    if (file)
        fclose(file);
    return found;
}

/* A path without links whose last component need not answer. */
static char *real_path_of_dead(const char *path) {
    char trimmed[PATH_MAX], real[PATH_MAX], *out = NULL;
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    if (length >= sizeof trimmed)
        return NULL;
    memcpy(trimmed, path, length);
    trimmed[length] = '\0';
    char *slash = strrchr(trimmed, '/');
    const char *last = slash ? slash + 1 : trimmed, *parent = slash == trimmed ? "/" : slash ? trimmed : ".";
    if (slash)
        *slash = '\0';
    if (!realpath(*parent ? parent : "/", real))
        return NULL;
    return asprintf(&out, "%s/%s", strcmp(real, "/") ? real : "", last) < 0 ? NULL : out;
}

static bool run_fusermount(const char *path) {
    pid_t pid = fork();
    int status;
    if (pid == 0) {
        execlp("fusermount3", "fusermount3", "-u", "-z", "-q", "--", path, (char *)NULL);
        _exit(127);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* The daemon behind a mount of ours died: take the mount away. Nobody else's. */
static errint_t clear_dead_mount(const char *mountpoint, struct lfs_error *err) {
    struct mounted mounted;
    LFS_AUTO_FREE char *real = real_path_of_dead(mountpoint);
    if (!real || !find_mount(real, &mounted) || strcmp(mounted.type, OWN_TYPE) != 0)
        return lfs_fail_errno(err, ENOTCONN, "cannot mount on %s", mountpoint);
    if (umount2(real, MNT_DETACH) < 0 && !run_fusermount(real))
        return lfs_fail(err, LFS_E_SYSTEM, "a dead mount lies on %s and cannot be taken away: fusermount3 -uz %s",
                        mountpoint, real);
    lfs_log(LFS_LOG_INFO, "took a dead mount away from %s", real);
    return 0;
}

static bool lies_in(const char *path, const char *directory) {
    size_t length = strlen(directory);
    if (strcmp(directory, "/") == 0)
        return true;
    return strncmp(path, directory, length) == 0 && (!path[length] || path[length] == '/');
}

errint_t lfs_start_check_mountpoint(const char *mountpoint, const char *dataset, char **real, struct lfs_error *err) {
    struct stat st;
    char real_dataset[PATH_MAX];
    *real = NULL;
    int result = stat(mountpoint, &st);
    if (result < 0 && errno == ENOTCONN) {
        LFS_TRY(clear_dead_mount(mountpoint, err));
        result = stat(mountpoint, &st);
    }
    if (result < 0)
        return lfs_fail_errno(err, errno, "cannot mount on %s", mountpoint);
    if (!S_ISDIR(st.st_mode))
        return lfs_fail_errno(err, ENOTDIR, "cannot mount on %s", mountpoint);
    *real = realpath(mountpoint, NULL);
    if (!*real || !realpath(dataset, real_dataset))
        return lfs_fail_errno(err, errno, "cannot resolve %s", *real ? dataset : mountpoint);
    struct mounted mounted;
    if (find_mount(*real, &mounted) && strcmp(mounted.type, OWN_TYPE) == 0)
        return lfs_fail(err, LFS_E_BUSY, "a data set is mounted on %s already: fusermount3 -u %s, or choose another place",
                        mountpoint, *real);
    if (lies_in(*real, real_dataset))
        return lfs_fail(err, LFS_E_USAGE, "the mount point %s lies in the data set %s", mountpoint, dataset);
    if (lies_in(real_dataset, *real))
        return lfs_fail(err, LFS_E_USAGE, "the data set %s lies in the mount point %s", dataset, mountpoint);
    return 0;
}

bool lfs_start_is_empty(const char *mountpoint) {
    DIR *dir = opendir(mountpoint);
    bool empty = true;
    struct dirent *entry;
    while (dir && empty && (entry = readdir(dir)))
        empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
    if (dir)
        closedir(dir);
    return empty;
}

/* --- what others say while it is mounted --- */

/* Standard error is a file meanwhile: libfuse's child and fusermount3 talk there. The first line is the cause. */
int lfs_start_mount(struct fuse_session *session, const char *mountpoint, char *said, size_t size) {
    LFS_AUTO_FD heard = memfd_create("said", MFD_CLOEXEC);
    LFS_AUTO_FD before = heard < 0 ? -1 : fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (before >= 0)
        dup2(heard, STDERR_FILENO);
    int result = fuse_session_mount(session, mountpoint);
    if (before < 0)
        return result;
    dup2(before, STDERR_FILENO);
    ssize_t n = pread(heard, said, size - 1, 0);
    said[n < 0 ? 0 : n] = '\0';
    said[strcspn(said, "\n")] = '\0';
    return result;
}

const char *lfs_start_advice(const char *reason) {
    static const struct {
        const char *says, *advice;
    } table[] = {
        {"exec fusermount3", ": install the package fuse3"},
        {"/dev/fuse: Permission denied", ": only those who may open it can mount, or root (in a container: --device /dev/fuse)"},
        {"/dev/fuse: Operation not permitted", ": in a container add --device /dev/fuse --cap-add SYS_ADMIN"},
        {"device not found", " (in a container: --device /dev/fuse --cap-add SYS_ADMIN)"},
        {"/dev/fuse: No such", ": modprobe fuse, or in a container --device /dev/fuse --cap-add SYS_ADMIN"},
        {"user_allow_other", ": root writes user_allow_other into /etc/fuse.conf, or leave allow_other out"},
        {"mount failed: Operation not permitted", ": in a container add --cap-add SYS_ADMIN"},
        {"no write access to mountpoint", ": only who may write there, or root, can mount on it"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strstr(reason, table[i].says))
            return table[i].advice;
    return "";
}

/* --- read-ahead --- */

static pthread_once_t tuned = PTHREAD_ONCE_INIT;
static const char *tuned_mountpoint; /* set before the first request but INIT */

static void raise_read_ahead(void) {
    struct mounted mounted;
    char path[96];
    if (!find_mount(tuned_mountpoint, &mounted))
        return;
    snprintf(path, sizeof path, "/sys/class/bdi/%u:%u/read_ahead_kb", mounted.major, mounted.minor);
    LFS_AUTO_FD fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, READ_AHEAD_KB, strlen(READ_AHEAD_KB)) < 0)
        lfs_log(LFS_LOG_DEBUG, "cannot set %s", path);
}

void lfs_start_tune(void) { pthread_once(&tuned, raise_read_ahead); }

/* --- INIT --- */

/* A service manager that waits (sd_notify(3)) names a socket; '@' stands for the NUL of an abstract one. */
static void notify_manager(void) {
    const char *name = getenv("NOTIFY_SOCKET"), *ready = "READY=1";
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = name ? strlen(name) : 0;
    if (length == 0 || length >= sizeof address.sun_path || (*name != '/' && *name != '@'))
        return;
    memcpy(address.sun_path, name, length);
    if (*name == '@')
        address.sun_path[0] = '\0';
    LFS_AUTO_FD fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || sendto(fd, ready, strlen(ready), MSG_NOSIGNAL, (struct sockaddr *)&address,
                         (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)) < 0)
        lfs_log(LFS_LOG_WARNING, "cannot tell %s that the mount answers: %s", name, strerror(errno));
}

void lfs_start_ready(struct lfs_mount *m) {
    tuned_mountpoint = m->mountpoint;
    notify_manager();
    if (m->ready_fd < 0)
        return;
    ssize_t written = write(m->ready_fd, "", 1);
    (void)written;
    close(m->ready_fd);
    m->ready_fd = -1;
}
