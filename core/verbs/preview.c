/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/preview.h"

#include <string.h>

#include "format/names.h"
#include "util/cleanup.h"
#include "util/map.h"
#include "verbs/job.h"
#include "verbs/look.h"

/* --- names: "feature,rows=source-wins" --- */

static const char *const class_names[] = {"rows", "columns", "schema", "config", "indexes"};

static bool is_class(const char *word, size_t length) {
    for (size_t i = 0; i < sizeof class_names / sizeof *class_names; i++)
        if (strlen(class_names[i]) == length && strncmp(word, class_names[i], length) == 0)
            return true;
    return false;
}

/* The end of an option: a comma, but for those between the classes of only=. */
static size_t option_length(const char *option) {
    size_t length = strcspn(option, ",");
    while (strncmp(option, "only=", 5) == 0 && option[length]) {
        size_t next = strcspn(option + length + 1, ",");
        if (!is_class(option + length + 1, next))
            break;
        length += next + 1;
    }
    return length;
}

bool lfs_preview_is_answer(const char *name) {
    for (const char *p = strchr(name, ','); p; p = strchr(p + 1, ','))
        if (strncmp(p + 1, "dry-run", 7) == 0 && (!p[8] || p[8] == ','))
            return true;
    return false;
}

/* The ref, decoded: no ref holds a '%' or a ',' of its own. */
static char *ref_of(const char *name, struct lfs_arena *arena) {
    char *ref = lfs_strndup(arena, name, strcspn(name, ","));
    return ref ? lfs_percent_decode(arena, ref) : NULL;
}

static void put_word(struct lfs_buf *out, const char *word, size_t length) {
    lfs_buf_puts(out, "\"");
    for (size_t i = 0; i < length; i++) {
        if (word[i] == '"' || word[i] == '\\')
            lfs_buf_puts(out, "\\");
        lfs_buf_add(out, word + i, 1);
    }
    lfs_buf_puts(out, "\" ");
}

/* The line that somebody would write to .merge. */
static errint_t line_of(const char *name, struct lfs_arena *arena, const char **out, struct lfs_error *err) {
    LFS_AUTO_BUF line = {0};
    const char *ref = ref_of(name, arena), *p = name + strcspn(name, ",");
    if (!ref || !*ref || strpbrk(name, "\n\r"))
        return lfs_fail(err, LFS_E_NOT_FOUND, "%s names no branch, version or tag", name);
    while (*p) {
        size_t length = option_length(++p);
        put_word(&line, p, length);
        p += length;
    }
    lfs_buf_puts(&line, "-- ");
    put_word(&line, ref, strlen(ref));
    lfs_buf_add(&line, "", 1);
    LFS_TRY(lfs_buf_check(&line, err));
    *out = lfs_strdup(arena, (const char *)line.data);
    return *out ? 0 : lfs_fail_nomem(err);
}

/* --- one preview --- */

static errint_t open_look(struct lfs_look *s, const struct lfs_preview_call *call, struct lfs_arena *arena,
                          struct lfs_error *err) {
    lfs_look_open(s, call->dataset, call->settings, call->branch, arena);
    s->settings.read_only = false; /* nothing is written */
    LFS_TRY(line_of(call->name, arena, &s->call.line, err));
    LFS_TRY(lfs_command_parse(s->call.line, arena, &s->command, err));
    LFS_TRY(lfs_command_check(&s->command, LFS_VERB_MERGE, ".merge", err));
    LFS_TRY(lfs_merge_check(&s->command, 1, err));
    if (s->command.n_words != 1)
        return lfs_fail(err, LFS_E_USAGE, "%s: a word is no option", call->name);
    if (s->command.replay)
        return lfs_fail(err, LFS_E_USAGE, "replay makes several versions, and a preview is one: preview without it");
    return 0;
}

bool lfs_preview_leads_on(const struct lfs_preview_call *call) {
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    char *ref = arena && !strchr(call->name, ',') ? ref_of(call->name, arena) : NULL;
    return ref && *ref && lfs_verb_leads_on(call->dataset, ref, arena);
}

/* The branch that a ref is of: its versions never change, so which one it is need not be looked at. */
static errint_t stamp_ref(struct lfs_look *s, const char *word, struct lfs_stamp *out, struct lfs_error *err) {
    struct lfs_branch branch;
    uint64_t version;
    if (lfs_verb_is_tag(word)) {
        if (lfs_stamp_directory(s->call.dataset, "", "_refs/tags", out) < 0)
            return lfs_fail(err, LFS_E_CORRUPT, "cannot look at the tags");
        LFS_TRY(lfs_verb_ref(&s->context, word, &branch, &version, err));
    } else {
        const char *at = strrchr(word, '@');
        char *bare = lfs_strndup(s->context.arena, word, at ? (size_t)(at - word) : strlen(word));
        LFS_TRY(bare ? lfs_verb_branch(&s->context, bare, &branch, err) : lfs_fail_nomem(err));
    }
    lfs_stamp_text(branch.uuid, out);
    return lfs_stamp_directory(s->call.dataset, branch.dir, "_versions", out) < 0
               ? lfs_fail(err, LFS_E_CORRUPT, "cannot look at branch %s", branch.name)
               : 0;
}

errint_t lfs_preview_stamp(const struct lfs_preview_call *call, struct lfs_stamp *out, struct lfs_error *err) {
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    LFS_CLEANUP(lfs_look_close) struct lfs_look s = {0};
    struct lfs_branch target;
    const char *ref = arena ? ref_of(call->name, arena) : NULL;
    *out = (struct lfs_stamp){.hash = 9};
    lfs_stamp_text(call->name, out);
    if (!ref)
        return arena ? lfs_fail(err, LFS_E_NOT_FOUND, "%s names no ref", call->name) : lfs_fail_nomem(err);
    errint_t words = open_look(&s, call, arena, err);
    LFS_TRY(stamp_ref(&s, ref, out, err));
    LFS_TRY(words == -EINVAL && lfs_preview_is_answer(call->name) ? 0 : words); /* the answer says which word is off */
    if (words == 0 && s.command.base)
        LFS_TRY(stamp_ref(&s, s.command.base, out, err));
    LFS_TRY(lfs_dataset_branch(call->dataset, arena, call->branch, &target, err));
    lfs_stamp_text(target.uuid, out);
    if (lfs_stamp_directory(call->dataset, "", "_refs/branches", out) < 0 ||
        lfs_stamp_directory(call->dataset, target.dir, "_versions", out) < 0)
        return lfs_fail(err, LFS_E_CORRUPT, "cannot look at branch %s", call->branch);
    return 0;
}

/* What makes the names of files that only this preview has: the same merge, the same names. */
static uint64_t seed_of(const struct lfs_job *job, const char *name) {
    const struct lfs_state *states[] = {&job->target, &job->source};
    uint64_t seed = lfs_hash(name, strlen(name), 10);
    for (size_t i = 0; i < 2; i++) {
        const struct lfs_version *v = states[i]->version;
        uint64_t place[] = {v->number, (uint64_t)v->dev, v->ino, (uint64_t)v->mtime.tv_sec, (uint64_t)v->mtime.tv_nsec};
        seed = lfs_hash(place, sizeof place, lfs_hash(v->dir, strlen(v->dir), seed));
    }
    return seed;
}

static errint_t show_tip(const struct lfs_job *job, struct lfs_views *views, struct lfs_image **out,
                         struct lfs_error *err) {
    struct lfs_image_spec spec = {.dir = job->target.branch.dir,
                                  .manifest = &job->target.version->manifest,
                                  .naming = job->target.naming};
    return lfs_image_new(views, &spec, out, err);
}

static errint_t show_merge(struct lfs_job *job, const char *name, struct lfs_views *views, struct lfs_image **out,
                           struct lfs_error *err) {
    struct lfs_imagined next;
    LFS_TRY(lfs_job_imagine(job, seed_of(job, name), &next, err));
    struct lfs_image_spec spec = {.dir = job->target.branch.dir,
                                  .manifest = &next.manifest,
                                  .naming = job->target.naming,
                                  .files = next.files,
                                  .n_files = next.n_files};
    return lfs_image_new(views, &spec, out, err);
}

errint_t lfs_preview_make(const struct lfs_preview_call *call, struct lfs_views *views, struct lfs_image **out,
                          struct lfs_error *err) {
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    LFS_CLEANUP(lfs_look_close) struct lfs_look s = {0};
    *out = NULL;
    if (!arena)
        return lfs_fail_nomem(err);
    LFS_TRY(open_look(&s, call, arena, err));
    LFS_TRY(lfs_lines_read(call->dataset, arena, &s.context.lines, err));
    struct lfs_merge_source source = {.word = s.command.words[0]};
    LFS_CLEANUP(lfs_job_release)
    struct lfs_job job = {.context = &s.context, .arena = arena, .spec = &lfs_merge_job, .argument = &source};
    int planned = lfs_job_plan_and_say(&job, call->branch, err);
    if (planned < 0)
        return planned;
    return planned == LFS_PREPARED ? show_merge(&job, call->name, views, out, err) : show_tip(&job, views, out, err);
}

errint_t lfs_preview_answer(const struct lfs_preview_call *call, struct lfs_buf *out) {
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    struct lfs_verb_settings settings = *call->settings;
    struct lfs_verb_call merge = {.dataset = call->dataset, .settings = &settings, .branch = call->branch};
    settings.read_only = false; /* a dry run */
    if (!arena)
        return -ENOMEM;
    LFS_TRY(line_of(call->name, arena, &merge.line, NULL));
    lfs_verb_run(".merge", &merge, out);
    return out->failed ? -ENOMEM : 0;
}
