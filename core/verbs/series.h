/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A series: one command that makes several versions of one branch. All of it is planned before the first version is
 * written, each step on the version that the one before will give, so that a conflict or a refusal anywhere in it changes
 * nothing. Then every step is made on the real tip; when another writer gets in between, the rest is planned again on
 * the new tip, and if it no longer goes through, the answer says what has been committed. (Before writers that never rest
 * the whole plan gives way after some rounds, and each step is planned and made by itself on the tip of the moment.)
 *
 * An interrupt is heeded until the first version is there; after it the series runs to its end, so that nobody has to
 * find out how far it came.
 */
#ifndef LFS_VERBS_SERIES_H
#define LFS_VERBS_SERIES_H

#include "verbs/job.h"

struct lfs_series_step {
    const struct lfs_job_spec *spec; /* one that skips_empty makes no version where it changes nothing */
    void *argument;
    const char *label; /* "feature@4" */
    bool follows;      /* see struct lfs_job */
};

struct lfs_series {
    const char *target; /* a branch's name */
    const char *source; /* for the answer: "feature@3..6", "a@3, b@5" */
    struct lfs_series_step *steps;
    size_t n_steps;
    const struct lfs_series_aside *aside; /* NULL: a branch that others see */
};

/* Of a series on a branch that is made aside: what comes of it is shown by the caller, afterwards, or never. */
struct lfs_series_aside {
    const char *onto;            /* "main@7", for the answer */
    const char *result, *nothing; /* what the answer calls it: with steps that made versions, and without */
    /* When all is planned: whoever wants to be asked about it is, in place of lfs_gate_ask_series. `n` may be 0. */
    errint_t (*ask)(void *argument, struct lfs_job *const *jobs, size_t n, struct lfs_error *err);
    /* After that, before the first version is written. */
    errint_t (*begin)(void *argument, struct lfs_error *err);
    void *argument;
};

/* The steps of a rebase: a merge each of those versions of a branch, up to `version`, and of the lines that it comes from, of
 * which `held` says that the new line lacks them; with squash one of all. LFS_E_UNSUPPORTED for what cannot be replayed by
 * itself. In merge.c. */
errint_t lfs_rebase_steps(struct lfs_verb_context *context, const struct lfs_branch *branch, uint64_t version,
                          const struct lfs_vector *held, struct lfs_series *out, struct lfs_error *err);

/* Run it and write the answer: that of one job, with versions: beside version:, and a line for each version that was
 * made. LFS_E_TOO_BIG over LFS_SERIES_STEPS_MAX steps. */
errint_t lfs_series_run(struct lfs_verb_context *context, const struct lfs_series *series, struct lfs_error *err);

#endif
