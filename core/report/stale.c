/* SPDX-License-Identifier: Apache-2.0 */
/* .stale: what is left to do: columns that some fragments lack (their rows read as null), and rows that no index covers. */
#include <stdlib.h>
#include <string.h>

#include "format/roaring_check.h"
#include "merge/field.h"
#include "merge/field_match.h"
#include "report/report_impl.h"
#include "util/bitmap.h"
#include "util/map.h"

static bool has_children(const LanceManifest *m, const LanceField *f) {
    for (size_t i = 0; i < m->n_fields; i++)
        if (m->fields[i]->has_parent_id && m->fields[i]->parent_id == f->id)
            return true;
    return false;
}

static void put_rows(struct lfs_buf *out, const LanceFragment *f) {
    lfs_line_number(out, f->id);
    if (f->physical_rows)
        lfs_line_words(out, "0..%" PRIu64, f->physical_rows - 1);
    else
        lfs_line_text(out, NULL);
    lfs_line_number(out, lfs_report_live(f));
}

static errint_t put_columns(struct lfs_report *report, struct lfs_error *err) {
    const LanceManifest *m = report->tip->manifest.message;
    for (size_t i = 0; i < m->n_fields; i++) {
        const LanceField *f = m->fields[i];
        if (has_children(m, f)) /* files hold the leaves */
            continue;
        const char *path = lfs_field_path(report->arena, m, f);
        for (size_t k = 0; k < m->n_fragments; k++) {
            if (lfs_field_place(m->fragments[k], f->id).file)
                continue;
            lfs_line_words(report->out, "backfill");
            lfs_line_text(report->out, path);
            put_rows(report->out, m->fragments[k]);
            lfs_line_end(report->out);
        }
    }
    return lfs_buf_check(report->out, err);
}

/* --- indexes, by name: a name can have several segments --- */

struct covered {
    const char *name;
    roaring_bitmap_t *fragments;
    bool unknown; /* a segment does not tell what it covers */
};

static errint_t add_segment(struct covered *c, const LanceIndex *index, struct lfs_error *err) {
    const ProtobufCBinaryData *bytes = &index->fragment_bitmap;
    if (!index->has_fragment_bitmap) {
        c->unknown = true;
        return 0;
    }
    LFS_TRY(lfs_roaring_check(bytes->data, bytes->len, "an index's list of fragments", err));
    AUTO_BITMAP *segment = roaring_bitmap_portable_deserialize_safe((const char *)bytes->data, bytes->len);
    if (!segment)
        return lfs_fail_nomem(err);
    roaring_bitmap_or_inplace(c->fragments, segment);
    return 0;
}

static errint_t put_index(struct lfs_report *report, const struct covered *c) {
    const LanceManifest *m = report->tip->manifest.message;
    struct lfs_buf *out = report->out;
    for (size_t i = 0; i < m->n_fragments; i++) {
        const LanceFragment *f = m->fragments[i];
        if (!c->unknown && f->id <= UINT32_MAX && roaring_bitmap_contains(c->fragments, (uint32_t)f->id))
            continue;
        lfs_line_words(out, c->unknown ? "index-unknown" : "index");
        lfs_line_text(out, c->name);
        put_rows(out, f);
        lfs_line_end(out);
    }
    return 0;
}

static errint_t put_indexes(struct lfs_report *report, struct lfs_map *names, struct lfs_error *err) {
    const LanceIndexSection *list = report->tip->manifest.indices;
    for (size_t i = 0; list && i < list->n_indices; i++) {
        const char *name = list->indices[i]->name ? list->indices[i]->name : "";
        struct covered *c = lfs_map_get(names, name);
        if (!c) {
            c = LFS_NEW(report->arena, struct covered);
            if (!c || !(c->fragments = roaring_bitmap_create()))
                return lfs_fail_nomem(err);
            c->name = name;
            if (!lfs_map_put(names, name, c)) {
                roaring_bitmap_free(c->fragments);
                return lfs_fail_nomem(err);
            }
        }
        LFS_TRY(add_segment(c, list->indices[i], err));
    }
    for (size_t i = 0; i < names->count; i++)
        LFS_TRY(put_index(report, names->entries[i].value));
    return lfs_buf_check(report->out, err);
}

errint_t lfs_report_stale(struct lfs_report *report, struct lfs_error *err) {
    struct lfs_map names;
    lfs_map_init(&names, report->arena);
    lfs_buf_puts(report->out, "# todo\tname\tfragment\toffsets\trows\n");
    LFS_TRY(put_columns(report, err));
    errint_t result = put_indexes(report, &names, err);
    for (size_t i = 0; i < names.count; i++)
        roaring_bitmap_free(((struct covered *)names.entries[i].value)->fragments);
    return result;
}
