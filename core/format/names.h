/* SPDX-License-Identifier: Apache-2.0 */
/* Names that the format gives to things: manifest files, branch and tag names and their files. Pure. */
#ifndef LFS_FORMAT_NAMES_H
#define LFS_FORMAT_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/arena.h"
#include "util/error.h"

/* The two ways to name a manifest (lance-format section 1.1); one directory holds one of them only. */
enum lfs_naming { LFS_NAMING_V1 = 1 /* 7.manifest */, LFS_NAMING_V2 = 2 /* 20 digits of 2^64-1 - version */ };

enum { LFS_MANIFEST_NAME_SIZE = 32 };

/* Is `name` a manifest of a numbered (not detached) version? Fills version and scheme. */
bool lfs_manifest_name_parse(const char *name, uint64_t *version, enum lfs_naming *naming);
void lfs_manifest_name(enum lfs_naming naming, uint64_t version, char name[LFS_MANIFEST_NAME_SIZE]);

/* Branch names: the engine's rules (lance-format section 2.1). LFS_E_USAGE says which one is broken. */
errint_t lfs_branch_name_check(const char *name, struct lfs_error *err);

/* Is it a segment that means something inside a data set directory (data, _versions, _transactions, _deletions,
 * _indices, _refs, tree, _lancefs)? The additional rule of lance-format section 2.1. */
bool lfs_is_layout_name(const char *segment);

/* Is it the stem of a data file as stock names them (24 binary digits, 26 hex digits); is it a uuid? Directories of such names
 * belong to one file or index each. */
bool lfs_is_data_stem(const char *name);
bool lfs_is_uuid(const char *name);

errint_t lfs_tag_name_check(const char *name, struct lfs_error *err);

/* Object-store part encoding as stock names its ref files: '/' -> %2F, bytes outside printable ASCII and the reserved
 * ones -> %XX. Decode refuses (NULL) malformed escapes and NUL. NULL when memory is short too. */
char *lfs_percent_encode(struct lfs_arena *arena, const char *name);
char *lfs_percent_decode(struct lfs_arena *arena, const char *text);

#endif
