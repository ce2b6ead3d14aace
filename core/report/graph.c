/* SPDX-License-Identifier: Apache-2.0 */
/*
 * .log.graph: every version that the tip holds, merged ones too, newest first and none before those that were made of it,
 * with lanes drawn before the records: '*' is the version, '|' passes by, "|\" a merge takes another lane in, "|/" a lane
 * ends where it left another one. Lines without a tab are drawing alone.
 */
#include <string.h>

#include "report/commits.h"
#include "util/map.h"

struct node {
    struct lfs_report_commit commit;
    struct node *before, *merged;
    unsigned children; /* that are not shown yet */
    struct node *next; /* in the list of all, or of those that can be shown */
};

struct graph {
    struct lfs_report *report;
    struct lfs_report_history history;
    struct lfs_map nodes;  /* "line:version" -> struct node */
    struct lfs_list queue; /* nodes whose parents are still to be found */
    struct lfs_list ready; /* nodes all of whose children are shown; NULL where one was taken out */
    struct node **lanes;   /* what each lane leads to */
    size_t n_lanes, capacity;
};

static errint_t find(struct graph *g, const char *line, uint64_t number, struct node **out, struct lfs_error *err) {
    char *key = lfs_sprintf(g->report->arena, "%s:%" PRIu64, line, number);
    struct node *node = key ? lfs_map_get(&g->nodes, key) : NULL;
    if (!node) {
        node = LFS_NEW(g->report->arena, struct node);
        if (!key || !node)
            return lfs_fail_nomem(err);
        LFS_TRY(lfs_report_commit_read(&g->history, line, number, &node->commit, err));
        if (!lfs_map_put(&g->nodes, key, node) || !lfs_list_add(&g->queue, g->report->arena, node))
            return lfs_fail_nomem(err);
    }
    node->children++;
    *out = node;
    return 0;
}

static errint_t collect(struct graph *g, struct node **tip, struct lfs_error *err) {
    LFS_TRY(find(g, g->report->branch.uuid, g->report->tip->number, tip, err));
    for (size_t i = 0; i < g->queue.count; i++) {
        struct node *node = g->queue.items[i];
        const struct lfs_report_commit *c = &node->commit;
        if (c->before_line && c->before)
            LFS_TRY(find(g, c->before_line, c->before, &node->before, err));
        if (c->merged_line && c->merged)
            LFS_TRY(find(g, c->merged_line, c->merged, &node->merged, err));
    }
    return 0;
}

static errint_t done_with_child(struct graph *g, struct node *node, struct lfs_error *err) {
    if (!node || --node->children > 0)
        return 0;
    return lfs_list_add(&g->ready, g->report->arena, node) ? 0 : lfs_fail_nomem(err);
}

static bool is_newer(const struct lfs_report_commit *a, const struct lfs_report_commit *b) {
    if (a->time.tv_sec != b->time.tv_sec)
        return a->time.tv_sec > b->time.tv_sec;
    return a->time.tv_nsec != b->time.tv_nsec ? a->time.tv_nsec > b->time.tv_nsec : a->number > b->number;
}

/* The newest of those that can be shown; NULL when none is left. */
static struct node *next_node(struct graph *g) {
    size_t best = g->ready.count;
    for (size_t i = 0; i < g->ready.count; i++)
        if (best == g->ready.count ||
            is_newer(&((struct node *)g->ready.items[i])->commit, &((struct node *)g->ready.items[best])->commit))
            best = i;
    if (best == g->ready.count)
        return NULL;
    struct node *node = g->ready.items[best];
    g->ready.items[best] = g->ready.items[--g->ready.count];
    return node;
}

/* --- lanes --- */

static size_t lane_of(const struct graph *g, const struct node *node) {
    size_t i = 0;
    while (i < g->n_lanes && g->lanes[i] != node)
        i++;
    return i;
}

static errint_t add_lane(struct graph *g, struct node *node, struct lfs_error *err) {
    if (g->n_lanes == g->capacity) {
        size_t capacity = g->capacity ? g->capacity * 2 : 8;
        struct node **grown = LFS_NEW_ARRAY(g->report->arena, struct node *, capacity);
        if (!grown)
            return lfs_fail_nomem(err);
        if (g->n_lanes)
            memcpy(grown, g->lanes, g->n_lanes * sizeof *grown);
        g->lanes = grown;
        g->capacity = capacity;
    }
    g->lanes[g->n_lanes++] = node;
    return 0;
}

static void remove_lane(struct graph *g, size_t lane) {
    memmove(g->lanes + lane, g->lanes + lane + 1, (g->n_lanes - lane - 1) * sizeof *g->lanes);
    g->n_lanes--;
}

/* "| | " of the first `n` lanes. */
static void put_lanes(struct lfs_buf *out, size_t n) {
    for (size_t i = 0; i < n; i++)
        lfs_buf_puts(out, "| ");
}

/* A line that joins lanes a < b: "|\" (a merge) or "|/" (a fork); crossing others with "-|-". */
static void put_join(struct graph *g, size_t a, size_t b, char mark) {
    struct lfs_buf *out = g->report->out;
    put_lanes(out, a);
    for (size_t i = a; i < b; i++)
        lfs_buf_puts(out, i + 1 == b ? "|" : "|-");
    lfs_buf_printf(out, "%c", mark);
    for (size_t i = b + 1; i < g->n_lanes; i++)
        lfs_buf_puts(out, " |");
    lfs_line_end(out);
}

static void put_node(struct graph *g, const struct node *node, size_t lane) {
    struct lfs_buf *out = g->report->out;
    put_lanes(out, lane);
    lfs_buf_puts(out, "*");
    for (size_t i = lane + 1; i < g->n_lanes; i++)
        lfs_buf_puts(out, " |");
    lfs_report_commit_put(&node->commit, out);
}

/* Lanes that came to the same version become one before it is shown. */
static void join_lanes(struct graph *g, const struct node *node) {
    size_t first = lane_of(g, node);
    for (size_t i = g->n_lanes; i-- > first + 1;)
        if (g->lanes[i] == node) {
            put_join(g, first, i, '/');
            remove_lane(g, i);
        }
}

static errint_t show(struct graph *g, struct node *node, struct lfs_error *err) {
    join_lanes(g, node);
    size_t lane = lane_of(g, node);
    put_node(g, node, lane);
    if (node->before)
        g->lanes[lane] = node->before;
    else
        remove_lane(g, lane);
    if (node->merged) {
        LFS_TRY(add_lane(g, node->merged, err));
        if (node->before)
            put_join(g, lane, g->n_lanes - 1, '\\');
    }
    LFS_TRY(done_with_child(g, node->before, err));
    return done_with_child(g, node->merged, err);
}

errint_t lfs_report_graph(struct lfs_report *report, struct lfs_error *err) {
    struct graph g = {.report = report};
    struct node *tip;
    lfs_report_history_init(&g.history, report);
    lfs_map_init(&g.nodes, report->arena);
    lfs_buf_printf(report->out, "# graph\t%s\n", lfs_report_commit_header);
    if (!*report->branch.uuid)
        return lfs_fail(err, LFS_E_UNSUPPORTED,
                        "branch %s has no identifier (it was made by an old Lance), so its history cannot be told",
                        report->branch.name);
    LFS_TRY(collect(&g, &tip, err));
    LFS_TRY(add_lane(&g, tip, err));
    LFS_TRY(done_with_child(&g, tip, err));
    for (struct node *node; (node = next_node(&g));)
        LFS_TRY(show(&g, node, err));
    return lfs_buf_check(report->out, err);
}
