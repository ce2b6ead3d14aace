/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control files: what is written to them runs, what is read from them is the answer (interface.md section 3).
 *
 * A write that brings a newline is handed to a worker and answered when the command is done; the kernel sends one write
 * at a time to one file. Everything else is quick and done at once.
 */
#include "fuse/control.h"

#include <stdlib.h>
#include <string.h>

#include "fuse/closing.h"
#include "fuse/conflicts.h"
#include "fuse/handles.h"
#include "fuse/hooks.h"
#include "fuse/lines.h"
#include "fuse/reply.h"
#include "fuse/stats.h"
#include "util/cleanup.h"
#include "util/log.h"
#include "verbs/answer.h"

struct lfs_control {
    struct lfs_mount *m;
    struct lfs_answers *answers;
    struct lfs_workers *workers;
};

/* What is said through one open control file. */
struct lfs_talk {
    pthread_mutex_t lock;
    struct lfs_linebuf lines;
    bool busy;       /* a command of this file runs: `lines` is the worker's */
    bool taken_back; /* the last write failed: what is left of its line does not run at close */
    uint64_t owner;  /* of the last write: the kernel's name for the writer's table of open files */
    struct lfs_writer writer;
    bool duplicate_closed; /* the writer closed a descriptor of this file while a line was under way */
    bool answered;         /* a command of this file was run: `text` is its answer */
    struct lfs_buf text;
    bool text_made;
    off_t written_to; /* where the last write ended */
    bool read_since;  /* something was read since */
    off_t text_at;    /* the offset that the text begins at, for readers that go on where they wrote */
    struct lfs_shown shown; /* what the text is of */
    struct lfs_watch watch; /* whoever polls this open file */
};

static const char *branch_of(const struct lfs_node *node) { return node->branch ? node->branch->text : ""; }

bool lfs_is_control_name(const char *name, bool in_branch) {
    const char *const *files = in_branch ? lfs_branch_control_files : lfs_root_control_files;
    for (; *files; files++)
        if (strcmp(*files, name) == 0)
            return true;
    return false;
}

/* A choice is written to as a control file is, and reads as what was chosen. */
static bool is_choice(const struct lfs_node *node) { return node->branch && lfs_is_conflicts_path(node->text); }

static void show(struct lfs_mount *m, const struct lfs_node *node, struct lfs_buf *out, struct lfs_shown *shown) {
    struct timespec time;
    if (!is_choice(node))
        lfs_answers_show(m->control->answers, node->text, branch_of(node), out, shown);
    else if (lfs_conflicts_text_render(m, node->branch, node->text, NULL, out, &time, NULL) == -ENOMEM)
        out->failed = true;
}

errint_t lfs_control_size(struct lfs_mount *m, const struct lfs_node *node, off_t *size) {
    LFS_AUTO_BUF text = {0};
    show(m, node, &text, NULL);
    *size = (off_t)text.length;
    return lfs_buf_check(&text, NULL);
}

/* --- commands --- */

/* A write or a close that may run commands. */
struct job {
    struct lfs_work work; /* first */
    struct lfs_mount *m;
    fuse_req_t req;
    struct lfs_node *node; /* held */
    struct lfs_talk *talk; /* the open file is not released before the request is answered */
    bool at_close;
    struct lfs_handle *released; /* the open file is gone: its handle goes with the job; NULL = not so */
    char *bytes;
    size_t size;
    struct lfs_buf before; /* the line under way before these bytes */
    size_t commands;       /* how many were run */
    pid_t writer;
};

static void destroy_job(struct lfs_work *work) {
    struct job *job = (struct job *)work;
    if (job->released)
        lfs_handle_free(job->m, job->released);
    lfs_nodes_release(job->m->nodes, job->node);
    lfs_buf_free(&job->before);
    free(job->bytes);
    free(job);
}

static void interrupted(fuse_req_t req, void *cancel) {
    (void)req;
    atomic_store((atomic_bool *)cancel, true);
}

/* What can change by a commit is looked at anew: only where options make the kernel remember it. */
static void tell_kernel(struct lfs_mount *m, const char *branch) {
    size_t n;
    if (m->options->attr_timeout <= 0 && m->options->entry_timeout <= 0)
        return;
    LFS_AUTO_FREE uint64_t *ids = lfs_nodes_of_branch(m->nodes, branch, &n);
    for (size_t i = 0; ids && i < n; i++)
        fuse_lowlevel_notify_inval_inode(m->session, ids[i], -1, 0); /* attributes only; no lock is held */
}

/* Make `text` what reading through this open file shows. */
static void answer(struct lfs_talk *talk, const char *text, size_t length) {
    pthread_mutex_lock(&talk->lock);
    lfs_buf_clear(&talk->text);
    lfs_buf_add(&talk->text, text, length);
    talk->answered = talk->text_made = true;
    pthread_mutex_unlock(&talk->lock);
}

/* What the caller was told as a mere number. */
static void log_failure(const struct lfs_running *r, errint_t result, const struct lfs_buf *answer) {
    const char *text = answer->length ? (const char *)answer->data : "", *cause = NULL;
    static const char *const keys[] = {"reason", "error", "result"};
    size_t length = 0;
    for (size_t i = 0; !cause && i < sizeof keys / sizeof *keys; i++)
        cause = lfs_answer_find(text, answer->length, keys[i], &length);
    char command[500], why[1100];
    lfs_log(LFS_LOG_WARNING, "file=%s branch=%s command=%s errno=%d cause=%s", r->file, *r->branch ? r->branch : "-",
            lfs_log_quote(command, sizeof command, r->line, strlen(r->line)), -result,
            lfs_log_quote(why, sizeof why, cause ? cause : "", cause ? length : 0));
}

static errint_t choose(struct job *job, const char *line) {
    LFS_AUTO_BUF text = {0};
    struct lfs_conflicts_at at = lfs_conflicts_at(job->m, job->node->branch, job->node->text);
    job->commands++;
    errint_t result = lfs_conflicts_choose(&at, job->node->token, line, &text);
    answer(job->talk, text.length ? (char *)text.data : "", text.length);
    tell_kernel(job->m, at.branch);
    return result;
}

static errint_t run_command(struct job *job, const char *line) {
    LFS_AUTO_BUF text = {0};
    char target[512];
    struct lfs_mount *m = job->m;
    if (is_choice(job->node))
        return choose(job, line);
    struct lfs_running running = {.file = job->node->text, .branch = branch_of(job->node), .line = line};
    struct lfs_verb_call call = {
        .dataset = m->dataset,
        .settings = &m->settings,
        .branch = job->node->branch ? running.branch : NULL,
        .line = line,
        .cancel = &job->work.cancel,
        .progress = &running.progress,
        .hooks = lfs_hooks_calls(m->hooks),
        .conflicts = m->conflicts,
    };
    uint64_t start = lfs_stats_now();
    job->commands++;
    lfs_answers_begin(m->control->answers, &running);
    errint_t result = lfs_verb_run(running.file, &call, &text);
    if (text.failed)
        lfs_buf_clear(&text);
    if (result < 0)
        log_failure(&running, result, &text);
    lfs_stats_command(m->stats, running.file, text.length ? (char *)text.data : "", text.length, start);
    lfs_answers_end(m->control->answers, &running, text.length ? (char *)text.data : "", text.length);
    answer(job->talk, text.length ? (char *)text.data : "", text.length);
    if (strcmp(running.file, ".branch") == 0 || strcmp(running.file, ".tag") == 0)
        lfs_tell_names(m);
    if (call.branch)
        tell_kernel(m, call.branch);
    else if (lfs_answer_target((char *)text.data, text.length, target, sizeof target))
        tell_kernel(m, target);
    return result;
}

static errint_t refuse_line(struct job *job, const char *why) {
    char text[256];
    int n = snprintf(text, sizeof text, "result: refused\nreason: %s\n", why);
    answer(job->talk, text, (size_t)n);
    return -EINVAL;
}

static errint_t act_on(struct job *job, enum lfs_line_event event, const char *line) {
    switch (event) {
    case LFS_LINE_COMMAND: {
        char *copy = strdup(line); /* the line's memory is the next write's */
        errint_t result = copy ? run_command(job, copy) : -ENOMEM;
        free(copy);
        return result;
    }
    case LFS_LINE_COMMENT:
        return refuse_line(job, "a line that begins with # is no command, but what reading this file gives");
    case LFS_LINE_REFUSED: return refuse_line(job, "the line is longer than 64 KiB or holds a NUL byte");
    case LFS_LINE_NOMEM: return -ENOMEM;
    case LFS_LINE_EMPTY:
    case LFS_LINE_MORE: break;
    }
    return 0;
}

static errint_t run_lines(struct job *job) {
    const char *line = NULL, *bytes = job->bytes;
    size_t left = job->size;
    enum lfs_line_event event;
    if (job->at_close) {
        event = lfs_linebuf_end(&job->talk->lines, &line);
        return act_on(job, event, line);
    }
    errint_t result = 0;
    enum lfs_line_event bad = lfs_linebuf_foresee(&job->talk->lines, bytes, left);
    if (bad != LFS_LINE_MORE) {
        while (lfs_linebuf_next(&job->talk->lines, &bytes, &left, &line) != LFS_LINE_MORE)
            continue;
        return act_on(job, bad, NULL);
    }
    do {
        event = lfs_linebuf_next(&job->talk->lines, &bytes, &left, &line);
        result = act_on(job, event, line);
    } while (result == 0 && event != LFS_LINE_MORE);
    return result;
}

/* After the lines: what stays of the one under way. */
static void settle_lines(struct job *job, errint_t result) {
    struct lfs_talk *talk = job->talk;
    pthread_mutex_lock(&talk->lock);
    if (result == -EINTR && job->commands == 1 && !job->at_close) {
        /* a caller whose signal handler restarts the call sends the same bytes again */
        lfs_linebuf_reset(&talk->lines);
        lfs_buf_add(&talk->lines.line, job->before.data, job->before.length);
    } else if (result < 0 && !talk->lines.dropping) {
        lfs_linebuf_reset(&talk->lines);
    }
    talk->taken_back = result < 0;
    if (lfs_linebuf_pending(&talk->lines))
        lfs_writer_remember(&talk->writer, job->writer);
    talk->busy = false;
    pthread_mutex_unlock(&talk->lock);
    lfs_answers_wake(job->m->control->answers, job->node->text, branch_of(job->node));
}

static void reply(const struct job *job, errint_t result) {
    fuse_req_interrupt_func(job->req, NULL, NULL); /* from here on nobody touches `cancel` but us */
    if (result < 0 || job->at_close)
        fuse_reply_err(job->req, -result);
    else
        fuse_reply_write(job->req, job->size);
}

static void run_job(struct lfs_work *work) {
    struct job *job = (struct job *)work;
    errint_t result = run_lines(job);
    settle_lines(job, result);
    reply(job, result);
}

static void refuse_job(struct lfs_work *work) {
    struct job *job = (struct job *)work;
    settle_lines(job, -ESHUTDOWN);
    reply(job, -ESHUTDOWN);
}

/* Hand lines to a worker, which replies. With the talk's lock held, and given back. */
static void submit(struct lfs_mount *m, fuse_req_t req, struct lfs_handle *h, const char *bytes, size_t size,
                   bool at_close, bool released) {
    struct lfs_talk *talk = h->control;
    struct job *job = calloc(1, sizeof *job);
    char *copy = malloc(size + 1);
    if (!job || !copy) {
        pthread_mutex_unlock(&talk->lock);
        free(job);
        free(copy);
        if (released)
            lfs_handle_free(m, h);
        fuse_reply_err(req, ENOMEM);
        return;
    }
    if (size)
        memcpy(copy, bytes, size);
    *job = (struct job){.work = {.run = run_job, .refuse = refuse_job, .destroy = destroy_job},
                        .m = m,
                        .req = req,
                        .node = h->node,
                        .talk = talk,
                        .at_close = at_close,
                        .released = released ? h : NULL,
                        .bytes = copy,
                        .size = size,
                        .writer = fuse_req_ctx(req)->pid};
    lfs_buf_add(&job->before, talk->lines.line.data, talk->lines.line.length);
    talk->busy = true;
    talk->answered = talk->text_made = false;
    pthread_mutex_unlock(&talk->lock);
    lfs_nodes_hold(m->nodes, job->node);
    fuse_req_interrupt_func(req, interrupted, &job->work.cancel);
    errint_t result = lfs_workers_submit(m->control->workers, &job->work);
    if (result < 0) {
        settle_lines(job, result);
        reply(job, result);
        destroy_job(&job->work);
    }
}

/* --- operations --- */

/* Valid replies: open, err. */
void lfs_control_open(struct lfs_mount *m, fuse_req_t req, struct lfs_node *node, struct fuse_file_info *fi) {
    struct lfs_talk *talk = calloc(1, sizeof *talk);
    struct lfs_handle *h = talk ? lfs_handle_new(m, node) : NULL;
    if (!h) {
        free(talk);
        fuse_reply_err(req, ENOMEM);
        return;
    }
    pthread_mutex_init(&talk->lock, NULL);
    talk->writer.watch = -1;
    talk->written_to = -1;
    talk->watch = (struct lfs_watch){.answers = m->control->answers, .file = node->text, .branch = branch_of(node)};
    talk->shown.ends = lfs_answers_ends(m->control->answers, node->text, branch_of(node));
    h->control = talk;
    fi->fh = (uintptr_t)h;
    fi->direct_io = 1; /* the text changes with every command; O_TRUNC means nothing */
    if (fuse_reply_open(req, fi) == -ENOENT)
        lfs_handle_free(m, h);
}

void lfs_talk_free(struct lfs_talk *talk) {
    if (!talk)
        return;
    lfs_answers_unwatch(&talk->watch);
    lfs_writer_forget(&talk->writer);
    lfs_linebuf_free(&talk->lines);
    lfs_buf_free(&talk->text);
    pthread_mutex_destroy(&talk->lock);
    free(talk);
}

/* Valid replies: write, err. The reply may come later, from a worker. */
void lfs_control_write(fuse_req_t req, struct lfs_handle *h, const char *bytes, size_t size, off_t off,
                       struct fuse_file_info *fi) {
    struct lfs_mount *m = lfs_mount_of(req);
    struct lfs_talk *talk = h->control;
    if (m->options->read_only) {
        fuse_reply_err(req, EROFS);
        return;
    }
    lfs_stats_written(m->stats, size);
    pthread_mutex_lock(&talk->lock);
    if (talk->busy) { /* asynchronous writes of one process: their order is nobody's to guess */
        pthread_mutex_unlock(&talk->lock);
        fuse_reply_err(req, EBUSY);
        return;
    }
    talk->owner = fi->lock_owner;
    talk->written_to = off + (off_t)size;
    talk->read_since = talk->duplicate_closed = false;
    if (memchr(bytes, '\n', size)) {
        submit(m, req, h, bytes, size, false, false);
        return;
    }
    size_t left = size;
    const char *line;
    enum lfs_line_event event = lfs_linebuf_next(&talk->lines, &bytes, &left, &line);
    talk->taken_back = event != LFS_LINE_MORE;
    if (lfs_linebuf_pending(&talk->lines))
        lfs_writer_remember(&talk->writer, fuse_req_ctx(req)->pid);
    pthread_mutex_unlock(&talk->lock);
    if (event == LFS_LINE_MORE)
        fuse_reply_write(req, size);
    else
        fuse_reply_err(req, event == LFS_LINE_NOMEM ? ENOMEM : EINVAL);
}

/* Valid replies: err. The reply may come later, from a worker. */
void lfs_control_flush(fuse_req_t req, struct lfs_handle *h, struct fuse_file_info *fi) {
    struct lfs_mount *m = lfs_mount_of(req);
    struct lfs_talk *talk = h->control;
    pthread_mutex_lock(&talk->lock);
    bool pending =
        !talk->busy && !talk->taken_back && lfs_linebuf_pending(&talk->lines) && talk->owner == fi->lock_owner;
    enum lfs_closing closing = LFS_CLOSING_DUPLICATE;
    if (pending)
        closing = lfs_closing_of(fuse_req_ctx(req)->pid, &talk->writer, h->node->st_ino, talk->written_to);
    if (closing == LFS_CLOSING_MEANT) {
        submit(m, req, h, NULL, 0, true, false);
        return;
    }
    talk->duplicate_closed |= pending && closing == LFS_CLOSING_DUPLICATE;
    if (closing == LFS_CLOSING_IN_DOUBT) {
        lfs_log(LFS_LOG_WARNING, "the writer of %s ended in the middle of a line: it is not run", h->node->text);
        lfs_linebuf_reset(&talk->lines);
    }
    pthread_mutex_unlock(&talk->lock);
    fuse_reply_err(req, 0);
}

/* The last descriptor is gone. A line that its writer left when it closed one that was taken for a duplicate runs now. */
void lfs_control_release(struct lfs_mount *m, fuse_req_t req, struct lfs_handle *h) {
    struct lfs_talk *talk = h->control;
    pthread_mutex_lock(&talk->lock);
    if (talk->duplicate_closed && !talk->taken_back && lfs_linebuf_pending(&talk->lines)) {
        submit(m, req, h, NULL, 0, true, true);
        return;
    }
    pthread_mutex_unlock(&talk->lock);
    lfs_handle_free(m, h);
    fuse_reply_err(req, 0);
}

/* With the talk's lock held. From its beginning the text is made anew; at its end it may have grown. */
static void make_text(struct lfs_mount *m, const struct lfs_node *node, struct lfs_talk *talk, off_t off) {
    struct lfs_answers *answers = m->control->answers;
    if (talk->answered) {
        talk->shown.ends = lfs_answers_ends(answers, node->text, branch_of(node));
    } else if (!talk->text_made || off == talk->text_at) {
        lfs_buf_clear(&talk->text);
        show(m, node, &talk->text, &talk->shown);
        talk->text_made = true;
    } else if (talk->shown.id && off - talk->text_at >= (off_t)talk->text.length) {
        lfs_answers_go_on(answers, node->text, branch_of(node), &talk->text, &talk->shown);
    }
}

/* Valid replies: buf, err. */
void lfs_control_read(struct lfs_mount *m, fuse_req_t req, size_t size, off_t off, struct fuse_file_info *fi) {
    struct lfs_handle *h = (struct lfs_handle *)(uintptr_t)fi->fh;
    struct lfs_talk *talk = h->control;
    pthread_mutex_lock(&talk->lock);
    if (off == talk->written_to && !talk->read_since)
        talk->text_at = off; /* reading goes on where writing ended: the answer begins here */
    else if (off < talk->text_at)
        talk->text_at = 0;
    talk->read_since = true;
    make_text(m, h->node, talk, off);
    const char *bytes = NULL;
    if (!talk->text.failed) {
        size_t length = talk->text.length, start = (size_t)(off - talk->text_at);
        start = start < length ? start : length;
        size = size < length - start ? size : length - start;
        bytes = size ? lfs_reply_copy(talk->text.data + start, size) : "";
    }
    pthread_mutex_unlock(&talk->lock);
    lfs_stats_read(m->stats, LFS_READ_ANSWER, bytes ? size : 0);
    lfs_reply_bytes(req, bytes, size);
}

/* Valid replies: poll, err. */
void lfs_control_poll(fuse_req_t req, struct lfs_handle *h, struct fuse_pollhandle *ph) {
    struct lfs_talk *talk = h->control;
    pthread_mutex_lock(&talk->lock);
    unsigned events = lfs_answers_poll(&talk->watch, talk->busy, talk->shown.ends, ph);
    pthread_mutex_unlock(&talk->lock);
    fuse_reply_poll(req, events);
}

/* --- life --- */

struct lfs_control *lfs_control_new(struct lfs_mount *m) {
    struct lfs_control *control = calloc(1, sizeof *control);
    if (!control)
        return NULL;
    control->m = m;
    control->answers = lfs_answers_new();
    control->workers = lfs_workers_new();
    if (!control->answers || !control->workers) {
        lfs_control_free(control);
        return NULL;
    }
    return control;
}

struct lfs_workers *lfs_control_workers(struct lfs_control *control) { return control->workers; }

bool lfs_control_stop(struct lfs_control *control, unsigned seconds) {
    bool stopped = lfs_workers_stop(control->workers, seconds);
    if (!stopped)
        lfs_log(LFS_LOG_WARNING, "a command did not stop in %u seconds; what it had not committed is not there",
                seconds);
    return stopped;
}

void lfs_control_free(struct lfs_control *control) {
    if (!control)
        return;
    lfs_answers_free(control->answers);
    lfs_workers_free(control->workers);
    free(control);
}
