/* SPDX-License-Identifier: Apache-2.0 */
/* What must hold of a deletion vector that was accepted: rows of the fragment alone, and the same when written and read. */
#ifndef LFS_TESTS_FUZZ_DELETION_CHECK_H
#define LFS_TESTS_FUZZ_DELETION_CHECK_H

#include "format/deletion.h"
#include "fuzz.h"

typedef errint_t fuzz_decoder(const uint8_t *bytes, size_t length, uint64_t physical_rows, const char *what,
                              roaring_bitmap_t **out, struct lfs_error *err);

static inline void fuzz_deletion(fuzz_decoder *decode, const uint8_t *data, size_t size, uint64_t physical_rows) {
    roaring_bitmap_t *rows = NULL, *again = NULL;
    struct lfs_error err = {0};
    errint_t result = decode(data, size, physical_rows, "the input", &rows, &err);
    if (result < 0) {
        FUZZ_REFUSAL(result, err);
        FUZZ_MUST(!rows);
        return;
    }
    uint64_t n = roaring_bitmap_get_cardinality(rows), counted = 0;
    uint32_t before = 0;
    FUZZ_MUST(n == 0 || roaring_bitmap_maximum(rows) < physical_rows);
    roaring_uint32_iterator_t i;
    for (roaring_init_iterator(rows, &i); i.has_value && counted < 100000; roaring_advance_uint32_iterator(&i)) {
        FUZZ_MUST(!counted++ || i.current_value > before); /* ascending, each once */
        before = i.current_value;
    }
    FUZZ_MUST(counted == n || counted == 100000);
    LFS_AUTO_BUF bytes = {0};
    FUZZ_MUST(lfs_deletion_encode_bitmap(rows, &bytes, &err) == 0);
    FUZZ_MUST(lfs_deletion_decode_bitmap(bytes.data, bytes.length, physical_rows, "again", &again, &err) == 0);
    FUZZ_MUST(roaring_bitmap_equals(rows, again));
    roaring_bitmap_free(again);
    roaring_bitmap_free(rows);
}

#endif
