/* SPDX-License-Identifier: Apache-2.0 */
/* Copies: what is told meanwhile, and that one which is stopped leaves no file. */
#include "common.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store/file.h"

enum { SIZE = 5 * (1 << 20) + 123 };

static char root[] = "/tmp/lancefs-copy-XXXXXX";
static int dir = -1, source = -1;

static int setup(void **state) {
    char *bytes = malloc(SIZE);
    (void)state;
    if (!bytes || !mkdtemp(root) || (dir = open(root, O_RDONLY | O_DIRECTORY)) < 0)
        return -1;
    for (size_t i = 0; i < SIZE; i++)
        bytes[i] = (char)(i * 2654435761u >> 13);
    source = openat(dir, "source", O_RDWR | O_CREAT, 0600);
    bool ok = source >= 0 && mkdirat(dir, "to", 0700) == 0 && write(source, bytes, SIZE) == SIZE;
    free(bytes);
    return ok ? 0 : -1;
}

static int teardown(void **state) {
    (void)state;
    unlinkat(dir, "to/copy", 0);
    unlinkat(dir, "to", AT_REMOVEDIR);
    unlinkat(dir, "source", 0);
    close(source);
    close(dir);
    return rmdir(root);
}

static size_t files_in(const char *name) {
    size_t n = 0;
    DIR *list = fdopendir(openat(dir, name, O_RDONLY | O_DIRECTORY));
    assert_non_null(list);
    for (struct dirent *e; (e = readdir(list));)
        n += e->d_name[0] != '.';
    closedir(list);
    return n;
}

static void test_cancelled(void **state) {
    struct lfs_error err = {0};
    atomic_bool cancel = true;
    struct lfs_progress progress = {.stage = NULL};
    (void)state;
    errint_t result = lfs_copy_new(source, dir, "to", "copy", false, &(struct lfs_copying){&cancel, &progress}, &err);
    if (result == 0) { /* blocks are shared here: there is nothing to stop */
        assert_int_equal(progress.bytes, SIZE);
        unlinkat(dir, "to/copy", 0);
        return;
    }
    assert_int_equal(result, -EINTR);
    assert_int_equal(err.code, LFS_E_INTERRUPTED);
    assert_int_equal(progress.bytes, 0);
    assert_int_equal(files_in("to"), 0);
}

static void test_told(void **state) {
    struct lfs_error err = {0};
    struct lfs_progress progress = {.stage = NULL};
    struct stat st;
    (void)state;
    assert_int_equal(lfs_copy_new(source, dir, "to", "copy", true, &(struct lfs_copying){NULL, &progress}, &err), 0);
    assert_int_equal(progress.bytes, SIZE);
    assert_int_equal(fstatat(dir, "to/copy", &st, 0), 0);
    assert_int_equal(st.st_size, SIZE);
    assert_int_equal(lfs_copy_new(source, dir, "to", "copy", true, &(struct lfs_copying){0}, &err), -EEXIST);
    assert_int_equal(files_in("to"), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cancelled),
        cmocka_unit_test(test_told),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
