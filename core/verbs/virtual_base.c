/* SPDX-License-Identifier: Apache-2.0 */
/* Several merge bases become one: the state that merging them gives (merge-semantics section 1). */
#include <inttypes.h>
#include <string.h>

#include "util/cleanup.h"
#include "verbs/job.h"

/* What one folding step needs for as long as the job lives. */
struct fold {
    struct lfs_virtual virtual_version;
    struct lfs_plan plan;
    struct lfs_reader reader;
};

/* The bases as states: a virtual one is merged of the first so many. */
static errint_t states_of(struct lfs_job *job, const struct lfs_base *bases, size_t n, struct lfs_state **out,
                          struct lfs_error *err) {
    *out = LFS_NEW_ARRAY(job->arena, struct lfs_state, n);
    if (!*out)
        return lfs_fail_nomem(err);
    for (size_t i = 0; i < n; i++) {
        (*out)[i].version = bases[i].version;
        LFS_TRY(lfs_lines_any_branch(&job->context->lines, bases[i].line, &(*out)[i].branch, err));
    }
    return 0;
}

/* The base of two bases; exactly one, or this is more than is done here. */
static errint_t base_of(struct lfs_job *job, const struct lfs_base *a, const struct lfs_base *b, struct lfs_base *out,
                        struct lfs_error *err) {
    struct lfs_base *list;
    size_t n;
    LFS_TRY(lfs_merge_bases(&job->context->lines, &a->vector, &b->vector, &list, &n, err));
    if (n == 1) {
        *out = list[0];
        return 0;
    }
    lfs_bases_release(list, n);
    return lfs_fail(err, LFS_E_UNSUPPORTED, "the merge bases were themselves merged crosswise: name one with base=");
}

/* `a` is merged of states[0..n), `b` is states[n]. */
static errint_t merge_two(struct lfs_job *job, const struct lfs_base *a, const struct lfs_base *b,
                          const struct lfs_base *base, const struct lfs_state *states, size_t n, struct fold *f,
                          struct lfs_error *err) {
    const struct lfs_state at = {.branch.uuid = base->line, .version = base->version};
    const struct lfs_standing base_standing = {base->version, &at, 1};
    LFS_TRY(lfs_reader_init(&f->reader, &job->context->lines, &states[0], &states[n], &a->vector, &base->vector, err));
    lfs_reader_know_base(&f->reader, &base_standing, &base->vector);
    f->reader.standing[LFS_OURS] = (struct lfs_standing){a->version, states, n};
    f->reader.also = states + 1;
    f->reader.n_also = n - 1;
    f->reader.virtual_versions = job->virtual_versions;
    f->reader.n_virtual = job->n_virtual;
    struct lfs_merge_input input = {
        .base = base->version,
        .ours = a->version,
        .theirs = b->version,
        .base_is_theirs = false,
        .ours_name = states[0].branch.name,
        .theirs_name = states[n].branch.name,
        .reader = &f->reader.reader,
    };
    LFS_TRY(lfs_merge3(&input, job->arena, &f->plan, err));
    if (f->plan.refusal || f->plan.n_conflicts)
        return lfs_fail(err, LFS_E_UNSUPPORTED,
                        "the two were merged crosswise, and their merge bases do not go together: name one with base=");
    return lfs_virtual_init(&f->virtual_version, &f->plan, a->version, b->version, job->arena, err);
}

/* "l@2 and r@3" */
static errint_t label_of(struct lfs_job *job, const struct lfs_state *states, size_t n, const char **out,
                         struct lfs_error *err) {
    *out = "";
    for (size_t i = 0; i < n && *out; i++)
        *out = lfs_sprintf(job->arena, "%s%s%s@%" PRIu64, *out, i ? " and " : "", states[i].branch.name,
                           states[i].version->number);
    return *out ? 0 : lfs_fail_nomem(err);
}

errint_t lfs_job_virtual_base(struct lfs_job *job, struct lfs_base *bases, size_t n_bases, struct lfs_error *err) {
    struct lfs_base current = bases[0];
    struct lfs_state *states;
    for (size_t i = 0; i < n_bases; i++)
        LFS_TRY(lfs_job_hold(job, bases[i].version, err)); /* virtual states point into them */
    LFS_TRY(states_of(job, bases, n_bases, &states, err));
    for (size_t i = 1; i < n_bases; i++) {
        struct lfs_base base;
        struct fold *f = LFS_NEW(job->arena, struct fold);
        if (!f)
            return lfs_fail_nomem(err);
        LFS_TRY(base_of(job, &current, &bases[i], &base, err));
        LFS_TRY(lfs_job_hold(job, base.version, err));
        LFS_TRY(lfs_job_hold_plan(job, &f->plan, err));
        errint_t result = merge_two(job, &current, &bases[i], &base, states, i, f, err);
        lfs_reader_release(&f->reader);
        LFS_TRY(result);
        LFS_TRY(lfs_job_add_virtual(job, &f->virtual_version, err));
        current.version = &f->virtual_version.version;
        LFS_TRY(lfs_vector_join(&current.vector, &bases[i].vector, err));
        LFS_TRY(label_of(job, states, i + 1, &current.line, err));
    }
    job->base = current;
    job->base_is_virtual = true;
    job->base_states = states;
    job->n_base_states = n_bases;
    return 0;
}
