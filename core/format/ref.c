/* SPDX-License-Identifier: Apache-2.0 */
#include "format/ref.h"

#include <jansson.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/limits.h"

/* A walk over one file's JSON. jansson refuses bad UTF-8, NULs in strings, integers outside int64 and nesting deeper
 * than JSON_PARSER_MAX_DEPTH (2048); duplicate keys it refuses when asked to, as stock does. */
struct reader {
    struct lfs_arena *arena;
    const char *what;
    struct lfs_error *err;
};

static void cleanup_json(json_t **json) { json_decref(*json); }
static void cleanup_text(char **text) { free(*text); }

#define AUTO_JSON LFS_CLEANUP(cleanup_json) json_t

static errint_t parse(const struct reader *r, const uint8_t *bytes, size_t length, json_t **out) {
    json_error_t why;
    if (length > LFS_REF_BYTES_MAX)
        return lfs_fail(r->err, LFS_E_TOO_BIG, "%s is too large for a branch or tag file (%zu bytes)", r->what, length);
    *out = json_loadb((const char *)bytes, length, JSON_REJECT_DUPLICATES, &why);
    if (!*out && json_error_code(&why) == json_error_out_of_memory)
        return lfs_fail_nomem(r->err);
    if (!*out)
        return lfs_fail(r->err, LFS_E_CORRUPT, "%s is not valid JSON: line %d: %s", r->what, why.line, why.text);
    if (!json_is_object(*out))
        return lfs_fail(r->err, LFS_E_CORRUPT, "%s does not hold a JSON object", r->what);
    return 0;
}

static errint_t read_u64(const struct reader *r, const json_t *value, const char *key, uint64_t *out) {
    if (!value)
        return lfs_fail(r->err, LFS_E_CORRUPT, "%s has no \"%s\"", r->what, key);
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return lfs_fail(r->err, LFS_E_CORRUPT, "%s: \"%s\" is not a whole number from 0 up", r->what, key);
    *out = (uint64_t)json_integer_value(value);
    return 0;
}

/* Absent and null are one (NULL). */
static errint_t read_text(const struct reader *r, const json_t *object, const char *key, const char **out) {
    const json_t *value = json_object_get(object, key);
    *out = NULL;
    if (!value || json_is_null(value))
        return 0;
    if (!json_is_string(value))
        return lfs_fail(r->err, LFS_E_CORRUPT, "%s: \"%s\" is not a string", r->what, key);
    *out = lfs_strdup(r->arena, json_string_value(value));
    return *out ? 0 : lfs_fail_nomem(r->err);
}

/* Stock writes main as null, and takes the string too (lance-format section 2.1). */
static errint_t read_branch_name(const struct reader *r, const json_t *object, const char *key, const char **out) {
    LFS_TRY(read_text(r, object, key, out));
    if (*out && strcmp(*out, "main") == 0)
        *out = NULL;
    return 0;
}

static bool is_uuid(const char *text) { return strlen(text) == 32 && strspn(text, "0123456789abcdefABCDEF") == 32; }

/* [version, "32 hex digits"]. The uuid names directories elsewhere, so nothing but digits may pass. */
static errint_t read_fork(const struct reader *r, const json_t *pair, struct lfs_fork *out) {
    const char *uuid = json_string_value(json_array_get(pair, 1));
    if (json_array_size(pair) != 2 || !uuid || !is_uuid(uuid))
        return lfs_fail(r->err, LFS_E_CORRUPT, "%s: \"version_mapping\" holds something else than [version, uuid]",
                        r->what);
    LFS_TRY(read_u64(r, json_array_get(pair, 0), "version_mapping", &out->version));
    out->uuid = lfs_strdup(r->arena, uuid);
    return out->uuid ? 0 : lfs_fail_nomem(r->err);
}

static errint_t read_forks(const struct reader *r, const json_t *object, struct lfs_branch_ref *out) {
    const json_t *identifier = json_object_get(object, "identifier");
    if (!identifier)
        return 0;
    const json_t *mapping = json_object_get(identifier, "version_mapping");
    if (!json_is_array(mapping))
        return lfs_fail(r->err, LFS_E_CORRUPT, "%s: \"identifier\" has no list \"version_mapping\"", r->what);
    size_t n = json_array_size(mapping);
    if (n > LFS_BRANCH_DEPTH_MAX)
        return lfs_fail(r->err, LFS_E_TOO_BIG, "%s: the branch is %zu forks away from main", r->what, n);
    out->forks = LFS_NEW_ARRAY(r->arena, struct lfs_fork, n);
    if (!out->forks)
        return lfs_fail_nomem(r->err);
    for (; out->n_forks < n; out->n_forks++)
        LFS_TRY(read_fork(r, json_array_get(mapping, out->n_forks), &out->forks[out->n_forks]));
    return 0;
}

/* A map from strings to strings, kept as text: it is the user's, and is only handed on. */
static errint_t read_metadata(const struct reader *r, json_t *object, const char **out) {
    json_t *metadata = json_object_get(object, "metadata"), *value;
    const char *key;
    *out = NULL;
    if (!metadata)
        return 0;
    if (!json_is_object(metadata))
        return lfs_fail(r->err, LFS_E_CORRUPT, "%s: \"metadata\" is not an object", r->what);
    json_object_foreach(metadata, key, value) {
        if (!json_is_string(value))
            return lfs_fail(r->err, LFS_E_CORRUPT, "%s: \"metadata\" holds something else than strings", r->what);
    }
    LFS_CLEANUP(cleanup_text) char *text = json_dumps(metadata, JSON_COMPACT);
    *out = text ? lfs_strdup(r->arena, text) : NULL;
    return *out ? 0 : lfs_fail_nomem(r->err);
}

errint_t lfs_branch_ref_decode(const uint8_t *json, size_t length, struct lfs_arena *arena, const char *what,
                               struct lfs_branch_ref *out, struct lfs_error *err) {
    const struct reader r = {arena, what, err};
    AUTO_JSON *object = NULL;
    *out = (struct lfs_branch_ref){0};
    LFS_TRY(parse(&r, json, length, &object));
    LFS_TRY(read_branch_name(&r, object, "parentBranch", &out->parent_branch));
    LFS_TRY(read_forks(&r, object, out));
    LFS_TRY(read_u64(&r, json_object_get(object, "parentVersion"), "parentVersion", &out->parent_version));
    LFS_TRY(read_u64(&r, json_object_get(object, "createAt"), "createAt", &out->create_at));
    LFS_TRY(read_u64(&r, json_object_get(object, "manifestSize"), "manifestSize", &out->manifest_size));
    return read_metadata(&r, object, &out->metadata_json);
}

errint_t lfs_tag_ref_decode(const uint8_t *json, size_t length, struct lfs_arena *arena, const char *what,
                            struct lfs_tag_ref *out, struct lfs_error *err) {
    const struct reader r = {arena, what, err};
    AUTO_JSON *object = NULL;
    *out = (struct lfs_tag_ref){0};
    LFS_TRY(parse(&r, json, length, &object));
    LFS_TRY(read_branch_name(&r, object, "branch", &out->branch));
    LFS_TRY(read_u64(&r, json_object_get(object, "version"), "version", &out->version));
    LFS_TRY(read_text(&r, object, "createdAt", &out->created_at));
    LFS_TRY(read_text(&r, object, "updatedAt", &out->updated_at));
    LFS_TRY(read_u64(&r, json_object_get(object, "manifestSize"), "manifestSize", &out->manifest_size));
    return read_metadata(&r, object, &out->metadata_json);
}

/* NULL when memory is short or a uuid is not UTF-8; steals nothing. */
static json_t *fork_list(const struct lfs_branch_ref *ref) {
    AUTO_JSON *list = json_array();
    for (size_t i = 0; list && i < ref->n_forks; i++)
        if (json_array_append_new(list, json_pack("[Is]", (json_int_t)ref->forks[i].version, ref->forks[i].uuid)))
            return NULL;
    return LFS_STEAL_PTR(list);
}

static json_t *branch_object(const struct lfs_branch_ref *ref) {
    AUTO_JSON *object = json_object();
    json_t *metadata = ref->metadata_json ? json_loads(ref->metadata_json, 0, NULL) : json_object();
    /* The _set_new functions take the value even when they fail, and fail for NULL. */
    int failed = json_object_set_new(object, "parentBranch", json_pack("s?", ref->parent_branch));
    if (ref->n_forks)
        failed |= json_object_set_new(object, "identifier", json_pack("{so}", "version_mapping", fork_list(ref)));
    failed |= json_object_set_new(object, "parentVersion", json_integer((json_int_t)ref->parent_version));
    failed |= json_object_set_new(object, "createAt", json_integer((json_int_t)ref->create_at));
    failed |= json_object_set_new(object, "manifestSize", json_integer((json_int_t)ref->manifest_size));
    failed |= json_object_set_new(object, "metadata", metadata);
    return failed ? NULL : LFS_STEAL_PTR(object);
}

static errint_t check_numbers(const struct lfs_branch_ref *ref, struct lfs_error *err) {
    bool fits = ref->parent_version <= INT64_MAX && ref->create_at <= INT64_MAX && ref->manifest_size <= INT64_MAX;
    for (size_t i = 0; i < ref->n_forks; i++)
        fits = fits && ref->forks[i].version <= INT64_MAX;
    return fits ? 0 : lfs_fail(err, LFS_E_TOO_BIG, "a number of the branch file is over 2^63 - 1");
}

static int add_to_buf(const char *text, size_t length, void *buf) {
    lfs_buf_add(buf, text, length);
    return 0;
}

static errint_t dump(const json_t *object, struct lfs_buf *out, struct lfs_error *err) {
    if (!object || json_dump_callback(object, add_to_buf, out, JSON_INDENT(2)))
        return lfs_fail(err, LFS_E_NOMEM,
                        "the branch or tag file cannot be written: memory is short, or its text is not UTF-8");
    return lfs_buf_check(out, err);
}

errint_t lfs_branch_ref_encode(const struct lfs_branch_ref *ref, struct lfs_buf *out, struct lfs_error *err) {
    LFS_TRY(check_numbers(ref, err));
    AUTO_JSON *object = branch_object(ref);
    return dump(object, out, err);
}

errint_t lfs_tag_ref_encode(const struct lfs_tag_ref *ref, struct lfs_buf *out, struct lfs_error *err) {
    if (ref->version > INT64_MAX || ref->manifest_size > INT64_MAX)
        return lfs_fail(err, LFS_E_TOO_BIG, "a number of the tag file is over 2^63 - 1");
    json_t *metadata = ref->metadata_json ? json_loads(ref->metadata_json, 0, NULL) : json_object();
    AUTO_JSON *object = json_pack("{s:s?, s:I, s:s?, s:s?, s:I, s:o}", "branch", ref->branch, "version",
                                  (json_int_t)ref->version, "createdAt", ref->created_at, "updatedAt", ref->updated_at,
                                  "manifestSize", (json_int_t)ref->manifest_size, "metadata", metadata);
    return dump(object, out, err);
}

errint_t lfs_ref_edit(const uint8_t *json, size_t length, const char *what, const char *key, const char *name,
                      const uint64_t *manifest_size, struct lfs_buf *out, struct lfs_error *err) {
    const struct reader r = {.what = what, .err = err};
    AUTO_JSON *object = NULL;
    LFS_TRY(parse(&r, json, length, &object));
    if (name && json_object_set_new(object, key, json_string(name)))
        return lfs_fail_nomem(err);
    if (manifest_size && json_object_set_new(object, "manifestSize", json_integer((json_int_t)*manifest_size)))
        return lfs_fail_nomem(err);
    return dump(object, out, err);
}
