/* SPDX-License-Identifier: Apache-2.0 */
#include "format/names.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "format/alnum.h"
#include "util/cleanup.h"
#include "util/limits.h"

static const char manifest_suffix[] = ".manifest";

enum { V2_DIGITS = 20, REF_SUFFIX_LENGTH = 5 /* .json */ };
#define DETACHED_BIT (1ull << 63)

/* `length` decimal digits, no others, as a number. */
static bool parse_decimal(const char *digits, size_t length, uint64_t *out) {
    uint64_t value = 0;
    for (size_t i = 0; i < length; i++) {
        if (digits[i] < '0' || digits[i] > '9' || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(digits[i] - '0'), &value))
            return false;
    }
    *out = value;
    return length > 0;
}

/*
 * Only names that lfs_manifest_name makes count, so that a version leads back to its file. Numbers with bit 63 belong
 * to detached versions, whose names begin with 'd' (lance-format section 1.1); versions begin at 1.
 */
bool lfs_manifest_name_parse(const char *name, uint64_t *version, enum lfs_naming *naming) {
    size_t length = strlen(name), suffix = sizeof manifest_suffix - 1;
    uint64_t number;
    if (length <= suffix || strcmp(name + length - suffix, manifest_suffix))
        return false;
    size_t digits = length - suffix;
    if (!parse_decimal(name, digits, &number) || (digits != V2_DIGITS && name[0] == '0'))
        return false;
    uint64_t found = digits == V2_DIGITS ? UINT64_MAX - number : number;
    if (found == 0 || (found & DETACHED_BIT))
        return false;
    *naming = digits == V2_DIGITS ? LFS_NAMING_V2 : LFS_NAMING_V1;
    *version = found;
    return true;
}

void lfs_manifest_name(enum lfs_naming naming, uint64_t version, char name[LFS_MANIFEST_NAME_SIZE]) {
    if (naming == LFS_NAMING_V1)
        snprintf(name, LFS_MANIFEST_NAME_SIZE, "%" PRIu64 "%s", version, manifest_suffix);
    else
        snprintf(name, LFS_MANIFEST_NAME_SIZE, "%0*" PRIu64 "%s", V2_DIGITS, UINT64_MAX - version, manifest_suffix);
}

/* The length of the UTF-8 sequence at `p`, and its code point; 0 when it is none (overlong forms, surrogates, above
 * U+10FFFF, cut short by the NUL). */
static size_t decode_utf8(const unsigned char *p, uint32_t *code) {
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t length = p[0] < 0x80 ? 1 : p[0] >> 5 == 6 ? 2 : p[0] >> 4 == 14 ? 3 : p[0] >> 3 == 30 ? 4 : 0;
    if (length < 2) {
        *code = p[0];
        return length;
    }
    uint32_t value = p[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if (p[i] >> 6 != 2)
            return 0;
        value = value << 6 | (p[i] & 0x3f);
    }
    if (value < least[length] || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff))
        return 0;
    *code = value;
    return length;
}

static bool is_ascii_alnum(uint32_t c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

static bool is_alnum(uint32_t code) {
    if (code < 0x80)
        return is_ascii_alnum(code);
    size_t low = 0, high = sizeof lfs_alnum / sizeof lfs_alnum[0];
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (code > lfs_alnum[middle].last)
            low = middle + 1;
        else
            high = middle;
    }
    return low < sizeof lfs_alnum / sizeof lfs_alnum[0] && code >= lfs_alnum[low].first;
}

static bool ends_with(const char *text, const char *suffix) {
    size_t length = strlen(text), n = strlen(suffix);
    return length >= n && strcmp(text + length - n, suffix) == 0;
}

/* Letters, digits and `others`; `kind` is "branch" or "tag". No name is quoted before it has passed here. */
static errint_t check_characters(const char *kind, const char *name, const char *others, struct lfs_error *err) {
    uint32_t code = 0;
    for (size_t i = 0, length; name[i]; i += length) {
        length = decode_utf8((const unsigned char *)name + i, &code);
        if (length == 0)
            return lfs_fail(err, LFS_E_USAGE, "a %s name must be valid UTF-8", kind);
        if (is_alnum(code) || (code < 0x80 && strchr(others, (int)code)))
            continue;
        if (code > ' ' && code < 0x7f)
            return lfs_fail(err, LFS_E_USAGE, "'%c' cannot stand in a %s name: letters, digits and . - _ can",
                            (int)code, kind);
        return lfs_fail(err, LFS_E_USAGE, "U+%04" PRIX32 " cannot stand in a %s name: letters, digits and . - _ can",
                        code, kind);
    }
    return 0;
}

static size_t encoded_length(const char *name);

/* Stock refuses what its file system refuses, which it finds out half-way. */
static errint_t check_length(const char *kind, const char *name, struct lfs_error *err) {
    if (!*name)
        return lfs_fail(err, LFS_E_USAGE, "a %s name cannot be empty", kind);
    if (strlen(name) > LFS_BRANCH_NAME_MAX || encoded_length(name) + REF_SUFFIX_LENGTH > NAME_MAX)
        return lfs_fail(err, LFS_E_USAGE, "the %s name is too long: its file's name would not fit", kind);
    return 0;
}

static bool has_dot_segment(const char *name) {
    for (const char *segment = name;; segment++) {
        size_t length = strcspn(segment, "/");
        if (length == 1 && *segment == '.')
            return true;
        segment += length;
        if (!*segment)
            return false;
    }
}

errint_t lfs_branch_name_check(const char *name, struct lfs_error *err) {
    LFS_TRY(check_length("branch", name, err));
    LFS_TRY(check_characters("branch", name, "./-_", err));
    if (strcmp(name, "main") == 0)
        return lfs_fail(err, LFS_E_USAGE, "'main' is the name of the main branch");
    if (name[0] == '/' || ends_with(name, "/"))
        return lfs_fail(err, LFS_E_USAGE, "branch name '%s' begins or ends with '/'", name);
    if (strstr(name, "//"))
        return lfs_fail(err, LFS_E_USAGE, "branch name '%s' holds '//'", name);
    if (strstr(name, "..") || has_dot_segment(name))
        return lfs_fail(err, LFS_E_USAGE, "branch name '%s' holds '..' or the segment '.'", name);
    if (ends_with(name, ".lock"))
        return lfs_fail(err, LFS_E_USAGE, "branch name '%s' ends with '.lock'", name);
    return 0;
}

bool lfs_is_layout_name(const char *segment) {
    static const char *const names[] = {"data",     "_versions", "_transactions", "_deletions",
                                        "_indices", "_refs",     "tree",          "_lancefs"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(segment, names[i]) == 0)
            return true;
    return false;
}

bool lfs_is_data_stem(const char *name) {
    return strlen(name) == 50 && strspn(name, "01") >= 24 && strspn(name, "0123456789abcdef") == 50;
}

bool lfs_is_uuid(const char *name) { return strlen(name) == 36 && strspn(name, "0123456789abcdef-") == 36; }

errint_t lfs_tag_name_check(const char *name, struct lfs_error *err) {
    LFS_TRY(check_length("tag", name, err));
    LFS_TRY(check_characters("tag", name, ".-_", err));
    if (name[0] == '.' || ends_with(name, "."))
        return lfs_fail(err, LFS_E_USAGE, "tag name '%s' begins or ends with '.'", name);
    if (strstr(name, ".."))
        return lfs_fail(err, LFS_E_USAGE, "tag name '%s' holds '..'", name);
    if (ends_with(name, ".lock"))
        return lfs_fail(err, LFS_E_USAGE, "tag name '%s' ends with '.lock'", name);
    return 0;
}

/* What object stores' part encoding escapes: controls, everything above ASCII, and these. */
static bool is_reserved(unsigned char c) { return c < 0x20 || c >= 0x7f || strchr("/\\{^}%`]\">[~<#|*?", c) != NULL; }

static size_t encoded_length(const char *name) {
    size_t length = 0;
    for (const unsigned char *p = (const unsigned char *)name; *p; p++)
        length += is_reserved(*p) ? 3 : 1;
    return length;
}

char *lfs_percent_encode(struct lfs_arena *arena, const char *name) {
    static const char hex[] = "0123456789ABCDEF";
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) /* whole parts that a path would take for its own */
        return lfs_strdup(arena, name[1] ? "%2E%2E" : "%2E");
    char *out = lfs_alloc(arena, encoded_length(name) + 1), *to = out;
    if (!out)
        return NULL;
    for (const unsigned char *p = (const unsigned char *)name; *p; p++) {
        if (!is_reserved(*p)) {
            *to++ = (char)*p;
            continue;
        }
        *to++ = '%';
        *to++ = hex[*p >> 4];
        *to++ = hex[*p & 15];
    }
    return out; /* an arena's memory is zeroed: the NUL stands */
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

char *lfs_percent_decode(struct lfs_arena *arena, const char *text) {
    char *out = lfs_alloc(arena, strlen(text) + 1), *to = out;
    if (!out)
        return NULL;
    for (const char *p = text; *p; p++) {
        if (*p != '%') {
            *to++ = *p;
            continue;
        }
        int high = hex_digit(p[1]), low = high < 0 ? -1 : hex_digit(p[2]);
        if (low < 0 || (high == 0 && low == 0))
            return NULL;
        *to++ = (char)(high << 4 | low);
        p += 2;
    }
    return out;
}
