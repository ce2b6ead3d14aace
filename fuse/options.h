/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of lancefs (interface.md section 1). */
#ifndef LFS_FUSE_OPTIONS_H
#define LFS_FUSE_OPTIONS_H

#include <fuse_opt.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "util/error.h"
#include "util/log.h"
#include "verbs/verbs.h"

/* Are data files handed to the kernel (passthrough.h)? */
enum lfs_passing { LFS_PASS_AUTO, LFS_PASS_ON, LFS_PASS_OFF };

struct lfs_options {
    char *dataset, *mountpoint; /* as given */
    bool foreground, debug, single_thread, show_help, show_version;
    bool read_only, allow_other, sync;
    enum lfs_placing mode;
    bool bases_given;
    char **bases;              /* NULL-terminated; NULL = none named */
    char **map_old, **map_new; /* NULL-terminated, equal in number; NULL = none */
    enum lfs_passing passthrough;
    size_t cache_bytes;
    mode_t control_mode;
    double attr_timeout, entry_timeout; /* seconds, for what can change */
    unsigned max_threads;
    enum lfs_log_level log_level;
    char *log_file;
    char *hooks;            /* a directory; NULL = none */
    unsigned hooks_timeout; /* seconds that a hook may take */
    struct fuse_args args; /* what libfuse is to be told */
};

/* Fill `out` from a command line. LFS_E_USAGE, or LFS_E_UNSUPPORTED for an option that is not there yet, with one
 * sentence. Free with lfs_options_free also after a failure. */
errint_t lfs_options_parse(int argc, char **argv, struct lfs_options *out, struct lfs_error *err);
void lfs_options_free(struct lfs_options *options);

/* The text of -h: fits one screen. */
extern const char lfs_options_help[];

#endif
