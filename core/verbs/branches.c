/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/branches.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "store/file.h"
#include "table/location.h"
#include "table/reach.h"
#include "util/cleanup.h"

/* --- bytes that one branch alone holds --- */

struct seen {
    size_t holder;
    uint64_t size;
};

struct count {
    struct lfs_dataset *ds;
    struct lfs_arena *arena;
    const struct lfs_reach *reach;
    struct lfs_map files; /* "<device>:<inode>" -> struct seen */
    struct lfs_error *err;
};

static size_t both(size_t a, size_t b) {
    if (a == b || a == LFS_HELD_NOT || b == LFS_HELD_NOT)
        return a > b ? a : b;
    return a == LFS_HELD_BY_LINE ? b : b == LFS_HELD_BY_LINE ? a : LFS_HELD_BY_SEVERAL;
}

static errint_t count_file(struct count *c, const char *path, size_t holder) {
    struct stat st;
    LFS_AUTO_FD fd = lfs_open_beneath(lfs_dataset_root_fd(c->ds), path, O_PATH | O_NOFOLLOW, 0);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return 0;
    char *key = lfs_sprintf(c->arena, "%llu:%llu", (unsigned long long)st.st_dev, (unsigned long long)st.st_ino);
    struct seen *seen = key ? lfs_map_get(&c->files, key) : NULL;
    if (!seen) {
        seen = LFS_NEW(c->arena, struct seen);
        if (!key || !seen || !lfs_map_put(&c->files, key, seen))
            return lfs_fail_nomem(c->err);
        seen->size = (uint64_t)st.st_size;
    }
    seen->holder = both(seen->holder, holder);
    return 0;
}

/* The files of an index, or the blobs of a data file: they go with what names them. */
static errint_t count_dir(struct count *c, const char *dir, size_t holder) {
    struct lfs_entry *entries;
    size_t n;
    LFS_TRY(lfs_list_dir(c->ds, dir, c->arena, &entries, &n, c->err));
    for (size_t i = 0; i < n; i++) {
        char *path = entries[i].is_file ? lfs_join(c->arena, dir, entries[i].name) : NULL;
        if (entries[i].is_file)
            LFS_TRY(path ? count_file(c, path, holder) : lfs_fail_nomem(c->err));
    }
    return 0;
}

static errint_t count_part(struct count *c, const char *home, const char *part) {
    struct lfs_entry *entries;
    size_t n;
    char *dir = lfs_join(c->arena, home, part);
    if (!dir)
        return lfs_fail_nomem(c->err);
    LFS_TRY(lfs_list_dir(c->ds, dir, c->arena, &entries, &n, c->err));
    for (size_t i = 0; i < n; i++) {
        bool is_blobs = !entries[i].is_file && strcmp(part, "data") == 0;
        char *name = lfs_sprintf(c->arena, "%s/%s%s", part, entries[i].name, is_blobs ? ".lance" : "");
        char *path = lfs_join(c->arena, dir, entries[i].name);
        if (!name || !path)
            return lfs_fail_nomem(c->err);
        size_t holder = lfs_reach_holder(c->reach, home, name);
        if (holder != LFS_HELD_NOT)
            LFS_TRY(entries[i].is_file ? count_file(c, path, holder) : count_dir(c, path, holder));
    }
    return 0;
}

/* bytes[i]: of home i. */
static errint_t count_bytes(struct count *c, uint64_t *bytes) {
    lfs_map_init(&c->files, c->arena);
    for (size_t i = 0; i < c->reach->homes.count; i++)
        for (size_t k = 0; k < LFS_FILE_KINDS; k++)
            LFS_TRY(count_part(c, c->reach->homes.list[i].dir, lfs_kind_directory[k]));
    for (size_t i = 0; i < c->files.count; i++) {
        const struct seen *seen = c->files.entries[i].value;
        if (seen->holder >= LFS_HELD_BY_HOME)
            bytes[seen->holder - LFS_HELD_BY_HOME] += seen->size;
    }
    return 0;
}

/* --- the table --- */

struct row {
    bool has_tip, has_vector;
    uint64_t tip;
    struct lfs_vector vector;
};

static errint_t read_row(struct lfs_dataset *ds, const struct lfs_branch *b, struct lfs_arena *arena, struct row *out,
                         struct lfs_error *err) {
    struct lfs_version *version;
    enum lfs_naming naming;
    *out = (struct row){0};
    lfs_vector_init(&out->vector, arena);
    if (lfs_dataset_tip(ds, b->dir, &out->tip, &naming, NULL) < 0)
        return 0;
    errint_t result = lfs_dataset_version(ds, b->dir, out->tip, &version, err);
    if (result == -ENOENT)
        return 0; /* deleted just now */
    LFS_TRY(result);
    out->has_tip = true;
    out->has_vector = lfs_state_vector(b, version, &out->vector, NULL) == 0;
    lfs_version_release(version);
    return 0;
}

static const struct row *row_of(const struct lfs_lines *lines, const struct row *rows, const char *line) {
    for (size_t i = 0; line && i < lines->n_branches; i++)
        if (strcmp(lines->branches[i].uuid, line) == 0)
            return &rows[i];
    return NULL;
}

static void put_row(const struct lfs_lines *lines, const struct row *rows, size_t i, uint64_t bytes,
                    struct lfs_buf *out) {
    const struct lfs_branch *b = &lines->branches[i];
    const struct row *parent = row_of(lines, rows, b->parent_uuid);
    lfs_buf_printf(out, "%s\t%" PRIu64 "\t%s\t", b->name, rows[i].tip, b->parent_name ? b->parent_name : "-");
    if (!parent || !parent->has_vector || !rows[i].has_vector)
        lfs_buf_printf(out, "-\t-\t-");
    else
        lfs_buf_printf(out, "%" PRIu64 "\t%" PRIu64 "\t%s", lfs_lines_ahead(lines, &rows[i].vector, &parent->vector),
                       lfs_lines_ahead(lines, &parent->vector, &rows[i].vector),
                       lfs_vector_within(&rows[i].vector, &parent->vector) ? "yes" : "no");
    lfs_buf_printf(out, "\t%" PRIu64 "\n", bytes);
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct lfs_branch *)a)->name, ((const struct lfs_branch *)b)->name);
}

static errint_t put_table(struct lfs_dataset *ds, const struct lfs_reach *reach, const uint64_t *bytes,
                          struct lfs_arena *arena, struct lfs_buf *out, struct lfs_error *err) {
    struct lfs_lines lines = reach->homes.lines;
    struct row *rows = LFS_NEW_ARRAY(arena, struct row, lines.n_branches);
    lines.branches = lfs_memdup(arena, lines.branches, lines.n_branches * sizeof *lines.branches);
    if (!rows || !lines.branches)
        return lfs_fail_nomem(err);
    qsort(lines.branches, lines.n_branches, sizeof *lines.branches, by_name);
    for (size_t i = 0; i < lines.n_branches; i++)
        LFS_TRY(read_row(ds, &lines.branches[i], arena, &rows[i], err));
    lfs_buf_puts(out, "# branch\ttip\tparent\tahead\tbehind\tmerged\tbytes\n");
    for (size_t i = 0; i < lines.n_branches; i++) {
        uint64_t own = 0;
        for (size_t k = 0; k < reach->homes.count; k++)
            if (strcmp(reach->homes.list[k].dir, lines.branches[i].dir) == 0)
                own = bytes[k];
        if (rows[i].has_tip)
            put_row(&lines, rows, i, own, out);
    }
    return lfs_buf_check(out, err);
}

static void free_reach(struct lfs_reach *reach) { lfs_reach_free(reach); }

errint_t lfs_branches_table(struct lfs_dataset *ds, const atomic_bool *cancel, struct lfs_buf *out,
                            struct lfs_error *err) {
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    LFS_CLEANUP(free_reach) struct lfs_reach reach = {0};
    struct lfs_reach_options options = {.cancel = cancel};
    clock_gettime(CLOCK_REALTIME, &options.young_since);
    if (!arena)
        return lfs_fail_nomem(err);
    LFS_TRY(lfs_reach_read(ds, &options, arena, &reach, err));
    struct count count = {.ds = ds, .arena = arena, .reach = &reach, .err = err};
    uint64_t *bytes = LFS_NEW_ARRAY(arena, uint64_t, reach.homes.count + 1);
    if (!bytes)
        return lfs_fail_nomem(err);
    LFS_TRY(count_bytes(&count, bytes));
    return put_table(ds, &reach, bytes, arena, out, err);
}
