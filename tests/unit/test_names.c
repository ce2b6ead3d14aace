/* SPDX-License-Identifier: Apache-2.0 */
/* The verdicts on branch and tag names are those of both stock engines, asked with each of these names. */
#include "common.h"

#include "format/names.h"
#include "util/cleanup.h"

static void manifest_names(void **state) {
    (void)state;
    static const struct {
        const char *name;
        uint64_t version; /* 0: not a numbered manifest */
        enum lfs_naming naming;
    } table[] = {
        {"18446744073709551614.manifest", 1, LFS_NAMING_V2}, /* 2^64 - 1 - 1 */
        {"18446744073709551515.manifest", 100, LFS_NAMING_V2},
        {"09223372036854775808.manifest", 0x7fffffffffffffff, LFS_NAMING_V2},
        {"1.manifest", 1, LFS_NAMING_V1},
        {"12.manifest", 12, LFS_NAMING_V1},
        {"9223372036854775807.manifest", 0x7fffffffffffffff, LFS_NAMING_V1},
        {"d9223372036854775809.manifest", 0, 0}, /* detached */
        {"09223372036854775807.manifest", 0, 0}, /* bit 63 */
        {"00000000000000000000.manifest", 0, 0},
        {"99999999999999999999.manifest", 0, 0}, /* over 2^64 */
        {"18446744073709551615.manifest", 0, 0}, /* version 0 */
        {"118446744073709551614.manifest", 0, 0},
        {"0.manifest", 0, 0},
        {"01.manifest", 0, 0},
        {"+1.manifest", 0, 0},
        {"-1.manifest", 0, 0},
        {" 1.manifest", 0, 0},
        {"1x.manifest", 0, 0},
        {"x.manifest", 0, 0},
        {".manifest", 0, 0},
        {"manifest", 0, 0},
        {"", 0, 0},
        {"1.manifest#1", 0, 0}, /* stock's temporary names */
        {"18446744073709551614.manifest#1", 0, 0},
        {".tmpAbCdEf", 0, 0},
        {"latest_version_hint.json", 0, 0},
        {"1.MANIFEST", 0, 0},
    };
    for (size_t i = 0; i < COUNT(table); i++) {
        uint64_t version = 0;
        enum lfs_naming naming = 0;
        bool found = lfs_manifest_name_parse(table[i].name, &version, &naming);
        if (found != (table[i].version != 0) || version != table[i].version || naming != table[i].naming)
            fail_msg("%s: %d, version %llu, naming %d", table[i].name, found, (unsigned long long)version, naming);
        if (!found)
            continue;
        char name[LFS_MANIFEST_NAME_SIZE];
        lfs_manifest_name(naming, version, name);
        assert_string_equal(name, table[i].name);
    }
}

/* `word` is in the refusal's sentence; NULL: the name is fine. */
struct verdict {
    const char *name, *word;
};

static void check_verdicts(errint_t (*check)(const char *, struct lfs_error *), const struct verdict *table, size_t n) {
    struct lfs_error err;
    for (size_t i = 0; i < n; i++) {
        err = (struct lfs_error){0};
        errint_t result = check(table[i].name, &err);
        if (!table[i].word && result)
            fail_msg("'%s' is refused: %s", table[i].name, err.message);
        if (table[i].word && result != -22)
            fail_msg("'%s' is taken", table[i].name);
        if (table[i].word && (err.code != LFS_E_USAGE || !strstr(err.message, table[i].word)))
            fail_msg("'%s' is refused with: %s", table[i].name, err.message);
    }
}

#define FIFTY_N "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
#define TWENTY_E "éééééééééééééééééééé"

static void branch_names(void **state) {
    (void)state;
    /* clang-format off */
    static const struct verdict table[] = {
        {"feature", NULL}, {"a/b-c_d.e", NULL}, {"é-branch", NULL}, {"ü", NULL}, {"UPPER/x", NULL},
        {"a.lock/b", NULL},
        {"a.json", NULL}, {".hidden", NULL}, {"a/.b", NULL}, {"-rf", NULL}, {"x.", NULL}, {"a./b", NULL}, {"0", NULL},
        {"main/x", NULL}, {"Main", NULL}, {"HEAD", NULL}, {"data", NULL}, {"x/data", NULL}, {"_lancefs", NULL},
        {"a/b/c/d/e/f", NULL}, {"中文", NULL}, {"x\xc2\xbc" /* one quarter */, NULL}, {"\xcd\x85" /* U+0345 */, NULL},
        {"\xf0\x9d\x94\x80" /* U+1D500 */, NULL}, {"\xe2\x85\xa0" /* roman one */, NULL},
        {"", "empty"}, {"main", "main"}, {"/a", "'/'"}, {"a/", "'/'"}, {"/", "'/'"}, {"a//b", "'//'"}, {"..", "'..'"},
        {"a..b", "'..'"}, {"a/../b", "'..'"}, {".", "'.'"}, {"a/.", "'.'"}, {"./a", "'.'"}, {"a/./b", "'.'"},
        {"x.lock", ".lock"}, {"a/b.lock", ".lock"}, {"a\\b", "'\\'"}, {"sp ace", "U+0020"}, {"x%2Fy", "'%'"},
        {"a:b", "':'"}, {"a@1", "'@'"}, {"a~", "'~'"}, {"a*", "'*'"}, {"tab\t", "U+0009"}, {"line\n", "U+000A"},
        {"del\x7f", "U+007F"}, {"\xc2\x80", "U+0080"}, {"\xc3\x97" /* multiplication sign */, "U+00D7"},
        {"\xe2\x80\x8b" /* zero width space */, "U+200B"}, {"\xe2\x80\xae" /* right to left */, "U+202E"},
        {"\xcc\x80" /* combining grave */, "U+0300"}, {"\xf0\x9f\x98\x80" /* a smile */, "U+1F600"},
        {"\xc3", "UTF-8"}, {"\x80", "UTF-8"}, {"\xc3(", "UTF-8"}, {"\xc1\x81" /* overlong */, "UTF-8"},
        {"\xe0\x80\xaf", "UTF-8"}, {"\xed\xa0\x80" /* surrogate */, "UTF-8"}, {"\xf4\x90\x80\x80", "UTF-8"},
        {"\xf8\x88\x80\x80\x80", "UTF-8"}, {"\xe4\xb8", "UTF-8"}, {"\xff", "UTF-8"},
        {FIFTY_N FIFTY_N FIFTY_N FIFTY_N, NULL},                             /* 200 bytes */
        {FIFTY_N FIFTY_N FIFTY_N FIFTY_N FIFTY_N, "too long"},               /* 250: 255 with .json, over our 240 */
        {TWENTY_E TWENTY_E, NULL},                                           /* 80 bytes, 240 when encoded */
        {TWENTY_E TWENTY_E TWENTY_E, "too long"},                            /* 120 bytes, 360 when encoded */
    };
    /* clang-format on */
    check_verdicts(lfs_branch_name_check, table, COUNT(table));
}

static void tag_names(void **state) {
    (void)state;
    /* clang-format off */
    static const struct verdict table[] = {
        {"v1", NULL}, {"main", NULL}, {"-a", NULL}, {"_a", NULL}, {"1.2.3", NULL}, {"m.json", NULL}, {"é", NULL},
        {"中x", NULL}, {"a\xc2\xbc", NULL}, {"", "empty"}, {"a/b", "'/'"}, {".a", "'.'"}, {"a.", "'.'"},
        {"a..b", "'..'"}, {"x.lock", ".lock"}, {"a b", "U+0020"}, {"a\\", "'\\'"}, {"\xff", "UTF-8"},
        {FIFTY_N FIFTY_N FIFTY_N FIFTY_N FIFTY_N FIFTY_N, "too long"},
    };
    /* clang-format on */
    check_verdicts(lfs_tag_name_check, table, COUNT(table));
}

/* In ASCII both engines take letters, digits and . - _ and, for branches, /. */
static void ascii_characters(void **state) {
    (void)state;
    for (int c = 1; c < 128; c++) {
        const char name[] = {'a', (char)c, 'z', 0};
        bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || strchr(".-_", c);
        assert_int_equal(lfs_branch_name_check(name, NULL) == 0, plain || c == '/');
        assert_int_equal(lfs_tag_name_check(name, NULL) == 0, plain);
    }
}

static void layout_names(void **state) {
    (void)state;
    static const char *const yes[] = {"data",     "_versions", "_transactions", "_deletions",
                                      "_indices", "_refs",     "tree",          "_lancefs"};
    static const char *const no[] = {"", "Data", "data2", "_version", "main", "x/data", "feature"};
    for (size_t i = 0; i < COUNT(yes); i++)
        assert_true(lfs_is_layout_name(yes[i]));
    for (size_t i = 0; i < COUNT(no); i++)
        assert_false(lfs_is_layout_name(no[i]));
}

static void percent_encoding(void **state) {
    (void)state;
    static const struct {
        const char *name, *encoded;
    } table[] = {
        {"é-branch", "%C3%A9-branch"}, /* the names of stock's own ref files */
        {"a/b-c_d.e", "a%2Fb-c_d.e"},
        {"UPPER/x", "UPPER%2Fx"},
        {"feature/child-é", "feature%2Fchild-%C3%A9"},
        {"中x", "%E4%B8%ADx"},
        {".hidden", ".hidden"},
        {"a b", "a b"},
        {"50%", "50%25"},
        {"\\{^}`]\">[~<#|*?", "%5C%7B%5E%7D%60%5D%22%3E%5B%7E%3C%23%7C%2A%3F"},
        {"!$&'()+,:;=@", "!$&'()+,:;=@"},
        {"\t\n\x7f\xff", "%09%0A%7F%FF"},
        {".", "%2E"},
        {"..", "%2E%2E"},
        {"...", "..."},
        {"", ""},
    };
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    for (size_t i = 0; i < COUNT(table); i++) {
        assert_string_equal(lfs_percent_encode(arena, table[i].name), table[i].encoded);
        assert_string_equal(lfs_percent_decode(arena, table[i].encoded), table[i].name);
    }
    assert_string_equal(lfs_percent_decode(arena, "a%2fb%c3%a9"), "a/bé");
    static const char *const bad[] = {"%", "a%", "a%2", "%zz", "%2g", "%-1", "a%00b", "%00", "%%41"};
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_null(lfs_percent_decode(arena, bad[i]));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(manifest_names),   cmocka_unit_test(branch_names), cmocka_unit_test(tag_names),
        cmocka_unit_test(ascii_characters), cmocka_unit_test(layout_names), cmocka_unit_test(percent_encoding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
