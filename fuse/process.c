/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fuse/hooks.h"
#include "util/cancel.h"
#include "util/cleanup.h"

enum { LOOK_MS = 50 /* how soon a cancel is seen */, GRACE_MS = 2000 /* between SIGTERM and SIGKILL */ };

struct child {
    const struct lfs_process *what;
    pid_t pid;
    int pidfd, in, out; /* -1 = closed */
    size_t written, read;
    bool exited;
    int status;
};

/* Only calls that are safe between fork and exec of a process with threads. */
static _Noreturn void become(const struct lfs_process *p, int in, int out) {
    char *arguments[] = {(char *)p->path, NULL};
    struct rlimit files;
    sigset_t none;
    setsid();
    sigemptyset(&none);
    for (int signal_number = 1; signal_number < NSIG; signal_number++)
        signal(signal_number, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur > 1024) { /* we raised it for ourselves */
        files.rlim_cur = 1024;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    umask(077);
    if (dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 || dup2(out, STDERR_FILENO) < 0 || chdir("/") < 0)
        _exit(126);
    syscall(SYS_close_range, 3u, ~0u, 0u); /* where the kernel has none, all of ours close by themselves */
    execve(p->path, arguments, p->environment);
    const char *why = strerror(errno);
    if (write(STDERR_FILENO, why, strlen(why)) < 0)
        _exit(126);
    _exit(127);
}

static errint_t start(struct child *c, struct lfs_error *err) {
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) < 0)
        return lfs_fail_errno(err, errno, "cannot run %s", c->what->path);
    if (pipe2(out, O_CLOEXEC) < 0) {
        errint_t result = lfs_fail_errno(err, errno, "cannot run %s", c->what->path);
        close(in[0]);
        close(in[1]);
        return result;
    }
    c->pid = fork();
    if (c->pid == 0)
        become(c->what, in[0], out[1]);
    int error = c->pid < 0 ? errno : 0;
    close(in[0]);
    close(out[1]);
    c->in = in[1];
    c->out = out[0];
    fcntl(c->in, F_SETFL, O_NONBLOCK);
    fcntl(c->out, F_SETFL, O_NONBLOCK);
    c->pidfd = error ? -1 : (int)syscall(SYS_pidfd_open, c->pid, 0);
    return error ? lfs_fail_errno(err, error, "cannot run %s", c->what->path) : 0;
}

static void shut(int *fd) {
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void feed(struct child *c) {
    while (c->written < c->what->input_length) {
        ssize_t n = write(c->in, c->what->input + c->written, c->what->input_length - c->written);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n < 0)
            break; /* it does not want to know */
        c->written += (size_t)n;
    }
    shut(&c->in);
}

static void listen_to(struct child *c) {
    char bytes[4096];
    for (;;) {
        ssize_t n = read(c->out, bytes, sizeof bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0)
            break;
        size_t room = LFS_PROCESS_OUTPUT_MAX - c->read, take = (size_t)n < room ? (size_t)n : room;
        for (size_t i = 0; i < take; i++) /* it becomes text, without NULs */
            bytes[i] = bytes[i] ? bytes[i] : '?';
        lfs_buf_add(c->what->output, bytes, take);
        c->read += take;
    }
    shut(&c->out);
}

static int64_t now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Serve the pipes until it ends, or until `until`, or until it is cancelled. */
static void attend(struct child *c, int64_t until, const atomic_bool *cancel) {
    while (!c->exited && now_ms() < until && !lfs_is_cancelled(cancel)) {
        struct pollfd fds[] = {
            {.fd = c->pidfd, .events = POLLIN}, {.fd = c->in, .events = POLLOUT}, {.fd = c->out, .events = POLLIN}};
        int64_t left = until - now_ms();
        if (poll(fds, 3, left < LOOK_MS ? (int)(left > 0 ? left : 0) : LOOK_MS) < 0 && errno != EINTR)
            return;
        if (fds[1].revents)
            feed(c);
        if (fds[2].revents)
            listen_to(c);
        c->exited = waitpid(c->pid, &c->status, WNOHANG) == c->pid;
    }
}

/* It and its session: what it began there is not to go on with something that was given up. */
static void end(struct child *c) {
    kill(-c->pid, SIGTERM);
    attend(c, now_ms() + GRACE_MS, NULL);
    kill(-c->pid, SIGKILL);
    while (!c->exited && waitpid(c->pid, &c->status, 0) < 0 && errno == EINTR) {
    }
}

errint_t lfs_process_run(const struct lfs_process *process, int *status, struct lfs_error *err) {
    struct child c = {.what = process, .pidfd = -1, .in = -1, .out = -1};
    errint_t result = start(&c, err);
    if (result == 0) {
        attend(&c, now_ms() + (int64_t)process->timeout_seconds * 1000, process->cancel);
        if (!c.exited) {
            bool cancelled = lfs_is_cancelled(process->cancel);
            end(&c);
            result = cancelled ? lfs_fail(err, LFS_E_INTERRUPTED, "interrupted while %s ran: nothing was committed",
                                          process->path)
                               : lfs_fail(err, LFS_E_BUSY, "%s did not end within %u seconds", process->path,
                                          process->timeout_seconds);
        }
        if (c.out >= 0)
            listen_to(&c); /* what is there already; nobody waits for what it left running */
        *status = c.status;
    }
    shut(&c.in);
    shut(&c.out);
    shut(&c.pidfd);
    return result;
}
