/* SPDX-License-Identifier: Apache-2.0 */
/* fsck.lancefs: check a data set without mounting it. Exit status as in fsck(8). */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/log.h"
#include "verbs/fsck.h"
#include "version.h"

enum { EXIT_CLEAN = 0, EXIT_CORRECTED = 1, EXIT_LEFT = 4, EXIT_FAILED = 8, EXIT_USAGE = 16 };

static const char help[] =
    "usage: fsck.lancefs [-n] [-y [--relocate]] [-v] DATASET\n"
    "Checks a Lance data set: every version, ref, base path and file of it.\n"
    "\n"
    "  -n            change nothing (the default)\n"
    "  -y            repair what needs no guess: half-made files, changes of names that stopped half-way\n"
    "  --relocate    with -y: rewrite the base paths of a data set that was moved or copied, so that other readers "
    "find\n"
    "                its files; no program may have it open\n"
    "  -v            name what is only counted otherwise\n"
    "  -h, -V        this help; the version\n"
    "\n"
    "Exit status: 0 clean, 1 errors corrected, 4 errors left, 8 the check failed, 16 wrong command line; 1 and 4 add "
    "up.\n";

struct command {
    struct lfs_fsck_options options;
    bool only_look;
    const char *dataset;
};

/* -1 to go on, else the exit status. -a, -p and -f are what fsck(8) gives; -a and -p mean -y. */
static int parse(int argc, char **argv, struct command *out) {
    static const struct option options[] = {{"relocate", no_argument, NULL, 'R'},
                                            {"help", no_argument, NULL, 'h'},
                                            {"version", no_argument, NULL, 'V'},
                                            {0}};
    for (int c; (c = getopt_long(argc, argv, "nyapfvhV", options, NULL)) != -1;) {
        switch (c) {
        case 'n': out->only_look = true; break;
        case 'y':
        case 'a':
        case 'p': out->options.repair = true; break;
        case 'R': out->options.relocate = true; break;
        case 'v': out->options.verbose = true; break;
        case 'f': break;
        case 'h': fputs(help, stdout); return EXIT_CLEAN;
        case 'V': printf("fsck.lancefs %s\n", LFS_VERSION); return EXIT_CLEAN;
        default: return EXIT_USAGE;
        }
    }
    const char *wrong = optind + 1 != argc                              ? "name one data set"
                        : out->only_look && out->options.repair         ? "-n and -y exclude each other"
                        : out->options.relocate && !out->options.repair ? "--relocate needs -y"
                                                                        : NULL;
    if (wrong)
        fprintf(stderr, "fsck.lancefs: %s; fsck.lancefs -h tells more\n", wrong);
    out->dataset = wrong ? NULL : argv[optind];
    return wrong ? EXIT_USAGE : -1;
}

static int complain(const struct lfs_error *err) {
    fprintf(stderr, "fsck.lancefs: %s\n", err->message);
    return EXIT_FAILED;
}

static int check(const struct command *command) {
    struct lfs_error err;
    struct lfs_dataset *ds;
    struct lfs_fsck_result found;
    LFS_AUTO_BUF report = {0};
    if (lfs_dataset_open(command->dataset, NULL, &ds, &err) < 0)
        return complain(&err);
    errint_t result = lfs_fsck_run(ds, &command->options, &report, &found, &err);
    lfs_dataset_close(ds);
    if (report.length && fwrite(report.data, 1, report.length, stdout) != report.length)
        return EXIT_FAILED;
    if (result < 0)
        return complain(&err);
    return (found.corrected ? EXIT_CORRECTED : 0) | (found.errors ? EXIT_LEFT : 0);
}

int main(int argc, char **argv) {
    struct command command = {0};
    int status = parse(argc, argv, &command);
    lfs_log_open(NULL, LFS_LOG_ERROR); /* what matters stands in the report */
    return status >= 0 ? status : check(&command);
}
