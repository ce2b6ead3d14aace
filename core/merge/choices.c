/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/choices.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "merge/match.h"
#include "merge/report.h"
#include "util/bitmap.h"
#include "util/cleanup.h"
#include "util/limits.h"

static uint64_t add_text(uint64_t hash, const char *text) { return lfs_hash(text, strlen(text), hash); }

static errint_t identify(struct lfs_plan *plan, struct lfs_conflict *c, struct lfs_error *err) {
    if (!c->unit || !c->base || !c->ours || !c->theirs)
        return lfs_fail_nomem(err);
    if (!c->key)
        c->key = lfs_sprintf(plan->arena, "%s\t%s", c->kind, c->unit);
    if (!c->print)
        c->print = add_text(add_text(add_text(1, c->base), c->ours), c->theirs);
    return c->key ? 0 : lfs_fail_nomem(err);
}

errint_t lfs_choose(const struct lfs_policy *policy, enum lfs_strategy strategy, struct lfs_plan *plan,
                    struct lfs_conflict *c, enum lfs_strategy *takes, struct lfs_error *err) {
    *takes = strategy;
    LFS_TRY(identify(plan, c, err));
    struct lfs_choice *choice = policy->choices ? lfs_map_get(&policy->choices->by_key, c->key) : NULL;
    if (choice && choice->print == c->print) {
        choice->met = true;
        *takes = c->chosen = choice->takes;
    }
    return 0;
}

errint_t lfs_settled(struct lfs_plan *plan, const struct lfs_conflict *c, struct lfs_error *err) {
    struct lfs_conflict *copy = c->chosen ? lfs_memdup(plan->arena, c, sizeof *copy) : NULL;
    return !c->chosen || lfs_list_add(&plan->settled, plan->arena, copy) ? 0 : lfs_fail_nomem(err);
}

errint_t lfs_settle(const struct lfs_policy *policy, enum lfs_strategy strategy, struct lfs_plan *plan,
                    struct lfs_conflict *c, enum lfs_strategy *takes, struct lfs_error *err) {
    LFS_TRY(lfs_choose(policy, strategy, plan, c, takes, err));
    if ((*takes == LFS_STRATEGY_SOURCE && c->no_theirs) || (*takes == LFS_STRATEGY_DEST && c->no_ours))
        *takes = LFS_STRATEGY_FAIL;
    return *takes == LFS_STRATEGY_FAIL ? lfs_report_conflict(plan, c, err) : lfs_settled(plan, c, err);
}

/* --- rows --- */

#define ROW_KEY "%s\t%s\t%" PRIu32

static const char *const row_words[] = {"row", "bare"};

const char *lfs_choice_row_key(struct lfs_arena *arena, enum lfs_row_choice what, const char *path, uint32_t row) {
    return lfs_sprintf(arena, ROW_KEY, row_words[what], path, row);
}

/* There may be very many rows, and few choices: no memory is taken for each row. */
struct lfs_choice *lfs_choice_of_row(const struct lfs_choices *choices, enum lfs_row_choice what, const char *path,
                                     uint32_t row) {
    char key[PATH_MAX];
    int n = choices ? snprintf(key, sizeof key, ROW_KEY, row_words[what], path, row) : -1;
    return n > 0 && (size_t)n < sizeof key ? lfs_map_get(&choices->by_key, key) : NULL;
}

struct cover {
    const struct lfs_merge_input *input;
    enum lfs_side side;
    struct lfs_arena *arena;
    const char **why;
    struct lfs_error *err;
};

static errint_t say(struct cover *c, const char *why) {
    *c->why = why;
    return why ? 0 : lfs_fail_nomem(c->err);
}

static const char *label(struct cover *c, const struct lfs_step *step) {
    return lfs_sprintf(c->arena, "version %" PRIu64 " of %s", step->after->number,
                       c->side == LFS_OURS ? c->input->ours_name : c->input->theirs_name);
}

/* What was chosen for a row of a fragment by any of its files; FAIL: nothing. */
static enum lfs_strategy choice_of(const struct cover *c, const LanceFragment *f, uint32_t row) {
    for (size_t i = 0; i < 2 * f->n_files; i++) {
        const char *path = f->files[i / 2]->path ? f->files[i / 2]->path : "";
        const struct lfs_choice *choice =
            lfs_choice_of_row(c->input->policy.choices, i % 2 ? LFS_CHOICE_BARE : LFS_CHOICE_ROW, path, row);
        if (choice && choice->met)
            return choice->takes;
    }
    return LFS_STRATEGY_FAIL;
}

static errint_t check_row(struct cover *c, const struct lfs_step *step, const LanceFragment *f, uint32_t row) {
    enum lfs_strategy chosen = choice_of(c, f, row),
                      losing = c->side == LFS_OURS ? LFS_STRATEGY_SOURCE : LFS_STRATEGY_DEST;
    if (chosen == losing || (!chosen && c->input->policy.rows == losing))
        return 0;
    const char *which = label(c, step), *other = c->side == LFS_OURS ? "ours" : "theirs";
    return say(c, !which ? NULL
                         : lfs_sprintf(c->arena,
                                       "%s updated it in one commit with row %" PRIu32 " of fragment %" PRIu64
                                       ", %s: a commit's update goes as a whole. Choose %s, or decide for all rows "
                                       "with rows=%s",
                                       which, row, f->id,
                                       chosen ? "for which the other side is chosen" : "which is in no conflict", other,
                                       c->side == LFS_OURS ? "source-wins" : "dest-wins"));
}

/* The rows of one fragment that the commit took away; their number is added to *n. */
static errint_t check_fragment(struct cover *c, const struct lfs_step *step, const LanceFragment *before, uint64_t *n) {
    const struct lfs_merge_reader *r = c->input->reader;
    const LanceFragment *after = lfs_match_find(step->after->manifest.message, lfs_match_name(before));
    AUTO_BITMAP *then = NULL;
    AUTO_BITMAP *now = NULL;
    if (after && lfs_match_same_deletions(before, after))
        return 0;
    LFS_TRY(r->deletions(r->context, step->before, before, &then, c->err));
    if (after)
        LFS_TRY(r->deletions(r->context, step->after, after, &now, c->err));
    else
        now = roaring_bitmap_from_range(0, before->physical_rows, 1);
    if (!now)
        return lfs_fail_nomem(c->err);
    roaring_bitmap_andnot_inplace(now, then);
    *n += roaring_bitmap_get_cardinality(now);
    roaring_uint32_iterator_t *it = roaring_create_iterator(now);
    errint_t result = it ? 0 : lfs_fail_nomem(c->err);
    for (; result == 0 && !*c->why && it->has_value; roaring_advance_uint32_iterator(it))
        result = check_row(c, step, before, it->current_value);
    if (it)
        roaring_free_uint32_iterator(it);
    return result;
}

static errint_t check_step(struct cover *c, const struct lfs_step *step) {
    const LanceManifest *before = step->before->manifest.message, *after = step->after->manifest.message;
    uint64_t taken = 0, made = 0;
    for (size_t i = 0; i < before->n_fragments && !*c->why; i++)
        LFS_TRY(check_fragment(c, step, before->fragments[i], &taken));
    for (size_t i = 0; i < after->n_fragments; i++)
        if (!lfs_match_find(before, lfs_match_name(after->fragments[i])))
            made += after->fragments[i]->physical_rows;
    enum lfs_strategy losing = c->side == LFS_OURS ? LFS_STRATEGY_SOURCE : LFS_STRATEGY_DEST;
    if (*c->why || made <= taken || c->input->policy.rows == losing)
        return 0;
    const char *which = label(c, step);
    return say(c, which ? lfs_sprintf(c->arena,
                                      "%s inserted rows too, and a commit's update goes as a whole: choose %s, or "
                                      "decide for all rows with rows=%s",
                                      which, c->side == LFS_OURS ? "ours" : "theirs",
                                      c->side == LFS_OURS ? "source-wins" : "dest-wins")
                        : NULL);
}

static bool is_listed(const struct lfs_list *transactions, const struct lfs_step *step) {
    const LanceTransaction *t = step->after->manifest.transaction;
    for (size_t i = 0; t && t->uuid && i < transactions->count; i++)
        if (strcmp(transactions->items[i], t->uuid) == 0)
            return true;
    return false;
}

errint_t lfs_choices_cover(const struct lfs_merge_input *input, enum lfs_side side, const struct lfs_list *transactions,
                           struct lfs_arena *arena, const char **why, struct lfs_error *err) {
    const struct lfs_history *history;
    struct cover c = {input, side, arena, why, err};
    *why = NULL;
    if (!input->policy.choices)
        return 0; /* the strategy covers all rows */
    LFS_TRY(input->reader->history(input->reader->context, side, &history, err));
    for (size_t i = 0; i < history->count && !*why; i++)
        if (is_listed(transactions, &history->steps[i]) && history->steps[i].before)
            LFS_TRY(check_step(&c, &history->steps[i]));
    return 0;
}
