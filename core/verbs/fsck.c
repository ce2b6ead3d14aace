/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/fsck.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "table/lock.h"
#include "util/cancel.h"
#include "util/cleanup.h"
#include "verbs/fsck_impl.h"
#include "verbs/names.h"
#include "verbs/sweep.h"

enum { STAGED_SECONDS = 86400 }; /* a half-made file of another program is left alone for so long */

/* --- findings --- */

__attribute__((format(printf, 3, 0))) static bool say(struct lfs_fsck *f, const char *what, const char *format,
                                                      va_list args) {
    char text[2048];
    vsnprintf(text, sizeof text, format, args);
    if (lfs_map_get(&f->said, text))
        return false;
    char *own = lfs_strdup(f->arena, text);
    if (own)
        lfs_map_put(&f->said, own, own);
    lfs_buf_printf(f->out, "%s: %s\n", what, text);
    return true;
}

void lfs_fsck_error(struct lfs_fsck *f, const char *format, ...) {
    va_list args;
    va_start(args, format);
    f->result->errors += say(f, "error", format, args);
    va_end(args);
}

void lfs_fsck_note(struct lfs_fsck *f, const char *format, ...) {
    va_list args;
    va_start(args, format);
    f->result->notes += say(f, "note", format, args);
    va_end(args);
}

void lfs_fsck_corrected(struct lfs_fsck *f, const char *format, ...) {
    va_list args;
    va_start(args, format);
    f->result->corrected += say(f, "corrected", format, args);
    va_end(args);
}

/* --- versions --- */

static bool is_manifest(const char *name) {
    size_t length = strlen(name);
    return length > 9 && strcmp(name + length - 9, ".manifest") == 0;
}

struct scheme {
    uint64_t newest;
    bool v1, v2;
};

static void look_at_name(const char *name, struct scheme *s) {
    uint64_t number;
    enum lfs_naming naming;
    if (!lfs_manifest_name_parse(name, &number, &naming))
        return;
    s->newest = number > s->newest ? number : s->newest;
    s->v1 |= naming == LFS_NAMING_V1;
    s->v2 |= naming == LFS_NAMING_V2;
}

static errint_t check_home(struct lfs_fsck *f, const struct lfs_home *home) {
    struct lfs_entry *entries;
    struct scheme s = {0};
    size_t n;
    char *versions = lfs_join(f->arena, home->dir, "_versions");
    if (!versions)
        return lfs_fail_nomem(f->err);
    LFS_TRY(lfs_list_dir(f->ds, versions, f->arena, &entries, &n, f->err));
    for (size_t i = 0; i < n; i++)
        look_at_name(entries[i].name, &s);
    if (s.v1 && s.v2)
        lfs_fsck_error(f,
                       "%s holds manifests of both naming schemes: no engine opens it; move those of one scheme away",
                       versions);
    if (home->kind == LFS_HOME_BRANCH && !s.newest)
        lfs_fsck_error(f, "%s holds no version", versions);
    for (size_t i = 0; i < n; i++) {
        uint64_t number = 0;
        enum lfs_naming naming;
        if (lfs_is_cancelled(f->options->cancel))
            return lfs_fail(f->err, LFS_E_INTERRUPTED, "interrupted");
        if (!is_manifest(entries[i].name))
            continue;
        bool numbered = lfs_manifest_name_parse(entries[i].name, &number, &naming);
        LFS_TRY(lfs_fsck_version(f, home, entries[i].name, numbered && number == s.newest));
        lfs_progress_step(f->options->progress);
    }
    return 0;
}

/* --- what nothing holds --- */

static void free_reach(struct lfs_reach *reach) { lfs_reach_free(reach); }

static void name_orphan(void *context, enum lfs_swept_kind kind, const char *path) {
    struct lfs_fsck *f = context;
    if (f->options->verbose)
        lfs_buf_printf(f->out, "%s: %s\n", kind == LFS_SWEPT_STAGED ? "half-made" : "orphan", path);
}

static errint_t drop_staged(struct lfs_fsck *f, struct lfs_sweep *s) {
    s->remove = s->only_staged = true;
    clock_gettime(CLOCK_REALTIME, &s->before);
    s->before.tv_sec -= STAGED_SECONDS;
    memset(s->kinds, 0, sizeof s->kinds);
    LFS_TRY(lfs_sweep_run(s, f->err));
    uint64_t n = s->kinds[LFS_SWEPT_STAGED].files + s->kinds[LFS_SWEPT_LINES].files;
    if (n)
        lfs_fsck_corrected(f, "%" PRIu64 " half-made files were removed", n);
    return 0;
}

static errint_t count_orphans(struct lfs_fsck *f) {
    struct lfs_error why;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    struct lfs_reach_options options = {.young_since = now, .progress = f->options->progress, .cancel = f->options->cancel};
    LFS_CLEANUP(free_reach) struct lfs_reach reach = {0};
    errint_t result = lfs_reach_read(f->ds, &options, f->arena, &reach, &why);
    if (result == -EINTR)
        return lfs_fail(f->err, LFS_E_INTERRUPTED, "interrupted");
    if (result < 0) {
        lfs_buf_printf(f->out, "orphans: not counted while that stands (%s)\n", why.message);
        return 0;
    }
    struct lfs_sweep s = {.ds = f->ds, .reach = &reach, .arena = f->arena, .before = {INT64_MAX, 0}};
    s.cancel = f->options->cancel;
    s.found = name_orphan;
    s.context = f;
    LFS_TRY(lfs_sweep_run(&s, f->err));
    uint64_t files = 0, bytes = 0;
    for (size_t i = 0; i < LFS_SWEPT_KINDS; i++) {
        files += i == LFS_SWEPT_STAGED ? 0 : s.kinds[i].files;
        bytes += i == LFS_SWEPT_STAGED ? 0 : s.kinds[i].bytes;
    }
    lfs_buf_printf(f->out, "orphans: %" PRIu64 " files, %" PRIu64 " bytes%s\n", files, bytes,
                   files ? " (.gc removes them)" : "");
    lfs_buf_printf(f->out, "half-made: %" PRIu64 " files\n", s.kinds[LFS_SWEPT_STAGED].files);
    return f->options->repair ? drop_staged(f, &s) : 0;
}

/* --- everything --- */

/* Finish, or take back, what a stop in the middle of a change of names left; what cannot be is found again below. */
static void repair_names(struct lfs_fsck *f) {
    static const struct lfs_verb_settings settings = {.sync = true};
    struct lfs_names names = {f->ds, &settings, f->options->cancel};
    struct lfs_error why;
    unsigned n = 0;
    if (lfs_names_repair(&names, &n, &why) < 0)
        lfs_fsck_error(f, "a change of branch names that stopped half-way cannot be finished: %s", why.message);
    if (n)
        lfs_fsck_corrected(f, "%u changes of branch names that had stopped half-way were finished or taken back", n);
}

static errint_t check(struct lfs_fsck *f) {
    lfs_progress_stage(f->options->progress, "checking versions", 0);
    LFS_TRY(lfs_homes_find(f->ds, f->arena, &f->homes, f->err));
    LFS_TRY(lfs_fsck_refs(f));
    for (size_t i = 0; i < f->homes.count; i++)
        LFS_TRY(check_home(f, &f->homes.list[i]));
    if (f->moved.count && f->options->repair && f->options->relocate)
        LFS_TRY(lfs_fsck_relocate(f));
    else
        for (size_t i = 0; i < f->moved.count; i++)
            lfs_fsck_error(
                f,
                "the base path %s does not lead to this data set any more, where its files are: other readers "
                "look for them there; `fsck.lancefs -y --relocate %s` rewrites it",
                f->moved.entries[i].key, lfs_dataset_path(f->ds));
    return count_orphans(f);
}

errint_t lfs_fsck_run(struct lfs_dataset *ds, const struct lfs_fsck_options *options, struct lfs_buf *out,
                      struct lfs_fsck_result *result, struct lfs_error *err) {
    struct lfs_error own;
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    struct lfs_fsck f = {
        .ds = ds, .options = options, .arena = arena, .out = out, .result = result, .err = err ? err : &own};
    *result = (struct lfs_fsck_result){0};
    if (!arena)
        return lfs_fail_nomem(err);
    lfs_map_init(&f.files, arena);
    lfs_map_init(&f.said, arena);
    lfs_map_init(&f.moved, arena);
    if (options->repair)
        repair_names(&f);
    LFS_AUTO_FD lock = lfs_dataset_lock(ds, options->repair ? LFS_LOCK_ALONE : LFS_LOCK_SHARED, options->cancel, err);
    if (lock < 0)
        return lock;
    LFS_TRY(check(&f));
    lfs_buf_printf(out, "checked: %" PRIu64 " versions of %zu directories, %zu files\n", f.n_versions, f.homes.count,
                   f.files.count);
    lfs_buf_printf(out, "result: %s\n", result->errors ? "errors" : result->corrected ? "corrected" : "clean");
    if (result->errors || result->corrected)
        lfs_buf_printf(out, "errors: %" PRIu64 "\ncorrected: %" PRIu64 "\n", result->errors, result->corrected);
    return lfs_buf_check(out, err);
}
