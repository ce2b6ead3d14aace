/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/common.h"

#include "verbs/command.h"

static struct lfs_arena *arena;

static void parse(const char *line, struct lfs_command *out) {
    struct lfs_error err = {0};
    assert_ok(lfs_command_parse(line, arena, out, &err), err);
}

static void words_and_switches(void **state) {
    struct lfs_command c;
    (void)state;
    parse("a tree/b  replay base=main@2 \"c d\" dry-run -- squash", &c);
    assert_int_equal(c.n_words, 4);
    assert_string_equal(c.words[2], "c d");
    assert_string_equal(c.words[3], "squash");
    assert_true(c.replay && c.dry_run && !c.squash);
    assert_string_equal(c.base, "main@2");
    assert_int_equal(c.n_options, 3);
}

static void classes(void **state) {
    static const struct {
        const char *line;
        unsigned only;
        const char *text;
    } rules[] = {
        {"a only=rows", LFS_CLASS_ROWS, "rows"},
        {"a only=config,rows", LFS_CLASS_ROWS | LFS_CLASS_CONFIG, "rows,config"},
        {"a only=rows,rows", LFS_CLASS_ROWS, "rows"},
        {"a only=indexes,schema,columns", LFS_CLASS_COLUMNS | LFS_CLASS_SCHEMA | LFS_CLASS_INDEXES, "columns,schema,indexes"},
        {"a only=rows,columns,schema,config,indexes", 0, ""},
        {"a", 0, ""},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rules); i++) {
        struct lfs_command c;
        parse(rules[i].line, &c);
        assert_int_equal(c.policy.only, rules[i].only);
        assert_string_equal(lfs_command_classes(c.policy.only, arena), rules[i].text);
    }
}

static void words_that_are_off(void **state) {
    static const struct {
        const char *line, *says;
    } rules[] = {
        {"a only=", "there is no class \"\""},
        {"a only=rows,", "there is no class \"\""},
        {"a only=rows,colums,config", "there is no class \"colums\""},
        {"a fieldids=", "renumber or strict"},
        {"a base=", "base="},
        {"a steps=0", "steps=0"},
        {"a replay=1", "replay=: there is no such option"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rules); i++) {
        struct lfs_command c;
        struct lfs_error err;
        assert_fails(lfs_command_parse(rules[i].line, arena, &c, &err), err, LFS_E_USAGE, rules[i].says);
    }
}

static void each_verb_takes_its_own(void **state) {
    struct lfs_command c;
    struct lfs_error err = {0};
    (void)state;
    parse("a strategy=dest-wins rows=fail only=rows expect=3 message=x property.k=v dry-run", &c);
    assert_ok(lfs_command_check(&c, LFS_VERB_MERGE, ".merge", &err), err);
    assert_ok(lfs_command_check(&c, LFS_VERB_PICK, ".cherry-pick", &err), err);
    assert_ok(lfs_command_check(&c, LFS_VERB_REVERT, ".revert", &err), err);
    assert_fails(lfs_command_check(&c, LFS_VERB_UNDO, ".undo", &err), err, LFS_E_USAGE,
                 "strategy= is no option of .undo, but of .merge, .cherry-pick, .rebase, .revert");
    parse("a strategy=dest-wins squash expect=3 message=x dry-run", &c);
    assert_ok(lfs_command_check(&c, LFS_VERB_REBASE, ".rebase", &err), err);
    parse("a only=rows", &c);
    assert_fails(lfs_command_check(&c, LFS_VERB_REBASE, ".rebase", &err), err, LFS_E_USAGE, "only= is no option of .rebase");
    parse("a older-than=7d", &c);
    assert_fails(lfs_command_check(&c, LFS_VERB_MERGE, ".merge", &err), err, LFS_E_USAGE, "older-than= is no option of .merge");
    parse("a replay", &c);
    assert_fails(lfs_command_check(&c, LFS_VERB_PICK, ".cherry-pick", &err), err, LFS_E_USAGE, "but of .merge");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_and_switches),
        cmocka_unit_test(classes),
        cmocka_unit_test(words_that_are_off),
        cmocka_unit_test(each_verb_takes_its_own),
    };
    arena = lfs_arena_new();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    lfs_arena_free(arena);
    return failed;
}
