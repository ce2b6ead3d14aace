/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A manifest file: [index section] [inline transaction] manifest, footer (lance-format section 3). Pure: bytes in,
 * bytes out.
 */
#ifndef LFS_FORMAT_MANIFEST_H
#define LFS_FORMAT_MANIFEST_H

#include <stdbool.h>

#include "format/messages.h"
#include "util/arena.h"
#include "util/buf.h"
#include "util/error.h"

/* A fragment's record as it is stored, when it is not plain (format/fragment.h): it is copied from manifest to manifest
 * like that, whatever it holds. The bytes of a plain one are what is written for it. */
struct lfs_fragment_bytes {
    const LanceFragment *record; /* what the bytes say; other records are written anew */
    const uint8_t *data;         /* NULL for a plain one */
    size_t length;
};

struct lfs_manifest {
    LanceManifest *message;      /* never NULL */
    LanceIndexSection *indices;  /* NULL when the file has no index section */
    LanceTransaction *transaction; /* the inline copy; NULL when the file has none */
    struct lfs_fragment_bytes *fragment_bytes; /* one for each of the message's fragments, in their order; NULL: all plain */
};

/* Feature flags (lance-format section 4). */
enum {
    LFS_FLAG_DELETION_FILES = 1,
    LFS_FLAG_STABLE_ROW_IDS = 2,
    LFS_FLAG_V2_FORMAT = 4,
    LFS_FLAG_CONFIG = 8,
    LFS_FLAG_BASE_PATHS = 16,
    LFS_FLAG_NO_TRANSACTION_FILES = 32,
    LFS_FLAGS_KNOWN = 63,
};

/* Decode a whole manifest file; everything lands in `arena`, which must outlive `out`. `what` names the file. */
errint_t lfs_manifest_decode(const uint8_t *bytes, size_t length, struct lfs_arena *arena, const char *what,
                             struct lfs_manifest *out, struct lfs_error *err);

/*
 * The same, and fragments whose bytes `like` (NULL is fine) has too are its records: versions of one table share nearly
 * all. Those of a branch differ from its parent's by a base id, and share their names. New records land in `fragments`, all
 * else in `arena`. *n_shared of the records are those of `like` or point into them; it then must outlive `out`.
 */
errint_t lfs_manifest_decode_like(const uint8_t *bytes, size_t length, const struct lfs_manifest *like,
                                  struct lfs_arena *arena, struct lfs_arena *fragments, const char *what,
                                  struct lfs_manifest *out, size_t *n_shared, struct lfs_error *err);

/* The same for a cache, which gives back what nobody points to: records and the names in them are told apart. */
struct lfs_manifest_sharing {
    const struct lfs_manifest *like; /* NULL: share nothing */
    bool names_only;                 /* no record of `like`: then its records need not outlive `out`, only its names */
    struct lfs_arena *records, *names;
    size_t n_records, n_names;       /* out: records of `like`; records that are new with names of `like` */
};
errint_t lfs_manifest_decode_sharing(const uint8_t *bytes, size_t length, struct lfs_manifest_sharing *sharing,
                                     struct lfs_arena *arena, const char *what, struct lfs_manifest *out,
                                     struct lfs_error *err);

/* Is the first fragment of that file the first one of `like` (then records will be shared), or one with the same first
 * file (then names will)? */
enum lfs_resemblance { LFS_RESEMBLES_NOT, LFS_RESEMBLES_BY_NAMES, LFS_RESEMBLES };
enum lfs_resemblance lfs_manifest_resembles(const uint8_t *bytes, size_t length, const struct lfs_manifest *like);

/* Fragments of `next` that are records of `from` are written as their bytes there, also those that are not plain. Both in
 * the order of ids, as manifests are. LFS_E_NO_MEMORY only. */
errint_t lfs_manifest_keep_bytes(struct lfs_manifest *next, const struct lfs_manifest *from, struct lfs_arena *arena,
                                 struct lfs_error *err);

/* Append the whole file to `out`: sections in stock's order (index, transaction, manifest, footer). Sets the message's
 * index_section and transaction_section to where they come to lie. */
errint_t lfs_manifest_encode(const struct lfs_manifest *manifest, struct lfs_buf *out, struct lfs_error *err);

/* Append a manifest file that was decoded, with `message` in place of its own; the other sections stay byte for byte, and
 * where they are. */
errint_t lfs_manifest_replace(const uint8_t *bytes, size_t length, const LanceManifest *message, struct lfs_buf *out,
                              struct lfs_error *err);

/* LFS_E_UNSUPPORTED with the unknown bits when this program may not read (or, `for_write`, write) such a table. */
errint_t lfs_manifest_check_features(const LanceManifest *message, bool for_write, const char *what,
                                     struct lfs_error *err);

/* Set both flag words from the content, as stock does at each commit; bits 1, 2 and 5 stay once set. */
void lfs_manifest_set_features(LanceManifest *message);

bool lfs_manifest_has_stable_row_ids(const LanceManifest *message);

/* The value of a key in a string map, or NULL. */
const char *lfs_entries_get(LanceStringEntry *const *entries, size_t count, const char *key);

/* A property of a transaction (NULL is fine), or NULL. */
const char *lfs_transaction_property(const LanceTransaction *transaction, const char *key);

/* The entry of an index section (NULL is fine) that has the uuid of `like`, or NULL. */
LanceIndex *lfs_index_find(const LanceIndexSection *section, const LanceIndex *like);

/* A base path by id (the last one wins where an id stands twice, as in stock), or NULL. */
const LanceBasePath *lfs_manifest_base(const LanceManifest *message, uint32_t id);
/* Has the id a base path in both, and does it lead to one place? */
bool lfs_manifest_same_base(const LanceManifest *a, const LanceManifest *b, uint32_t id);

#endif
