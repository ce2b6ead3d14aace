/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/gate.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "util/cleanup.h"
#include "verbs/answer.h"

void lfs_gate_release(struct lfs_gate *gate) {
    json_decref(gate->facts);
    lfs_buf_free(&gate->said);
    gate->facts = NULL;
}

static bool is_wanted(const struct lfs_verb_context *context) { return context->call->hooks != NULL; }

/* --- JSON; memory that is short shows at the end, as a missing object --- */

static json_t *text(const char *s, size_t length) {
    json_t *out = json_stringn(s, length);
    char *ascii = out ? NULL : strndup(s, length);
    if (!ascii)
        return out;
    for (char *p = ascii; *p; p++)
        *p = *p & 0x80 ? '?' : *p;
    out = json_string(ascii);
    free(ascii);
    return out;
}

static void set_text(json_t *object, const char *key, const char *value) {
    if (value)
        json_object_set_new(object, key, text(value, strlen(value)));
}

static void set_number(json_t *object, const char *key, uint64_t value) {
    json_object_set_new(object, key, json_integer((json_int_t)value));
}

static json_t *counts(const char *const *keys, const uint64_t *values, size_t n) {
    json_t *out = json_object();
    for (size_t i = 0; i < n; i++)
        set_number(out, keys[i], values[i]);
    return out;
}

static const char *const changes[] = {"added", "removed", "changed"};

/* What one version would be. */
static void set_plan(json_t *o, const struct lfs_job *job) {
    const struct lfs_plan *p = &job->plan;
    uint64_t fragments[] = {p->fragments_added, p->fragments_removed, p->fragments_changed_count},
             rows[] = {p->rows_added, p->rows_removed};
    json_t *notes = json_array();
    set_text(o, "source", lfs_job_source_label(job));
    set_text(o, "base", lfs_job_base_label(job));
    set_text(o, "result", lfs_job_outcome(job));
    json_object_set_new(o, "fragments", counts(changes, fragments, 3));
    json_object_set_new(o, "rows", counts(changes, rows, 2));
    for (size_t i = 0; i < p->notes.count; i++)
        json_array_append_new(notes, text(p->notes.items[i], strlen(p->notes.items[i])));
    json_object_set_new(o, "notes", notes);
}

static json_t *begin(const struct lfs_verb_context *context, const char *operation, const char *branch, uint64_t tip) {
    const struct lfs_command *c = context->command;
    json_t *o = json_object(), *target = json_object(), *properties = json_object();
    set_text(o, "verb", context->verb);
    set_text(o, "command", context->call->line);
    set_text(o, "operation", operation);
    set_text(target, "branch", branch);
    set_number(target, "version", tip);
    json_object_set_new(o, "target", target);
    set_number(o, "version", tip + 1);
    set_text(o, "message", c->message);
    for (size_t i = 0; i < c->n_properties; i++)
        set_text(properties, c->properties[i].key, c->properties[i].value);
    if (c->n_properties)
        json_object_set_new(o, "properties", properties);
    else
        json_decref(properties);
    return o;
}

/* --- asking --- */

/* `facts` is taken over. */
static errint_t ask(struct lfs_verb_context *context, json_t *facts, const char *target, const char *source,
                    struct lfs_error *err) {
    struct lfs_gate *gate = context->gate;
    struct lfs_verb_move move = {.facts = facts, .target = target, .source = source, .cancel = context->call->cancel};
    json_decref(gate->facts);
    gate->facts = NULL;
    lfs_buf_clear(&gate->said); /* of the plan that was given up */
    errint_t result =
        facts ? context->call->hooks->before(context->call->hooks->data, &move, &gate->said, err) : lfs_fail_nomem(err);
    gate->target = lfs_strdup(context->arena, target);
    gate->source = source ? lfs_strdup(context->arena, source) : NULL;
    if (result < 0 || !gate->target)
        json_decref(facts);
    else
        gate->facts = facts;
    return result < 0 || gate->target ? result : lfs_fail_nomem(err);
}

/* The words of a preview's name behind its source: what changes the result. */
static errint_t add_policy(const struct lfs_command *c, struct lfs_arena *arena, struct lfs_buf *out,
                           struct lfs_error *err) {
    static const char *const words[] = {[LFS_STRATEGY_SOURCE] = "source-wins", [LFS_STRATEGY_DEST] = "dest-wins"};
    static const char *const names[] = {"rows", "columns", "schema", "config", "indexes"};
    const struct lfs_policy *p = &c->policy;
    enum lfs_strategy all[] = {p->rows, p->columns, p->schema, p->config, p->indexes};
    bool same = true;
    for (size_t i = 1; i < 5; i++)
        same &= all[i] == all[0];
    if (same && all[0] != LFS_STRATEGY_FAIL)
        lfs_buf_printf(out, ",strategy=%s", words[all[0]]);
    for (size_t i = 0; i < 5 && !same; i++)
        if (all[i] != LFS_STRATEGY_FAIL)
            lfs_buf_printf(out, ",%s=%s", names[i], words[all[i]]);
    if (p->only)
        lfs_buf_printf(out, ",only=%s", lfs_command_classes(p->only, arena));
    if (p->strict_field_ids)
        lfs_buf_puts(out, ",fieldids=strict");
    if (c->base)
        lfs_buf_printf(out, ",base=%s", c->base);
    lfs_buf_add(out, "", 1);
    return lfs_buf_check(out, err);
}

errint_t lfs_gate_ask_job(const struct lfs_job *job, struct lfs_error *err) {
    struct lfs_verb_context *context = job->context;
    LFS_AUTO_BUF preview = {0};
    const char *source = lfs_job_source_label(job), *name = NULL;
    if (!is_wanted(context) || context->gate->whole)
        return 0;
    if (source && job->spec->is_merge && job->target.version->number == job->tip) {
        lfs_buf_puts(&preview, source);
        LFS_TRY(add_policy(context->command, job->arena, &preview, err));
        name = (const char *)preview.data;
    }
    json_t *facts = begin(context, job->spec->operation, job->target.branch.name, job->target.version->number);
    set_plan(facts, job);
    return ask(context, facts, job->target.branch.name, name, err);
}

/* The jobs one by one, and what they come to together. */
static void set_steps(json_t *facts, struct lfs_job *const *jobs, size_t n) {
    uint64_t fragments[3] = {0}, rows[2] = {0};
    json_t *steps = json_array();
    for (size_t i = 0; i < n; i++) {
        const struct lfs_plan *p = &jobs[i]->plan;
        json_t *step = json_object();
        set_plan(step, jobs[i]);
        json_array_append_new(steps, step);
        fragments[0] += p->fragments_added;
        fragments[1] += p->fragments_removed;
        fragments[2] += p->fragments_changed_count;
        rows[0] += p->rows_added;
        rows[1] += p->rows_removed;
    }
    json_object_set_new(facts, "fragments", counts(changes, fragments, 3));
    json_object_set_new(facts, "rows", counts(changes, rows, 2));
    json_object_set_new(facts, "steps", steps);
}

errint_t lfs_gate_ask_series(struct lfs_verb_context *context, struct lfs_job *const *jobs, size_t n,
                             const char *source, struct lfs_error *err) {
    if (!is_wanted(context) || n == 0)
        return 0;
    json_t *facts = begin(context, jobs[0]->spec->operation, jobs[0]->target.branch.name, jobs[0]->tip);
    set_text(facts, "source", source);
    set_text(facts, "base", lfs_job_base_label(jobs[0]));
    set_text(facts, "result", lfs_job_outcome(jobs[n - 1]));
    set_steps(facts, jobs, n);
    LFS_TRY(ask(context, facts, jobs[0]->target.branch.name, NULL, err));
    context->gate->whole = true;
    return 0;
}

errint_t lfs_gate_ask_move(struct lfs_verb_context *context, const struct lfs_gate_move *move, struct lfs_error *err) {
    const char *name = move->target->branch.name;
    if (!is_wanted(context))
        return 0;
    json_t *facts = begin(context, move->line ? LFS_OPERATION_UNDO_REBASE : LFS_OPERATION_REBASE, name,
                          move->target->version->number);
    json_object_del(facts, "version");
    set_text(facts, "source", move->source);
    set_text(facts, "onto", move->onto);
    set_text(facts, "line", move->line);
    set_text(facts, "result", move->line ? "undone" : move->n_jobs ? "rebased" : "fast-forward");
    if (!move->line)
        set_steps(facts, move->jobs, move->n_jobs);
    LFS_TRY(ask(context, facts, name, NULL, err));
    context->gate->whole = true;
    return 0;
}

errint_t lfs_gate_ask_rehome(struct lfs_verb_context *context, const struct lfs_state *target, struct lfs_error *err) {
    if (!is_wanted(context))
        return 0;
    json_t *facts = begin(context, "rehome", target->branch.name, target->version->number);
    set_text(facts, "result", "rehomed");
    return ask(context, facts, target->branch.name, NULL, err);
}

/* --- telling --- */

static void set_answered(json_t *facts, const struct lfs_buf *answer, size_t start, const char *key) {
    size_t length;
    const char *value = lfs_answer_find((const char *)answer->data + start, answer->length - start, key, &length);
    char *end, number[24];
    json_object_del(facts, key);
    if (!value)
        return;
    if (strcmp(key, "version") == 0 && length < sizeof number) {
        memcpy(number, value, length);
        number[length] = 0;
        set_number(facts, key, strtoull(number, &end, 10));
        return;
    }
    if (length >= 2 && value[0] == '"') { /* a list of numbers and dots: nothing in it is escaped */
        value++;
        length -= 2;
    }
    json_object_set_new(facts, key, text(value, length));
}

/* Lines of what hooks said, below "hook:". */
static void add_said(struct lfs_verb_context *context) {
    struct lfs_gate *gate = context->gate;
    struct lfs_list lines = {0};
    lfs_buf_add(&gate->said, "", 1);
    if (gate->said.failed)
        return;
    for (char *line = (char *)gate->said.data; *line;) {
        size_t n = strcspn(line, "\n");
        char *next = line + n + (line[n] == '\n');
        line[n] = 0;
        if (n && !lfs_list_add(&lines, context->arena, line))
            return;
        line = next;
    }
    lfs_answer_list(context->answer, "hook", &lines);
}

void lfs_gate_close(struct lfs_verb_context *context) {
    static const char *const keys[] = {"result", "version", "versions", "transaction"};
    struct lfs_gate *gate = context->gate;
    const struct lfs_buf *answer = context->answer;
    if (gate->facts && answer->data && !answer->failed) {
        struct lfs_verb_move move = {.facts = gate->facts, .target = gate->target, .source = gate->source};
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
            set_answered(gate->facts, answer, context->answer_start, keys[i]);
        json_object_set_new(
            gate->facts, "answer",
            text((const char *)answer->data + context->answer_start, answer->length - context->answer_start));
        context->call->hooks->after(context->call->hooks->data, &move, &gate->said);
    }
    add_said(context);
}
