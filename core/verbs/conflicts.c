/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/conflicts.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "table/view_rows.h"
#include "util/cleanup.h"
#include "util/limits.h"
#include "util/log.h"
#include "util/map.h"
#include "verbs/answer.h"
#include "verbs/waiting.h"

/* One conflict of a command that waits. */
struct entry {
    uint64_t number;
    struct lfs_found_conflict found;
    enum lfs_strategy choice;
};

/* A command that waits. */
struct state {
    struct lfs_arena *arena;
    const char *uuid; /* of the target's line */
    const char *file, *line;
    bool by_root;
    struct lfs_list pins; /* of struct lfs_pin */
    struct entry *entries;
    size_t n_entries;
    uint64_t serial, next_number, changes;
    struct timespec time;
    bool busy; /* it is being continued */
    struct state *next;
};

struct lfs_conflicts {
    pthread_mutex_t lock;
    struct state *first; /* the one that changed last */
    size_t count;
    uint64_t serials;
};

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

static void free_state(struct state *s) { lfs_arena_free(s->arena); } /* it lives in it */

void lfs_conflicts_free(struct lfs_conflicts *conflicts) {
    if (!conflicts)
        return;
    for (struct state *s = conflicts->first, *next; s; s = next) {
        next = s->next;
        free_state(s);
    }
    pthread_mutex_destroy(&conflicts->lock);
    free(conflicts);
}

/* --- finding, with the lock held --- */

static struct state **slot_of(struct lfs_conflicts *conflicts, const char *uuid) {
    struct state **at = &conflicts->first;
    while (*at && strcmp((*at)->uuid, uuid))
        at = &(*at)->next;
    return at;
}

static void forget(struct lfs_conflicts *conflicts, struct state **at) {
    struct state *s = *at;
    *at = s->next;
    conflicts->count--;
    free_state(s);
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

/* The state of a branch, with the lock held from here on, and given back by `leave`; NULL where nothing waits. */
static struct state *enter(const struct lfs_conflicts_at *at) {
    struct lfs_conflicts *c = at->conflicts;
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    struct lfs_branch branch;
    pthread_mutex_lock(&c->lock);
    bool any = c->count > 0;
    pthread_mutex_unlock(&c->lock);
    bool there = any && arena && lfs_dataset_branch(at->dataset, arena, at->branch, &branch, NULL) == 0;
    pthread_mutex_lock(&c->lock);
    return there ? *slot_of(c, branch.uuid) : NULL;
}

static void leave(const struct lfs_conflicts_at *at) { pthread_mutex_unlock(&at->conflicts->lock); }

static uint64_t token_of(const struct state *s, const struct path *p, bool with_changes) {
    uint64_t words[] = {s ? s->serial : 0, p->number, p->depth, s && with_changes ? s->changes : 0};
    return lfs_hash(words, sizeof words, 7);
}

/* --- what is shown --- */

enum lfs_conflicts_is lfs_conflicts_look(const struct lfs_conflicts_at *at, uint64_t *token) {
    struct path p = parse(at->what);
    if (p.depth == 0)
        return LFS_CONFLICTS_NONE;
    struct state *s = enter(at);
    enum lfs_conflicts_is is = what_is(&p, entry_of(s, p.number));
    if (token)
        *token = p.depth == 1 ? 0 : token_of(s, &p, is != LFS_CONFLICTS_CHOICE && is != LFS_CONFLICTS_DIRECTORY);
    leave(at);
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
    struct state *s = enter(at);
    struct entry *e = entry_of(s, p.number);
    enum lfs_conflicts_is is = p.depth ? what_is(&p, e) : LFS_CONFLICTS_NONE;
    bool found = is == LFS_CONFLICTS_TEXT || is == LFS_CONFLICTS_CHOICE;
    if (found) {
        put_text(e, p.name, out);
        *time = s->time;
    }
    leave(at);
    return found ? lfs_buf_check(out, err) : lfs_fail(err, LFS_E_NOT_FOUND, "there is no %s", at->what);
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
    struct state *s = enter(at);
    errint_t result = list_names(&p, s, arena, out, n_out, err);
    leave(at);
    return result;
}

/* --- rows as data sets --- */

static errint_t copy_rows(const struct lfs_found_rows *from, struct lfs_arena *arena, struct lfs_found_rows *to,
                          struct lfs_error *err) {
    *to = *from;
    to->dir = lfs_strdup(arena, from->dir);
    to->rows = lfs_memdup(arena, from->rows, from->n_rows * sizeof *from->rows);
    return to->dir && (to->rows || !from->n_rows) ? 0 : lfs_fail_nomem(err);
}

static int by_fragment(const void *a, const void *b) {
    uint64_t x = ((const struct lfs_found_row *)a)->fragment, y = ((const struct lfs_found_row *)b)->fragment;
    return x < y ? -1 : x > y;
}

static uint64_t rows_of(const struct lfs_version *v, uint64_t fragment) {
    const LanceManifest *m = v->manifest.message;
    for (size_t i = 0; i < m->n_fragments; i++)
        if (m->fragments[i]->id == fragment)
            return m->fragments[i]->physical_rows;
    return 0;
}

struct sets {
    struct lfs_view_rows_of *items;
    size_t count;
};

static void free_sets(struct sets *sets) {
    for (size_t i = 0; i < sets->count; i++)
        roaring_bitmap_free((roaring_bitmap_t *)sets->items[i].rows);
}

/* A set for each fragment. */
static errint_t make_sets(struct lfs_found_rows *rows, const struct lfs_version *v, struct lfs_arena *arena,
                          struct sets *out, struct lfs_error *err) {
    out->items = LFS_NEW_ARRAY(arena, struct lfs_view_rows_of, rows->n_rows + 1);
    if (!out->items)
        return lfs_fail_nomem(err);
    if (rows->n_rows)
        qsort(rows->rows, rows->n_rows, sizeof *rows->rows, by_fragment);
    for (size_t i = 0; i < rows->n_rows; i++) {
        const struct lfs_found_row *r = &rows->rows[i];
        if (i == 0 || rows->rows[i - 1].fragment != r->fragment) {
            roaring_bitmap_t *set = roaring_bitmap_create();
            if (!set)
                return lfs_fail_nomem(err);
            out->items[out->count++] = (struct lfs_view_rows_of){r->fragment, set};
        }
        roaring_bitmap_t *set = (roaring_bitmap_t *)out->items[out->count - 1].rows;
        if (r->all)
            roaring_bitmap_add_range(set, 0, rows_of(v, r->fragment));
        else
            roaring_bitmap_add(set, r->row);
    }
    return 0;
}

static errint_t make_image(const struct lfs_conflicts_at *at, struct lfs_views *views, struct lfs_found_rows *rows,
                           struct lfs_arena *arena, struct lfs_image **out, struct lfs_error *err) {
    struct lfs_lines lines;
    struct lfs_version *version;
    LFS_CLEANUP(free_sets) struct sets sets = {0};
    LFS_TRY(lfs_lines_read(at->dataset, arena, &lines, err));
    LFS_TRY(lfs_dataset_version(at->dataset, rows->dir, rows->version, &version, err));
    errint_t result = version->ino == rows->ino
                          ? make_sets(rows, version, arena, &sets, err)
                          : lfs_fail(err, LFS_E_NOT_FOUND, "version %" PRIu64 " is another one by now", rows->version);
    if (result == 0)
        result = lfs_view_rows(views, &lines, version, sets.items, sets.count, out, err);
    lfs_version_release(version);
    return result;
}

errint_t lfs_conflicts_image(const struct lfs_conflicts_at *at, struct lfs_views *views, struct lfs_image **out,
                             struct lfs_error *err) {
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    struct path p = parse(at->what);
    struct lfs_found_rows rows = {0};
    if (!arena)
        return lfs_fail_nomem(err);
    struct state *s = enter(at);
    struct entry *e = entry_of(s, p.number);
    bool found = p.depth && what_is(&p, e) == LFS_CONFLICTS_ROWS;
    errint_t result = found ? copy_rows(&e->found.rows[index_of(p.name, row_names, 3)], arena, &rows, err)
                            : lfs_fail(err, LFS_E_NOT_FOUND, "there is no %s", at->what);
    leave(at);
    return result < 0 ? result : make_image(at, views, &rows, arena, out, err);
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
    return 0;
}

errint_t lfs_conflicts_choose(const struct lfs_conflicts_at *at, uint64_t token, const char *line,
                              struct lfs_buf *answer) {
    struct lfs_error err = {0};
    struct path p = parse(at->what);
    struct state *s = enter(at);
    struct entry *e = entry_of(s, p.number);
    errint_t result =
        !e || p.depth != 3 || token_of(s, &p, false) != token
            ? lfs_fail(&err, LFS_E_STALE, "that conflict does not wait any more: look at %s again", LFS_CONFLICTS)
            : choose(s, e, line, &err);
    if (result == 0)
        put_text(e, p.name, answer);
    leave(at);
    return result < 0 ? lfs_answer_error(answer, &err) : lfs_buf_check(answer, NULL);
}

/* --- for the verbs --- */

static errint_t copy_chosen(const struct state *s, struct lfs_arena *arena, struct lfs_waiting *out,
                            struct lfs_error *err) {
    struct lfs_chosen *list = LFS_NEW_ARRAY(arena, struct lfs_chosen, s->n_entries + 1);
    size_t n = 0;
    for (size_t i = 0; list && i < s->n_entries; i++) {
        const struct entry *e = &s->entries[i];
        if (!e->choice)
            continue;
        list[n] =
            (struct lfs_chosen){lfs_strdup(arena, e->found.step),
                                {lfs_strdup(arena, e->found.conflict.key), e->found.conflict.print, e->choice, false}};
        if (!list[n].step || !list[n].choice.key)
            return lfs_fail_nomem(err);
        n++;
    }
    out->chosen = (struct lfs_chosen_list){list, n};
    return list ? 0 : lfs_fail_nomem(err);
}

static errint_t copy_pins(const struct lfs_list *from, struct lfs_arena *arena, struct lfs_list *to,
                          struct lfs_error *err) {
    *to = (struct lfs_list){0};
    for (size_t i = 0; i < from->count; i++) {
        const struct lfs_pin *pin = from->items[i];
        struct lfs_pin *copy = LFS_NEW(arena, struct lfs_pin);
        if (!copy)
            return lfs_fail_nomem(err);
        *copy = (struct lfs_pin){lfs_strdup(arena, pin->word), lfs_strdup(arena, pin->uuid), pin->version};
        if (!copy->word || !copy->uuid || !lfs_list_add(to, arena, copy))
            return lfs_fail_nomem(err);
    }
    return 0;
}

static errint_t copy_state(const struct state *s, struct lfs_arena *arena, struct lfs_waiting *out,
                           struct lfs_error *err) {
    struct lfs_list *pins = LFS_NEW(arena, struct lfs_list);
    *out = (struct lfs_waiting){
        .file = lfs_strdup(arena, s->file), .line = lfs_strdup(arena, s->line), .by_root = s->by_root};
    out->uuid = lfs_strdup(arena, s->uuid);
    out->serial = s->serial;
    out->pins = pins;
    if (!out->file || !out->line || !out->uuid || !pins)
        return lfs_fail_nomem(err);
    LFS_TRY(copy_pins(&s->pins, arena, pins, err));
    return copy_chosen(s, arena, out, err);
}

errint_t lfs_waiting_begin(struct lfs_conflicts *conflicts, const struct lfs_branch *branch, struct lfs_arena *arena,
                           struct lfs_waiting *out, struct lfs_error *err) {
    pthread_mutex_lock(&conflicts->lock);
    struct state *s = *slot_of(conflicts, branch->uuid);
    errint_t result =
        !s        ? lfs_fail(err, LFS_E_NOT_FOUND,
                             "nothing waits for choices on %s: no command of this mount stopped on conflicts, "
                                    "or it was settled, or forgotten by an unmount",
                             branch->name)
        : s->busy ? lfs_fail(err, LFS_E_BUSY, "the command that waits on %s is being continued already", branch->name)
                  : copy_state(s, arena, out, err);
    if (result == 0)
        s->busy = true;
    pthread_mutex_unlock(&conflicts->lock);
    out->target = branch->name;
    return result;
}

void lfs_waiting_end(struct lfs_conflicts *conflicts, const struct lfs_waiting *w, bool done) {
    pthread_mutex_lock(&conflicts->lock);
    struct state **at = slot_of(conflicts, w->uuid);
    if (*at && (*at)->serial == w->serial) {
        (*at)->busy = false;
        if (done)
            forget(conflicts, at);
    }
    pthread_mutex_unlock(&conflicts->lock);
}

/* --- a command stops --- */

static const struct entry *same_unit(const struct state *old, const struct lfs_found_conflict *c) {
    for (size_t i = 0; old && i < old->n_entries; i++)
        if (strcmp(old->entries[i].found.step, c->step) == 0 &&
            strcmp(old->entries[i].found.conflict.key, c->conflict.key) == 0)
            return &old->entries[i];
    return NULL;
}

static bool copy_conflict(struct lfs_arena *arena, const struct lfs_found_conflict *from,
                          struct lfs_found_conflict *to) {
    const char **texts[] = {&to->conflict.kind,    &to->conflict.unit,      &to->conflict.base,
                            &to->conflict.ours,    &to->conflict.theirs,    &to->conflict.key,
                            &to->conflict.no_ours, &to->conflict.no_theirs, &to->step};
    bool whole = true;
    *to = *from;
    to->conflict.stuck = NULL;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (*texts[i])
            whole = (*texts[i] = lfs_strdup(arena, *texts[i])) && whole;
    for (size_t i = 0; i < 3 && whole; i++)
        whole = !from->rows[i].known || copy_rows(&from->rows[i], arena, &to->rows[i], NULL) == 0;
    return whole;
}

static int by_number(const void *a, const void *b) {
    uint64_t x = ((const struct entry *)a)->number, y = ((const struct entry *)b)->number;
    return x < y ? -1 : x > y;
}

/* A conflict that was there keeps its number; its choice too, as long as both sides are as they were. */
static errint_t take_entries(struct state *s, const struct state *old, const struct lfs_found *found,
                             struct lfs_error *err) {
    s->entries = LFS_NEW_ARRAY(s->arena, struct entry, found->items.count + 1);
    s->next_number = old ? old->next_number : 0;
    for (size_t i = 0; s->entries && i < found->items.count; i++) {
        const struct lfs_found_conflict *c = found->items.items[i];
        struct entry *e = &s->entries[s->n_entries++];
        const struct entry *was = same_unit(old, c);
        if (!copy_conflict(s->arena, c, &e->found))
            return lfs_fail_nomem(err);
        e->number = was ? was->number : s->next_number++;
        e->choice = was && was->found.conflict.print == c->conflict.print ? was->choice : LFS_STRATEGY_FAIL;
    }
    if (s->entries)
        qsort(s->entries, s->n_entries, sizeof *s->entries, by_number);
    return s->entries ? 0 : lfs_fail_nomem(err);
}

static errint_t make_state(struct lfs_conflicts *c, const struct lfs_stopped *stopped, const struct state *old,
                           struct state **out, struct lfs_error *err) {
    struct lfs_arena *arena = lfs_arena_new();
    struct state *s = *out = arena ? LFS_NEW(arena, struct state) : NULL;
    if (!s) {
        lfs_arena_free(arena);
        return lfs_fail_nomem(err);
    }
    *s = (struct state){.arena = arena, .by_root = stopped->by_root};
    s->uuid = lfs_strdup(arena, stopped->found->line);
    s->file = lfs_strdup(arena, stopped->file);
    s->line = lfs_strdup(arena, stopped->line);
    s->serial = old ? old->serial : ++c->serials;
    s->changes = old ? old->changes + 1 : 0;
    s->busy = old && old->busy; /* who continues it lets go of it */
    clock_gettime(CLOCK_REALTIME, &s->time);
    if (!s->uuid || !s->file || !s->line)
        return lfs_fail_nomem(err);
    LFS_TRY(copy_pins(stopped->pins, arena, &s->pins, err));
    return take_entries(s, old, stopped->found, err);
}

static bool has_choices(const struct state *s) {
    for (size_t i = 0; i < s->n_entries; i++)
        if (s->entries[i].choice)
            return true;
    return s->busy;
}

/* With the lock held. The oldest that nobody is at gives way. */
static void make_room(struct lfs_conflicts *c) {
    struct state **oldest = NULL;
    for (struct state **at = &c->first; *at; at = &(*at)->next)
        if (!(*at)->busy)
            oldest = at;
    if (c->count < LFS_CONFLICTS_BRANCHES_MAX || !oldest)
        return;
    lfs_log(LFS_LOG_WARNING, "conflicts wait on too many branches: those of the line %s are forgotten",
            (*oldest)->uuid);
    forget(c, oldest);
}

static errint_t keep(struct lfs_conflicts *c, const struct lfs_stopped *stopped, bool *kept, struct lfs_error *err) {
    struct state **at = slot_of(c, stopped->found->line), *old = *at, *made;
    bool same = old && (stopped->again ? old->serial == stopped->again->serial
                                       : !old->busy && strcmp(old->line, stopped->line) == 0 &&
                                             strcmp(old->file, stopped->file) == 0);
    *kept = !old || same || (!stopped->again && !has_choices(old));
    if (!*kept)
        return 0;
    errint_t result = make_state(c, stopped, same ? old : NULL, &made, err);
    if (result < 0) {
        if (made)
            free_state(made);
        return result;
    }
    if (old)
        forget(c, at);
    make_room(c);
    made->next = c->first;
    c->first = made;
    c->count++;
    return 0;
}

errint_t lfs_waiting_keep(struct lfs_conflicts *conflicts, const struct lfs_stopped *stopped, bool *kept,
                          struct lfs_error *err) {
    pthread_mutex_lock(&conflicts->lock);
    errint_t result = keep(conflicts, stopped, kept, err);
    pthread_mutex_unlock(&conflicts->lock);
    return result;
}
