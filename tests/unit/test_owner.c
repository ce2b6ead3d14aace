/* SPDX-License-Identifier: Apache-2.0 */
/* What root makes in the directory of another user is his, whatever root's umask is. */
#include "common.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/file.h"
#include "util/cleanup.h"

enum { OWNER = 61001, GROUP = 61002 };

static void is_his(int dir, const char *name, mode_t mode) {
    struct stat st;
    assert_int_equal(fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW), 0);
    assert_int_equal(st.st_uid, OWNER);
    assert_int_equal(st.st_gid, GROUP);
    assert_int_equal(st.st_mode & 07777, mode);
}

static void files_and_directories_belong_as_beside(void **state) {
    char root[] = "/tmp/lancefs-owner-XXXXXX";
    struct lfs_buf bytes = {0};
    struct lfs_error err;
    (void)state;
    if (geteuid() != 0)
        skip(); /* only root makes things for others */
    assert_non_null(mkdtemp(root));
    LFS_AUTO_FD dir = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(dir >= 0 && fchown(dir, OWNER, GROUP) == 0 && fchmod(dir, 0750) == 0);
    mode_t before = umask(077);
    lfs_buf_puts(&bytes, "text");
    assert_ok(lfs_make_dirs(dir, "a/b", false, &err), err);
    assert_ok(lfs_write_new(dir, "a/b", "new", &bytes, false, &err), err);
    assert_ok(lfs_write_replace(dir, "", "hint", &bytes, false, &err), err);
    umask(before);
    is_his(dir, "a", 0750);
    is_his(dir, "a/b", 0750);
    is_his(dir, "a/b/new", 0640);
    is_his(dir, "hint", 0640);
    lfs_buf_free(&bytes);
    unlinkat(dir, "hint", 0);
    unlinkat(dir, "a/b/new", 0);
    unlinkat(dir, "a/b", AT_REMOVEDIR);
    unlinkat(dir, "a", AT_REMOVEDIR);
    rmdir(root);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(files_and_directories_belong_as_beside)};
    return cmocka_run_group_tests_name("owner", tests, NULL, NULL);
}
