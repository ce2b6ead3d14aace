/* SPDX-License-Identifier: Apache-2.0 */
#include "commit/commit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <uuid/uuid.h>

#include "commit/build.h"
#include "format/wire.h"
#include "store/file.h"
#include "store/publish.h"
#include "table/lock.h"
#include "util/cancel.h"
#include "util/cleanup.h"
#include "util/log.h"

struct attempt {
    const struct lfs_commit_request *request;
    struct lfs_arena *arena;
    struct lfs_placer placer;
    struct lfs_build build;
    struct lfs_manifest next;
    const char *versions_dir, *transactions_dir;
    struct lfs_publish manifest;
    char name[LFS_MANIFEST_NAME_SIZE];
};

static errint_t own_directory(const struct attempt *a, const char *part, const char **out, struct lfs_error *err) {
    *out = lfs_join(a->arena, a->request->target->dir, part);
    return *out ? 0 : lfs_fail_nomem(err);
}

/* The bare message, as in the manifest, under the name that the manifest tells (lance-format section 6.1). */
static errint_t write_transaction(struct attempt *a, struct lfs_error *err) {
    LFS_AUTO_BUF bytes = {0};
    const char *directory;
    const LanceTransaction *t = a->next.transaction;
    if (!a->next.message->transaction_file)
        return 0;
    lfs_wire_pack(&t->base, &bytes);
    LFS_TRY(lfs_buf_check(&bytes, err));
    LFS_TRY(own_directory(a, "_transactions", &directory, err));
    int root = lfs_dataset_root_fd(a->request->dataset);
    LFS_TRY(lfs_make_dirs(root, directory, a->request->sync, err));
    /* flushed with all else that is to be there before the manifest is */
    LFS_TRY(lfs_write_new(root, directory, a->next.message->transaction_file, &bytes, false, err));
    a->transactions_dir = directory;
    char *made = lfs_sprintf(a->arena, "%s/%s", directory, a->next.message->transaction_file);
    return made && lfs_list_add(&a->placer.created, a->arena, made) ? 0 : lfs_fail_nomem(err);
}

/* The manifest's bytes, which nobody sees before they have its name. */
static errint_t stage_manifest(struct attempt *a, struct lfs_error *err) {
    LFS_AUTO_BUF bytes = {0};
    LFS_TRY(own_directory(a, "_versions", &a->versions_dir, err));
    lfs_manifest_name(a->request->naming, a->build.version, a->name);
    LFS_TRY(lfs_manifest_encode(&a->next, &bytes, err));
    return lfs_publish_write(&a->manifest, lfs_dataset_root_fd(a->request->dataset), a->versions_dir, a->name, &bytes,
                            err);
}

/* All that the manifest names and its own bytes at the same time; its name comes when they are there. */
static errint_t flush(struct attempt *a, struct lfs_error *err) {
    LFS_CLEANUP(lfs_flush_close) struct lfs_flush flush = {0};
    if (a->request->sync)
        LFS_TRY(lfs_publish_add(&a->manifest, &flush, err));
    int root = lfs_dataset_root_fd(a->request->dataset);
    if (a->request->sync && a->transactions_dir) {
        LFS_TRY(lfs_flush_add_file(&flush, root, a->transactions_dir, a->next.message->transaction_file, err));
        LFS_TRY(lfs_flush_add_directory(&flush, root, a->transactions_dir, err));
    }
    return lfs_placer_flush(&a->placer, &flush, err);
}

/* Is the version that stands there now the one of this attempt? A link's answer can be lost (a network file system, a
 * flush that failed after it), so the manifest itself is asked. */
static bool is_ours(const struct attempt *a) {
    struct lfs_version *v;
    if (lfs_dataset_version(a->request->dataset, a->request->target->dir, a->build.version, &v, NULL) < 0)
        return false;
    const LanceTransaction *t = v->manifest.transaction;
    bool ours = t && t->uuid && strcmp(t->uuid, a->build.transaction_uuid) == 0;
    lfs_version_release(v);
    return ours;
}

/* Best effort, as in stock: nobody trusts it (lance-format section 1.2). */
static void write_hint(const struct attempt *a) {
    LFS_AUTO_BUF hint = {0};
    struct lfs_error why;
    lfs_buf_printf(&hint, "{\"version\":%" PRIu64 "}", a->build.version);
    if (hint.failed || lfs_write_replace(lfs_dataset_root_fd(a->request->dataset), a->versions_dir,
                                         "latest_version_hint.json", &hint, false, &why) < 0)
        lfs_log(LFS_LOG_WARNING, "the version hint of %s was not written", a->request->target->name);
}

static errint_t publish(struct attempt *a, struct lfs_error *err) {
    if (lfs_is_cancelled(a->request->cancel))
        return lfs_fail(err, LFS_E_INTERRUPTED, "interrupted: nothing was committed");
    errint_t result = lfs_publish_name(&a->manifest, a->request->sync, err);
    if (result < 0 && is_ours(a))
        result = 0;
    if (result == 0)
        write_hint(a);
    return result;
}

/* Since the plan was made the branch may have been renamed or deleted, or another may have its name. With the lock held. */
static errint_t check_line(const struct attempt *a, struct lfs_error *err) {
    const struct lfs_branch *target = a->request->target;
    struct lfs_branch now;
    LFS_TRY(lfs_dataset_branch(a->request->dataset, a->arena, target->name, &now, err));
    if (strcmp(now.uuid, target->uuid))
        return lfs_fail(err, LFS_E_STALE, "branch %s is another one than it was when the command began", target->name);
    return 0;
}

errint_t lfs_commit_check(const struct lfs_commit_request *r, struct lfs_error *err) {
    LFS_TRY(lfs_manifest_check_features(r->target_tip->manifest.message, true, r->target->name, err));
    return lfs_manifest_check_features(r->source_version->manifest.message, true, r->source->name, err);
}

static errint_t run(struct attempt *a, struct lfs_error *err) {
    const struct lfs_commit_request *r = a->request;
    LFS_TRY(lfs_commit_check(r, err));
    LFS_TRY(lfs_placer_init(&a->placer, r, a->arena, err));
    LFS_TRY(r->rehome    ? lfs_build_rehomed(&a->build, &a->next, err)
            : r->restate ? lfs_build_restated(&a->build, &a->next, err)
                         : lfs_build_manifest(&a->build, &a->next, err));
    LFS_TRY(lfs_place_kept_base(&a->placer, err));
    LFS_TRY(lfs_place_kept_deletions(&a->placer, r->target->uuid, a->next.message, err));
    LFS_TRY(write_transaction(a, err));
    LFS_TRY(stage_manifest(a, err));
    LFS_TRY(flush(a, err));
    return publish(a, err);
}

errint_t lfs_commit_plan(const struct lfs_commit_request *request, struct lfs_commit_result *out, struct lfs_error *err) {
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    struct attempt a = {.request = request, .arena = arena, .manifest = LFS_PUBLISH_NONE};
    uuid_t uuid;
    if (!arena)
        return lfs_fail_nomem(err);
    /* until the version stands, nothing names what is placed for it: .gc must not look meanwhile */
    LFS_AUTO_FD lock = request->aside ? -1 : lfs_dataset_lock(request->dataset, LFS_LOCK_SHARED, request->cancel, err);
    if (lock < 0 && !request->aside)
        return lock;
    uuid_generate_random(uuid);
    uuid_unparse_lower(uuid, out->transaction);
    out->version = request->target_tip->number + 1;
    a.build = (struct lfs_build){request, &a.placer, arena, out->transaction, out->version};
    errint_t result = request->aside ? 0 : check_line(&a, err);
    if (result == 0)
        result = run(&a, err);
    lfs_publish_drop(&a.manifest);
    if (result < 0) {
        lfs_placer_undo(&a.placer);
    } else {
        out->copied_files = a.placer.copied_files;
        lfs_placer_look_again(&a.placer);
    }
    lfs_placer_close(&a.placer);
    return result;
}

errint_t lfs_commit_foresee(const struct lfs_commit_request *request, struct lfs_arena *arena,
                            struct lfs_manifest *next, struct lfs_error *err) {
    char *text = lfs_alloc(arena, UUID_STR_LEN);
    struct lfs_build build = {request, NULL, arena, text, request->target_tip->number + 1};
    uuid_t uuid;
    if (!text)
        return lfs_fail_nomem(err);
    uuid_generate_random(uuid);
    uuid_unparse_lower(uuid, text);
    LFS_TRY(lfs_build_table_metadata(&build, next->message, err));
    return lfs_build_transaction(&build, next, &next->transaction, err);
}
