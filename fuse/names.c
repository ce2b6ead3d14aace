/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shell verbs on names (interface.md section 2): mkdir, rmdir and mv in tree/, ln -s, rm and mv in tags/. The kernel's
 * request becomes names of branches and tags; a worker does it, since reading many manifests takes a while. What went
 * wrong is the errno, and a line in the log.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fuse/control.h"
#include "fuse/copies.h"
#include "fuse/mount.h"
#include "fuse/told.h"
#include "util/cleanup.h"
#include "util/log.h"
#include "verbs/names.h"

struct job {
    struct lfs_work work; /* first */
    struct lfs_mount *m;
    fuse_req_t req;
    errint_t (*act)(struct job *job, struct lfs_error *err);
    struct lfs_arena *arena; /* owns the strings */
    struct lfs_names names;
    struct lfs_node *parent; /* held */
    const char *entry;       /* the name in it */
    const char *name, *to;   /* of branches or tags */
    uint64_t version;        /* SYMLINK */
    const char *what;        /* "mkdir tree/x", for the log */
    bool replies_entry;      /* mkdir, symlink */
    pid_t tid;               /* who asks */
};

static errint_t make_branch(struct job *j, struct lfs_error *err) {
    if (lfs_copies_begins(j->m, j->name, j->entry, j->tid))
        return lfs_fail(err, LFS_E_DENIED, "a data set cannot be copied into tree/");
    LFS_TRY(lfs_names_create(&j->names, j->name, "main", 0, NULL, err));
    lfs_copies_made(j->m, j->name, j->tid);
    return 0;
}
static errint_t remove_branch(struct job *j, struct lfs_error *err) {
    return lfs_names_remove(&j->names, j->name, err);
}
static errint_t rename_branch(struct job *j, struct lfs_error *err) {
    return lfs_names_rename(&j->names, j->name, j->to, err);
}
static errint_t make_tag(struct job *j, struct lfs_error *err) {
    return lfs_names_tag(&j->names, j->entry, j->name, j->version, false, NULL, NULL, err);
}
static errint_t remove_tag(struct job *j, struct lfs_error *err) { return lfs_names_untag(&j->names, j->entry, err); }
static errint_t rename_tag(struct job *j, struct lfs_error *err) {
    return lfs_names_rename_tag(&j->names, j->entry, j->to, err);
}

/* --- running --- */

void lfs_tell_names(struct lfs_mount *m) {
    size_t n;
    if (m->options->entry_timeout <= 0)
        return;
    struct lfs_node_entry *entries = lfs_nodes_names(m->nodes, &n);
    for (size_t i = 0; entries && i < n; i++) /* no lock is held */
        fuse_lowlevel_notify_inval_entry(m->session, entries[i].parent, entries[i].name, strlen(entries[i].name));
    lfs_node_entries_free(entries, n);
}

static void interrupted(fuse_req_t req, void *cancel) {
    (void)req;
    atomic_store((atomic_bool *)cancel, true);
}

static void reply(struct job *j, errint_t result) {
    struct fuse_entry_param e;
    fuse_req_interrupt_func(j->req, NULL, NULL);
    if (result == 0 && j->replies_entry) {
        result = lfs_look_up(j->m, j->parent, j->entry, false, &e);
        if (result == 0) {
            if (fuse_reply_entry(j->req, &e) != 0)
                lfs_nodes_forget(j->m->nodes, e.ino, 1);
            return;
        }
    }
    fuse_reply_err(j->req, -result);
}

static void log_failure(const struct job *j, errint_t result, const struct lfs_error *err) {
    char what[400], why[1200];
    lfs_log(LFS_LOG_WARNING, "operation=%s errno=%d cause=%s", lfs_log_quote(what, sizeof what, j->what, strlen(j->what)),
            -result, lfs_log_quote(why, sizeof why, err->message, strlen(err->message)));
}

static void run_job(struct lfs_work *work) {
    struct job *j = (struct job *)work;
    struct lfs_error err = {0};
    errint_t result = j->act(j, &err);
    if (result < 0)
        log_failure(j, result, &err);
    reply(j, result);
    if (result == 0)
        lfs_tell_names(j->m); /* only now: the kernel locks the directory until it has its answer */
}

static void refuse_job(struct lfs_work *work) { reply((struct job *)work, -ESHUTDOWN); }

static void destroy_job(struct lfs_work *work) {
    struct job *j = (struct job *)work;
    if (j->parent)
        lfs_nodes_release(j->m->nodes, j->parent);
    lfs_arena_free(j->arena);
    free(j);
}

/* A job for an entry of a directory; replies and returns NULL when there is no memory or no such directory. */
static struct job *new_job(fuse_req_t req, fuse_ino_t parent, const char *entry, const char *verb) {
    struct lfs_mount *m = lfs_mount_of(req);
    struct lfs_node *node = lfs_nodes_find(m->nodes, parent);
    struct job *j = node ? calloc(1, sizeof *j) : NULL;
    struct lfs_arena *arena = j ? lfs_arena_new() : NULL;
    if (!arena || strlen(entry) > NAME_MAX) {
        fuse_reply_err(req, !node ? ESTALE : !arena ? ENOMEM : ENAMETOOLONG);
        lfs_arena_free(arena);
        free(j);
        return NULL;
    }
    lfs_nodes_hold(m->nodes, node);
    *j = (struct job){.work = {.run = run_job, .refuse = refuse_job, .destroy = destroy_job},
                      .m = m,
                      .req = req,
                      .tid = fuse_req_ctx(req)->pid,
                      .arena = arena,
                      .names = {m->dataset, &m->settings, NULL},
                      .parent = node,
                      .entry = lfs_strdup(arena, entry),
                      .what = lfs_sprintf(arena, "%s %s", verb, entry)};
    j->names.cancel = &j->work.cancel;
    return j;
}

static void submit(struct job *j, errint_t (*act)(struct job *, struct lfs_error *)) {
    j->act = act;
    fuse_req_interrupt_func(j->req, interrupted, &j->work.cancel);
    errint_t result = j->entry && j->what ? lfs_workers_submit(lfs_control_workers(j->m->control), &j->work) : -ENOMEM;
    if (result < 0) {
        reply(j, result);
        destroy_job(&j->work);
    }
}

/* It cannot be done here at all. */
static void refuse(struct job *j, int error) {
    lfs_refuse(j->req, "name", j->parent, j->entry, error);
    destroy_job(&j->work);
}

/* --- names in tree/ --- */

/* The path below tree/ of an entry of a directory; NULL where no branch can be. */
static char *path_in_tree(const struct job *j, const struct lfs_node *parent, const char *entry) {
    const char *prefix = parent->kind == LFS_NODE_TREE                         ? parent->text
                         : parent->kind == LFS_NODE_BRANCH && !parent->version ? parent->shown
                                                                               : NULL;
    return prefix ? lfs_join(j->arena, prefix, entry) : NULL;
}

/* A name that a branch's directory keeps for itself would hide a branch: one that means something in a data set's directory
 * is a bad name, a control file's is not to be had. */
static int check_entry(const struct lfs_node *parent, const char *entry) {
    if (parent->kind != LFS_NODE_BRANCH || !lfs_is_taken_name(entry))
        return 0;
    /* tree/ in a branch's directory is where stock Lance would put a branch of a view */
    return lfs_is_layout_name(entry) && strcmp(entry, "tree") ? EINVAL : EPERM;
}

/* The branch that is shown at a path, or the path itself where it only leads to branches. */
static const char *name_at(const struct job *j, const char *path, bool *is_branch) {
    struct lfs_tree *tree;
    bool encoded;
    if (lfs_tree_get(j->m->trees, &tree, NULL) < 0)
        return NULL;
    const struct lfs_shown_branch *shown = lfs_tree_at(tree, path, &encoded);
    *is_branch = shown != NULL;
    char *name = lfs_strdup(j->arena, shown ? shown->branch->name : path);
    lfs_tree_put(j->m->trees, tree);
    return name;
}

/* Valid replies: entry, err. The reply may come later, from a worker. */
void lfs_op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode) {
    (void)mode;
    struct job *j = new_job(req, parent, name, "mkdir");
    if (!j)
        return;
    int error = j->m->options->read_only ? EROFS : check_entry(j->parent, name);
    j->name = path_in_tree(j, j->parent, name);
    j->replies_entry = true;
    if (error || !j->name)
        refuse(j, error ? error : lfs_refusal(req));
    else
        submit(j, make_branch);
}

/* Valid replies: err. The reply may come later, from a worker. */
void lfs_op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name) {
    struct job *j = new_job(req, parent, name, "rmdir");
    bool is_branch = false;
    if (!j)
        return;
    const char *path = j->m->options->read_only ? NULL : path_in_tree(j, j->parent, name);
    if (path && j->parent->kind == LFS_NODE_BRANCH && lfs_is_taken_name(name))
        path = NULL;
    j->name = path ? name_at(j, path, &is_branch) : NULL;
    if (!j->name)
        refuse(j, lfs_refusal(req));
    else if (!is_branch)
        refuse(j, ENOTEMPTY); /* it leads to branches */
    else
        submit(j, remove_branch);
}

/* --- names in tags/ --- */

/* "[.../]tree/<branch>[/.versions/<n>]", as a link in tags/ says it or as people type it: relative to tags/, below the mount
 * point, or below the current directory. False for what leads elsewhere. */
static bool parse_target(struct job *j, const char *target) {
    size_t length = strlen(j->m->mountpoint);
    bool is_branch, versioned = false;
    if (strncmp(target, j->m->mountpoint, length) == 0 && target[length] == '/')
        target += length + 1;
    while (strncmp(target, "../", 3) == 0 || strncmp(target, "./", 2) == 0)
        target += target[1] == '.' ? 3 : 2;
    if (strncmp(target, "tree/", 5) != 0)
        return false;
    char *path = lfs_strdup(j->arena, target + 5), *end = path ? path + strlen(path) : NULL;
    while (end && end > path && end[-1] == '/')
        *--end = 0;
    char *at = path ? strstr(path, "/.versions/") : NULL;
    if (at) {
        const char *digits = at + strlen("/.versions/");
        versioned = *digits && strspn(digits, "0123456789") == strlen(digits) && *digits != '0';
        j->version = versioned ? strtoull(digits, NULL, 10) : 0;
        *at = 0;
    }
    if (!path || !*path || (at && !versioned))
        return false;
    j->name = name_at(j, path, &is_branch);
    return j->name != NULL;
}

/* Valid replies: entry, err. The reply may come later, from a worker. */
void lfs_op_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name) {
    struct job *j = new_job(req, parent, name, "ln -s tags/");
    if (!j)
        return;
    j->replies_entry = true;
    if (j->m->options->read_only || j->parent->kind != LFS_NODE_TAGS)
        refuse(j, lfs_refusal(req));
    else if (!parse_target(j, target))
        refuse(j, EINVAL);
    else
        submit(j, make_tag);
}

/* Valid replies: err. The reply may come later, from a worker. */
void lfs_op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name) {
    struct job *j = new_job(req, parent, name, "rm tags/");
    if (!j)
        return;
    if (j->m->options->read_only || j->parent->kind != LFS_NODE_TAGS)
        refuse(j, lfs_refusal(req));
    else
        submit(j, remove_tag);
}

/* --- both --- */

static int prepare_rename(struct job *j, fuse_req_t req, fuse_ino_t new_parent, const char *new_name) {
    bool is_branch;
    struct lfs_node *other = lfs_nodes_find(j->m->nodes, new_parent);
    if (!other)
        return ESTALE;
    if (j->parent->kind == LFS_NODE_TAGS && other == j->parent) {
        j->to = lfs_strdup(j->arena, new_name);
        return j->to ? 0 : ENOMEM;
    }
    const char *path = path_in_tree(j, j->parent, j->entry);
    j->to = path_in_tree(j, other, new_name);
    if (path && j->parent->kind == LFS_NODE_BRANCH && lfs_is_taken_name(j->entry))
        path = NULL;
    if (!path || !j->to)
        return lfs_refusal(req);
    j->name = name_at(j, path, &is_branch);
    int error = check_entry(other, new_name);
    return error ? error : j->name ? 0 : ENOMEM;
}

/* Valid replies: err. The reply may come later, from a worker. A name that is there is never replaced. */
void lfs_op_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent, const char *new_name,
                   unsigned flags) {
    struct job *j = new_job(req, parent, name, "mv");
    if (!j)
        return;
    bool is_tag = j->parent->kind == LFS_NODE_TAGS;
    int error = j->m->options->read_only ? EROFS : flags & ~1u /* RENAME_NOREPLACE */ ? EINVAL : 0;
    if (!error)
        error = prepare_rename(j, req, new_parent, new_name);
    if (error)
        refuse(j, error);
    else
        submit(j, is_tag ? rename_tag : rename_branch);
}
