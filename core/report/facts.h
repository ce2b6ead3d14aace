/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What commits were found to be, kept between reports: a history of thousands of versions takes seconds to read, and
 * nothing in it changes but its newest end. A fact is good while the manifest file that it was read from is the same.
 */
#ifndef LFS_REPORT_FACTS_H
#define LFS_REPORT_FACTS_H

#include <sys/stat.h>

#include "report/commits.h"

/* Copies in `arena` of what was kept under `key` of that very file; false when nothing was. */
bool lfs_facts_get(struct lfs_report_cache *cache, const char *key, const struct stat *file, struct lfs_arena *arena,
                   struct lfs_report_commit *out);
/* Failing to keep is no failure. */
void lfs_facts_put(struct lfs_report_cache *cache, const char *key, const struct stat *file,
                   const struct lfs_report_commit *commit);

#endif
