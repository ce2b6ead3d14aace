/* SPDX-License-Identifier: Apache-2.0 */
/* Base paths of a data set that was moved: rewritten in every manifest and transaction (merge-semantics section 11). */
#include <inttypes.h>
#include <string.h>

#include "format/wire.h"
#include "store/file.h"
#include "table/transactions.h"
#include "util/cleanup.h"
#include "util/limits.h"
#include "verbs/fsck_impl.h"

static bool replace(const struct lfs_fsck *f, char **text) {
    char *next = *text ? lfs_map_get(&f->moved, *text) : NULL;
    if (next)
        *text = next;
    return next != NULL;
}

/* A branch's first transaction tells where it was cloned from; the message is changed in place. */
static bool replace_in_transaction(const struct lfs_fsck *f, LanceTransaction *t) {
    return t->operation_case == LANCE__TABLE__TRANSACTION__OPERATION_CLONE && t->clone &&
           replace(f, &t->clone->ref_path);
}

static errint_t rewrite_manifest(struct lfs_fsck *f, const char *directory, const char *name, uint64_t *n) {
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    LFS_AUTO_BUF bytes = {0}, next = {0};
    struct lfs_manifest manifest;
    struct lfs_error why;
    bool changed = false;
    char *path = arena ? lfs_join(arena, directory, name) : NULL;
    if (!path)
        return lfs_fail_nomem(f->err);
    errint_t result = lfs_read_file(lfs_dataset_root_fd(f->ds), path, LFS_MANIFEST_BYTES_MAX, &bytes, NULL, &why);
    if (result == 0)
        result = lfs_manifest_decode(bytes.data, bytes.length, arena, path, &manifest, &why);
    if (result < 0)
        return 0; /* said already */
    for (size_t i = 0; i < manifest.message->n_base_paths; i++)
        changed |= replace(f, &manifest.message->base_paths[i]->path);
    if (!changed)
        return 0;
    LFS_TRY(lfs_manifest_replace(bytes.data, bytes.length, manifest.message, &next, f->err));
    ++*n;
    return lfs_write_replace(lfs_dataset_root_fd(f->ds), directory, name, &next, true, f->err);
}

static errint_t rewrite_transaction(struct lfs_fsck *f, const char *directory, const char *name, uint64_t *n) {
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    LFS_AUTO_BUF next = {0};
    LanceTransaction *t;
    char *path = arena ? lfs_join(arena, directory, name) : NULL;
    if (!path)
        return lfs_fail_nomem(f->err);
    if (lfs_read_transaction(f->ds, path, arena, &t, NULL) < 0 || !replace_in_transaction(f, t))
        return 0;
    lfs_wire_pack(&t->base, &next);
    LFS_TRY(lfs_buf_check(&next, f->err));
    ++*n;
    return lfs_write_replace(lfs_dataset_root_fd(f->ds), directory, name, &next, true, f->err);
}

static bool ends_in(const char *name, const char *end) {
    size_t n = strlen(name), k = strlen(end);
    return n > k && strcmp(name + n - k, end) == 0;
}

static errint_t rewrite_in(struct lfs_fsck *f, const struct lfs_home *home, const char *part, const char *end,
                           errint_t (*one)(struct lfs_fsck *, const char *, const char *, uint64_t *), uint64_t *n) {
    struct lfs_entry *entries;
    size_t count;
    char *directory = lfs_join(f->arena, home->dir, part);
    if (!directory)
        return lfs_fail_nomem(f->err);
    LFS_TRY(lfs_list_dir(f->ds, directory, f->arena, &entries, &count, f->err));
    for (size_t i = 0; i < count; i++)
        if (entries[i].is_file && ends_in(entries[i].name, end))
            LFS_TRY(one(f, directory, entries[i].name, n));
    return 0;
}

errint_t lfs_fsck_relocate(struct lfs_fsck *f) {
    uint64_t manifests = 0, transactions = 0;
    for (size_t i = 0; i < f->homes.count; i++) {
        LFS_TRY(rewrite_in(f, &f->homes.list[i], "_transactions", ".txn", rewrite_transaction, &transactions));
        LFS_TRY(rewrite_in(f, &f->homes.list[i], "_versions", ".manifest", rewrite_manifest, &manifests));
    }
    for (size_t i = 0; i < f->moved.count; i++)
        lfs_fsck_corrected(f, "the base path %s is %s now", f->moved.entries[i].key,
                           (const char *)f->moved.entries[i].value);
    lfs_buf_printf(f->out, "rewritten: %" PRIu64 " manifests, %" PRIu64 " transactions\n", manifests, transactions);
    return 0;
}
