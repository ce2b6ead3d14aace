/* SPDX-License-Identifier: Apache-2.0 */
/* A transaction file. What was read is written and read again as the same; flattened it is flat. */
#include "fuzz.h"

#include "format/messages.h"
#include "format/wire.h"
#include "table/view.h"

static void written_and_read(const LanceTransaction *transaction, struct lfs_arena *arena) {
    LFS_AUTO_BUF bytes = {0}, twice = {0};
    LanceTransaction *again;
    struct lfs_error err;
    lfs_wire_pack(&transaction->base, &bytes);
    FUZZ_MUST(lfs_buf_check(&bytes, NULL) == 0);
    FUZZ_MUST(lfs_wire_unpack(&lance__table__transaction__descriptor, bytes.data, bytes.length, arena, "again", &again,
                              &err) == 0);
    lfs_wire_pack(&again->base, &twice);
    FUZZ_MUST(bytes.length == twice.length && (!bytes.length || memcmp(bytes.data, twice.data, bytes.length) == 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    struct lfs_aliases aliases = {0};
    LanceTransaction *transaction, *copy;
    struct lfs_error err = {0};
    errint_t result =
        lfs_wire_unpack(&lance__table__transaction__descriptor, data, size, arena, "the input", &transaction, &err);
    FUZZ_MUST(lfs_arena_size(arena) <= FUZZ_MEMORY(size));
    if (result < 0) {
        FUZZ_REFUSAL(result, err);
        return 0;
    }
    written_and_read(transaction, arena);
    FUZZ_MUST(lfs_wire_copy(&transaction->base, arena, &copy, &err) == 0);
    lfs_transaction_property(copy, "lancefs.key");
    LanceTransaction *flat = lfs_flatten_transaction(copy, &aliases, arena);
    FUZZ_MUST(flat);
    FUZZ_MUST(lfs_flatten_transaction(flat, &aliases, arena) == flat);
    written_and_read(flat, arena);
    return 0;
}
