/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "fuse/control.h"
#include "util/cleanup.h"
#include "verbs/answer.h"

enum { LOG_NS = 250000000, LOG_PART = 200 };

/* What one control file showed last. */
struct last {
    char *text; /* NULL: it could not be kept */
    size_t length;
    uint64_t ends; /* commands of this file so far */
};

struct lfs_answers {
    pthread_mutex_t lock;
    struct lfs_arena *arena;
    struct lfs_map last; /* "<file>/<branch>" -> struct last */
    struct lfs_running *running;
    uint64_t ids; /* of commands, so far */
    struct lfs_watch *watches;
};

struct lfs_answers *lfs_answers_new(void) {
    struct lfs_answers *answers = calloc(1, sizeof *answers);
    if (!answers)
        return NULL;
    pthread_mutex_init(&answers->lock, NULL);
    answers->arena = lfs_arena_new();
    if (!answers->arena) {
        lfs_answers_free(answers);
        return NULL;
    }
    lfs_map_init(&answers->last, answers->arena);
    return answers;
}

void lfs_answers_free(struct lfs_answers *answers) {
    if (!answers)
        return;
    for (size_t i = 0; i < answers->last.count; i++)
        free(((struct last *)answers->last.entries[i].value)->text);
    pthread_mutex_destroy(&answers->lock);
    lfs_arena_free(answers->arena);
    free(answers);
}

/* With the lock held: nobody waits there any more. */
static void forget(struct lfs_watch *w) {
    if (!w->handle)
        return;
    *w->at = w->next;
    if (w->next)
        w->next->at = w->at;
    fuse_pollhandle_destroy(w->handle);
    w->handle = NULL;
}

/* With the lock held; NULL when there was none, or memory is short. */
static struct last *last_of(struct lfs_answers *answers, const char *file, const char *branch, bool make) {
    LFS_AUTO_ARENA *scratch = lfs_arena_new();
    char *key = scratch ? lfs_sprintf(scratch, "%s/%s", file, branch) : NULL;
    struct last *last = key ? lfs_map_get(&answers->last, key) : NULL;
    if (last || !key || !make)
        return last;
    key = lfs_strdup(answers->arena, key);
    last = LFS_NEW(answers->arena, struct last);
    return key && last && lfs_map_put(&answers->last, key, last) ? last : NULL;
}

/* With the lock held. Those who wait are told once; they ask again. */
static void wake(struct lfs_answers *answers, const char *file, const char *branch) {
    for (struct lfs_watch *w = answers->watches, *next; w; w = next) {
        next = w->next;
        if (strcmp(w->file, file) != 0 || strcmp(w->branch, branch) != 0)
            continue;
        fuse_lowlevel_notify_poll(w->handle);
        forget(w);
    }
}

/* With the lock held. An answer that cannot be kept for want of memory is not shown again; its command is not harmed. */
static void keep(struct lfs_answers *answers, const char *file, const char *branch, const char *text, size_t length) {
    struct last *last = last_of(answers, file, branch, true);
    char *copy = last ? malloc(length + 1) : NULL;
    if (last)
        last->ends++;
    wake(answers, file, branch);
    if (!copy)
        return;
    memcpy(copy, text, length);
    free(last->text);
    last->text = copy;
    last->length = length;
}

void lfs_answers_begin(struct lfs_answers *answers, struct lfs_running *running) {
    clock_gettime(CLOCK_REALTIME, &running->started);
    running->began_ns = lfs_progress_clock();
    pthread_mutex_lock(&answers->lock);
    running->id = ++answers->ids;
    running->next = answers->running;
    answers->running = running;
    pthread_mutex_unlock(&answers->lock);
}

bool lfs_answer_target(const char *text, size_t length, char *branch, size_t size) {
    size_t n;
    const char *name = lfs_answer_find(text, length, "target", &n), *at = name ? memchr(name, '@', n) : NULL;
    n = at ? (size_t)(at - name) : n;
    if (!name || n == 0 || n >= size)
        return false;
    memcpy(branch, name, n);
    branch[n] = '\0';
    return true;
}

void lfs_answers_end(struct lfs_answers *answers, struct lfs_running *running, const char *text, size_t length) {
    char target[512];
    pthread_mutex_lock(&answers->lock);
    struct lfs_running **at = &answers->running;
    while (*at != running)
        at = &(*at)->next;
    *at = running->next;
    keep(answers, running->file, running->branch, text, length);
    if (!*running->branch && lfs_answer_target(text, length, target, sizeof target))
        keep(answers, running->file, target, text, length);
    pthread_mutex_unlock(&answers->lock);
    lfs_buf_free(&running->log);
}

/* --- progress --- */

/* Its numbers, taken once. */
static void copy_progress(struct lfs_progress *from, struct lfs_progress *to) {
    to->stage = atomic_load(&from->stage);
    to->began_ns = atomic_load(&from->began_ns);
    to->done = atomic_load(&from->done);
    to->total = atomic_load(&from->total);
    to->bytes = atomic_load(&from->bytes);
    to->bytes_total = atomic_load(&from->bytes_total);
}

static bool is_same(const struct lfs_progress *a, const struct lfs_progress *b) {
    return a->stage == b->stage && a->done == b->done && a->bytes == b->bytes && a->total == b->total;
}

/* "  - copying files: 42%, 420 of 1000 files, 4200 of 10000 bytes, 310.0 MB/s, 19 s left" */
static void put_bytes(struct lfs_buf *out, const struct lfs_progress *p, uint64_t now) {
    double seconds = (double)(now - p->began_ns) / 1e9, rate = seconds > 0 ? (double)p->bytes / seconds : 0;
    double part = (double)p->bytes / (double)p->bytes_total;
    uint64_t left = p->bytes < p->bytes_total ? p->bytes_total - p->bytes : 0;
    lfs_buf_printf(out, "%.0f%%, %" PRIu64 " of %" PRIu64 " files, %" PRIu64 " of %" PRIu64 " bytes",
                   part < 1 ? part * 100 : 100.0, p->done, p->total, p->bytes, p->bytes_total);
    if (rate > 0)
        lfs_buf_printf(out, ", %.1f MB/s, %.0f s left", rate / 1e6, (double)left / rate);
}

static void put_progress(struct lfs_buf *out, const struct lfs_progress *p, uint64_t now) {
    lfs_buf_printf(out, "  - %s: ", p->stage);
    if (p->bytes_total)
        put_bytes(out, p, now);
    else if (p->total)
        lfs_buf_printf(out, "%.0f%%, %" PRIu64 " of %" PRIu64, (double)p->done * 100 / (double)p->total, p->done,
                       p->total);
    else
        lfs_buf_printf(out, "%" PRIu64, p->done);
    lfs_buf_puts(out, "\n");
}

/*
 * With the lock held: a line more, where it has come further since the last one. Lines come at looks alone, and the rarer the
 * longer it takes, so that a command of days has some thousand, and whoever reads to the end gets there.
 */
static void look_at(struct lfs_running *r) {
    struct lfs_progress now = {.stage = NULL};
    uint64_t clock = lfs_progress_clock(), apart = (clock - r->began_ns) / LOG_PART;
    copy_progress(&r->progress, &now);
    if (!now.stage || is_same(&now, &r->then) ||
        (now.stage == r->then.stage && clock - r->logged_ns < (apart > LOG_NS ? apart : LOG_NS)))
        return;
    lfs_buf_puts(&r->log, r->log.length ? "" : "progress:\n");
    put_progress(&r->log, &now, clock);
    copy_progress(&now, &r->then);
    r->logged_ns = clock;
}

/* --- showing --- */

static void show_running(struct lfs_running *running, bool first, struct lfs_buf *out) {
    char started[32];
    struct tm tm;
    gmtime_r(&running->started.tv_sec, &tm);
    strftime(started, sizeof started, "%Y-%m-%dT%H:%M:%SZ", &tm);
    lfs_buf_printf(out, "%sresult: running\n", first ? "" : "---\n");
    lfs_answer_text(out, "command", running->line);
    lfs_answer_text(out, "started", started);
    look_at(running);
    if (!running->log.failed)
        lfs_buf_add(out, running->log.data, running->log.length);
}

static bool is_of(const struct lfs_running *r, const char *file, const char *branch) {
    return strcmp(r->file, file) == 0 && strcmp(r->branch, branch) == 0;
}

void lfs_answers_show(struct lfs_answers *answers, const char *file, const char *branch, struct lfs_buf *out,
                      struct lfs_shown *shown) {
    const char *usage = lfs_verb_usage(file);
    struct lfs_shown now = {0};
    bool first = true;
    lfs_buf_puts(out, usage ? usage : "");
    pthread_mutex_lock(&answers->lock);
    for (struct lfs_running *r = answers->running; r; r = r->next) /* newest first: the last one shown is followed */
        if (is_of(r, file, branch)) {
            show_running(r, first, out);
            now.id = r->id;
            now.logged = r->log.length;
            first = false;
        }
    const struct last *last = last_of(answers, file, branch, false);
    if (first && last && last->text)
        lfs_buf_add(out, last->text, last->length);
    now.ends = last ? last->ends : 0;
    pthread_mutex_unlock(&answers->lock);
    if (shown)
        *shown = now;
}

void lfs_answers_go_on(struct lfs_answers *answers, const char *file, const char *branch, struct lfs_buf *out,
                       struct lfs_shown *shown) {
    pthread_mutex_lock(&answers->lock);
    struct lfs_running *r = shown->id ? answers->running : NULL;
    while (r && r->id != shown->id)
        r = r->next;
    const struct last *last = last_of(answers, file, branch, false);
    if (r) {
        look_at(r);
        if (!r->log.failed && r->log.length > shown->logged)
            lfs_buf_add(out, r->log.data + shown->logged, r->log.length - shown->logged);
        shown->logged = r->log.length;
    } else if (shown->id) {
        lfs_buf_puts(out, "---\n");
        if (last && last->text)
            lfs_buf_add(out, last->text, last->length);
        shown->id = 0;
    }
    shown->ends = last ? last->ends : 0;
    pthread_mutex_unlock(&answers->lock);
}

uint64_t lfs_answers_ends(struct lfs_answers *answers, const char *file, const char *branch) {
    pthread_mutex_lock(&answers->lock);
    const struct last *last = last_of(answers, file, branch, false);
    uint64_t ends = last ? last->ends : 0;
    pthread_mutex_unlock(&answers->lock);
    return ends;
}

/* --- waiting --- */

unsigned lfs_answers_poll(struct lfs_watch *w, bool busy, uint64_t seen, struct fuse_pollhandle *handle) {
    struct lfs_answers *answers = w->answers;
    pthread_mutex_lock(&answers->lock);
    if (handle) {
        forget(w);
        w->handle = handle;
        w->next = answers->watches;
        w->at = &answers->watches;
        if (w->next)
            w->next->at = &w->next;
        answers->watches = w;
    }
    for (struct lfs_running *r = answers->running; r; r = r->next)
        busy = busy || is_of(r, w->file, w->branch);
    const struct last *last = last_of(answers, w->file, w->branch, false);
    bool ended = last && last->ends != seen;
    pthread_mutex_unlock(&answers->lock);
    return (busy ? 0 : POLLIN | POLLRDNORM | POLLOUT | POLLWRNORM) | (ended ? POLLPRI : 0);
}

void lfs_answers_wake(struct lfs_answers *answers, const char *file, const char *branch) {
    pthread_mutex_lock(&answers->lock);
    wake(answers, file, branch);
    pthread_mutex_unlock(&answers->lock);
}

void lfs_answers_unwatch(struct lfs_watch *w) {
    if (!w->answers)
        return;
    pthread_mutex_lock(&w->answers->lock);
    forget(w);
    pthread_mutex_unlock(&w->answers->lock);
}
