/* SPDX-License-Identifier: Apache-2.0 */
#include "fuse/hooks.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "util/cleanup.h"
#include "util/log.h"

#define BEFORE "pre-merge"
#define AFTER "post-merge"

struct lfs_hooks {
    struct lfs_mount *m;
    char *dir; /* without links */
    unsigned timeout_seconds;
    struct lfs_verb_hooks calls;
};

/* --- where things are in the mount --- */

/* MNT/tree/<path of the branch>; what is not shown there has no path. */
static char *tree_path(const struct lfs_mount *m, const char *branch, struct lfs_arena *arena) {
    struct lfs_tree *tree;
    if (lfs_tree_get(m->trees, &tree, NULL) < 0)
        return NULL;
    const struct lfs_shown_branch *shown = lfs_tree_branch(tree, branch);
    char *path = shown ? lfs_sprintf(arena, "%s/tree/%s", m->mountpoint, shown->path) : NULL;
    lfs_tree_put(m->trees, tree);
    return path;
}

/* A / in a source's name is %2F: a preview is one directory. */
static char *preview_path(const char *tree, const char *source, struct lfs_arena *arena) {
    LFS_AUTO_BUF name = {0};
    for (const char *p = source; *p; p++)
        if (*p == '/')
            lfs_buf_puts(&name, "%2F");
        else
            lfs_buf_add(&name, p, 1);
    lfs_buf_add(&name, "", 1);
    return name.failed ? NULL : lfs_sprintf(arena, "%s/.preview/%s", tree, (char *)name.data);
}

/* --- one run --- */

struct run {
    const struct lfs_hooks *hooks;
    const char *name;
    const struct lfs_verb_move *move;
    struct lfs_arena *arena;
    const char *tree, *preview; /* NULL where there is none */
    char *environment[8];
    size_t n;
};

/* Both for the environment and, under `key`, for the JSON. False when memory is short. */
static bool tell(struct run *r, const char *variable, const char *key, const char *value) {
    if (!value)
        return true;
    char *entry = lfs_sprintf(r->arena, "%s=%s", variable, value);
    if (key)
        json_object_set_new(r->move->facts, key, json_string(value));
    r->environment[r->n++] = entry;
    return entry;
}

static bool prepare(struct run *r) {
    const struct lfs_mount *m = r->hooks->m;
    bool first = strcmp(r->name, BEFORE) == 0;
    r->tree = tree_path(m, r->move->target, r->arena);
    r->preview = r->tree && first && r->move->source ? preview_path(r->tree, r->move->source, r->arena) : NULL;
    json_object_del(r->move->facts, "preview");
    return tell(r, "PATH", NULL, "/usr/local/bin:/usr/bin:/bin") && tell(r, "LANCEFS_HOOK", "hook", r->name) &&
           tell(r, "LANCEFS_MOUNT", "mount", m->mountpoint) && tell(r, "LANCEFS_TARGET", NULL, r->move->target) &&
           tell(r, "LANCEFS_TREE", "tree", r->tree) && tell(r, "LANCEFS_PREVIEW", "preview", r->preview);
}

/* -ENOENT (LFS_E_NOT_FOUND): there is no such hook. */
static errint_t run(struct run *r, struct lfs_buf *said, int *status, struct lfs_error *err) {
    LFS_TRY(lfs_trusted_program(r->hooks->dir, r->name, err));
    char *path = lfs_sprintf(r->arena, "%s/%s", r->hooks->dir, r->name);
    if (!path || !prepare(r))
        return lfs_fail_nomem(err);
    LFS_AUTO_FREE char *json = json_dumps(r->move->facts, JSON_COMPACT);
    char *line = json ? lfs_sprintf(r->arena, "%s\n", json) : NULL;
    if (!line)
        return lfs_fail_nomem(err);
    struct lfs_process process = {.path = path,
                                  .environment = r->environment,
                                  .input = line,
                                  .input_length = strlen(line),
                                  .timeout_seconds = r->hooks->timeout_seconds,
                                  .cancel = r->move->cancel,
                                  .output = said};
    size_t at = said->length;
    errint_t result = lfs_process_run(&process, status, err);
    if (said->length > at && said->data[said->length - 1] != '\n')
        lfs_buf_puts(said, "\n");
    return result;
}

/* NULL when it ended well. */
static const char *complaint(int status, struct lfs_arena *arena) {
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return NULL;
    const char *text = WIFEXITED(status) ? lfs_sprintf(arena, "exit status %d", WEXITSTATUS(status))
                                         : lfs_sprintf(arena, "signal %d", WTERMSIG(status));
    return text ? text : "it failed";
}

static errint_t before(void *data, const struct lfs_verb_move *move, struct lfs_buf *said, struct lfs_error *err) {
    const struct lfs_hooks *hooks = data;
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    struct run r = {.hooks = hooks, .name = BEFORE, .move = move, .arena = arena};
    struct lfs_error why = {0};
    int status = 0;
    if (!arena)
        return lfs_fail_nomem(err);
    errint_t result = run(&r, said, &status, &why);
    const char *no = result == 0 ? complaint(status, arena) : NULL;
    if (result < 0 && why.code == LFS_E_NOT_FOUND)
        return 0;
    if (result < 0 && (why.code == LFS_E_INTERRUPTED || why.code == LFS_E_NOMEM))
        return lfs_fail(err, why.code, "%s", why.message);
    if (result < 0) { /* it could not be asked, or did not answer: that is no yes */
        char text[1100];
        lfs_log(LFS_LOG_WARNING, "hook=" BEFORE " target=%s cause=%s", move->target,
                lfs_log_quote(text, sizeof text, why.message, strlen(why.message)));
        return lfs_fail(err, LFS_E_DENIED, BEFORE ": %s", why.message);
    }
    lfs_log(LFS_LOG_INFO, "hook=" BEFORE " target=%s says=%s", move->target, no ? "no" : "yes");
    return no ? lfs_fail(err, LFS_E_DENIED, BEFORE " said no (%s)", no) : 0;
}

static void after(void *data, const struct lfs_verb_move *move, struct lfs_buf *said) {
    const struct lfs_hooks *hooks = data;
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    struct run r = {.hooks = hooks, .name = AFTER, .move = move, .arena = arena};
    struct lfs_error why = {0};
    int status = 0;
    errint_t result = arena ? run(&r, said, &status, &why) : lfs_fail_nomem(&why);
    const char *no = result == 0 ? complaint(status, arena) : why.message;
    if (!no || why.code == LFS_E_NOT_FOUND)
        return;
    char text[1100];
    lfs_log(LFS_LOG_WARNING, "hook=" AFTER " target=%s cause=%s", move->target,
            lfs_log_quote(text, sizeof text, no, strlen(no)));
    lfs_buf_printf(said, AFTER " failed: %s\n", no);
}

/* --- life --- */

/* What is wrong from the beginning is said at once. */
static errint_t check_all(const struct lfs_hooks *hooks, struct lfs_error *err) {
    static const char *const names[] = {BEFORE, AFTER};
    bool any = false;
    LFS_TRY(lfs_trusted_directory(hooks->dir, err));
    for (size_t i = 0; i < 2; i++) {
        struct lfs_error why = {0};
        errint_t result = lfs_trusted_program(hooks->dir, names[i], &why);
        any |= result == 0;
        if (result < 0 && why.code != LFS_E_NOT_FOUND)
            return lfs_fail(err, why.code, "%s", why.message);
    }
    if (!any)
        lfs_log(LFS_LOG_WARNING, "-o hooks=%s: neither " BEFORE " nor " AFTER " is there; each command looks anew",
                hooks->dir);
    return 0;
}

errint_t lfs_hooks_new(struct lfs_mount *m, const char *dir, unsigned timeout_seconds, struct lfs_hooks **out,
                       struct lfs_error *err) {
    struct lfs_hooks *hooks = calloc(1, sizeof *hooks);
    if (!hooks)
        return lfs_fail_nomem(err);
    *hooks = (struct lfs_hooks){.m = m,
                                .dir = realpath(dir, NULL),
                                .timeout_seconds = timeout_seconds,
                                .calls = {.data = hooks, .before = before, .after = after}};
    errint_t result = hooks->dir ? check_all(hooks, err) : lfs_fail_errno(err, errno, "-o hooks=%s", dir);
    if (result < 0) {
        lfs_hooks_free(hooks);
        return result;
    }
    *out = hooks;
    return 0;
}

void lfs_hooks_free(struct lfs_hooks *hooks) {
    if (!hooks)
        return;
    free(hooks->dir);
    free(hooks);
}

const struct lfs_verb_hooks *lfs_hooks_calls(const struct lfs_hooks *hooks) { return hooks ? &hooks->calls : NULL; }
