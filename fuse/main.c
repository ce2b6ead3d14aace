/* SPDX-License-Identifier: Apache-2.0 */
/* lancefs: start, serve, stop. Exit status 0, 1 for a failure to start, 2 for a wrong command line. */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuse/copies.h"
#include "fuse/handles.h"
#include "fuse/hooks.h"
#include "fuse/mount.h"
#include "fuse/passthrough.h"
#include "fuse/removals.h"
#include "fuse/staged.h"
#include "fuse/start.h"
#include "fuse/stats.h"
#include "fuse/texts.h"
#include "fuse/images.h"
#include "util/cleanup.h"
#include "util/log.h"
#include "verbs/conflicts.h"
#include "verbs/discard.h"
#include "verbs/names.h"
#include "version.h"

enum { EXIT_START = 1, EXIT_USAGE = 2 };
enum { STOP_SECONDS = 8, POKE_MS = 50 };
enum { MMAP_BYTES = 32 << 20, FREE_BYTES_MAX = 64 << 20 };

/* --- what libfuse says while it starts goes into our one line --- */

static char fuse_said[512];
static bool fuse_said_all, heard_all; /* heard_all: standard error is ours (start.h) */

/* A message comes in pieces, and ends with its newline; the first one is the cause. */
static void keep_fuse_message(enum fuse_log_level level, const char *format, va_list args) {
    size_t length = strlen(fuse_said);
    (void)level;
    if (heard_all) { /* a child of libfuse has only a copy of this memory, but the same standard error */
        va_list again;
        va_copy(again, args);
        vfprintf(stderr, format, again);
        va_end(again);
    }
    if (fuse_said_all)
        return;
    vsnprintf(fuse_said + length, sizeof fuse_said - length, format, args);
    length = strcspn(fuse_said, "\n");
    fuse_said_all = fuse_said[length] != '\0';
    fuse_said[length] = '\0';
}

__attribute__((format(printf, 2, 0))) static void log_fuse_message(enum fuse_log_level level, const char *format,
                                                                   va_list args) {
    char line[1024];
    vsnprintf(line, sizeof line, format, args);
    line[strcspn(line, "\n")] = '\0';
    lfs_log(level <= FUSE_LOG_ERR       ? LFS_LOG_ERROR
            : level <= FUSE_LOG_WARNING ? LFS_LOG_WARNING
            : level <= FUSE_LOG_INFO    ? LFS_LOG_INFO
                                        : LFS_LOG_DEBUG,
            "%s", line);
}

static const char *fuse_reason(const char *heard) {
    const char *said = *fuse_said ? fuse_said : heard;
    said = strncmp(said, "fuse: ", 6) == 0 ? said + 6 : said;
    return *said ? said : "libfuse gives no reason";
}

static int complain(const struct lfs_error *err, int status) {
    fprintf(stderr, "lancefs: %s\n", err->message);
    return status;
}

/* --- the process --- */

/* Descriptors 0 to 2 are never something else than the standard ones. */
static void keep_standard_descriptors(void) {
    int fd;
    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd > STDERR_FILENO)
        close(fd);
}

static void raise_file_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* A merge of many fragments asks for megabytes, and frees them: giving those back to the kernel and getting them anew,
 * page by page, took a third of its time. One heap for all threads, so that only one keeps what is free. */
static void keep_free_memory(void) {
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_MMAP_THRESHOLD, MMAP_BYTES);
    mallopt(M_TRIM_THRESHOLD, FREE_BYTES_MAX);
}

/* In the child: no terminal, no working directory, nothing held open of who started it. A log that is redirected to a
 * file stays. */
static void detach(void) {
    struct stat st;
    setsid();
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0)
        return;
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    if (fstat(STDERR_FILENO, &st) < 0 || !S_ISREG(st.st_mode)) {
        dup2(null, STDERR_FILENO);
        lfs_log_leave_stderr();
    }
    close(null);
}

/* Go into the background: the parent stays until the mount answers and then leaves with 0, or with 1 when the child
 * ends before. Only the child returns. */
static errint_t daemonize(struct lfs_mount *m, struct lfs_error *err) {
    int ready[2];
    char byte;
    if (pipe2(ready, O_CLOEXEC) < 0)
        return lfs_fail_errno(err, errno, "cannot go into the background");
    pid_t pid = fork();
    if (pid < 0)
        return lfs_fail_errno(err, errno, "cannot go into the background");
    if (pid > 0) {
        ssize_t n;
        close(ready[1]);
        while ((n = read(ready[0], &byte, 1)) < 0 && errno == EINTR) {
        }
        if (n != 1)
            fprintf(stderr, "lancefs: %s: the daemon ended before the mount answered\n", m->mountpoint);
        _exit(n == 1 ? 0 : EXIT_START);
    }
    close(ready[0]);
    m->ready_fd = ready[1];
    detach();
    return 0;
}

/* --- stopping --- */

struct stopper {
    struct lfs_mount *m;
    pthread_t loop;
    atomic_bool loop_ended;
    atomic_bool stuck; /* a command did not stop in time */
};

static void woken(int signal_number) { (void)signal_number; }

static void stop_signals(sigset_t *set) {
    sigemptyset(set);
    sigaddset(set, SIGHUP);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGTERM);
}

/* With a log file SIGHUP asks for a new one; without, the terminal has gone. */
static bool reopen_log(const struct lfs_mount *m) {
    if (!m->options->log_file)
        return false;
    int result = lfs_log_reopen();
    if (result < 0)
        lfs_log(LFS_LOG_ERROR, "cannot open the log file %s again: %s", m->options->log_file, strerror(-result));
    return true;
}

/* Waits for a signal; ends the commands while requests are still served, then the loop. */
static void *wait_for_signals(void *argument) {
    struct stopper *s = argument;
    sigset_t set;
    int got;
    stop_signals(&set);
    while (sigwait(&set, &got) != 0 || (got == SIGHUP && reopen_log(s->m))) {
    }
    if (!s->loop_ended) {
        if (!lfs_control_stop(s->m->control, STOP_SECONDS))
            s->stuck = true;
        fuse_session_exit(s->m->session);
    }
    while (!s->loop_ended) { /* the loop looks at the session's end only when a signal wakes it */
        pthread_kill(s->loop, SIGUSR1);
        usleep(POKE_MS * 1000);
    }
    return NULL;
}

static int run_loop(struct lfs_mount *m) {
    if (m->options->single_thread)
        return fuse_session_loop(m->session);
    struct fuse_loop_config *config = fuse_loop_cfg_create();
    if (!config)
        return -ENOMEM;
    fuse_loop_cfg_set_max_threads(config, m->options->max_threads);
    fuse_loop_cfg_set_idle_threads(config, m->options->max_threads); /* ending and making threads costs a lot */
    fuse_loop_cfg_set_clone_fd(config, 0);
    int result = fuse_session_loop_mt(m->session, config);
    fuse_loop_cfg_destroy(config);
    return result;
}

static int serve(struct lfs_mount *m) {
    sigset_t set;
    pthread_t thread;
    struct stopper s = {.m = m, .loop = pthread_self()};
    struct sigaction wake = {.sa_handler = woken},
                     ignore = {.sa_handler = SIG_IGN}; /* no SA_RESTART: it is to interrupt */
    sigaction(SIGUSR1, &wake, NULL);
    sigaction(SIGPIPE, &ignore, NULL);
    stop_signals(&set);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    if (pthread_create(&thread, NULL, wait_for_signals, &s) != 0)
        return EXIT_START;
    int result = run_loop(m);
    s.loop_ended = true;
    pthread_kill(thread, SIGTERM);
    pthread_join(thread, NULL);
    if (!s.stuck && !lfs_control_stop(m->control, STOP_SECONDS)) /* after an unmount a command may still run */
        s.stuck = true;
    lfs_log(LFS_LOG_DEBUG, "%zu nodes were known at the end", lfs_nodes_count(m->nodes));
    fuse_session_unmount(m->session);
    if (s.stuck)
        _exit(0); /* what a command still uses is not freed under it */
    if (result != 0)
        lfs_log(LFS_LOG_ERROR, "the loop of %s ended with %d", m->mountpoint, result);
    return result < 0 ? EXIT_START : 0;
}

/* --- starting --- */

static void dismantle(struct lfs_mount *m) {
    lfs_opens_free(m, m->opens);
    lfs_stage_free(m->stage);
    lfs_texts_free(m->texts);
    lfs_images_free(m->images);
    lfs_passthrough_free(m->passthrough);
    lfs_stats_free(m->stats);
    lfs_control_free(m->control);
    lfs_hooks_free(m->hooks);
    lfs_conflicts_free(m->conflicts);
    lfs_discards_free(m->discards);
    lfs_copies_free(m->copies);
    lfs_removals_free(m->removals);
    if (m->session)
        fuse_session_destroy(m->session);
    lfs_nodes_free(m->nodes);
    lfs_tree_cache_free(m->trees);
    lfs_views_free(m->views);
    lfs_dataset_close(m->dataset);
    free(m->mountpoint);
}

/* Finish what a daemon that was killed left half-done. What cannot be repaired now is no reason not to mount. */
static void repair_names(struct lfs_mount *m) {
    const struct lfs_names names = {m->dataset, &m->settings, NULL};
    struct lfs_error err;
    unsigned repaired = 0;
    if (m->settings.read_only)
        return;
    if (lfs_names_repair(&names, &repaired, &err) < 0)
        lfs_log(LFS_LOG_ERROR, "a change of names that was interrupted cannot be repaired: %s", err.message);
    else if (repaired)
        lfs_log(LFS_LOG_WARNING, "%u changes of names that were interrupted have been finished or taken back", repaired);
}

static errint_t open_dataset(struct lfs_mount *m, struct lfs_error *err) {
    const struct lfs_options *o = m->options;
    struct stat st;
    struct lfs_dataset_options dataset_options = {
        .bases_limited = o->bases_given || o->allow_other,
        .bases = (const char *const *)o->bases,
        .map_old = (const char *const *)o->map_old,
        .map_new = (const char *const *)o->map_new,
        .cache_bytes_max = o->cache_bytes / 2,
    };
    LFS_TRY(lfs_dataset_open(o->dataset, &dataset_options, &m->dataset, err));
    LFS_TRY(lfs_views_new(m->dataset, o->cache_bytes / 8 * 3, &m->views, err));
    if (fstat(lfs_dataset_root_fd(m->dataset), &st) < 0)
        return lfs_fail_errno(err, errno, "cannot stat %s", o->dataset);
    m->nodes = lfs_nodes_new(st.st_dev);
    m->trees = lfs_tree_cache_new(m->dataset);
    m->control = lfs_control_new(m);
    m->conflicts = lfs_conflicts_new();
    m->opens = lfs_opens_new();
    m->stage = lfs_stage_new();
    m->texts = lfs_texts_new(o->cache_bytes / 8);
    m->images = lfs_images_new(o->cache_bytes / 8);
    m->stats = lfs_stats_new();
    m->discards = lfs_discards_new(m->dataset);
    m->copies = lfs_copies_new();
    m->removals = lfs_removals_new();
    m->passthrough = lfs_passthrough_new(o->passthrough);
    if (!m->nodes || !m->trees || !m->control || !m->conflicts || !m->opens || !m->stage || !m->texts || !m->images ||
        !m->stats || !m->discards || !m->copies || !m->removals ||
        !m->passthrough)
        return lfs_fail_nomem(err);
    m->settings = (struct lfs_verb_settings){.mode = o->mode, .sync = o->sync, .read_only = o->read_only};
    repair_names(m);
    return 0;
}

/* Fills err; returns the exit status. */
static int start(struct lfs_mount *m, struct lfs_error *err) {
    struct lfs_options *o = (struct lfs_options *)m->options;
    errint_t result = lfs_log_open(o->log_file, o->log_level);
    if (result < 0) {
        lfs_fail_errno(err, -result, "cannot open the log file %s", o->log_file);
        return EXIT_START;
    }
    fuse_set_log_func(keep_fuse_message);
    m->session = fuse_session_new(&o->args, &lfs_operations, sizeof lfs_operations, m);
    if (!m->session) { /* it finds the options that nobody knows */
        lfs_fail(err, LFS_E_USAGE, "%s", fuse_reason(""));
        return EXIT_USAGE;
    }
    result = lfs_passthrough_check(o->passthrough, err);
    if (result == 0)
        result = open_dataset(m, err);
    if (result == 0)
        result = lfs_start_check_mountpoint(o->mountpoint, o->dataset, &m->mountpoint, err);
    if (result == 0 && o->hooks)
        result = lfs_hooks_new(m, o->hooks, o->hooks_timeout, &m->hooks, err);
    if (result < 0)
        return EXIT_START;
    bool empty = lfs_start_is_empty(m->mountpoint);
    char heard[400] = "";
    heard_all = true;
    int mounted = lfs_start_mount(m->session, m->mountpoint, heard, sizeof heard);
    heard_all = false;
    if (mounted != 0) {
        const char *reason = fuse_reason(heard);
        lfs_fail(err, LFS_E_SYSTEM, "cannot mount on %s: %s%s", o->mountpoint, reason, lfs_start_advice(reason));
        return EXIT_START;
    }
    if (!empty)
        fprintf(stderr, "lancefs: %s is not empty: what lies in it is hidden while the data set is mounted\n", o->mountpoint);
    lfs_passthrough_attach(m);
    if (chdir("/") < 0 || (!o->foreground && daemonize(m, err) < 0)) {
        fuse_session_unmount(m->session);
        return EXIT_START;
    }
    fuse_set_log_func(log_fuse_message);
    return 0;
}

static int mount_and_serve(struct lfs_options *options) {
    struct lfs_error err = {.message = "cannot leave the working directory"};
    struct lfs_mount m = {.options = options, .uid = getuid(), .gid = getgid(), .ready_fd = -1};
    raise_file_limit();
    int status = start(&m, &err);
    status = status ? complain(&err, status) : serve(&m);
    dismantle(&m);
    return status;
}

int main(int argc, char **argv) {
    struct lfs_options options;
    struct lfs_error err;
    int status = 0;
    keep_free_memory();
    keep_standard_descriptors();
    errint_t result = lfs_options_parse(argc, argv, &options, &err);
    if (result < 0)
        status = complain(&err, err.code == LFS_E_UNSUPPORTED ? EXIT_START : EXIT_USAGE);
    else if (options.show_help)
        fputs(lfs_options_help, stdout);
    else if (options.show_version)
        printf("lancefs %s\nlibfuse %s\ntested with %s\n", LFS_VERSION, fuse_pkgversion(), LFS_TESTED_WITH);
    else
        status = mount_and_serve(&options);
    lfs_options_free(&options);
    return status;
}
