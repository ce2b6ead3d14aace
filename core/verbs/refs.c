/* SPDX-License-Identifier: Apache-2.0 */
/* What the refs of a command mean: branches, versions of them, tags (interface.md section 3). */
#include <string.h>

#include "util/cleanup.h"
#include "verbs/verb.h"

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

bool lfs_verb_is_tag(const char *word) { return strncmp(word, "tags/", 5) == 0; }

/* A branch that is called tags/x is written tree/tags/x. */
static errint_t find_tag(struct lfs_verb_context *context, const char *word, struct lfs_branch *out, uint64_t *version,
                         struct lfs_error *err) {
    struct lfs_dataset *ds = context->call->dataset;
    struct lfs_tag tag;
    struct lfs_error why;
    size_t length = strlen(word + 5);
    while (length > 1 && word[5 + length - 1] == '/') /* as a shell completes directories */
        length--;
    char *name = lfs_strndup(context->arena, word + 5, length);
    if (!name)
        return lfs_fail_nomem(err);
    if (strchr(name, '@'))
        return lfs_fail(err, LFS_E_USAGE, "%s: a tag is one version already", word);
    errint_t result = lfs_dataset_tag(ds, context->arena, name, &tag, err);
    if (result == -ENOENT && lfs_dataset_branch(ds, context->arena, word, out, &why) == 0)
        return lfs_fail(err, LFS_E_NOT_FOUND, "there is no tag %s; the branch %s is written tree/%s", name, word, word);
    LFS_TRY(result);
    *version = tag.version;
    if (lfs_dataset_branch(ds, context->arena, tag.branch, out, &why) < 0)
        return lfs_fail(err, LFS_E_NOT_FOUND, "the tag %s stands on the branch %s, which is not there: %s", name,
                        tag.branch, why.message);
    return 0;
}

static struct lfs_pin *find_pin(const struct lfs_verb_context *context, const char *word) {
    for (size_t i = 0; context->pins && i < context->pins->count; i++)
        if (strcmp(((struct lfs_pin *)context->pins->items[i])->word, word) == 0)
            return context->pins->items[i];
    return NULL;
}

/* As it was: the branch may have other versions now, or another name. */
static errint_t use_pin(const struct lfs_verb_context *context, const struct lfs_pin *pin, struct lfs_branch *branch,
                        uint64_t *version, struct lfs_error *err) {
    const struct lfs_branch *found = lfs_lines_branch(&context->lines, pin->uuid);
    if (!found)
        return lfs_fail(err, LFS_E_NOT_FOUND, "the branch that %s named is gone", pin->word);
    *branch = *found;
    *version = pin->version;
    return 0;
}

static errint_t note_pin(struct lfs_verb_context *context, const char *word, const struct lfs_branch *branch,
                         uint64_t version, struct lfs_error *err) {
    struct lfs_pin *pin = find_pin(context, word), *made = pin ? NULL : LFS_NEW(context->arena, struct lfs_pin);
    if (!context->pins || !*branch->uuid)
        return 0;
    if (!pin && (!made || !lfs_list_add(context->pins, context->arena, made)))
        return lfs_fail_nomem(err);
    *(pin ? pin : made) = (struct lfs_pin){word, branch->uuid, version};
    return 0;
}

static errint_t find_ref(struct lfs_verb_context *context, const char *word, struct lfs_branch *branch, uint64_t *version,
                         struct lfs_error *err) {
    struct lfs_ref_words ref;
    enum lfs_naming naming;
    if (lfs_verb_is_tag(word))
        return find_tag(context, word, branch, version, err);
    LFS_TRY(lfs_ref_parse(word, context->arena, &ref, err));
    LFS_TRY(find_branch(context, &ref, branch, err));
    *version = ref.version;
    return ref.version ? 0 : lfs_dataset_tip(context->call->dataset, branch->dir, version, &naming, err);
}

errint_t lfs_verb_ref(struct lfs_verb_context *context, const char *word, struct lfs_branch *branch, uint64_t *version,
                      struct lfs_error *err) {
    const struct lfs_pin *pin = context->pinned ? find_pin(context, word) : NULL;
    if (pin)
        return use_pin(context, pin, branch, version, err);
    LFS_TRY(find_ref(context, word, branch, version, err));
    return note_pin(context, word, branch, *version, err);
}

errint_t lfs_verb_branch(struct lfs_verb_context *context, const char *word, struct lfs_branch *out,
                         struct lfs_error *err) {
    struct lfs_ref_words ref;
    if (lfs_verb_is_tag(word))
        return lfs_fail(err, LFS_E_USAGE, "%s: a branch is wanted here, not a tag", word);
    LFS_TRY(lfs_ref_parse(word, context->arena, &ref, err));
    if (ref.version)
        return lfs_fail(err, LFS_E_USAGE, "%s: a branch is wanted here, not one version of it", word);
    return find_branch(context, &ref, out, err);
}

errint_t lfs_verb_tip(struct lfs_verb_context *context, const char *name, struct lfs_state *out,
                      struct lfs_error *err) {
    struct lfs_dataset *ds = context->call->dataset;
    const struct lfs_aside *aside = context->aside;
    uint64_t tip;
    if (aside && strcmp(name, aside->branch.name) == 0)
        out->branch = aside->branch;
    else
        LFS_TRY(lfs_dataset_branch(ds, context->arena, name, &out->branch, err));
    LFS_TRY(lfs_dataset_tip(ds, out->branch.dir, &tip, &out->naming, err));
    if (aside && out->branch.uuid == aside->branch.uuid && aside->version)
        tip = aside->version;
    return lfs_dataset_version(ds, out->branch.dir, tip, &out->version, err);
}

errint_t lfs_verb_state(struct lfs_verb_context *context, const char *word, struct lfs_state *out,
                        struct lfs_error *err) {
    uint64_t version;
    LFS_TRY(lfs_verb_ref(context, word, &out->branch, &version, err));
    return lfs_dataset_version(context->call->dataset, out->branch.dir, version, &out->version, err);
}

bool lfs_verb_leads_on(struct lfs_dataset *ds, const char *ref, struct lfs_arena *arena) {
    struct lfs_branch *branches;
    size_t n, length = strlen(ref);
    if (strcmp(ref, "tree") == 0 || strcmp(ref, "tags") == 0)
        return true;
    if (strncmp(ref, "tree/", 5) == 0) {
        ref += 5;
        length -= 5;
    }
    if (lfs_dataset_branches(ds, arena, &branches, &n, NULL, NULL) < 0)
        return false;
    for (size_t i = 0; i < n; i++)
        if (strncmp(branches[i].name, ref, length) == 0 && branches[i].name[length] == '/')
            return true;
    return false;
}
