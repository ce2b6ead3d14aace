/* SPDX-License-Identifier: Apache-2.0 */
#include "fuse/stats.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fuse/handles.h"
#include "fuse/images.h"
#include "fuse/passthrough.h"
#include "fuse/texts.h"
#include "util/buf.h"
#include "verbs/answer.h"
#include "version.h"

typedef _Atomic uint64_t counter;

enum { VERBS_MAX = 32, NS_PER_S = 1000000000 };

/* Upper bounds of the histograms' buckets: a round trip of the kernel takes 20 us, a merge milliseconds to minutes. */
static const struct {
    uint64_t ns;
    const char *text;
} bounds[] = {{50000, "0.00005"}, {200000, "0.0002"}, {1000000, "0.001"}, {5000000, "0.005"},  {20000000, "0.02"},
              {100000000, "0.1"}, {500000000, "0.5"}, {2000000000, "2"},  {10000000000, "10"}, {60000000000, "60"}};
enum { BOUNDS = sizeof bounds / sizeof *bounds };

struct histogram {
    counter buckets[BOUNDS + 1], ns; /* each observation in one bucket; the sums are made when they are shown */
    counter longest;
};

/* Words of `result:` lines. */
static const char *const results[] = {"merged",   "fast-forward", "up-to-date", "empty-merge", "dry-run",
                                      "conflict", "refused",      "error",      "other"};
enum { RESULTS = sizeof results / sizeof *results };

static const char *const op_words[LFS_OPS] = {
    [LFS_OP_LOOKUP] = "lookup",   [LFS_OP_FORGET] = "forget",         [LFS_OP_GETATTR] = "getattr",
    [LFS_OP_SETATTR] = "setattr", [LFS_OP_READLINK] = "readlink",     [LFS_OP_OPEN] = "open",
    [LFS_OP_READ] = "read",       [LFS_OP_WRITE] = "write",           [LFS_OP_FLUSH] = "flush",
    [LFS_OP_POLL] = "poll",       [LFS_OP_RELEASE] = "release", [LFS_OP_OPENDIR] = "opendir",       [LFS_OP_READDIR] = "readdir",
    [LFS_OP_MKDIR] = "mkdir",     [LFS_OP_RMDIR] = "rmdir",           [LFS_OP_SYMLINK] = "symlink",
    [LFS_OP_UNLINK] = "unlink",   [LFS_OP_RENAME] = "rename",         [LFS_OP_CREATE] = "create",
    [LFS_OP_LINK] = "link",       [LFS_OP_FSYNC] = "fsync",
    [LFS_OP_STATFS] = "statfs",   [LFS_OP_RELEASEDIR] = "releasedir", [LFS_OP_XATTR] = "xattr",
};
static const char *const read_words[LFS_READ_KINDS] = {[LFS_READ_STORED] = "stored",
                                                       [LFS_READ_RENDERED] = "rendered",
                                                       [LFS_READ_TEXT] = "report",
                                                       [LFS_READ_ANSWER] = "answer"};

struct lfs_stats {
    struct timespec started;
    struct histogram ops[LFS_OPS];
    counter read[LFS_READ_KINDS], written;
    struct histogram commands[VERBS_MAX]; /* by place: see file_at */
    counter answers[VERBS_MAX][RESULTS];
};

struct lfs_stats *lfs_stats_new(void) {
    struct lfs_stats *stats = calloc(1, sizeof *stats);
    if (stats)
        clock_gettime(CLOCK_REALTIME, &stats->started);
    return stats;
}

void lfs_stats_free(struct lfs_stats *stats) { free(stats); }

/* --- counting --- */

static void add(counter *c, uint64_t n) { atomic_fetch_add_explicit(c, n, memory_order_relaxed); }
static uint64_t get(const counter *c) { return atomic_load_explicit(c, memory_order_relaxed); }

uint64_t lfs_stats_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static void observe(struct histogram *h, uint64_t start) {
    uint64_t ns = lfs_stats_now() - start;
    size_t i = 0;
    while (i < BOUNDS && ns > bounds[i].ns)
        i++;
    add(&h->buckets[i], 1);
    add(&h->ns, ns);
    uint64_t longest = get(&h->longest);
    while (ns > longest && !atomic_compare_exchange_weak(&h->longest, &longest, ns))
        continue;
}

void lfs_stats_op(struct lfs_stats *stats, enum lfs_op op, uint64_t start) { observe(&stats->ops[op], start); }

void lfs_stats_read(struct lfs_stats *stats, enum lfs_read_kind kind, size_t bytes) { add(&stats->read[kind], bytes); }

void lfs_stats_written(struct lfs_stats *stats, size_t bytes) { add(&stats->written, bytes); }

static size_t result_of(const char *answer, size_t length) {
    size_t n;
    const char *word = lfs_answer_find(answer, length, "result", &n);
    for (size_t i = 0; word && i < RESULTS - 1; i++)
        if (n == strlen(results[i]) && strncmp(word, results[i], n) == 0)
            return i;
    return RESULTS - 1;
}

/* Control files: those of branches, then those that only the mount has; NULL behind the last. */
static const char *file_at(size_t i) {
    size_t n = 0;
    for (; lfs_branch_control_files[n]; n++)
        if (n == i)
            return lfs_branch_control_files[n];
    for (const char *const *file = lfs_root_control_files; *file; file++)
        if (!lfs_is_control_name(*file, true) && n++ == i)
            return *file;
    return NULL;
}

void lfs_stats_command(struct lfs_stats *stats, const char *file, const char *answer, size_t length, uint64_t start) {
    for (size_t i = 0; i < VERBS_MAX && file_at(i); i++)
        if (strcmp(file_at(i), file) == 0) {
            observe(&stats->commands[i], start);
            add(&stats->answers[i][result_of(answer, length)], 1);
            return;
        }
}

/* --- showing --- */

static void put_head(struct lfs_buf *out, const char *name, const char *type, const char *help) {
    lfs_buf_printf(out, "# HELP lancefs_%s %s\n# TYPE lancefs_%s %s\n", name, help, name, type);
}

static void put_seconds(struct lfs_buf *out, uint64_t ns) {
    lfs_buf_printf(out, " %" PRIu64 ".%09" PRIu64 "\n", ns / NS_PER_S, ns % NS_PER_S);
}

static void put_histogram(struct lfs_buf *out, const char *name, const char *label, const char *value,
                          const struct histogram *h) {
    uint64_t sum = 0, ns = get(&h->ns);
    for (size_t i = 0; i <= BOUNDS; i++) {
        sum += get(&h->buckets[i]);
        lfs_buf_printf(out, "lancefs_%s_bucket{%s=\"%s\",le=\"%s\"} %" PRIu64 "\n", name, label, value,
                       i < BOUNDS ? bounds[i].text : "+Inf", sum);
    }
    lfs_buf_printf(out, "lancefs_%s_sum{%s=\"%s\"}", name, label, value);
    put_seconds(out, ns);
    lfs_buf_printf(out, "lancefs_%s_count{%s=\"%s\"} %" PRIu64 "\n", name, label, value, sum);
}

/* So long at most took that part of all since the mount was made: the bound of the bucket that it ends in, or the longest of
 * all where that is less. Nothing where nothing was seen. */
static void put_quantiles(struct lfs_buf *out, const char *name, const char *label, const char *value,
                          const struct histogram *h) {
    static const struct {
        unsigned percent;
        const char *text;
    } quantiles[] = {{50, "0.5"}, {90, "0.9"}, {99, "0.99"}};
    uint64_t seen[BOUNDS + 1], count = 0, longest = get(&h->longest);
    for (size_t i = 0; i <= BOUNDS; i++)
        count += seen[i] = get(&h->buckets[i]);
    for (size_t q = 0; count && q < sizeof quantiles / sizeof *quantiles; q++) {
        uint64_t rank = (count * quantiles[q].percent + 99) / 100, sum = seen[0];
        size_t i = 0;
        while (i < BOUNDS && sum < rank)
            sum += seen[++i];
        lfs_buf_printf(out, "lancefs_%s{%s=\"%s\",quantile=\"%s\"}", name, label, value, quantiles[q].text);
        put_seconds(out, i < BOUNDS && bounds[i].ns < longest ? bounds[i].ns : longest);
    }
}

static void put_operations(const struct lfs_stats *s, struct lfs_buf *out) {
    put_head(out, "operation_seconds", "histogram", "Requests of the kernel by kind, and how long they were handled.");
    for (size_t i = 0; i < LFS_OPS; i++)
        put_histogram(out, "operation_seconds", "operation", op_words[i], &s->ops[i]);
    put_head(out, "operation_quantile_seconds", "gauge", "At most so long took this part of all requests of a kind.");
    for (size_t i = 0; i < LFS_OPS; i++)
        put_quantiles(out, "operation_quantile_seconds", "operation", op_words[i], &s->ops[i]);
    put_head(out, "read_bytes_total", "counter", "Bytes that were read through the mount, by what was read.");
    for (size_t i = 0; i < LFS_READ_KINDS; i++)
        lfs_buf_printf(out, "lancefs_read_bytes_total{kind=\"%s\"} %" PRIu64 "\n", read_words[i], get(&s->read[i]));
    put_head(out, "written_bytes_total", "counter", "Bytes that were written to control files.");
    lfs_buf_printf(out, "lancefs_written_bytes_total %" PRIu64 "\n", get(&s->written));
}

static void put_commands(const struct lfs_stats *s, struct lfs_buf *out) {
    put_head(out, "commands_total", "counter", "Commands that were run, by verb and result.");
    for (size_t i = 0; i < VERBS_MAX && file_at(i); i++)
        for (size_t k = 0; k < RESULTS; k++)
            lfs_buf_printf(out, "lancefs_commands_total{verb=\"%s\",result=\"%s\"} %" PRIu64 "\n",
                           file_at(i) + 1, results[k], get(&s->answers[i][k]));
    put_head(out, "command_seconds", "histogram", "How long commands took, by verb.");
    for (size_t i = 0; i < VERBS_MAX && file_at(i); i++)
        put_histogram(out, "command_seconds", "verb", file_at(i) + 1, &s->commands[i]);
    put_head(out, "command_quantile_seconds", "gauge", "At most so long took this part of all commands of a verb.");
    for (size_t i = 0; i < VERBS_MAX && file_at(i); i++)
        put_quantiles(out, "command_quantile_seconds", "verb", file_at(i) + 1, &s->commands[i]);
}

struct cache {
    const char *name;
    struct lfs_cache_counts counts;
};

static void put_caches(struct lfs_mount *m, struct lfs_buf *out) {
    struct cache caches[] = {{.name = "manifests"}, {.name = "rendered"}, {.name = "reports"}, {.name = "images"}};
    size_t n = sizeof caches / sizeof *caches;
    lfs_dataset_cache_counts(m->dataset, &caches[0].counts);
    lfs_views_cache_counts(m->views, &caches[1].counts);
    lfs_texts_count(m->texts, &caches[2].counts);
    lfs_images_count(m->images, &caches[3].counts);
    put_head(out, "cache_hits_total", "counter", "Look-ups that a cache could answer.");
    for (size_t i = 0; i < n; i++)
        lfs_buf_printf(out, "lancefs_cache_hits_total{cache=\"%s\"} %" PRIu64 "\n", caches[i].name,
                       caches[i].counts.hits);
    put_head(out, "cache_misses_total", "counter", "Look-ups that a cache could not answer.");
    for (size_t i = 0; i < n; i++)
        lfs_buf_printf(out, "lancefs_cache_misses_total{cache=\"%s\"} %" PRIu64 "\n", caches[i].name,
                       caches[i].counts.misses);
    put_head(out, "cache_bytes", "gauge", "Bytes that a cache holds.");
    for (size_t i = 0; i < n; i++)
        lfs_buf_printf(out, "lancefs_cache_bytes{cache=\"%s\"} %zu\n", caches[i].name, caches[i].counts.bytes);
    put_head(out, "cache_entries", "gauge", "Things that a cache holds.");
    for (size_t i = 0; i < n; i++)
        lfs_buf_printf(out, "lancefs_cache_entries{cache=\"%s\"} %zu\n", caches[i].name, caches[i].counts.entries);
}

static void put_gauge(struct lfs_buf *out, const char *name, const char *help, uint64_t value) {
    put_head(out, name, "gauge", help);
    lfs_buf_printf(out, "lancefs_%s %" PRIu64 "\n", name, value);
}

static void put_passthrough(struct lfs_mount *m, struct lfs_buf *out) {
    struct lfs_passthrough_counts counts;
    lfs_passthrough_count(m->passthrough, &counts);
    put_head(out, "data_opens_total", "counter", "Opens of data files, by who reads them: the kernel, or the daemon.");
    lfs_buf_printf(out, "lancefs_data_opens_total{by=\"kernel\"} %" PRIu64 "\n", counts.passed);
    lfs_buf_printf(out, "lancefs_data_opens_total{by=\"daemon\"} %" PRIu64 "\n", counts.read);
    put_gauge(out, "backing_files", "Data files that the kernel holds open for reading them itself.", counts.backing);
}

errint_t lfs_stats_render(struct lfs_mount *m, struct lfs_buf *out, struct timespec *time, struct lfs_error *err) {
    const struct lfs_stats *s = m->stats;
    clock_gettime(CLOCK_REALTIME, time);
    put_head(out, "build_info", "gauge", "The program's version.");
    lfs_buf_puts(out, "lancefs_build_info{version=\"" LFS_VERSION "\"} 1\n");
    put_gauge(out, "start_time_seconds", "When the mount was made, in seconds since 1970.",
              (uint64_t)s->started.tv_sec);
    put_operations(s, out);
    put_commands(s, out);
    put_caches(m, out);
    put_passthrough(m, out);
    put_gauge(out, "open_handles", "Files and directories that are open.", lfs_opens_count(m->opens));
    put_gauge(out, "nodes", "Files and directories that the kernel knows by number.", lfs_nodes_count(m->nodes));
    put_gauge(out, "lookups_held", "Look-ups that the kernel has not given back.", lfs_nodes_lookups(m->nodes));
    return lfs_buf_check(out, err);
}
