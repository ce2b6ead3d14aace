/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A branch's name moves from one line to another: see names_impl.h. What a stop leaves is told by a mark in the new line's
 * directory of versions: while it is in the change's own directory nobody has seen anything, and all is taken back.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "store/dir.h"
#include "store/file.h"
#include "table/homes.h"
#include "util/cleanup.h"
#include "util/limits.h"
#include "util/log.h"
#include "verbs/names_impl.h"

#define MARK ".tmp-lancefs-switch" /* by its name nobody's version (lance-format section 1.1) */
#define ASIDE "aside"              /* the old versions, where they cannot change places in one step */

struct move {
    struct lfs_change *change;
    const char *name;
    char *dir, *versions; /* of the branch */
    char *ref;
    char *staged, *staged_versions, *staged_ref, *mark, *aside;
    char *storage, *storage_versions; /* of the old line */
};

static errint_t init(struct move *m, struct lfs_change *c, const char *name, const char *line, struct lfs_error *err) {
    *m = (struct move){
        .change = c, .name = name, .dir = lfs_names_dir(c->arena, name), .ref = lfs_names_ref(c->arena, name)};
    m->versions = m->dir ? lfs_join(c->arena, m->dir, "_versions") : NULL;
    m->staged = lfs_join(c->arena, c->dir, LFS_CHANGE_NEW);
    m->staged_versions = m->staged ? lfs_join(c->arena, m->staged, "_versions") : NULL;
    m->staged_ref = lfs_join(c->arena, c->dir, LFS_CHANGE_NEW_REF);
    m->mark = m->staged_versions ? lfs_join(c->arena, m->staged_versions, MARK) : NULL;
    m->aside = lfs_join(c->arena, c->dir, ASIDE);
    m->storage = lfs_line_storage_dir(c->arena, line);
    m->storage_versions = m->storage ? lfs_join(c->arena, m->storage, "_versions") : NULL;
    return m->versions && m->ref && m->mark && m->staged_ref && m->aside && m->storage_versions ? 0
                                                                                                : lfs_fail_nomem(err);
}

/* --- files in two places --- */

static errint_t copy_one(struct lfs_change *c, const char *from, const char *to, const char *name,
                         struct lfs_error *err) {
    char *source = lfs_join(c->arena, from, name);
    if (!source)
        return lfs_fail_nomem(err);
    LFS_AUTO_FD fd = lfs_open_regular(c->root, source);
    if (fd == -ENOENT)
        return 0; /* cleaned up since it was listed: nobody's */
    if (fd < 0)
        return lfs_fail_errno(err, -fd, "cannot open %s", source);
    return lfs_copy_once(fd, c->root, to, name, c->sync, &(struct lfs_copying){.cancel = c->names->cancel}, err);
}

/* Files that are being written have names of other forms (lance-format section 1.1), and are nobody's yet. */
static bool is_whole(const char *name) { return name[0] != '.' && !strchr(name, '#'); }

static errint_t share_dir(struct lfs_change *c, const char *from, const char *to, const char *ends,
                          struct lfs_error *err) {
    struct lfs_entry *entries;
    size_t n, end = strlen(ends);
    LFS_TRY(lfs_list_dir(c->dataset, from, c->arena, &entries, &n, err));
    if (n == 0)
        return 0;
    LFS_TRY(lfs_make_dirs(c->root, to, c->sync, err));
    LFS_AUTO_FD a = lfs_open_beneath(c->root, from, O_PATH | O_DIRECTORY, 0);
    LFS_AUTO_FD b = lfs_open_beneath(c->root, to, O_PATH | O_DIRECTORY, 0);
    if (a < 0 || b < 0)
        return lfs_fail_errno(err, a < 0 ? -a : -b, "cannot open %s", a < 0 ? from : to);
    bool added = false;
    for (size_t i = 0; i < n; i++) {
        const char *name = entries[i].name;
        size_t length = strlen(name);
        if (!entries[i].is_file || !is_whole(name) || length < end || strcmp(name + length - end, ends))
            continue;
        int linked = lfs_link_at(a, name, b, name);
        if (linked == -ENOSPC || linked == -EROFS)
            return lfs_fail_errno(err, -linked, "cannot link %s/%s into %s", from, name, to);
        if (linked < 0)
            LFS_TRY(copy_one(c, from, to, name, err));
        added |= linked <= 0;
    }
    return added && c->sync ? lfs_sync_dir(c->root, to, err) : 0;
}

/* Directories that belong to one file: the blobs of a data file, an index. Others are the way to branches. */
static bool is_of_one(const char *name) { return lfs_is_data_stem(name) || lfs_is_uuid(name); }

static errint_t share_part(struct lfs_change *c, const char *from, const char *to, const char *part,
                           struct lfs_error *err) {
    struct lfs_entry *entries;
    size_t n;
    char *a = lfs_join(c->arena, from, part), *b = lfs_join(c->arena, to, part);
    if (!a || !b)
        return lfs_fail_nomem(err);
    LFS_TRY(share_dir(c, a, b, "", err));
    LFS_TRY(lfs_list_dir(c->dataset, a, c->arena, &entries, &n, err));
    for (size_t i = 0; i < n; i++) {
        if (!entries[i].may_be_dir || !is_of_one(entries[i].name))
            continue;
        char *below = lfs_join(c->arena, a, entries[i].name), *there = lfs_join(c->arena, b, entries[i].name);
        LFS_TRY(below && there ? share_dir(c, below, there, "", err) : lfs_fail_nomem(err));
    }
    return 0;
}

errint_t lfs_share_dir(struct lfs_change *c, const char *from, const char *to, struct lfs_error *err) {
    return share_dir(c, from, to, "", err);
}

errint_t lfs_share_files(struct lfs_change *c, const char *from, const char *to, struct lfs_error *err) {
    static const char *const parts[] = {"data", "_deletions", "_indices", "_transactions"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        LFS_TRY(share_part(c, from, to, parts[i], err));
    return 0;
}

/* --- the steps --- */

/* The old line's files, and what its branch was, before anything is seen. */
static errint_t keep_old(struct move *m, struct lfs_error *err) {
    struct lfs_change *c = m->change;
    LFS_AUTO_BUF json = {0};
    LFS_TRY(lfs_make_dirs(c->root, m->storage_versions, c->sync, err));
    LFS_TRY(lfs_share_files(c, m->dir, m->storage, err));
    LFS_TRY(lfs_read_file(c->root, m->ref, LFS_REF_BYTES_MAX, &json, NULL, err));
    return lfs_write_replace(c->root, m->storage, LFS_KEPT_REF, &json, c->sync, err);
}

static errint_t check_tip(struct move *m, const char *dir, uint64_t tip, struct lfs_error *err) {
    uint64_t now;
    enum lfs_naming naming;
    LFS_TRY(lfs_dataset_tip(m->change->dataset, dir, &now, &naming, err));
    return now == tip ? 0 : lfs_fail_errno(err, EEXIST, "%s moved on to version %" PRIu64, m->name, now);
}

/* A ref that is gone stays so: another program has deleted the branch. */
static errint_t replace_ref(struct move *m, struct lfs_error *err) {
    struct lfs_change *c = m->change;
    LFS_AUTO_BUF json = {0};
    if (lfs_path_kind(c->root, m->ref) == LFS_PATH_NONE)
        return 0;
    LFS_TRY(lfs_read_file(c->root, m->staged_ref, LFS_REF_BYTES_MAX, &json, NULL, err));
    return lfs_write_replace(c->root, LFS_BRANCH_REFS, strrchr(m->ref, '/') + 1, &json, c->sync, err);
}

/* The versions have changed places. The links are made again: what was unreferenced until now a clean-up may have
 * taken for old garbage. */
static errint_t settle(struct move *m, struct lfs_error *err) {
    struct lfs_change *c = m->change;
    char *mark = lfs_join(c->arena, m->versions, MARK);
    LFS_TRY(mark ? lfs_share_files(c, m->staged, m->dir, err) : lfs_fail_nomem(err));
    LFS_TRY(replace_ref(m, err));
    LFS_TRY(share_dir(c, m->staged_versions, m->storage_versions, ".manifest", err));
    return lfs_remove(c->root, mark, c->sync, err);
}

static errint_t exchange(struct move *m, struct lfs_error *err) {
    return lfs_exchange_dirs(m->change->root, m->versions, m->staged_versions, m->aside, m->change->sync, err);
}

/* Somebody committed to the old line in the very moment: it comes back, and all begins anew; unless somebody else has
 * committed to the new one already. */
static errint_t check_old(struct move *m, uint64_t tip, uint64_t new_tip, struct lfs_error *err) {
    struct lfs_error why;
    errint_t result = check_tip(m, m->staged, tip, err);
    if (result == 0)
        return 0;
    if (check_tip(m, m->dir, new_tip, &why) < 0 || exchange(m, &why) < 0) {
        lfs_log(LFS_LOG_ERROR,
                "%s, and the new line too: what was committed to the old one at that moment is kept in %s",
                err ? err->message : m->name, m->storage);
        return 0;
    }
    return result;
}

/* What a stop in the middle left where the exchange takes several steps. True in *moved when the new versions stand. */
static errint_t look_where(struct move *m, bool *moved, struct lfs_error *err) {
    struct lfs_change *c = m->change;
    *moved = lfs_path_kind(c->root, m->mark) == LFS_PATH_NONE;
    if (lfs_path_kind(c->root, m->aside) != LFS_PATH_DIR)
        return 0;
    bool open = lfs_path_kind(c->root, m->versions) == LFS_PATH_NONE;
    return lfs_move_new(c->root, m->aside, open ? m->versions : m->staged_versions, c->sync, err);
}

errint_t lfs_finish_switch(struct lfs_change *c, const struct lfs_record *record, struct lfs_error *err) {
    struct move m;
    bool moved;
    LFS_TRY(init(&m, c, record->words[1], record->words[2], err));
    LFS_TRY(look_where(&m, &moved, err));
    return moved ? settle(&m, err) : 0;
}

/* After the record: -EEXIST is taken back already; another failure is finished, or taken back, by its record. */
static errint_t go(struct move *m, uint64_t tip, struct lfs_error *err) {
    uint64_t new_tip;
    enum lfs_naming naming;
    LFS_TRY(lfs_dataset_tip(m->change->dataset, m->staged, &new_tip, &naming, err));
    LFS_TRY(lfs_share_files(m->change, m->staged, m->dir, err));
    LFS_TRY(check_tip(m, m->dir, tip, err));
    LFS_TRY(exchange(m, err));
    LFS_TRY(check_old(m, tip, new_tip, err));
    return settle(m, err);
}

static errint_t stage_mark(struct move *m, struct lfs_error *err) {
    LFS_AUTO_BUF nothing = {0};
    if (lfs_path_kind(m->change->root, m->mark) != LFS_PATH_NONE)
        return 0; /* of an earlier try */
    return lfs_write_new(m->change->root, m->staged_versions, MARK, &nothing, m->change->sync, err);
}

errint_t lfs_switch_line(struct lfs_change *c, const struct lfs_branch *old, uint64_t tip, struct lfs_error *err) {
    const struct lfs_record record = {{"switch", old->name, old->uuid}};
    struct lfs_error why;
    struct move m;
    bool moved = false;
    LFS_TRY(init(&m, c, old->name, old->uuid, err));
    errint_t result = keep_old(&m, err);
    if (result == 0)
        result = stage_mark(&m, err);
    if (result == 0)
        result = check_tip(&m, m.dir, tip, err);
    if (result == 0)
        result = lfs_change_record(c, &record, err);
    bool recorded = result == 0;
    if (recorded)
        result = go(&m, tip, err);
    if (recorded && result < 0 && result != -EEXIST &&
        (look_where(&m, &moved, &why) < 0 || (moved && settle(&m, &why) < 0))) {
        lfs_log(LFS_LOG_ERROR, "giving %s its new line stopped half-way, and is finished later: %s", old->name,
                why.message);
        return result;
    }
    if (moved)
        result = 0; /* what was in the way once was not so again */
    if (result == -EEXIST)
        return lfs_change_unrecord(c, &why) < 0 ? -why.sys_errno : result;
    if (lfs_change_forget(c, &why) < 0)
        lfs_log(LFS_LOG_WARNING, "%s", why.message);
    return result;
}
