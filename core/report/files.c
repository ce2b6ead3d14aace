/* SPDX-License-Identifier: Apache-2.0 */
/* .files and .bases: where everything that the tip uses really lies. */
#include <stdio.h>
#include <string.h>

#include "format/deletion.h"
#include "report/report_impl.h"
#include "table/location.h"

enum { UUID_BYTES = 16 };

struct file {
    const LanceFragment *fragment; /* NULL: an index's */
    enum lfs_file_kind kind;
    int64_t base_id;
    const char *name;
    uint64_t size; /* what the manifest tells; 0: nothing */
};

static int64_t base_of(protobuf_c_boolean has, uint32_t id) { return has ? (int64_t)id : LFS_NO_BASE; }

/* The path by which the storage is reached: as the data set was opened, links in it left alone. */
static char *real_path(struct lfs_report *report, const struct lfs_location *at) {
    if (!at->inside)
        return lfs_sprintf(report->arena, "%s/%s", at->directory, at->name);
    return lfs_sprintf(report->arena, "%s/%s/%s", lfs_dataset_path(report->dataset), at->directory, at->name);
}

static const char *stored_path(struct lfs_report *report, const struct file *file) {
    const LanceBasePath *base =
        file->base_id == LFS_NO_BASE ? NULL : lfs_manifest_base(report->tip->manifest.message, (uint32_t)file->base_id);
    return lfs_sprintf(report->arena, "%s/%s", base && base->path ? base->path : "?", file->name);
}

static errint_t put_file(struct lfs_report *report, const struct file *file, struct lfs_error *err) {
    static const char *const words[] = {
        [LFS_FILE_DATA] = "data", [LFS_FILE_DELETION] = "deletion", [LFS_FILE_INDEX] = "index"};
    struct lfs_buf *out = report->out;
    struct lfs_location at;
    struct stat st = {0};
    errint_t found = lfs_locate(report->tip, file->kind, file->base_id, file->name, report->arena, &at, err);
    if (found == -ENOMEM)
        return found;
    const char *path = found < 0 ? stored_path(report, file) : real_path(report, &at);
    if (found == 0)
        found = lfs_location_stat(report->dataset, &at, &st, NULL);
    if (!path)
        return lfs_fail_nomem(err);
    if (file->fragment)
        lfs_line_number(out, file->fragment->id);
    else
        lfs_line_text(out, NULL);
    lfs_line_words(out, "%s", words[file->kind]);
    if (!file->fragment)
        lfs_line_text(out, NULL);
    else
        lfs_line_number(out, file->kind == LFS_FILE_DATA ? lfs_report_live(file->fragment)
                                                         : file->fragment->deletion_file->num_deleted_rows);
    if (found == 0 || file->size)
        lfs_line_number(out, found == 0 ? (uint64_t)st.st_size : file->size);
    else
        lfs_line_text(out, NULL);
    if (file->base_id == LFS_NO_BASE)
        lfs_line_text(out, NULL);
    else
        lfs_line_number(out, (uint64_t)file->base_id);
    lfs_line_words(out, "%s", found == 0 ? "yes" : "no");
    lfs_line_text(out, path);
    lfs_line_end(out);
    return 0;
}

static errint_t put_fragment(struct lfs_report *report, const LanceFragment *f, struct lfs_error *err) {
    for (size_t i = 0; i < f->n_files; i++) {
        const LanceDataFile *d = f->files[i];
        struct file file = {f, LFS_FILE_DATA, base_of(d->has_base_id, d->base_id), d->path ? d->path : "",
                            d->file_size_bytes};
        LFS_TRY(put_file(report, &file, err));
    }
    const LanceDeletionFile *deletion = f->deletion_file;
    if (!deletion)
        return 0;
    char name[80];
    lfs_deletion_file_name(f->id, deletion, name, sizeof name);
    struct file file = {f, LFS_FILE_DELETION, base_of(deletion->has_base_id, deletion->base_id), name, 0};
    return put_file(report, &file, err);
}

/* As a directory below _indices is called; NULL for what is no uuid, or when memory is short. */
static char *uuid_text(struct lfs_arena *arena, const LanceIndex *index) {
    if (!index->uuid || index->uuid->uuid.len != UUID_BYTES)
        return NULL;
    const uint8_t *u = index->uuid->uuid.data;
    return lfs_sprintf(arena, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0], u[1], u[2],
                       u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14], u[15]);
}

/* An old engine does not tell an index's files: its directory stands for them. */
static errint_t put_index(struct lfs_report *report, const LanceIndex *index, struct lfs_error *err) {
    char *uuid = uuid_text(report->arena, index);
    for (size_t i = 0; uuid && i < index->n_files; i++) {
        const Lance__Table__IndexFile *f = index->files[i];
        char *name = lfs_sprintf(report->arena, "%s/%s", uuid, f->path ? f->path : "");
        if (!name)
            return lfs_fail_nomem(err);
        struct file file = {NULL, LFS_FILE_INDEX, base_of(index->has_base_id, index->base_id), name, f->size_bytes};
        LFS_TRY(put_file(report, &file, err));
    }
    return 0;
}

errint_t lfs_report_list_files(struct lfs_report *report, struct lfs_error *err) {
    const LanceManifest *m = report->tip->manifest.message;
    const LanceIndexSection *indices = report->tip->manifest.indices;
    lfs_buf_puts(report->out, "# fragment\tkind\trows\tbytes\tbase\tthere\tpath\n");
    for (size_t i = 0; i < m->n_fragments; i++)
        LFS_TRY(put_fragment(report, m->fragments[i], err));
    for (size_t i = 0; indices && i < indices->n_indices; i++)
        LFS_TRY(put_index(report, indices->indices[i], err));
    return lfs_buf_check(report->out, err);
}

/* --- .bases --- */

struct use {
    uint64_t files, bytes;
    const char *example; /* one of them: where a base path has several meanings, a file that is there tells */
};

static void count(struct use *use, int64_t base, const LanceManifest *m) {
    for (size_t i = 0; i < m->n_fragments; i++) {
        const LanceFragment *f = m->fragments[i];
        for (size_t k = 0; k < f->n_files; k++)
            if (base_of(f->files[k]->has_base_id, f->files[k]->base_id) == base) {
                use->files++;
                use->bytes += f->files[k]->file_size_bytes;
                use->example = f->files[k]->path;
            }
        if (f->deletion_file && base_of(f->deletion_file->has_base_id, f->deletion_file->base_id) == base)
            use->files++;
    }
}

static errint_t put_base(struct lfs_report *report, const LanceBasePath *base, struct lfs_error *err) {
    const LanceManifest *m = report->tip->manifest.message;
    struct lfs_buf *out = report->out;
    struct lfs_location at;
    struct lfs_error why = {0};
    struct use use = {0};
    int64_t id = base ? (int64_t)base->id : LFS_NO_BASE;
    count(&use, id, m);
    errint_t found =
        lfs_locate(report->tip, LFS_FILE_DATA, id, use.example ? use.example : "-", report->arena, &at, &why);
    if (found == -ENOMEM)
        return lfs_fail_nomem(err);
    const char *place = found < 0 ? why.message
                        : !at.inside
                            ? at.directory
                            : lfs_sprintf(report->arena, "%s/%s", lfs_dataset_path(report->dataset), at.directory);
    if (!place)
        return lfs_fail_nomem(err);
    if (base)
        lfs_line_number(out, base->id);
    else
        lfs_line_text(out, NULL);
    lfs_line_text(out, base ? base->name : NULL);
    lfs_line_words(out, "%s", !base || base->is_dataset_root ? "root" : "plain");
    lfs_line_number(out, use.files);
    lfs_line_number(out, use.bytes);
    lfs_line_text(out, base ? base->path : NULL);
    lfs_line_text(out, place);
    lfs_line_end(out);
    return 0;
}

errint_t lfs_report_bases(struct lfs_report *report, struct lfs_error *err) {
    const LanceManifest *m = report->tip->manifest.message;
    lfs_buf_puts(report->out, "# id\tname\tkind\tfiles\tbytes\tpath\tdata\n");
    LFS_TRY(put_base(report, NULL, err));
    for (size_t i = 0; i < m->n_base_paths; i++)
        LFS_TRY(put_base(report, m->base_paths[i], err));
    return lfs_buf_check(report->out, err);
}
