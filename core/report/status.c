/* SPDX-License-Identifier: Apache-2.0 */
/* .status: what a branch is in a few words, one a line. */
#include <string.h>

#include "report/report_impl.h"

struct totals {
    uint64_t rows, deleted, files, bytes;
};

static struct totals count(const LanceManifest *m) {
    struct totals t = {0};
    for (size_t i = 0; i < m->n_fragments; i++) {
        const LanceFragment *f = m->fragments[i];
        t.rows += lfs_report_live(f);
        t.deleted += f->physical_rows - lfs_report_live(f);
        t.files += f->n_files;
        for (size_t k = 0; k < f->n_files; k++)
            t.bytes += f->files[k]->file_size_bytes;
    }
    return t;
}

static void put_key(struct lfs_buf *out, const char *key) { lfs_line_words(out, "%s", key); }

static void put_number(struct lfs_buf *out, const char *key, uint64_t value) {
    put_key(out, key);
    lfs_line_number(out, value);
    lfs_line_end(out);
}

static void put_text(struct lfs_buf *out, const char *key, const char *value) {
    put_key(out, key);
    lfs_line_text(out, value);
    lfs_line_end(out);
}

static const char *towards(uint64_t ahead, uint64_t behind) {
    return ahead == 0 ? "up-to-date" : behind == 0 ? "fast-forward" : "merge";
}

/* How the branch stands to its parent. */
static errint_t put_relation(struct lfs_report *report, const struct lfs_branch *parent, struct lfs_version *tip,
                             struct lfs_error *err) {
    struct lfs_vector mine, theirs;
    lfs_vector_init(&mine, report->arena);
    lfs_vector_init(&theirs, report->arena);
    LFS_TRY(lfs_state_vector(&report->branch, report->tip, &mine, err));
    LFS_TRY(lfs_state_vector(parent, tip, &theirs, err));
    uint64_t ahead = lfs_lines_ahead(&report->lines, &mine, &theirs), behind = lfs_lines_ahead(&report->lines, &theirs, &mine);
    lfs_report_raise_time(report, lfs_report_time(tip));
    put_number(report->out, "parent-version", tip->number);
    put_number(report->out, "ahead", ahead);
    put_number(report->out, "behind", behind);
    put_text(report->out, "into-parent", towards(ahead, behind));
    put_text(report->out, "from-parent", towards(behind, ahead));
    return 0;
}

static errint_t put_parent(struct lfs_report *report, struct lfs_error *err) {
    const struct lfs_branch *b = &report->branch,
                            *parent = b->parent_uuid ? lfs_lines_branch(&report->lines, b->parent_uuid) : NULL;
    AUTO_VERSION *tip = NULL;
    struct lfs_error why = {0};
    uint64_t number;
    enum lfs_naming naming;
    put_key(report->out, "parent");
    if (b->parent_name)
        lfs_line_text(report->out, lfs_sprintf(report->arena, "%s@%" PRIu64, parent ? parent->name : b->parent_name,
                                               lfs_branch_first(b)));
    else
        lfs_line_text(report->out, NULL);
    lfs_line_end(report->out);
    if (!b->parent_name)
        return 0;
    if (!parent) {
        put_text(report->out, "parent-version", "deleted");
        return 0;
    }
    errint_t result = lfs_dataset_tip(report->dataset, parent->dir, &number, &naming, &why);
    if (result == 0)
        result = lfs_dataset_version(report->dataset, parent->dir, number, &tip, &why);
    if (result == 0)
        result = put_relation(report, parent, tip, &why);
    if (result == -ENOMEM)
        return lfs_fail_nomem(err);
    if (result < 0)
        lfs_line_comment(report->out, "ahead and behind cannot be told", why.message);
    return 0;
}

/* The newest version that a merge made; the lineage in the tip says whether there can be one at all. */
static errint_t put_last_merge(struct lfs_report *report, struct lfs_error *err) {
    const LanceManifest *m = report->tip->manifest.message;
    bool any = lfs_entries_get(m->table_metadata, m->n_table_metadata, LFS_KEY_VECTOR);
    uint64_t first = lfs_branch_first(&report->branch);
    put_key(report->out, "last-merge");
    for (uint64_t v = report->tip->number; any && v >= first && v; v--) {
        AUTO_VERSION *version = NULL;
        if (lfs_lines_version(&report->lines, report->branch.uuid, v, &version, NULL) < 0)
            continue;
        const LanceTransaction *t = version->manifest.transaction;
        const char *operation = lfs_transaction_property(t, LFS_PROPERTY_OPERATION);
        if (!operation || strcmp(operation, "merge") != 0)
            continue;
        lfs_line_number(report->out, v);
        lfs_line_text(report->out, lfs_transaction_property(t, "lancefs.source"));
        lfs_line_time(report->out, lfs_report_time(version));
        lfs_line_end(report->out);
        return lfs_buf_check(report->out, err);
    }
    lfs_line_text(report->out, NULL);
    lfs_line_end(report->out);
    return 0;
}

/* Something to type in the branch's directory. */
static void put_typed(struct lfs_report *report, const char *word, const char *file) {
    lfs_line_text(report->out, lfs_sprintf(report->arena, "echo %s > %s", word, file));
}

/* What is typed next: a line for the first conflict without a choice, either side; or what goes on when all are chosen. */
static void put_next(struct lfs_report *report, const struct lfs_conflicts_told *told) {
    const char *file = lfs_sprintf(report->arena, LFS_CONFLICTS "/%" PRIu64 "/choice", told->next);
    put_key(report->out, "next");
    if (told->busy) {
        lfs_line_text(report->out, NULL);
    } else if (!told->open) {
        put_typed(report, "continue", ".merge");
    } else if (!told->ours && !told->theirs) {
        put_typed(report, "abort", ".merge");
    } else {
        if (told->ours)
            put_typed(report, "ours", file);
        if (told->theirs)
            put_typed(report, "theirs", file);
    }
    lfs_line_end(report->out);
}

/* The command that stopped on conflicts here and waits for choices. */
static errint_t put_waiting(struct lfs_report *report, struct lfs_error *err) {
    struct lfs_conflicts_at at = {report->conflicts, report->dataset, report->branch.name, LFS_CONFLICTS};
    struct lfs_conflicts_told told = {0};
    if (report->conflicts)
        LFS_TRY(lfs_conflicts_tell(&at, report->arena, &told, err));
    put_key(report->out, "waiting");
    lfs_line_text(report->out, !told.file ? NULL : told.by_root ? lfs_sprintf(report->arena, "MNT/%s", told.file) : told.file);
    if (told.file)
        lfs_line_text(report->out, told.line);
    lfs_line_end(report->out);
    if (!told.file)
        return 0;
    put_number(report->out, "conflicts", told.count);
    put_number(report->out, "chosen", told.chosen);
    put_next(report, &told);
    lfs_report_raise_time(report, told.time);
    return 0;
}

errint_t lfs_report_status(struct lfs_report *report, struct lfs_error *err) {
    const LanceManifest *m = report->tip->manifest.message;
    const LanceIndexSection *indices = report->tip->manifest.indices;
    const struct lfs_branch *b = &report->branch;
    struct lfs_buf *out = report->out;
    struct totals totals = count(m);
    lfs_buf_puts(out, "# key\tvalue\n");
    put_text(out, "branch", b->name);
    put_number(out, "version", report->tip->number);
    put_key(out, "time");
    lfs_line_time(out, lfs_report_time(report->tip));
    lfs_line_end(out);
    put_text(out, "uuid", b->uuid);
    put_text(out, "storage",
             lfs_join(report->arena, lfs_dataset_path(report->dataset), b->dir));
    LFS_TRY(put_parent(report, err));
    LFS_TRY(put_last_merge(report, err));
    LFS_TRY(put_waiting(report, err));
    put_number(out, "rows", totals.rows);
    put_number(out, "deleted-rows", totals.deleted);
    put_number(out, "fragments", m->n_fragments);
    put_number(out, "data-files", totals.files);
    put_number(out, "data-bytes", totals.bytes);
    put_number(out, "columns", m->n_fields);
    put_number(out, "indexes", indices ? indices->n_indices : 0);
    put_number(out, "base-paths", m->n_base_paths);
    put_text(out, "row-ids", lfs_manifest_has_stable_row_ids(m) ? "stable" : "addresses");
    put_text(out, "format", m->data_format ? m->data_format->version : NULL);
    return lfs_buf_check(out, err);
}
