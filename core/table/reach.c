/* SPDX-License-Identifier: Apache-2.0 */
#include "table/reach.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "store/file.h"
#include "table/location.h"
#include "table/references.h"
#include "util/cancel.h"
#include "util/cleanup.h"
#include "util/map.h"

/* --- marks: hash of a place -> holder --- */

struct lfs_marks {
    uint64_t *keys; /* 0 = free */
    uint32_t *holders;
    size_t count, n_slots; /* a power of two */
};

static uint64_t mark_key(const char *dir, uint64_t name) {
    uint64_t key = lfs_hash(&name, sizeof name, lfs_hash(dir, strlen(dir), 2));
    return key ? key : 1;
}

static size_t slot_of(const struct lfs_marks *m, uint64_t key) {
    size_t i = key & (m->n_slots - 1);
    while (m->keys[i] && m->keys[i] != key)
        i = (i + 1) & (m->n_slots - 1);
    return i;
}

static bool grow_marks(struct lfs_marks *m) {
    struct lfs_marks grown = {.count = m->count, .n_slots = m->n_slots ? m->n_slots * 2 : 1024};
    grown.keys = calloc(grown.n_slots, sizeof *grown.keys);
    grown.holders = calloc(grown.n_slots, sizeof *grown.holders);
    if (!grown.keys || !grown.holders) {
        free(grown.keys);
        free(grown.holders);
        return false;
    }
    for (size_t i = 0; i < m->n_slots; i++)
        if (m->keys[i]) {
            size_t at = slot_of(&grown, m->keys[i]);
            grown.keys[at] = m->keys[i];
            grown.holders[at] = m->holders[i];
        }
    free(m->keys);
    free(m->holders);
    *m = grown;
    return true;
}

static bool mark(struct lfs_marks *m, uint64_t key, uint32_t holder) {
    if (m->count * 2 >= m->n_slots && !grow_marks(m))
        return false;
    size_t at = slot_of(m, key);
    if (!m->keys[at]) {
        m->keys[at] = key;
        m->holders[at] = holder;
        m->count++;
    } else if (m->holders[at] == LFS_HELD_BY_LINE) {
        m->holders[at] = holder;
    } else if (holder != LFS_HELD_BY_LINE && m->holders[at] != holder) {
        m->holders[at] = LFS_HELD_BY_SEVERAL;
    }
    return true;
}

static size_t holder_of(const struct lfs_marks *m, uint64_t key) {
    size_t at = m->n_slots ? slot_of(m, key) : 0;
    return m->n_slots && m->keys[at] ? m->holders[at] : LFS_HELD_NOT;
}

/* A base path can be a plain directory, "<home>/data" itself: then the name alone was marked, in that directory. */
size_t lfs_reach_holder(const struct lfs_reach *r, const char *dir, const char *name) {
    size_t whole = holder_of(r->marks, mark_key(dir, lfs_reference_name(name)));
    const char *slash = strchr(name, '/');
    LFS_AUTO_FREE char *parent = NULL;
    if (!slash || asprintf(&parent, "%s%s%.*s", dir, *dir ? "/" : "", (int)(slash - name), name) < 0)
        return slash ? LFS_HELD_BY_SEVERAL : whole; /* no memory to look: held */
    size_t part = holder_of(r->marks, mark_key(parent, lfs_reference_name(slash + 1)));
    if (whole == LFS_HELD_NOT || part == LFS_HELD_NOT || whole == part)
        return whole ? whole : part;
    return whole == LFS_HELD_BY_LINE ? part : part == LFS_HELD_BY_LINE ? whole : LFS_HELD_BY_SEVERAL;
}

/* --- reading --- */

struct places {
    const char **list;
    size_t count;
};

/* A manifest in line storage. */
struct kept {
    const struct lfs_home *home;
    const char *name; /* "_versions/<file>" */
    struct lfs_references *references;
    struct lfs_branch branch; /* what is known of its line */
    bool has_branch, is_young, is_needed;
    struct kept *next;
};

struct reading {
    struct lfs_dataset *ds;
    const struct lfs_reach_options *options;
    struct lfs_arena *arena;
    struct lfs_reach *out;
    struct lfs_map places; /* base path string -> struct places */
    struct lfs_map live;   /* "<line>:<version>" of every vector */
    struct kept *kept;
    struct lfs_error *err;
};

static const struct places *places_of(struct reading *r, const char *base) {
    struct places *p = lfs_map_get(&r->places, base);
    if (p)
        return p;
    p = LFS_NEW(r->arena, struct places);
    char *own = lfs_strdup(r->arena, base);
    if (!p || !own || !lfs_map_put(&r->places, own, p)) {
        lfs_fail_nomem(r->err);
        return NULL;
    }
    return lfs_base_places(r->ds, base, r->arena, &p->list, &p->count, r->err) < 0 ? NULL : p;
}

static errint_t mark_names(struct reading *r, const char *dir, const uint64_t *names, size_t n, uint32_t holder) {
    for (size_t i = 0; i < n; i++)
        if (!mark(r->out->marks, mark_key(dir, names[i]), holder))
            return lfs_fail_nomem(r->err);
    return 0;
}

/* All that a version names, in its own directory and through its base paths. */
static errint_t mark_all(struct reading *r, const char *dir, const struct lfs_references *refs, uint32_t holder) {
    LFS_TRY(mark_names(r, dir, refs->groups[0].names, refs->groups[0].n_names, holder));
    for (size_t i = 1; i < refs->n_groups; i++) {
        const struct lfs_reference_group *g = &refs->groups[i];
        if (!g->n_names)
            continue;
        const struct places *p = places_of(r, g->base);
        if (!p)
            return -r->err->sys_errno;
        for (size_t k = 0; k < p->count; k++)
            LFS_TRY(mark_names(r, p->list[k], g->names, g->n_names, holder));
    }
    return 0;
}

/* Deletion files that a line's storage keeps for when stock Lance has compacted and cleaned up. */
static errint_t mark_kept_deletions(struct reading *r, const char *line, const struct lfs_references *refs) {
    char *storage = lfs_line_storage_dir(r->arena, line);
    char *dir = storage ? lfs_join(r->arena, storage, "_deletions") : NULL;
    return dir ? mark_names(r, dir, refs->deletions, refs->n_deletions, LFS_HELD_BY_LINE) : lfs_fail_nomem(r->err);
}

static errint_t add_live(struct reading *r, const struct lfs_branch *branch, const struct lfs_references *refs) {
    struct lfs_vector vector;
    lfs_vector_init(&vector, r->arena);
    if (branch && *branch->uuid)
        LFS_TRY(lfs_number_vector(branch, refs->number, refs->vector, &vector, r->err));
    else if (refs->vector)
        LFS_TRY(lfs_vector_parse(&vector, refs->vector, "a version of a branch without ref", r->err));
    for (size_t i = 0; i < vector.count; i++) {
        const struct lfs_vector_entry *e = &vector.entries[i];
        uint64_t *newest = lfs_map_get(&r->out->lines, e->line);
        if (!newest) {
            newest = LFS_NEW(r->arena, uint64_t);
            if (!newest || !lfs_map_put(&r->out->lines, e->line, newest))
                return lfs_fail_nomem(r->err);
        }
        if (e->version > *newest)
            *newest = e->version;
        if (branch && strcmp(branch->uuid, e->line) == 0)
            continue; /* this very version: it is there, and whoever has merged it says so himself */
        char *key = lfs_sprintf(r->arena, "%s:%" PRIu64, e->line, e->version);
        if (!key || (!lfs_map_get(&r->live, key) && !lfs_map_put(&r->live, key, key)))
            return lfs_fail_nomem(r->err);
    }
    return 0;
}

static bool is_manifest(const char *name) {
    static const char end[] = ".manifest";
    size_t length = strlen(name);
    return length > strlen(end) && strcmp(name + length - strlen(end), end) == 0;
}

static bool is_after(struct timespec a, struct timespec b) {
    return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec > b.tv_nsec;
}

/* A link to a kept manifest changes the file's status; a whole directory that becomes a line's changes its own. */
static bool is_young(struct reading *r, const struct lfs_home *home, const char *path) {
    const char *paths[] = {path, home->dir};
    for (size_t i = 0; i < 2; i++) {
        struct stat st;
        LFS_AUTO_FD fd = lfs_open_beneath(lfs_dataset_root_fd(r->ds), paths[i], O_PATH, 0);
        if (fd < 0 || fstat(fd, &st) < 0 || is_after(st.st_ctim, r->options->young_since))
            return true;
    }
    return false;
}

static errint_t add_kept(struct reading *r, const struct lfs_home *home, const char *name, const char *path,
                         struct lfs_references *refs) {
    struct kept *k = LFS_NEW(r->arena, struct kept);
    if (!k) {
        lfs_references_release(r->ds, refs);
        return lfs_fail_nomem(r->err);
    }
    *k = (struct kept){.home = home, .references = refs, .next = r->kept, .is_young = is_young(r, home, path)};
    r->kept = k;
    k->name = lfs_join(r->arena, "_versions", name);
    k->has_branch = lfs_lines_any_branch(&r->out->homes.lines, home->line, &k->branch, NULL) == 0;
    return k->name ? 0 : lfs_fail_nomem(r->err);
}

static errint_t read_manifest(struct reading *r, size_t i_home, const char *name) {
    const struct lfs_home *home = &r->out->homes.list[i_home];
    struct lfs_references *refs;
    char *path = lfs_sprintf(r->arena, "%s%s_versions/%s", home->dir, *home->dir ? "/" : "", name);
    if (!path)
        return lfs_fail_nomem(r->err);
    errint_t result = lfs_references_get(r->ds, path, &refs, r->err);
    lfs_progress_step(r->options->progress);
    if (result < 0)
        return result == -ENOENT ? 0 : result; /* cleaned away since it was listed: nobody reads it any more */
    if (home->kind == LFS_HOME_LINE)
        return add_kept(r, home, name, path, refs);
    if (r->options->is_gone && r->options->is_gone(r->options->context, home->dir, refs->number)) {
        lfs_references_release(r->ds, refs);
        return 0;
    }
    result = mark_all(r, home->dir, refs, (uint32_t)(LFS_HELD_BY_HOME + i_home));
    if (result == 0 && home->line)
        result = mark_kept_deletions(r, home->line, refs);
    if (result == 0)
        result = add_live(r, home->branch, refs);
    lfs_references_release(r->ds, refs);
    return result;
}

static errint_t read_home(struct reading *r, size_t i_home) {
    struct lfs_entry *entries;
    size_t n;
    char *versions = lfs_join(r->arena, r->out->homes.list[i_home].dir, "_versions");
    if (!versions)
        return lfs_fail_nomem(r->err);
    LFS_TRY(lfs_list_dir(r->ds, versions, r->arena, &entries, &n, r->err));
    for (size_t i = 0; i < n; i++) {
        if (!entries[i].is_file || !is_manifest(entries[i].name))
            continue;
        if (lfs_is_cancelled(r->options->cancel))
            return lfs_fail(r->err, LFS_E_INTERRUPTED, "interrupted: nothing was changed");
        LFS_TRY(read_manifest(r, i_home, entries[i].name));
    }
    return 0;
}

/* Some vector has this very version; or it is an undo, by which read_candidate (lineage.c) knows that versions before it
 * are no common ground. */
static bool is_wanted(const struct reading *r, const struct kept *k) {
    const uint64_t *newest = lfs_map_get(&r->out->lines, k->home->line);
    char key[128];
    int n = snprintf(key, sizeof key, "%s:%" PRIu64, k->home->line, k->references->number);
    if (k->is_young || n < 0 || (size_t)n >= sizeof key)
        return true;
    return lfs_map_get(&r->live, key) || (k->references->is_undo && newest && *newest >= k->references->number);
}

static errint_t settle_kept(struct reading *r) {
    for (bool again = true; again;) {
        again = false;
        for (struct kept *k = r->kept; k; k = k->next) {
            if (k->is_needed || !is_wanted(r, k))
                continue;
            k->is_needed = again = true; /* its own vector may want others: criss-cross merges have bases of bases */
            uint64_t name = lfs_reference_name(k->name);
            LFS_TRY(mark_names(r, k->home->dir, &name, 1, LFS_HELD_BY_LINE));
            LFS_TRY(mark_kept_deletions(r, k->home->line, k->references));
            if (k->is_young)
                LFS_TRY(mark_all(r, k->home->dir, k->references, LFS_HELD_BY_LINE));
            LFS_TRY(add_live(r, k->has_branch ? &k->branch : NULL, k->references));
        }
    }
    return 0;
}

errint_t lfs_reach_read(struct lfs_dataset *ds, const struct lfs_reach_options *options, struct lfs_arena *arena,
                        struct lfs_reach *out, struct lfs_error *err) {
    struct lfs_error own;
    struct reading r = {.ds = ds, .options = options, .arena = arena, .out = out, .err = err ? err : &own};
    *out = (struct lfs_reach){.marks = calloc(1, sizeof *out->marks)};
    if (!out->marks)
        return lfs_fail_nomem(err);
    lfs_map_init(&out->lines, arena);
    lfs_map_init(&r.places, arena);
    lfs_map_init(&r.live, arena);
    lfs_progress_stage(options->progress, "reading manifests", 0);
    LFS_TRY(lfs_homes_find(ds, arena, &out->homes, err));
    errint_t result = 0;
    for (size_t i = 0; result == 0 && i < out->homes.count; i++)
        result = read_home(&r, i);
    if (result == 0)
        result = settle_kept(&r);
    for (struct kept *k = r.kept; k; k = k->next)
        lfs_references_release(ds, k->references);
    return result;
}

void lfs_reach_free(struct lfs_reach *reach) {
    if (!reach->marks)
        return;
    free(reach->marks->keys);
    free(reach->marks->holders);
    free(reach->marks);
    reach->marks = NULL;
}
