/* SPDX-License-Identifier: Apache-2.0 */
#include "report/commits.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "merge/match.h"
#include "report/facts.h"
#include "table/location.h"
#include "util/map.h"

/* --- which versions there are --- */

/* One line: its branch, living or not, and the versions that its directory and its storage hold, ascending. */
struct line {
    struct lfs_branch branch;
    bool known; /* `branch` is good */
    uint64_t *numbers;
    size_t count;
};

void lfs_report_history_init(struct lfs_report_history *history, struct lfs_report *report) {
    history->report = report;
    lfs_map_init(&history->lines, report->arena);
}

static int by_number(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static struct line *line_of(struct lfs_report_history *h, const char *name) {
    struct lfs_report *report = h->report;
    struct line *line = lfs_map_get(&h->lines, name);
    if (line)
        return line;
    const struct lfs_branch *living = lfs_lines_branch(&report->lines, name);
    struct lfs_versions own = {0}, kept = {0};
    char *storage = lfs_line_storage_dir(report->arena, name);
    line = LFS_NEW(report->arena, struct line);
    if (!line || !storage)
        return NULL;
    line->known = lfs_lines_any_branch(&report->lines, name, &line->branch, NULL) == 0;
    if (living && lfs_dataset_versions(report->dataset, living->dir, report->arena, &own, NULL) < 0)
        own.count = 0;
    if (lfs_dataset_versions(report->dataset, storage, report->arena, &kept, NULL) < 0)
        kept.count = 0;
    line->numbers = LFS_NEW_ARRAY(report->arena, uint64_t, own.count + kept.count + 1);
    if (!line->numbers)
        return NULL;
    if (own.count)
        memcpy(line->numbers, own.numbers, own.count * sizeof *own.numbers);
    if (kept.count)
        memcpy(line->numbers + own.count, kept.numbers, kept.count * sizeof *kept.numbers);
    line->count = own.count + kept.count;
    qsort(line->numbers, line->count, sizeof *line->numbers, by_number);
    return lfs_map_put(&h->lines, name, line) ? line : NULL;
}

/* The highest number there is at most `number`; 0 when there is none. */
static uint64_t newest_to(const struct line *line, uint64_t number) {
    size_t low = 0, high = line->count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (line->numbers[mid] <= number)
            low = mid + 1;
        else
            high = mid;
    }
    return low ? line->numbers[low - 1] : 0;
}

/* --- what a version changed --- */

static int by_id(const void *a, const void *b) {
    uint64_t x = (*(LanceFragment *const *)a)->id, y = (*(LanceFragment *const *)b)->id;
    return x < y ? -1 : x > y;
}

static LanceFragment **sorted(struct lfs_arena *arena, const LanceManifest *m) {
    LanceFragment **list = LFS_NEW_ARRAY(arena, LanceFragment *, m->n_fragments + 1);
    if (!list)
        return NULL;
    if (m->n_fragments)
        memcpy(list, m->fragments, m->n_fragments * sizeof *list);
    qsort(list, m->n_fragments, sizeof *list, by_id);
    return list;
}

static bool share_a_file(const LanceFragment *a, const LanceFragment *b) {
    for (size_t i = 0; i < a->n_files; i++)
        for (size_t k = 0; k < b->n_files; k++)
            if (a->files[i]->path && b->files[k]->path && strcmp(a->files[i]->path, b->files[k]->path) == 0)
                return true;
    return false;
}

static void count_one(struct lfs_report_commit *c, const LanceFragment *before, const LanceFragment *after) {
    uint64_t was = before ? lfs_report_live(before) : 0, is = after ? lfs_report_live(after) : 0;
    if (before && after && !share_a_file(before, after)) { /* one number for two things: an overwrite begins anew */
        count_one(c, before, NULL);
        count_one(c, NULL, after);
        return;
    }
    c->fragments_added += !before;
    c->fragments_removed += !after;
    c->fragments_changed +=
        before && after && !(lfs_match_same_files(before, after) && lfs_match_same_deletions(before, after));
    c->rows_added += is > was ? is - was : 0;
    c->rows_removed += was > is ? was - is : 0;
}

static errint_t count_changes(struct lfs_report_commit *c, const LanceManifest *before, const LanceManifest *after,
                              struct lfs_error *err) {
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    size_t n = before ? before->n_fragments : 0, i = 0, k = 0;
    LanceFragment **old = arena && before ? sorted(arena, before) : NULL, **new = arena ? sorted(arena, after) : NULL;
    if (!new || (before && !old))
        return lfs_fail_nomem(err);
    while (i < n || k < after->n_fragments) {
        bool has_old = i < n && (k == after->n_fragments || old[i]->id <= new[k]->id);
        bool has_new = k < after->n_fragments && (i == n || new[k]->id <= old[i]->id);
        count_one(c, has_old ? old[i] : NULL, has_new ? new[k] : NULL);
        i += has_old;
        k += has_new;
    }
    c->counted = true;
    return 0;
}

/* --- what it says of itself --- */

static const char *lance_word(const LanceTransaction *t) {
    if (!t)
        return NULL;
    for (size_t i = 0; i < t->base.descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &t->base.descriptor->fields[i];
        if (f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF && f->id == (uint32_t)t->operation_case)
            return f->name;
    }
    return NULL;
}

/* What the version says, whoever asks: this much is kept. */
static errint_t read_facts(struct lfs_arena *arena, const struct lfs_version *v, struct lfs_report_commit *c,
                           struct lfs_error *err) {
    const LanceTransaction *t = v->manifest.transaction;
    const char *operation = lfs_transaction_property(t, LFS_PROPERTY_OPERATION),
               *source = lfs_transaction_property(t, LFS_PROPERTY_SOURCE_LINE),
               *number = lfs_transaction_property(t, LFS_PROPERTY_SOURCE_VERSION),
               *message = lfs_transaction_property(t, "__lance_commit_message"),
               *from = operation ? lfs_transaction_property(t, "lancefs.source") : NULL;
    const char *word = operation ? operation : lance_word(t);
    bool merged = operation && source && number && strcmp(operation, "merge") == 0;
    /* what a manifest owns lives no longer than the cache wants */
    c->operation = word ? lfs_strdup(arena, word) : NULL;
    c->message = message ? lfs_strdup(arena, message) : NULL;
    c->from = from ? lfs_strdup(arena, from) : NULL;
    c->transaction = t && t->uuid ? lfs_strdup(arena, t->uuid) : NULL;
    c->merged_line = merged ? lfs_strdup(arena, source) : NULL;
    c->merged = merged ? strtoull(number, NULL, 10) : 0;
    c->time = lfs_report_time(v);
    bool whole = !word == !c->operation && !message == !c->message && !from == !c->from && merged == !!c->merged_line;
    return whole ? 0 : lfs_fail_nomem(err);
}

/* Where it stands among the others, by the branches of today. */
static errint_t place(struct lfs_report_history *h, const struct line *line, struct lfs_report_commit *c,
                      struct lfs_error *err) {
    const struct lfs_branch *b = &line->branch;
    if (!line->known || !b->n_forks || c->number != lfs_branch_first(b)) {
        c->before_line = c->number > 1 ? c->line : NULL;
        c->before = c->number - 1;
        return 0;
    }
    c->before_line = b->n_forks > 1 ? b->forks[b->n_forks - 2].uuid : "main";
    c->before = c->number;
    c->operation = "branch";
    const struct lfs_branch *parent = lfs_lines_branch(&h->report->lines, c->before_line);
    const char *name = parent ? parent->name : b->parent_name ? b->parent_name : c->before_line;
    c->from = lfs_sprintf(h->report->arena, "%s@%" PRIu64, name, c->number);
    return c->from ? 0 : lfs_fail_nomem(err);
}

/* A run of versions that nobody has any more. */
static void tell_gone(const struct line *line, struct lfs_report_commit *c) {
    uint64_t there = newest_to(line, c->number), lowest = line->known ? lfs_branch_first(&line->branch) : 1;
    c->gone = true;
    c->operation = "gone";
    c->first = there + 1 > lowest ? there + 1 : lowest;
    c->first = c->first < c->number ? c->first : c->number;
    if (there >= lowest && there) {
        c->before_line = c->line;
        c->before = there;
    } else if (line->known && line->branch.n_forks) {
        c->before_line = line->branch.n_forks > 1 ? line->branch.forks[line->branch.n_forks - 2].uuid : "main";
        c->before = lowest;
    }
}

/* The manifest's file, for telling whether it is still the one that was read. */
static bool stat_version(const struct lfs_report *report, const char *dir, uint64_t number, struct stat *out) {
    static const enum lfs_naming namings[] = {LFS_NAMING_V2, LFS_NAMING_V1};
    char name[LFS_MANIFEST_NAME_SIZE], path[PATH_MAX];
    for (size_t i = 0; i < 2; i++) {
        lfs_manifest_name(namings[i], number, name);
        int n = snprintf(path, sizeof path, "%s%s_versions/%s", dir, *dir ? "/" : "", name);
        LFS_AUTO_FD fd =
            n > 0 && (size_t)n < sizeof path ? lfs_dataset_open_beneath(report->dataset, path, O_PATH) : -1;
        if (fd >= 0)
            return fstat(fd, out) == 0;
    }
    return false;
}

/* In the branch's directory, else in its line's storage: as lfs_lines_version finds it. */
static bool stat_commit(const struct lfs_report *report, const char *line, uint64_t number, struct stat *out) {
    const struct lfs_branch *living = lfs_lines_branch(&report->lines, line);
    if (living && stat_version(report, living->dir, number, out))
        return true;
    char *storage = lfs_line_storage_dir(report->arena, line);
    return storage && stat_version(report, storage, number, out);
}

/* From what was kept, else from the manifest. -ENODATA when that cannot be read. */
static errint_t learn(struct lfs_report_history *h, struct lfs_report_commit *c, bool has_before,
                      struct lfs_error *err) {
    struct lfs_report *report = h->report;
    AUTO_VERSION *version = NULL, *before = NULL;
    struct lfs_report_commit kept;
    struct stat file;
    char *key = lfs_sprintf(report->arena, "%s:%" PRIu64 "%s", c->line, c->number, has_before ? "" : ":alone");
    if (!key)
        return lfs_fail_nomem(err);
    bool there = stat_commit(report, c->line, c->number, &file);
    if (there && lfs_facts_get(report->cache, key, &file, report->arena, &kept)) {
        kept.line = c->line;
        kept.branch = c->branch;
        kept.number = kept.first = c->number;
        *c = kept;
        return 0;
    }
    errint_t result = lfs_lines_version(&report->lines, c->line, c->number, &version, err);
    if (result < 0)
        return result == -ENOMEM ? result : -ENODATA;
    LFS_TRY(read_facts(report->arena, version, c, err));
    if (has_before && lfs_lines_version(&report->lines, c->before_line, c->before, &before, NULL) < 0)
        return 0; /* not kept: it may be a lack of memory */
    if (before || !c->before_line)
        LFS_TRY(count_changes(c, before ? before->manifest.message : NULL, version->manifest.message, err));
    if (there)
        lfs_facts_put(report->cache, key, &file, c);
    return 0;
}

errint_t lfs_report_commit_read(struct lfs_report_history *h, const char *name, uint64_t number,
                                struct lfs_report_commit *out, struct lfs_error *err) {
    struct lfs_report *report = h->report;
    const struct line *line = line_of(h, name), *before;
    const struct lfs_branch *living = lfs_lines_branch(&report->lines, name);
    struct lfs_report_commit placed = {
        .line = name, .number = number, .first = number, .branch = living ? living->name : name};
    if (!line)
        return lfs_fail_nomem(err);
    *out = placed;
    LFS_TRY(place(h, line, &placed, err));
    before = placed.before_line ? line_of(h, placed.before_line) : NULL;
    if (placed.before_line && !before)
        return lfs_fail_nomem(err);
    out->before_line = placed.before_line;
    out->before = placed.before;
    errint_t result = -ENODATA;
    if (newest_to(line, number) == number)
        result = learn(h, out, before && newest_to(before, placed.before) == placed.before, err);
    if (result == -ENOMEM)
        return result;
    if (result < 0) { /* what cannot be read is as good as gone */
        out->before_line = NULL;
        out->before = 0;
        tell_gone(line, out);
        return 0;
    }
    lfs_report_raise_time(report, out->time);
    return place(h, line, out, err);
}

/* --- as text --- */

const char lfs_report_commit_header[] = "version\tbranch\ttime\toperation\tfragments\trows\tfrom\tmessage";

void lfs_report_commit_put(const struct lfs_report_commit *c, struct lfs_buf *out) {
    if (c->first < c->number)
        lfs_line_words(out, "%" PRIu64 "..%" PRIu64, c->first, c->number);
    else
        lfs_line_number(out, c->number);
    lfs_line_text(out, c->branch);
    lfs_line_time(out, c->time);
    lfs_line_text(out, c->operation);
    if (c->counted) {
        lfs_line_words(out, "+%" PRIu64 " -%" PRIu64 " ~%" PRIu64, c->fragments_added, c->fragments_removed,
                       c->fragments_changed);
        lfs_line_words(out, "+%" PRIu64 " -%" PRIu64, c->rows_added, c->rows_removed);
    } else {
        lfs_line_text(out, NULL);
        lfs_line_text(out, NULL);
    }
    lfs_line_text(out, c->from);
    lfs_line_text(out, c->message);
    lfs_line_end(out);
}
