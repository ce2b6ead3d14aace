/* SPDX-License-Identifier: Apache-2.0 */
#include "fuse/handles.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "fuse/passthrough.h"
#include "fuse/staged.h"
#include "fuse/texts.h"
#include "table/image.h"

struct lfs_opens {
    pthread_mutex_t lock;
    struct lfs_opened *first;
    size_t count;
};

struct lfs_opens *lfs_opens_new(void) {
    struct lfs_opens *opens = calloc(1, sizeof *opens);
    if (opens)
        pthread_mutex_init(&opens->lock, NULL);
    return opens;
}

void lfs_opens_add(struct lfs_opens *opens, struct lfs_opened *opened) {
    pthread_mutex_lock(&opens->lock);
    opened->next = opens->first;
    opened->at = &opens->first;
    if (opened->next)
        opened->next->at = &opened->next;
    opens->first = opened;
    opens->count++;
    pthread_mutex_unlock(&opens->lock);
}

void lfs_opens_remove(struct lfs_opens *opens, struct lfs_opened *opened) {
    pthread_mutex_lock(&opens->lock);
    *opened->at = opened->next;
    if (opened->next)
        opened->next->at = opened->at;
    opens->count--;
    pthread_mutex_unlock(&opens->lock);
}

size_t lfs_opens_count(struct lfs_opens *opens) {
    pthread_mutex_lock(&opens->lock);
    size_t count = opens->count;
    pthread_mutex_unlock(&opens->lock);
    return count;
}

void lfs_opens_free(struct lfs_mount *m, struct lfs_opens *opens) {
    if (!opens)
        return;
    while (opens->first)
        opens->first->close(m, opens->first);
    pthread_mutex_destroy(&opens->lock);
    free(opens);
}

static void close_handle(struct lfs_mount *m, struct lfs_opened *opened) {
    lfs_handle_free(m, (struct lfs_handle *)opened);
}

struct lfs_handle *lfs_handle_new(struct lfs_mount *m, struct lfs_node *node) {
    struct lfs_handle *h = malloc(sizeof *h);
    if (!h)
        return NULL;
    *h = (struct lfs_handle){.opened.close = close_handle, .node = node, .fd = -1};
    lfs_nodes_hold(m->nodes, node);
    lfs_opens_add(m->opens, &h->opened);
    return h;
}

void lfs_handle_free(struct lfs_mount *m, struct lfs_handle *h) {
    lfs_opens_remove(m->opens, &h->opened);
    lfs_talk_free(h->control);
    lfs_staged_release(m, h);
    lfs_passthrough_release(m, h);
    if (h->fd >= 0)
        close(h->fd);
    lfs_rendered_release(h->rendered);
    lfs_text_release(h->text);
    lfs_image_release(h->image);
    lfs_nodes_release(m->nodes, h->node);
    free(h);
}
