/* SPDX-License-Identifier: Apache-2.0 */
/* Answers: "key: value" lines that people read, grep finds and YAML parsers take. For the files of verbs/. */
#ifndef LFS_VERBS_ANSWER_H
#define LFS_VERBS_ANSWER_H

#include "merge/plan.h"
#include "util/buf.h"

/* "key: value", the value quoted where YAML would take it for something else. */
void lfs_answer_text(struct lfs_buf *out, const char *key, const char *value);
void lfs_answer_number(struct lfs_buf *out, const char *key, uint64_t value);

/* "key:" and the texts of a list (of char) below it; nothing for an empty one. */
void lfs_answer_list(struct lfs_buf *out, const char *key, const struct lfs_list *list);

/* fragments:, rows:, conflicts: (all of them, counted) with what stands in the way, not-listed: (how many of those were too
 * many to name), and notes: of a plan. */
void lfs_answer_plan(struct lfs_buf *out, const struct lfs_plan *plan);

/* "result: error" (or refused, by the code) and "error: <sentence>". Returns the errno, negative. Never "result: conflict":
 * that is said by a plan alone, with its conflicts, so that there is no conflict that names nothing. */
errint_t lfs_answer_error(struct lfs_buf *out, const struct lfs_error *error);

/* The value of the first "key: value" line of an answer, as it stands there; NULL when there is none. */
const char *lfs_answer_find(const char *text, size_t length, const char *key, size_t *value_length);

#endif
