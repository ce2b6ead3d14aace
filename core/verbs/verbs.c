/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/verbs.h"

#include <string.h>

#include "util/cleanup.h"
#include "util/limits.h"
#include "verbs/answer.h"
#include "verbs/verb.h"

struct verb {
    const char *file;
    errint_t (*run)(struct lfs_verb_context *context, struct lfs_error *err);
    const char *usage;
};

static const struct verb verbs[] = {
    {".merge", lfs_verb_merge,
     "# .merge: SOURCE [options]\n"
     "# write a branch's name here to merge it into this branch\n"
     "#\n"
     "#   echo feature > .merge                    what feature changed comes into this branch, as one new version\n"
     "#   echo 'feature@7 dry-run' > .merge        what merging that version would do; nothing is written\n"
     "#   echo feature main > MNT/.merge           the same with the target named\n"
     "#\n"
     "# Options: mode=graft|link|copy  ff=auto|only|never  expect=VERSION  message=\"...\"  property.KEY=VALUE  dry-run\n"
     "#   strategy=fail|source-wins|dest-wins for what both sides changed, and the same for one class of it alone:\n"
     "#   rows= columns= schema= config=\n"
     "# The write fails with an error number when the merge does; the answer can be read here.\n"},
    {".cherry-pick", lfs_verb_cherry_pick,
     "# .cherry-pick: REF[..REF] [options]\n"
     "# write a commit here to apply just what it changed to this branch\n"
     "#\n"
     "#   echo feature@5 > .cherry-pick            the fifth version of feature, against the fourth\n"
     "#   echo 'feature@3..5 squash' > .cherry-pick    a range, both ends included, as one version\n"
     "#\n"
     "# Options: mode=graft|link|copy  strategy=fail|source-wins|dest-wins  expect=VERSION  message=\"...\"  squash  dry-run\n"},
    {".revert", lfs_verb_revert,
     "# .revert: VERSION [options]\n"
     "# write a version of this branch here to take back what it changed; later commits stay\n"
     "#\n"
     "#   echo 7 > .revert\n"
     "#\n"
     "# Options: expect=VERSION  message=\"...\"  property.KEY=VALUE  dry-run\n"},
    {".undo", lfs_verb_undo,
     "# .undo: [steps=N] [options]\n"
     "# takes back this branch's last merge (or its last N), so that it can be made again\n"
     "#\n"
     "#   echo steps=1 > .undo\n"
     "#\n"
     "# Options: expect=VERSION  message=\"...\"  property.KEY=VALUE  dry-run\n"},
    {".rehome", lfs_verb_rehome,
     "# .rehome: all [options]\n"
     "# files that this branch reaches through base paths become its own: one new version, in which no row changes\n"
     "#\n"
     "#   echo all > .rehome                       by hard links; what cannot be linked is copied\n"
     "#   echo 'all mode=copy' > .rehome           by copies, which share their blocks where the file system can\n"
     "#\n"
     "# Options: mode=link|copy  expect=VERSION  message=\"...\"  property.KEY=VALUE  dry-run\n"},
    {".branch", lfs_verb_make_branch,
     "# .branch: NAME [from=VERSION]\n"
     "# write a name here to make a new branch from this one, as it is now or as it was at VERSION\n"
     "#\n"
     "#   echo exp/colours > .branch               a / in a name is a directory level of tree/\n"
     "#   echo 'retry from=7' > .branch\n"
     "#\n"
     "# mkdir MNT/tree/NAME makes one from main's tip; mv renames and rmdir deletes a branch.\n"},
    {".tag", lfs_verb_tag,
     "# .tag: NAME [from=VERSION] [move]\n"
     "# write a name here to tag this branch's newest version, or VERSION; move: a tag of that name is moved\n"
     "#\n"
     "#   echo v1 > .tag\n"
     "#   echo 'good from=7 move' > .tag\n"
     "#\n"
     "# MNT/tags/NAME leads to the tagged version; rm deletes the tag.\n"},
    {".gc", lfs_verb_gc,
     "# .gc: [older-than=7d] [dry-run]\n"
     "# removes files that no branch, tag or version that is still there needs: data, deletion, index and transaction files,\n"
     "# half-made files, and what _lancefs/lines keeps for nobody any more. Versions themselves are not removed.\n"
     "#\n"
     "#   echo dry-run > .gc                       what would go; nothing is removed\n"
     "#   echo older-than=7d > .gc                 what has been there for a week, at least (the default)\n"
     "#   echo older-than=0s > .gc                 all of it: only when no other program writes to the data set\n"
     "#\n"
     "# Other data sets that reach into this one (shallow clones) are not looked at. Reading this file meanwhile shows\n"
     "# how far it is.\n"},
};

const char *const lfs_branch_control_files[] = {".merge",  ".cherry-pick", ".revert", ".undo",
                                                ".rehome", ".branch",      ".tag",    NULL};
const char *const lfs_root_control_files[] = {".merge", ".gc", NULL};

static const struct verb *find(const char *file) {
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (strcmp(verbs[i].file, file) == 0)
            return &verbs[i];
    return NULL;
}

const char *lfs_verb_usage(const char *file) {
    const struct verb *verb = find(file);
    return verb ? verb->usage : NULL;
}

static errint_t run(const struct verb *verb, struct lfs_verb_context *context, struct lfs_error *err) {
    const struct lfs_verb_call *call = context->call;
    struct lfs_command command;
    if (call->settings->read_only)
        return lfs_fail(err, LFS_E_READ_ONLY, "mounted read-only: commands are refused");
    if (strlen(call->line) > LFS_COMMAND_BYTES_MAX)
        return lfs_fail(err, LFS_E_USAGE, "a command can have %u bytes at most", LFS_COMMAND_BYTES_MAX);
    LFS_TRY(lfs_command_parse(call->line, context->arena, &command, err));
    if (command.from && verb->run != lfs_verb_make_branch && verb->run != lfs_verb_tag)
        return lfs_fail(err, LFS_E_USAGE, "from= means nothing to %s", verb->file);
    LFS_TRY(lfs_lines_read(call->dataset, context->arena, &context->lines, err));
    context->command = &command;
    return verb->run(context, err);
}

errint_t lfs_verb_run(const char *file, const struct lfs_verb_call *call, struct lfs_buf *answer) {
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    struct lfs_error error = {0};
    const struct verb *verb = find(file);
    size_t start = answer->length;
    struct lfs_verb_context context = {.call = call, .arena = arena, .answer = answer};
    errint_t result = !arena  ? lfs_fail_nomem(&error)
                      : !verb ? lfs_fail(&error, LFS_E_USAGE, "%s is no control file", file)
                              : run(verb, &context, &error);
    if (result < 0 && answer->length == start) { /* the verb itself has not told what is the matter */
        if (error.code == LFS_OK)
            lfs_fail_errno(&error, -result, "%s", file);
        lfs_answer_error(answer, &error);
    }
    return answer->failed ? -ENOMEM : result;
}

/* --- refs --- */

/* Both readings of a name are tried, since a branch may itself be called tree/x; when both exist nobody guesses. */
static errint_t find_branch(struct lfs_verb_context *context, const struct lfs_ref_words *ref, struct lfs_branch *out,
                            struct lfs_error *err) {
    struct lfs_dataset *ds = context->call->dataset;
    errint_t stripped = lfs_dataset_branch(ds, context->arena, ref->stripped, out, err);
    if (ref->stripped == ref->literal)
        return stripped;
    struct lfs_branch other;
    struct lfs_error why;
    errint_t literal = lfs_dataset_branch(ds, context->arena, ref->literal, &other, &why);
    if (literal == 0 && stripped == 0)
        return lfs_fail(err, LFS_E_USAGE, "%s can mean the branch %s or the branch %s: write tree/%s for the latter",
                        ref->literal, ref->stripped, ref->literal, ref->literal);
    if (literal == 0)
        *out = other;
    return literal == 0 ? 0 : stripped;
}

errint_t lfs_verb_branch(struct lfs_verb_context *context, const char *word, struct lfs_branch *out,
                         struct lfs_error *err) {
    struct lfs_ref_words ref;
    LFS_TRY(lfs_ref_parse(word, context->arena, &ref, err));
    if (ref.version)
        return lfs_fail(err, LFS_E_USAGE, "%s: a branch is wanted here, not one version of it", word);
    return find_branch(context, &ref, out, err);
}

errint_t lfs_verb_tip(struct lfs_verb_context *context, const char *name, struct lfs_state *out,
                      struct lfs_error *err) {
    struct lfs_dataset *ds = context->call->dataset;
    uint64_t tip;
    LFS_TRY(lfs_dataset_branch(ds, context->arena, name, &out->branch, err));
    LFS_TRY(lfs_dataset_tip(ds, out->branch.dir, &tip, &out->naming, err));
    return lfs_dataset_version(ds, out->branch.dir, tip, &out->version, err);
}

errint_t lfs_verb_state(struct lfs_verb_context *context, const char *word, struct lfs_state *out,
                        struct lfs_error *err) {
    struct lfs_ref_words ref;
    uint64_t tip;
    if (strncmp(word, "tags/", 5) == 0)
        return lfs_fail(err, LFS_E_UNSUPPORTED, "%s: tags are not there yet; name the version, as in main@7", word);
    LFS_TRY(lfs_ref_parse(word, context->arena, &ref, err));
    LFS_TRY(find_branch(context, &ref, &out->branch, err));
    LFS_TRY(lfs_dataset_tip(context->call->dataset, out->branch.dir, &tip, &out->naming, err));
    return lfs_dataset_version(context->call->dataset, out->branch.dir, ref.version ? ref.version : tip, &out->version,
                               err);
}
