/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Version vectors (merge-semantics section 1): which versions of which lines a state holds, {line -> highest version}.
 * A line is "main" or a branch's uuid. As text, "main:3,<uuid>:5", it stands in a manifest's table_metadata. Pure.
 */
#ifndef LFS_FORMAT_VECTOR_H
#define LFS_FORMAT_VECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/arena.h"
#include "util/buf.h"
#include "util/error.h"

#define LFS_KEY_PREFIX "lancefs."        /* keys of ours; never units of a merge */
#define LFS_KEY_VECTOR "lancefs.vector"  /* in table_metadata */
#define LFS_KEY_PICKED "lancefs.picked"  /* in table_metadata: picks that no vector covers */
#define LFS_KEY_PARTIAL "lancefs.partial" /* in table_metadata: states whose rows alone were taken over, likewise */

struct lfs_vector_entry {
    const char *line;
    uint64_t version; /* > 0: an absent line is version 0 */
};

struct lfs_vector {
    struct lfs_arena *arena;
    struct lfs_vector_entry *entries; /* sorted by line (bytes), each line once */
    size_t count, capacity;
};

void lfs_vector_init(struct lfs_vector *vector, struct lfs_arena *arena);

/* 0 when the line is absent. */
uint64_t lfs_vector_get(const struct lfs_vector *vector, const char *line);
/* Hold at least that version of a line. The line's text is copied. */
errint_t lfs_vector_raise(struct lfs_vector *vector, const char *line, uint64_t version, struct lfs_error *err);
/* vector := pointwise maximum of both. */
errint_t lfs_vector_join(struct lfs_vector *vector, const struct lfs_vector *other, struct lfs_error *err);
/* out (fresh) := pointwise minimum of both. */
errint_t lfs_vector_meet(const struct lfs_vector *a, const struct lfs_vector *b, struct lfs_vector *out,
                         struct lfs_error *err);
/* Does `b` hold everything that `a` holds? */
bool lfs_vector_within(const struct lfs_vector *a, const struct lfs_vector *b);

/* Joins the text into `vector`; LFS_E_CORRUPT when it is not such a text (`what` names where it stood). */
errint_t lfs_vector_parse(struct lfs_vector *vector, const char *text, const char *what, struct lfs_error *err);
void lfs_vector_print(const struct lfs_vector *vector, struct lfs_buf *out);

/* lancefs.picked (and lancefs.partial), "<line>:<version>,...": commits that a state holds by themselves. Text that is not
 * of this form holds nothing. */
bool lfs_picked_has(const char *picked, const char *line, uint64_t version);
/* Append to `out` (comma-separated) what `picked` has, `out` has not, and `vector` does not cover. */
void lfs_picked_join(struct lfs_buf *out, const char *picked, const struct lfs_vector *vector);

#endif
