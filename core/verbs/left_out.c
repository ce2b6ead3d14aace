/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compactions that a merge left out (merge-semantics section 5, s2). From then on the source's line is held, and yet its
 * newest states have fragments that the target never had: the rows live on in the fragments that it kept. Compared with
 * such a state, what changed in those fragments since would find nothing to change, and be lost. An older state that both
 * hold, from before the compaction, is a base too, and from there on the compaction is part of the history, by which rows
 * are found.
 */
#include <inttypes.h>
#include <string.h>

#include "merge/match.h"
#include "util/cleanup.h"
#include "util/map.h"
#include "verbs/job.h"

static const char *name_of(const LanceFragment *f) { return f->n_files && f->files[0]->path ? f->files[0]->path : ""; }

static errint_t index_files(struct lfs_map *map, struct lfs_arena *arena, const struct lfs_version *v,
                            struct lfs_error *err) {
    const LanceManifest *m = v->manifest.message;
    lfs_map_init(map, arena);
    for (size_t i = 0; i < m->n_fragments; i++)
        for (size_t k = 0; k < m->fragments[i]->n_files; k++)
            if (!lfs_map_put(map, m->fragments[i]->files[k]->path ? m->fragments[i]->files[k]->path : "", m->fragments[i]))
                return lfs_fail_nomem(err);
    return 0;
}

static const LanceFragment *find(const struct lfs_map *map, const LanceFragment *f) {
    const LanceFragment *found = NULL;
    for (size_t i = 0; !found && i < f->n_files; i++)
        found = lfs_map_get(map, f->files[i]->path ? f->files[i]->path : "");
    return found;
}

static bool is_untouched(const LanceFragment *base, const LanceFragment *now) {
    return now && lfs_match_same_files(base, now) && lfs_match_same_deletions(base, now);
}

/* Did a branch hold the fragment in one of its own versions after `since`? One that is gone tells nothing. */
static bool was_held(const struct lfs_job *job, const struct lfs_state *state, uint64_t since, const LanceFragment *f) {
    uint64_t first = lfs_branch_first(&state->branch);
    bool held = false;
    for (uint64_t v = since > first ? since : first; !held && v < state->version->number; v++) {
        struct lfs_version *version;
        if (lfs_lines_version(&job->context->lines, state->branch.uuid, v, &version, NULL) < 0)
            continue;
        held = lfs_match_find(version->manifest.message, name_of(f)) != NULL;
        lfs_version_release(version);
    }
    return held;
}

/* The next fragment of the base, from the *at-th on, that one side never held and the other side has changed; NULL when
 * there is none. */
static errint_t find_stranger(struct lfs_job *job, size_t *at, const LanceFragment **out, struct lfs_error *err) {
    bool native = !job->base_is_virtual, base_is_ours = native && lfs_job_comes_from(&job->target.branch, &job->base),
         base_is_theirs = native && lfs_job_comes_from(&job->source.branch, &job->base);
    const LanceManifest *base = job->base.version->manifest.message;
    struct lfs_map ours, theirs;
    struct lfs_vector since;
    *out = NULL;
    lfs_vector_init(&since, job->arena);
    LFS_TRY(lfs_vector_meet(&job->target_vector, &job->base.vector, &since, err));
    LFS_TRY(index_files(&ours, job->arena, job->target.version, err));
    LFS_TRY(index_files(&theirs, job->arena, job->source.version, err));
    for (; !*out && *at < base->n_fragments; ++*at) {
        const LanceFragment *f = base->fragments[*at], *o = find(&ours, f), *t = find(&theirs, f);
        bool by_ours = !o && !base_is_ours && !is_untouched(f, t) &&
                       !was_held(job, &job->target, lfs_vector_get(&since, job->target.branch.uuid), f);
        bool by_theirs = !t && !base_is_theirs && !is_untouched(f, o) &&
                         !was_held(job, &job->source, lfs_vector_get(&job->base.vector, job->source.branch.uuid), f);
        if (by_ours || by_theirs)
            *out = f;
    }
    return 0;
}

/* --- where it came from --- */

enum origin { ORIGIN_ROWS, ORIGIN_COMPACTION, ORIGIN_UNKNOWN };

static bool takes_fragments_away(const struct lfs_version *before, const struct lfs_version *after) {
    for (size_t i = 0; i < before->manifest.message->n_fragments; i++)
        if (!lfs_match_find(after->manifest.message, name_of(before->manifest.message->fragments[i])))
            return true;
    return false;
}

/* A commit of ours may have brought a compaction along. */
static enum origin origin_of(const struct lfs_version *before, const struct lfs_version *after) {
    const LanceTransaction *t = after->manifest.transaction;
    if (!t)
        return ORIGIN_UNKNOWN;
    if (t->operation_case == LANCE__TABLE__TRANSACTION__OPERATION_REWRITE)
        return ORIGIN_COMPACTION;
    return lfs_transaction_property(t, LFS_PROPERTY_OPERATION) && takes_fragments_away(before, after) ? ORIGIN_COMPACTION
                                                                                                      : ORIGIN_ROWS;
}

/* A branch begins with a state of its parent: *line and *number are that one. */
static void to_parent(const struct lfs_branch *branch, const char **line, uint64_t number) {
    for (size_t i = branch->n_forks; i > 0 && strcmp(*line, "main") != 0; i--)
        if (strcmp(branch->forks[i - 1].uuid, *line) == 0) {
            if (number > branch->forks[i - 1].version)
                return;
            *line = i > 1 ? branch->forks[i - 2].uuid : "main";
        }
}

/* How the fragment came into the base; *before is the version that did not hold it yet (to be released, NULL where there
 * is none), *line its line. */
static errint_t find_origin(const struct lfs_job *job, const LanceFragment *f, const char **line,
                            struct lfs_version **before, enum origin *out, struct lfs_error *err) {
    const struct lfs_lines *lines = &job->context->lines;
    struct lfs_branch branch;
    *line = job->base.line;
    *before = NULL;
    *out = ORIGIN_UNKNOWN;
    if (lfs_lines_any_branch(lines, job->base.line, &branch, NULL) < 0)
        return 0;
    for (uint64_t number = job->base.version->number; number > 1; number--) {
        struct lfs_version *older, *newer;
        to_parent(&branch, line, number);
        errint_t result = lfs_lines_version(lines, *line, number - 1, &older, err);
        if (result == -ENODATA)
            return 0;
        LFS_TRY(result);
        if (lfs_match_find(older->manifest.message, name_of(f))) {
            lfs_version_release(older);
            continue;
        }
        *before = older;
        LFS_TRY(lfs_lines_version(lines, *line, number, &newer, err));
        *out = origin_of(older, newer);
        lfs_version_release(newer);
        return 0;
    }
    *out = ORIGIN_ROWS; /* since the table began */
    return 0;
}

static errint_t refuse(const struct lfs_job *job, const LanceFragment *f, const char *what, struct lfs_error *err) {
    return lfs_fail(err, LFS_E_UNSUPPORTED,
                    "fragment %" PRIu64 " of %s holds rows that a compaction moved, which one of %s and %s does not have, and "
                    "the other changed them: they cannot be told apart%s",
                    f->id, lfs_job_base_label(job), job->target.branch.name, job->source.branch.name, what);
}

static bool same_columns(const LanceManifest *a, const LanceManifest *b) {
    bool same = a->n_fields == b->n_fields;
    for (size_t i = 0; same && i < a->n_fields; i++)
        same = a->fields[i]->id == b->fields[i]->id;
    return same;
}

/* Rows as they were at `before`, everything else as at the base: what happened to schema and maps in between is common
 * ground already. Takes `before` over. */
static errint_t use_rows_of(struct lfs_job *job, struct lfs_version *before, struct lfs_error *err) {
    LFS_TRY(lfs_job_hold(job, before, err));
    LFS_TRY(lfs_job_hold(job, job->base.version, err));
    const LanceManifest *base = job->base.version->manifest.message;
    LanceIndexSection *indices = job->base.version->manifest.indices;
    struct lfs_version *hybrid = lfs_memdup(job->arena, before, sizeof *hybrid);
    LanceManifest *m = lfs_memdup(job->arena, before->manifest.message, sizeof *m);
    job->base.version = hybrid; /* the former is held */
    if (!hybrid || !m)
        return lfs_fail_nomem(err);
    hybrid->planned = true;
    hybrid->manifest.message = m;
    hybrid->manifest.indices = indices;
    m->fields = base->fields;
    m->n_fields = base->n_fields;
    m->config = base->config;
    m->n_config = base->n_config;
    m->table_metadata = base->table_metadata;
    m->n_table_metadata = base->n_table_metadata;
    m->schema_metadata = base->schema_metadata;
    m->n_schema_metadata = base->n_schema_metadata;
    return 0;
}

static errint_t go_back(struct lfs_job *job, const LanceFragment *f, bool *moved, struct lfs_error *err) {
    const char *line;
    struct lfs_version *before;
    struct lfs_branch branch;
    enum origin origin;
    *moved = false;
    LFS_TRY(find_origin(job, f, &line, &before, &origin, err));
    if (origin == ORIGIN_ROWS || !before || !job->spec->is_merge) {
        lfs_version_release(before);
        if (origin == ORIGIN_ROWS)
            return 0;
        return refuse(job, f, job->spec->is_merge ? ", and the versions before it were cleaned away"
                                                  : ": merge the branch instead", err);
    }
    if (!same_columns(before->manifest.message, job->base.version->manifest.message)) {
        lfs_version_release(before);
        return refuse(job, f, ", since columns came or went after it", err);
    }
    LFS_TRY(use_rows_of(job, before, err));
    job->base.line = line;
    lfs_vector_init(&job->base.vector, job->arena);
    LFS_TRY(lfs_lines_any_branch(&job->context->lines, line, &branch, err));
    LFS_TRY(lfs_state_vector(&branch, before, &job->base.vector, err));
    *moved = true;
    return 0;
}

errint_t lfs_job_pass_compactions(struct lfs_job *job, struct lfs_error *err) {
    size_t at = 0;
    while (!job->ours_is_base) {
        const LanceFragment *stranger;
        bool moved;
        LFS_TRY(find_stranger(job, &at, &stranger, err));
        if (!stranger)
            return 0;
        if (job->base_is_virtual)
            return refuse(job, stranger, ", and the two were merged crosswise: name an older base with base=", err);
        LFS_TRY(go_back(job, stranger, &moved, err));
        at = moved ? 0 : at;
    }
    return 0;
}
