/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pairs of operations, each in both directions: one commit on each side. What must come out is counted in rows with names:
 * those of the base, less what either side took away, and what either side brought.
 */
#include <roaring/roaring.h>

#include "merge_builder.h"

enum verdict {
    FINE,
    STOPS,  /* a conflict or a refusal */
    EITHER, /* right, or stopped: what is not done yet, and must not be wrong meanwhile */
};

/* The text of a commit: '@' stands for the side's letter, 's' or 'd'; what follows '#' is the row that it touches. */
struct operation {
    const char *name, *text;
    const char *gone_s, *gone_d, *new; /* names of rows */
};

#define BASE "field 0 id int64; field 1 v int32 null; field 2 w int32 null; frag 0 A 4; frag 1 B 4"

enum { APPEND, DELETE, UPDATE, ADD, DROP, ALTER, COMPACT, INDEX, OVERWRITE, CONFIG, N_OPERATIONS };

static const struct operation operations[N_OPERATIONS] = {
    [APPEND] = {"append", "op append; frag 2 N@ 2", "", "", "N@0 N@1"},
    [DELETE] = {"delete", "op delete; dead A #", "A1", "A2", ""},
    [UPDATE] = {"update", "op update; dead B #; frag 2 U@ 1", "B1", "B2", "U@0"},
    [ADD] = {"add column", "op merge; field 3 x@ int32 null; files A A:0,1,2+X@:3; files B B:0,1,2+Y@:3", "", "", ""},
    [DROP] = {"drop column", "op project; -field 1", "", "", ""},
    [ALTER] = {"alter", "op project; field 1 v@ int32 null", "", "", ""},
    [COMPACT] = {"compaction", "op rewrite A,B>C@; -frag A; -frag B; frag 3 C@ 8; max 3", "", "", ""},
    [INDEX] = {"index", "op index; index i@ uuid-@ 0", "", "", ""},
    [OVERWRITE] = {"overwrite", "op overwrite; -frag A; -frag B; frag 2 O@ 2", "A0 A1 A2 A3 B0 B1 B2 B3",
                   "A0 A1 A2 A3 B0 B1 B2 B3", "O@0 O@1"},
    [CONFIG] = {"config", "op config; config @=1", "", "", ""},
};

/* Rows: source. Columns: destination. */
#define F FINE
#define S STOPS
#define E EITHER
static const enum verdict verdicts[N_OPERATIONS][N_OPERATIONS] = {
    /*               append delete update add drop alter compact index overwrite config */
    [APPEND] = {F, F, F, F, F, F, F, F, S, F},    [DELETE] = {F, F, F, F, F, F, F, F, S, F},
    [UPDATE] = {F, F, F, F, F, F, F, F, S, F},    [ADD] = {F, F, F, F, F, F, E, F, S, F},
    [DROP] = {F, F, F, F, F, S, F, F, F, F},      [ALTER] = {F, F, F, F, S, S, F, F, F, F},
    [COMPACT] = {F, F, F, F, F, F, F, F, E, F},   [INDEX] = {F, F, F, F, F, F, F, F, F, F},
    [OVERWRITE] = {S, S, S, S, F, F, E, F, S, F}, [CONFIG] = {F, F, F, F, F, F, F, F, F, F},
};
#undef F
#undef S
#undef E

struct pair {
    const struct operation *source, *dest;
    enum verdict verdict;
    char name[64];
};

static char *fill(const char *text, char side, const char *row) {
    char *out = calloc(1, strlen(text) + 8), *p = out;
    assert_non_null(out);
    for (; *text; text++)
        *p++ = *text == '@' ? side : *text == '#' ? row[1] : *text;
    return out;
}

/* --- sets of names --- */

struct names {
    char list[32][32];
    size_t n;
};

static void put_name(struct names *names, const char *name) {
    assert_true(names->n < COUNT(names->list));
    snprintf(names->list[names->n++], sizeof names->list[0], "%s", name);
}

static void put_words(struct names *names, const char *words) {
    char word[8];
    for (int used; sscanf(words, "%7s%n", word, &used) == 1; words += used)
        put_name(names, word);
}

static bool has_name(const struct names *names, const char *name) {
    for (size_t i = 0; i < names->n; i++)
        if (strcmp(names->list[i], name) == 0)
            return true;
    return false;
}

/* Row `i` of a file. A compaction of all holds the rows of A, then those of B. */
static void row_name(char *out, size_t size, const char *path, uint32_t i) {
    if (path[0] == 'C')
        snprintf(out, size, "%c%u", i < 4 ? 'A' : 'B', i % 4);
    else
        snprintf(out, size, "%s%u", path, i);
}

static void live_names(struct lab *lab, struct names *out) {
    for (size_t i = 0; i < lab->plan.n_fragments; i++) {
        roaring_bitmap_t *live = lab_live(lab, &lab->plan.fragments[i]);
        for (uint32_t k = 0; k < lab->plan.fragments[i].record->physical_rows; k++) {
            char name[32];
            row_name(name, sizeof name, lab_path(&lab->plan.fragments[i]), k);
            if (!roaring_bitmap_contains(live, k))
                continue;
            if (has_name(out, name))
                fail_msg("row %s is there twice: %s", name, lab_rows(lab));
            put_name(out, name);
        }
        roaring_bitmap_free(live);
    }
}

static void one_pair(void **state) {
    const struct pair *p = *state;
    static const char *const base_rows = "A0 A1 A2 A3 B0 B1 B2 B3";
    char *source = fill(p->source->text, 's', p->source->gone_s), *dest = fill(p->dest->text, 'd', p->dest->gone_d);
    char *new_s = fill(p->source->new, 's', ""), *new_d = fill(p->dest->new, 'd', "");
    struct scene scene = {.base = BASE, .theirs = {source}, .ours = {dest}};
    struct names base = {.n = 0}, gone = {.n = 0}, wanted = {.n = 0}, live = {.n = 0};
    struct lab lab;
    put_words(&base, base_rows);
    put_words(&gone, p->source->gone_s);
    put_words(&gone, p->dest->gone_d);
    for (size_t i = 0; i < base.n; i++)
        if (!has_name(&gone, base.list[i]))
            put_name(&wanted, base.list[i]);
    put_words(&wanted, new_s);
    put_words(&wanted, new_d);
    lab_run(&lab, &scene);
    if (lab.result)
        fail_msg("%s", lab.err.message);
    bool stopped = lab.plan.outcome >= LFS_OUTCOME_CONFLICT;
    if (p->verdict != EITHER)
        assert_int_equal(stopped, p->verdict == STOPS);
    if (!stopped) {
        live_names(&lab, &live);
        for (size_t i = 0; i < wanted.n; i++)
            if (!has_name(&live, wanted.list[i]))
                fail_msg("row %s is missing: %s", wanted.list[i], lab_rows(&lab));
        if (live.n != wanted.n)
            fail_msg("%zu rows instead of %zu: %s", live.n, wanted.n, lab_rows(&lab));
    }
    lab_free(&lab);
    free(source);
    free(dest);
    free(new_s);
    free(new_d);
}

/* --- what the rows do not show --- */

static const struct example examples[] = {
    {.name = "append and append: ids are given anew",
     .scene = {.base = BASE, .theirs = {"op append; frag 2 S 2; frag 3 T 2"}, .ours = {"op append; frag 2 D 2; max 7"}},
     .expect = {.ids = "A=0 B=1 D=2 S=8 T=9"}},
    {.name = "append and add column: the new rows are null there, and noted",
     .scene = {.base = BASE,
               .theirs = {"op append; frag 2 S 5"},
               .ours = {"op merge; field 3 x int32 null; files A A:0,1,2+X:3; files B B:0,1,2+Y:3"}},
     .expect = {.note = "column x is null in 5 rows", .schema = "0 id int64, 1 v int32?, 2 w int32?, 3 x int32?"},
     .swapped = &(const struct expect){.note = "column x is null in 5 rows",
                                       .schema = "0 id int64, 1 v int32?, 2 w int32?, 4 x int32?"}},
    {.name = "append and add column that may not be null: refused",
     .scene = {.base = BASE,
               .theirs = {"op append; frag 2 S 5"},
               .ours = {"op merge; field 3 x int32; files A A:0,1,2+X:3; files B B:0,1,2+Y:3"}},
     .expect = {.outcome = LFS_OUTCOME_REFUSED, .refusal = "column x may not be null"},
     .both = true},
    {.name = "update and add column: the updated rows are null there, and noted",
     .scene = {.base = BASE,
               .theirs = {"op update; dead A 1; frag 2 U 1"},
               .ours = {"op merge; field 3 x int32 null; files A A:0,1,2+X:3; files B B:0,1,2+Y:3"}},
     .expect = {.note = "column x is null in 1 rows"},
     .both = true},
    {.name = "update and update of one row: conflict",
     .scene = {.base = BASE,
               .theirs = {"op update; dead A 1; frag 2 U 1"},
               .ours = {"op update; dead A 1; frag 2 V 1"}},
     .expect = {.outcome = LFS_OUTCOME_CONFLICT, .conflicts = "update-update row 1 of fragment 0"},
     .both = true},
    {.name = "delete and update of one row: conflict",
     .scene = {.base = BASE, .theirs = {"op update; dead A 1-2; frag 2 U 2"}, .ours = {"op delete; dead A 2-3"}},
     .expect = {.outcome = LFS_OUTCOME_CONFLICT, .conflicts = "delete-update row 2 of fragment 0"},
     .swapped =
         &(const struct expect){.outcome = LFS_OUTCOME_CONFLICT, .conflicts = "update-delete row 2 of fragment 0"}},
    {.name = "delete and delete of one row: deleted",
     .scene = {.base = BASE, .theirs = {"op delete; dead A 1-2"}, .ours = {"op delete; dead A 2-3"}},
     .expect = {.rows = "A 0; B 0-3"},
     .both = true},
    {.name = "two deletes leave no row: the fragment is removed",
     .scene = {.base = BASE, .theirs = {"op delete; dead A 1-2"}, .ours = {"op delete; dead A 0,3"}},
     .expect = {.rows = "B 0-3"},
     .both = true},
    {.name = "a delete of the fragment and a delete in it",
     .scene = {.base = BASE, .theirs = {"op delete; -frag A"}, .ours = {"op delete; dead A 0,3"}},
     .expect = {.rows = "B 0-3"},
     .swapped = &(const struct expect){.outcome = LFS_OUTCOME_EMPTY, .rows = "B 0-3"}},
    {.name = "a delete of the fragment and an update in it: conflict",
     .scene = {.base = BASE, .theirs = {"op delete; -frag A"}, .ours = {"op update; dead A 0; frag 2 U 1"}},
     .expect = {.outcome = LFS_OUTCOME_CONFLICT, .conflicts = "update-delete row 0 of fragment 0"},
     .swapped =
         &(const struct expect){.outcome = LFS_OUTCOME_CONFLICT, .conflicts = "delete-update row 0 of fragment 0"}},
    {.name = "the same deletes in two files: nothing to do",
     .scene = {.base = BASE, .theirs = {"op delete; dead A 1"}, .ours = {"op delete; dead A 1"}},
     .expect = {.outcome = LFS_OUTCOME_EMPTY, .rows = "A 0,2-3; B 0-3"},
     .both = true},
    {.name = "add column and add column of one name: conflict",
     .scene = {.base = BASE,
               .theirs = {"op merge; field 3 x int32 null; files A A:0,1,2+X:3"},
               .ours = {"op merge; field 3 x int32 null; files A A:0,1,2+Y:3"}},
     .expect = {.outcome = LFS_OUTCOME_CONFLICT, .conflicts = "add-add column x"},
     .both = true},
    {.name = "drop column and alter: conflict",
     .scene = {.base = BASE, .theirs = {"op project; field 1 v int64 null"}, .ours = {"op project; -field 1"}},
     .expect = {.outcome = LFS_OUTCOME_CONFLICT, .conflicts = "drop-alter column v"},
     .swapped = &(const struct expect){.outcome = LFS_OUTCOME_CONFLICT, .conflicts = "alter-drop column v"}},
    {.name = "drop column and an update that rewrote its data: conflict",
     .scene = {.base = BASE, .theirs = {"op update; files A A:0,-2,2+X:1"}, .ours = {"op project; -field 1"}},
     .expect = {.outcome = LFS_OUTCOME_CONFLICT, .conflicts = "drop-alter column v"},
     .swapped = &(const struct expect){.outcome = LFS_OUTCOME_CONFLICT, .conflicts = "alter-drop column v"}},
    {.name = "alter and alter: two attributes of one column",
     .scene = {.base = BASE, .theirs = {"op project; field 1 renamed int32 null"}, .ours = {"op config; meta 1 k=v"}},
     .expect = {.schema = "0 id int64, 1 renamed int32? {k=v}, 2 w int32?"},
     .both = true},
    {.name = "alter of the type and append of the old type: refused",
     .scene = {.base = BASE,
               .theirs = {"op append; frag 2 S 2"},
               .ours = {"op merge; field 1 v int64 null; files A A:0,-2,2+X:1; files B B:0,-2,2+Y:1"}},
     .expect = {.outcome = LFS_OUTCOME_REFUSED, .refusal = "column v changed its type"},
     .both = true},
    {.name = "rewrite of a column and an update of rows: refused",
     .scene = {.base = BASE,
               .theirs = {"op replace-data; files A A:0,-2,2+X:1"},
               .ours = {"op update; dead A 1; frag 2 U 1"}},
     .expect = {.outcome = LFS_OUTCOME_REFUSED, .refusal = "rewrote a column of fragment 0"},
     .both = true},
    {.name = "rewrite of a column and a delete of rows: both",
     .scene = {.base = BASE, .theirs = {"op replace-data; files A A:0,-2,2+X:1"}, .ours = {"op delete; dead A 1"}},
     .expect = {.rows = "A 0,2-3; B 0-3", .files = "A:0,-2,2+X:1; B:0,1,2"},
     .both = true},
    {.name = "rewrite of a column by theirs: ours' index no longer covers the fragment",
     .scene = {.base = BASE "; index i uuid 1 over 0-1",
               .theirs = {"op replace-data; files B B:0,-2,2+X:1"},
               .ours = {"op config; config k=1"}},
     .expect = {.indexes = "i uuid 1 @0"}},
    {.name = "rewrites of two columns of one fragment",
     .scene = {.base = BASE,
               .theirs = {"op replace-data; files A A:0,-2,2+X:1"},
               .ours = {"op replace-data; files A A:0,1,-2+Y:2"}},
     .expect = {.files = "A:0,-2,-2+Y:2+X:1; B:0,1,2"},
     .swapped = &(const struct expect){.files = "A:0,-2,-2+X:1+Y:2; B:0,1,2"}},
    {.name = "rewrite of one column on both sides: conflict",
     .scene = {.base = BASE,
               .theirs = {"op replace-data; files A A:0,-2,2+X:1"},
               .ours = {"op replace-data; files A A:0,-2,2+Y:1"}},
     .expect = {.outcome = LFS_OUTCOME_CONFLICT, .conflicts = "rewrite-rewrite data of column v in fragment 0"},
     .both = true},
    {.name = "overwrite, and the other changed no data: the replaced state, and the other's config (s1)",
     .scene = {.base = BASE,
               .theirs = {"op overwrite; -frag A; -frag B; frag 2 O 5"},
               .ours = {"op config; config k=1"}},
     .expect = {.rows = "O 0-4", .config = "k=1"},
     .both = true},
    {.name = "overwrite, and the other changed rows: stopped as a whole (s1)",
     .scene = {.base = BASE, .theirs = {"op overwrite; -frag A; -frag B; frag 2 O 5"}, .ours = {"op delete; dead A 1"}},
     .expect = {.outcome = LFS_OUTCOME_CONFLICT, .conflicts = "replaced table"},
     .both = true},
    {.name = "overwrite, and the other changed rows: source-wins",
     .scene = {.base = BASE "; config a=1",
               .theirs = {"op overwrite; -frag A; -frag B; frag 0 O 5; config a=2"},
               .ours = {"op delete; dead A 1; config b=1; index i d1 1 over 0-1"},
               .policy = {.rows = LFS_STRATEGY_SOURCE}},
     .expect = {.rows = "O 0-4", .ids = "O=2", .config = "a=2 b=1", .indexes = "", .note = "main did to its rows and columns is dropped"},
     .swapped = &(const struct expect){.rows = "A 0,2-3; B 0-3", .config = "a=2 b=1", .indexes = "",
                                       .note = "main did to its rows and columns is dropped"}},
    {.name = "overwrite, and the other changed rows: dest-wins",
     .scene = {.base = BASE,
               .theirs = {"op overwrite; -frag A; -frag B; frag 0 O 5"},
               .ours = {"op delete; dead A 1"},
               .policy = {.rows = LFS_STRATEGY_DEST}},
     .expect = {.outcome = LFS_OUTCOME_EMPTY, .rows = "A 0,2-3; B 0-3", .note = "feature did to its rows and columns is dropped"},
     .swapped = &(const struct expect){.outcome = LFS_OUTCOME_EMPTY, .rows = "O 0-4"}},
    {.name = "overwrite with another schema, and the other changed rows: source-wins",
     .scene = {.base = BASE,
               .theirs = {"op overwrite; -frag A; -frag B; -field 1; -field 2; field 1 word string; frag 0 O 5"},
               .ours = {"op append; frag 2 D 1"},
               .policy = {.rows = LFS_STRATEGY_SOURCE}},
     .expect = {.rows = "O 0-4", .ids = "O=3", .schema = "0 id int64, 3 word string", .files = "O:0,3"}},
    {.name = "overwrite on both sides: conflict",
     .scene = {.base = BASE,
               .theirs = {"op overwrite; -frag A; -frag B; frag 0 O 5"},
               .ours = {"op overwrite; -frag A; -frag B; frag 0 P 5"}},
     .expect = {.outcome = LFS_OUTCOME_CONFLICT, .conflicts = "replaced table"},
     .both = true},
    {.name = "overwrite, and the other compacted: the replaced state",
     .scene = {.base = BASE,
               .theirs = {"op overwrite; -frag A; -frag B; frag 2 O 5"},
               .ours = {"op rewrite A,B>C; -frag A; -frag B; frag 3 C 8; max 3"}},
     .expect = {.rows = "O 0-4"},
     .swapped = &(const struct expect){.outcome = LFS_OUTCOME_EMPTY, .rows = "O 0-4"}},
    {.name = "overwrite, and the other indexed: the index is dropped",
     .scene = {.base = BASE,
               .theirs = {"op overwrite; -frag A; -frag B; frag 2 O 5"},
               .ours = {"op index; index i d1 1 over 0-1"}},
     .expect = {.rows = "O 0-4", .indexes = "", .note = "index i of main is dropped"},
     .swapped = &(const struct expect){.outcome = LFS_OUTCOME_EMPTY, .rows = "O 0-4", .indexes = "", .note = "index i of feature is dropped"}},
    {.name = "a restore that took an appended fragment away, and rows deleted: conflict",
     .scene = {.base = BASE,
               .theirs = {"op restore; -frag B"},
               .ours = {"op delete; dead A 1"}},
     .expect = {.outcome = LFS_OUTCOME_CONFLICT, .conflicts = "replaced table"},
     .both = true},
    {.name = "a restore that comes back to the base is no change (s1)",
     .scene = {.base = BASE,
               .theirs = {"op delete; dead A 1", "op restore; dead A none"},
               .ours = {"op delete; dead A 1-2"}},
     .expect = {.outcome = LFS_OUTCOME_EMPTY, .rows = "A 0,3; B 0-3"},
     .swapped = &(const struct expect){.rows = "A 0,3; B 0-3"}},
    {.name = "rows brought back by a restore, and others deleted",
     .scene = {.base = "field 0 id int64; frag 0 A 4 dead 0-1",
               .theirs = {"op restore; dead A 0"},
               .ours = {"op delete; dead A 0-2"}},
     .expect = {.rows = "A 1,3"},
     .both = true},
    {.name = "rows inserted on both sides under a primary key: refused",
     .scene = {.base = "field 0 id int64 key; field 1 v int32 null; frag 0 A 4",
               .theirs = {"op append; frag 1 S 2"},
               .ours = {"op append; frag 1 D 2"}},
     .expect = {.outcome = LFS_OUTCOME_REFUSED, .refusal = "declares a primary key (id)"},
     .both = true},
    {.name = "under a primary key that one side declared since: refused",
     .scene = {.base = "field 0 id int64; field 1 v int32 null; frag 0 A 4",
               .theirs = {"op config; field 0 id int64 key; meta 0 lance-schema:unenforced-primary-key=true", "op append; frag 1 S 2"},
               .ours = {"op append; frag 1 D 2"}},
     .expect = {.outcome = LFS_OUTCOME_REFUSED, .refusal = "declares a primary key (id)"},
     .both = true},
    {.name = "an update that does not say what it set may have inserted: refused",
     .scene = {.base = "field 0 id int64 key; field 1 v int32 null; frag 0 A 4",
               .theirs = {"op update; dead A 1; frag 1 S 1"},
               .ours = {"op append; frag 1 D 2"}},
     .expect = {.outcome = LFS_OUTCOME_REFUSED, .refusal = "declares a primary key (id)"},
     .both = true},
    {.name = "rows inserted on one side, deleted and compacted on the other, under a primary key",
     .scene = {.base = "field 0 id int64 key; field 1 v int32 null; frag 0 A 4; frag 1 B 4",
               .theirs = {"op append; frag 2 S 2"},
               .ours = {"op delete; dead A 1", "op rewrite B>C; -frag B; frag 2 C 4; max 2"}},
     .expect = {.rows = "A 0,2-3; C 0-3; S 0-1"},
     .swapped = &(const struct expect){.rows = "A 0,2-3; S 0-1; C 0-3"}},
    {.name = "config: two keys",
     .scene = {.base = BASE "; config a=1; config b=1",
               .theirs = {"op config; config a=2"},
               .ours = {"op config; -config b"}},
     .expect = {.config = "a=2"},
     .both = true},
    {.name = "keys of lancefs itself are never a conflict",
     .scene = {.base = BASE,
               .theirs = {"op config; table lancefs.vector=a; table t=1"},
               .ours = {"op config; table lancefs.vector=b"}},
     .expect = {.table = "t=1"},
     .swapped = &(const struct expect){.outcome = LFS_OUTCOME_EMPTY, .table = "t=1"}},
    {.name = "formats are not mixed",
     .scene = {.base = BASE, .theirs = {"op overwrite; format 2.1; frag 2 N 1"}, .ours = {"op config; config k=1"}},
     .expect = {.outcome = LFS_OUTCOME_REFUSED, .refusal = "have format 2.0, those of feature 2.1"}},
};

static void damaged_vector_is_an_error(void **state) {
    (void)state;
    check_scene_fails(&(struct scene){.base = BASE, .theirs = {"op delete; dead A 1 wrong"}, .moved = true},
                      LFS_E_CORRUPT, "names a row that is not there");
    check_scene_fails(&(struct scene){.base = BASE, .theirs = {"op append; frag 2 N 3 dead 1 gone"}, .moved = true},
                      LFS_E_NOT_FOUND, "is gone");
}

static void untouched_vectors_are_not_read(void **state) {
    (void)state;
    struct lab lab;
    lab_run(&lab, &(struct scene){.base = "field 0 id int64; frag 0 A 4 dead 1; frag 1 B 4 dead 2",
                                  .theirs = {"op append; frag 2 S 1"},
                                  .ours = {"op append; frag 2 D 1"}});
    assert_int_equal(lab.plan.outcome, LFS_OUTCOME_MERGED);
    assert_int_equal(lab.deletions_read, 0);
    assert_string_equal(lab_rows(&lab), "A 0,2-3; B 0-1,3; D 0; S 0");
    lab_free(&lab);
}

static void states_that_cannot_be(void **state) {
    (void)state;
    check_scene_fails(&(struct scene){.base = BASE, .theirs = {"frag 2 C:0+A:1 4"}, .moved = true}, LFS_E_CORRUPT,
                      "shares a data file");
    check_scene_fails(&(struct scene){.base = BASE, .theirs = {"-frag A; frag 0 A 5"}, .moved = true}, LFS_E_CORRUPT,
                      "rows in one version");
    check_scene_fails(&(struct scene){.base = BASE, .theirs = {"-frag A; files B B:0+A:1"}, .moved = true},
                      LFS_E_CORRUPT, "two different fragments");
}

int main(void) {
    static struct pair pairs[N_OPERATIONS * N_OPERATIONS];
    static struct CMUnitTest tests[COUNT(pairs)];
    size_t n = 0;
    for (size_t s = 0; s < N_OPERATIONS; s++)
        for (size_t d = 0; d < N_OPERATIONS; d++) {
            struct pair *p = &pairs[n];
            *p = (struct pair){&operations[s], &operations[d], verdicts[s][d], ""};
            snprintf(p->name, sizeof p->name, "source %s, dest %s", p->source->name, p->dest->name);
            tests[n++] = (struct CMUnitTest){.name = p->name, .test_func = one_pair, .initial_state = p};
        }
    const struct CMUnitTest others[] = {
        cmocka_unit_test(damaged_vector_is_an_error),
        cmocka_unit_test(untouched_vectors_are_not_read),
        cmocka_unit_test(states_that_cannot_be),
    };
    int failed = _cmocka_run_group_tests("pairs", tests, n, NULL, NULL);
    failed += run_examples("pairs, in detail", examples, COUNT(examples));
    return failed + cmocka_run_group_tests_name("states", others, NULL, NULL);
}
