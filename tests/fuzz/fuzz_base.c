/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Base paths and file names that lead astray. A byte for the kind of file and of base, then the base path's text, a NUL,
 * and the file's name; '@' in the text stands for the directory that all lies in. Whatever they are, a file that can be
 * opened lies in the data set or in the one directory that is allowed.
 */
#include "disk.h"

#include "table/dataset.h"
#include "table/location.h"

enum { KIND = 3, IS_ROOT = 4, ON_BRANCH = 8, NO_BASE = 16 };

static struct lfs_dataset *dataset;
static char allowed[PATH_MAX];

static void put_text(const char *path, const char *text) { disk_put(path, text, strlen(text)); }

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc, (void)argv;
    char path[PATH_MAX];
    disk_make();
    put_text("t.lance/_versions/none", "");
    put_text("t.lance/data/m.lance", "inside");
    put_text("t.lance/data/m/0.blob", "inside");
    put_text("t.lance/_deletions/0-1-7.arrow", "inside");
    put_text("t.lance/_indices/i/page", "inside");
    put_text("t.lance/tree/f/data/own.lance", "inside");
    put_text("t.lance/_lancefs/lines/0123/data/line.lance", "inside");
    put_text("allowed/data/a.lance", "inside");
    put_text("allowed/plain.lance", "inside");
    put_text("allowed-not/data/a.lance", "secret");
    put_text("secret/data/s.lance", "secret");
    put_text("secret/s.lance", "secret");
    put_text("t.lance2/data/m.lance", "secret");
    put_text("x/t.lance/data/s.lance", "secret");
    disk_link("t.lance/data/l.lance", "../../secret/s.lance");
    disk_link("t.lance/data/up", "../..");
    disk_link("t.lance/data/root", "/");
    disk_link("t.lance/data/self.lance", "self.lance");
    disk_link("t.lance/data/fd", "/proc/self/fd");
    disk_link("t.lance/tree/out", "../../secret");
    disk_link("allowed/data/l.lance", "../../secret/s.lance");
    disk_link("allowed/out", "../secret");
    disk_link("door", "secret");
    FUZZ_MUST(realpath(disk_path("allowed", path), allowed));
    const char *const bases[] = {allowed, NULL}, *const old[] = {"/moved", NULL}, *const new[] = {allowed, NULL};
    struct lfs_dataset_options options = {.bases_limited = true, .bases = bases, .map_old = old, .map_new = new};
    FUZZ_MUST(lfs_dataset_open(disk_path("t.lance", path), &options, &dataset, NULL) == 0);
    return 0;
}

/* '@' becomes the root. */
static char *expand(struct lfs_arena *arena, const char *text) {
    LFS_AUTO_BUF out = {0};
    for (const char *c = text; *c; c++)
        *c == '@' ? lfs_buf_puts(&out, disk_root) : lfs_buf_add(&out, c, 1);
    char *copy = lfs_strndup(arena, out.data ? (char *)out.data : "", out.length);
    FUZZ_MUST(copy && !out.failed);
    return copy;
}

static bool lies_in(const char *path, const char *directory) {
    size_t n = strlen(directory);
    return strncmp(path, directory, n) == 0 && (path[n] == '/' || !path[n]);
}

/* What the descriptor really is, whatever it was asked for by. */
static void must_be_inside(int fd) {
    char link[64], path[PATH_MAX], root[PATH_MAX], inside[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    FUZZ_MUST(n > 0);
    path[n] = '\0';
    FUZZ_MUST(realpath(disk_path("t.lance", root), inside));
    FUZZ_MUST(lies_in(path, inside) || lies_in(path, allowed));
    close(fd);
}

static void open_all(const struct lfs_location *location) {
    struct lfs_error err = {0};
    struct stat st;
    int fd = lfs_location_open(dataset, location, &err);
    if (fd >= 0) {
        FUZZ_MUST(fstat(fd, &st) == 0 && S_ISREG(st.st_mode));
        must_be_inside(fd);
    } else {
        FUZZ_REFUSAL(fd, err);
    }
    err = (struct lfs_error){0};
    fd = lfs_location_open_dir(dataset, location, &err);
    if (fd >= 0)
        must_be_inside(fd);
    else
        FUZZ_REFUSAL(fd, err);
    err = (struct lfs_error){0};
    errint_t result = lfs_location_stat(dataset, location, &st, &err);
    if (result < 0)
        FUZZ_REFUSAL(result, err);
}

static void places(const char *text, struct lfs_arena *arena) {
    const char **list;
    size_t n = 0;
    struct lfs_error err = {0};
    errint_t result = lfs_base_places(dataset, text, arena, &list, &n, &err);
    if (result < 0)
        FUZZ_REFUSAL(result, err);
    for (size_t i = 0; i < n; i++)
        FUZZ_MUST(list[i][0] != '/' && strncmp(list[i], "..", 3) != 0 && !strstr(list[i], "/../"));
    char *path = lfs_base_path(text, arena);
    FUZZ_MUST(!path || (*path == '/' && !strstr(path, "/../") && !strstr(path, "//")));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint64_t flags = fuzz_number(&data, &size, 1);
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    char *both = lfs_alloc(arena, size + 2); /* two strings, the second perhaps empty */
    FUZZ_MUST(both);
    if (size)
        memcpy(both, data, size);
    const char *name = both + strlen(both) + 1;
    char *text = expand(arena, both);
    LanceManifest message = LANCE__TABLE__MANIFEST__INIT;
    LanceBasePath base = LANCE__TABLE__BASE_PATH__INIT, *list[] = {&base};
    base.has_id = base.has_is_dataset_root = true;
    base.id = 1;
    base.is_dataset_root = flags & IS_ROOT;
    base.path = text;
    message.n_base_paths = 1;
    message.base_paths = list;
    struct lfs_version version = {
        .dataset = dataset, .dir = flags & ON_BRANCH ? "tree/f" : "", .number = 1, .manifest.message = &message};
    struct lfs_location location;
    struct lfs_error err = {0};
    errint_t result = lfs_locate(&version, (enum lfs_file_kind)(flags & KIND) % LFS_FILE_KINDS,
                                 flags & NO_BASE ? LFS_NO_BASE : 1, name, arena, &location, &err);
    if (result < 0) {
        FUZZ_REFUSAL(result, err);
    } else {
        FUZZ_MUST(location.inside == (location.directory[0] != '/'));
        open_all(&location);
    }
    places(text, arena);
    int fd = lfs_dataset_open_beneath(dataset, name, O_PATH);
    if (fd >= 0)
        must_be_inside(fd);
    return 0;
}
