/* SPDX-License-Identifier: Apache-2.0 */
#include "fuse/options.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char lfs_options_help[] = "Usage: lancefs [options] DATASET MOUNTPOINT\n"
                                "\n"
                                "Mounts the Lance data set DATASET (NAME.lance): each branch is a directory of\n"
                                "MOUNTPOINT/tree that any Lance reader opens. To merge a branch into main:\n"
                                "  echo feature > MOUNTPOINT/tree/main/.merge && cat MOUNTPOINT/tree/main/.merge\n"
                                "To unmount: fusermount3 -u MOUNTPOINT\n"
                                "\n"
                                "  -f  stay in the foreground     -s  one thread     -d  log all requests, -f\n"
                                "  -h  this text                  -V  version        -o opt,opt=value,...\n"
                                "\n"
                                "  ro                       refuse every write and every command\n"
                                "  mode=graft|link|copy     how merged files become reachable (graft)\n"
                                "  bases=PATH[:PATH...]     where base paths may lead out of the data set\n"
                                "  map=OLD:NEW              look for base paths below OLD under NEW\n"
                                "  sync, nosync             flush commits to the disk first (sync)\n"
                                "  hooks=DIR                run DIR/pre-merge and DIR/post-merge around merges\n"
                                "  hooks_timeout=S          seconds that a hook may take (300)\n"
                                "  passthrough=auto|on|off  let the kernel read data files itself (auto)\n"
                                "  control_mode=MODE        mode of the control files (0600)\n"
                                "  cache_mb=N               bound of the manifest caches (64)\n"
                                "  attr_timeout=S, entry_timeout=S   seconds the kernel may remember (0)\n"
                                "  max_threads=N            threads for requests (10)\n"
                                "  log_level=error|warning|info|debug, log_file=PATH|syslog\n"
                                "  allow_other, auto_unmount, fsname=NAME and what else libfuse takes\n";

enum {
    KEY_FOREGROUND,
    KEY_DEBUG,
    KEY_SINGLE,
    KEY_HELP,
    KEY_VERSION,
    KEY_READ_ONLY,
    KEY_ALLOW_OTHER,
    KEY_SYNC,
    KEY_NOSYNC,
    KEY_VALUE, /* name=value, of the table below */
    KEY_FSNAME,
    KEY_SUBTYPE,
    KEY_DROP,
};

static const struct fuse_opt templates[] = {
    FUSE_OPT_KEY("-f", KEY_FOREGROUND),
    FUSE_OPT_KEY("-d", KEY_DEBUG),
    FUSE_OPT_KEY("debug", KEY_DEBUG),
    FUSE_OPT_KEY("-s", KEY_SINGLE),
    FUSE_OPT_KEY("-h", KEY_HELP),
    FUSE_OPT_KEY("--help", KEY_HELP),
    FUSE_OPT_KEY("-V", KEY_VERSION),
    FUSE_OPT_KEY("--version", KEY_VERSION),
    FUSE_OPT_KEY("ro", KEY_READ_ONLY),
    FUSE_OPT_KEY("allow_other", KEY_ALLOW_OTHER),
    FUSE_OPT_KEY("sync", KEY_SYNC),
    FUSE_OPT_KEY("nosync", KEY_NOSYNC),
    FUSE_OPT_KEY("mode=", KEY_VALUE),
    FUSE_OPT_KEY("bases=", KEY_VALUE),
    FUSE_OPT_KEY("map=", KEY_VALUE),
    FUSE_OPT_KEY("passthrough=", KEY_VALUE),
    FUSE_OPT_KEY("cache_mb=", KEY_VALUE),
    FUSE_OPT_KEY("hooks=", KEY_VALUE),
    FUSE_OPT_KEY("hooks_timeout=", KEY_VALUE),
    FUSE_OPT_KEY("control_mode=", KEY_VALUE),
    FUSE_OPT_KEY("attr_timeout=", KEY_VALUE),
    FUSE_OPT_KEY("entry_timeout=", KEY_VALUE),
    FUSE_OPT_KEY("max_threads=", KEY_VALUE),
    FUSE_OPT_KEY("log_level=", KEY_VALUE),
    FUSE_OPT_KEY("log_file=", KEY_VALUE),
    FUSE_OPT_KEY("fsname=", KEY_FSNAME),
    FUSE_OPT_KEY("subtype=", KEY_SUBTYPE),
    /* words of fstab(5) that say when to mount, not how */
    FUSE_OPT_KEY("defaults", KEY_DROP),
    FUSE_OPT_KEY("auto", KEY_DROP),
    FUSE_OPT_KEY("noauto", KEY_DROP),
    FUSE_OPT_KEY("user", KEY_DROP),
    FUSE_OPT_KEY("nouser", KEY_DROP),
    FUSE_OPT_KEY("users", KEY_DROP),
    FUSE_OPT_KEY("nofail", KEY_DROP),
    FUSE_OPT_KEY("_netdev", KEY_DROP),
    FUSE_OPT_END,
};

struct parse {
    struct lfs_options *out;
    struct lfs_error *err;
    errint_t result;
    bool fsname_given, subtype_given;
};

static int refuse(struct parse *p, const char *name, const char *value, const char *wanted) {
    p->result = lfs_fail(p->err, LFS_E_USAGE, "-o %s%s: %s is wanted", name, value, wanted);
    return -1;
}

/* --- values --- */

static int parse_number(const char *text, int base, unsigned long max, unsigned long *out) {
    char *end;
    errno = 0;
    *out = strtoul(text, &end, base);
    return *text && *text != '-' && !*end && !errno && *out <= max ? 0 : -1;
}

static int parse_seconds(const char *text, double *out) {
    char *end;
    *out = strtod(text, &end);
    return *text && !*end && *out >= 0 && *out <= 1e9 ? 0 : -1;
}

static int append(char ***list, const char *text, size_t length) {
    size_t n = 0;
    while (*list && (*list)[n])
        n++;
    char **grown = realloc(*list, (n + 2) * sizeof *grown);
    if (!grown)
        return -1;
    *list = grown;
    grown[n] = strndup(text, length);
    grown[n + 1] = NULL;
    return grown[n] ? 0 : -1;
}

static int set_mode(struct parse *p, const char *name, const char *value) {
    static const char *const words[] = {
        [LFS_PLACE_GRAFT] = "graft", [LFS_PLACE_LINK] = "link", [LFS_PLACE_COPY] = "copy"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(value, words[i]) == 0) {
            p->out->mode = (enum lfs_placing)i;
            return 0;
        }
    return refuse(p, name, value, "graft, link or copy");
}

static int set_bases(struct parse *p, const char *name, const char *value) {
    p->out->bases_given = true;
    while (*value) {
        size_t length = strcspn(value, ":");
        if (length && *value != '/')
            return refuse(p, name, value, "a list of absolute directories");
        if (length && append(&p->out->bases, value, length) < 0)
            return refuse(p, name, value, "memory");
        value += length + (value[length] == ':');
    }
    return 0;
}

static int set_map(struct parse *p, const char *name, const char *value) {
    const char *colon = strrchr(value, ':');
    if (*value != '/' || !colon || colon == value || colon[1] != '/')
        return refuse(p, name, value, "OLD:NEW, two absolute directories");
    if (append(&p->out->map_old, value, (size_t)(colon - value)) < 0 ||
        append(&p->out->map_new, colon + 1, strlen(colon + 1)) < 0)
        return refuse(p, name, value, "memory");
    return 0;
}

static int set_passthrough(struct parse *p, const char *name, const char *value) {
    static const char *const words[] = {[LFS_PASS_AUTO] = "auto", [LFS_PASS_ON] = "on", [LFS_PASS_OFF] = "off"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(value, words[i]) == 0) {
            p->out->passthrough = (enum lfs_passing)i;
            return 0;
        }
    return refuse(p, name, value, "auto, on or off");
}

static int set_cache(struct parse *p, const char *name, const char *value) {
    unsigned long number;
    if (parse_number(value, 10, 1 << 20, &number) < 0 || number < 1)
        return refuse(p, name, value, "a number of MiB");
    p->out->cache_bytes = (size_t)number << 20;
    return 0;
}

static int set_text(struct parse *p, char **slot, const char *name, const char *value, const char *wanted) {
    if (!*value)
        return refuse(p, name, value, wanted);
    free(*slot);
    *slot = strdup(value);
    return *slot ? 0 : refuse(p, name, value, "memory");
}

static int set_hooks(struct parse *p, const char *name, const char *value) {
    return set_text(p, &p->out->hooks, name, value, "a directory");
}

static int set_hooks_timeout(struct parse *p, const char *name, const char *value) {
    unsigned long number;
    if (parse_number(value, 10, 86400, &number) < 0 || number < 1)
        return refuse(p, name, value, "a number of seconds from 1 to 86400");
    p->out->hooks_timeout = (unsigned)number;
    return 0;
}

static int set_control_mode(struct parse *p, const char *name, const char *value) {
    unsigned long number;
    if (parse_number(value, 8, 0777, &number) < 0)
        return refuse(p, name, value, "an octal mode up to 0777");
    p->out->control_mode = (mode_t)number;
    return 0;
}

static int set_attr_timeout(struct parse *p, const char *name, const char *value) {
    return parse_seconds(value, &p->out->attr_timeout) < 0 ? refuse(p, name, value, "a number of seconds") : 0;
}

static int set_entry_timeout(struct parse *p, const char *name, const char *value) {
    return parse_seconds(value, &p->out->entry_timeout) < 0 ? refuse(p, name, value, "a number of seconds") : 0;
}

static int set_max_threads(struct parse *p, const char *name, const char *value) {
    unsigned long number;
    if (parse_number(value, 10, 1000, &number) < 0 || number < 1)
        return refuse(p, name, value, "a number from 1 to 1000");
    p->out->max_threads = (unsigned)number;
    return 0;
}

static int set_log_level(struct parse *p, const char *name, const char *value) {
    static const char *const words[] = {
        [LFS_LOG_ERROR] = "error", [LFS_LOG_WARNING] = "warning", [LFS_LOG_INFO] = "info", [LFS_LOG_DEBUG] = "debug"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(value, words[i]) == 0) {
            p->out->log_level = (enum lfs_log_level)i;
            return 0;
        }
    return refuse(p, name, value, "error, warning, info or debug");
}

static int set_log_file(struct parse *p, const char *name, const char *value) {
    return set_text(p, &p->out->log_file, name, value, "a file, or syslog");
}

static int set_value(struct parse *p, const char *arg) {
    static const struct {
        const char *name;
        int (*set)(struct parse *p, const char *name, const char *value);
    } table[] = {
        {"mode=", set_mode},
        {"bases=", set_bases},
        {"map=", set_map},
        {"passthrough=", set_passthrough},
        {"cache_mb=", set_cache},
        {"hooks=", set_hooks},
        {"hooks_timeout=", set_hooks_timeout},
        {"control_mode=", set_control_mode},
        {"attr_timeout=", set_attr_timeout},
        {"entry_timeout=", set_entry_timeout},
        {"max_threads=", set_max_threads},
        {"log_level=", set_log_level},
        {"log_file=", set_log_file},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strncmp(arg, table[i].name, strlen(table[i].name)) == 0)
            return table[i].set(p, table[i].name, arg + strlen(table[i].name));
    return -1;
}

/* --- words --- */

static int take_word(struct parse *p, const char *arg) {
    char **slot = !p->out->dataset ? &p->out->dataset : !p->out->mountpoint ? &p->out->mountpoint : NULL;
    if (!slot) {
        p->result =
            lfs_fail(p->err, LFS_E_USAGE, "one data set and one mount point are wanted, and %s is a third word", arg);
        return -1;
    }
    *slot = strdup(arg);
    return *slot ? 0 : -1;
}

/* Returns 1 to leave the option to libfuse, 0 to drop it, -1 to stop. */
static int take(void *data, const char *arg, int key, struct fuse_args *args) {
    struct parse *p = data;
    (void)args;
    switch (key) {
    case FUSE_OPT_KEY_NONOPT: return take_word(p, arg);
    case KEY_FOREGROUND: p->out->foreground = true; return 0;
    case KEY_DEBUG: p->out->foreground = p->out->debug = true; return 0;
    case KEY_SINGLE: p->out->single_thread = true; return 0;
    case KEY_HELP: p->out->show_help = true; return 0;
    case KEY_VERSION: p->out->show_version = true; return 0;
    case KEY_READ_ONLY: p->out->read_only = true; return 1;
    case KEY_ALLOW_OTHER: p->out->allow_other = true; return 1;
    case KEY_SYNC: p->out->sync = true; return 0;
    case KEY_NOSYNC: p->out->sync = false; return 0;
    case KEY_VALUE: return set_value(p, arg);
    case KEY_FSNAME: p->fsname_given = true; return 1;
    case KEY_SUBTYPE: p->subtype_given = true; return 1;
    case KEY_DROP: return 0;
    default: return strncmp(arg, "x-", 2) == 0 ? 0 : 1;
    }
}

/* mount(8) calls a helper as "mount.TYPE SOURCE TARGET [-sfnv] [-N NS] [-o OPTIONS] [-t TYPE]": its letters are other
 * ones than ours. */
static bool is_mount_helper(const char *program) {
    const char *slash = strrchr(program, '/');
    return strncmp(slash ? slash + 1 : program, "mount.", 6) == 0;
}

static int copy_arguments(int argc, char **argv, struct fuse_args *args) {
    bool helper = argc > 0 && is_mount_helper(argv[0]);
    for (int i = 0; i < argc; i++) {
        const char *arg = argv[i];
        if (helper && i > 0 && (strcmp(arg, "-t") == 0 || strcmp(arg, "-N") == 0)) {
            i++;
            continue;
        }
        if (helper && i > 0 && arg[0] == '-' && arg[1] && strspn(arg + 1, "sfnv") == strlen(arg + 1))
            continue;
        if (fuse_opt_add_arg(args, arg) < 0)
            return -1;
    }
    return 0;
}

/* What /proc/mounts shows, and modes that are checked where others may come in. */
static errint_t add_defaults(struct parse *p) {
    struct lfs_options *out = p->out;
    char *options = NULL;
    int failed = 0;
    if (!p->fsname_given) {
        char *fsname, *cwd = *out->dataset == '/' ? NULL : getcwd(NULL, 0);
        if (asprintf(&fsname, "fsname=%s%s%s", cwd ? cwd : "", cwd ? "/" : "", out->dataset) < 0)
            fsname = NULL;
        failed |= !fsname || fuse_opt_add_opt_escaped(&options, fsname);
        free(fsname);
        free(cwd);
    }
    if (!p->subtype_given)
        failed |= fuse_opt_add_opt(&options, "subtype=lancefs");
    if (out->allow_other)
        failed |= fuse_opt_add_opt(&options, "default_permissions");
    if (out->debug)
        failed |= fuse_opt_add_opt(&options, "debug");
    if (options)
        failed |= fuse_opt_add_arg(&out->args, "-o") | fuse_opt_add_arg(&out->args, options);
    free(options);
    return failed ? lfs_fail_nomem(p->err) : 0;
}

errint_t lfs_options_parse(int argc, char **argv, struct lfs_options *out, struct lfs_error *err) {
    struct parse p = {.out = out, .err = err};
    *out = (struct lfs_options){
        .sync = true,
        .mode = LFS_PLACE_GRAFT,
        .cache_bytes = (size_t)64 << 20,
        .control_mode = 0600,
        .max_threads = 10,
        .log_level = LFS_LOG_INFO,
        .hooks_timeout = 300,
        .args = FUSE_ARGS_INIT(0, NULL),
    };
    if (copy_arguments(argc, argv, &out->args) < 0)
        return lfs_fail_nomem(err);
    if (fuse_opt_parse(&out->args, &p, templates, take) < 0)
        return p.result < 0 ? p.result : lfs_fail(err, LFS_E_USAGE, "the command line cannot be understood");
    if (out->show_help || out->show_version)
        return 0;
    if (!out->dataset || !out->mountpoint)
        return lfs_fail(err, LFS_E_USAGE, "%s is not named; lancefs -h tells how it is called",
                        out->dataset ? "the mount point" : "the data set");
    return add_defaults(&p);
}

static void free_list(char **list) {
    for (size_t i = 0; list && list[i]; i++)
        free(list[i]);
    free(list);
}

void lfs_options_free(struct lfs_options *options) {
    free(options->dataset);
    free(options->mountpoint);
    free(options->log_file);
    free(options->hooks);
    free_list(options->bases);
    free_list(options->map_old);
    free_list(options->map_new);
    fuse_opt_free_args(&options->args);
}
