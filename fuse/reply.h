/* SPDX-License-Identifier: Apache-2.0 */
/* What a read is answered with. As soon as the kernel has the reply, the reader may close the file: bytes that belong to
 * an open handle, and its locks, are not touched from then on. So they are copied into a buffer of the thread first. */
#ifndef LFS_FUSE_REPLY_H
#define LFS_FUSE_REPLY_H

#include <stddef.h>

#include "fuse/mount.h"

/* The thread's buffer, at least `size` long; its next call ends what was in it. NULL when memory is short. */
char *lfs_reply_buffer(size_t size);

/* The same, with `bytes` in it. */
const char *lfs_reply_copy(const void *bytes, size_t size);

/* Reply with `bytes`; NULL is ENOMEM. */
void lfs_reply_bytes(fuse_req_t req, const char *bytes, size_t size);

#endif
