/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/conflicts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/map.h"
#include "verbs/answer.h"
#include "verbs/conflicts_impl.h"

struct lfs_conflicts *lfs_conflicts_new(void) {
    struct lfs_conflicts *conflicts = calloc(1, sizeof *conflicts);
    struct timespec now;
    if (!conflicts)
        return NULL;
    clock_gettime(CLOCK_REALTIME, &now); /* paths of an earlier mount are others */
    conflicts->serials = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    pthread_mutex_init(&conflicts->lock, NULL);
    return conflicts;
}

void lfs_waiting_free(struct state *s) { lfs_arena_free(s->arena); } /* it lives in it */

void lfs_conflicts_free(struct lfs_conflicts *conflicts) {
    if (!conflicts)
        return;
    for (struct state *s = conflicts->first, *next; s; s = next) {
        next = s->next;
        lfs_waiting_free(s);
    }
    pthread_mutex_destroy(&conflicts->lock);
    free(conflicts);
}

/* --- finding, with the lock held --- */

struct state **lfs_waiting_slot(struct lfs_conflicts *conflicts, const char *uuid) {
    struct state **at = &conflicts->first;
    while (*at && strcmp((*at)->uuid, uuid))
        at = &(*at)->next;
    return at;
}

void lfs_waiting_forget(struct lfs_conflicts *conflicts, struct state **at) {
    struct state *s = *at;
    *at = s->next;
    conflicts->count--;
    lfs_waiting_free(s);
}

static struct entry *entry_of(struct state *s, uint64_t number) {
    for (size_t i = 0; s && i < s->n_entries; i++)
        if (s->entries[i].number == number)
            return &s->entries[i];
    return NULL;
}

/* --- paths --- */

/* A path below the branch's directory: how deep, which conflict, which file of it. */
struct path {
    unsigned depth; /* 0: no such path; 1: .conflicts; 2: .conflicts/<k>; 3: a file */
    uint64_t number;
    const char *name;
};

static const char *const names[] = {"kind", "unit", "base", "ours", "theirs", "choice"};
static const char *const row_names[] = {"base.lance", "ours.lance", "theirs.lance"}; /* by enum lfs_side */

static struct path parse(const char *what) {
    struct path p = {.depth = 1};
    size_t length = strlen(LFS_CONFLICTS), digits;
    if (strncmp(what, LFS_CONFLICTS, length) != 0 || (what[length] && what[length] != '/'))
        return (struct path){0};
    if (!what[length])
        return p;
    what += length + 1;
    digits = strspn(what, "0123456789");
    if (digits == 0 || digits > 9 || (digits > 1 && *what == '0') || (what[digits] && what[digits] != '/'))
        return (struct path){0};
    p.number = strtoull(what, NULL, 10);
    p.depth = what[digits] ? 3 : 2;
    p.name = what[digits] ? what + digits + 1 : NULL;
    return p;
}

bool lfs_is_conflicts_path(const char *what) {
    size_t length = strlen(LFS_CONFLICTS);
    return strncmp(what, LFS_CONFLICTS, length) == 0 && (!what[length] || what[length] == '/');
}

static int index_of(const char *name, const char *const *list, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (strcmp(name, list[i]) == 0)
            return (int)i;
    return -1;
}

static bool has_rows(const struct entry *e, enum lfs_side side) {
    return e->found.of_rows && e->found.rows[side].known;
}

static enum lfs_conflicts_is what_is(const struct path *p, const struct entry *e) {
    int at = p->depth == 3 ? index_of(p->name, names, sizeof names / sizeof *names) : -1,
        rows = p->depth == 3 ? index_of(p->name, row_names, 3) : -1;
    if (p->depth == 1)
        return LFS_CONFLICTS_DIRECTORY;
    if (!e)
        return LFS_CONFLICTS_NONE;
    if (p->depth == 2)
        return LFS_CONFLICTS_DIRECTORY;
    if (at >= 0)
        return strcmp(p->name, "choice") ? LFS_CONFLICTS_TEXT : LFS_CONFLICTS_CHOICE;
    return rows >= 0 && has_rows(e, (enum lfs_side)rows) ? LFS_CONFLICTS_ROWS : LFS_CONFLICTS_NONE;
}

struct state *lfs_conflicts_enter(const struct lfs_conflicts_at *at) {
    struct lfs_conflicts *c = at->conflicts;
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    struct lfs_branch branch;
    pthread_mutex_lock(&c->lock);
    bool any = c->count > 0;
    pthread_mutex_unlock(&c->lock);
    bool there = any && arena && lfs_dataset_branch(at->dataset, arena, at->branch, &branch, NULL) == 0;
    pthread_mutex_lock(&c->lock);
    return there ? *lfs_waiting_slot(c, branch.uuid) : NULL;
}

void lfs_conflicts_leave(const struct lfs_conflicts_at *at) { pthread_mutex_unlock(&at->conflicts->lock); }

static uint64_t token_of(const struct state *s, const struct path *p, bool with_changes) {
    uint64_t words[] = {s ? s->serial : 0, p->number, p->depth, s && with_changes ? s->changes : 0};
    return lfs_hash(words, sizeof words, 7);
}

/* --- what is shown --- */

enum lfs_conflicts_is lfs_conflicts_look(const struct lfs_conflicts_at *at, uint64_t *token) {
    struct path p = parse(at->what);
    if (p.depth == 0)
        return LFS_CONFLICTS_NONE;
    struct state *s = lfs_conflicts_enter(at);
    enum lfs_conflicts_is is = what_is(&p, entry_of(s, p.number));
    if (token)
        *token = p.depth == 1 ? 0 : token_of(s, &p, is != LFS_CONFLICTS_CHOICE && is != LFS_CONFLICTS_DIRECTORY);
    lfs_conflicts_leave(at);
    return is;
}

static const char *word_of(enum lfs_strategy choice) {
    return choice == LFS_STRATEGY_SOURCE ? "theirs" : choice == LFS_STRATEGY_DEST ? "ours" : NULL;
}

static void put_text(const struct entry *e, const char *name, struct lfs_buf *out) {
    const struct lfs_conflict *c = &e->found.conflict;
    const char *const texts[] = {c->kind, c->unit, c->base, c->ours, c->theirs, word_of(e->choice)};
    const char *text = texts[index_of(name, names, sizeof names / sizeof *names)];
    if (text) {
        lfs_buf_puts(out, text);
        lfs_buf_puts(out, "\n");
    }
}

errint_t lfs_conflicts_text(const struct lfs_conflicts_at *at, struct lfs_buf *out, struct timespec *time,
                            struct lfs_error *err) {
    struct path p = parse(at->what);
    struct state *s = lfs_conflicts_enter(at);
    struct entry *e = entry_of(s, p.number);
    enum lfs_conflicts_is is = p.depth ? what_is(&p, e) : LFS_CONFLICTS_NONE;
    bool found = is == LFS_CONFLICTS_TEXT || is == LFS_CONFLICTS_CHOICE;
    if (found) {
        put_text(e, p.name, out);
        *time = s->time;
    }
    lfs_conflicts_leave(at);
    return found ? lfs_buf_check(out, err) : lfs_fail(err, LFS_E_NOT_FOUND, "there is no %s", at->what);
}

static errint_t tell(const struct state *s, struct lfs_arena *arena, struct lfs_conflicts_told *out,
                     struct lfs_error *err) {
    *out = (struct lfs_conflicts_told){.file = lfs_strdup(arena, s->file),
                                       .line = lfs_strdup(arena, s->line),
                                       .by_root = s->by_root,
                                       .busy = s->busy,
                                       .count = s->n_entries,
                                       .time = s->time};
    for (size_t i = 0; i < s->n_entries; i++) {
        const struct entry *e = &s->entries[i];
        out->chosen += e->choice != LFS_STRATEGY_FAIL;
        if (e->choice || out->open)
            continue;
        out->open = true;
        out->next = e->number;
        out->ours = !e->found.conflict.no_ours;
        out->theirs = !e->found.conflict.no_theirs;
    }
    return out->file && out->line ? 0 : lfs_fail_nomem(err);
}

errint_t lfs_conflicts_tell(const struct lfs_conflicts_at *at, struct lfs_arena *arena, struct lfs_conflicts_told *out,
                            struct lfs_error *err) {
    struct state *s = lfs_conflicts_enter(at);
    *out = (struct lfs_conflicts_told){0};
    errint_t result = s ? tell(s, arena, out, err) : 0;
    lfs_conflicts_leave(at);
    return result;
}

uint64_t lfs_conflicts_mark(const struct lfs_conflicts_at *at) {
    struct state *s = lfs_conflicts_enter(at);
    uint64_t words[] = {s ? s->serial : 0, s ? s->changes : 0, s && s->busy};
    uint64_t mark = s ? lfs_hash(words, sizeof words, 11) : 0;
    lfs_conflicts_leave(at);
    return mark;
}

static errint_t add_name(const char **list, size_t *n, const char *name, struct lfs_error *err) {
    list[*n] = name;
    return list[(*n)++] ? 0 : lfs_fail_nomem(err);
}

static errint_t list_names(const struct path *p, struct state *s, struct lfs_arena *arena, const char ***out, size_t *n,
                           struct lfs_error *err) {
    size_t most = sizeof names / sizeof *names + 3 + (s ? s->n_entries : 0);
    const char **list = *out = LFS_NEW_ARRAY(arena, const char *, most);
    const struct entry *e = entry_of(s, p->number);
    *n = 0;
    if (!list)
        return lfs_fail_nomem(err);
    for (size_t i = 0; p->depth == 1 && s && i < s->n_entries; i++)
        LFS_TRY(add_name(list, n, lfs_sprintf(arena, "%" PRIu64, s->entries[i].number), err));
    for (size_t i = 0; p->depth == 2 && e && i < sizeof names / sizeof *names; i++)
        LFS_TRY(add_name(list, n, names[i], err));
    for (size_t i = 0; p->depth == 2 && e && i < 3; i++)
        if (has_rows(e, (enum lfs_side)i))
            LFS_TRY(add_name(list, n, row_names[i], err));
    return 0;
}

errint_t lfs_conflicts_list(const struct lfs_conflicts_at *at, struct lfs_arena *arena, const char ***out,
                            size_t *n_out, struct lfs_error *err) {
    struct path p = parse(at->what);
    struct state *s = lfs_conflicts_enter(at);
    errint_t result = list_names(&p, s, arena, out, n_out, err);
    lfs_conflicts_leave(at);
    return result;
}

errint_t lfs_conflicts_rows(const struct lfs_conflicts_at *at, struct lfs_arena *arena, struct lfs_found_rows *out,
                            struct lfs_error *err) {
    struct path p = parse(at->what);
    struct state *s = lfs_conflicts_enter(at);
    struct entry *e = entry_of(s, p.number);
    bool found = p.depth && what_is(&p, e) == LFS_CONFLICTS_ROWS;
    errint_t result = found ? lfs_conflicts_copy_rows(&e->found.rows[index_of(p.name, row_names, 3)], arena, out, err)
                            : lfs_fail(err, LFS_E_NOT_FOUND, "there is no %s", at->what);
    lfs_conflicts_leave(at);
    return result;
}

/* --- choosing --- */

static errint_t choose(struct state *s, struct entry *e, const char *line, struct lfs_error *err) {
    bool theirs = strcmp(line, "theirs") == 0;
    const char *why = theirs ? e->found.conflict.no_theirs : e->found.conflict.no_ours;
    if (!theirs && strcmp(line, "ours"))
        return lfs_fail(err, LFS_E_USAGE, "a choice is ours or theirs, not \"%.100s\"", line);
    if (s->busy)
        return lfs_fail(err, LFS_E_BUSY, "the command is being continued with the choices as they were");
    if (why)
        return lfs_fail(err, LFS_E_UNSUPPORTED, "%s cannot be taken for %s: %s", line, e->found.conflict.unit, why);
    e->choice = theirs ? LFS_STRATEGY_SOURCE : LFS_STRATEGY_DEST;
    s->changes++;
    clock_gettime(CLOCK_REALTIME, &s->time);
    return 0;
}

errint_t lfs_conflicts_choose(const struct lfs_conflicts_at *at, uint64_t token, const char *line,
                              struct lfs_buf *answer) {
    struct lfs_error err = {0};
    struct path p = parse(at->what);
    struct state *s = lfs_conflicts_enter(at);
    struct entry *e = entry_of(s, p.number);
    errint_t result =
        !e || p.depth != 3 || token_of(s, &p, false) != token
            ? lfs_fail(&err, LFS_E_STALE, "that conflict does not wait any more: look at %s again", LFS_CONFLICTS)
            : choose(s, e, line, &err);
    if (result == 0)
        put_text(e, p.name, answer);
    lfs_conflicts_leave(at);
    return result < 0 ? lfs_answer_error(answer, &err) : lfs_buf_check(answer, NULL);
}
