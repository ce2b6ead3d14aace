/* SPDX-License-Identifier: Apache-2.0 */
/* A plan as text, and compared with what is expected of it. */
#include <inttypes.h>

#include "merge_builder.h"

static const char *const outcomes[] = {"merged", "fast-forward", "empty", "conflict", "refused"};

const char *lab_path(const struct lfs_plan_fragment *f) { return f->record->files[0]->path; }

roaring_bitmap_t *lab_live(struct lab *lab, const struct lfs_plan_fragment *f) {
    roaring_bitmap_t *dead = NULL;
    if (f->deletion == LFS_DELETION_NEW) {
        dead = f->deleted ? roaring_bitmap_copy(f->deleted) : roaring_bitmap_create();
    } else {
        const LanceFragment *record = f->deletion == LFS_DELETION_THEIRS ? f->theirs : f->record;
        struct lfs_error err;
        assert_non_null(record);
        /* A file that is placed under its own name must fit the fragment's id. */
        if (f->deletion == LFS_DELETION_THEIRS)
            assert_true(record->deletion_file && record->id == f->id);
        assert_ok(lab->reader.deletions(lab, f->is_theirs ? lab->input.theirs : lab->input.ours, record, &dead, &err),
                  err);
    }
    roaring_bitmap_t *live = roaring_bitmap_from_range(0, f->record->physical_rows, 1);
    assert_true(dead && live && roaring_bitmap_is_subset(dead, live));
    roaring_bitmap_andnot_inplace(live, dead);
    roaring_bitmap_free(dead);
    return live;
}

/* --- text --- */

struct text {
    char *bytes;
    size_t length;
    FILE *stream;
};

static FILE *begin(struct text *t) {
    *t = (struct text){0};
    t->stream = open_memstream(&t->bytes, &t->length);
    assert_non_null(t->stream);
    return t->stream;
}

static char *end(struct text *t, struct lab *lab) {
    fclose(t->stream);
    char *copy = lfs_strdup(lab->arena, t->bytes);
    free(t->bytes);
    assert_non_null(copy);
    return copy;
}

static void print_set(FILE *out, const roaring_bitmap_t *set) {
    uint64_t n = roaring_bitmap_get_cardinality(set);
    uint32_t *list = malloc((n + 1) * sizeof *list);
    assert_non_null(list);
    roaring_bitmap_to_uint32_array(set, list);
    for (uint64_t i = 0, from; i < n; i++) {
        for (from = i; i + 1 < n && list[i + 1] == list[i] + 1; i++)
            ;
        fprintf(out, from ? ",%u" : "%u", list[from]);
        if (i > from)
            fprintf(out, "-%u", list[i]);
    }
    fputs(n ? "" : "-", out);
    free(list);
}

char *lab_rows(struct lab *lab) {
    struct text t;
    FILE *out = begin(&t);
    for (size_t i = 0; i < lab->plan.n_fragments; i++) {
        roaring_bitmap_t *live = lab_live(lab, &lab->plan.fragments[i]);
        fprintf(out, "%s%s ", i ? "; " : "", lab_path(&lab->plan.fragments[i]));
        print_set(out, live);
        roaring_bitmap_free(live);
    }
    return end(&t, lab);
}

char *lab_ids(struct lab *lab) {
    struct text t;
    FILE *out = begin(&t);
    for (size_t i = 0; i < lab->plan.n_fragments; i++)
        fprintf(out, "%s%s=%" PRIu64, i ? " " : "", lab_path(&lab->plan.fragments[i]), lab->plan.fragments[i].id);
    return end(&t, lab);
}

char *lab_files(struct lab *lab) {
    struct text t;
    FILE *out = begin(&t);
    for (size_t i = 0; i < lab->plan.n_fragments; i++) {
        const struct lfs_plan_fragment *f = &lab->plan.fragments[i];
        for (size_t k = 0; k < (f->files ? f->n_files : f->record->n_files); k++) {
            const LanceDataFile *file = f->files ? f->files[k].record : f->record->files[k];
            fprintf(out, "%s%s:", k ? "+" : i ? "; " : "", file->path);
            for (size_t j = 0; j < file->n_fields; j++)
                fprintf(out, "%s%d", j ? "," : "", file->fields[j]);
        }
    }
    return end(&t, lab);
}

static void print_path(FILE *out, const struct lfs_plan *p, const LanceField *f) {
    for (size_t i = 0; f->parent_id >= 0 && i < p->n_fields; i++)
        if (p->fields[i]->id == f->parent_id) {
            print_path(out, p, p->fields[i]);
            fputc('.', out);
        }
    fputs(f->name, out);
}

static void print_metadata(FILE *out, const LanceField *f) {
    for (size_t i = 0; i < f->n_metadata; i++)
        fprintf(out, "%s%s=%.*s%s", i ? "," : " {", f->metadata[i]->key, (int)f->metadata[i]->value.len,
                (const char *)f->metadata[i]->value.data, i + 1 == f->n_metadata ? "}" : "");
}

char *lab_schema(struct lab *lab) {
    struct text t;
    FILE *out = begin(&t);
    for (size_t i = 0; i < lab->plan.n_fields; i++) {
        const LanceField *f = lab->plan.fields[i];
        fprintf(out, "%s%d ", i ? ", " : "", f->id);
        print_path(out, &lab->plan, f);
        fprintf(out, " %s%s%s", f->logical_type, f->nullable ? "?" : "", f->unenforced_primary_key ? " key" : "");
        if (f->extension_name && *f->extension_name)
            fprintf(out, " ext %s", f->extension_name);
        print_metadata(out, f);
    }
    return end(&t, lab);
}

static int by_key(const void *a, const void *b) {
    return strcmp((*(LanceStringEntry *const *)a)->key, (*(LanceStringEntry *const *)b)->key);
}

static char *render_map(struct lab *lab, LanceStringEntry **entries, size_t n) {
    struct text t;
    FILE *out = begin(&t);
    if (n)
        qsort(entries, n, sizeof *entries, by_key); /* the order of a map means nothing */
    for (size_t i = 0; i < n; i++)
        fprintf(out, "%s%s=%s", i ? " " : "", entries[i]->key, entries[i]->value);
    return end(&t, lab);
}

char *lab_config(struct lab *lab) { return render_map(lab, lab->plan.config, lab->plan.n_config); }
char *lab_table(struct lab *lab) { return render_map(lab, lab->plan.table_metadata, lab->plan.n_table_metadata); }

static int by_bytes_key(const void *a, const void *b) {
    return strcmp((*(LanceBytesEntry *const *)a)->key, (*(LanceBytesEntry *const *)b)->key);
}

char *lab_schema_metadata(struct lab *lab) {
    struct text t;
    FILE *out = begin(&t);
    struct lfs_plan *p = &lab->plan;
    if (p->n_schema_metadata)
        qsort(p->schema_metadata, p->n_schema_metadata, sizeof *p->schema_metadata, by_bytes_key);
    for (size_t i = 0; i < p->n_schema_metadata; i++)
        fprintf(out, "%s%s=%.*s", i ? " " : "", p->schema_metadata[i]->key, (int)p->schema_metadata[i]->value.len,
                (const char *)p->schema_metadata[i]->value.data);
    return end(&t, lab);
}

char *lab_indexes(struct lab *lab) {
    struct text t;
    FILE *out = begin(&t);
    for (size_t i = 0; i < lab->plan.n_indices; i++) {
        const LanceIndex *x = lab->plan.indices[i].record;
        fprintf(out, "%s%s %.*s", i ? "; " : "", x->name, (int)x->uuid->uuid.len, (const char *)x->uuid->uuid.data);
        for (size_t k = 0; k < x->n_fields; k++)
            fprintf(out, k ? ",%d" : " %d", x->fields[k]);
        if (x->has_fragment_bitmap) {
            roaring_bitmap_t *covered = roaring_bitmap_portable_deserialize_safe((const char *)x->fragment_bitmap.data,
                                                                                 x->fragment_bitmap.len);
            assert_non_null(covered);
            fputs(" @", out);
            print_set(out, covered);
            roaring_bitmap_free(covered);
        }
        fputs(lab->plan.indices[i].is_theirs ? " theirs" : "", out);
    }
    return end(&t, lab);
}

char *lab_conflicts(struct lab *lab) {
    struct text t;
    FILE *out = begin(&t);
    for (size_t i = 0; i < lab->plan.conflicts.count; i++) {
        const struct lfs_conflict *c = lab->plan.conflicts.items[i];
        fprintf(out, "%s%s %s", i ? "; " : "", c->kind, c->unit);
    }
    return end(&t, lab);
}

/* --- comparing --- */

/* Everything that a failure is understood by. */
static char *story(struct lab *lab) {
    struct text t;
    FILE *out = begin(&t);
    const struct lfs_plan *p = &lab->plan;
    fprintf(out, "\n  outcome %s%s%s", outcomes[p->outcome], p->refusal ? ": " : "", p->refusal ? p->refusal : "");
    if (p->n_conflicts)
        fprintf(out, "\n  conflicts %s", lab_conflicts(lab));
    for (size_t i = 0; i < p->notes.count; i++)
        fprintf(out, "\n  note %s", (const char *)p->notes.items[i]);
    if (p->outcome < LFS_OUTCOME_CONFLICT)
        fprintf(out, "\n  rows %s\n  ids %s\n  files %s\n  schema %s\n  indexes %s", lab_rows(lab), lab_ids(lab),
                lab_files(lab), lab_schema(lab), lab_indexes(lab));
    fputc('\n', out);
    return end(&t, lab);
}

static void same(struct lab *lab, const char *what, const char *expected, char *(*render)(struct lab *)) {
    if (expected && strcmp(expected, render(lab)))
        fail_msg("%s: expected \"%s\", is \"%s\"%s", what, expected, render(lab), story(lab));
}

static void expect_note(struct lab *lab, const char *part) {
    const struct lfs_list *notes = &lab->plan.notes;
    bool found = !*part && notes->count == 0;
    for (size_t i = 0; *part && i < notes->count; i++)
        found |= strstr(notes->items[i], part) != NULL;
    if (!found)
        fail_msg("notes: expected \"%s\"%s", part, story(lab));
}

void lab_expect(struct lab *lab, const struct expect *e) {
    if (lab->result)
        fail_msg("merge3 failed: %s", lab->err.message);
    enum lfs_outcome wanted =
        e->outcome == LFS_OUTCOME_MERGED && lab->input.ours_is_base ? LFS_OUTCOME_FAST_FORWARD : e->outcome;
    if (lab->plan.outcome != wanted)
        fail_msg("expected %s%s", outcomes[wanted], story(lab));
    same(lab, "conflicts", e->conflicts ? e->conflicts : wanted == LFS_OUTCOME_CONFLICT ? NULL : "", lab_conflicts);
    if (e->refusal && (!lab->plan.refusal || !strstr(lab->plan.refusal, e->refusal)))
        fail_msg("no refusal says \"%s\"%s", e->refusal, story(lab));
    if (e->note)
        expect_note(lab, e->note);
    if (wanted == LFS_OUTCOME_CONFLICT || wanted == LFS_OUTCOME_REFUSED)
        return;
    same(lab, "rows", e->rows, lab_rows);
    same(lab, "ids", e->ids, lab_ids);
    same(lab, "files", e->files, lab_files);
    same(lab, "schema", e->schema, lab_schema);
    same(lab, "config", e->config, lab_config);
    same(lab, "table metadata", e->table, lab_table);
    same(lab, "schema metadata", e->schema_metadata, lab_schema_metadata);
    same(lab, "indexes", e->indexes, lab_indexes);
}

void check_scene(const struct scene *scene, const struct expect *expect) {
    struct lab lab;
    lab_run(&lab, scene);
    lab_expect(&lab, expect);
    lab_free(&lab);
}

void check_scene_fails(const struct scene *scene, enum lfs_code code, const char *text) {
    struct lab lab;
    lab_run(&lab, scene);
    if (!lab.result)
        fail_msg("should fail%s", story(&lab));
    assert_int_equal(lab.err.code, code);
    if (!strstr(lab.err.message, text))
        fail_msg("\"%s\" does not say \"%s\"", lab.err.message, text);
    lab_free(&lab);
}

static void one_example(void **state) {
    const struct example *e = *state;
    struct scene swapped = scene_swapped(&e->scene);
    check_scene(&e->scene, &e->expect);
    if (e->both)
        check_scene(&swapped, &e->expect);
    if (e->swapped)
        check_scene(&swapped, e->swapped);
}

int run_examples(const char *group, const struct example *examples, size_t n) {
    struct CMUnitTest *tests = calloc(n, sizeof *tests);
    assert_non_null(tests);
    for (size_t i = 0; i < n; i++)
        tests[i] = (struct CMUnitTest){
            .name = examples[i].name, .test_func = one_example, .initial_state = (void *)&examples[i]};
    int failed = _cmocka_run_group_tests(group, tests, n, NULL, NULL);
    free(tests);
    return failed;
}
