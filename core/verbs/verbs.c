/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/verbs.h"

#include <string.h>

#include "util/cleanup.h"
#include "util/limits.h"
#include "verbs/answer.h"
#include "verbs/gate.h"
#include "verbs/settle.h"
#include "verbs/verb.h"

struct verb {
    const char *file;
    enum lfs_verb_kind kind;
    errint_t (*run)(struct lfs_verb_context *context, struct lfs_error *err);
    const char *usage;
};

static const struct verb verbs[] = {
    {".merge", LFS_VERB_MERGE, lfs_verb_merge,
     "# .merge: SOURCE... [options]\n"
     "# write a branch's name here to merge it into this branch\n"
     "#\n"
     "#   echo feature > .merge                    what feature changed comes into this branch, as one new version\n"
     "#   echo 'feature@7 dry-run' > .merge        what merging that version would do; nothing is written\n"
     "#   echo tags/v1 > .merge                    the version that a tag names\n"
     "#   echo feature main > MNT/.merge           the same with the target named, last\n"
     "#   echo 'feature replay' > .merge           a version for each commit of feature that this branch lacks\n"
     "#   echo a b c > .merge                      several branches one after the other, a version for each\n"
     "#\n"
     "# Several versions are all planned before the first is written, so that a conflict in any changes nothing. "
     "After\n"
     "# the first is there, the command goes on to its end. Each is a merge of its own: .undo steps=N counts "
     "versions.\n"
     "#\n"
     "# Options: mode=graft|link|copy  ff=auto|only|never  expect=VERSION  message=\"...\"  property.KEY=VALUE  "
     "dry-run\n"
     "#   strategy=fail|source-wins|dest-wins for what both sides changed, and the same for one class of it alone:\n"
     "#   rows= columns= schema= config= indexes=\n"
     "#   only=rows,columns,schema,config,indexes takes over these classes alone; a later merge brings the rest\n"
     "#   base=REF the version to compare with, instead of the one that is found; both sides must hold it\n"
     "#   fieldids=renumber|strict   new columns of both sides under one field id: a new id for theirs, or a conflict\n"
     "# After a conflict:\n"
     "#   echo theirs > .conflicts/0/choice        or ours, for each conflict; beside it stands what it is about\n"
     "#   echo continue > .merge                   what was stopped is done, as was chosen; or: echo abort > .merge\n"
     "# The same for .cherry-pick and .revert. A branch that is called continue is written tree/continue.\n"
     "# The write fails with an error number when the merge does; the answer can be read here.\n"},
    {".cherry-pick", LFS_VERB_PICK, lfs_verb_cherry_pick,
     "# .cherry-pick: REF[..REF] [options]\n"
     "# write a commit here to apply just what it changed to this branch\n"
     "#\n"
     "#   echo feature@5 > .cherry-pick            the fifth version of feature, against the fourth\n"
     "#   echo feature@3..5 > .cherry-pick         a range, both ends included, one by one; all planned before the "
     "first\n"
     "#   echo 'feature@3..5 squash' > .cherry-pick    the range as one version\n"
     "#   echo tags/v1 > .cherry-pick              the commit that a tag names\n"
     "#\n"
     "# Options: mode=graft|link|copy  expect=VERSION  message=\"...\"  property.KEY=VALUE  squash  dry-run\n"
     "#   strategy= rows= columns= schema= config= indexes= only= fieldids=    as in .merge\n"},
    {".rebase", LFS_VERB_REBASE, lfs_verb_rebase,
     "# .rebase: ONTO [options]\n"
     "# replays the commits of this branch that ONTO lacks on top of ONTO, then points this branch's name at the result\n"
     "#\n"
     "#   echo main > .rebase                      a version for each commit, as if the branch had begun at main's tip\n"
     "#   echo 'tags/v1 squash' > .rebase          all of them as one version, on top of the version that a tag names\n"
     "#   echo 'main dry-run' > .rebase            what it would do; nothing is written\n"
     "#   echo steps=1 > .undo                     back to the line as it was, while .gc has not removed it\n"
     "#\n"
     "# All is planned before anything is written, and the name moves in one step: a conflict changes nothing. Refused while\n"
     "# another branch or a tag stands on this one, and for main.\n"
     "#\n"
     "# Options: squash  expect=VERSION  message=\"...\"  property.KEY=VALUE  dry-run\n"
     "#   strategy= rows= columns= schema= config= indexes= fieldids=    as in .merge; the source is this branch\n"},
    {".revert", LFS_VERB_REVERT, lfs_verb_revert,
     "# .revert: VERSION [options]\n"
     "# write a version of this branch here to take back what it changed; later commits stay\n"
     "#\n"
     "#   echo 7 > .revert\n"
     "#\n"
     "# Options: expect=VERSION  message=\"...\"  property.KEY=VALUE  dry-run\n"
     "#   strategy= rows= columns= schema= config= indexes= only=    as in .merge; the source is the state before "
     "VERSION\n"},
    {".undo", LFS_VERB_UNDO, lfs_verb_undo,
     "# .undo: [steps=N] [options]\n"
     "# takes back this branch's last merge (or its last N), so that it can be made again. Of a merge that made several\n"
     "# versions (replay, several sources) each version is one step. Where a rebase was the last thing, the branch's name goes\n"
     "# back to the line that it had before.\n"
     "#\n"
     "#   echo steps=1 > .undo\n"
     "#\n"
     "# Options: expect=VERSION  message=\"...\"  property.KEY=VALUE  dry-run\n"},
    {".rehome", LFS_VERB_REHOME, lfs_verb_rehome,
     "# .rehome: all [options]\n"
     "# files that this branch reaches through base paths become its own: one new version, in which no row changes\n"
     "#\n"
     "#   echo all > .rehome                       by hard links; what cannot be linked is copied\n"
     "#   echo 'all mode=copy' > .rehome           by copies, which share their blocks where the file system can\n"
     "#\n"
     "# Options: mode=link|copy  expect=VERSION  message=\"...\"  property.KEY=VALUE  dry-run\n"},
    {".branch", LFS_VERB_BRANCH, lfs_verb_make_branch,
     "# .branch: NAME [from=VERSION]\n"
     "# write a name here to make a new branch from this one, as it is now or as it was at VERSION\n"
     "#\n"
     "#   echo exp/colours > .branch               a / in a name is a directory level of tree/\n"
     "#   echo 'retry from=7' > .branch\n"
     "#\n"
     "# mkdir MNT/tree/NAME makes one from main's tip; mv renames and rmdir deletes a branch.\n"},
    {".tag", LFS_VERB_TAG, lfs_verb_tag,
     "# .tag: NAME [from=VERSION] [move]\n"
     "# write a name here to tag this branch's newest version, or VERSION; move: a tag of that name is moved\n"
     "#\n"
     "#   echo v1 > .tag\n"
     "#   echo 'good from=7 move' > .tag\n"
     "#\n"
     "# MNT/tags/NAME leads to the tagged version; rm deletes the tag.\n"},
    {".gc", LFS_VERB_GC, lfs_verb_gc,
     "# .gc: [older-than=7d] [dry-run]\n"
     "# removes files that no branch, tag or version that is still there needs: data, deletion, index and transaction "
     "files,\n"
     "# half-made files, and what _lancefs/lines keeps for nobody any more. Versions themselves are not removed.\n"
     "#\n"
     "#   echo dry-run > .gc                       what would go; nothing is removed\n"
     "#   echo older-than=7d > .gc                 what has been there for a week, at least (the default)\n"
     "#   echo older-than=0s > .gc                 all of it: only when no other program writes to the data set\n"
     "#\n"
     "# Other data sets that reach into this one (shallow clones) are not looked at. Reading this file meanwhile "
     "shows\n"
     "# how far it is.\n"},
};

const char *const lfs_branch_control_files[] = {".merge", ".cherry-pick", ".rebase", ".revert", ".undo",
                                                ".rehome", ".branch",     ".tag",    NULL};
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

static errint_t run_file(const char *file, struct lfs_verb_context *context, struct lfs_error *err) {
    return find(file)->run(context, err);
}

static errint_t run(const struct verb *verb, struct lfs_verb_context *context, struct lfs_error *err) {
    const struct lfs_verb_call *call = context->call;
    struct lfs_command command;
    if (call->settings->read_only)
        return lfs_fail(err, LFS_E_READ_ONLY, "mounted read-only: commands are refused");
    if (strlen(call->line) > LFS_COMMAND_BYTES_MAX)
        return lfs_fail(err, LFS_E_USAGE, "a command can have %u bytes at most", LFS_COMMAND_BYTES_MAX);
    LFS_TRY(lfs_command_parse(call->line, context->arena, &command, err));
    LFS_TRY(lfs_command_check(&command, verb->kind, verb->file, err));
    LFS_TRY(lfs_lines_read(call->dataset, context->arena, &context->lines, err));
    context->command = &command;
    bool settles = verb->kind & LFS_VERBS_SETTLING;
    if (settles && lfs_is_settling(context))
        return lfs_settle_run(context, run_file, err);
    errint_t result = verb->run(context, err);
    if (settles)
        LFS_TRY(lfs_settle_note(context, verb->file, result, err));
    return result;
}

errint_t lfs_verb_run(const char *file, const struct lfs_verb_call *call, struct lfs_buf *answer) {
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    struct lfs_error error = {0};
    const struct verb *verb = find(file);
    size_t start = answer->length;
    LFS_CLEANUP(lfs_gate_release) struct lfs_gate gate = {0};
    struct lfs_found found = {.arena = arena};
    struct lfs_list pins = {0};
    struct lfs_verb_context context = {.call = call,
                                       .verb = file + (*file == '.'),
                                       .arena = arena,
                                       .answer = answer,
                                       .answer_start = start,
                                       .gate = &gate,
                                       .pins = &pins,
                                       .found = &found};
    errint_t result = !arena  ? lfs_fail_nomem(&error)
                      : !verb ? lfs_fail(&error, LFS_E_USAGE, "%s is no control file", file)
                              : run(verb, &context, &error);
    if (result < 0 && answer->length == start) { /* the verb itself has not told what is the matter */
        if (error.code == LFS_OK)
            lfs_fail_errno(&error, -result, "%s", file);
        lfs_answer_error(answer, &error);
    }
    lfs_gate_close(&context);
    return answer->failed ? -ENOMEM : result;
}
