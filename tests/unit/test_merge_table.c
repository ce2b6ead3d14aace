/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The three-way table, row by row, for each unit, under each strategy. A test's name says the unit, the row as "base source
 * dest" (X is absent), and the strategy. What is expected comes from the table; where a strategy's choice cannot be carried
 * out, the conflict stays, and the unit says so. A row that a unit cannot have stands here too, as a test that is skipped: its
 * name says why.
 */
#include "merge_builder.h"

struct row {
    char base, source, dest, result; /* '!' is a conflict */
};

static const struct row rows[] = {
    {'A', 'A', 'A', 'A'}, {'A', 'B', 'B', 'B'}, {'A', 'B', 'C', '!'}, {'A', 'A', 'B', 'B'}, {'A', 'B', 'A', 'B'},
    {'X', 'B', 'X', 'B'}, {'X', 'B', 'B', 'B'}, {'A', 'X', 'X', 'X'}, {'A', 'B', 'X', '!'}, {'A', 'X', 'B', '!'},
    {'A', 'A', 'X', 'X'}, {'A', 'X', 'A', 'X'}, {'X', 'X', 'B', 'B'}, {'X', 'B', 'C', '!'},
};

static const char *const strategies[] = {
    [LFS_STRATEGY_FAIL] = "fail", [LFS_STRATEGY_SOURCE] = "source-wins", [LFS_STRATEGY_DEST] = "dest-wins"};

struct unit {
    const char *name;
    const char *values; /* the letters that the unit can be, X among them */
    /* Text of a base with the value, and of a side's way from the base's value to its own. */
    void (*base)(char *out, char value);
    void (*side)(char *out, char from, char to);
    /* The result with the value: what the plan shows of it. */
    char *(*show)(struct lab *lab);
    void (*result)(char *out, const struct row *row, char value);
    const char *conflict; /* its kind and unit begin so */
    /* NULL: every conflict is decided by a strategy. Else: can this one not be? */
    bool (*undecided)(const struct row *row, enum lfs_strategy strategy);
    bool (*applies)(const struct row *row); /* NULL: to all rows of those values */
    const char *otherwise;                  /* why not to the others */
};

enum { TEXT = 400 };
/* Not checked as printf: an absent value leaves its argument unused. */
static void put(char *out, const char *format, ...) {
    va_list args;
    va_start(args, format);
    assert_in_range(vsnprintf(out, TEXT, format, args), 0, TEXT - 1);
    va_end(args);
}
#define SCHEMA "field 0 a int64; "

/* --- maps --- */

#define MAP_UNIT(word, before)                                                                                         \
    static void word##_base(char *out, char v) {                                                                       \
        put(out, v == 'X' ? SCHEMA before : SCHEMA before #word " k=%c", v);                                           \
    }                                                                                                                  \
    static void word##_side(char *out, char from, char to) {                                                           \
        (void)from;                                                                                                    \
        put(out, to == 'X' ? "op config; -" #word " k" : "op config; " #word " k=%c", to);                             \
    }
MAP_UNIT(config, "config other=1; ")
MAP_UNIT(table, "table other=1; table lancefs.vector=main:1; ")
MAP_UNIT(schema, "schema other=1; ")

static void map_result(char *out, const struct row *row, char v) {
    (void)row;
    put(out, v == 'X' ? "other=1" : "k=%c other=1", v);
}

/* --- attributes of a field --- */

static void meta_base(char *out, char v) {
    put(out, v == 'X' ? "field 0 a int64; meta 0 z=1" : "field 0 a int64; meta 0 k=%c; meta 0 z=1", v);
}
static void meta_side(char *out, char from, char to) {
    (void)from;
    put(out, to == 'X' ? "op config; -meta 0 k" : "op config; meta 0 k=%c; -meta 0 z; meta 0 z=1", to);
}
static char *meta_show(struct lab *lab) { /* the order of a map means nothing */
    const LanceField *f = lab->plan.fields[0];
    const char *value = NULL;
    for (size_t i = 0; i < f->n_metadata; i++)
        if (strcmp(f->metadata[i]->key, "k") == 0)
            value = lfs_strndup(lab->arena, (char *)f->metadata[i]->value.data, f->metadata[i]->value.len);
    return lfs_sprintf(lab->arena, "%zu keys, k=%s", f->n_metadata, value ? value : "(absent)");
}
static void meta_result(char *out, const struct row *row, char v) {
    (void)row;
    put(out, v == 'X' ? "1 keys, k=(absent)" : "2 keys, k=%c", v);
}

static void name_text(char *out, char v) { put(out, "field 0 %c int64; field 1 z int32 null", v); }
static void type_text(char *out, char v) { put(out, "field 0 a type%c; field 1 z int32 null", v); }
static void null_text(char *out, char v) {
    put(out, "field 0 a int64%s; field 1 z int32 null", v == 'B' ? " null" : "");
}
static void key_text(char *out, char v) { put(out, "field 0 a int64%s; field 1 z int32 null", v == 'B' ? " key" : ""); }
static void ext_text(char *out, char v) {
    put(out, v == 'X' ? "field 0 a int64; field 1 z int32 null" : "field 0 a int64 ext %c; field 1 z int32 null", v);
}

#define ATTRIBUTE_UNIT(word, format, argument)                                                                         \
    static void word##_base(char *out, char v) {                                                                       \
        char field[TEXT];                                                                                              \
        word##_text(field, v);                                                                                         \
        put(out, "%s; frag 0 F:0,1 4", field);                                                                         \
    }                                                                                                                  \
    static void word##_side(char *out, char from, char to) {                                                           \
        char field[TEXT];                                                                                              \
        (void)from;                                                                                                    \
        word##_text(field, to);                                                                                        \
        put(out, "op project; %s", field);                                                                             \
    }                                                                                                                  \
    static void word##_result(char *out, const struct row *row, char v) {                                              \
        (void)row;                                                                                                     \
        put(out, format ", 1 z int32?", argument);                                                                     \
    }
ATTRIBUTE_UNIT(name, "0 %c int64", v)
ATTRIBUTE_UNIT(type, "0 a type%c", v)
ATTRIBUTE_UNIT(null, "0 a int64%s", v == 'B' ? "?" : "")
ATTRIBUTE_UNIT(key, "0 a int64%s", v == 'B' ? " key" : "")
ATTRIBUTE_UNIT(ext, "0 a int64%s", v == 'A' ? " ext A" : v == 'B' ? " ext B" : v == 'C' ? " ext C" : "")

/* --- a field as a whole --- */

static void field_base(char *out, char v) {
    (void)v;
    put(out, "field 0 a int64; field 1 v int32 null; frag 0 F:0,1 4");
}
static void field_side(char *out, char from, char to) {
    (void)from;
    put(out, to == 'X' ? "op project; -field 1" : "op project; field 1 v%c int32 null", to);
}
static void field_result(char *out, const struct row *row, char v) {
    (void)row;
    put(out, v == 'X' ? "0 a int64" : v == 'A' ? "0 a int64, 1 v int32?" : "0 a int64, 1 v%c int32?", v);
}
static bool of_base(const struct row *row) { return row->base != 'X'; }
static bool not_of_base(const struct row *row) { return row->base == 'X'; }
/* Ours may have removed the data of a column that it dropped: theirs cannot win it back. */
static bool dropped_by_ours(const struct row *row, enum lfs_strategy strategy) {
    return row->dest == 'X' && strategy == LFS_STRATEGY_SOURCE;
}

static void new_field_base(char *out, char v) {
    (void)v;
    put(out, "field 0 a int64; frag 0 F:0 4");
}
static void new_field_side(char *out, char from, char to) {
    (void)from;
    put(out, "op merge; field 1 v %s null; files F F:0+N%c:1", to == 'B' ? "int32" : "utf8", to);
}
static char *new_field_show(struct lab *lab) {
    const char *type = "absent", *file = "-";
    int32_t id = -1;
    for (size_t i = 0; i < lab->plan.n_fields; i++)
        if (strcmp(lab->plan.fields[i]->name, "v") == 0) {
            type = lab->plan.fields[i]->logical_type;
            id = lab->plan.fields[i]->id;
        }
    const struct lfs_plan_fragment *f = &lab->plan.fragments[0];
    for (size_t i = 0; id >= 0 && i < (f->files ? f->n_files : f->record->n_files); i++) {
        const LanceDataFile *d = f->files ? f->files[i].record : f->record->files[i];
        for (size_t k = 0; k < d->n_fields; k++)
            file = d->fields[k] == id ? d->path : file;
    }
    return lfs_sprintf(lab->arena, "v %s in %s", type, file);
}
static void new_field_result(char *out, const struct row *row, char v) {
    (void)row;
    put(out, "v %s in N%c", v == 'B' ? "int32" : "utf8", v);
}

/* --- data of a column in a fragment; X: the column was dropped, or (in the base) is null in the fragment --- */

static void data_base(char *out, char v) {
    put(out, v == 'X' ? "field 0 a int64; field 1 v int32 null; frag 0 F:0 4"
                      : "field 0 a int64; field 1 v int32 null; frag 0 F:0+DA:1 4");
}
static void data_side(char *out, char from, char to) {
    (void)from;
    put(out, to == 'X' ? "op project; -field 1; files F F:0" : "op replace-data; files F F:0+D%c:1", to);
}
static char *data_show(struct lab *lab) { return lfs_sprintf(lab->arena, "%s | %s", lab_schema(lab), lab_files(lab)); }
static void data_result(char *out, const struct row *row, char v) {
    if (v == 'X')
        put(out, "0 a int64 | F:0");
    else
        put(out, "0 a int64, 1 v int32? | F:0+D%c:1", v);
    (void)row;
}

/* --- a fragment: B and C are other incarnations of it, with other data --- */

static void fragment_base(char *out, char v) {
    (void)v;
    put(out, "field 0 a int64; field 1 v int32 null; frag 0 F:0+DA:1 4; frag 1 G:0,1 4");
}
static void fragment_side(char *out, char from, char to) {
    (void)from;
    put(out, to == 'X' ? "op delete; -frag F" : "op replace-data; files F F:0+D%c:1", to);
}
static void fragment_result(char *out, const struct row *row, char v) {
    (void)row;
    put(out, v == 'X' ? "G:0,1" : "F:0+D%c:1; G:0,1", v);
}
/* The loser's choice has removed what the winner would need, or the winner's data stand in a fragment of other ids. */
static bool fragment_is_gone(const struct row *row, enum lfs_strategy strategy) {
    return row->dest == 'X' && strategy == LFS_STRATEGY_SOURCE;
}

static void new_fragment_base(char *out, char v) {
    (void)v;
    put(out, "field 0 a int64; frag 0 F:0 4");
}
static void new_fragment_side(char *out, char from, char to) {
    (void)from;
    put(out, "op append; frag 1 N%c:0 4", to);
}
/* New fragments are never in conflict: both are there. */
static void new_fragment_result(char *out, const struct row *row, char v) {
    if (row->result == '!')
        put(out, "F=0 N%c=1 N%c=2", row->dest, row->source);
    else
        put(out, "F=0 N%c=1", v);
}

/* --- a row: row 1 of F. X deleted; B and C are updated by two commits, and stand in UB and UC then. With an absent base:
 * B is brought back by a restore, and C cannot be; for B against C both sides took the fragment over and updated the row. --- */

static void row_base(char *out, char v) { put(out, v == 'X' ? SCHEMA "frag 0 F 4 dead 1" : SCHEMA "frag 0 F 4"); }
static void row_side(char *out, char from, char to) {
    if (from == 'X')
        put(out, "op restore; dead F none");
    else if (to == 'X')
        put(out, "op delete; dead F 1");
    else
        put(out, "op update uuid update-%c; dead F 1; frag 1 U%c 1", to, to);
}
static void row_result(char *out, const struct row *row, char v) {
    if (v == 'X')
        put(out, "F 0,2-3");
    else if (v == 'A' || row->base == 'X')
        put(out, "F 0-3");
    else
        put(out, "F 0,2-3; U%c 0", v);
}
/* Both sides' replacement rows would stay, or neither's: the loser has one. */
static bool loser_has_replacement(const struct row *row, enum lfs_strategy strategy) {
    return (strategy == LFS_STRATEGY_SOURCE ? row->dest : row->source) != 'X';
}
static bool row_has_three_values(const struct row *row) { return row->base != 'X' || row->result != '!'; }

static void taken_row_base(char *out, char v) {
    (void)v;
    put(out, SCHEMA "frag 0 F 4");
}
static void taken_row_side(char *out, char from, char to) {
    (void)from;
    put(out, "brought; op append uuid pick; frag 1 N 4 | op update uuid update-%c; dead N 1; frag 2 U%c 1", to, to);
}
static bool both_took_it(const struct row *row) { return row->base == 'X' && row->source != 'X' && row->dest != 'X'; }
static void taken_row_result(char *out, const struct row *row, char v) {
    (void)row;
    put(out, "F 0-3; N 0,2-3; U%c 0", v);
}

/* --- an index, by its name: A, B and C are its type, and its uuid --- */

#define INDEXED "field 0 a int64; frag 0 F:0 4"
static void index_base(char *out, char v) { put(out, v == 'X' ? INDEXED : INDEXED "; index i %c 0 type %c over 0", v, v); }
static void index_side(char *out, char from, char to) {
    (void)from;
    put(out, to == 'X' ? "op index; -index i" : "op index; index i %c 0 type %c over 0", to, to);
}
static char *index_show(struct lab *lab) { /* whose the files are is told by the plan, and checked with every plan */
    char *text = lab_indexes(lab), *theirs = strstr(text, " theirs");
    if (theirs)
        *theirs = 0;
    return text;
}
static void index_result(char *out, const struct row *row, char v) {
    (void)row;
    put(out, v == 'X' ? "" : "i %c 0 @0", v);
}

static bool never(const struct row *row) {
    (void)row;
    return false;
}

static const struct unit units[] = {
    {"config key", "ABCX", config_base, config_side, lab_config, map_result, "value config key k", NULL, NULL, NULL},
    {"table metadata key", "ABCX", table_base, table_side, lab_table, map_result, "value table metadata key k", NULL,
     NULL, NULL},
    {"schema metadata key", "ABCX", schema_base, schema_side, lab_schema_metadata, map_result,
     "value schema metadata key k", NULL, NULL, NULL},
    {"field metadata key", "ABCX", meta_base, meta_side, meta_show, meta_result,
     "alter-alter metadata key k of column a", NULL, NULL, NULL},
    {"field name", "ABC", name_base, name_side, lab_schema, name_result, "alter-alter name of column", NULL, NULL,
     "a column always has a name"},
    {"field type", "ABC", type_base, type_side, lab_schema, type_result, "alter-alter type of column a", NULL, NULL,
     "a column always has a type"},
    {"field nullability", "AB", null_base, null_side, lab_schema, null_result, "", NULL, NULL,
     "it is yes or no: there is no third value, and none is absent"},
    {"field primary key", "AB", key_base, key_side, lab_schema, key_result, "", NULL, NULL,
     "it is yes or no: there is no third value, and none is absent"},
    {"field extension", "ABCX", ext_base, ext_side, lab_schema, ext_result, "alter-alter extension of column a", NULL,
     NULL, NULL},
    {"field parent", "ABCX", NULL, NULL, NULL, NULL, NULL, NULL, never,
     "Lance moves no column into another; one that was moved is refused (test_merge_schema)"},
    {"field", "ABCX", field_base, field_side, lab_schema, field_result, "", dropped_by_ours, of_base,
     "a column that the base lacks is a new field"},
    {"new field", "BCX", new_field_base, new_field_side, new_field_show, new_field_result, "add-add column v", NULL,
     not_of_base, "a column of the base is the unit field"},
    {"column data", "ABCX", data_base, data_side, data_show, data_result, "", dropped_by_ours, NULL, NULL},
    {"fragment", "ABCX", fragment_base, fragment_side, lab_files, fragment_result, "", fragment_is_gone, of_base,
     "a fragment that the base lacks is a new fragment: files have random names, so none comes back"},
    {"new fragment", "BCX", new_fragment_base, new_fragment_side, lab_ids, new_fragment_result, NULL, NULL, not_of_base,
     "a fragment of the base is the unit fragment"},
    {"row", "ABCX", row_base, row_side, lab_rows, row_result, "", loser_has_replacement, row_has_three_values,
     "two other values of a row that the base has deleted: only of a fragment that both took over"},
    {"row of a fragment taken over", "BCX", taken_row_base, taken_row_side, lab_rows, taken_row_result,
     "update-update row 1 of fragment 1", loser_has_replacement, both_took_it,
     "both sides took the fragment over, with its rows: the other rows of the table are those of the unit row"},
    {"index", "ABCX", index_base, index_side, index_show, index_result, "index index i", NULL, NULL, NULL},
    {"base path", "ABCX", NULL, NULL, NULL, NULL, NULL, NULL, never,
     "a union, made where the version is built: tests/pairs/bases.test.mjs"},
};

struct cell {
    const struct unit *unit;
    const struct row *row;
    enum lfs_strategy strategy;
    char name[160];
};

/* The commits of a side, which '|' separates. */
static void split(char *text, const char *steps[LAB_STEPS]) {
    char *save = NULL;
    size_t n = 0;
    for (char *one = strtok_r(text, "|", &save); one; one = strtok_r(NULL, "|", &save))
        steps[n++] = one;
}

static void one_cell(void **state) {
    const struct cell *c = *state;
    const struct unit *u = c->unit;
    char base[TEXT], source[TEXT], dest[TEXT], wanted[TEXT];
    struct scene scene = {.base = base, .policy = LAB_POLICY(c->strategy), .moved = true};
    struct lab lab;
    u->base(base, c->row->base);
    if (c->row->source != c->row->base) {
        u->side(source, c->row->base, c->row->source);
        split(source, scene.theirs);
    }
    if (c->row->dest != c->row->base) {
        u->side(dest, c->row->base, c->row->dest);
        split(dest, scene.ours);
    }
    char result = c->row->result;
    bool conflict = result == '!' && u->conflict;
    if (conflict && c->strategy != LFS_STRATEGY_FAIL && !(u->undecided && u->undecided(c->row, c->strategy))) {
        result = c->strategy == LFS_STRATEGY_SOURCE ? c->row->source : c->row->dest;
        conflict = false;
    }
    struct expect expect = {.outcome = conflict                 ? LFS_OUTCOME_CONFLICT
                                       : result == c->row->dest ? LFS_OUTCOME_EMPTY
                                                                : LFS_OUTCOME_MERGED};
    lab_run(&lab, &scene);
    lab_expect(&lab, &expect);
    if (conflict) {
        assert_int_equal(lab.plan.n_conflicts, 1);
        if (strncmp(lab_conflicts(&lab), u->conflict, strlen(u->conflict)))
            fail_msg("\"%s\" does not begin with \"%s\"", lab_conflicts(&lab), u->conflict);
    } else {
        u->result(wanted, c->row, result);
        assert_string_equal(u->show(&lab), wanted);
    }
    lab_free(&lab);
}

static bool belongs(const struct unit *u, const struct row *row) {
    const char letters[] = {row->base, row->source, row->dest, 0};
    for (const char *p = letters; *p; p++)
        if (!strchr(u->values, *p))
            return false;
    return !u->applies || u->applies(row);
}

static void no_cell(void **state) {
    const struct cell *c = *state;
    assert_non_null(c->unit->otherwise);
    skip();
}

/* The cells of one row of one unit: one a strategy, or one that says why there is none. */
static size_t add_row(struct cell *cells, struct CMUnitTest *tests, const struct unit *u, const struct row *row) {
    bool some = belongs(u, row);
    for (int s = LFS_STRATEGY_FAIL; s <= (some ? LFS_STRATEGY_DEST : LFS_STRATEGY_FAIL); s++) {
        struct cell *c = &cells[s];
        *c = (struct cell){u, row, (enum lfs_strategy)s, ""};
        snprintf(c->name, sizeof c->name, "%s: %c %c %c, %s", u->name, row->base, row->source, row->dest,
                 some ? strategies[s] : u->otherwise);
        tests[s] = (struct CMUnitTest){.name = c->name, .test_func = some ? one_cell : no_cell, .initial_state = c};
    }
    return some ? 3 : 1;
}

int main(void) {
    static struct cell cells[COUNT(units) * COUNT(rows) * 3];
    static struct CMUnitTest tests[COUNT(cells)];
    size_t n = 0;
    for (size_t u = 0; u < COUNT(units); u++)
        for (size_t r = 0; r < COUNT(rows); r++)
            n += add_row(&cells[n], &tests[n], &units[u], &rows[r]);
    return _cmocka_run_group_tests("three-way table", tests, n, NULL, NULL);
}
