/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/settle.h"

#include <inttypes.h>
#include <string.h>

#include "util/cleanup.h"
#include "verbs/answer.h"

static bool is_abort(const struct lfs_command *c) { return strcmp(c->words[0], "abort") == 0; }

bool lfs_is_settling(const struct lfs_verb_context *context) {
    const struct lfs_command *c = context->command;
    size_t n = context->call->branch ? 1 : 2;
    return context->call->conflicts && c->n_words == n && (is_abort(c) || strcmp(c->words[0], "continue") == 0);
}

/* What belongs to the command that waits is not said again. */
static errint_t check_options(const struct lfs_command *c, struct lfs_error *err) {
    static const char *const with_continue[] = {"dry-run", "expect=", "message=", "property."};
    for (size_t i = 0; i < c->n_options; i++) {
        bool taken = false;
        for (size_t k = 0; k < sizeof with_continue / sizeof *with_continue && !is_abort(c); k++)
            taken |= strcmp(c->options[i], with_continue[k]) == 0;
        if (!taken)
            return lfs_fail(err, LFS_E_USAGE, "%s is no option of %s: the command that waits keeps its own",
                            c->options[i], c->words[0]);
    }
    return 0;
}

/* The command that waits, and what the word behind continue adds to it. */
static errint_t join_commands(const struct lfs_command *more, struct lfs_arena *arena, struct lfs_command *c,
                              struct lfs_error *err) {
    size_t n = c->n_properties + more->n_properties;
    struct lfs_property *all = LFS_NEW_ARRAY(arena, struct lfs_property, n + 1);
    if (!all)
        return lfs_fail_nomem(err);
    if (c->n_properties)
        memcpy(all, c->properties, c->n_properties * sizeof *all);
    if (more->n_properties)
        memcpy(all + c->n_properties, more->properties, more->n_properties * sizeof *all);
    c->properties = all;
    c->n_properties = n;
    c->dry_run = more->dry_run;
    c->message = more->message ? more->message : c->message;
    if (more->has_expect) {
        c->has_expect = true;
        c->expect = more->expect;
    }
    return 0;
}

static errint_t run_again(struct lfs_verb_context *context, struct lfs_waiting *w, lfs_run_file run,
                          struct lfs_error *err) {
    struct lfs_command command;
    struct lfs_verb_call call = *context->call;
    struct lfs_verb_context again = *context;
    LFS_TRY(lfs_command_parse(w->line, context->arena, &command, err));
    LFS_TRY(join_commands(context->command, context->arena, &command, err));
    if (w->by_root)
        command.n_words--;
    call.branch = w->target;
    call.line = w->line;
    again.call = &call;
    again.command = &command;
    again.chosen = &w->chosen;
    again.pins = (struct lfs_list *)w->pins;
    again.pinned = true;
    errint_t result = run(w->file, &again, err);
    if (command.dry_run)
        return result;
    struct lfs_stopped stopped = {w->file, w->line, w->by_root, w->pins, context->found, w};
    bool kept = false;
    if (result == -ECANCELED && context->found->items.count)
        LFS_TRY(lfs_waiting_keep(context->call->conflicts, &stopped, &kept, err));
    return result;
}

static errint_t give_up(struct lfs_verb_context *context, const struct lfs_waiting *w) {
    lfs_answer_text(context->answer, "result", "aborted");
    lfs_answer_text(context->answer, "target", w->target);
    lfs_answer_text(context->answer, "command", w->line);
    return 0;
}

errint_t lfs_settle_run(struct lfs_verb_context *context, lfs_run_file run, struct lfs_error *err) {
    const struct lfs_command *c = context->command;
    const char *target = context->call->branch;
    struct lfs_branch branch;
    struct lfs_waiting w;
    LFS_TRY(check_options(c, err));
    LFS_TRY(target ? lfs_dataset_branch(context->call->dataset, context->arena, target, &branch, err)
                   : lfs_verb_branch(context, c->words[1], &branch, err));
    LFS_TRY(lfs_waiting_begin(context->call->conflicts, &branch, context->arena, &w, err));
    errint_t result = is_abort(c) ? give_up(context, &w) : run_again(context, &w, run, err);
    lfs_waiting_end(context->call->conflicts, &w, result == 0 && !c->dry_run);
    return result;
}

errint_t lfs_settle_note(const struct lfs_verb_context *context, const char *file, errint_t result,
                         struct lfs_error *err) {
    const struct lfs_verb_call *call = context->call;
    const struct lfs_found *found = context->found;
    struct lfs_stopped stopped = {file, call->line, !call->branch, context->pins, found, NULL};
    bool kept;
    if (result != -ECANCELED || !call->conflicts || !found->items.count || context->command->dry_run)
        return 0;
    LFS_TRY(lfs_waiting_keep(call->conflicts, &stopped, &kept, err));
    if (!kept)
        lfs_answer_text(
            context->answer, "waiting",
            "another command waits on this branch with choices made; these conflicts are not in .conflicts: "
            "continue or abort that one first");
    return 0;
}
