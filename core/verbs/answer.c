/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/answer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A plain YAML scalar on one line, and no number, null or boolean in disguise. */
static bool is_plain(const char *text) {
    size_t length = strlen(text);
    if (length == 0 || strchr(" -?:,[]{}#&*!|>'\"%@`~", text[0]) || text[length - 1] == ' ' || text[length - 1] == ':')
        return false;
    for (const unsigned char *p = (const unsigned char *)text; *p; p++)
        if (*p < 0x20 || *p == 0x7f || (*p == ':' && p[1] == ' ') || (*p == '#' && p > (const unsigned char *)text && p[-1] == ' '))
            return false;
    return true;
}

static void put_value(struct lfs_buf *out, const char *text) {
    if (is_plain(text)) {
        lfs_buf_puts(out, text);
        return;
    }
    lfs_buf_puts(out, "\"");
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        if (*p == '"' || *p == '\\')
            lfs_buf_printf(out, "\\%c", *p);
        else if (*p < 0x20 || *p == 0x7f)
            lfs_buf_printf(out, "\\x%02x", *p);
        else
            lfs_buf_add(out, p, 1);
    }
    lfs_buf_puts(out, "\"");
}

void lfs_answer_text(struct lfs_buf *out, const char *key, const char *value) {
    lfs_buf_printf(out, "%s: ", key);
    put_value(out, value);
    lfs_buf_puts(out, "\n");
}

void lfs_answer_number(struct lfs_buf *out, const char *key, uint64_t value) {
    lfs_buf_printf(out, "%s: %" PRIu64 "\n", key, value);
}

void lfs_answer_list(struct lfs_buf *out, const char *key, const struct lfs_list *list) {
    if (list->count)
        lfs_buf_printf(out, "%s:\n", key);
    for (size_t i = 0; i < list->count; i++) {
        lfs_buf_puts(out, "  - ");
        put_value(out, list->items[i]);
        lfs_buf_puts(out, "\n");
    }
}

/* A value may be long; .conflicts shows more of it. */
static void put_cut(struct lfs_buf *out, const char *key, const char *text) {
    char cut[201];
    int n = snprintf(cut, sizeof cut, "%s", text);
    if (n >= (int)sizeof cut) /* not within a character */
        for (n = sizeof cut - 1; n > 0 && (text[n] & 0xc0) == 0x80; n--)
            cut[n - 1] = 0;
    lfs_answer_text(out, key, cut);
}

static void put_conflict(struct lfs_buf *out, const struct lfs_conflict *c) {
    const char *why = c->stuck                              ? c->stuck
                      : c->chosen == LFS_STRATEGY_SOURCE ? c->no_theirs
                                                           : c->no_ours;
    lfs_answer_text(out, "  - kind", c->kind);
    lfs_answer_text(out, "    unit", c->unit);
    put_cut(out, "    base", c->base);
    put_cut(out, "    ours", c->ours);
    put_cut(out, "    theirs", c->theirs);
    if (c->chosen)
        lfs_answer_text(out, "    choice", c->chosen == LFS_STRATEGY_SOURCE ? "theirs" : "ours");
    if (c->chosen && why)
        lfs_answer_text(out, "    reason", why);
}

void lfs_answer_plan(struct lfs_buf *out, const struct lfs_plan *plan) {
    if (plan->outcome != LFS_OUTCOME_CONFLICT && plan->outcome != LFS_OUTCOME_REFUSED) {
        lfs_buf_printf(out, "fragments: +%" PRIu64 " -%" PRIu64 " ~%" PRIu64 "\n", plan->fragments_added,
                       plan->fragments_removed, plan->fragments_changed_count);
        lfs_buf_printf(out, "rows: +%" PRIu64 " -%" PRIu64 "\n", plan->rows_added, plan->rows_removed);
    }
    lfs_answer_number(out, "conflicts", plan->n_conflicts);
    if (plan->conflicts.count)
        lfs_buf_puts(out, "conflict:\n");
    for (size_t i = 0; i < plan->conflicts.count; i++)
        put_conflict(out, plan->conflicts.items[i]);
    if (plan->conflicts.count < plan->n_conflicts)
        lfs_buf_printf(out, "not-listed: %zu\n", plan->n_conflicts - plan->conflicts.count);
    lfs_answer_list(out, "notes", &plan->notes);
}

errint_t lfs_answer_error(struct lfs_buf *out, const struct lfs_error *error) {
    bool refused = error->code == LFS_E_UNSUPPORTED || error->code == LFS_E_CONFLICT;
    lfs_answer_text(out, "result", refused ? "refused" : "error");
    lfs_answer_text(out, "error", error->message);
    return -error->sys_errno;
}

const char *lfs_answer_find(const char *text, size_t length, const char *key, size_t *value_length) {
    size_t n = strlen(key);
    const char *end = text + length;
    for (const char *line = text; line < end;) {
        const char *newline = memchr(line, '\n', (size_t)(end - line)), *stop = newline ? newline : end;
        if ((size_t)(stop - line) >= n + 2 && strncmp(line, key, n) == 0 && line[n] == ':' && line[n + 1] == ' ') {
            *value_length = (size_t)(stop - line) - n - 2;
            return line + n + 2;
        }
        line = stop + 1;
    }
    return NULL;
}
