/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Choices: what somebody said about single units in conflict (interface.md section 3, "settling conflicts one by one"). A
 * choice goes before the strategy of its unit's class. It is for one unit, and for what both sides made of it when it was
 * made: where that has changed since, the unit is in conflict again, as if nobody had chosen.
 */
#ifndef LFS_MERGE_CHOICES_H
#define LFS_MERGE_CHOICES_H

#include "merge/merge3.h"
#include "util/map.h"

struct lfs_choice {
    const char *key; /* of the conflict */
    uint64_t print;  /* likewise */
    enum lfs_strategy takes;
    bool met; /* by a plan: the unit was in conflict, and unchanged since the choice */
};

struct lfs_choices {
    struct lfs_map by_key; /* of struct lfs_choice */
};

/* Where a unit that both sides changed goes: `*takes` is SOURCE (theirs), DEST (ours), or FAIL where neither a choice nor the
 * strategy of its class decides, or the side that they say cannot be taken: it is then reported as a conflict. `conflict` is
 * completed; where its key is not given it is made of kind and unit, where its print is not, of the three texts. */
errint_t lfs_settle(const struct lfs_policy *policy, enum lfs_strategy strategy, struct lfs_plan *plan,
                    struct lfs_conflict *conflict, enum lfs_strategy *takes, struct lfs_error *err);
/* The first part of it alone: the choice for the unit, else `strategy`. Nothing is reported. */
errint_t lfs_choose(const struct lfs_policy *policy, enum lfs_strategy strategy, struct lfs_plan *plan,
                    struct lfs_conflict *conflict, enum lfs_strategy *takes, struct lfs_error *err);
/* And the last: the unit went the way of its choice. */
errint_t lfs_settled(struct lfs_plan *plan, const struct lfs_conflict *conflict, struct lfs_error *err);

/*
 * Updates that are to be taken back from `side` since their rows lose (section 4, point 4). That is done with whole commits, so
 * each row that such a commit took away must be one that loses, by a choice or by the strategy of rows, and it must have
 * inserted none. NULL in *why when it is so, else a sentence.
 */
errint_t lfs_choices_cover(const struct lfs_merge_input *input, enum lfs_side side, const struct lfs_list *transactions,
                           struct lfs_arena *arena, const char **why, struct lfs_error *err);
/* What a choice for a row is for: the row as such, or a row that has no value for a new column of the other side. */
enum lfs_row_choice { LFS_CHOICE_ROW, LFS_CHOICE_BARE };
/* The key of a row in the fragment of a data file. In `arena`; NULL when memory is short. */
const char *lfs_choice_row_key(struct lfs_arena *arena, enum lfs_row_choice what, const char *path, uint32_t row);
/* The choice for it, or NULL. */
struct lfs_choice *lfs_choice_of_row(const struct lfs_choices *choices, enum lfs_row_choice what, const char *path,
                                     uint32_t row);

#endif
