/* SPDX-License-Identifier: Apache-2.0 */
#include "commit/adopt.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "format/wire.h"
#include "store/file.h"
#include "store/flush.h"
#include "table/lock.h"
#include "util/cleanup.h"
#include "util/limits.h"

static errint_t check_name(const struct lfs_adoption *a, const char *name, const LanceManifest *m, struct lfs_error *err) {
    struct lfs_view_tip tip;
    uint64_t version;
    enum lfs_naming naming;
    LFS_TRY(lfs_views_tip(a->views, a->dir, &tip, err));
    if (!lfs_manifest_name_parse(name, &version, &naming) || naming != tip.naming)
        return lfs_fail(err, LFS_E_USAGE, "%s is no name for a version of %s", name, a->branch);
    if (version != m->version)
        return lfs_fail(err, LFS_E_USAGE, "%s says that it is version %" PRIu64, name, m->version);
    return 0;
}

/* The entries of all that the manifest may name, and its transaction. Other files were flushed when their writer closed
 * them. */
static errint_t gather(const struct lfs_adoption *a, const char *transaction, struct lfs_arena *arena,
                       struct lfs_flush *out, struct lfs_error *err) {
    static const char *const parts[] = {"data", "_deletions", "_indices", "_transactions"};
    int root = lfs_dataset_root_fd(lfs_views_dataset(a->views));
    char *path = NULL;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (!(path = lfs_join(arena, a->dir, parts[i])))
            return lfs_fail_nomem(err);
        errint_t result = lfs_flush_add_directory(out, root, path, err);
        if (result < 0 && result != -ENOENT)
            return result;
    }
    errint_t result = transaction ? lfs_flush_add_file(out, root, path, transaction, err) : 0;
    return result == -ENOENT ? 0 : result; /* a writer may leave it out, or keep it in the manifest */
}

/* Everything that a version names is on the disk before the version is there. */
static errint_t publish(const struct lfs_adoption *a, const struct lfs_manifest *own, const struct lfs_buf *bytes,
                        const char *name, struct lfs_arena *arena, struct lfs_error *err) {
    LFS_CLEANUP(lfs_flush_close) struct lfs_flush flush = {0};
    int root = lfs_dataset_root_fd(lfs_views_dataset(a->views));
    char *directory = lfs_join(arena, a->dir, "_versions");
    if (!directory)
        return lfs_fail_nomem(err);
    if (!a->sync)
        return lfs_write_new(root, directory, name, bytes, false, err);
    LFS_TRY(gather(a, own->message->transaction_file, arena, &flush, err));
    return lfs_write_new_after(root, directory, name, bytes, &flush, err);
}

/* The staged manifest; the records that it has in common with the newest version are that one's, which is handed out. */
static errint_t decode(const struct lfs_adoption *a, const struct lfs_buf *staged, const char *name,
                       struct lfs_arena *arena, struct lfs_version **newest, struct lfs_manifest *out,
                       struct lfs_error *err) {
    struct lfs_view_tip tip;
    size_t n_shared;
    LFS_TRY(lfs_views_tip(a->views, a->dir, &tip, err));
    LFS_TRY(lfs_dataset_version(lfs_views_dataset(a->views), a->dir, tip.number, newest, err));
    return lfs_manifest_decode_like(staged->data, staged->length, &(*newest)->manifest, arena, arena, name, out, &n_shared,
                                    err);
}

errint_t lfs_adopt_manifest(const struct lfs_adoption *a, int staged_fd, const char *name, struct lfs_error *err) {
    LFS_CLEANUP(lfs_cleanup_version) struct lfs_version *newest = NULL;
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    LFS_AUTO_BUF staged = {0};
    LFS_AUTO_BUF restored = {0};
    struct lfs_manifest flat, own;
    bool changed;
    if (!arena)
        return lfs_fail_nomem(err);
    LFS_TRY(lfs_read_fd(staged_fd, name, LFS_MANIFEST_BYTES_MAX, &staged, NULL, err));
    LFS_TRY(decode(a, &staged, name, arena, &newest, &flat, err));
    LFS_TRY(check_name(a, name, flat.message, err));
    /* from the look at the files that it names until it names them: nobody removes one in between */
    LFS_AUTO_FD lock = lfs_dataset_lock(lfs_views_dataset(a->views), LFS_LOCK_SHARED, NULL, err);
    if (lock < 0)
        return lock;
    LFS_TRY(lfs_views_restore_manifest(a->views, a->dir, *a->dir ? a->branch : NULL, &flat, name, arena, &own, &changed,
                                       err));
    if (changed)
        LFS_TRY(lfs_manifest_encode(&own, &restored, err));
    return publish(a, &own, changed ? &restored : &staged, name, arena, err);
}

errint_t lfs_adopt_transaction(const struct lfs_adoption *a, int staged_fd, const char *name, struct lfs_error *err) {
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    LFS_AUTO_BUF staged = {0};
    LFS_AUTO_BUF restored = {0};
    LanceTransaction *flat, *own;
    bool changed;
    if (!arena)
        return lfs_fail_nomem(err);
    LFS_TRY(lfs_read_fd(staged_fd, name, LFS_TRANSACTION_BYTES_MAX, &staged, NULL, err));
    LFS_TRY(lfs_wire_unpack(&lance__table__transaction__descriptor, staged.data, staged.length, arena, name, &flat, err));
    LFS_TRY(lfs_views_restore_transaction(a->views, a->dir, flat, name, arena, &own, &changed, err));
    if (changed)
        lfs_wire_pack(&own->base, &restored);
    LFS_TRY(lfs_buf_check(&restored, err));
    bool taken;
    LFS_TRY(lfs_adopted_transaction(a, name, &taken, err));
    if (taken)
        return lfs_fail_errno(err, EEXIST, "%s belongs to a version of %s", name, a->branch);
    char *directory = lfs_join(arena, a->dir, "_transactions");
    /* flushed by the commit that names it */
    return directory ? lfs_write_replace(lfs_dataset_root_fd(lfs_views_dataset(a->views)), directory, name,
                                         changed ? &restored : &staged, false, err)
                     : lfs_fail_nomem(err);
}

errint_t lfs_adopted_transaction(const struct lfs_adoption *a, const char *name, bool *out, struct lfs_error *err) {
    struct lfs_view_tip tip;
    uint64_t read = strtoull(name, NULL, 10);
    *out = false;
    LFS_TRY(lfs_views_tip(a->views, a->dir, &tip, err));
    for (uint64_t i = tip.number; i >= read && i && !*out; i--) { /* a branch's first version is the one that it was made of */
        struct lfs_version *v;
        errint_t result = lfs_dataset_version(lfs_views_dataset(a->views), a->dir, i, &v, err);
        if (result == -ENOENT)
            continue; /* cleaned away */
        LFS_TRY(result);
        const char *file = v->manifest.message->transaction_file;
        *out = file && strcmp(file, name) == 0;
        lfs_version_release(v);
    }
    return 0;
}
