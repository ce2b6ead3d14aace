/* SPDX-License-Identifier: Apache-2.0 */
/* A job's plan as a commit: made real, foreseen for what is planned on it, or imagined for a look. */
#include <inttypes.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/log.h"
#include "verbs/gate.h"
#include "verbs/job.h"

/* Theirs' fragment ids -> ids on the target, as "1:6,2:7". */
static errint_t fragment_map(const struct lfs_job *job, struct lfs_buf *out, struct lfs_error *err) {
    for (size_t i = 0; i < job->plan.n_fragments; i++) {
        const struct lfs_plan_fragment *f = &job->plan.fragments[i];
        if (f->is_new && f->id != f->record->id)
            lfs_buf_printf(out, "%s%" PRIu64 ":%" PRIu64, out->length ? "," : "", f->record->id, f->id);
    }
    lfs_buf_add(out, "", 1);
    return lfs_buf_check(out, err);
}

/* What decided conflicts, for the commit's own story; NULL when nothing could. */
static const char *policy_text(const struct lfs_policy *p) {
    enum lfs_strategy all[] = {p->rows, p->columns, p->schema, p->config, p->indexes};
    unsigned seen = 0;
    for (size_t i = 0; i < 5; i++)
        seen |= 1u << all[i];
    return seen == 1u << LFS_STRATEGY_FAIL     ? NULL
           : seen == 1u << LFS_STRATEGY_SOURCE ? "source-wins"
           : seen == 1u << LFS_STRATEGY_DEST   ? "dest-wins"
                                               : "mixed";
}

static errint_t properties(const struct lfs_job *job, const char *map, struct lfs_property **out, size_t *n_out,
                           struct lfs_error *err) {
    const struct lfs_command *c = job->context->command;
    struct lfs_property *list = LFS_NEW_ARRAY(job->arena, struct lfs_property, c->n_properties + 9);
    size_t n = 0;
    if (!list)
        return lfs_fail_nomem(err);
    list[n++] = (struct lfs_property){LFS_PROPERTY_OPERATION, job->spec->operation};
    list[n++] = (struct lfs_property){"lancefs.source", lfs_job_source_label(job)};
    list[n++] = (struct lfs_property){LFS_PROPERTY_SOURCE_LINE, job->source.branch.uuid};
    list[n++] = (struct lfs_property){LFS_PROPERTY_SOURCE_VERSION,
                                      lfs_sprintf(job->arena, "%" PRIu64, job->source.version->number)};
    if (*map)
        list[n++] = (struct lfs_property){"lancefs.map.fragments", map};
    const char *policy = job->plan.settled.count ? "chosen" : policy_text(&c->policy);
    if (policy)
        list[n++] = (struct lfs_property){"lancefs.policy", policy};
    if (c->policy.only)
        list[n++] = (struct lfs_property){LFS_PROPERTY_ONLY, lfs_command_classes(c->policy.only, job->arena)};
    if (job->extra_property)
        list[n++] = *job->extra_property;
    if (c->message)
        list[n++] = (struct lfs_property){"__lance_commit_message", c->message};
    for (size_t i = 0; i < c->n_properties; i++)
        list[n++] = c->properties[i];
    *out = list;
    *n_out = n;
    return list[1].value && list[3].value ? 0 : lfs_fail_nomem(err);
}

static errint_t make_request(const struct lfs_job *job, struct lfs_commit_request *out, struct lfs_error *err) {
    const struct lfs_verb_call *call = job->context->call;
    const struct lfs_command *c = job->context->command;
    LFS_AUTO_BUF map = {0};
    struct lfs_property *list = NULL;
    size_t n = 0;
    LFS_TRY(fragment_map(job, &map, err));
    const char *text = lfs_strdup(job->arena, (const char *)map.data);
    if (!text)
        return lfs_fail_nomem(err);
    LFS_TRY(properties(job, text, &list, &n, err));
    *out = (struct lfs_commit_request){
        .dataset = call->dataset,
        .target = &job->target.branch,
        .source = &job->source.branch,
        .target_tip = job->target.version,
        .source_version = job->source.version,
        .plan = &job->plan,
        .vector = &job->vector,
        .picked = job->picked,
        .partial = job->partial,
        .naming = job->target.naming,
        .mode = c->has_mode ? c->mode : call->settings->mode,
        .aside = job->context->aside && job->target.branch.uuid == job->context->aside->branch.uuid,
        .sync = call->settings->sync,
        .properties = list,
        .n_properties = n,
        .cancel = call->cancel,
        .progress = call->progress,
    };
    return 0;
}

errint_t lfs_job_commit(struct lfs_job *job, struct lfs_commit_result *result, struct lfs_error *err) {
    struct lfs_commit_request request;
    LFS_TRY(lfs_gate_ask_job(job, err));
    LFS_TRY(make_request(job, &request, err));
    LFS_TRY(lfs_commit_plan(&request, result, err));
    const char *source = lfs_job_source_label(job);
    lfs_log(LFS_LOG_INFO, "event=%s target=%s version=%" PRIu64 " source=%s result=%s", job->spec->operation,
            job->target.branch.name, result->version, source ? source : "", lfs_job_outcome(job));
    if (result->copied_files) {
        char *note =
            lfs_sprintf(job->arena, "%" PRIu64 " files could not be linked and were copied", result->copied_files);
        lfs_list_add(&job->plan.notes, job->arena, note);
    }
    return 0;
}

errint_t lfs_job_foresee(struct lfs_job *job, struct lfs_virtual *out, struct lfs_error *err) {
    struct lfs_commit_request request;
    LFS_TRY(make_request(job, &request, err));
    LFS_TRY(lfs_virtual_init(out, &job->plan, job->input.ours, job->input.theirs, job->arena, err));
    out->version.number = job->target.version->number + 1;
    return lfs_commit_foresee(&request, job->arena, &out->version.manifest, err);
}

errint_t lfs_job_imagine(struct lfs_job *job, uint64_t seed, struct lfs_imagined *out, struct lfs_error *err) {
    struct lfs_commit_request request;
    LFS_TRY(make_request(job, &request, err));
    return lfs_commit_imagine(&request, seed, job->arena, out, err);
}
