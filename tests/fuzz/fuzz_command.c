/* SPDX-License-Identifier: Apache-2.0 */
/* What is written to a control file: a byte that says in which pieces it comes, then the bytes. Commands are the same in
 * whatever pieces; each is parsed, and its words as refs. */
#include "fuzz.h"

#include "fuse/lines.h"
#include "util/limits.h"
#include "verbs/command.h"

struct heard {
    struct lfs_buf commands; /* each with its NUL */
    unsigned long n[LFS_LINE_NOMEM + 1];
};

static void hear(struct heard *heard, enum lfs_line_event event, const char *command) {
    FUZZ_MUST(event != LFS_LINE_NOMEM);
    heard->n[event] += event != LFS_LINE_MORE;
    if (event != LFS_LINE_COMMAND)
        return;
    size_t length = strlen(command);
    FUZZ_MUST(length > 0 && length <= LFS_COMMAND_BYTES_MAX && !strchr(command, '\n') && *command != '#');
    FUZZ_MUST(!strchr(" \t\r", command[0]) && !strchr(" \t\r", command[length - 1]));
    lfs_buf_add(&heard->commands, command, length + 1);
}

static void listen(struct heard *heard, const uint8_t *data, size_t size, size_t piece) {
    struct lfs_linebuf lines = {0};
    const char *command = NULL;
    while (size) {
        size_t n = piece < size ? piece : size, left = n;
        const char *at = (const char *)data;
        for (enum lfs_line_event event; (event = lfs_linebuf_next(&lines, &at, &left, &command)) != LFS_LINE_MORE;)
            hear(heard, event, command);
        FUZZ_MUST(left == 0);
        data += n;
        size -= n;
    }
    hear(heard, lfs_linebuf_end(&lines, &command), command);
    lfs_linebuf_free(&lines);
}

static void parse(const char *line) {
    static const enum lfs_verb_kind verbs[] = {LFS_VERB_MERGE,  LFS_VERB_PICK, LFS_VERB_REVERT,
                                               LFS_VERB_UNDO,   LFS_VERB_TAG,  LFS_VERB_BRANCH,
                                               LFS_VERB_REHOME, LFS_VERB_GC,   LFS_VERB_REBASE};
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    struct lfs_command command;
    struct lfs_error err = {0};
    errint_t result = lfs_command_parse(line, arena, &command, &err);
    FUZZ_MUST(lfs_arena_size(arena) <= FUZZ_MEMORY(strlen(line)));
    if (result < 0) {
        FUZZ_REFUSAL(result, err);
        return;
    }
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        err = (struct lfs_error){0};
        result = lfs_command_check(&command, verbs[i], ".file", &err);
        if (result < 0)
            FUZZ_REFUSAL(result, err);
    }
    for (size_t i = 0; i < command.n_words; i++) {
        struct lfs_ref_words ref;
        err = (struct lfs_error){0};
        result = lfs_ref_parse(command.words[i], arena, &ref, &err);
        if (result < 0)
            FUZZ_REFUSAL(result, err);
        else
            FUZZ_MUST(ref.literal && ref.stripped && strlen(ref.stripped) <= strlen(ref.literal));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    size_t piece = 1 + fuzz_number(&data, &size, 1);
    struct heard whole = {0}, pieces = {0};
    listen(&whole, data, size, size + 1);
    listen(&pieces, data, size, piece);
    FUZZ_MUST(whole.commands.length == pieces.commands.length && memcmp(whole.n, pieces.n, sizeof whole.n) == 0);
    FUZZ_MUST(!whole.commands.length || memcmp(whole.commands.data, pieces.commands.data, whole.commands.length) == 0);
    for (size_t at = 0; at < whole.commands.length; at += strlen((char *)whole.commands.data + at) + 1)
        parse((char *)whole.commands.data + at);
    lfs_buf_free(&whole.commands);
    lfs_buf_free(&pieces.commands);
    return 0;
}
