/* SPDX-License-Identifier: Apache-2.0 */
#include "fuse/reply.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_key_t buffer_key;
static pthread_once_t buffer_once = PTHREAD_ONCE_INIT;

struct thread_buffer {
    size_t size;
    char bytes[];
};

static void make_key(void) { pthread_key_create(&buffer_key, free); }

char *lfs_reply_buffer(size_t size) {
    pthread_once(&buffer_once, make_key);
    struct thread_buffer *buffer = pthread_getspecific(buffer_key);
    if (buffer && buffer->size >= size)
        return buffer->bytes;
    struct thread_buffer *grown = realloc(buffer, sizeof *grown + size);
    if (!grown)
        return NULL; /* the old one is still the thread's */
    grown->size = size;
    pthread_setspecific(buffer_key, grown);
    return grown->bytes;
}

const char *lfs_reply_copy(const void *bytes, size_t size) {
    char *buffer = lfs_reply_buffer(size);
    if (buffer && size)
        memcpy(buffer, bytes, size);
    return buffer;
}

void lfs_reply_bytes(fuse_req_t req, const char *bytes, size_t size) {
    if (bytes)
        fuse_reply_buf(req, bytes, size);
    else
        fuse_reply_err(req, ENOMEM);
}
