/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/command.h"

#include <string.h>

#include "util/cleanup.h"

/* The next word of the line; quotes are taken off. NULL at the end (err untouched) or on a quote without its end. */
static char *next_word(const char **line, char **room, bool *bad) {
    const char *p = *line + strspn(*line, " \t\r");
    char *word = *room;
    bool quoted = false;
    size_t n = 0;
    *bad = false;
    if (!*p)
        return NULL;
    for (; *p && (quoted || !strchr(" \t\r", *p)); p++) {
        if (*p == '"')
            quoted = !quoted;
        else if (*p == '\\' && quoted && (p[1] == '"' || p[1] == '\\'))
            word[n++] = *++p;
        else
            word[n++] = *p;
    }
    word[n++] = '\0';
    *room += n;
    *line = p;
    *bad = quoted;
    return quoted ? NULL : word;
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

/* --- which verb takes which option --- */

enum { MERGING = LFS_VERB_MERGE | LFS_VERB_PICK | LFS_VERB_REBASE | LFS_VERB_REVERT | LFS_VERB_UNDO };
enum { COMMITTING = MERGING | LFS_VERB_REHOME };
enum { DECIDING = LFS_VERB_MERGE | LFS_VERB_PICK | LFS_VERB_REBASE | LFS_VERB_REVERT }; /* an undo goes back as a whole or not at all */

static const struct {
    const char *name;
    unsigned verbs;
} takers[] = {
    {"strategy=", DECIDING},
    {"rows=", DECIDING},
    {"columns=", DECIDING},
    {"schema=", DECIDING},
    {"config=", DECIDING},
    {"indexes=", DECIDING},
    {"only=", LFS_VERB_MERGE | LFS_VERB_PICK | LFS_VERB_REVERT},
    {"mode=", LFS_VERB_MERGE | LFS_VERB_PICK | LFS_VERB_REHOME}, /* the others bring nothing from elsewhere */
    {"fieldids=", LFS_VERB_MERGE | LFS_VERB_PICK | LFS_VERB_REBASE},
    {"ff=", LFS_VERB_MERGE},
    {"base=", LFS_VERB_MERGE},
    {"replay", LFS_VERB_MERGE},
    {"squash", LFS_VERB_PICK | LFS_VERB_REBASE},
    {"steps=", LFS_VERB_UNDO},
    {"from=", LFS_VERB_BRANCH | LFS_VERB_TAG},
    {"older-than=", LFS_VERB_GC},
    {"expect=", COMMITTING},
    {"message=", COMMITTING},
    {"property.", COMMITTING},
    {"dry-run", COMMITTING | LFS_VERB_GC},
};

static const struct {
    enum lfs_verb_kind verb;
    const char *file;
} files[] = {{LFS_VERB_MERGE, ".merge"},
             {LFS_VERB_PICK, ".cherry-pick"},
             {LFS_VERB_REBASE, ".rebase"},
             {LFS_VERB_REVERT, ".revert"},
             {LFS_VERB_UNDO, ".undo"},
             {LFS_VERB_REHOME, ".rehome"},
             {LFS_VERB_BRANCH, ".branch"},
             {LFS_VERB_TAG, ".tag"},
             {LFS_VERB_GC, ".gc"}};

static errint_t not_taken(const char *option, const char *file, unsigned verbs, struct lfs_error *err) {
    LFS_AUTO_BUF where = {0};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (verbs & files[i].verb)
            lfs_buf_printf(&where, "%s%s", where.length ? ", " : "", files[i].file);
    lfs_buf_add(&where, "", 1);
    LFS_TRY(lfs_buf_check(&where, err));
    return lfs_fail(err, LFS_E_USAGE, "%s is no option of %s%s%s", option, file, verbs ? ", but of " : "",
                    (const char *)where.data);
}

errint_t lfs_command_check(const struct lfs_command *c, enum lfs_verb_kind verb, const char *file,
                           struct lfs_error *err) {
    for (size_t i = 0; i < c->n_options; i++)
        for (size_t k = 0; k < sizeof takers / sizeof *takers; k++)
            if (strcmp(c->options[i], takers[k].name) == 0 && !(takers[k].verbs & verb))
                return not_taken(c->options[i], file, takers[k].verbs, err);
    return 0;
}

/* --- options --- */

static const char *const class_names[] = {"rows", "columns", "schema", "config", "indexes", NULL}; /* by bit */

const char *lfs_command_classes(unsigned classes, struct lfs_arena *arena) {
    char *text = lfs_alloc(arena, 64);
    for (int i = 0; text && class_names[i]; i++)
        if (classes & 1u << i)
            strcat(strcat(text, *text ? "," : ""), class_names[i]);
    return text;
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
    enum lfs_strategy *all[] = {&c->policy.rows, &c->policy.columns, &c->policy.schema, &c->policy.config,
                                &c->policy.indexes};
    int at = pick(value, names), one = pick(key, class_names);
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

static bool is_strategy(const char *key) { return strcmp(key, "strategy") == 0 || pick(key, class_names) >= 0; }

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

static errint_t set_only(const char *value, struct lfs_arena *arena, struct lfs_command *c, struct lfs_error *err) {
    unsigned classes = 0;
    for (const char *p = value;; p++) {
        size_t length = strcspn(p, ",");
        char *name = lfs_strndup(arena, p, length);
        int at = name ? pick(name, class_names) : -1;
        if (!name)
            return lfs_fail_nomem(err);
        if (at < 0)
            return lfs_fail(err, LFS_E_USAGE, "only=%s: there is no class \"%s\"; there are rows, columns, schema, config and indexes",
                            value, name);
        classes |= 1u << at;
        p += length;
        if (!*p)
            break;
    }
    c->policy.only = classes == LFS_CLASS_ALL ? 0 : classes;
    return 0;
}

static errint_t set_field_ids(const char *value, struct lfs_command *c, struct lfs_error *err) {
    static const char *const names[] = {"renumber", "strict", NULL};
    int at = pick(value, names);
    c->policy.strict_field_ids = at == 1;
    return at < 0 ? lfs_fail(err, LFS_E_USAGE, "fieldids=%s: fieldids can be renumber or strict", value) : 0;
}

static errint_t note_option(const char *name, struct lfs_command *c, struct lfs_error *err) {
    c->options[c->n_options] = name;
    return c->options[c->n_options++] ? 0 : lfs_fail_nomem(err);
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
    if (strcmp(key, "only") == 0)
        return set_only(value, arena, c, err);
    if (strcmp(key, "fieldids") == 0)
        return set_field_ids(value, c, err);
    if (strcmp(key, "base") == 0) {
        c->base = value;
        return *value ? 0 : lfs_fail(err, LFS_E_USAGE, "base= names no version");
    }
    return lfs_fail(err, LFS_E_USAGE, "%s=: there is no such option", key);
}

static errint_t take_word(char *word, struct lfs_arena *arena, struct lfs_command *c, struct lfs_error *err) {
    char *equals = strchr(word, '=');
    if (equals) {
        *equals = 0;
        LFS_TRY(set_option(word, equals + 1, arena, c, err));
        bool property = strncmp(word, "property.", 9) == 0;
        return note_option(property ? "property." : lfs_sprintf(arena, "%s=", word), c, err);
    }
    static const char *const switches[] = {"dry-run", "squash", "replay", NULL};
    bool *const set[] = {&c->dry_run, &c->squash, &c->replay};
    int at = pick(word, switches);
    if (at >= 0) {
        *set[at] = true;
        return note_option(word, c, err);
    }
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
    out->options = LFS_NEW_ARRAY(arena, const char *, strlen(line) / 2 + 2);
    char *room = lfs_alloc(arena, strlen(line) + 1); /* of all words: a blank becomes a word's end */
    if (!out->words || !out->options || !room)
        return lfs_fail_nomem(err);
    for (char *word; (word = next_word(&line, &room, &bad));) {
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
