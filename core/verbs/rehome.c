/* SPDX-License-Identifier: Apache-2.0 */
/* .rehome: files that the branch reaches through base paths become its own; one commit that changes no row. */
#include <inttypes.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/limits.h"
#include "util/log.h"
#include "verbs/answer.h"
#include "verbs/gate.h"
#include "verbs/verb.h"

/* What the tip has elsewhere. */
struct elsewhere {
    uint64_t files, bytes, indexes; /* bytes: as the manifest tells */
    size_t n_bases;
};

static struct elsewhere look(const struct lfs_version *tip) {
    const LanceManifest *m = tip->manifest.message;
    struct elsewhere e = {.n_bases = m->n_base_paths};
    for (size_t i = 0; i < m->n_fragments; i++) {
        const LanceFragment *f = m->fragments[i];
        for (size_t k = 0; k < f->n_files; k++)
            if (f->files[k]->has_base_id) {
                e.files++;
                e.bytes += f->files[k]->file_size_bytes;
            }
        e.files += f->deletion_file && f->deletion_file->has_base_id;
    }
    for (size_t i = 0; tip->manifest.indices && i < tip->manifest.indices->n_indices; i++)
        e.indexes += tip->manifest.indices->indices[i]->has_base_id != 0;
    return e;
}

static errint_t properties(struct lfs_verb_context *context, struct lfs_property **out, size_t *n,
                           struct lfs_error *err) {
    const struct lfs_command *c = context->command;
    struct lfs_property *list = LFS_NEW_ARRAY(context->arena, struct lfs_property, c->n_properties + 2);
    *n = 0;
    *out = list;
    if (!list)
        return lfs_fail_nomem(err);
    list[(*n)++] = (struct lfs_property){LFS_PROPERTY_OPERATION, "rehome"};
    if (c->message)
        list[(*n)++] = (struct lfs_property){"__lance_commit_message", c->message};
    for (size_t i = 0; i < c->n_properties; i++)
        list[(*n)++] = c->properties[i];
    return 0;
}

static void answer(struct lfs_verb_context *context, const char *result, const struct lfs_state *target,
                   const struct elsewhere *e, const struct lfs_commit_result *made) {
    struct lfs_buf *out = context->answer;
    char *label = lfs_sprintf(context->arena, "%s@%" PRIu64, target->branch.name, target->version->number);
    lfs_answer_text(out, "result", result);
    lfs_answer_text(out, "target", label ? label : "");
    if (made) {
        lfs_answer_number(out, "version", made->version);
        lfs_answer_text(out, "transaction", made->transaction);
    }
    lfs_buf_printf(out, "files: %" PRIu64 "\nbytes: %" PRIu64 "\nindexes: %" PRIu64 "\nbase-paths: %zu\n", e->files,
                   e->bytes, e->indexes, e->n_bases);
    if (made && made->copied_files)
        lfs_buf_printf(out, "notes:\n  - %" PRIu64 " files could not be linked and were copied\n", made->copied_files);
}

static errint_t commit(struct lfs_verb_context *context, const struct lfs_state *target, struct lfs_commit_result *out,
                       struct lfs_error *err) {
    const struct lfs_verb_call *call = context->call;
    struct lfs_property *list;
    size_t n;
    LFS_TRY(lfs_gate_ask_rehome(context, target, err));
    LFS_TRY(properties(context, &list, &n, err));
    struct lfs_commit_request request = {
        .dataset = call->dataset,
        .target = &target->branch,
        .source = &target->branch,
        .target_tip = target->version,
        .source_version = target->version,
        .naming = target->naming,
        .mode = context->command->has_mode ? context->command->mode : LFS_PLACE_LINK,
        .sync = call->settings->sync,
        .properties = list,
        .n_properties = n,
        .cancel = call->cancel,
        .progress = call->progress,
        .rehome = true,
    };
    return lfs_commit_plan(&request, out, err);
}

static errint_t try_once(struct lfs_verb_context *context, struct lfs_error *err) {
    const struct lfs_command *c = context->command;
    struct lfs_state target = {0};
    struct lfs_commit_result made;
    LFS_TRY(lfs_verb_tip(context, context->call->branch, &target, err));
    struct elsewhere e = look(target.version);
    errint_t result = 0;
    if (c->has_expect && c->expect != target.version->number)
        result = lfs_fail(err, LFS_E_STALE, "%s is at version %" PRIu64 ", not at %" PRIu64 " as expected",
                          target.branch.name, target.version->number, c->expect);
    else if (e.files + e.indexes + e.n_bases == 0)
        answer(context, "up-to-date", &target, &e, NULL);
    else if (c->dry_run)
        answer(context, "dry-run", &target, &e, NULL);
    else if ((result = commit(context, &target, &made, err)) == 0) {
        answer(context, "rehomed", &target, &e, &made);
        lfs_log(LFS_LOG_INFO, "event=rehome target=%s version=%" PRIu64, target.branch.name, made.version);
    } else if (err && err->code == LFS_E_DENIED) {
        answer(context, "refused", &target, &e, NULL);
        lfs_answer_text(context->answer, "reason", err->message);
    }
    lfs_version_release(target.version);
    return result;
}

errint_t lfs_verb_rehome(struct lfs_verb_context *context, struct lfs_error *err) {
    const struct lfs_command *c = context->command;
    if (c->n_words != 1 || strcmp(c->words[0], "all"))
        return lfs_fail(err, LFS_E_USAGE, "write all: every file that this branch reaches elsewhere becomes its own");
    if (c->has_mode && c->mode == LFS_PLACE_GRAFT)
        return lfs_fail(err, LFS_E_USAGE, "mode=graft: a file of its own is a link or a copy");
    for (unsigned i = 0; i < LFS_COMMIT_TRIES_MAX; i++) {
        errint_t result = try_once(context, err);
        if (result != -EEXIST)
            return result;
        if (c->has_expect)
            break;
    }
    return lfs_fail(err, LFS_E_RACE, "other writers kept winning the race for the next version: try again");
}
