/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fuse/control.h"
#include "util/cleanup.h"

/* What one control file showed last. */
struct last {
    char *text;
    size_t length;
};

struct lfs_answers {
    pthread_mutex_t lock;
    struct lfs_arena *arena;
    struct lfs_map last; /* "<file>/<branch>" -> struct last */
    struct lfs_running *running;
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

/* With the lock held. An answer that cannot be kept for want of memory is not shown again; its command is not harmed. */
static void keep(struct lfs_answers *answers, const char *file, const char *branch, const char *text, size_t length) {
    LFS_AUTO_ARENA *scratch = lfs_arena_new();
    char *key = scratch ? lfs_sprintf(scratch, "%s/%s", file, branch) : NULL;
    struct last *last = key ? lfs_map_get(&answers->last, key) : NULL;
    if (key && !last) {
        key = lfs_strdup(answers->arena, key);
        last = LFS_NEW(answers->arena, struct last);
        if (!key || !last || !lfs_map_put(&answers->last, key, last))
            return;
    }
    char *copy = last ? malloc(length + 1) : NULL;
    if (!copy)
        return;
    memcpy(copy, text, length);
    free(last->text);
    *last = (struct last){copy, length};
}

void lfs_answers_begin(struct lfs_answers *answers, struct lfs_running *running) {
    clock_gettime(CLOCK_REALTIME, &running->started);
    pthread_mutex_lock(&answers->lock);
    running->next = answers->running;
    answers->running = running;
    pthread_mutex_unlock(&answers->lock);
}

bool lfs_answer_target(const char *text, size_t length, char *branch, size_t size) {
    static const char key[] = "target: ";
    const char *end = text + length;
    for (const char *line = text; line < end;) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        size_t n = (size_t)((newline ? newline : end) - line);
        if (n > strlen(key) && strncmp(line, key, strlen(key)) == 0) {
            const char *name = line + strlen(key), *at = memchr(name, '@', n - strlen(key));
            size_t name_length = at ? (size_t)(at - name) : n - strlen(key);
            if (name_length == 0 || name_length >= size)
                return false;
            memcpy(branch, name, name_length);
            branch[name_length] = '\0';
            return true;
        }
        line += n + 1;
    }
    return false;
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
}

static void show_running(struct lfs_running *running, bool first, struct lfs_buf *out) {
    char started[32];
    struct tm tm;
    gmtime_r(&running->started.tv_sec, &tm);
    strftime(started, sizeof started, "%Y-%m-%dT%H:%M:%SZ", &tm);
    lfs_buf_printf(out, "%sresult: running\ncommand: %s\nstarted: %s\n", first ? "" : "---\n", running->line, started);
    const char *stage = atomic_load(&running->progress.stage);
    uint64_t done = atomic_load(&running->progress.done), total = atomic_load(&running->progress.total);
    if (stage && total)
        lfs_buf_printf(out, "progress: %s, %" PRIu64 " of %" PRIu64 "\n", stage, done, total);
    else if (stage)
        lfs_buf_printf(out, "progress: %s, %" PRIu64 "\n", stage, done);
}

void lfs_answers_show(struct lfs_answers *answers, const char *file, const char *branch, struct lfs_buf *out) {
    LFS_AUTO_ARENA *scratch = lfs_arena_new();
    const char *usage = lfs_verb_usage(file);
    char *key = scratch ? lfs_sprintf(scratch, "%s/%s", file, branch) : NULL;
    bool first = true;
    lfs_buf_puts(out, usage ? usage : "");
    pthread_mutex_lock(&answers->lock);
    for (struct lfs_running *r = answers->running; r; r = r->next)
        if (strcmp(r->file, file) == 0 && strcmp(r->branch, branch) == 0) {
            show_running(r, first, out);
            first = false;
        }
    const struct last *last = key && first ? lfs_map_get(&answers->last, key) : NULL;
    if (last)
        lfs_buf_add(out, last->text, last->length);
    pthread_mutex_unlock(&answers->lock);
}
