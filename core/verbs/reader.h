/* SPDX-License-Identifier: Apache-2.0 */
/* The reader that merge3 is handed: deletion files from wherever they lie, and each side's history, read when asked. */
#ifndef LFS_VERBS_READER_H
#define LFS_VERBS_READER_H

#include "merge/merge3.h"
#include "merge/virtual.h"
#include "table/deletions.h"
#include "verbs/verb.h"

/* Where a state stands: in one version, or (a virtual one) in several that were merged, ours of them first. */
struct lfs_standing {
    const struct lfs_version *shown;
    const struct lfs_state *states;
    size_t n;
};

struct lfs_reader {
    struct lfs_merge_reader reader;
    const struct lfs_lines *lines;
    const struct lfs_state *ours, *theirs;
    const struct lfs_state *also; /* ours is virtual, merged of `ours` and these: each has a history. May be NULL. */
    size_t n_also;
    struct lfs_vector since[2];    /* ours, theirs: where each history begins */
    uint64_t base;                  /* the base's number, where it lies on theirs' line; else 0 */
    bool backward;                  /* theirs is an older version of the base's line */
    struct lfs_standing standing[3];       /* by enum lfs_side; the base's is empty where nobody asks for columns */
    const struct lfs_vector *base_vector; /* all that the base holds; NULL where no vector tells that */
    const struct lfs_virtual *const *virtual_versions; /* states that no file holds; may be NULL */
    size_t n_virtual;
    struct lfs_history history[3]; /* by enum lfs_side */
    bool has_history[3];
};

/* Everything is borrowed; `out` must not move afterwards. `ours_vector` and `base_vector`: what the two states hold; the
 * history of ours begins where they part, that of theirs at the base. */
errint_t lfs_reader_init(struct lfs_reader *out, const struct lfs_lines *lines, const struct lfs_state *ours,
                         const struct lfs_state *theirs, const struct lfs_vector *ours_vector,
                         const struct lfs_vector *base_vector, struct lfs_error *err);
/* Tell the reader what it needs for histories beside a merge's: the base's version, if it lies on theirs' line; `backward`
 * when theirs is an older version of that line, and `to` its vector. */
errint_t lfs_reader_on_their_line(struct lfs_reader *reader, uint64_t base, bool backward, const struct lfs_vector *to,
                                  struct lfs_error *err);
/* And for the origins of columns: where the base stands, and what it holds. Borrowed. */
void lfs_reader_know_base(struct lfs_reader *reader, const struct lfs_standing *standing, const struct lfs_vector *vector);
void lfs_reader_release(struct lfs_reader *reader);

#endif
