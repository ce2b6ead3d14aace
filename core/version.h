/* SPDX-License-Identifier: Apache-2.0 */
/* What this program calls itself in manifests, in --version and in packages. */
#ifndef LFS_VERSION_H
#define LFS_VERSION_H

#define LFS_VERSION "0.1.0"

/* The releases of LanceDB whose engine the tests write and read data sets with. */
#define LFS_TESTED_WITH "LanceDB 0.37.1, 0.39.0"

#endif
