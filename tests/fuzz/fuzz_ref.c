/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON of branch and tag files, each read as both: what was read is written and read again as the same; an edit of a
 * name changes the name alone. */
#include "fuzz.h"

#include "format/names.h"
#include "format/ref.h"

static bool same(const char *a, const char *b) { return a == b || (a && b && strcmp(a, b) == 0); }

/* None and an empty object mean the same, and are written as stock writes it. */
static bool same_metadata(const char *a, const char *b) { return same(a ? a : "{}", b ? b : "{}"); }

static void same_branch(const struct lfs_branch_ref *a, const struct lfs_branch_ref *b) {
    FUZZ_MUST(a->n_forks == b->n_forks && a->parent_version == b->parent_version && a->create_at == b->create_at);
    FUZZ_MUST(a->manifest_size == b->manifest_size && same_metadata(a->metadata_json, b->metadata_json));
    for (size_t i = 0; i < a->n_forks; i++)
        FUZZ_MUST(a->forks[i].version == b->forks[i].version && same(a->forks[i].uuid, b->forks[i].uuid));
}

static void branch(const uint8_t *data, size_t size, struct lfs_arena *arena) {
    struct lfs_branch_ref ref, again;
    struct lfs_error err = {0};
    LFS_AUTO_BUF bytes = {0}, edited = {0};
    uint64_t manifest_size = 77;
    errint_t result = lfs_branch_ref_decode(data, size, arena, "the input", &ref, &err);
    if (result < 0) {
        FUZZ_REFUSAL(result, err);
        return;
    }
    FUZZ_MUST(lfs_branch_ref_encode(&ref, &bytes, &err) == 0);
    FUZZ_MUST(lfs_branch_ref_decode(bytes.data, bytes.length, arena, "again", &again, &err) == 0);
    same_branch(&ref, &again);
    FUZZ_MUST(same(ref.parent_branch, again.parent_branch));
    FUZZ_MUST(lfs_ref_edit(data, size, "the input", "parentBranch", "other", &manifest_size, &edited, &err) == 0);
    FUZZ_MUST(lfs_branch_ref_decode(edited.data, edited.length, arena, "edited", &again, &err) == 0);
    FUZZ_MUST(same(again.parent_branch, "other") && again.manifest_size == 77);
    again.manifest_size = ref.manifest_size;
    same_branch(&ref, &again);
}

static void tag(const uint8_t *data, size_t size, struct lfs_arena *arena) {
    struct lfs_tag_ref ref, again;
    struct lfs_error err = {0};
    LFS_AUTO_BUF bytes = {0};
    errint_t result = lfs_tag_ref_decode(data, size, arena, "the input", &ref, &err);
    if (result < 0) {
        FUZZ_REFUSAL(result, err);
        return;
    }
    FUZZ_MUST(lfs_tag_ref_encode(&ref, &bytes, &err) == 0);
    FUZZ_MUST(lfs_tag_ref_decode(bytes.data, bytes.length, arena, "again", &again, &err) == 0);
    FUZZ_MUST(same(ref.branch, again.branch) && ref.version == again.version &&
              ref.manifest_size == again.manifest_size);
    FUZZ_MUST(same(ref.created_at, again.created_at) && same(ref.updated_at, again.updated_at));
    FUZZ_MUST(same_metadata(ref.metadata_json, again.metadata_json));
}

/* The input as a name: its file's name is that name's and no path; a branch name that the rules take is one too. */
static void name(const uint8_t *data, size_t size, struct lfs_arena *arena) {
    char *text = lfs_strndup(arena, (const char *)data, size);
    FUZZ_MUST(text);
    char *file = lfs_percent_encode(arena, text);
    FUZZ_MUST(file && !strchr(file, '/'));
    char *back = lfs_percent_decode(arena, file);
    FUZZ_MUST(back && strcmp(back, text) == 0);
    lfs_percent_decode(arena, text);
    struct lfs_error err = {0};
    errint_t result = lfs_branch_name_check(text, &err);
    if (result < 0)
        FUZZ_REFUSAL(result, err);
    else
        FUZZ_MUST(*text && *text != '/' && !strstr(text, "..") && !strstr(text, "//"));
    err = (struct lfs_error){0};
    result = lfs_tag_name_check(text, &err);
    if (result < 0)
        FUZZ_REFUSAL(result, err);
    else
        FUZZ_MUST(*text && !strstr(text, "..") && !strchr(text, '/'));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    branch(data, size, arena);
    tag(data, size, arena);
    name(data, size, arena);
    return 0;
}
