/* SPDX-License-Identifier: Apache-2.0 */
/* What holds of every plan, whatever was merged. */
#include <inttypes.h>

#include "merge/match.h"
#include "merge_builder.h"

static bool state_has_file(const struct lfs_version *v, const char *path) {
    return lfs_match_find(v->manifest.message, path) != NULL;
}

static void check_files(const struct lab *lab, const struct lfs_plan_fragment *f) {
    int32_t seen[256];
    size_t n_seen = 0, n = f->files ? f->n_files : f->record->n_files;
    assert_true(n > 0);
    for (size_t i = 0; i < n; i++) {
        const LanceDataFile *file = f->files ? f->files[i].record : f->record->files[i];
        bool theirs = f->files ? f->files[i].is_theirs : f->is_theirs;
        assert_true(state_has_file(theirs ? lab->input.theirs : lab->input.ours, file->path));
        for (size_t k = 0; k < file->n_fields; k++) {
            if (file->fields[k] < 0)
                continue;
            for (size_t j = 0; j < n_seen; j++)
                if (seen[j] == file->fields[k])
                    fail_msg("field %d stands in fragment %" PRIu64 " twice", seen[j], f->id);
            assert_true(n_seen < COUNT(seen));
            seen[n_seen++] = file->fields[k];
        }
    }
}

/* An entry names columns that are there; what it covers is there, or will never be. */
static void check_index(const struct lfs_plan *p, const struct lfs_plan_index *index) {
    for (size_t k = 0; k < index->record->n_fields; k++) {
        bool there = false;
        for (size_t i = 0; i < p->n_fields; i++)
            there |= p->fields[i]->id == index->record->fields[k];
        if (!there)
            fail_msg("index %s is on field %d, which is not there", index->record->name, index->record->fields[k]);
    }
}

static void check_fields(const struct lfs_plan *p) {
    for (size_t i = 0; i < p->n_fields; i++) {
        bool has_parent = p->fields[i]->parent_id < 0;
        assert_true(p->fields[i]->id >= 0);
        for (size_t k = 0; k < i; k++) {
            if (p->fields[k]->id == p->fields[i]->id)
                fail_msg("two fields have id %d", p->fields[i]->id);
            if (p->fields[k]->parent_id == p->fields[i]->parent_id &&
                strcmp(p->fields[k]->name, p->fields[i]->name) == 0)
                fail_msg("two fields are called %s", p->fields[i]->name);
            has_parent |= p->fields[k]->id == p->fields[i]->parent_id;
        }
        if (!has_parent)
            fail_msg("field %s has no parent before it", p->fields[i]->name);
    }
}

void lab_check_plan(struct lab *lab) {
    struct lfs_plan *p = &lab->plan;
    if (p->refusal)
        assert_int_equal(p->outcome, LFS_OUTCOME_REFUSED);
    else if (p->n_conflicts)
        assert_int_equal(p->outcome, LFS_OUTCOME_CONFLICT);
    if (p->outcome == LFS_OUTCOME_CONFLICT)
        assert_true(p->n_conflicts > 0 && p->conflicts.count > 0);
    if (p->outcome == LFS_OUTCOME_REFUSED)
        assert_true(p->refusal && *p->refusal);
    assert_true(p->conflicts.count <= p->n_conflicts);
    for (size_t i = 0; i < p->conflicts.count; i++) {
        const struct lfs_conflict *c = p->conflicts.items[i];
        assert_true(*c->kind && *c->unit && c->base && c->ours && c->theirs); /* a value may be empty */
    }
    if (p->outcome == LFS_OUTCOME_CONFLICT || p->outcome == LFS_OUTCOME_REFUSED)
        return;
    if (p->outcome == LFS_OUTCOME_EMPTY)
        assert_false(p->fragments_changed || p->schema_changed || p->maps_changed || p->indices_changed);
    for (size_t i = 0; i < p->n_fragments; i++) {
        const struct lfs_plan_fragment *f = &p->fragments[i];
        roaring_bitmap_t *live = lab_live(lab, f);
        if (roaring_bitmap_get_cardinality(live) + f->n_deleted != f->record->physical_rows)
            fail_msg("fragment %" PRIu64 ": %" PRIu64 " rows deleted, and %" PRIu64 " live of %" PRIu64, f->id,
                     f->n_deleted, roaring_bitmap_get_cardinality(live), f->record->physical_rows);
        roaring_bitmap_free(live);
        assert_true(i == 0 || p->fragments[i - 1].id < f->id);
        assert_true(p->has_max_fragment_id && p->max_fragment_id >= f->id);
        check_files(lab, f);
    }
    if (lab->input.ours->manifest.message->has_max_fragment_id)
        assert_true(p->max_fragment_id >= lab->input.ours->manifest.message->max_fragment_id);
    check_fields(p);
    for (size_t i = 0; i < p->n_indices; i++)
        check_index(p, &p->indices[i]);
}
