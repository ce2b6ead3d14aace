/* SPDX-License-Identifier: Apache-2.0 */
/* .gc: mark what any version, tag or live vector needs, then remove the rest (interface.md section 3). */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "table/lock.h"
#include "util/cleanup.h"
#include "util/log.h"
#include "verbs/answer.h"
#include "verbs/names.h"
#include "verbs/sweep.h"
#include "verbs/verb.h"

enum { OLDER_THAN_DEFAULT = 7 * 86400 };

static const char *const kind_names[LFS_SWEPT_KINDS] = {"data",         "deletions", "indexes",
                                                        "transactions", "staged",    "lines"};

static void free_reach(struct lfs_reach *reach) { lfs_reach_free(reach); }

/* Read once without the lock, so that merges need not wait while manifests are read for the first time. */
static errint_t warm_up(struct lfs_verb_context *context, const struct lfs_reach_options *options,
                        struct lfs_error *err) {
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    LFS_CLEANUP(free_reach) struct lfs_reach reach = {0};
    return arena ? lfs_reach_read(context->call->dataset, options, arena, &reach, err) : lfs_fail_nomem(err);
}

/* While a branch has moved and base paths still say its old name, what they name cannot be told from what nobody does. */
static errint_t settle_names(struct lfs_verb_context *context, struct lfs_error *err) {
    struct lfs_names names = {context->call->dataset, context->call->settings, context->call->cancel};
    return context->command->dry_run ? 0 : lfs_names_repair(&names, NULL, err);
}

static errint_t check_names(struct lfs_verb_context *context, struct lfs_error *err) {
    struct lfs_entry *entries;
    size_t n;
    LFS_TRY(lfs_list_dir(context->call->dataset, "_lancefs/names", context->arena, &entries, &n, err));
    return n == 0 ? 0
                  : lfs_fail(err, LFS_E_BUSY,
                             "a change of branch names has stopped half-way (_lancefs/names/%s): "
                             "fsck.lancefs -y finishes it; nothing was removed",
                             entries[0].name);
}

static void answer_count(struct lfs_buf *out, const char *key, const struct lfs_swept *s) {
    lfs_buf_printf(out, "%s: %" PRIu64 " files, %" PRIu64 " bytes\n", key, s->files, s->bytes);
}

static void answer(struct lfs_verb_context *context, const struct lfs_sweep *sweep) {
    struct lfs_swept total = {0};
    struct lfs_buf *out = context->answer;
    for (size_t i = 0; i < LFS_SWEPT_KINDS; i++) {
        total.files += sweep->kinds[i].files;
        total.bytes += sweep->kinds[i].bytes;
    }
    lfs_answer_text(out, "result", !sweep->remove ? "dry-run" : total.files ? "removed" : "nothing-to-remove");
    for (size_t i = 0; i < LFS_SWEPT_KINDS; i++)
        answer_count(out, kind_names[i], &sweep->kinds[i]);
    answer_count(out, "total", &total);
    lfs_answer_number(out, "too-young", sweep->n_young);
    if (sweep->remove)
        lfs_log(LFS_LOG_INFO, "event=gc files=%" PRIu64 " bytes=%" PRIu64, total.files, total.bytes);
}

errint_t lfs_verb_gc(struct lfs_verb_context *context, struct lfs_error *err) {
    const struct lfs_verb_call *call = context->call;
    const struct lfs_command *c = context->command;
    struct timespec now;
    if (c->n_words)
        return lfs_fail(err, LFS_E_USAGE, "%s: .gc takes no names, only older-than= and dry-run", c->words[0]);
    clock_gettime(CLOCK_REALTIME, &now);
    now.tv_sec -= (time_t)(c->has_older_than ? c->older_than : OLDER_THAN_DEFAULT);
    struct lfs_reach_options options = {.young_since = now, .progress = call->progress, .cancel = call->cancel};
    LFS_CLEANUP(free_reach) struct lfs_reach reach = {0};
    struct lfs_sweep sweep = {.ds = call->dataset,
                              .reach = &reach,
                              .arena = context->arena,
                              .before = now,
                              .remove = !c->dry_run,
                              .progress = call->progress,
                              .cancel = call->cancel};
    LFS_TRY(settle_names(context, err));
    LFS_TRY(warm_up(context, &options, err));
    LFS_AUTO_FD lock = lfs_dataset_lock(call->dataset, LFS_LOCK_ALONE, call->cancel, err);
    if (lock < 0)
        return lock;
    LFS_TRY(lfs_reach_read(call->dataset, &options, context->arena, &reach, err));
    LFS_TRY(check_names(context, err));
    if (reach.homes.n_bad_refs)
        return lfs_fail(
            err, LFS_E_CORRUPT,
            "a file in _refs/branches cannot be read, so it cannot be told what its branch needs: the check "
            "of the data set (.fsck) names it; nothing was removed");
    LFS_TRY(lfs_sweep_run(&sweep, err));
    answer(context, &sweep);
    return 0;
}
