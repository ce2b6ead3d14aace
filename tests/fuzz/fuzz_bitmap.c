/* SPDX-License-Identifier: Apache-2.0 */
/* A deletion file of the kind .bin: 4 bytes that say how many rows the fragment has (0: unknown), then the file. */
#include "deletion_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint64_t physical_rows = fuzz_number(&data, &size, 4);
    LFS_AUTO_FREE uint8_t *exact = malloc(size ? size : 1);
    FUZZ_MUST(exact);
    if (size)
        memcpy(exact, data, size); /* at another alignment */
    fuzz_deletion(lfs_deletion_decode_bitmap, exact, size, physical_rows ? physical_rows : UINT64_MAX);
    return 0;
}
