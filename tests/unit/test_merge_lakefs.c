/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cases of lakeFS's own merge tests, by their names, told with keys of our own: a key is a letter, its identity the
 * digit behind it. Each case is run twice: on rows (the keys of the base are the rows of its fragments; a change of identity
 * is an update, which puts the row into a new fragment) and on config keys. A range of keys is a fragment.
 */
#include <errno.h>
#include <roaring/roaring.h>

#include "merge_builder.h"
#include "util/cleanup.h"

struct lake_case {
    const char *name;
    const char *base, *source, *dest; /* "a1 b1 | c1": '|' parts ranges */
    const char *expect[3];            /* by strategy; NULL is a conflict */
    enum {
        ONE,           /* the first stands for all strategies */
        EACH,          /* all three are told */
        EACH_FOR_KEYS, /* likewise, and not on rows: two new rows are never in conflict */
    } told;
};

static const struct lake_case cases[] = {
    /* Test_merge */
    {"dest range added before", "k1 l1", "k1 l1", "a1 b1 k1 l1", {"a1 b1 k1 l1"}, ONE},
    {"source range added before", "k1 l1", "a1 b1 k1 l1", "k1 l1", {"a1 b1 k1 l1"}, ONE},
    {"source range removed before", "a1 b1 | k1 l1", "k1 l1", "a1 b1 k1 l1", {"k1 l1"}, ONE},
    {"source range removed", "k1 l1 | x1 y1", "k1 l1", "k1 l1 x1 y1", {"k1 l1"}, ONE},
    {"dest range removed", "k1 l1 | x1 y1", "k1 l1 x1 y1", "k1 l1", {"k1 l1"}, ONE},
    {"source range inner change", "a1 b1 c1", "a1 b2 c1", "a1 b1 c1", {"a1 b2 c1"}, ONE},
    {"dest range inner change", "a1 b1 c1", "a1 b1 c1", "a1 b2 c1", {"a1 b2 c1"}, ONE},
    {"source range append after", "a1 b1", "a1 b1 c1 d1", "a1 b1", {"a1 b1 c1 d1"}, ONE},
    {"source range append and remove after", "a1 b1 c1", "a1 b1 d1", "a1 b1 c1", {"a1 b1 d1"}, ONE},
    {"source range - overlapping ranges", "a1 b1 | f1 g1", "a1 c1 f1 h1", "a1 b1 f1 g1", {"a1 c1 f1 h1"}, ONE},
    {"dest range - overlapping ranges", "a1 b1 | f1 g1", "a1 b1 f1 g1", "a1 c1 f1 h1", {"a1 c1 f1 h1"}, ONE},
    {"source - remove at end of range", "a1 b1 c1", "a1 b1", "a1 b1 c1", {"a1 b1"}, ONE},
    {"both added key to range", "a1 e1", "a1 c1 e1", "a1 d1 e1", {"a1 c1 d1 e1"}, ONE},
    {"source key removed from range - same bounds", "a1 b1 c1", "a1 c1", "a1 b1 c1", {"a1 c1"}, ONE},
    {"source key removed from range", "a1 b1 c1", "b1 c1", "a1 b1 c1", {"b1 c1"}, ONE},
    {"dest key removed from range", "a1 b1 c1", "a1 b1 c1", "b1 c1", {"b1 c1"}, ONE},
    {"empty source and base", "", "", "a1 b1", {"a1 b1"}, ONE},
    {"dest removed range and added range after source removed range edges", "a1 b1 c1", "b1", "x1 y1", {"x1 y1"}, ONE},
    {"no changes", "a1 b1", "a1 b1", "a1 b1", {"a1 b1"}, ONE},
    {"source and dest are the same", "a1 b1", "a1 b2 c1", "a1 b2 c1", {"a1 b2 c1"}, ONE},
    {"source and dest changed record identity", "a1 b1 c1 d1", "a2 b1 d1", "a1 b2 c1", {"a2 b2"}, ONE},
    {"dest removed all source added", "a1 b1", "a1 b1 c1", "", {"c1"}, ONE},
    {"same identity different key", "a1", "a1 b1", "a1 c1", {"a1 b1 c1"}, ONE},
    {"dest removed all source range before base", "k1 l1", "a1 b1 k1 l1", "", {"a1 b1"}, ONE},
    {"dest removed all different key different identity", "k1 l1", "a2 k1 l1", "", {"a2"}, ONE},
    {"dest removed all base and source same identity", "k1 l1", "k1 l1 m1 n1", "", {"m1 n1"}, ONE},
    {"source key before dest range", "b1 | k1 l1", "a1 b1 k1 l1", "b1 x1", {"a1 b1 x1"}, ONE},
    {"dest key before source range", "b1 | k1 l1", "b1 k1 l1 x1", "a1 b1", {"a1 b1 x1"}, ONE},
    {"dest range before source key", "k1", "l1", "a1 b1 k1", {"a1 b1 l1"}, ONE},
    {"source range before dest key", "k1", "a1 b1 k1", "l1", {"a1 b1 l1"}, ONE},
    {"dest and base are the same", "a1 b1", "a2 c1", "a1 b1", {"a2 c1"}, ONE},
    /* Read in handleAll, not in their suite: an equal identity under another key says nothing */
    {"source adds a copy of b while dest deleted b", "b1", "a1 b1", "", {"a1"}, ONE},
    /* TestMergeStrategies: none, source-wins, dest-wins */
    {"dest removed all same key different identity", "a1 b1", "a2 b1", "", {NULL, "a2", ""}, EACH},
    {"source and dest change same range conflict", "c1 d1", "d2", "f1 g1", {NULL, "d2 f1 g1", "f1 g1"}, EACH},
    {"dest range before source", "a1 b1", "b1 c1 d1", "a2", {NULL, "c1 d1", "a2 c1 d1"}, EACH},
    {"source change and dest delete same entry", "a1 b1 c1", "a1 b2 c1", "a1 c1", {NULL, "a1 b2 c1", "a1 c1"}, EACH},
    {"source delete and dest change same entry", "a1 b1 c1", "a1 c1", "a1 b2 c1", {NULL, "a1 c1", "a1 b2 c1"}, EACH},
    {"source and dest delete from same range",
     "a1 b1 c1 d1",
     "a1 c2 d1",
     "a1 b2 d1",
     {NULL, "a1 c2 d1", "a1 b2 d1"},
     EACH},
    {"source and dest change same entry", "a1 b1 c1", "a1 b2 c1", "a1 b3 c1", {NULL, "a1 b2 c1", "a1 b3 c1"}, EACH},
};

/* git's trivial merges of three trees, by libgit2's names for their cases; ours is its head, theirs its remote. */
static const struct lake_case trivial[] = {
    {"trivial 2alt: only theirs adds", "x1", "a1 x1", "x1", {"a1 x1"}, ONE},
    {"trivial 3alt: only ours adds", "x1", "x1", "a1 x1", {"a1 x1"}, ONE},
    {"trivial 4: both add, and differ", "x1", "a1 x1", "a2 x1", {NULL, "a1 x1", "a2 x1"}, EACH_FOR_KEYS},
    {"trivial 5alt_1: both add the same", "x1", "a1 x1", "a1 x1", {"a1 x1"}, ONE},
    {"trivial 5alt_2: both change alike", "a1 x1", "a2 x1", "a2 x1", {"a2 x1"}, ONE},
    {"trivial 6: both remove", "a1 x1", "x1", "x1", {"x1"}, ONE},
    {"trivial 7: ours removes, theirs changes", "a1 x1", "a2 x1", "x1", {NULL, "a2 x1", "x1"}, EACH},
    {"trivial 8: ours removes", "a1 x1", "a1 x1", "x1", {"x1"}, ONE},
    {"trivial 9: theirs removes, ours changes", "a1 x1", "x1", "a2 x1", {NULL, "x1", "a2 x1"}, EACH},
    {"trivial 10: theirs removes", "a1 x1", "x1", "a1 x1", {"x1"}, ONE},
    {"trivial 11: both change, and differ", "a1 x1", "a2 x1", "a3 x1", {NULL, "a2 x1", "a3 x1"}, EACH},
    {"trivial 13: only ours changes", "a1 x1", "a1 x1", "a2 x1", {"a2 x1"}, ONE},
    {"trivial 14: only theirs changes", "a1 x1", "a2 x1", "a1 x1", {"a2 x1"}, ONE},
};

/* --- keys --- */

/* The identity of a key in a list, or 0. */
static char identity(const char *list, char key) {
    for (const char *p = list; *p; p++)
        if (*p == key && (p == list || p[-1] == ' '))
            return p[1];
    return 0;
}

/* The place of a key of the base: range and row. */
static bool place(const char *base, char key, int *range, int *row) {
    *range = *row = 0;
    for (const char *p = base; *p; p++) {
        if (*p == key)
            return true;
        if (*p == '|') {
            ++*range;
            *row = 0;
        } else if (*p >= 'a' && *p <= 'z') {
            ++*row;
        }
    }
    return false;
}

static int rows_of(const char *base, int range) {
    int n = 0;
    for (const char *p = base; *p; p++) {
        range -= *p == '|';
        n += range == 0 && *p >= 'a' && *p <= 'z';
    }
    return n;
}

/* --- on rows: what a side did is a delete, an update and an append --- */

struct side {
    FILE *stream[3];
    char *text[3];
    size_t size[3];
};
enum { DELETES, UPDATES, APPENDS };

static void take_away(FILE *out, const char *base, const char *list, int range, bool updates_too) {
    int gone = 0, n = rows_of(base, range), at, row;
    char set[64] = "";
    for (char key = 'a'; key <= 'z'; key++) {
        if (!place(base, key, &at, &row) || at != range || identity(list, key) == identity(base, key))
            continue;
        if (identity(list, key) && !updates_too)
            continue;
        snprintf(set + strlen(set), sizeof set - strlen(set), gone++ ? ",%d" : "%d", row);
    }
    if (gone == n)
        fprintf(out, "; -frag R%d", range);
    else if (gone)
        fprintf(out, "; dead R%d %s", range, set);
}

static void side_texts(struct side *s, const char *base, const char *list, const char *steps[LAB_STEPS]) {
    static const char *const operations[] = {"op delete", "op update uuid changes-", "op append"};
    int next = 10, range, row;
    for (int i = 0; i < 3; i++) {
        s->stream[i] = open_memstream(&s->text[i], &s->size[i]);
        assert_non_null(s->stream[i]);
        fprintf(s->stream[i], "%s", operations[i]);
        for (const char *p = list; i == UPDATES && *p; p++) /* the same changes are the same commit */
            if (*p != ' ')
                fputc(*p, s->stream[i]);
    }
    /* Deleted rows first, then the updated ones: a fragment that goes as a whole goes with the update, which names all. */
    for (int r = 0; r <= 1; r++) {
        int updated = 0, gone = 0;
        for (char key = 'a'; key <= 'z'; key++)
            if (place(base, key, &range, &row) && range == r && identity(list, key) != identity(base, key))
                identity(list, key) ? updated++ : gone++;
        if (gone)
            take_away(s->stream[DELETES], base, list, r, false);
        if (updated)
            take_away(s->stream[UPDATES], base, list, r, true);
    }
    for (char key = 'a'; key <= 'z'; key++) {
        char id = identity(list, key);
        if (!id || id == identity(base, key))
            continue;
        bool old = place(base, key, &range, &row); /* one file name is one value: the same change is the same file */
        fprintf(s->stream[old ? UPDATES : APPENDS], "; frag %d %c%c 1", next++, key, id);
    }
    for (int i = 0; i < 3; i++) {
        fclose(s->stream[i]);
        steps[i] = s->text[i];
    }
}

/* "a1 b2": the keys that live in the plan, sorted, each at most once. */
static void live_keys(struct lab *lab, const char *base, char *out) {
    char found[26] = {0};
    for (size_t i = 0; i < lab->plan.n_fragments; i++) {
        const char *path = lab_path(&lab->plan.fragments[i]);
        roaring_bitmap_t *live = lab_live(lab, &lab->plan.fragments[i]);
        for (char key = 'a'; key <= 'z'; key++) {
            int range, row;
            bool here = *path == 'R' ? place(base, key, &range, &row) && range == path[1] - '0' : *path == key;
            if (!here || !roaring_bitmap_contains(live, *path == 'R' ? (uint32_t)row : 0))
                continue;
            assert_int_equal(found[key - 'a'], 0);
            found[key - 'a'] = *path == 'R' ? identity(base, key) : path[1];
        }
        roaring_bitmap_free(live);
    }
    for (int i = 0; i < 26; i++)
        if (found[i])
            out += sprintf(out, out[-1] ? " %c%c" : "%c%c", 'a' + i, found[i]);
}

/* The loser of a conflict has a replacement row: the engine may leave it a conflict. */
static bool loser_has_row(const struct lake_case *c, int strategy) {
    for (char key = 'a'; key <= 'z'; key++) {
        char b = identity(c->base, key), s = identity(c->source, key), d = identity(c->dest, key);
        if (b != s && b != d && s != d && (strategy == LFS_STRATEGY_SOURCE ? d : s))
            return true;
    }
    return false;
}

static void on_rows(const struct lake_case *c) {
    char base[256] = "field 0 id int64", keys[80];
    for (int r = 0; r <= 1; r++)
        if (rows_of(c->base, r))
            snprintf(base + strlen(base), sizeof base - strlen(base), "; frag %d R%d %d", r, r, rows_of(c->base, r));
    for (int strategy = 0; strategy < 3; strategy++) {
        const char *wanted = c->told != ONE ? c->expect[strategy] : c->expect[0];
        struct scene scene = {.base = base, .policy = LAB_POLICY((enum lfs_strategy)strategy)};
        struct side source, dest;
        struct lab lab;
        side_texts(&source, c->base, c->source, scene.theirs);
        side_texts(&dest, c->base, c->dest, scene.ours);
        lab_run(&lab, &scene);
        assert_int_equal(lab.result, 0);
        bool conflict = lab.plan.outcome == LFS_OUTCOME_CONFLICT;
        if (!wanted)
            assert_true(conflict);
        else if (!(conflict && strategy && loser_has_row(c, strategy))) {
            keys[0] = 0; /* what stands before the first key */
            lab_expect(&lab,
                       &(struct expect){.outcome = strcmp(wanted, c->dest) ? LFS_OUTCOME_MERGED : LFS_OUTCOME_EMPTY});
            memset(keys, 0, sizeof keys);
            live_keys(&lab, c->base, keys + 1);
            assert_string_equal(keys + 1, wanted);
        }
        lab_free(&lab);
        for (int i = 0; i < 3; i++) {
            free(source.text[i]);
            free(dest.text[i]);
        }
    }
}

/* --- on config keys: every strategy is exact --- */

static void config_text(char *out, size_t size, const char *before, const char *list) {
    snprintf(out, size, "%s", *before == '*' ? "field 0 id int64" : "op config");
    for (char key = 'a'; key <= 'z'; key++) {
        char was = identity(before, key), is = identity(list, key);
        if (was && !is)
            snprintf(out + strlen(out), size - strlen(out), "; -config %c", key);
        else if (is && is != was)
            snprintf(out + strlen(out), size - strlen(out), "; config %c=%c", key, is);
    }
}

static void on_config(const struct lake_case *c) {
    char base[400], source[400], dest[400];
    config_text(base, sizeof base, "*", c->base);
    config_text(source, sizeof source, c->base, c->source);
    config_text(dest, sizeof dest, c->base, c->dest);
    for (int strategy = 0; strategy < 3; strategy++) {
        const char *wanted = c->told != ONE ? c->expect[strategy] : c->expect[0];
        struct scene scene = {
            .base = base, .ours = {dest}, .theirs = {source}, .policy = LAB_POLICY((enum lfs_strategy)strategy)};
        char text[160] = "";
        for (const char *p = wanted; p && *p; p++)
            snprintf(text + strlen(text), sizeof text - strlen(text), *p >= 'a' ? "%c=" : "%c", *p);
        check_scene(&scene, &(struct expect){.outcome = !wanted                   ? LFS_OUTCOME_CONFLICT
                                                        : strcmp(wanted, c->dest) ? LFS_OUTCOME_MERGED
                                                                                  : LFS_OUTCOME_EMPTY,
                                             .conflicts = wanted ? "" : NULL,
                                             .config = text});
    }
}

static void one_case(void **state) {
    const struct lake_case *c = *state;
    on_config(c);
    if (c->told != EACH_FOR_KEYS)
        on_rows(c);
}

/* --- the merge base; the graphs are built on a mount (tests/merge/lakefs.test.mjs), but this one cannot be --- */

static void parallel_lines_have_no_base(void **state) {
    (void)state;
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    struct lfs_lines lines = {.arena = arena};
    struct lfs_vector a, b;
    struct lfs_base *bases;
    struct lfs_error err;
    size_t n;
    lfs_vector_init(&a, arena);
    lfs_vector_init(&b, arena);
    assert_ok(lfs_vector_raise(&a, "094e0123456789abcdef0123456789ab", 3, &err), err);
    assert_ok(lfs_vector_raise(&b, "7b980123456789abcdef0123456789ab", 3, &err), err);
    assert_int_equal(lfs_merge_bases(&lines, &a, &b, &bases, &n, &err), -ENODATA);
    assert_int_equal(err.code, LFS_E_NO_BASE);
}

static int run_cases(const char *group, const struct lake_case *list, size_t n) {
    struct CMUnitTest tests[COUNT(cases)];
    assert_true(n <= COUNT(tests));
    for (size_t i = 0; i < n; i++)
        tests[i] = (struct CMUnitTest){.name = list[i].name, .test_func = one_case, .initial_state = (void *)&list[i]};
    return _cmocka_run_group_tests(group, tests, n, NULL, NULL);
}

int main(void) {
    const struct CMUnitTest bases[] = {cmocka_unit_test(parallel_lines_have_no_base)};
    int failed = run_cases("lakeFS's cases", cases, COUNT(cases));
    failed += run_cases("git's trivial merges", trivial, COUNT(trivial));
    return failed + cmocka_run_group_tests_name("merge base", bases, NULL, NULL);
}
