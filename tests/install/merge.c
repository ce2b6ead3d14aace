// SPDX-License-Identifier: Apache-2.0
// A program of somebody else that merges without a mount: merge DATASET TARGET LINE, the answer on standard output.
#include <stdio.h>

#include "table/dataset.h"
#include "verbs/verbs.h"
#include "version.h"

int main(int argc, char **argv) {
    struct lfs_error err = {0};
    struct lfs_dataset *ds;
    struct lfs_buf answer = {0};
    struct lfs_verb_settings settings = {.mode = LFS_PLACE_GRAFT, .sync = true};
    if (argc != 4 || lfs_dataset_open(argv[1], NULL, &ds, &err) < 0)
        return fprintf(stderr, "%s\n", err.message), 2;
    struct lfs_verb_call call = {.dataset = ds, .settings = &settings, .branch = argv[2], .line = argv[3]};
    errint_t result = lfs_verb_run(".merge", &call, &answer);
    fwrite(answer.data, 1, answer.length, stdout);
    lfs_buf_free(&answer);
    lfs_dataset_close(ds);
    return result < 0;
}
