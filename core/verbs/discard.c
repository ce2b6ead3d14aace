/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/discard.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "format/names.h"
#include "store/file.h"
#include "table/lock.h"
#include "table/reach.h"
#include "table/references.h"
#include "table/stamp.h"
#include "util/cleanup.h"
#include "util/log.h"

/* Versions of a branch that stay whatever is cleaned up, ascending within each kind. */
struct pins {
    uint64_t tip;
    uint64_t *tagged, *forked;
    size_t n_tagged, n_forked;
};

/* Who holds what while the versions of one branch that are not pinned hold nothing. */
struct judgement {
    struct lfs_arena *arena;
    char *dir;
    struct pins pins;
    struct lfs_reach reach;
    struct lfs_stamp stamp; /* of all directories that versions and refs come and go in */
    struct timespec made;   /* when reading began */
};

struct lfs_discards {
    struct lfs_dataset *ds;
    pthread_mutex_t one; /* removals go one by one: each has the data set's lock alone anyway */
    struct judgement *judgement;
};

struct lfs_discards *lfs_discards_new(struct lfs_dataset *ds) {
    struct lfs_discards *d = calloc(1, sizeof *d);
    if (!d)
        return NULL;
    d->ds = ds;
    pthread_mutex_init(&d->one, NULL);
    return d;
}

static void free_judgement(struct judgement *j) {
    if (!j)
        return;
    lfs_reach_free(&j->reach);
    lfs_arena_free(j->arena);
    free(j);
}

static void auto_free(struct judgement **j) { free_judgement(*j); }

void lfs_discards_free(struct lfs_discards *d) {
    if (!d)
        return;
    free_judgement(d->judgement);
    pthread_mutex_destroy(&d->one);
    free(d);
}

/* --- what is pinned --- */

static bool holds(const uint64_t *list, size_t n, uint64_t version) {
    for (size_t i = 0; i < n; i++)
        if (list[i] == version)
            return true;
    return false;
}

static bool is_pinned(const struct pins *p, uint64_t version) {
    return version >= p->tip || holds(p->tagged, p->n_tagged, version) || holds(p->forked, p->n_forked, version);
}

/* The version that `other` left `branch` at; 0 when it does not stand on it. A ref without identifier says it by name. */
static uint64_t left_at(const struct lfs_branch *branch, const struct lfs_branch *other) {
    if (!other->n_forks)
        return other->parent_name && strcmp(other->parent_name, branch->name) == 0 ? other->parent_version : 0;
    if (other->n_forks <= branch->n_forks)
        return 0;
    for (size_t i = 0; i < branch->n_forks; i++)
        if (other->forks[i].version != branch->forks[i].version || strcmp(other->forks[i].uuid, branch->forks[i].uuid))
            return 0;
    return other->forks[branch->n_forks].version;
}

static errint_t read_pins(struct lfs_dataset *ds, const struct lfs_branch *branch, struct lfs_arena *arena,
                          struct pins *out, struct lfs_error *err) {
    struct lfs_branch *branches;
    struct lfs_tag *tags;
    size_t n_branches, n_tags, bad_branches, bad_tags;
    enum lfs_naming naming;
    LFS_TRY(lfs_dataset_tip(ds, branch->dir, &out->tip, &naming, err));
    LFS_TRY(lfs_dataset_branches(ds, arena, &branches, &n_branches, &bad_branches, err));
    LFS_TRY(lfs_dataset_tags(ds, arena, &tags, &n_tags, &bad_tags, err));
    if (bad_branches || bad_tags)
        return lfs_fail(err, LFS_E_CORRUPT, "a file in _refs cannot be read, so it cannot be told what stands on %s",
                        branch->name);
    out->tagged = LFS_NEW_ARRAY(arena, uint64_t, n_tags + 1);
    out->forked = LFS_NEW_ARRAY(arena, uint64_t, n_branches + 1);
    if (!out->tagged || !out->forked)
        return lfs_fail_nomem(err);
    for (size_t i = 0; i < n_tags; i++)
        if (strcmp(tags[i].branch, branch->name) == 0)
            out->tagged[out->n_tagged++] = tags[i].version;
    for (size_t i = 0; i < n_branches; i++) {
        uint64_t version = left_at(branch, &branches[i]);
        if (version)
            out->forked[out->n_forked++] = version;
    }
    return 0;
}

/* --- who holds what --- */

static bool is_gone(void *context, const char *dir, uint64_t version) {
    const struct judgement *j = context;
    return strcmp(dir, j->dir) == 0 && !is_pinned(&j->pins, version);
}

/* Of the directories that a version, a branch or a tag that comes or goes must change. */
static errint_t stamp_of(struct lfs_dataset *ds, const struct lfs_homes *homes, struct lfs_stamp *out,
                         struct lfs_error *err) {
    static const char *const refs[] = {"_refs/branches", "_refs/tags", "tree", "_lancefs/lines"};
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    *out = (struct lfs_stamp){0};
    if (!arena)
        return lfs_fail_nomem(err);
    errint_t result = 0;
    for (size_t i = 0; result == 0 && i < sizeof refs / sizeof *refs; i++)
        result = lfs_stamp_directory(ds, "", refs[i], out);
    for (size_t i = 0; result == 0 && i < homes->count; i++) {
        char *dir = lfs_strdup(arena, homes->list[i].dir), *slash = dir ? strrchr(dir, '/') : NULL;
        result = !dir ? -ENOMEM : lfs_stamp_directory(ds, dir, "_versions", out);
        if (result == 0)
            result = lfs_stamp_directory(ds, dir, "", out);
        if (slash)
            *slash = 0;
        if (result == 0 && slash)
            result = lfs_stamp_directory(ds, dir, "", out); /* a sibling's directory comes before its ref */
    }
    return result < 0 ? lfs_fail_errno(err, -result, "cannot look at the data set's directories") : 0;
}

static errint_t is_current(struct lfs_discards *d, const struct judgement *j, const char *dir, bool *current,
                           struct lfs_error *err) {
    struct lfs_stamp stamp;
    *current = false;
    if (!j || strcmp(j->dir, dir) != 0)
        return 0;
    LFS_TRY(stamp_of(d->ds, &j->reach.homes, &stamp, err));
    *current = stamp.hash == j->stamp.hash && lfs_stamp_is_settled(&stamp, j->made);
    return 0;
}

/* Fresh, or the last one where nothing has changed since. Owned by `d`. */
static errint_t judge(struct lfs_discards *d, const struct lfs_branch *branch, const atomic_bool *cancel,
                      const struct judgement **out, struct lfs_error *err) {
    bool current;
    LFS_TRY(is_current(d, d->judgement, branch->dir, &current, err));
    *out = d->judgement;
    if (current)
        return 0;
    LFS_CLEANUP(auto_free) struct judgement *j = calloc(1, sizeof *j);
    if (!j || !(j->arena = lfs_arena_new()) || !(j->dir = lfs_strdup(j->arena, branch->dir)))
        return lfs_fail_nomem(err);
    clock_gettime(CLOCK_REALTIME, &j->made);
    struct lfs_reach_options options = {.young_since = {0}, .cancel = cancel, .is_gone = is_gone, .context = j};
    LFS_TRY(read_pins(d->ds, branch, j->arena, &j->pins, err));
    LFS_TRY(lfs_reach_read(d->ds, &options, j->arena, &j->reach, err));
    LFS_TRY(stamp_of(d->ds, &j->reach.homes, &j->stamp, err));
    free_judgement(d->judgement);
    *out = d->judgement = LFS_STEAL_PTR(j);
    return 0;
}

/* Does this version name the file, wherever it takes it from? One that is gone names nothing. */
static int names(struct lfs_dataset *ds, const struct judgement *j, uint64_t version, uint64_t hash,
                 struct lfs_error *err) {
    struct lfs_version *v;
    errint_t result = lfs_dataset_version(ds, j->dir, version, &v, err);
    if (result == -ENOENT)
        return 0;
    LFS_TRY(result);
    struct lfs_references *refs;
    LFS_AUTO_FREE char *path = NULL;
    if (asprintf(&path, "%s%s_versions/%s", j->dir, *j->dir ? "/" : "", v->file_name) < 0)
        path = NULL;
    lfs_version_release(v);
    LFS_TRY(path ? lfs_references_get(ds, path, &refs, err) : lfs_fail_nomem(err));
    int found = 0;
    for (size_t i = 0; i < refs->n_groups && !found; i++)
        for (size_t k = 0; k < refs->groups[i].n_names && !found; k++)
            found = refs->groups[i].names[k] == hash;
    lfs_references_release(ds, refs);
    return found;
}

/* --- one file --- */

/* What a version names for it: a blob stands for its data file, an index's file for the index. */
static char *key_of(struct lfs_arena *arena, const char *name) {
    const char *first = strchr(name, '/'), *second = first ? strchr(first + 1, '/') : NULL;
    int length = second ? (int)(second - name) : (int)strlen(name);
    return lfs_sprintf(arena, "%.*s%s", length, name, second && strncmp(name, "data/", 5) == 0 ? ".lance" : "");
}

static errint_t deny(struct lfs_error *err, const char *branch, const char *name, uint64_t version, const char *why) {
    return lfs_fail(err, LFS_E_DENIED, "%s of %s stays: %s needs it (version %" PRIu64 ")", name, branch, why, version);
}

/* 0: it may go, 1: it stays. */
static int decide_manifest(const struct pins *pins, const char *branch, const char *name, uint64_t version,
                           struct lfs_error *err) {
    if (version >= pins->tip)
        return deny(err, branch, name, version, "the newest version");
    if (holds(pins->tagged, pins->n_tagged, version))
        return deny(err, branch, name, version, "a tag");
    return holds(pins->forked, pins->n_forked, version);
}

static int decide_file(struct lfs_discards *d, const struct lfs_branch *branch, const char *name, const char *key,
                       const atomic_bool *cancel, struct lfs_error *err) {
    const struct judgement *j;
    LFS_TRY(judge(d, branch, cancel, &j, err));
    if (lfs_reach_holder(&j->reach, branch->dir, key) == LFS_HELD_NOT)
        return 0;
    uint64_t hash = lfs_reference_name(key);
    int named = names(d->ds, j, j->pins.tip, hash, err);
    if (named)
        return named < 0 ? named : deny(err, branch->name, name, j->pins.tip, "the newest version");
    for (size_t i = 0; i < j->pins.n_tagged; i++) {
        named = names(d->ds, j, j->pins.tagged[i], hash, err);
        if (named)
            return named < 0 ? named : deny(err, branch->name, name, j->pins.tagged[i], "a tag");
    }
    return 1;
}

static int decide(struct lfs_discards *d, const struct lfs_branch *branch, const char *name, struct lfs_arena *arena,
                  const atomic_bool *cancel, struct lfs_error *err) {
    struct pins pins = {0};
    uint64_t version;
    enum lfs_naming naming;
    if (strncmp(name, "_versions/", 10) == 0) {
        if (!lfs_manifest_name_parse(name + 10, &version, &naming))
            return lfs_fail(err, LFS_E_DENIED, "%s is no version of %s", name, branch->name);
        LFS_TRY(read_pins(d->ds, branch, arena, &pins, err));
        return decide_manifest(&pins, branch->name, name, version, err);
    }
    char *key = key_of(arena, name);
    return key ? decide_file(d, branch, name, key, cancel, err) : lfs_fail_nomem(err);
}

static int discard(struct lfs_discards *d, const char *branch_name, const char *name, const atomic_bool *cancel,
                   struct lfs_error *err) {
    struct lfs_branch branch;
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    if (!arena)
        return lfs_fail_nomem(err);
    LFS_AUTO_FD lock = lfs_dataset_lock(d->ds, LFS_LOCK_ALONE, cancel, err);
    if (lock < 0)
        return lock;
    LFS_TRY(lfs_dataset_branch(d->ds, arena, branch_name, &branch, err));
    int stays = decide(d, &branch, name, arena, cancel, err);
    if (stays > 0)
        lfs_log(LFS_LOG_INFO, "%s of %s was not removed: another branch stands on it", name, branch_name);
    if (stays)
        return stays;
    char *path = lfs_join(arena, branch.dir, name), *slash = path ? strrchr(path, '/') : NULL;
    if (!slash)
        return lfs_fail_nomem(err);
    *slash = 0;
    LFS_AUTO_FD dir = lfs_open_beneath(lfs_dataset_root_fd(d->ds), path, O_PATH | O_DIRECTORY, 0);
    if (dir < 0 || unlinkat(dir, slash + 1, 0) < 0)
        return lfs_fail_errno(err, dir < 0 ? -dir : errno, "cannot remove %s of %s", name, branch_name);
    return 0;
}

int lfs_discard(struct lfs_discards *d, const char *branch, const char *name, const atomic_bool *cancel,
                struct lfs_error *err) {
    pthread_mutex_lock(&d->one);
    int result = discard(d, branch, name, cancel, err);
    pthread_mutex_unlock(&d->one);
    return result;
}
