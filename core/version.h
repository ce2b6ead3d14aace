/* SPDX-License-Identifier: Apache-2.0 */
/* What this program calls itself in manifests, in --version and in packages. */
#ifndef LFS_VERSION_H
#define LFS_VERSION_H

#define LFS_VERSION "0.1.0"

#endif
