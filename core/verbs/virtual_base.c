/* SPDX-License-Identifier: Apache-2.0 */
/* Several merge bases become one: the state that merging them gives (merge-semantics section 1). */
#include <string.h>

#include "util/cleanup.h"
#include "verbs/job.h"

/* What one folding step needs for as long as the job lives. */
struct fold {
    struct lfs_virtual virtual_version;
    struct lfs_plan plan;
    struct lfs_reader reader;
    struct lfs_state ours, theirs;
};

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

static errint_t merge_two(struct lfs_job *job, const struct lfs_base *a, const struct lfs_base *b,
                          const struct lfs_base *base, struct fold *f, struct lfs_error *err) {
    f->ours.version = a->version;
    f->theirs.version = b->version;
    LFS_TRY(lfs_lines_any_branch(&job->context->lines, a->line, &f->ours.branch, err));
    LFS_TRY(lfs_lines_any_branch(&job->context->lines, b->line, &f->theirs.branch, err));
    LFS_TRY(lfs_reader_init(&f->reader, &job->context->lines, &f->ours, &f->theirs, &a->vector, &base->vector, err));
    f->reader.virtual_versions = job->virtual_versions;
    f->reader.n_virtual = job->n_virtual;
    struct lfs_merge_input input = {
        .base = base->version,
        .ours = a->version,
        .theirs = b->version,
        .base_is_theirs = false,
        .ours_name = f->ours.branch.name,
        .theirs_name = f->theirs.branch.name,
        .reader = &f->reader.reader,
    };
    LFS_TRY(lfs_merge3(&input, job->arena, &f->plan, err));
    if (f->plan.refusal || f->plan.n_conflicts)
        return lfs_fail(err, LFS_E_UNSUPPORTED,
                        "the two were merged crosswise, and their merge bases do not go together: name one with base=");
    return lfs_virtual_init(&f->virtual_version, &f->plan, a->version, b->version, job->arena, err);
}

errint_t lfs_job_virtual_base(struct lfs_job *job, struct lfs_base *bases, size_t n_bases, struct lfs_error *err) {
    struct lfs_base current = bases[0];
    for (size_t i = 0; i < n_bases; i++)
        LFS_TRY(lfs_job_hold(job, bases[i].version, err)); /* virtual states point into them */
    for (size_t i = 1; i < n_bases; i++) {
        struct lfs_base base;
        struct fold *f = LFS_NEW(job->arena, struct fold);
        if (!f)
            return lfs_fail_nomem(err);
        LFS_TRY(base_of(job, &current, &bases[i], &base, err));
        LFS_TRY(lfs_job_hold(job, base.version, err));
        LFS_TRY(lfs_job_hold_plan(job, &f->plan, err));
        errint_t result = merge_two(job, &current, &bases[i], &base, f, err);
        lfs_reader_release(&f->reader);
        LFS_TRY(result);
        LFS_TRY(lfs_job_add_virtual(job, &f->virtual_version, err));
        current.version = &f->virtual_version.version;
        LFS_TRY(lfs_vector_join(&current.vector, &bases[i].vector, err));
        current.line = lfs_sprintf(job->arena, "%s and %s", current.line, bases[i].line);
        if (!current.line)
            return lfs_fail_nomem(err);
    }
    job->base = current;
    job->base_is_virtual = true;
    return 0;
}
