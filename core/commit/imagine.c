/* SPDX-License-Identifier: Apache-2.0 */
#include "commit/imagine.h"

#include <inttypes.h>
#include <string.h>
#include <uuid/uuid.h>

#include "commit/build.h"
#include "util/cleanup.h"
#include "util/map.h"

/* A uuid of version 4 as far as its form goes. */
static char *uuid_of(uint64_t seed, struct lfs_arena *arena) {
    uint64_t halves[2] = {lfs_hash(&seed, sizeof seed, 7), lfs_hash(&seed, sizeof seed, 8)};
    char *text = lfs_alloc(arena, UUID_STR_LEN);
    uuid_t uuid;
    memcpy(uuid, halves, sizeof uuid);
    uuid[6] = (uint8_t)((uuid[6] & 0x0f) | 0x40);
    uuid[8] = (uint8_t)((uuid[8] & 0x3f) | 0x80);
    if (text)
        uuid_unparse_lower(uuid, text);
    return text;
}

static int64_t nanoseconds(const struct lfs_version *v) {
    const Lance__Table__Timestamp *t = v->manifest.message->timestamp;
    return t ? t->seconds * 1000000000 + t->nanos : 0;
}

/* Nobody commits it, so the clock has no say: what it is made of does. */
static void set_time(const struct lfs_commit_request *r, LanceManifest *m) {
    const struct lfs_version *newer =
        nanoseconds(r->target_tip) >= nanoseconds(r->source_version) ? r->target_tip : r->source_version;
    const Lance__Table__Timestamp *time = newer->manifest.message->timestamp;
    if (time)
        m->timestamp = (Lance__Table__Timestamp *)time; /* only packed from here on */
    else
        *m->timestamp = (Lance__Table__Timestamp)LANCE__TABLE__TIMESTAMP__INIT;
}

errint_t lfs_commit_imagine(const struct lfs_commit_request *request, uint64_t seed, struct lfs_arena *arena,
                            struct lfs_imagined *out, struct lfs_error *err) {
    struct lfs_placer placer = {0};
    char *uuid = uuid_of(seed, arena);
    struct lfs_build build = {request, &placer, arena, uuid, request->target_tip->number + 1};
    *out = (struct lfs_imagined){.seed = seed};
    if (!uuid)
        return lfs_fail_nomem(err);
    LFS_TRY(lfs_commit_check(request, err));
    errint_t result = lfs_placer_init(&placer, request, arena, err);
    placer.imagined = out;
    if (result == 0)
        result = lfs_build_manifest(&build, &out->manifest, err);
    lfs_placer_close(&placer);
    if (result == 0)
        set_time(request, out->manifest.message);
    return result;
}
