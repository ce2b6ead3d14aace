/* SPDX-License-Identifier: Apache-2.0 */
#include "table/transactions.h"

#include "format/wire.h"
#include "store/file.h"
#include "util/cleanup.h"
#include "util/limits.h"

errint_t lfs_read_transaction(struct lfs_dataset *ds, const char *path, struct lfs_arena *arena, LanceTransaction **out,
                              struct lfs_error *err) {
    LFS_AUTO_BUF bytes = {0};
    *out = NULL;
    LFS_TRY(lfs_read_file(lfs_dataset_root_fd(ds), path, LFS_TRANSACTION_BYTES_MAX, &bytes, NULL, err));
    return lfs_wire_unpack(&lance__table__transaction__descriptor, bytes.data, bytes.length, arena, path, out, err);
}
