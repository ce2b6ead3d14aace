/* SPDX-License-Identifier: Apache-2.0 */
#include "table/lineage.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "format/ref.h"
#include "store/file.h"
#include "util/cleanup.h"
#include "util/limits.h"

char *lfs_line_storage_dir(struct lfs_arena *arena, const char *uuid) {
    return lfs_sprintf(arena, "_lancefs/lines/%s", uuid);
}

errint_t lfs_lines_read(struct lfs_dataset *ds, struct lfs_arena *arena, struct lfs_lines *out, struct lfs_error *err) {
    *out = (struct lfs_lines){.dataset = ds, .arena = arena};
    return lfs_dataset_branches(ds, arena, &out->branches, &out->n_branches, NULL, err);
}

const struct lfs_branch *lfs_lines_branch(const struct lfs_lines *lines, const char *line) {
    for (size_t i = 0; i < lines->n_branches; i++)
        if (*line && strcmp(lines->branches[i].uuid, line) == 0)
            return &lines->branches[i];
    return NULL;
}

errint_t lfs_lines_version(const struct lfs_lines *lines, const char *line, uint64_t number, struct lfs_version **out,
                           struct lfs_error *err) {
    const struct lfs_branch *branch = lfs_lines_branch(lines, line);
    errint_t result = -ENOENT;
    for (size_t i = 0; i < lines->n_planned && strcmp(line, lines->planned_line) == 0; i++)
        if (lines->planned[i]->number == number) {
            *out = lines->planned[i];
            return 0;
        }
    if (branch)
        result = lfs_dataset_version(lines->dataset, branch->dir, number, out, err);
    if (result == -ENOENT) {
        char *dir = lfs_line_storage_dir(lines->arena, line);
        result = dir ? lfs_dataset_version(lines->dataset, dir, number, out, err) : lfs_fail_nomem(err);
    }
    if (result == -ENOENT)
        return lfs_fail(err, LFS_E_NO_BASE, "version %" PRIu64 " of %s %s was cleaned away; name another with base=",
                        number, branch ? "branch" : "the deleted branch", branch ? branch->name : line);
    return result;
}

errint_t lfs_number_vector(const struct lfs_branch *branch, uint64_t number, const char *carried, struct lfs_vector *out,
                           struct lfs_error *err) {
    const char *line = "main";
    uint64_t first = 0; /* the line's first version, which is its parent's state */
    for (size_t i = 0; i < branch->n_forks; i++) {
        if (branch->forks[i].version > first)
            LFS_TRY(lfs_vector_raise(out, line, branch->forks[i].version, err));
        line = branch->forks[i].uuid;
        first = branch->forks[i].version;
    }
    if (!*branch->uuid)
        return lfs_fail(err, LFS_E_UNSUPPORTED,
                        "branch %s has no identifier (it was made by an old Lance), so its history cannot be told",
                        branch->name);
    if (number > first)
        LFS_TRY(lfs_vector_raise(out, branch->uuid, number, err));
    return carried ? lfs_vector_parse(out, carried, branch->name, err) : 0;
}

static const char *metadata_of(const struct lfs_version *version, const char *key) {
    const LanceManifest *m = version->manifest.message;
    const char *text = lfs_entries_get(m->table_metadata, m->n_table_metadata, key);
    return text ? text : "";
}

uint64_t lfs_lines_ahead(const struct lfs_lines *lines, const struct lfs_vector *a, const struct lfs_vector *b) {
    uint64_t n = 0;
    for (size_t i = 0; i < a->count; i++) {
        const struct lfs_vector_entry *e = &a->entries[i];
        struct lfs_branch branch; /* of a line of which nothing is known any more all versions count */
        uint64_t from = lfs_vector_get(b, e->line),
                 first = lfs_lines_any_branch(lines, e->line, &branch, NULL) < 0 || branch.n_forks == 0
                             ? 0
                             : branch.forks[branch.n_forks - 1].version;
        from = from > first ? from : first;
        n += e->version > from ? e->version - from : 0;
    }
    return n;
}


const char *lfs_version_picked(const struct lfs_version *version) { return metadata_of(version, LFS_KEY_PICKED); }

const char *lfs_version_partial(const struct lfs_version *version) { return metadata_of(version, LFS_KEY_PARTIAL); }

bool lfs_version_has_picks(const struct lfs_version *version) {
    return *lfs_version_picked(version) || *lfs_version_partial(version);
}

errint_t lfs_state_vector(const struct lfs_branch *branch, const struct lfs_version *version, struct lfs_vector *out,
                          struct lfs_error *err) {
    const LanceManifest *m = version->manifest.message;
    return lfs_number_vector(branch, version->number,
                             lfs_entries_get(m->table_metadata, m->n_table_metadata, LFS_KEY_VECTOR), out, err);
}

/* A line whose branch is gone: its ref file was kept beside its bases. */
errint_t lfs_lines_any_branch(const struct lfs_lines *lines, const char *line, struct lfs_branch *out,
                              struct lfs_error *err) {
    LFS_AUTO_BUF json = {0};
    struct lfs_branch_ref ref;
    const struct lfs_branch *branch = lfs_lines_branch(lines, line);
    char *path = lfs_sprintf(lines->arena, "_lancefs/lines/%s/" LFS_KEPT_REF, line);
    if (!path)
        return lfs_fail_nomem(err);
    if (branch) {
        *out = *branch;
        return 0;
    }
    errint_t result = lfs_read_file(lfs_dataset_root_fd(lines->dataset), path, LFS_REF_BYTES_MAX, &json, NULL, err);
    if (result == -ENOENT)
        return lfs_fail(err, LFS_E_NO_BASE, "the branch of line %s is gone, and nothing was kept of it", line);
    LFS_TRY(result);
    LFS_TRY(lfs_branch_ref_decode(json.data, json.length, lines->arena, path, &ref, err));
    char *name = lfs_strdup(lines->arena, line);
    *out = (struct lfs_branch){.name = name, .uuid = name, .dir = "", .forks = ref.forks, .n_forks = ref.n_forks};
    return name ? 0 : lfs_fail_nomem(err);
}

/* The vector of a state that is only known by line and number. */
static errint_t candidate_vector(const struct lfs_lines *lines, struct lfs_base *base, struct lfs_error *err) {
    struct lfs_branch branch;
    LFS_TRY(lfs_lines_any_branch(lines, base->line, &branch, err));
    lfs_vector_init(&base->vector, lines->arena);
    return lfs_state_vector(&branch, base->version, &base->vector, err);
}

/* Did an undo take something back on that line, in a version after `from`, up to `to`? */
static bool was_undone(const struct lfs_lines *lines, const char *line, uint64_t from, uint64_t to) {
    for (uint64_t v = from + 1; v <= to; v++) {
        struct lfs_version *version;
        if (lfs_lines_version(lines, line, v, &version, NULL) < 0)
            continue;
        const char *operation = lfs_transaction_property(version->manifest.transaction, LFS_PROPERTY_OPERATION);
        bool undo = operation && strcmp(operation, "undo") == 0;
        lfs_version_release(version);
        if (undo)
            return true;
    }
    return false;
}

/* The newest version of a line, at most `*number`, that holds nothing but what both sides hold, where an undo took merges
 * back after it: those are to be made again, so the versions that held them are no common ground. (A restore is a change
 * like any other: it is taken over.) -ENODATA (in *gone) when it is gone. `newest`: of the line, that either side holds. */
static errint_t read_candidate(const struct lfs_lines *lines, const struct lfs_vector *common, uint64_t *number,
                               uint64_t newest, struct lfs_base *base, struct lfs_error *gone, struct lfs_error *err) {
    uint64_t first = *number;
    for (;; (*number)--) {
        struct lfs_error why;
        errint_t result = lfs_lines_version(lines, base->line, *number, &base->version, &why);
        if (result == -ENODATA)
            *gone = why;
        else if (result < 0 && err)
            *err = why;
        if (result < 0)
            return result;
        LFS_TRY(candidate_vector(lines, base, err));
        if (*number <= 1 || lfs_vector_within(&base->vector, common) ||
            (*number == first && !was_undone(lines, base->line, first, newest)))
            return 0;
        lfs_version_release(base->version);
        base->version = NULL;
    }
}

/* Read what can be read of the candidates; one that is gone keeps version NULL. */
static errint_t read_candidates(const struct lfs_lines *lines, struct lfs_vector *common, const struct lfs_vector *either,
                                struct lfs_base *list, struct lfs_error *gone, struct lfs_error *err) {
    for (size_t i = 0; i < common->count; i++) {
        list[i].line = common->entries[i].line;
        uint64_t newest = lfs_vector_get(either, list[i].line);
        errint_t result = read_candidate(lines, common, &common->entries[i].version, newest, &list[i], gone, err);
        if (result < 0 && result != -ENODATA)
            return result;
    }
    return 0;
}

/* Does another candidate hold this one? Of two that hold each other (one state under two names) the first stays. */
static bool is_dominated(const struct lfs_vector *common, const struct lfs_base *list, size_t i) {
    for (size_t j = 0; j < common->count; j++) {
        if (j == i || !list[j].version ||
            lfs_vector_get(&list[j].vector, list[i].line) < common->entries[i].version)
            continue;
        bool mutual = list[i].version && lfs_vector_get(&list[i].vector, list[j].line) >= common->entries[j].version;
        if (!mutual || j < i)
            return true;
    }
    return false;
}

errint_t lfs_merge_bases(const struct lfs_lines *lines, const struct lfs_vector *a, const struct lfs_vector *b,
                         struct lfs_base **out, size_t *n_out, struct lfs_error *err) {
    struct lfs_vector common, either;
    struct lfs_error gone = {0};
    lfs_vector_init(&common, lines->arena);
    lfs_vector_init(&either, lines->arena);
    LFS_TRY(lfs_vector_meet(a, b, &common, err));
    if (common.count == 0)
        return lfs_fail(err, LFS_E_NO_BASE, "the two have no version in common; name a base with base=");
    struct lfs_base *list = LFS_NEW_ARRAY(lines->arena, struct lfs_base, common.count);
    bool *keep = LFS_NEW_ARRAY(lines->arena, bool, common.count);
    if (!list || !keep)
        return lfs_fail_nomem(err);
    LFS_TRY(lfs_vector_join(&either, a, err));
    LFS_TRY(lfs_vector_join(&either, b, err));
    errint_t result = read_candidates(lines, &common, &either, list, &gone, err);
    size_t n = 0;
    for (size_t i = 0; result == 0 && i < common.count; i++) {
        keep[i] = !is_dominated(&common, list, i);
        if (keep[i] && !list[i].version)
            result = lfs_fail(err, LFS_E_NO_BASE, "%s", gone.message);
    }
    for (size_t i = 0; i < common.count; i++) {
        if (result == 0 && keep[i])
            list[n++] = list[i];
        else
            lfs_version_release(list[i].version);
    }
    *out = list;
    *n_out = n;
    return result;
}

void lfs_bases_release(struct lfs_base *bases, size_t count) {
    for (size_t i = 0; i < count; i++)
        lfs_version_release(bases[i].version);
}

/* --- history --- */

bool lfs_transaction_restates(const LanceTransaction *t) {
    const char *operation = lfs_transaction_property(t, LFS_PROPERTY_OPERATION);
    return t && t->operation_case == LANCE__TABLE__TRANSACTION__OPERATION_RESTORE && operation &&
           (strcmp(operation, LFS_OPERATION_REBASE) == 0 || strcmp(operation, LFS_OPERATION_UNDO_REBASE) == 0);
}

/* A rebase replays a commit by a merge of it. */
static bool is_merge(const char *operation) {
    return operation && (strcmp(operation, "merge") == 0 || strcmp(operation, LFS_OPERATION_REBASE) == 0);
}

/* A merge that took over rows alone is not in the vector, and neither is a pick that did. */
static enum lfs_step_standing standing_of(const struct lfs_history *h, const char *line, uint64_t number) {
    if (number <= lfs_vector_get(&h->tip, line))
        return LFS_STEP_STANDS;
    const char *found = h->partial ? strstr(h->partial, line) : NULL;
    return h->partial && !(found && found[strlen(line)] == ':') ? LFS_STEP_GONE : LFS_STEP_UNTOLD;
}

static errint_t add_step(const struct lfs_lines *lines, struct lfs_history *h, const char *line, uint64_t number,
                         struct lfs_error *err) {
    if (h->count == h->capacity) {
        size_t capacity = h->capacity ? h->capacity * 2 : 16;
        struct lfs_step *grown = LFS_NEW_ARRAY(lines->arena, struct lfs_step, capacity);
        if (!grown)
            return lfs_fail_nomem(err);
        if (h->count)
            memcpy(grown, h->steps, h->count * sizeof *grown);
        h->steps = grown;
        h->capacity = capacity;
    }
    struct lfs_step step = {0};
    errint_t result = lfs_lines_version(lines, line, number, &step.after, err);
    if (result == -ENODATA) {
        h->complete = false;
        return 0;
    }
    LFS_TRY(result);
    result = lfs_lines_version(lines, line, number - 1, &step.before, err);
    if (result == -ENODATA)
        h->complete = false;
    else if (result < 0) {
        lfs_version_release(step.after);
        return result;
    }
    const char *operation = lfs_transaction_property(step.after->manifest.transaction, LFS_PROPERTY_OPERATION);
    step.is_merge = is_merge(operation) || (operation && strcmp(operation, "cherry-pick") == 0);
    step.brought = h->depth > 0;
    step.picked = h->picks > 0;
    step.standing = step.brought ? standing_of(h, line, number) : LFS_STEP_STANDS;
    h->steps[h->count++] = step;
    return 0;
}

static errint_t read_version(const struct lfs_lines *lines, const char *line, uint64_t number, struct lfs_history *h,
                             struct lfs_error *err);
static errint_t read_branch(const struct lfs_lines *lines, const struct lfs_branch *branch, size_t depth, uint64_t tip,
                            struct lfs_history *h, struct lfs_error *err);

/* A pick brought one commit, or a range of them. */
static errint_t read_picked(const struct lfs_lines *lines, const LanceTransaction *pick, const char *line, uint64_t last,
                            struct lfs_history *h, struct lfs_error *err) {
    const char *first = lfs_transaction_property(pick, LFS_PROPERTY_SOURCE_FIRST);
    errint_t result = 0;
    h->depth++;
    h->picks++;
    for (uint64_t v = first ? strtoull(first, NULL, 10) : last; result == 0 && v <= last; v++)
        result = read_version(lines, line, v, h, err);
    h->depth--;
    h->picks--;
    return result;
}

/* Before the step of a merge come the commits that it brought, as they were made: they tell deletes from updates. */
static errint_t read_merged(const struct lfs_lines *lines, const struct lfs_version *merge, struct lfs_history *h,
                            struct lfs_error *err) {
    const LanceTransaction *t = merge->manifest.transaction;
    const char *operation = lfs_transaction_property(t, LFS_PROPERTY_OPERATION);
    const char *line = lfs_transaction_property(t, LFS_PROPERTY_SOURCE_LINE);
    const char *version = lfs_transaction_property(t, LFS_PROPERTY_SOURCE_VERSION);
    struct lfs_branch branch;
    const char *only = lfs_transaction_property(t, LFS_PROPERTY_ONLY);
    if (!operation || !line || !version || h->depth >= LFS_BRANCH_DEPTH_MAX)
        return 0;
    if (only && strncmp(only, "rows", 4) != 0) /* what was left out did nothing to rows here; rows stand first */
        return 0;
    uint64_t number = strtoull(version, NULL, 10);
    if (strcmp(operation, "cherry-pick") == 0)
        return read_picked(lines, t, line, number, h, err);
    if (!is_merge(operation))
        return 0;
    if (lfs_lines_any_branch(lines, line, &branch, NULL) < 0) {
        h->complete = false; /* the merge's own step must do */
        return 0;
    }
    h->depth++;
    errint_t result = read_branch(lines, &branch, branch.n_forks, number, h, err);
    h->depth--;
    return result;
}

static errint_t read_version(const struct lfs_lines *lines, const char *line, uint64_t number, struct lfs_history *h,
                             struct lfs_error *err) {
    struct lfs_version *version;
    errint_t result = lfs_lines_version(lines, line, number, &version, err);
    if (result == 0) {
        result = read_merged(lines, version, h, err);
        lfs_version_release(version);
        LFS_TRY(result);
    } else if (result != -ENODATA) {
        return result;
    }
    return add_step(lines, h, line, number, err);
}

/* Versions up to `tip`, that are not held yet, of the `depth`-th line on the way from main to the branch; its parents'
 * first. */
static errint_t read_branch(const struct lfs_lines *lines, const struct lfs_branch *branch, size_t depth, uint64_t tip,
                            struct lfs_history *h, struct lfs_error *err) {
    const char *line = depth ? branch->forks[depth - 1].uuid : "main";
    uint64_t first = depth ? branch->forks[depth - 1].version : 0, from = lfs_vector_get(&h->held, line);
    if (from < first && depth) {
        LFS_TRY(read_branch(lines, branch, depth - 1, branch->forks[depth - 1].version, h, err));
        from = first;
    }
    for (uint64_t v = from + 1; v <= tip; v++) {
        LFS_TRY(lfs_vector_raise(&h->held, line, v, err)); /* first: crosswise merges would come back here */
        LFS_TRY(read_version(lines, line, v, h, err));
    }
    return 0;
}

static errint_t read_tip(const struct lfs_lines *lines, const struct lfs_branch *branch, uint64_t tip,
                         struct lfs_history *h, struct lfs_error *err) {
    struct lfs_version *version;
    struct lfs_vector vector;
    errint_t result = lfs_lines_version(lines, branch->uuid, tip, &version, err);
    if (result == -ENODATA) {
        h->partial = NULL;
        return 0;
    }
    LFS_TRY(result);
    lfs_vector_init(&vector, lines->arena);
    result = lfs_state_vector(branch, version, &vector, err);
    if (result == 0)
        result = lfs_vector_join(&h->tip, &vector, err);
    if (h->partial)
        h->partial = lfs_sprintf(lines->arena, "%s,%s", h->partial, lfs_version_partial(version));
    lfs_version_release(version);
    return result;
}

errint_t lfs_history_add(const struct lfs_lines *lines, const struct lfs_branch *branch, uint64_t tip,
                         struct lfs_history *history, struct lfs_error *err) {
    LFS_TRY(read_tip(lines, branch, tip, history, err));
    return read_branch(lines, branch, branch->n_forks, tip, history, err);
}

errint_t lfs_history_read(const struct lfs_lines *lines, const struct lfs_branch *branch, uint64_t tip,
                          const struct lfs_vector *since, struct lfs_history *out, struct lfs_error *err) {
    *out = (struct lfs_history){.complete = true, .partial = ""};
    lfs_vector_init(&out->held, lines->arena);
    lfs_vector_init(&out->tip, lines->arena);
    errint_t result = read_tip(lines, branch, tip, out, err);
    if (result == 0)
        result = lfs_vector_join(&out->held, since, err);
    if (result == 0)
        result = read_branch(lines, branch, branch->n_forks, tip, out, err);
    if (result < 0)
        lfs_history_release(out);
    return result;
}

void lfs_history_release(struct lfs_history *history) {
    for (size_t i = 0; i < history->count; i++) {
        lfs_version_release(history->steps[i].before);
        lfs_version_release(history->steps[i].after);
    }
    history->count = 0;
}
