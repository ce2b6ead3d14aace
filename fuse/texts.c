/* SPDX-License-Identifier: Apache-2.0 */
#include "fuse/texts.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "fuse/conflicts.h"
#include "fuse/previews.h"
#include "fuse/stats.h"
#include "fuse/tag_refs.h"
#include "report/report.h"
#include "util/cleanup.h"
#include "util/map.h"
#include "verbs/branches.h"
#include "verbs/fsck.h"

enum {
    BUCKETS = 256,
    FLEETING_MAX = 8, /* texts between the look at a name and its opening */
};

/* --- where texts come from --- */

/* Files at the root of the mount, answers of previews, what conflicts tell; others of branches are reports. */
struct source {
    const char *name;
    bool slow; /* made when it is opened, else by every look at its name */
    /* What it is made of; NULL: every look gives another text. */
    errint_t (*stamp)(struct lfs_mount *m, const struct lfs_node *place, const char *what, struct lfs_stamp *out);
    errint_t (*render)(struct lfs_mount *m, const struct lfs_node *place, const char *what, const atomic_bool *cancel,
                       struct lfs_buf *out, struct timespec *time, struct lfs_error *err);
};

/* Why there is no text is the text. */
static errint_t or_why(errint_t result, struct lfs_buf *out, const struct lfs_error *why, struct lfs_error *err) {
    if (result == 0 || result == -EINTR)
        return result;
    if (result == -ENOMEM)
        return lfs_fail_nomem(err);
    lfs_buf_clear(out);
    lfs_buf_printf(out, "# %s\n", why->message);
    return lfs_buf_check(out, err);
}

/* Every look makes it anew: bytes that only one branch holds depend on what lies in any directory. */
static errint_t render_branches(struct lfs_mount *m, const struct lfs_node *place, const char *what,
                                const atomic_bool *cancel, struct lfs_buf *out, struct timespec *time,
                                struct lfs_error *err) {
    struct lfs_error why = {0};
    (void)place;
    (void)what;
    LFS_TRY(lfs_tree_time(m, "", time));
    return or_why(lfs_branches_table(m->dataset, cancel, out, &why), out, &why, err);
}

static errint_t render_check(struct lfs_mount *m, const struct lfs_node *place, const char *what,
                             const atomic_bool *cancel, struct lfs_buf *out, struct timespec *time,
                             struct lfs_error *err) {
    struct lfs_error why = {0};
    (void)place;
    (void)what;
    struct lfs_fsck_result found;
    struct lfs_fsck_options options = {.cancel = cancel};
    LFS_TRY(lfs_tree_time(m, "", time));
    return or_why(lfs_fsck_run(m->dataset, &options, out, &found, &why), out, &why, err);
}

static errint_t render_stats(struct lfs_mount *m, const struct lfs_node *place, const char *what,
                             const atomic_bool *cancel, struct lfs_buf *out, struct timespec *time,
                             struct lfs_error *err) {
    (void)place;
    (void)what;
    (void)cancel;
    return lfs_stats_render(m, out, time, err);
}

static const struct source sources[] = {
    {".branches", false, NULL, render_branches},
    {".stats", false, NULL, render_stats},
    {".fsck", true, NULL, render_check},
};
static const struct source preview = {LFS_PREVIEW_DIR, false, lfs_preview_answer_stamp, lfs_preview_answer_render},
                           conflicts = {LFS_CONFLICTS, false, lfs_conflicts_text_stamp, lfs_conflicts_text_render};

static const struct source *source_of(const struct lfs_node *place, const char *what) {
    if (place->kind == LFS_NODE_BRANCH)
        return lfs_is_preview_answer(what) ? &preview : lfs_is_conflicts_path(what) ? &conflicts : NULL;
    for (size_t i = 0; place->kind == LFS_NODE_ROOT && i < sizeof sources / sizeof *sources; i++)
        if (strcmp(sources[i].name, what) == 0)
            return &sources[i];
    return NULL;
}

/* _refs/tags of a branch (tag_refs.h). */
static bool is_of_refs(const struct lfs_node *place, const char *what) {
    return place->kind == LFS_NODE_BRANCH && strncmp(what, "_refs", 5) == 0 && (!what[5] || what[5] == '/');
}

static struct lfs_report_cache *facts_of(const struct lfs_texts *texts);

static struct lfs_report_call report_call(struct lfs_mount *m, const struct lfs_node *place, const char *what) {
    return (struct lfs_report_call){m->dataset, place->text, what, facts_of(m->texts), m->conflicts};
}

enum lfs_text_is lfs_text_is(struct lfs_mount *m, const struct lfs_node *place, const char *what) {
    if (place->kind == LFS_NODE_BRANCH && lfs_is_conflicts_path(what)) {
        struct lfs_conflicts_at at = lfs_conflicts_at(m, place, what);
        enum lfs_conflicts_is found = lfs_conflicts_look(&at, NULL);
        return found == LFS_CONFLICTS_DIRECTORY ? LFS_TEXT_DIRECTORY
               : found == LFS_CONFLICTS_TEXT    ? LFS_TEXT_FILE
                                                : LFS_TEXT_NONE;
    }
    if (source_of(place, what) || place->kind != LFS_NODE_BRANCH)
        return source_of(place, what) ? LFS_TEXT_FILE : LFS_TEXT_NONE;
    if (is_of_refs(place, what))
        return lfs_tag_ref_is(m, place, what);
    struct lfs_report_call call = report_call(m, place, what);
    enum lfs_report_is is = lfs_report_is(&call);
    return is == LFS_REPORT_FILE ? LFS_TEXT_FILE : is == LFS_REPORT_DIRECTORY ? LFS_TEXT_DIRECTORY : LFS_TEXT_NONE;
}

bool lfs_text_is_volatile(const struct lfs_node *place, const char *what) {
    const struct source *source = source_of(place, what);
    return (source && !source->stamp) || is_of_refs(place, what);
}

bool lfs_text_is_slow(const struct lfs_node *place, const char *what) {
    const struct source *source = source_of(place, what);
    return source && source->slow;
}

const struct lfs_node *lfs_text_place(const struct lfs_node *node) {
    return node->branch ? node->branch : node->parent;
}

const char *const *lfs_text_names(const struct lfs_node *place) {
    static const char *const of_root[] = {".fsck", ".branches",
                                          NULL}; /* .stats is never twice the same: no archive wants it */
    return place->kind == LFS_NODE_BRANCH ? lfs_report_files : of_root;
}

static errint_t stamp(struct lfs_mount *m, const struct lfs_node *place, const char *what, struct lfs_stamp *out) {
    const struct source *source = source_of(place, what);
    struct lfs_report_call call = report_call(m, place, what);
    *out = (struct lfs_stamp){0};
    if (is_of_refs(place, what))
        return 0;
    if (source)
        return source->stamp ? source->stamp(m, place, what, out) : 0;
    return lfs_report_stamp(&call, out, NULL);
}

static errint_t render(struct lfs_mount *m, const struct lfs_node *place, const char *what, const atomic_bool *cancel,
                       struct lfs_buf *out, struct timespec *time) {
    const struct source *source = source_of(place, what);
    struct lfs_report_call call = report_call(m, place, what);
    if (is_of_refs(place, what))
        return lfs_tag_ref_render(m, place, what, out, time);
    return source ? source->render(m, place, what, cancel, out, time, NULL) : lfs_report_render(&call, out, time, NULL);
}

/* --- the cache --- */

struct entry {
    struct lfs_text text; /* first: a struct lfs_text is one of these */
    atomic_uint users;    /* the cache itself too */
    uint64_t place;       /* the token of the directory's node */
    char *what;
    struct lfs_stamp stamp;
    struct timespec made;
    bool fleeting; /* no look finds it again: only who has its node */
    bool stale;    /* something newer was made: only for those who hold its node */
    struct entry *next_in_bucket;
    TAILQ_ENTRY(entry) by_use;
};

TAILQ_HEAD(entries, entry);

struct order {
    struct entries by_use; /* the newest first */
    size_t bytes, count;
};

struct lfs_texts {
    pthread_mutex_t lock;
    struct entry *buckets[BUCKETS];
    struct order lasting, fleeting; /* what is made at each look drives nothing out that serves many */
    size_t bytes_max;               /* of the lasting ones */
    uint64_t hits, misses;
    struct lfs_report_cache *facts;
};

struct lfs_texts *lfs_texts_new(size_t bytes_max) {
    struct lfs_texts *texts = calloc(1, sizeof *texts);
    if (!texts)
        return NULL;
    pthread_mutex_init(&texts->lock, NULL);
    TAILQ_INIT(&texts->lasting.by_use);
    TAILQ_INIT(&texts->fleeting.by_use);
    texts->bytes_max = bytes_max / 2;
    texts->facts = lfs_report_cache_new(bytes_max / 2);
    if (!texts->facts) {
        lfs_texts_free(texts);
        return NULL;
    }
    return texts;
}

static struct lfs_report_cache *facts_of(const struct lfs_texts *texts) { return texts->facts; }

void lfs_text_release(struct lfs_text *text) {
    struct entry *e = (struct entry *)text;
    if (!e || atomic_fetch_sub(&e->users, 1) != 1)
        return;
    free((void *)e->text.bytes);
    free(e->what);
    free(e);
}

static size_t bucket_of(uint64_t place, const char *what) { return lfs_hash(what, strlen(what), place) % BUCKETS; }

static size_t cost(const struct entry *e) { return e->text.size + strlen(e->what) + sizeof *e; }

static struct order *order_of(struct lfs_texts *texts, const struct entry *e) {
    return e->fleeting ? &texts->fleeting : &texts->lasting;
}

static void drop(struct lfs_texts *texts, struct entry *e) {
    struct entry **at = &texts->buckets[bucket_of(e->place, e->what)];
    struct order *o = order_of(texts, e);
    while (*at != e)
        at = &(*at)->next_in_bucket;
    *at = e->next_in_bucket;
    TAILQ_REMOVE(&o->by_use, e, by_use);
    o->bytes -= cost(e);
    o->count--;
    lfs_text_release(&e->text);
}

void lfs_texts_free(struct lfs_texts *texts) {
    if (!texts)
        return;
    while (!TAILQ_EMPTY(&texts->lasting.by_use))
        drop(texts, TAILQ_FIRST(&texts->lasting.by_use));
    while (!TAILQ_EMPTY(&texts->fleeting.by_use))
        drop(texts, TAILQ_FIRST(&texts->fleeting.by_use));
    lfs_report_cache_free(texts->facts);
    pthread_mutex_destroy(&texts->lock);
    free(texts);
}

void lfs_texts_count(struct lfs_texts *texts, struct lfs_cache_counts *out) {
    pthread_mutex_lock(&texts->lock);
    *out = (struct lfs_cache_counts){texts->hits, texts->misses, texts->lasting.count + texts->fleeting.count,
                                     texts->lasting.bytes + texts->fleeting.bytes};
    pthread_mutex_unlock(&texts->lock);
}

struct wanted {
    uint64_t place;
    const char *what;
    const uint64_t *token;         /* that very text; NULL: the one that is good now */
    const struct lfs_stamp *stamp; /* when `token` is NULL */
};

static bool matches(const struct entry *e, const struct wanted *w) {
    if (e->place != w->place || strcmp(e->what, w->what) != 0)
        return false;
    return w->token ? e->text.token == *w->token
                    : !e->stale && e->stamp.hash == w->stamp->hash && lfs_stamp_is_settled(&e->stamp, e->made);
}

/* With the lock held. */
static struct entry *find(struct lfs_texts *texts, const struct wanted *w) {
    struct entry *e = texts->buckets[bucket_of(w->place, w->what)];
    while (e && !matches(e, w))
        e = e->next_in_bucket;
    if (e) {
        struct order *o = order_of(texts, e);
        TAILQ_REMOVE(&o->by_use, e, by_use);
        TAILQ_INSERT_HEAD(&o->by_use, e, by_use);
        atomic_fetch_add(&e->users, 1);
    }
    return e;
}

/* Take over a text that was made; one that came out the same before is used again, so that its node stays. */
static struct entry *keep(struct lfs_texts *texts, struct entry *made) {
    struct wanted same = {.place = made->place, .what = made->what, .token = &made->text.token};
    struct order *o = order_of(texts, made);
    pthread_mutex_lock(&texts->lock);
    for (struct entry *e = texts->buckets[bucket_of(made->place, made->what)]; e; e = e->next_in_bucket)
        if (e->place == made->place && strcmp(e->what, made->what) == 0)
            e->stale = true;
    struct entry *e = find(texts, &same);
    if (e) {
        e->stamp = made->stamp;
        e->made = made->made;
        e->stale = false;
        lfs_text_release(&made->text);
    } else {
        e = made;
        size_t b = bucket_of(e->place, e->what);
        e->next_in_bucket = texts->buckets[b];
        texts->buckets[b] = e;
        TAILQ_INSERT_HEAD(&o->by_use, e, by_use);
        o->bytes += cost(e);
        o->count++;
        atomic_fetch_add(&e->users, 1);
    }
    while (TAILQ_LAST(&o->by_use, entries) != e && (e->fleeting ? o->count > FLEETING_MAX : o->bytes > texts->bytes_max))
        drop(texts, TAILQ_LAST(&o->by_use, entries));
    pthread_mutex_unlock(&texts->lock);
    return e;
}

/* No lock is held: it may read a whole history. */
static errint_t make(struct lfs_mount *m, const struct lfs_node *place, const char *what, const struct lfs_stamp *stamp,
                     const atomic_bool *cancel, struct entry **out) {
    LFS_AUTO_BUF text = {0};
    struct entry *e = calloc(1, sizeof *e);
    if (!e || !(e->what = strdup(what))) {
        free(e);
        return -ENOMEM;
    }
    atomic_init(&e->users, 1);
    e->place = place->token;
    e->stamp = *stamp;
    e->fleeting = lfs_text_is_volatile(place, what);
    clock_gettime(CLOCK_REALTIME, &e->made);
    errint_t result = render(m, place, what, cancel, &text, &e->text.time);
    if (result < 0) {
        lfs_text_release(&e->text);
        return result;
    }
    uint64_t identity[] = {text.length, (uint64_t)e->text.time.tv_sec, (uint64_t)e->text.time.tv_nsec};
    e->text.token = lfs_hash(text.data, text.length, lfs_hash(identity, sizeof identity, 5));
    e->text.bytes = text.data;
    e->text.size = text.length;
    text.data = NULL; /* handed over */
    *out = e;
    return 0;
}

errint_t lfs_text_get(struct lfs_mount *m, const struct lfs_node *place, const char *what, bool known_only,
                      struct lfs_text **out) {
    struct lfs_stamp now;
    struct wanted w = {.place = place->token, .what = what, .stamp = &now};
    struct entry *e = NULL;
    bool forgets = lfs_text_is_volatile(place, what);
    *out = NULL;
    LFS_TRY(stamp(m, place, what, &now));
    pthread_mutex_lock(&m->texts->lock);
    e = forgets ? NULL : find(m->texts, &w);
    *(e ? &m->texts->hits : &m->texts->misses) += !known_only && !forgets;
    pthread_mutex_unlock(&m->texts->lock);
    if (!e && known_only)
        return -EAGAIN;
    if (!e) {
        LFS_TRY(make(m, place, what, &now, NULL, &e));
        e = keep(m->texts, e);
    }
    *out = &e->text;
    return 0;
}

errint_t lfs_text_make(struct lfs_mount *m, const struct lfs_node *node, const atomic_bool *cancel,
                       struct lfs_text **out) {
    const struct lfs_stamp none = {0};
    struct entry *e;
    LFS_TRY(make(m, lfs_text_place(node), node->text, &none, cancel, &e));
    *out = &e->text;
    return 0;
}

errint_t lfs_text_of(struct lfs_mount *m, const struct lfs_node *node, struct lfs_text **out) {
    const struct lfs_node *place = lfs_text_place(node);
    struct wanted w = {.place = place->token, .what = node->text, .token = &node->token};
    pthread_mutex_lock(&m->texts->lock);
    struct entry *e = find(m->texts, &w);
    pthread_mutex_unlock(&m->texts->lock);
    if (!e) {
        struct lfs_text *now;
        LFS_TRY(lfs_text_get(m, place, node->text, false, &now));
        if (now->token != node->token) {
            lfs_text_release(now);
            return -ESTALE;
        }
        e = (struct entry *)now;
    }
    *out = &e->text;
    return 0;
}
