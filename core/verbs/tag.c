/* SPDX-License-Identifier: Apache-2.0 */
/* Tags: ln -s, rm and mv in tags/, and .tag. One file each, written in one step: no record is needed. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "store/dir.h"
#include "store/file.h"
#include "util/cleanup.h"
#include "util/log.h"
#include "verbs/answer.h"
#include "verbs/names_impl.h"
#include "verbs/verb.h"

#define TAGS_DIR "_refs/tags"

static char *file_name(struct lfs_arena *arena, const char *tag) {
    char *encoded = lfs_percent_encode(arena, tag);
    return encoded ? lfs_sprintf(arena, "%s.json", encoded) : NULL;
}

/* RFC 3339 in UTC with nanoseconds, as stock writes it (lance-format section 2.2). */
static char *now_text(struct lfs_arena *arena) {
    struct timespec now;
    struct tm tm;
    char text[32];
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &tm);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm);
    return lfs_sprintf(arena, "%s.%09ldZ", text, now.tv_nsec);
}

/* The size of the version's manifest: that it is there. */
static errint_t look_at_version(struct lfs_change *c, const char *branch, uint64_t *version, uint64_t *size,
                                struct lfs_error *err) {
    struct lfs_branch b;
    struct lfs_version *v;
    enum lfs_naming naming;
    LFS_TRY(lfs_dataset_branch(c->dataset, c->arena, branch, &b, err));
    if (!*version)
        LFS_TRY(lfs_dataset_tip(c->dataset, b.dir, version, &naming, err));
    LFS_TRY(lfs_dataset_version(c->dataset, b.dir, *version, &v, err));
    *size = (uint64_t)v->file_size;
    lfs_version_release(v);
    return 0;
}

static errint_t write_tag(struct lfs_change *c, const char *tag, const struct lfs_tag_ref *ref, bool replace,
                          struct lfs_error *err) {
    LFS_AUTO_BUF json = {0};
    char *name = file_name(c->arena, tag);
    if (!name)
        return lfs_fail_nomem(err);
    LFS_TRY(lfs_tag_ref_encode(ref, &json, err));
    LFS_TRY(lfs_make_dirs(c->root, TAGS_DIR, c->sync, err));
    if (replace)
        return lfs_write_replace(c->root, TAGS_DIR, name, &json, c->sync, err);
    errint_t result = lfs_write_new(c->root, TAGS_DIR, name, &json, c->sync, err);
    return result == -EEXIST ? lfs_fail(err, LFS_E_EXISTS, "there is a tag %s already", tag) : result;
}

errint_t lfs_names_tag(const struct lfs_names *names, const char *tag, const char *branch, uint64_t version, bool move,
                       uint64_t *tagged, bool *moved, struct lfs_error *err) {
    LFS_AUTO_CHANGE c = {.lock = -1};
    struct lfs_tag old;
    struct lfs_tag_ref ref = {.branch = strcmp(branch, "main") ? branch : NULL};
    LFS_TRY(lfs_change_begin(names, &c, err));
    LFS_TRY(lfs_tag_name_check(tag, err));
    errint_t found = lfs_dataset_tag(c.dataset, c.arena, tag, &old, err);
    if (found < 0 && found != -ENOENT)
        return found;
    if (found == 0 && !move)
        return lfs_fail(err, LFS_E_EXISTS, "there is a tag %s already, for %s@%" PRIu64 ": move it with the word move",
                        tag, old.branch, old.version);
    LFS_TRY(look_at_version(&c, branch, &version, &ref.manifest_size, err));
    ref.version = version;
    ref.updated_at = now_text(c.arena);
    ref.created_at = found == 0 ? old.ref.created_at : ref.updated_at;
    ref.metadata_json = found == 0 ? old.ref.metadata_json : NULL;
    LFS_TRY(ref.updated_at ? write_tag(&c, tag, &ref, found == 0, err) : lfs_fail_nomem(err));
    if (look_at_version(&c, branch, &version, &ref.manifest_size, err) < 0) { /* a clean-up was quicker */
        char *name = file_name(c.arena, tag), *path = name ? lfs_sprintf(c.arena, TAGS_DIR "/%s", name) : NULL;
        if (path && found < 0)
            lfs_remove(c.root, path, c.sync, NULL);
        return lfs_fail(err, LFS_E_NOT_FOUND, "version %" PRIu64 " of %s was cleaned up meanwhile", version, branch);
    }
    if (tagged)
        *tagged = version;
    if (moved)
        *moved = found == 0;
    lfs_log(LFS_LOG_INFO, "tag %s for %s@%" PRIu64, tag, branch, version);
    return 0;
}

errint_t lfs_names_untag(const struct lfs_names *names, const char *tag, struct lfs_error *err) {
    LFS_AUTO_CHANGE c = {.lock = -1};
    struct lfs_tag found;
    LFS_TRY(lfs_change_begin(names, &c, err));
    LFS_TRY(lfs_dataset_tag(c.dataset, c.arena, tag, &found, err));
    char *name = file_name(c.arena, tag), *path = name ? lfs_sprintf(c.arena, TAGS_DIR "/%s", name) : NULL;
    LFS_TRY(path ? lfs_remove(c.root, path, c.sync, err) : lfs_fail_nomem(err));
    lfs_log(LFS_LOG_INFO, "tag %s (%s@%" PRIu64 ") deleted", tag, found.branch, found.version);
    return 0;
}

errint_t lfs_names_rename_tag(const struct lfs_names *names, const char *from, const char *to, struct lfs_error *err) {
    LFS_AUTO_CHANGE c = {.lock = -1};
    struct lfs_tag found;
    LFS_TRY(lfs_change_begin(names, &c, err));
    LFS_TRY(lfs_tag_name_check(to, err));
    LFS_TRY(lfs_dataset_tag(c.dataset, c.arena, from, &found, err));
    char *old_name = file_name(c.arena, from), *new_name = file_name(c.arena, to);
    char *old_path = old_name ? lfs_sprintf(c.arena, TAGS_DIR "/%s", old_name) : NULL;
    char *new_path = new_name ? lfs_sprintf(c.arena, TAGS_DIR "/%s", new_name) : NULL;
    if (!old_path || !new_path)
        return lfs_fail_nomem(err);
    errint_t result = lfs_move_new(c.root, old_path, new_path, c.sync, err);
    return result == -EEXIST ? lfs_fail(err, LFS_E_EXISTS, "there is a tag %s already", to) : result;
}

errint_t lfs_verb_tag(struct lfs_verb_context *context, struct lfs_error *err) {
    const struct lfs_verb_call *call = context->call;
    const struct lfs_command *command = context->command;
    const struct lfs_names names = {call->dataset, call->settings, call->cancel};
    uint64_t tagged = 0;
    bool moved = false;
    LFS_TRY(lfs_names_options(command, ".tag", err));
    bool move = command->n_words == 2 && strcmp(command->words[1], "move") == 0;
    if (command->n_words != 1 && !move)
        return lfs_fail(err, LFS_E_USAGE, "name the tag, and after it nothing but options and the word move");
    LFS_TRY(lfs_names_tag(&names, command->words[0], call->branch, command->from, move, &tagged, &moved, err));
    char *target = lfs_sprintf(context->arena, "%s@%" PRIu64, call->branch, tagged);
    if (!target)
        return lfs_fail_nomem(err);
    lfs_answer_text(context->answer, "result", moved ? "moved" : "created");
    lfs_answer_text(context->answer, "tag", command->words[0]);
    lfs_answer_text(context->answer, "names", target);
    return 0;
}
