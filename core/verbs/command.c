/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/command.h"

#include <string.h>

#include "util/cleanup.h"

/* The next word of the line; quotes are taken off. NULL at the end (err untouched) or on a quote without its end. */
static char *next_word(const char **line, struct lfs_arena *arena, bool *bad) {
    const char *p = *line + strspn(*line, " \t\r");
    bool quoted = false;
    size_t n = 0;
    *bad = false;
    if (!*p)
        return NULL;
    char *word = lfs_alloc(arena, strlen(p) + 1);
    for (; word && *p && (quoted || !strchr(" \t\r", *p)); p++) {
        if (*p == '"')
            quoted = !quoted;
        else if (*p == '\\' && quoted && (p[1] == '"' || p[1] == '\\'))
            word[n++] = *++p;
        else
            word[n++] = *p;
    }
    *line = p;
    *bad = quoted || !word;
    return *bad ? NULL : word;
}

errint_t lfs_command_number(const char *text, const char *what, uint64_t *out, struct lfs_error *err) {
    uint64_t n = 0;
    size_t i = 0;
    for (; text[i] >= '0' && text[i] <= '9'; i++)
        if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, (uint64_t)(text[i] - '0'), &n))
            return lfs_fail(err, LFS_E_USAGE, "%s: %s is too large", what, text);
    if (i == 0 || text[i])
        return lfs_fail(err, LFS_E_USAGE, "%s: \"%s\" is not a version number", what, text);
    *out = n;
    return 0;
}

static int pick(const char *value, const char *const *names) {
    for (int i = 0; names[i]; i++)
        if (strcmp(value, names[i]) == 0)
            return i;
    return -1;
}

static errint_t set_choice(const char *key, const char *value, struct lfs_command *c, struct lfs_error *err) {
    static const char *const modes[] = {"graft", "link", "copy", NULL};
    static const char *const ffs[] = {"auto", "only", "never", NULL};
    bool is_mode = strcmp(key, "mode") == 0;
    int at = pick(value, is_mode ? modes : ffs);
    if (at < 0)
        return lfs_fail(err, LFS_E_USAGE, "%s=%s: %s can be %s", key, value, key,
                        is_mode ? "graft, link or copy" : "auto, only or never");
    if (is_mode) {
        c->has_mode = true;
        c->mode = (enum lfs_placing)at;
    } else {
        c->ff = (enum lfs_ff)at;
    }
    return 0;
}

/* strategy=: every class that was not named by itself; the order of the words does not matter. */
static errint_t set_strategy(const char *key, const char *value, struct lfs_command *c, struct lfs_error *err) {
    static const char *const names[] = {"fail", "source-wins", "dest-wins", NULL};
    static const char *const classes[] = {"rows", "columns", "schema", "config", "indexes", NULL};
    enum lfs_strategy *all[] = {&c->policy.rows, &c->policy.columns, &c->policy.schema, &c->policy.config,
                                &c->policy.indexes};
    int at = pick(value, names), one = pick(key, classes);
    if (at < 0)
        return lfs_fail(err, LFS_E_USAGE, "%s=%s: %s can be fail, source-wins or dest-wins", key, value, key);
    for (int i = 0; i < 5; i++) {
        if (one == i || (one < 0 && !(c->named_classes & 1u << i)))
            *all[i] = (enum lfs_strategy)at;
        if (one == i)
            c->named_classes |= 1u << i;
    }
    return 0;
}

static errint_t add_property(const char *key, const char *value, struct lfs_arena *arena, struct lfs_command *c,
                             struct lfs_error *err) {
    if (!*key || strncmp(key, "lancefs.", 8) == 0 || strncmp(key, "__lance", 7) == 0)
        return lfs_fail(err, LFS_E_USAGE, "property.%s: that name is not free", key);
    struct lfs_property *grown = LFS_NEW_ARRAY(arena, struct lfs_property, c->n_properties + 1);
    if (!grown)
        return lfs_fail_nomem(err);
    if (c->n_properties)
        memcpy(grown, c->properties, c->n_properties * sizeof *grown);
    grown[c->n_properties++] = (struct lfs_property){key, value};
    c->properties = grown;
    return 0;
}

/* "7d", "90m", "0": a number and its unit, in seconds. */
static errint_t set_age(const char *value, struct lfs_command *c, struct lfs_error *err) {
    static const struct {
        char unit;
        uint64_t seconds;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}, {'w', 604800}, {0, 0}};
    char digits[24];
    size_t length = strspn(value, "0123456789"), i = 0;
    while (units[i].unit && units[i].unit != value[length])
        i++;
    bool bare_zero = strcmp(value, "0") == 0;
    if (length == 0 || length >= sizeof digits || (!bare_zero && (!units[i].unit || value[length + 1])))
        return lfs_fail(err, LFS_E_USAGE, "older-than=%s: a number with its unit is wanted, as in 90s, 30m, 12h, 7d or 2w", value);
    memcpy(digits, value, length);
    digits[length] = 0;
    LFS_TRY(lfs_command_number(digits, "older-than", &c->older_than, err));
    c->has_older_than = true;
    if (__builtin_mul_overflow(c->older_than, units[i].seconds, &c->older_than) || c->older_than > INT32_MAX)
        return lfs_fail(err, LFS_E_USAGE, "older-than=%s is too long ago", value);
    return 0;
}

static bool is_strategy(const char *key) {
    static const char *const keys[] = {"strategy", "rows", "columns", "schema", "config", "indexes", NULL};
    return pick(key, keys) >= 0;
}

static bool is_later(const char *key) {
    static const char *const later[] = {"base", "only", "fieldids", NULL};
    return pick(key, later) >= 0;
}

static errint_t set_option(const char *key, const char *value, struct lfs_arena *arena, struct lfs_command *c,
                           struct lfs_error *err) {
    if (strcmp(key, "mode") == 0 || strcmp(key, "ff") == 0)
        return set_choice(key, value, c, err);
    if (is_strategy(key))
        return set_strategy(key, value, c, err);
    if (strcmp(key, "expect") == 0) {
        c->has_expect = true;
        return lfs_command_number(value, "expect", &c->expect, err);
    }
    if (strcmp(key, "steps") == 0) {
        LFS_TRY(lfs_command_number(value, "steps", &c->steps, err));
        return c->steps ? 0 : lfs_fail(err, LFS_E_USAGE, "steps=0 undoes nothing");
    }
    if (strcmp(key, "from") == 0) {
        LFS_TRY(lfs_command_number(value, "from", &c->from, err));
        return c->from ? 0 : lfs_fail(err, LFS_E_NOT_FOUND, "from=0: versions begin with 1");
    }
    if (strcmp(key, "older-than") == 0)
        return set_age(value, c, err);
    if (strcmp(key, "message") == 0) {
        c->message = value;
        return 0;
    }
    if (strncmp(key, "property.", 9) == 0)
        return add_property(key + 9, value, arena, c, err);
    if (is_later(key))
        return lfs_fail(err, LFS_E_UNSUPPORTED, "the option %s= is not there yet", key);
    return lfs_fail(err, LFS_E_USAGE, "%s=: there is no such option", key);
}

static errint_t take_word(char *word, struct lfs_arena *arena, struct lfs_command *c, struct lfs_error *err) {
    char *equals = strchr(word, '=');
    if (equals) {
        *equals = 0;
        return set_option(word, equals + 1, arena, c, err);
    }
    if (strcmp(word, "dry-run") == 0) {
        c->dry_run = true;
        return 0;
    }
    if (strcmp(word, "squash") == 0) {
        c->squash = true;
        return 0;
    }
    if (strcmp(word, "replay") == 0)
        return lfs_fail(err, LFS_E_UNSUPPORTED, "%s is not there yet", word);
    if (word[0] == '-')
        return lfs_fail(err, LFS_E_USAGE, "there is no option %s; a branch of that name is written after --", word);
    c->words[c->n_words++] = word;
    return 0;
}

errint_t lfs_command_parse(const char *line, struct lfs_arena *arena, struct lfs_command *out, struct lfs_error *err) {
    bool bad, only_refs = false;
    *out = (struct lfs_command){.steps = 1};
    if (line[strspn(line, " \t\r")] == '#')
        return lfs_fail(err, LFS_E_USAGE, "a line that begins with # is no command");
    out->words = LFS_NEW_ARRAY(arena, const char *, strlen(line) / 2 + 2);
    if (!out->words)
        return lfs_fail_nomem(err);
    for (char *word; (word = next_word(&line, arena, &bad));) {
        if (only_refs)
            out->words[out->n_words++] = word;
        else if (strcmp(word, "--") == 0)
            only_refs = true;
        else
            LFS_TRY(take_word(word, arena, out, err));
    }
    return bad ? lfs_fail(err, LFS_E_USAGE, "a double quote is not closed") : 0;
}

errint_t lfs_ref_parse(const char *word, struct lfs_arena *arena, struct lfs_ref_words *out, struct lfs_error *err) {
    const char *at = strrchr(word, '@');
    size_t length = at ? (size_t)(at - word) : strlen(word);
    *out = (struct lfs_ref_words){.literal = lfs_strndup(arena, word, length)};
    if (!out->literal)
        return lfs_fail_nomem(err);
    if (at) {
        LFS_TRY(lfs_command_number(at + 1, word, &out->version, err));
        if (out->version == 0)
            return lfs_fail(err, LFS_E_NOT_FOUND, "%s: versions begin with 1", word);
    }
    while (length > 1 && out->literal[length - 1] == '/') /* as a shell completes directories */
        ((char *)out->literal)[--length] = 0;
    if (length == 0)
        return lfs_fail(err, LFS_E_USAGE, "\"%s\" names no branch", word);
    out->stripped = strncmp(out->literal, "tree/", 5) == 0 && out->literal[5] ? out->literal + 5 : out->literal;
    return 0;
}
