/* SPDX-License-Identifier: Apache-2.0 */
#include "table/image.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "format/wire.h"
#include "store/file.h"
#include "table/transactions.h"
#include "table/view_impl.h"
#include "util/cleanup.h"
#include "util/limits.h"

/* A file in memory. */
struct memory_file {
    const uint8_t *bytes;
    size_t size;
};

struct lfs_image {
    atomic_uint users;
    struct lfs_arena *arena; /* owns all but the view's own arena; the image itself lives in it */
    struct lfs_views *views;
    struct lfs_version version; /* planned: of no file */
    const char *other;
    struct lfs_view *view;
    struct lfs_map files; /* path -> struct memory_file */
    size_t bytes;
    uint64_t token;
    struct timespec time;
};

struct lfs_image *lfs_image_hold(struct lfs_image *image) {
    atomic_fetch_add(&image->users, 1);
    return image;
}

void lfs_image_release(struct lfs_image *image) {
    if (!image || atomic_fetch_sub(&image->users, 1) != 1)
        return;
    lfs_view_destroy(image->view);
    lfs_arena_free(image->arena);
}

uint64_t lfs_image_token(const struct lfs_image *image) { return image->token; }
size_t lfs_image_size(const struct lfs_image *image) { return image->bytes; }
struct timespec lfs_image_time(const struct lfs_image *image) {
    return image->time;
}
uint64_t lfs_image_version(const struct lfs_image *image) { return image->version.number; }

/* --- making one --- */

static errint_t add_file(struct lfs_image *image, const char *path, const uint8_t *bytes, size_t size,
                         struct lfs_error *err) {
    struct memory_file *file = LFS_NEW(image->arena, struct memory_file);
    char *own = lfs_strdup(image->arena, path);
    uint8_t *copy = lfs_alloc(image->arena, size + 1);
    if (!file || !own || !copy)
        return lfs_fail_nomem(err);
    if (size)
        memcpy(copy, bytes, size);
    *file = (struct memory_file){copy, size};
    image->token = lfs_hash(copy, size, lfs_hash(own, strlen(own), image->token));
    return lfs_map_put(&image->files, own, file) ? 0 : lfs_fail_nomem(err);
}

/* The manifest, by way of its bytes: the image's own copy of every part of it. */
static errint_t take_manifest(struct lfs_image *image, const struct lfs_image_spec *spec, struct lfs_error *err) {
    LFS_AUTO_BUF bytes = {0};
    struct lfs_version *v = &image->version;
    LFS_TRY(lfs_manifest_encode(spec->manifest, &bytes, err));
    LFS_TRY(lfs_manifest_decode(bytes.data, bytes.length, image->arena, "a manifest in memory", &v->manifest, err));
    v->number = v->manifest.message->version;
    lfs_manifest_name(spec->naming, v->number, v->file_name);
    const Lance__Table__Timestamp *t = v->manifest.message->timestamp;
    if (t)
        image->time = (struct timespec){t->seconds, t->nanos >= 0 && t->nanos < 1000000000 ? t->nanos : 0};
    image->token = lfs_hash(v->dir, strlen(v->dir), lfs_hash(bytes.data, bytes.length, 6));
    return 0;
}

/* A stored manifest may tell of its transaction by the file's name alone. No reader needs it: NULL where it cannot be read. */
static errint_t read_transaction(const struct lfs_image *image, LanceTransaction **out, struct lfs_error *err) {
    const struct lfs_version *v = &image->version;
    const char *name = v->manifest.message->transaction_file;
    char *directory = lfs_join(image->arena, v->dir, "_transactions"),
         *path = directory ? lfs_join(image->arena, directory, name) : NULL;
    if (!path)
        return lfs_fail_nomem(err);
    *out = NULL;
    if (!lfs_view_path_ok(name) || lfs_read_transaction(v->dataset, path, image->arena, out, NULL) < 0)
        *out = NULL;
    return 0;
}

static errint_t add_transaction(struct lfs_image *image, struct lfs_error *err) {
    LFS_AUTO_BUF bytes = {0};
    const char *name = image->version.manifest.message->transaction_file;
    LanceTransaction *t = image->version.manifest.transaction;
    if (!name || !*name)
        return 0;
    if (!t)
        LFS_TRY(read_transaction(image, &t, err));
    if (!t)
        return 0;
    LanceTransaction *flat = lfs_flatten_transaction(t, &image->view->aliases, image->arena);
    char *path = lfs_join(image->arena, "_transactions", name);
    if (!flat || !path)
        return lfs_fail_nomem(err);
    lfs_wire_pack(&flat->base, &bytes);
    LFS_TRY(lfs_buf_check(&bytes, err));
    return add_file(image, path, bytes.data, bytes.length, err);
}

static errint_t add_manifest(struct lfs_image *image, struct lfs_error *err) {
    LFS_AUTO_BUF bytes = {0};
    struct lfs_manifest flat;
    bool changed;
    char *path = lfs_join(image->arena, "_versions", image->version.file_name);
    if (!path)
        return lfs_fail_nomem(err);
    LFS_TRY(lfs_flatten_manifest(&image->version.manifest, &image->view->aliases, image->arena, &flat, &changed, err));
    LFS_TRY(lfs_manifest_encode(&flat, &bytes, err));
    return add_file(image, path, bytes.data, bytes.length, err);
}

static errint_t fill(struct lfs_image *image, const struct lfs_image_spec *spec, struct lfs_error *err) {
    image->version.dir = lfs_strdup(image->arena, spec->dir);
    image->other = spec->other ? lfs_strdup(image->arena, spec->other) : NULL;
    if (!image->version.dir || (spec->other && !image->other))
        return lfs_fail_nomem(err);
    LFS_TRY(take_manifest(image, spec, err));
    LFS_TRY(lfs_view_build(&image->version, &image->view, err));
    for (size_t i = 0; i < spec->n_files; i++)
        LFS_TRY(add_file(image, spec->files[i].path, spec->files[i].bytes, spec->files[i].size, err));
    LFS_TRY(add_transaction(image, err));
    return add_manifest(image, err);
}

errint_t lfs_image_new(struct lfs_views *views, const struct lfs_image_spec *spec, struct lfs_image **out,
                       struct lfs_error *err) {
    struct lfs_arena *arena = lfs_arena_new();
    struct lfs_image *image = arena ? LFS_NEW(arena, struct lfs_image) : NULL;
    *out = NULL;
    if (!image) {
        lfs_arena_free(arena);
        return lfs_fail_nomem(err);
    }
    *image = (struct lfs_image){.arena = arena, .views = views, .version = {.dataset = views->ds, .planned = true}};
    atomic_init(&image->users, 1);
    lfs_map_init(&image->files, arena);
    errint_t result = fill(image, spec, err);
    if (result < 0) {
        lfs_image_release(image);
        return result;
    }
    image->bytes = lfs_arena_size(arena) + image->view->bytes;
    *out = image;
    return 0;
}

/* --- what it holds --- */

/* The part of an image that a path begins with; *rest is what is below it. */
enum part { PART_ROOT, PART_FILES, PART_VERSIONS, PART_TRANSACTIONS, PART_NONE };
static const char *const plain_parts[] = {"_versions", "_transactions"};

static bool is_below(const char *path, const char *directory, const char **rest) {
    size_t length = strlen(directory);
    if (strncmp(path, directory, length) != 0 || (path[length] && path[length] != '/'))
        return false;
    *rest = path[length] ? path + length + 1 : path + length;
    return true;
}

static enum part part_of(const char *path, enum lfs_file_kind *kind, const char **rest) {
    *rest = path;
    if (!*path)
        return PART_ROOT;
    for (int i = 0; i < LFS_FILE_KINDS; i++)
        if (is_below(path, lfs_kind_directory[i], rest)) {
            *kind = (enum lfs_file_kind)i;
            return PART_FILES;
        }
    for (size_t i = 0; i < sizeof plain_parts / sizeof *plain_parts; i++)
        if (is_below(path, plain_parts[i], rest))
            return i == 0 ? PART_VERSIONS : PART_TRANSACTIONS;
    return PART_NONE;
}

errint_t lfs_image_find(const struct lfs_image *image, const char *path, struct lfs_arena *arena,
                        struct lfs_image_entry *out, struct lfs_error *err) {
    enum lfs_file_kind kind = LFS_FILE_DATA;
    const char *rest;
    const struct memory_file *file = lfs_map_get(&image->files, path);
    *out = (struct lfs_image_entry){.file = {.name = path}};
    if (file) {
        out->bytes = file->bytes;
        out->file.size = file->size;
        return 0;
    }
    enum part part = part_of(path, &kind, &rest);
    if (part != PART_NONE && !*rest) {
        out->file.is_dir = true;
        return 0;
    }
    if (part == PART_FILES)
        return lfs_view_find(image->views, image->view, image->other, kind, rest, arena, &out->file, err);
    return lfs_fail(err, LFS_E_NOT_FOUND, "there is no %s in it", path);
}

/* Names in a directory of files in memory. They are not looked for on the disk. */
static errint_t list_memory(const struct lfs_image *image, const char *path, struct lfs_arena *arena,
                            struct lfs_view_entry *out, size_t *n_out) {
    const char *rest;
    *n_out = 0;
    for (size_t i = 0; i < image->files.count; i++) {
        const struct lfs_map_entry *e = &image->files.entries[i];
        if (!is_below(e->key, path, &rest) || strchr(rest, '/'))
            continue;
        out[*n_out] = (struct lfs_view_entry){.name = lfs_strdup(arena, rest)};
        if (!out[(*n_out)++].name)
            return -ENOMEM;
    }
    return 0;
}

static errint_t list_root(struct lfs_arena *arena, struct lfs_view_entry **out, size_t *n_out, struct lfs_error *err) {
    static const char *const names[] = {"data", "_deletions", "_indices", "_transactions", "_versions"};
    *n_out = sizeof names / sizeof *names;
    *out = LFS_NEW_ARRAY(arena, struct lfs_view_entry, *n_out);
    for (size_t i = 0; *out && i < *n_out; i++)
        (*out)[i] = (struct lfs_view_entry){.name = names[i], .is_dir = true};
    return *out ? 0 : lfs_fail_nomem(err);
}

errint_t lfs_image_list(const struct lfs_image *image, const char *path, struct lfs_arena *arena,
                        struct lfs_view_entry **out, size_t *n_out, struct lfs_error *err) {
    enum lfs_file_kind kind = LFS_FILE_DATA;
    const char *rest;
    size_t n = 0;
    enum part part = part_of(path, &kind, &rest);
    if (part == PART_ROOT)
        return list_root(arena, out, n_out, err);
    struct lfs_view_entry *memory = LFS_NEW_ARRAY(arena, struct lfs_view_entry, image->files.count + 1);
    if (!memory || list_memory(image, path, arena, memory, &n) < 0)
        return lfs_fail_nomem(err);
    if (part == PART_FILES)
        return lfs_view_list(image->views, image->view, image->other, kind, rest, memory, n, arena, out, n_out, err);
    *out = memory;
    *n_out = n;
    return part != PART_NONE && !*rest ? 0 : lfs_fail(err, LFS_E_NOT_FOUND, "there is no directory %s in it", path);
}
