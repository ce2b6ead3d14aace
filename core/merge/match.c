/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/match.h"

#include <inttypes.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/map.h"

static const char *file_path(const LanceDataFile *file) { return file->path ? file->path : ""; }

const char *lfs_match_name(const LanceFragment *fragment) {
    return fragment->n_files ? file_path(fragment->files[0]) : "";
}

static bool lists(LanceFragment *const *fragments, size_t n, const char *path) {
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < fragments[i]->n_files; k++)
            if (strcmp(file_path(fragments[i]->files[k]), path) == 0)
                return true;
    return false;
}

bool lfs_match_compacted(const struct lfs_version *version, const char *path) {
    const LanceTransaction *t = version->manifest.transaction;
    if (!t || t->operation_case != LANCE__TABLE__TRANSACTION__OPERATION_REWRITE)
        return false;
    bool found = lists(t->rewrite->old_fragments, t->rewrite->n_old_fragments, path);
    for (size_t i = 0; i < t->rewrite->n_groups && !found; i++)
        found = lists(t->rewrite->groups[i]->old_fragments, t->rewrite->groups[i]->n_old_fragments, path);
    return found;
}

const LanceFragment *lfs_match_find(const LanceManifest *manifest, const char *path) {
    for (size_t i = 0; i < manifest->n_fragments; i++)
        for (size_t k = 0; k < manifest->fragments[i]->n_files; k++)
            if (strcmp(file_path(manifest->fragments[i]->files[k]), path) == 0)
                return manifest->fragments[i];
    return NULL;
}

/* --- the same for many fragments of one manifest --- */

enum { LOOKUPS_BEFORE_INDEX = 8 }; /* a manifest that is asked less often is not worth an index */

struct indexed {
    const LanceManifest *manifest;
    struct lfs_map by_file; /* of LanceFragment; empty until it is made */
    size_t lookups;
    bool is_made;
    struct indexed *next;
};

struct lfs_match_finder {
    struct lfs_arena *arena;
    struct indexed *list; /* the one asked last comes first */
};

struct lfs_match_finder *lfs_match_finder_new(struct lfs_arena *arena) {
    struct lfs_match_finder *finder = LFS_NEW(arena, struct lfs_match_finder);
    if (finder)
        *finder = (struct lfs_match_finder){.arena = arena};
    return finder;
}

static struct indexed *indexed_of(struct lfs_match_finder *finder, const LanceManifest *manifest) {
    struct indexed **link = &finder->list, *found;
    while (*link && (*link)->manifest != manifest)
        link = &(*link)->next;
    found = *link;
    if (found)
        *link = found->next;
    else if ((found = LFS_NEW(finder->arena, struct indexed)))
        *found = (struct indexed){.manifest = manifest};
    else
        return NULL;
    found->next = finder->list;
    finder->list = found;
    return found;
}

static bool make_index(struct lfs_match_finder *finder, struct indexed *of) {
    lfs_map_init(&of->by_file, finder->arena);
    if (!lfs_map_reserve(&of->by_file, of->manifest->n_fragments))
        return false;
    for (size_t i = of->manifest->n_fragments; i-- > 0;) /* should two hold one file, the first is found */
        for (size_t k = 0; k < of->manifest->fragments[i]->n_files; k++)
            if (!lfs_map_put(&of->by_file, file_path(of->manifest->fragments[i]->files[k]), of->manifest->fragments[i]))
                return false;
    return true;
}

const LanceFragment *lfs_match_find_in(struct lfs_match_finder *finder, const LanceManifest *manifest, const char *path) {
    struct indexed *of = finder ? indexed_of(finder, manifest) : NULL;
    if (!of || (!of->is_made && (of->lookups++ < LOOKUPS_BEFORE_INDEX || !make_index(finder, of))))
        return lfs_match_find(manifest, path);
    of->is_made = true;
    return lfs_map_get(&of->by_file, path);
}

static bool same_ints(const int32_t *a, size_t n_a, const int32_t *b, size_t n_b) {
    return n_a == n_b && (n_a == 0 || memcmp(a, b, n_a * sizeof *a) == 0);
}

/* A size of 0 means unknown (lance-format section 3.2). */
static bool same_file(const LanceDataFile *a, const LanceDataFile *b) {
    return strcmp(file_path(a), file_path(b)) == 0 && same_ints(a->fields, a->n_fields, b->fields, b->n_fields) &&
           same_ints(a->column_indices, a->n_column_indices, b->column_indices, b->n_column_indices) &&
           (!a->file_size_bytes || !b->file_size_bytes || a->file_size_bytes == b->file_size_bytes);
}

/* Versions share the records that have the same bytes (lfs_manifest_decode_like), which are nearly all: what follows is
 * quick for those. */

bool lfs_match_same_files(const LanceFragment *a, const LanceFragment *b) {
    if (a == b)
        return true;
    if (a->n_files != b->n_files || a->physical_rows != b->physical_rows)
        return false;
    for (size_t i = 0; i < a->n_files; i++)
        if (!same_file(a->files[i], b->files[i]))
            return false;
    return true;
}

bool lfs_match_same_deletions(const LanceFragment *a, const LanceFragment *b) {
    const LanceDeletionFile *x = a->deletion_file, *y = b->deletion_file;
    if (x == y || !x || !y)
        return x == y;
    return x->id == y->id && x->read_version == y->read_version && x->file_type == y->file_type;
}

/* File name -> index + 1 of the match that has it. */
struct builder {
    struct lfs_map by_file;
    struct lfs_arena *arena;
    struct lfs_match *matches;
    size_t count, capacity;
    struct lfs_error *err;
};

static errint_t corrupt(const struct builder *b, const struct lfs_version *v, const LanceFragment *f, const char *why) {
    return lfs_fail(b->err, LFS_E_CORRUPT, "version %" PRIu64 " of %s: fragment %" PRIu64 " %s", v->number,
                    *v->dir ? v->dir : "main", f->id, why);
}

static const LanceFragment **slot(struct lfs_match *match, enum lfs_side side) {
    return side == LFS_BASE ? &match->base : side == LFS_OURS ? &match->ours : &match->theirs;
}

/* The match that a fragment belongs to: the one that has a file of it; a new one when none has. */
static errint_t place(struct builder *b, const struct lfs_version *v, const LanceFragment *f, enum lfs_side side) {
    size_t found = 0;
    if (f->n_files == 0)
        return corrupt(b, v, f, "has no data file");
    if (f->physical_rows > (uint64_t)UINT32_MAX + 1) /* its part of a row address has 32 bits */
        return corrupt(b, v, f, "claims more rows than a fragment can hold");
    for (size_t i = 0; i < f->n_files; i++) {
        size_t at = (size_t)(uintptr_t)lfs_map_get(&b->by_file, file_path(f->files[i]));
        if (at && found && at != found)
            return corrupt(b, v, f, "holds files of two different fragments");
        if (at)
            found = at;
    }
    if (!found)
        found = ++b->count;
    const LanceFragment **mine = slot(&b->matches[found - 1], side);
    if (*mine)
        return corrupt(b, v, f, "shares a data file with another fragment");
    *mine = f;
    for (size_t i = 0; i < f->n_files; i++)
        if (!lfs_map_put(&b->by_file, file_path(f->files[i]), (void *)(uintptr_t)found))
            return lfs_fail_nomem(b->err);
    return 0;
}

static errint_t place_all(struct builder *b, const struct lfs_version *v, enum lfs_side side) {
    for (size_t i = 0; i < v->manifest.message->n_fragments; i++)
        LFS_TRY(place(b, v, v->manifest.message->fragments[i], side));
    return 0;
}

/* Versions of one table share names too (lfs_manifest_decode_like). */
static bool has_names_of(const LanceFragment *f, const LanceFragment *base) {
    bool same = f->n_files > 0 && f->n_files == base->n_files && f->physical_rows == base->physical_rows;
    for (size_t i = 0; same && i < f->n_files; i++)
        same = f->files[i]->path && f->files[i]->path == base->files[i]->path;
    return same;
}

/* Both manifests are in the order of ids: the fragment of the base that stands where `f` does, when it is the same record or
 * has the same files. *k is where the last one stood. */
static bool stands_in_base(const LanceManifest *base, size_t *k, const LanceFragment *f) {
    while (*k < base->n_fragments && base->fragments[*k]->id < f->id)
        ++*k;
    return *k < base->n_fragments && (base->fragments[*k] == f || has_names_of(f, base->fragments[*k]));
}

static size_t count_others(const struct lfs_version *base, const struct lfs_version *v) {
    size_t n = 0;
    for (size_t i = 0, k = 0; i < v->manifest.message->n_fragments; i++)
        n += !stands_in_base(base->manifest.message, &k, v->manifest.message->fragments[i]);
    return n;
}

/* A fragment that stands in the base belongs to the base's match, without looking its files up. Matches of the base stand
 * where its fragments do. */
static errint_t place_beside(struct builder *b, const struct lfs_version *base, const struct lfs_version *v,
                             enum lfs_side side) {
    const LanceManifest *m = v->manifest.message;
    for (size_t i = 0, k = 0; i < m->n_fragments; i++) {
        const LanceFragment *f = m->fragments[i];
        if (!stands_in_base(base->manifest.message, &k, f)) {
            LFS_TRY(place(b, v, f, side));
            continue;
        }
        const LanceFragment **mine = slot(&b->matches[k], side);
        if (*mine)
            return corrupt(b, v, f, "shares a data file with another fragment");
        *mine = f;
    }
    return 0;
}

/* --- what came by a pick and went again --- */

/* An undo and a restore take the lineage back too: what they removed counts as never held. */
static bool takes_lineage_back(const struct lfs_step *step) {
    const LanceTransaction *t = step->after->manifest.transaction;
    const char *operation = lfs_transaction_property(t, LFS_PROPERTY_OPERATION);
    return (t && t->operation_case == LANCE__TABLE__TRANSACTION__OPERATION_RESTORE && !lfs_transaction_restates(t)) ||
           (operation && strcmp(operation, "undo") == 0);
}

static bool holds(const struct lfs_merge_input *input, const struct lfs_version *version, const char *path) {
    return version && lfs_match_find_in(input->finder, version->manifest.message, path);
}

/* Did that side hold the file since the base, and do away with it of its own accord? What a merge's source did away with on
 * its way to the merge counts, as long as the merge stands. (A pick takes over one commit, not what it stood on.) Refused
 * where nobody can tell. */
static errint_t was_held(const struct lfs_merge_input *input, const struct builder *b, enum lfs_side side,
                         const struct lfs_history *history, const char *path, bool *out) {
    bool on_the_way = false, untold = false;
    *out = false;
    for (size_t i = 0; i < history->count; i++) {
        const struct lfs_step *step = &history->steps[i];
        if (step->picked || (step->brought && (history->backward || step->standing == LFS_STEP_GONE)))
            continue;
        bool there = holds(input, step->after, path);
        if (step->brought)
            *(step->standing == LFS_STEP_STANDS ? &on_the_way : &untold) |= !there && holds(input, step->before, path);
        else if (there)
            *out = true;
        else if (*out && takes_lineage_back(step) && holds(input, step->before, path))
            *out = false;
    }
    *out |= on_the_way;
    return *out || !untold
               ? 0
               : lfs_fail(b->err, LFS_E_UNSUPPORTED,
                          "%s took rows over by only=, and rows that came by a pick may be among them: they cannot be told apart",
                          side == LFS_OURS ? input->ours_name : input->theirs_name);
}

/* Did a compaction of that side, or one that a merge brought to it, take the fragment's rows along? */
static bool was_compacted(const struct lfs_history *history, const char *path) {
    bool compacted = false;
    for (size_t i = 0; i < history->count && !compacted; i++)
        if (history->steps[i].standing != LFS_STEP_GONE || history->steps[i].picked)
            compacted = lfs_match_compacted(history->steps[i].after, path);
    return compacted;
}

/* A fragment that came by a pick here, and went into a compaction there: its rows would come twice. */
static errint_t check_compacted(const struct lfs_merge_input *input, const struct lfs_history *history,
                                const LanceFragment *mine, enum lfs_side side, struct lfs_error *err) {
    if (!was_compacted(history, file_path(mine->files[0])))
        return 0;
    return lfs_fail(err, LFS_E_UNSUPPORTED,
                    "fragment %" PRIu64 " of %s holds rows that a compaction moved elsewhere in %s: they cannot be told apart",
                    mine->id, side == LFS_OURS ? input->theirs_name : input->ours_name,
                    side == LFS_OURS ? input->ours_name : input->theirs_name);
}

/* The step that made the fragment is at hand. */
static bool is_made(const struct lfs_merge_input *input, const struct lfs_history *history, const char *path) {
    for (size_t i = 0; i < history->count; i++) {
        const struct lfs_step *step = &history->steps[i];
        if (step->before && !holds(input, step->before, path) && holds(input, step->after, path))
            return true;
    }
    return false;
}

/* Has that side fragments of its own, and nobody can say what they were made of? */
static bool has_unexplained(const struct lfs_merge_input *input, const struct builder *b,
                            const struct lfs_history *history, enum lfs_side side) {
    for (size_t i = 0; i < b->count && !history->complete && !history->backward; i++) {
        struct lfs_match *x = &b->matches[i];
        const LanceFragment *mine = *slot(x, side);
        if (mine && !x->base && !(x->ours && x->theirs) && !is_made(input, history, file_path(mine->files[0])))
            return true;
    }
    return false;
}

/* Versions that are gone may have taken rows along that came by a pick to one side or the other. With an older base every
 * fragment that is not in it is asked for, and nobody guesses that it is new. */
static errint_t check_told(const struct lfs_merge_input *input, const struct builder *b, const struct lfs_history *history,
                           enum lfs_side side) {
    if (history->complete || !(input->base_is_older || has_unexplained(input, b, history, side)))
        return 0;
    return lfs_fail(b->err, LFS_E_UNSUPPORTED,
                    "versions of %s since the base were cleaned away, so it cannot be told what it did with rows that both "
                    "had: not merged %s",
                    side == LFS_OURS ? input->ours_name : input->theirs_name,
                    input->base_is_older ? "from an older base" : "where commits were picked");
}

/* One that neither side has any more, since a compaction here took it along, and a compaction or a delete there. */
static errint_t add_gone(struct builder *b, const LanceFragment *record) {
    LanceFragment *base = lfs_memdup(b->arena, record, sizeof *base);
    if (!base)
        return lfs_fail_nomem(b->err);
    if (b->count == b->capacity) {
        struct lfs_match *grown = LFS_NEW_ARRAY(b->arena, struct lfs_match, 2 * b->capacity);
        if (!grown)
            return lfs_fail_nomem(b->err);
        memcpy(grown, b->matches, b->count * sizeof *grown);
        b->matches = grown;
        b->capacity *= 2;
    }
    base->deletion_file = NULL;
    b->matches[b->count++] = (struct lfs_match){.base = base};
    for (size_t i = 0; i < base->n_files; i++)
        if (!lfs_map_put(&b->by_file, file_path(base->files[i]), (void *)(uintptr_t)b->count))
            return lfs_fail_nomem(b->err);
    return 0;
}

/* `old` went into a compaction of that side. */
static errint_t find_gone(const struct lfs_merge_input *input, struct builder *b, enum lfs_side side,
                          const LanceFragment *old) {
    enum lfs_side there = side == LFS_OURS ? LFS_THEIRS : LFS_OURS;
    const struct lfs_history *mine, *other;
    bool here, held;
    LFS_TRY(input->reader->history(input->reader->context, side, &mine, b->err));
    LFS_TRY(input->reader->history(input->reader->context, there, &other, b->err));
    LFS_TRY(was_held(input, b, side, mine, lfs_match_name(old), &here));
    if (!here)
        return 0;
    LFS_TRY(was_held(input, b, there, other, lfs_match_name(old), &held));
    return held ? add_gone(b, old) : check_told(input, b, other, there);
}

static errint_t find_compacted(const struct lfs_merge_input *input, struct builder *b, enum lfs_side side) {
    const struct lfs_history *mine;
    LFS_TRY(input->reader->history(input->reader->context, side, &mine, b->err));
    if (mine->backward)
        return 0;
    for (size_t i = 0; i < mine->count; i++) {
        const LanceTransaction *t = mine->steps[i].after->manifest.transaction;
        bool rewrite = t && t->operation_case == LANCE__TABLE__TRANSACTION__OPERATION_REWRITE;
        for (size_t g = 0; rewrite && g < t->rewrite->n_groups; g++)
            for (size_t k = 0; k < t->rewrite->groups[g]->n_old_fragments; k++) {
                const LanceFragment *old = t->rewrite->groups[g]->old_fragments[k];
                if (old->n_files && !lfs_map_get(&b->by_file, lfs_match_name(old)))
                    LFS_TRY(find_gone(input, b, side, old));
            }
    }
    return 0;
}

/* A pick brings a fragment of one side to the other, or stands on a base that lacks what the target has long held. Where one
 * of them has deleted or compacted it since, the fragment is common to both all the same, and began with no row deleted. */
static errint_t find_held(const struct lfs_merge_input *input, struct builder *b) {
    if (input->without_history || (!lfs_version_has_picks(input->ours) && !lfs_version_has_picks(input->theirs) && !input->base_is_older &&
                                   !input->base_not_held))
        return 0;
    for (size_t i = 0; i < b->count; i++) {
        struct lfs_match *x = &b->matches[i];
        const LanceFragment *mine = x->ours ? x->ours : x->theirs;
        enum lfs_side other = x->ours ? LFS_THEIRS : LFS_OURS;
        const struct lfs_history *history;
        bool held;
        if (x->base || (x->ours && x->theirs))
            continue;
        LFS_TRY(input->reader->history(input->reader->context, other, &history, b->err));
        LFS_TRY(was_held(input, b, other, history, file_path(mine->files[0]), &held));
        if (!held) {
            LFS_TRY(check_told(input, b, history, other));
            LFS_TRY(check_compacted(input, history, mine, other, b->err));
            continue;
        }
        LanceFragment *base = lfs_memdup(b->arena, mine, sizeof *base);
        if (!base)
            return lfs_fail_nomem(b->err);
        base->deletion_file = NULL;
        x->base = base;
    }
    LFS_TRY(find_compacted(input, b, LFS_OURS));
    return find_compacted(input, b, LFS_THEIRS);
}

errint_t lfs_match_fragments(const struct lfs_merge_input *input, struct lfs_arena *arena, struct lfs_match **out,
                             size_t *n_out, struct lfs_error *err) {
    struct builder b = {.arena = arena, .err = err};
    size_t most = input->base->manifest.message->n_fragments + count_others(input->base, input->ours) +
                  count_others(input->base, input->theirs);
    lfs_map_init(&b.by_file, arena);
    b.capacity = most + 1;
    b.matches = LFS_NEW_ARRAY(arena, struct lfs_match, b.capacity);
    if (!b.matches || !lfs_map_reserve(&b.by_file, input->base->manifest.message->n_fragments))
        return lfs_fail_nomem(err);
    LFS_TRY(place_all(&b, input->base, LFS_BASE));
    LFS_TRY(place_beside(&b, input->base, input->ours, LFS_OURS));
    LFS_TRY(place_beside(&b, input->base, input->theirs, LFS_THEIRS));
    LFS_TRY(find_held(input, &b));
    *out = b.matches;
    *n_out = b.count;
    return 0;
}
