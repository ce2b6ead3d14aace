/* SPDX-License-Identifier: Apache-2.0 */
/*
 * .diff/<ref>: what the two sides changed since their merge base, unit by unit, and what `echo <ref> > .merge` would do
 * with each. The base and the plan are those of that very command (verbs/job.h); only the telling is done here.
 */
#include <string.h>

#include "merge/match.h"
#include "report/diff.h"
#include "verbs/look.h"

errint_t lfs_report_diff_check(struct lfs_dataset *ds, const char *ref, struct lfs_error *err) {
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    LFS_CLEANUP(lfs_look_close) struct lfs_look look = {0};
    struct lfs_state state = {0};
    if (!arena)
        return lfs_fail_nomem(err);
    lfs_look_open(&look, ds, NULL, NULL, arena);
    errint_t result = lfs_verb_state(&look.context, ref, &state, err);
    lfs_version_release(state.version);
    return result;
}

/* By the three-way table: what one side alone did is taken, what both did in different ways is united or in conflict. */
static const char *fate(const struct lfs_diff *d, const char *ours, const char *theirs, bool same) {
    if (!theirs)
        return "ours";
    if (same)
        return "same";
    if (d->refused)
        return "refused";
    if (!ours)
        return "theirs";
    return d->blocked ? "conflict" : "united";
}

void lfs_diff_put(struct lfs_diff *d, const char *class, const char *unit, const char *ours, const char *theirs,
                  bool same, uint64_t count, const struct lfs_buf *where) {
    struct lfs_buf *out = d->report->out;
    lfs_line_words(out, "%s", class);
    lfs_line_text(out, unit);
    lfs_line_text(out, ours);
    lfs_line_text(out, theirs);
    lfs_line_words(out, "%s", fate(d, ours, theirs, same));
    lfs_line_number(out, count);
    lfs_line_bytes(out, where ? where->data : NULL, where ? where->length : 0);
    lfs_line_end(out);
}

/* --- what the plan says itself --- */

static void put_conflicts(struct lfs_diff *d) {
    struct lfs_buf *out = d->report->out;
    const struct lfs_plan *plan = &d->job->plan;
    for (size_t i = 0; i < plan->conflicts.count; i++) {
        const struct lfs_conflict *c = plan->conflicts.items[i];
        LFS_AUTO_BUF where = {0};
        lfs_buf_printf(&where, "%s, base %s", c->kind, c->base);
        lfs_line_words(out, "conflict");
        lfs_line_text(out, c->unit);
        lfs_line_text(out, c->ours);
        lfs_line_text(out, c->theirs);
        lfs_line_words(out, "conflict");
        lfs_line_number(out, 1);
        lfs_line_bytes(out, where.data, where.length);
        lfs_line_end(out);
    }
}

static void put_head(struct lfs_diff *d) {
    const struct lfs_job *job = d->job;
    const struct lfs_plan *plan = &job->plan;
    struct lfs_buf *out = d->report->out;
    const char *ours = lfs_job_label(job, job->target.branch.name, job->target.version->number),
               *theirs = lfs_job_source_label(job), *base = d->planned ? lfs_job_base_label(job) : theirs;
    lfs_line_comment(out, "ours", ours ? ours : "");
    lfs_line_comment(out, "theirs", theirs ? theirs : "");
    lfs_line_comment(out, "base", base ? base : "");
    lfs_line_comment(out, "result", d->planned ? lfs_job_outcome(job) : "up-to-date");
    if (d->refused)
        lfs_line_comment(out, "reason", plan->refusal);
    if (d->planned && !d->blocked)
        lfs_buf_printf(out, "# fragments: +%" PRIu64 " -%" PRIu64 " ~%" PRIu64 "\n# rows: +%" PRIu64 " -%" PRIu64 "\n",
                       plan->fragments_added, plan->fragments_removed, plan->fragments_changed_count, plan->rows_added,
                       plan->rows_removed);
    if (d->planned)
        lfs_buf_printf(out, "# conflicts: %zu\n", plan->n_conflicts);
    for (size_t i = 0; d->planned && i < plan->notes.count; i++)
        lfs_line_comment(out, "note", plan->notes.items[i]);
    lfs_buf_puts(out, "# class\tunit\tours\ttheirs\tmerge\tcount\twhere\n");
}

/* Ours holds all of theirs: what ours has over it. The reader is the one that the plan would have had. */
static errint_t compare_with_held(struct lfs_diff *d, struct lfs_error *err) {
    struct lfs_job *job = d->job;
    struct lfs_vector theirs;
    lfs_vector_init(&theirs, job->arena);
    LFS_TRY(lfs_state_vector(&job->source.branch, job->source.version, &theirs, err));
    LFS_TRY(lfs_reader_init(&job->reader, &job->context->lines, &job->target, &job->source, &job->target_vector,
                            &theirs, err));
    d->input = (struct lfs_merge_input){
        .base = job->source.version,
        .ours = job->target.version,
        .theirs = job->source.version,
        .base_side = LFS_THEIRS,
        .ours_name = job->target.branch.name,
        .theirs_name = job->source.branch.name,
        .reader = &job->reader.reader,
    };
    return 0;
}

static errint_t tell(struct lfs_diff *d, struct lfs_error *err) {
    const struct lfs_job *job = d->job;
    if (d->planned) {
        d->input = job->input;
        d->input.ours = job->target.version; /* an update that a strategy takes back is still one that was made */
        d->input.theirs = job->source.version;
        d->refused = job->plan.outcome == LFS_OUTCOME_REFUSED;
        d->blocked = d->refused || job->plan.outcome == LFS_OUTCOME_CONFLICT;
    } else {
        LFS_TRY(compare_with_held(d, err));
    }
    lfs_report_raise_time(d->report, lfs_report_time(job->target.version));
    lfs_report_raise_time(d->report, lfs_report_time(job->source.version));
    put_head(d);
    LFS_TRY(lfs_match_fragments(&d->input, job->arena, &d->matches, &d->n_matches, err));
    LFS_TRY(lfs_diff_rows(d, err));
    LFS_TRY(lfs_diff_names(d, err));
    put_conflicts(d);
    return lfs_buf_check(d->report->out, err);
}

errint_t lfs_report_diff(struct lfs_report *report, struct lfs_error *err) {
    LFS_CLEANUP(lfs_look_close) struct lfs_look look = {0};
    lfs_look_open(&look, report->dataset, NULL, report->branch.name, report->arena);
    look.context.lines = report->lines;
    struct lfs_merge_source source = {.word = report->ref};
    LFS_CLEANUP(lfs_job_release)
    struct lfs_job job = {
        .context = &look.context, .arena = report->arena, .spec = &lfs_merge_job, .argument = &source};
    struct lfs_diff d = {.report = report, .job = &job};
    int prepared = lfs_job_plan(&job, report->branch.name, err);
    d.planned = prepared != LFS_NOTHING_TO_DO;
    return prepared < 0 ? prepared : tell(&d, err);
}
