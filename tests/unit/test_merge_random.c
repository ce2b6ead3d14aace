/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random states against a model that knows nothing of fragments: rows have names and values, and each is merged by the
 * three-way table. A failure names its seed; LFS_TEST_SEED runs that one alone, LFS_TEST_ROUNDS more of them.
 */
#include <roaring/roaring.h>

#include "merge_builder.h"

enum { MAX_KEYS = 128, MAX_FILES = 96, FILE_ROWS = 64, MAX_BUILDS = 16, GONE = -1 };

/* A row: who it is, and its value. An update gives it another value, a delete takes it away. */
struct cell {
    int key, value;
};

struct file {
    char name[16];
    struct cell rows[FILE_ROWS];
    int n;
    uint64_t dead; /* in the state at hand */
    bool there;
    int id;
};

struct table {
    struct file files[MAX_FILES];
    int n_files;
    int values[MAX_KEYS];   /* by key; GONE when there is no such row */
    bool updated[MAX_KEYS]; /* at any time, since the base */
};

/* What an index knows: the rows that lived, by address, when it was built. */
struct build {
    struct file files[MAX_FILES]; /* those that it covers */
    int n_files;
};

/* What all states of one round share: names, keys and values are never given twice. */
struct round {
    uint64_t random;
    int next_file, next_key, next_value;
    bool compactions, indexes;
    struct build builds[MAX_BUILDS]; /* by the number in the index' uuid */
    int n_builds;
    char text[LAB_STEPS * 2][8192];
    int n_texts;
};

static uint32_t roll(struct round *r, uint32_t n) {
    r->random ^= r->random << 13;
    r->random ^= r->random >> 7;
    r->random ^= r->random << 17;
    return (uint32_t)(r->random >> 32) % n;
}

/* --- commits --- */

struct commit {
    char *text;
    size_t used;
};

static __attribute__((format(printf, 2, 3))) void say(struct commit *c, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int n = vsnprintf(c->text + c->used, 8192 - c->used, format, args);
    va_end(args);
    assert_in_range(n, 0, 8191 - (int)c->used);
    c->used += (size_t)n;
}

static int highest_id(const struct table *t) {
    int highest = -1;
    for (int i = 0; i < t->n_files; i++)
        highest = t->files[i].id > highest ? t->files[i].id : highest; /* ids of removed ones, too */
    return highest;
}

static struct file *new_file(struct round *r, struct table *t) {
    assert_true(t->n_files < MAX_FILES);
    int id = highest_id(t) + 1;
    struct file *f = &t->files[t->n_files++];
    *f = (struct file){.there = true, .id = id};
    snprintf(f->name, sizeof f->name, "f%d", r->next_file++);
    return f;
}

static void say_file(struct commit *c, const struct file *f) { say(c, "; frag %d %s %d", f->id, f->name, f->n); }

static void say_dead(struct commit *c, struct file *f) {
    bool all = true, any = false;
    for (int i = 0; i < f->n; i++)
        all &= f->dead >> i & 1;
    if (all) { /* stock Lance removes a fragment of which no row is left */
        say(c, "; -frag %s", f->name);
        f->there = false;
        return;
    }
    say(c, "; dead %s ", f->name);
    for (int i = 0; i < f->n; i++)
        if (f->dead >> i & 1) {
            say(c, any ? ",%d" : "%d", i);
            any = true;
        }
    assert_true(any);
}

static void append(struct round *r, struct table *t, struct commit *c) {
    struct file *f = new_file(r, t);
    f->n = 1 + (int)roll(r, 4);
    for (int i = 0; i < f->n; i++) {
        assert_true(r->next_key < MAX_KEYS);
        f->rows[i] = (struct cell){r->next_key++, r->next_value++};
        t->values[f->rows[i].key] = f->rows[i].value;
    }
    say(c, "op append");
    say_file(c, f);
}

/* Take some live rows away; as an update they come back in a new file, with new values. */
static void take_rows(struct round *r, struct table *t, struct commit *c, bool update) {
    struct file moved = {.n = 0};
    int n = t->n_files;
    say(c, update ? "op update" : "op delete");
    for (int i = 0; i < n; i++) {
        struct file *f = &t->files[i];
        bool touched = false;
        for (int k = 0; f->there && k < f->n; k++) {
            if (f->dead >> k & 1 || roll(r, 6) || moved.n == FILE_ROWS)
                continue;
            f->dead |= UINT64_C(1) << k;
            touched = true;
            t->values[f->rows[k].key] = update ? r->next_value : GONE;
            t->updated[f->rows[k].key] |= update;
            if (update)
                moved.rows[moved.n++] = (struct cell){f->rows[k].key, r->next_value++};
        }
        if (touched)
            say_dead(c, f);
    }
    if (moved.n) {
        struct file *f = new_file(r, t);
        memcpy(f->rows, moved.rows, sizeof f->rows);
        f->n = moved.n;
        say_file(c, f);
    }
}

static void compact(struct round *r, struct table *t, struct commit *c) {
    int picked[MAX_FILES], n = 0, total = 0;
    for (int i = 0; i < t->n_files; i++) {
        int live = 0;
        for (int k = 0; k < t->files[i].n; k++)
            live += !(t->files[i].dead >> k & 1);
        if (t->files[i].there && roll(r, 2) && total + live <= FILE_ROWS) {
            picked[n++] = i;
            total += live;
        }
    }
    if (!n) {
        say(c, "op config");
        return;
    }
    struct file *out = new_file(r, t), *second = NULL;
    if (total > 3 && roll(r, 2)) /* into two */
        second = new_file(r, t);
    out = &t->files[t->n_files - (second ? 2 : 1)];
    say(c, "op rewrite ");
    for (int i = 0; i < n; i++)
        say(c, i ? ",%s" : "%s", t->files[picked[i]].name);
    say(c, ">%s", out->name);
    if (second)
        say(c, ",%s", second->name);
    for (int i = 0; i < n; i++) {
        struct file *f = &t->files[picked[i]];
        for (int k = 0; k < f->n; k++)
            if (!(f->dead >> k & 1)) {
                struct file *to = second && out->n > total / 2 ? second : out;
                to->rows[to->n++] = f->rows[k];
            }
        f->there = false;
        say(c, "; -frag %s", f->name);
    }
    say_file(c, out);
    if (second)
        say_file(c, second);
}

/* A new index, or one more segment, over some fragments; or another in its place; or none. */
static void change_index(struct round *r, struct table *t, struct commit *c) {
    struct build *b = &r->builds[r->n_builds];
    char name = "ij"[roll(r, 2)];
    bool any = false, drop = roll(r, 5) == 0 || r->n_builds == MAX_BUILDS;
    say(c, "op index; ");
    for (int i = 0; i < t->n_files && !drop; i++)
        if (t->files[i].there && roll(r, 5))
            b->files[b->n_files++] = t->files[i];
    if (drop || !b->n_files) {
        say(c, "-index %c", name);
        return;
    }
    say(c, "index %c x%d 0 type %s over ", name, r->n_builds++, roll(r, 2) ? "a" : "b");
    for (int i = 0; i < b->n_files; i++, any = true)
        say(c, any ? ",%d" : "%d", b->files[i].id);
}

static void commit(struct round *r, struct table *t, const char **slot) {
    struct commit c = {.text = r->text[r->n_texts++]};
    uint32_t kind = roll(r, r->compactions ? 4 : 3);
    *slot = c.text;
    if (r->indexes && roll(r, 3) == 0)
        change_index(r, t, &c);
    else if (kind == 0)
        append(r, t, &c);
    else if (kind == 3)
        compact(r, t, &c);
    else
        take_rows(r, t, &c, kind == 2);
    say(&c, "; max %d", highest_id(t)); /* ids are never given again */
}

/* --- the model --- */

/* The table of three values; GONE is the absent one. */
static bool merge_value(int base, int ours, int theirs, int *out) {
    *out = theirs == base ? ours : theirs;
    return theirs == base || ours == base || ours == theirs;
}

struct verdict {
    bool conflict;
    bool both_touched; /* a row that both took away */
    bool update_lost;  /* and one of them had updated it before it deleted it: that may count as an update */
    int values[MAX_KEYS];
};

static struct verdict judge(const struct round *r, const struct table *base, const struct table *ours,
                            const struct table *theirs, enum lfs_strategy strategy, bool *decided) {
    struct verdict v = {.conflict = false};
    *decided = true;
    for (int i = 0; i < r->next_key; i++) {
        int b = base->values[i], o = ours->values[i], t = theirs->values[i];
        v.both_touched |= b != o && b != t;
        v.update_lost |= b != o && b != t && o == t && (ours->updated[i] || theirs->updated[i]);
        if (merge_value(b, o, t, &v.values[i]))
            continue;
        v.conflict = true;
        v.values[i] = strategy == LFS_STRATEGY_SOURCE ? t : o;
        /* A loser that has, or had, a replacement row cannot give way. */
        *decided &= strategy != LFS_STRATEGY_FAIL && !(strategy == LFS_STRATEGY_SOURCE ? ours : theirs)->updated[i];
    }
    return v;
}

static const struct file *find_file(const struct table *a, const struct table *b, const char *name) {
    for (int k = 0; k < 2; k++) {
        const struct table *t = k ? b : a;
        for (int i = 0; i < t->n_files; i++)
            if (strcmp(t->files[i].name, name) == 0)
                return &t->files[i];
    }
    fail_msg("no file %s", name);
    return NULL;
}

static struct table base_table, our_table, their_table;
static struct round the_round;

/* Exactly the rows of the model, each once, each with its value. */
static const char *compare(struct lab *lab, const struct table *ours, const struct table *theirs, const int *values,
                           int n_keys) {
    int seen[MAX_KEYS] = {0};
    for (size_t i = 0; i < lab->plan.n_fragments; i++) {
        const struct file *f = find_file(ours, theirs, lab_path(&lab->plan.fragments[i]));
        roaring_bitmap_t *live = lab_live(lab, &lab->plan.fragments[i]);
        for (int k = 0; k < f->n; k++) {
            if (!roaring_bitmap_contains(live, (uint32_t)k))
                continue;
            seen[f->rows[k].key]++;
            if (values[f->rows[k].key] != f->rows[k].value) {
                roaring_bitmap_free(live);
                return values[f->rows[k].key] == GONE ? "a deleted row lives" : "a row has a wrong value";
            }
        }
        roaring_bitmap_free(live);
    }
    for (int i = 0; i < n_keys; i++)
        if (seen[i] != (values[i] != GONE))
            return seen[i] ? "a row is there twice" : "a row is lost";
    return NULL;
}

/* What an index says of a fragment that it covers must be so: the file that it was built from, and no row that it does
 * not know. No other fragment may ever get an id that it covers. */
static const char *wrong_index(struct lab *lab, const struct lfs_plan_index *index) {
    int number = atoi((const char *)index->record->uuid->uuid.data + 1);
    const struct build *b = &the_round.builds[number];
    const char *wrong = NULL;
    roaring_bitmap_t *covered = roaring_bitmap_portable_deserialize_safe(
        (const char *)index->record->fragment_bitmap.data, index->record->fragment_bitmap.len);
    assert_non_null(covered);
    if (roaring_bitmap_is_empty(covered) && index->is_theirs)
        wrong = "an index that covers nothing was carried";
    if (!roaring_bitmap_is_empty(covered) && roaring_bitmap_maximum(covered) > lab->plan.max_fragment_id)
        wrong = "an index covers an id that will be given";
    for (size_t i = 0; i < lab->plan.n_fragments && !wrong; i++) {
        const struct lfs_plan_fragment *f = &lab->plan.fragments[i];
        const struct file *then = NULL;
        if (!roaring_bitmap_contains(covered, (uint32_t)f->id))
            continue;
        for (int k = 0; k < b->n_files; k++)
            then = (uint64_t)b->files[k].id == f->id ? &b->files[k] : then;
        roaring_bitmap_t *live = lab_live(lab, f);
        if (!then || strcmp(then->name, lab_path(f)))
            wrong = "an index covers another fragment";
        for (int k = 0; !wrong && k < then->n; k++)
            if (then->dead >> k & 1 && roaring_bitmap_contains(live, (uint32_t)k))
                wrong = "an index does not know a row";
        roaring_bitmap_free(live);
    }
    roaring_bitmap_free(covered);
    return wrong;
}

/* --- rounds --- */

static void explain(const struct scene *s, struct lab *lab, uint64_t seed, const char *what) {
    print_message("seed %llu: %s\n  base %s\n", (unsigned long long)seed, what, s->base);
    for (int i = 0; s->ours[i]; i++)
        print_message("  ours %s\n", s->ours[i]);
    for (int i = 0; s->theirs[i]; i++)
        print_message("  theirs %s\n", s->theirs[i]);
    if (lab->result)
        print_message("  error %s\n", lab->err.message);
    else if (lab->plan.outcome >= LFS_OUTCOME_CONFLICT)
        print_message("  stopped: %s %s\n", lab->plan.refusal ? lab->plan.refusal : "", lab_conflicts(lab));
    else
        print_message("  rows %s\n", lab_rows(lab));
    fail_msg("seed %llu: %s", (unsigned long long)seed, what);
}

static void check_round(const struct scene *s, struct lab *lab, uint64_t seed) {
    struct round *r = &the_round;
    bool decided;
    struct verdict v = judge(r, &base_table, &our_table, &their_table, s->policy.rows, &decided);
    bool stopped = lab->result == 0 && lab->plan.outcome >= LFS_OUTCOME_CONFLICT;
    bool may_stop = (v.conflict && !decided) || v.update_lost;
    if (lab->result)
        explain(s, lab, seed, "an error");
    if (v.conflict && s->policy.rows == LFS_STRATEGY_FAIL && !stopped)
        explain(s, lab, seed, "a conflict was not seen");
    /* Rows that both sides took away may be more than can be told apart after compactions. */
    bool about_index = r->indexes && lab->result == 0 && strstr(lab_conflicts(lab), "index ");
    if (stopped && !may_stop && !(r->compactions && v.both_touched) && !about_index)
        explain(s, lab, seed, "there is no conflict");
    if (stopped)
        return;
    const char *wrong = compare(lab, &our_table, &their_table, v.values, r->next_key);
    for (size_t i = 0; i < lab->plan.n_indices && !wrong; i++)
        wrong = wrong_index(lab, &lab->plan.indices[i]);
    if (wrong)
        explain(s, lab, seed, wrong);
}

/* One tree of random commits, merged under each strategy and in both directions, and with itself. */
static void one_seed(uint64_t seed, bool compactions, bool indexes) {
    struct round *r = &the_round;
    struct scene s = {.moved = true};
    memset(r, 0, sizeof *r);
    r->random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    r->compactions = compactions;
    r->indexes = indexes;
    memset(&base_table, 0, sizeof base_table);
    for (int i = 0; i < MAX_KEYS; i++)
        base_table.values[i] = GONE;
    struct commit first = {.text = r->text[r->n_texts++]};
    say(&first, "field 0 id int64");
    for (int n = 1 + (int)roll(r, 4); n > 0; n--) {
        struct file *f = new_file(r, &base_table);
        f->n = 1 + (int)roll(r, 8);
        for (int i = 0; i < f->n; i++) {
            f->rows[i] = (struct cell){r->next_key++, r->next_value++};
            f->dead |= i && roll(r, 5) == 0 ? UINT64_C(1) << i : 0;
            base_table.values[f->rows[i].key] = f->dead >> i & 1 ? GONE : f->rows[i].value;
        }
        say_file(&first, f);
        if (f->dead)
            say_dead(&first, f);
    }
    say(&first, "; max %d", highest_id(&base_table));
    if (indexes) { /* what both sides begin with */
        struct commit more = {.text = r->text[r->n_texts++]};
        change_index(r, &base_table, &more);
        say(&first, ";%s", more.text + strlen("op index;"));
    }
    s.base = first.text;
    our_table = their_table = base_table;
    for (uint32_t i = 0, n = roll(r, 5); i < n; i++)
        commit(r, &our_table, &s.ours[i]);
    for (uint32_t i = 0, n = roll(r, 5); i < n; i++)
        commit(r, &their_table, &s.theirs[i]);
    for (int strategy = LFS_STRATEGY_FAIL; strategy <= LFS_STRATEGY_DEST; strategy++) {
        struct lab lab;
        s.policy = LAB_POLICY((enum lfs_strategy)strategy);
        lab_run(&lab, &s);
        check_round(&s, &lab, seed);
        lab_free(&lab);
    }
    s.policy = LAB_POLICY(LFS_STRATEGY_FAIL);
    static struct table swap;
    struct scene other = scene_swapped(&s);
    struct lab lab;
    swap = our_table;
    our_table = their_table;
    their_table = swap;
    lab_run(&lab, &other);
    check_round(&other, &lab, seed);
    lab_free(&lab);
}

static void rounds(bool compactions, bool indexes) {
    const char *seed = getenv("LFS_TEST_SEED"), *more = getenv("LFS_TEST_ROUNDS");
    uint64_t n = more ? strtoull(more, NULL, 10) : 3000;
    if (seed)
        one_seed(strtoull(seed, NULL, 10), compactions, indexes);
    for (uint64_t i = 1; !seed && i <= n; i++)
        one_seed(i, compactions, indexes);
}

static void rows_agree_with_the_model(void **state) {
    (void)state;
    rounds(false, false);
}

static void rows_agree_with_the_model_after_compactions(void **state) {
    (void)state;
    rounds(true, false);
}

static void indexes_are_true(void **state) {
    (void)state;
    rounds(true, true);
}

/* --- laws --- */

static const struct scene lawful[] = {
    {.base = "field 0 id int64; field 1 v int32 null; frag 0 A 4 dead 1; frag 1 B 4; config k=1; table t=1; schema s=1",
     .theirs = {"op delete; dead A 1-2", "op append; frag 2 N 3", "op config; config k=2; -table t; schema s=2",
                "op project; field 1 w int32 null", "op delete; dead N 0"}},
    {.base = "field 0 id int64; field 1 v int32 null; frag 0 A 4; frag 1 B 4",
     .theirs = {"op update; dead A 1; frag 2 U 1", "op rewrite A,B>C; -frag A; -frag B; frag 3 C 7",
                "op delete; dead C 0"}},
    {.base = "field 0 id int64; frag 0 A 4; frag 1 B 4",
     .theirs = {"op merge; field 1 x int32 null; files A A:0+X:1; files B B:0+Y:1",
                "op overwrite; -frag A; -frag B; frag 2 O:0,1 9"}},
    {.base = "field 0 id int64; field 1 s struct null; field 2 a int32 null under 1; frag 0 A:0,2 4",
     .theirs = {"op merge; field 3 b int32 null under 1; files A A:0,2+X:3", "op project; -field 2"}},
    {.base = "field 0 id int64; frag 0 A 4; frag 1 B 4", .theirs = {"op delete; -frag A", "op delete; -frag B"}},
};

static char *everything(struct lab *lab) {
    return lfs_sprintf(lab->arena, "%s | %s | %s | %s | %s | %s", lab_rows(lab), lab_files(lab), lab_schema(lab),
                       lab_config(lab), lab_table(lab), lab_schema_metadata(lab));
}

static void laws(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(lawful); i++) {
        struct lab lab;
        lab_run(&lab, &lawful[i]); /* base, base, x: x, with its ids */
        const struct lfs_version *base = lab.input.base, *x = lab.input.theirs;
        lab_expect(&lab, &(struct expect){.outcome = LFS_OUTCOME_MERGED});
        char *want = everything(&lab);
        assert_int_equal(lab.plan.n_fragments, x->manifest.message->n_fragments);
        for (size_t k = 0; k < lab.plan.n_fragments; k++) {
            assert_int_equal(lab.plan.fragments[k].id, x->manifest.message->fragments[k]->id);
            assert_string_equal(lab_path(&lab.plan.fragments[k]), x->manifest.message->fragments[k]->files[0]->path);
        }
        assert_int_equal(lab.plan.n_fields, x->manifest.message->n_fields);
        lab.ours = lab.theirs;
        lab_merge(&lab, base, x, base); /* keeps x */
        lab_expect(&lab, &(struct expect){.outcome = LFS_OUTCOME_EMPTY});
        assert_string_equal(everything(&lab), want);
        lab_merge(&lab, base, x, x); /* x */
        lab_expect(&lab, &(struct expect){.outcome = LFS_OUTCOME_EMPTY});
        assert_string_equal(everything(&lab), want);
        lab_merge(&lab, base, base, base);
        lab_expect(&lab, &(struct expect){.outcome = LFS_OUTCOME_EMPTY});
        lab_merge(&lab, x, x, base); /* back again: a revert; a dropped column is not read from its old file again */
        assert_int_equal(lab.result, 0);
        assert_true(lab.plan.outcome == LFS_OUTCOME_FAST_FORWARD || strstr(lab.plan.refusal, "one data file"));
        lab_free(&lab);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(laws),
        cmocka_unit_test(rows_agree_with_the_model),
        cmocka_unit_test(rows_agree_with_the_model_after_compactions),
        cmocka_unit_test(indexes_are_true),
    };
    return cmocka_run_group_tests_name("random", tests, NULL, NULL);
}
