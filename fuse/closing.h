/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Was a file closed, or did its writer die? A command's last line may lack its newline and then runs when its writer
 * closes the file; but a writer that was killed meant to write more. The kernel sends the same FLUSH for both: by the
 * closing process itself when it calls close(2), by a kernel thread when it exits (Linux 6.4 and later), so who closes
 * and how the writer ended must be looked at. And a shell that writes through a duplicate (`printf x >&7`) closes that
 * duplicate after each command: the file is closed with the last one.
 */
#ifndef LFS_FUSE_CLOSING_H
#define LFS_FUSE_CLOSING_H

#include <stdint.h>
#include <sys/types.h>

/* A process that wrote. */
struct lfs_writer {
    pid_t thread, process; /* 0 = none yet, or not to be seen from here */
    int watch;             /* a pidfd, which still knows of the process when it is gone; -1 where there is none */
};

/* Remember the process of thread `tid`; one that was remembered before is forgotten. */
void lfs_writer_remember(struct lfs_writer *writer, pid_t tid);
void lfs_writer_forget(struct lfs_writer *writer);

enum lfs_closing {
    LFS_CLOSING_MEANT,     /* the file was closed, by close(2) or by an exit of the writer's own will */
    LFS_CLOSING_DUPLICATE, /* a duplicate was closed, and the process still has another descriptor of the file */
    LFS_CLOSING_IN_DOUBT,  /* a signal ended the writer, or nobody can say */
};

/* `closer` is the thread that the FLUSH came from; `ino` is the file's inode number and `position` where the last
 * write ended: by these a duplicate is known. */
enum lfs_closing lfs_closing_of(pid_t closer, const struct lfs_writer *writer, uint64_t ino, off_t position);

#endif
