/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds on everything that comes from a file or a user, in one place. What is over them is refused, never cut. */
#ifndef LFS_UTIL_LIMITS_H
#define LFS_UTIL_LIMITS_H

#define LFS_MANIFEST_BYTES_MAX (1u << 30)      /* a manifest file; 100,000 fragments take about 15 MB */
#define LFS_TRANSACTION_BYTES_MAX (1u << 30)   /* a .txn file */
#define LFS_REF_BYTES_MAX (1u << 20)           /* a branch or tag file */
#define LFS_DELETION_BYTES_MAX (1u << 30)      /* a deletion file; 2^32 rows as a bitmap are 512 MiB */
#define LFS_DELETION_ROWS_MAX (1u << 31)       /* rows that one deletion file may name */
#define LFS_FRAGMENTS_MAX 10000000u            /* fragments in one manifest */
#define LFS_BASE_PATHS_MAX 65536u              /* base paths in one manifest */
#define LFS_WIRE_ELEMENTS_MAX 40000000u        /* sub-messages and strings in one message */
#define LFS_BRANCH_NAME_MAX 240u               /* bytes; the ref file's name must fit in NAME_MAX */
#define LFS_BRANCH_DEPTH_MAX 256u              /* forks from main to a branch */
#define LFS_COMMAND_BYTES_MAX 65536u           /* a line written to a control file */
#define LFS_COMMIT_TRIES_MAX 20u               /* races lost before EAGAIN; stock Lance's own number */
#define LFS_FLUSH_EACH_MAX 16u                 /* files flushed one by one; more are one flush of the file system */
#define LFS_FLUSH_TOGETHER_MAX 32u             /* those, and the directories and the transaction beside them */
#define LFS_SERIES_STEPS_MAX 1000u          /* versions that one command makes; all are planned, in memory, first */
#define LFS_ORIGIN_STEPS_MAX 1000000u          /* commits that columns are followed through; a circle of merges is no lineage */
#define LFS_CONFLICTS_NAMED_MAX 1000u          /* conflicts that an answer spells out */
#define LFS_CONFLICTS_KEPT_MAX 10000u          /* conflicts of one command that wait for a choice, chosen ones too */
#define LFS_CONFLICTS_BRANCHES_MAX 64u         /* branches on which conflicts wait; the oldest are forgotten */
#define LFS_CONFLICT_TEXT_MAX 4096u            /* bytes of a value that a conflict shows */

#endif
