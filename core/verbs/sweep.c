/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/sweep.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "store/file.h"
#include "util/cancel.h"
#include "util/cleanup.h"

/* --- names --- */

static bool ends_in(const char *name, const char *end) {
    size_t n = strlen(name), k = strlen(end);
    return n > k && strcmp(name + n - k, end) == 0;
}

/* Names that writers use until a file is whole: ours and stock's `.tmp...`, stock's `<final>.manifest#1` and
 * `<name>.json.tmp.<hex>` (lance-format sections 1.1, 2.1, 7). */
static bool is_staged(const char *name) {
    return strncmp(name, ".tmp", 4) == 0 || strstr(name, ".manifest#") || strstr(name, ".json.tmp.");
}

/* --- one file --- */

static bool is_after(struct timespec a, struct timespec b) {
    return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec > b.tv_nsec;
}

/* What was met of a file with several names; NULL when that is nothing yet (and `add` is false), or memory is short. */
static uint64_t *met(struct lfs_sweep *s, const struct stat *st, bool add) {
    char *key = lfs_sprintf(s->arena, "%llu:%llu", (unsigned long long)st->st_dev, (unsigned long long)st->st_ino);
    uint64_t *count = key ? lfs_map_get(&s->seen, key) : NULL;
    if (count || !key || !add)
        return count;
    count = LFS_NEW(s->arena, uint64_t);
    return count && lfs_map_put(&s->seen, key, count) ? count : NULL;
}

/* A hard link keeps the time of the bytes; the time of the last change of status tells when the name came. But also when
 * another name went: of a file that this very run took a name from, that time says nothing. */
static bool is_young(struct lfs_sweep *s, const struct stat *st) {
    return is_after(st->st_mtim, s->before) || (is_after(st->st_ctim, s->before) && !(s->remove && met(s, st, false)));
}

/* Is this the last name of the file? When nothing is removed, the names met before count as gone. */
static errint_t is_last_name(struct lfs_sweep *s, const struct stat *st, bool *last, struct lfs_error *err) {
    *last = st->st_nlink <= 1;
    if (*last)
        return 0;
    uint64_t *count = met(s, st, true);
    if (!count)
        return lfs_fail_nomem(err);
    *last = ++*count >= st->st_nlink && !s->remove;
    return 0;
}

static errint_t take(struct lfs_sweep *s, int dir, const char *directory, const char *name, enum lfs_swept_kind kind,
                     const struct stat *st, struct lfs_error *err) {
    bool last;
    if (lfs_is_cancelled(s->cancel))
        return lfs_fail(err, LFS_E_INTERRUPTED, "interrupted: what was removed until then was held by nothing");
    LFS_TRY(is_last_name(s, st, &last, err));
    if (s->remove && unlinkat(dir, name, 0) < 0)
        return errno == ENOENT ? 0 : lfs_fail_errno(err, errno, "cannot remove %s/%s", directory, name);
    s->kinds[kind].files++;
    s->kinds[kind].bytes += last ? (uint64_t)st->st_size : 0;
    char *path = s->found ? lfs_join(s->arena, directory, name) : NULL;
    if (path)
        s->found(s->context, kind, path);
    lfs_progress_step(s->progress);
    return 0;
}

/* --- a directory of files --- */

/* What a directory of a home holds: the names that end so are held or go; others are nobody's business. */
struct part {
    const char *name;
    const char *ends[2];
    enum lfs_swept_kind kind;
};

static const struct part parts[] = {
    {"_versions", {NULL, NULL}, LFS_SWEPT_STAGED}, /* manifests go first, their deletion files after them */
    {"data", {".lance", NULL}, LFS_SWEPT_DATA},
    {"_deletions", {".arrow", ".bin"}, LFS_SWEPT_DELETIONS},
    {"_transactions", {".txn", NULL}, LFS_SWEPT_TRANSACTIONS},
};

static bool is_part_file(const struct part *part, bool line, const char *name) {
    if (line && strcmp(part->name, "_versions") == 0)
        return ends_in(name, ".manifest");
    return (part->ends[0] && ends_in(name, part->ends[0])) || (part->ends[1] && ends_in(name, part->ends[1]));
}

static int open_part(struct lfs_sweep *s, const char *directory, struct lfs_error *err) {
    int dir = lfs_open_beneath(lfs_dataset_root_fd(s->ds), directory, O_PATH | O_DIRECTORY, 0);
    return dir >= 0 || dir == -ENOENT || dir == -ENOTDIR ? dir : lfs_fail_errno(err, -dir, "cannot open %s", directory);
}

static errint_t sweep_file(struct lfs_sweep *s, int dir, const char *directory, const char *name,
                           enum lfs_swept_kind kind, struct lfs_error *err) {
    struct stat st;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : lfs_fail_errno(err, errno, "cannot stat %s/%s", directory, name);
    if (!S_ISREG(st.st_mode))
        return 0;
    bool ended = s->only_staged && strncmp(name, ".tmp-lancefs-", 13) == 0;
    if (ended || !is_young(s, &st))
        return take(s, dir, directory, name, kind, &st, err);
    s->n_young++;
    return 0;
}

static errint_t sweep_part(struct lfs_sweep *s, const struct lfs_home *home, const struct part *part,
                           struct lfs_error *err) {
    struct lfs_entry *entries;
    size_t n;
    bool line = home->kind == LFS_HOME_LINE;
    char *directory = lfs_join(s->arena, home->dir, part->name);
    if (!directory)
        return lfs_fail_nomem(err);
    LFS_AUTO_FD dir = open_part(s, directory, err);
    if (dir < 0)
        return dir == -ENOENT || dir == -ENOTDIR ? 0 : dir;
    LFS_TRY(lfs_list_dir(s->ds, directory, s->arena, &entries, &n, err));
    for (size_t i = 0; i < n; i++) {
        bool staged = is_staged(entries[i].name);
        if (!entries[i].is_file || !(staged || is_part_file(part, line, entries[i].name)))
            continue;
        char *name = lfs_join(s->arena, part->name, entries[i].name);
        if (!name)
            return lfs_fail_nomem(err);
        if (!staged && (s->only_staged || lfs_reach_holder(s->reach, home->dir, name) != LFS_HELD_NOT))
            continue;
        LFS_TRY(sweep_file(s, dir, directory, entries[i].name,
                           line     ? LFS_SWEPT_LINES
                           : staged ? LFS_SWEPT_STAGED
                                    : part->kind,
                           err));
    }
    return 0;
}

/* --- a directory that goes as a whole: an index, the blobs of a data file --- */

static errint_t sweep_tree(struct lfs_sweep *s, const char *parent, const char *name, enum lfs_swept_kind kind,
                           struct lfs_error *err) {
    struct lfs_entry *entries;
    struct stat st;
    size_t n;
    char *directory = lfs_join(s->arena, parent, name);
    if (!directory)
        return lfs_fail_nomem(err);
    LFS_AUTO_FD above = open_part(s, parent, err), dir = open_part(s, directory, err);
    if (above < 0 || dir < 0)
        return 0;
    LFS_TRY(lfs_list_dir(s->ds, directory, s->arena, &entries, &n, err));
    struct stat *sts = LFS_NEW_ARRAY(s->arena, struct stat, n + 1);
    if (!sts)
        return lfs_fail_nomem(err);
    for (size_t i = 0; i < n; i++) { /* all of it or nothing: a writer that fills it makes it young */
        if (fstatat(dir, entries[i].name, &sts[i], AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(sts[i].st_mode))
            return 0;
        if (is_young(s, &sts[i])) {
            s->n_young += n;
            return 0;
        }
    }
    if (n == 0 && (fstatat(above, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || is_young(s, &st)))
        return 0;
    for (size_t i = 0; i < n; i++)
        LFS_TRY(take(s, dir, directory, entries[i].name, kind, &sts[i], err));
    if (s->remove)
        unlinkat(above, name, AT_REMOVEDIR); /* something new in it keeps it */
    return 0;
}

static errint_t sweep_trees(struct lfs_sweep *s, const struct lfs_home *home, const char *part,
                            bool (*is_one)(const char *), const char *held_end, enum lfs_swept_kind kind,
                            struct lfs_error *err) {
    struct lfs_entry *entries;
    size_t n;
    char *directory = lfs_join(s->arena, home->dir, part);
    if (!directory)
        return lfs_fail_nomem(err);
    LFS_TRY(lfs_list_dir(s->ds, directory, s->arena, &entries, &n, err));
    for (size_t i = 0; i < n; i++) {
        if (!entries[i].may_be_dir || !is_one(entries[i].name))
            continue;
        char *name = lfs_sprintf(s->arena, "%s/%s%s", part, entries[i].name, held_end);
        if (!name)
            return lfs_fail_nomem(err);
        if (lfs_reach_holder(s->reach, home->dir, name) == LFS_HELD_NOT)
            LFS_TRY(
                sweep_tree(s, directory, entries[i].name, home->kind == LFS_HOME_LINE ? LFS_SWEPT_LINES : kind, err));
    }
    return 0;
}

/* --- line storage that is empty now --- */

static void remove_empty(struct lfs_sweep *s, const char *parent, const char *name) {
    struct lfs_error why;
    LFS_AUTO_FD dir = open_part(s, parent, &why);
    if (dir >= 0)
        unlinkat(dir, name, AT_REMOVEDIR); /* refused while something is in it */
}

/* The kept ref goes last: while some vector holds the line, it tells where the line comes from. */
static errint_t end_line(struct lfs_sweep *s, const struct lfs_home *home, struct lfs_error *err) {
    static const char *const rest[] = {"branch.json", "_versions/latest_version_hint.json"};
    static const char *const directories[] = {"data", "_deletions", "_transactions", "_indices", "_versions"};
    struct lfs_entry *entries;
    size_t n;
    if (lfs_map_get(&s->reach->lines, home->line))
        return 0;
    for (size_t i = 0; i < 4; i++) { /* not _versions, whose hint goes with the last manifest */
        char *directory = lfs_join(s->arena, home->dir, directories[i]);
        LFS_TRY(directory ? lfs_list_dir(s->ds, directory, s->arena, &entries, &n, err) : lfs_fail_nomem(err));
        if (n)
            return 0;
    }
    for (size_t i = 0; i < 2; i++) {
        char *path = lfs_join(s->arena, home->dir, rest[i]), *slash = path ? strrchr(path, '/') : NULL;
        if (!path)
            return lfs_fail_nomem(err);
        *slash = 0;
        LFS_AUTO_FD dir = open_part(s, path, err);
        if (dir >= 0)
            LFS_TRY(sweep_file(s, dir, path, slash + 1, LFS_SWEPT_LINES, err));
    }
    if (!s->remove)
        return 0;
    for (size_t i = 0; i < 5; i++)
        remove_empty(s, home->dir, directories[i]);
    remove_empty(s, "_lancefs/lines", home->line);
    return 0;
}

/* --- everything --- */

static errint_t sweep_home(struct lfs_sweep *s, const struct lfs_home *home, struct lfs_error *err) {
    if (home->kind == LFS_HOME_OTHER)
        return 0; /* a command's own: it, or the next fsck, settles it */
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        LFS_TRY(sweep_part(s, home, &parts[i], err));
    if (s->only_staged)
        return 0;
    LFS_TRY(sweep_trees(s, home, "data", lfs_is_data_stem, ".lance", LFS_SWEPT_DATA, err));
    LFS_TRY(sweep_trees(s, home, "_indices", lfs_is_uuid, "", LFS_SWEPT_INDEXES, err));
    return home->kind == LFS_HOME_LINE ? end_line(s, home, err) : 0;
}

/* Half-made files where no home is. */
static errint_t sweep_staged(struct lfs_sweep *s, const char *directory, struct lfs_error *err) {
    struct lfs_entry *entries;
    size_t n;
    LFS_AUTO_FD dir = open_part(s, directory, err);
    if (dir < 0)
        return dir == -ENOENT || dir == -ENOTDIR ? 0 : dir;
    LFS_TRY(lfs_list_dir(s->ds, directory, s->arena, &entries, &n, err));
    for (size_t i = 0; i < n; i++)
        if (entries[i].is_file && is_staged(entries[i].name))
            LFS_TRY(sweep_file(s, dir, directory, entries[i].name, LFS_SWEPT_STAGED, err));
    return 0;
}

errint_t lfs_sweep_run(struct lfs_sweep *s, struct lfs_error *err) {
    static const char *const others[] = {"_refs/branches", "_refs/tags", "_lancefs"};
    lfs_map_init(&s->seen, s->arena);
    lfs_progress_stage(s->progress, s->remove ? "removing files" : "counting files", 0);
    for (size_t i = 0; i < s->reach->homes.count; i++)
        LFS_TRY(sweep_home(s, &s->reach->homes.list[i], err));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        LFS_TRY(sweep_staged(s, others[i], err));
    for (size_t i = 0; i < s->reach->homes.count; i++) /* lfs_write_new stages a kept ref beside it */
        if (s->reach->homes.list[i].kind == LFS_HOME_LINE)
            LFS_TRY(sweep_staged(s, s->reach->homes.list[i].dir, err));
    return 0;
}
