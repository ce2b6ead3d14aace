/* SPDX-License-Identifier: Apache-2.0 */
/* What changes of names have in common: the lock, the repair record, the repair. */
#include "verbs/names.h"

#include <stdio.h>
#include <string.h>
#include <uuid/uuid.h>

#include "store/dir.h"
#include "store/file.h"
#include "table/homes.h"
#include "table/lock.h"
#include "util/cancel.h"
#include "util/cleanup.h"
#include "util/log.h"
#include "verbs/names_impl.h"

#define RECORD "record"

enum { RECORD_BYTES_MAX = 4096 };

errint_t lfs_names_check(const char *name, struct lfs_error *err) {
    LFS_TRY(lfs_branch_name_check(name, err));
    for (const char *part = name;;) {
        char segment[256];
        size_t length = strcspn(part, "/");
        snprintf(segment, sizeof segment, "%.*s", (int)length, part);
        if (lfs_is_layout_name(segment))
            return lfs_fail(
                err, LFS_E_USAGE,
                "branch name '%s' has the part '%s', which has a meaning in a data set's directory: deleting "
                "such a branch with other tools would delete another's files",
                name, segment);
        if (!part[length])
            return 0;
        part += length + 1;
    }
}

errint_t lfs_names_options(const struct lfs_command *c, const char *file, struct lfs_error *err) {
    if (c->dry_run || c->has_expect || c->message || c->n_properties || c->squash || c->has_mode || c->named_classes)
        return lfs_fail(err, LFS_E_USAGE, "%s takes no other option than from=VERSION", file);
    return 0;
}

char *lfs_names_dir(struct lfs_arena *arena, const char *name) { return lfs_sprintf(arena, "tree/%s", name); }

char *lfs_names_ref(struct lfs_arena *arena, const char *name) {
    char *encoded = lfs_percent_encode(arena, name);
    return encoded ? lfs_sprintf(arena, LFS_BRANCH_REFS "/%s.json", encoded) : NULL;
}

bool lfs_names_below(const char *name, const char *prefix) {
    size_t length = strlen(prefix);
    return strncmp(name, prefix, length) == 0 && (!name[length] || name[length] == '/');
}

/* --- one change --- */

void lfs_change_end(struct lfs_change *c) {
    lfs_cleanup_fd(&c->lock);
    lfs_arena_free(c->arena);
}

errint_t lfs_change_make_dir(struct lfs_change *c, struct lfs_error *err) {
    uuid_t uuid;
    char text[UUID_STR_LEN];
    uuid_generate_random(uuid);
    uuid_unparse_lower(uuid, text);
    c->dir = lfs_sprintf(c->arena, LFS_CHANGES_DIR "/%s", text);
    return c->dir ? lfs_make_dirs(c->root, c->dir, c->sync, err) : lfs_fail_nomem(err);
}

errint_t lfs_change_record(struct lfs_change *c, const struct lfs_record *record, struct lfs_error *err) {
    LFS_AUTO_BUF text = {0};
    for (size_t i = 0; i < 3 && record->words[i]; i++)
        lfs_buf_printf(&text, "%s%s", i ? " " : "", record->words[i]); /* names hold no blanks */
    lfs_buf_puts(&text, "\n");
    LFS_TRY(lfs_buf_check(&text, err));
    if (lfs_is_cancelled(c->names->cancel))
        return lfs_fail(err, LFS_E_INTERRUPTED, "interrupted: nothing was changed");
    return lfs_write_new(c->root, c->dir, RECORD, &text, c->sync, err);
}

bool lfs_change_recorded(const struct lfs_change *c) {
    char *record = lfs_join(c->arena, c->dir, RECORD);
    return !record || lfs_path_kind(c->root, record) != LFS_PATH_NONE;
}

errint_t lfs_change_unrecord(struct lfs_change *c, struct lfs_error *err) {
    char *record = lfs_join(c->arena, c->dir, RECORD);
    return record ? lfs_remove(c->root, record, c->sync, err) : lfs_fail_nomem(err);
}

errint_t lfs_change_forget(struct lfs_change *c, struct lfs_error *err) {
    if (!c->dir)
        return 0;
    LFS_TRY(lfs_change_unrecord(c, err));
    LFS_TRY(lfs_remove_tree(c->root, c->dir, err));
    c->dir = NULL;
    lfs_remove_empty(c->root, LFS_CHANGES_DIR, "_lancefs"); /* where it was the last one */
    return 0;
}

/* --- repair --- */

static errint_t parse(struct lfs_change *c, const struct lfs_buf *text, struct lfs_record *out, struct lfs_error *err) {
    char *copy = lfs_strndup(c->arena, (const char *)text->data, text->length), *save;
    *out = (struct lfs_record){0};
    if (!copy)
        return lfs_fail_nomem(err);
    char *word = strtok_r(copy, " \n", &save);
    for (size_t i = 0; word && i < 3; i++, word = strtok_r(NULL, " \n", &save))
        out->words[i] = word;
    if (!out->words[0] || !out->words[1] || lfs_branch_name_check(out->words[1], err) < 0)
        return lfs_fail(err, LFS_E_CORRUPT, "%s/" RECORD " is no repair record", c->dir);
    return 0;
}

static errint_t finish(struct lfs_change *c, const struct lfs_record *record, struct lfs_error *err) {
    const char *what = record->words[0];
    if (strcmp(what, "create") == 0)
        return lfs_finish_create(c, record, err);
    if (strcmp(what, "remove") == 0 && record->words[2])
        return lfs_finish_remove(c, record, err);
    if (strcmp(what, "rename") == 0 && record->words[2] && lfs_branch_name_check(record->words[2], err) == 0)
        return lfs_finish_rename(c, record, err);
    if (strcmp(what, "switch") == 0 && record->words[2])
        return lfs_finish_switch(c, record, err);
    return lfs_fail(err, LFS_E_CORRUPT, "%s/" RECORD " is no repair record", c->dir);
}

/* A directory without a record: nothing of it was shown to anybody. */
static errint_t repair_one(struct lfs_change *c, const char *id, unsigned *repaired, struct lfs_error *err) {
    LFS_AUTO_BUF text = {0};
    struct lfs_record record;
    c->dir = lfs_join(c->arena, LFS_CHANGES_DIR, id);
    char *path = c->dir ? lfs_join(c->arena, c->dir, RECORD) : NULL;
    if (!path)
        return lfs_fail_nomem(err);
    errint_t result = lfs_read_file(c->root, path, RECORD_BYTES_MAX, &text, NULL, err);
    if (result == 0) {
        LFS_TRY(parse(c, &text, &record, err));
        lfs_log(LFS_LOG_INFO, "repair: %s %s %s", record.words[0], record.words[1],
                record.words[2] ? record.words[2] : "");
        result = finish(c, &record, err);
        if (result == -EEXIST) /* another program took the name: what was staged goes */
            lfs_log(LFS_LOG_WARNING, "repair: %s", err ? err->message : record.words[1]);
        else
            LFS_TRY(result);
        ++*repaired;
    } else if (result != -ENOENT) {
        return result;
    }
    return lfs_change_forget(c, err);
}

static errint_t repair(struct lfs_change *c, unsigned *repaired, struct lfs_error *err) {
    struct lfs_entry *entries;
    size_t n;
    LFS_TRY(lfs_list_dir(c->dataset, LFS_CHANGES_DIR, c->arena, &entries, &n, err));
    for (size_t i = 0; i < n; i++)
        if (entries[i].may_be_dir)
            LFS_TRY(repair_one(c, entries[i].name, repaired, err));
    lfs_remove_empty(c->root, LFS_CHANGES_DIR, "_lancefs");
    return 0;
}

static errint_t begin(const struct lfs_names *names, struct lfs_change *c, unsigned *repaired, struct lfs_error *err) {
    *c = (struct lfs_change){.names = names,
                             .dataset = names->dataset,
                             .arena = lfs_arena_new(),
                             .root = lfs_dataset_root_fd(names->dataset),
                             .sync = names->settings->sync,
                             .lock = -1};
    if (!c->arena)
        return lfs_fail_nomem(err);
    if (names->settings->read_only)
        return lfs_fail(err, LFS_E_READ_ONLY, "mounted read-only: names cannot be changed");
    c->lock = lfs_dataset_lock(names->dataset, LFS_LOCK_ALONE, names->cancel, err);
    if (c->lock < 0)
        return c->lock;
    return repair(c, repaired, err);
}

errint_t lfs_change_begin(const struct lfs_names *names, struct lfs_change *out, struct lfs_error *err) {
    unsigned repaired = 0;
    return begin(names, out, &repaired, err);
}

errint_t lfs_names_repair(const struct lfs_names *names, unsigned *repaired, struct lfs_error *err) {
    unsigned count = 0;
    if (repaired)
        *repaired = 0;
    if (lfs_path_kind(lfs_dataset_root_fd(names->dataset), LFS_CHANGES_DIR) == LFS_PATH_NONE)
        return 0; /* as nearly always: no lock is waited for */
    LFS_AUTO_CHANGE change = {.lock = -1};
    errint_t result = begin(names, &change, &count, err);
    if (repaired)
        *repaired = count;
    return result;
}
