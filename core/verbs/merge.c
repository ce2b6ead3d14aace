/* SPDX-License-Identifier: Apache-2.0 */
/* merge SOURCE: three-way, from the base that both hold (merge-semantics section 2). */
#include "util/cleanup.h"
#include "verbs/job.h"

static errint_t find_base(struct lfs_job *job, const struct lfs_vector *theirs, struct lfs_error *err) {
    struct lfs_base *bases;
    size_t n;
    LFS_TRY(lfs_merge_bases(&job->context->lines, &job->target_vector, theirs, &bases, &n, err));
    if (n > 1)
        return lfs_job_virtual_base(job, bases, n, err);
    job->base = bases[0];
    return 0;
}

static int prepare(struct lfs_job *job, struct lfs_error *err) {
    struct lfs_vector theirs;
    lfs_vector_init(&theirs, job->arena);
    LFS_TRY(lfs_verb_state(job->context, job->argument, &job->source, err));
    LFS_TRY(lfs_state_vector(&job->source.branch, job->source.version, &theirs, err));
    if (lfs_vector_within(&theirs, &job->target_vector)) {
        lfs_job_say_unchanged(job, "up-to-date");
        return LFS_NOTHING_TO_DO;
    }
    LFS_TRY(find_base(job, &theirs, err));
    job->ours_is_base = lfs_vector_within(&job->target_vector, &job->base.vector);
    LFS_TRY(lfs_vector_join(&job->vector, &job->target_vector, err));
    LFS_TRY(lfs_vector_join(&job->vector, &theirs, err));
    LFS_TRY(lfs_job_join_picked(job, err));
    return LFS_PREPARED;
}

const struct lfs_job_spec lfs_merge_job = {.operation = "merge", .is_merge = true, .prepare = prepare};

errint_t lfs_verb_merge(struct lfs_verb_context *context, struct lfs_error *err) {
    const struct lfs_command *c = context->command;
    const char *target = context->call->branch;
    size_t wanted = target ? 1 : 2;
    struct lfs_branch branch;
    if (c->n_words < wanted)
        return lfs_fail(err, LFS_E_USAGE, target ? "name the branch to merge" : "name the source and the target branch");
    if (c->n_words > wanted)
        return lfs_fail(err, LFS_E_UNSUPPORTED, "several sources in one merge are not there yet: merge one after the other");
    if (!target) {
        LFS_TRY(lfs_verb_branch(context, c->words[1], &branch, err));
        target = branch.name;
    }
    return lfs_job_run(context, &lfs_merge_job, target, (void *)c->words[0], err);
}
