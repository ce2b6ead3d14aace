/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/waiting.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/limits.h"
#include "util/log.h"
#include "verbs/conflicts_impl.h"

/* --- a command is taken up again --- */

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
    struct state *s = *lfs_waiting_slot(conflicts, branch->uuid);
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
    struct state **at = lfs_waiting_slot(conflicts, w->uuid);
    if (*at && (*at)->serial == w->serial) {
        (*at)->busy = false;
        if (done)
            lfs_waiting_forget(conflicts, at);
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
        whole = !from->rows[i].known || lfs_conflicts_copy_rows(&from->rows[i], arena, &to->rows[i], NULL) == 0;
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
    lfs_waiting_forget(c, oldest);
}

static errint_t keep(struct lfs_conflicts *c, const struct lfs_stopped *stopped, bool *kept, struct lfs_error *err) {
    struct state **at = lfs_waiting_slot(c, stopped->found->line), *old = *at, *made;
    bool same = old && (stopped->again ? old->serial == stopped->again->serial
                                       : !old->busy && strcmp(old->line, stopped->line) == 0 &&
                                             strcmp(old->file, stopped->file) == 0);
    *kept = !old || same || (!stopped->again && !has_choices(old));
    if (!*kept)
        return 0;
    errint_t result = make_state(c, stopped, same ? old : NULL, &made, err);
    if (result < 0) {
        if (made)
            lfs_waiting_free(made);
        return result;
    }
    if (old)
        lfs_waiting_forget(c, at);
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
