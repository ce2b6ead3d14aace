/* SPDX-License-Identifier: Apache-2.0 */
/* The generated messages of proto/ under the field's own words. */
#ifndef LFS_FORMAT_MESSAGES_H
#define LFS_FORMAT_MESSAGES_H

#include "file.pb-c.h"
#include "table.pb-c.h"
#include "transaction.pb-c.h"

typedef Lance__File__Field LanceField;
typedef Lance__Table__Manifest LanceManifest;
typedef Lance__Table__BasePath LanceBasePath;
typedef Lance__Table__DataFragment LanceFragment;
typedef Lance__Table__DataFile LanceDataFile;
typedef Lance__Table__DeletionFile LanceDeletionFile;
typedef Lance__Table__StringEntry LanceStringEntry;
typedef Lance__Table__BytesEntry LanceBytesEntry;
typedef Lance__Table__IndexSection LanceIndexSection;
typedef Lance__Table__IndexMetadata LanceIndex;
typedef Lance__Table__Transaction LanceTransaction;

#endif
