/* SPDX-License-Identifier: Apache-2.0 */
/* .schema: the columns of the tip, in their order. */
#include "merge/field_match.h"
#include "report/report_impl.h"

static void put_metadata(struct lfs_buf *out, const LanceField *f) {
    LFS_AUTO_BUF text = {0};
    for (size_t i = 0; i < f->n_metadata; i++) {
        const Lance__File__MetadataEntry *e = f->metadata[i];
        lfs_buf_printf(&text, "%s%s=", i ? " " : "", e->key ? e->key : "");
        if (e->has_value)
            lfs_buf_add(&text, e->value.data, e->value.len);
    }
    out->failed |= text.failed;
    lfs_line_bytes(out, text.data, text.length);
}

errint_t lfs_report_schema(struct lfs_report *report, struct lfs_error *err) {
    const LanceManifest *m = report->tip->manifest.message;
    struct lfs_buf *out = report->out;
    lfs_buf_puts(out, "# id\tparent\tcolumn\ttype\tnullable\tkey\tmetadata\n");
    for (size_t i = 0; i < m->n_fields; i++) {
        const LanceField *f = m->fields[i];
        lfs_line_words(out, "%d", f->id);
        lfs_line_words(out, "%d", f->has_parent_id ? f->parent_id : -1);
        lfs_line_text(out, lfs_field_path(report->arena, m, f));
        lfs_line_text(out, f->logical_type);
        lfs_line_words(out, "%s", f->nullable ? "yes" : "no");
        lfs_line_words(out, "%s", f->unenforced_primary_key ? "primary" : "-");
        put_metadata(out, f);
        lfs_line_end(out);
    }
    return lfs_buf_check(out, err);
}
