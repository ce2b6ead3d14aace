/* SPDX-License-Identifier: Apache-2.0 */
/* A manifest file. What was read is written and read again as the same; sharing with itself changes nothing; flattened
 * it names no place. */
#include "fuzz.h"

#include "format/manifest.h"
#include "table/view.h"

static void same_message(const ProtobufCMessage *a, const ProtobufCMessage *b) {
    FUZZ_MUST(!a == !b);
    if (!a)
        return;
    size_t n = protobuf_c_message_get_packed_size(a);
    FUZZ_MUST(protobuf_c_message_get_packed_size(b) == n);
    LFS_AUTO_FREE uint8_t *x = malloc(n + 1), *y = malloc(n + 1);
    FUZZ_MUST(x && y);
    protobuf_c_message_pack(a, x);
    protobuf_c_message_pack(b, y);
    FUZZ_MUST(memcmp(x, y, n) == 0);
}

static void same_manifest(const struct lfs_manifest *a, const struct lfs_manifest *b) {
    same_message(&a->message->base, &b->message->base);
    same_message((ProtobufCMessage *)a->indices, (ProtobufCMessage *)b->indices);
    same_message((ProtobufCMessage *)a->transaction, (ProtobufCMessage *)b->transaction);
}

static void written_and_read(const struct lfs_manifest *manifest, struct lfs_arena *arena) {
    LFS_AUTO_BUF bytes = {0};
    struct lfs_manifest again;
    FUZZ_MUST(lfs_manifest_encode(manifest, &bytes, NULL) == 0); /* sets where the sections lie */
    FUZZ_MUST(lfs_manifest_decode(bytes.data, bytes.length, arena, "again", &again, NULL) == 0);
    same_manifest(manifest, &again);
}

static void shared_with_itself(const uint8_t *data, size_t size, const struct lfs_manifest *like,
                               struct lfs_arena *arena) {
    struct lfs_manifest again;
    size_t n_shared = 0;
    FUZZ_MUST(lfs_manifest_decode_like(data, size, like, arena, arena, "like", &again, &n_shared, NULL) == 0);
    FUZZ_MUST(n_shared <= like->message->n_fragments);
    same_manifest(like, &again);
    FUZZ_MUST(lfs_manifest_resembles(data, size, like) ==
              (like->message->n_fragments ? LFS_RESEMBLES : LFS_RESEMBLES_NOT));
}

static void flattened(const struct lfs_manifest *manifest, struct lfs_arena *arena) {
    struct lfs_aliases aliases = {0};
    struct lfs_manifest flat;
    bool changed;
    FUZZ_MUST(lfs_flatten_manifest(manifest, &aliases, arena, &flat, &changed, NULL) == 0);
    FUZZ_MUST(flat.message->n_base_paths == 0 && !flat.message->branch);
    FUZZ_MUST(changed || flat.message == manifest->message);
    for (size_t i = 0; i < flat.message->n_fragments; i++) {
        const LanceFragment *f = flat.message->fragments[i];
        FUZZ_MUST(!f->deletion_file || !f->deletion_file->has_base_id);
        for (size_t j = 0; j < f->n_files; j++)
            FUZZ_MUST(!f->files[j]->has_base_id);
    }
    for (size_t i = 0; flat.indices && i < flat.indices->n_indices; i++)
        FUZZ_MUST(!flat.indices->indices[i]->has_base_id);
    written_and_read(&flat, arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    struct lfs_manifest manifest;
    struct lfs_error err = {0};
    errint_t result = lfs_manifest_decode(data, size, arena, "the input", &manifest, &err);
    FUZZ_MUST(lfs_arena_size(arena) <= FUZZ_MEMORY(size));
    if (result < 0) {
        FUZZ_REFUSAL(result, err);
        return 0;
    }
    result = lfs_manifest_check_features(manifest.message, true, "the input", &err);
    if (result < 0)
        FUZZ_REFUSAL(result, err);
    shared_with_itself(data, size, &manifest, arena);
    flattened(&manifest, arena);
    written_and_read(&manifest, arena);
    return 0;
}
