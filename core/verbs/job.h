/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job: one change to one branch, made of three states, planned against the branch's tip and committed; planned again
 * on the new tip while other writers win the race. Every verb that moves a tip is such a job, told by its `prepare`.
 */
#ifndef LFS_VERBS_JOB_H
#define LFS_VERBS_JOB_H

#include "commit/imagine.h"
#include "merge/merge3.h"
#include "verbs/reader.h"
#include "verbs/verb.h"

struct lfs_job {
    struct lfs_verb_context *context;
    struct lfs_arena *arena; /* of this try */
    const struct lfs_job_spec *spec;
    void *argument; /* the verb's own */

    /* Of a series: what the target holds beside what it says (commits that changed nothing and were skipped); NULL for
     * none. And whether this is a later step of one replay, so that ff= has been looked at. */
    const struct lfs_vector *held;
    bool follows;

    struct lfs_state target; /* ours: the tip, or the newest planned version of a series */
    uint64_t tip;            /* the tip on the disk */
    struct lfs_vector target_vector;

    /* What prepare fills in. */
    struct lfs_state source; /* theirs */
    struct lfs_base base;    /* its version is released with the job, unless it is virtual */
    bool base_is_virtual;
    const struct lfs_state *base_states; /* what it was merged of, where it is virtual */
    size_t n_base_states;
    const struct lfs_virtual **virtual_versions; /* states that no file holds */
    size_t n_virtual;
    bool ours_is_base;       /* the target has not moved since the base */
    bool backward;           /* theirs is an older version of the base's line ... */
    struct lfs_vector before; /* ... and holds this */
    struct lfs_vector vector; /* what the result holds */
    const char *picked, *partial; /* lancefs.picked and lancefs.partial of the result; NULL: as they were */
    const struct lfs_property *extra_property; /* of the transaction, or NULL */
    const char *source_label; /* "feature@6"; NULL: from `source` */

    struct lfs_reader reader;
    struct lfs_merge_input input; /* what the plan was made of in the end; it points into the job */
    struct lfs_plan plan;
    struct lfs_list held_versions, held_plans, held_virtual;
    struct lfs_list taken_back[2]; /* ours, theirs; of char: transactions whose updates lost by a strategy or a choice */
    struct lfs_list settled;       /* of struct lfs_conflict: by choices, before something was taken back */
};

enum lfs_prepared {
    LFS_PREPARED,
    LFS_NOTHING_TO_DO,   /* the target holds it already */
    LFS_CHANGES_NOTHING, /* of plans: there is one, and it is not worth a version */
};

struct lfs_job_spec {
    const char *operation; /* lancefs.op */
    bool is_merge;    /* can be a fast-forward */
    bool is_pick;     /* takes what one commit did, not what its branch holds */
    bool skips_empty; /* a result that equals the tip is not worth a version */
    /* The target's tip is resolved. Returns an enum lfs_prepared (for NOTHING_TO_DO the answer has been written), or a
     * negative errno. */
    int (*prepare)(struct lfs_job *job, struct lfs_error *err);
};

/* The merge of the source that is the job's argument: a ref that is looked up at every try, or (word NULL) one version of
 * a line. */
struct lfs_merge_source {
    const char *word;
    struct lfs_branch branch;
    uint64_t version;
};
extern const struct lfs_job_spec lfs_merge_job;
/* LFS_E_USAGE for options of a merge of `n_sources` that do not go together. */
errint_t lfs_merge_check(const struct lfs_command *command, size_t n_sources, struct lfs_error *err);

/* Run a job on the branch `target` (a name) and write the answer. */
errint_t lfs_job_run(struct lfs_verb_context *context, const struct lfs_job_spec *spec, const char *target,
                     void *argument, struct lfs_error *err);

/* The same in pieces, for reports and for a series (series.h). All fields are zero but context, arena, spec, argument, held
 * and follows; to be released in every case. A plan on the branch `target`: an enum lfs_prepared, or a negative errno for
 * what could not be read. A conflict or a refusal is an outcome of the plan. */
int lfs_job_plan(struct lfs_job *job, const char *target, struct lfs_error *err);
/* And the answer, where nothing is to be committed: for all but PREPARED it has been written, and a conflict or a refusal
 * is an error. */
int lfs_job_plan_and_say(struct lfs_job *job, const char *target, struct lfs_error *err);
/* Asks the hooks first: LFS_E_DENIED when one says no. */
errint_t lfs_job_commit(struct lfs_job *job, struct lfs_commit_result *result, struct lfs_error *err);
/* What the commit would give, as a version that more can be planned on; it lives as long as the job. */
errint_t lfs_job_foresee(struct lfs_job *job, struct lfs_virtual *out, struct lfs_error *err);
/* The same as bytes that can be shown; likewise (commit/imagine.h). */
errint_t lfs_job_imagine(struct lfs_job *job, uint64_t seed, struct lfs_imagined *out, struct lfs_error *err);
void lfs_job_release(struct lfs_job *job); /* not its arena */

/* "merged", "fast-forward", "conflict", ...; "feature@6"; "main@2". NULL where there is none, or memory is short. */
const char *lfs_job_outcome(const struct lfs_job *job);
const char *lfs_job_source_label(const struct lfs_job *job);
const char *lfs_job_base_label(const struct lfs_job *job);

/* Released with the job: versions that others point into, and plans whose bitmaps virtual states use. Taken over in
 * every case. */
errint_t lfs_job_hold(struct lfs_job *job, struct lfs_version *version, struct lfs_error *err);
errint_t lfs_job_hold_plan(struct lfs_job *job, struct lfs_plan *plan, struct lfs_error *err);

errint_t lfs_job_add_virtual(struct lfs_job *job, const struct lfs_virtual *virtual_version, struct lfs_error *err);

/* lancefs.picked and lancefs.partial of the result of a merge: those of both sides, without what its vector covers. */
errint_t lfs_job_join_picked(struct lfs_job *job, struct lfs_error *err);

/* Add the source's version to lancefs.partial of the result: rows of it were taken over, and other things left out. */
errint_t lfs_job_add_partial(struct lfs_job *job, struct lfs_error *err);

/* The virtual base of several (criss-cross merges): what merging them gives. Takes the bases over. A conflict among
 * them is LFS_E_UNSUPPORTED: a unit of unknown value is equal to nothing, and nobody guesses. */
errint_t lfs_job_virtual_base(struct lfs_job *job, struct lfs_base *bases, size_t n_bases, struct lfs_error *err);

/*
 * Compactions that a merge left out. Changes of one side in a fragment of the base that the other side does not have, since
 * it left out the compaction that made it, would be lost: the base becomes one without the compaction, and the history of the
 * side that has it begins before it; where that cannot be done, or nobody can tell, the job's plan refuses. The reader is
 * there already.
 */
errint_t lfs_job_pass_left_out(struct lfs_job *job, struct lfs_merge_input *input, struct lfs_error *err);

/* Is that state one of the branch's own versions, or one that it comes from, before the fork? */
bool lfs_job_comes_from(const struct lfs_branch *branch, const struct lfs_base *base);

/* "name@version" in the job's arena; NULL when memory is short. */
const char *lfs_job_label(const struct lfs_job *job, const char *name, uint64_t version);

/* result:, source:, target: and base: for a job that changes nothing. */
void lfs_job_say_unchanged(struct lfs_job *job, const char *result);

#endif
