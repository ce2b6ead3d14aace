/* SPDX-License-Identifier: Apache-2.0 */
/* Stable row ids and the versions of rows: a byte that says which, 3 bytes for the fragment's rows, then the sequence. */
#include "fuzz.h"

#include "format/rowids.h"

typedef errint_t decoder(const uint8_t *bytes, size_t length, uint64_t physical_rows, struct lfs_arena *arena,
                         const char *what, uint64_t **out, struct lfs_error *err);
typedef errint_t encoder(const uint64_t *entries, size_t n, struct lfs_buf *out, struct lfs_error *err);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    bool ids = fuzz_number(&data, &size, 1) & 1;
    uint64_t rows = fuzz_number(&data, &size, 3) & 0xfffff;
    decoder *decode = ids ? lfs_row_ids_decode : lfs_row_versions_decode;
    encoder *encode = ids ? lfs_row_ids_encode : lfs_row_versions_encode;
    LFS_AUTO_ARENA *arena = lfs_arena_new();
    uint64_t *entries = NULL, *again = NULL;
    struct lfs_error err = {0};
    errint_t result = decode(data, size, rows, arena, "the input", &entries, &err);
    if (result < 0) {
        FUZZ_REFUSAL(result, err);
        FUZZ_MUST(lfs_arena_size(arena) <= FUZZ_MEMORY(size) + 8 * rows);
        return 0;
    }
    FUZZ_MUST(entries);
    FUZZ_MUST(lfs_arena_size(arena) <= FUZZ_MEMORY(size) + 8 * rows);
    LFS_AUTO_BUF bytes = {0};
    FUZZ_MUST(encode(entries, rows, &bytes, &err) == 0);
    FUZZ_MUST(decode(bytes.data, bytes.length, rows, arena, "again", &again, &err) == 0);
    FUZZ_MUST(rows == 0 || memcmp(entries, again, rows * sizeof *entries) == 0);
    return 0;
}
