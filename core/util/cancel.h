/* SPDX-License-Identifier: Apache-2.0 */
/* Who waits for a command may give it up (Ctrl-C, an unmount): a flag that long work looks at between its steps. */
#ifndef LFS_UTIL_CANCEL_H
#define LFS_UTIL_CANCEL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

static inline bool lfs_is_cancelled(const atomic_bool *cancel) { return cancel && atomic_load(cancel); } /* NULL: never */

#endif
