/* SPDX-License-Identifier: Apache-2.0 */
#include "merge/replaced.h"

#include "merge/choices.h"
#include "merge/classes.h"
#include "merge/report.h"
#include "util/cleanup.h"
#include "util/map.h"

struct looked {
    bool changed;  /* other fragments, files or deletion vectors than the base */
    bool rows;     /* likewise, and not by compactions alone */
    bool replaced; /* by an overwrite or a restore, which took fragments of the base away */
};

static const LanceFragment *mine(const struct lfs_match *x, enum lfs_side side) {
    return side == LFS_OURS ? x->ours : x->theirs;
}

static bool has_changed(const struct lfs_match *matches, size_t n, enum lfs_side side, bool *lost) {
    bool changed = false;
    for (size_t i = 0; i < n; i++) {
        const LanceFragment *base = matches[i].base, *f = mine(&matches[i], side);
        *lost |= base && !f;
        changed |= (base != NULL) != (f != NULL) ||
                   (f && (!lfs_match_same_files(base, f) || !lfs_match_same_deletions(base, f)));
    }
    return changed;
}

static errint_t look(const struct lfs_merge_input *in, const struct lfs_match *matches, size_t n, enum lfs_side side,
                     struct looked *out, struct lfs_error *err) {
    bool lost = false;
    *out = (struct looked){.changed = has_changed(matches, n, side, &lost)};
    if (lost)
        LFS_TRY(lfs_side_was_replaced(in, side, &out->replaced, err));
    return 0;
}

static const char *did(const struct looked *side) { return side->replaced ? "replaced" : "changed"; }

static errint_t report(const struct lfs_merge_input *in, const struct looked *ours, const struct looked *theirs,
                       struct lfs_plan *plan, enum lfs_replacement *out, enum lfs_side *side, struct lfs_error *err) {
    struct lfs_conflict c = LFS_CONFLICT("replaced", "table", "there", did(ours), did(theirs));
    uint64_t states[] = {in->base->number, in->ours->number, in->theirs->number};
    enum lfs_strategy takes;
    c.print = lfs_hash(states, sizeof states, 1); /* all that a side did is dropped: not what it does later */
    LFS_TRY(lfs_settle(&in->policy, in->policy.rows, plan, &c, &takes, err));
    bool source = takes == LFS_STRATEGY_SOURCE;
    *out = takes == LFS_STRATEGY_FAIL ? LFS_REPLACED_CLASH : LFS_REPLACED_WHOLE;
    *side = source ? LFS_THEIRS : LFS_OURS;
    return takes == LFS_STRATEGY_FAIL
               ? 0
               : lfs_report_note(plan, err,
                                 "the table was replaced: what %s did to its rows and columns is dropped as a whole",
                                 source ? in->ours_name : in->theirs_name);
}

errint_t lfs_replaced_check(const struct lfs_merge_input *in, const struct lfs_match *matches, size_t n,
                            struct lfs_plan *plan, enum lfs_replacement *out, enum lfs_side *side,
                            struct lfs_error *err) {
    struct looked ours, theirs;
    *out = LFS_NOT_REPLACED;
    LFS_TRY(look(in, matches, n, LFS_OURS, &ours, err));
    LFS_TRY(look(in, matches, n, LFS_THEIRS, &theirs, err));
    if (!ours.replaced && !theirs.replaced)
        return 0;
    *side = theirs.replaced ? LFS_THEIRS : LFS_OURS;
    struct looked *other = theirs.replaced ? &ours : &theirs;
    *out = LFS_REPLACED_ONE;
    if (!other->changed)
        return 0;
    *out = LFS_REPLACED_WHOLE; /* a compaction changes nothing that a reader sees */
    LFS_TRY(lfs_side_changed_rows(in, theirs.replaced ? LFS_OURS : LFS_THEIRS, &other->rows, err));
    return other->rows ? report(in, &ours, &theirs, plan, out, side, err) : 0;
}
