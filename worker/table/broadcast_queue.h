/* broadcast_queue: results that the searchers of a process found and no other host knows yet, and
 * what decides how deep a result has to be for that (broadcast.h, which is how it is used).
 *
 * Threads: each field says whose it is. Memory: none but the struct. */
#ifndef WORKER_TABLE_BROADCAST_QUEUE_H
#define WORKER_TABLE_BROADCAST_QUEUE_H

#include "proto/client/client.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
    SHARE_STEPS = 8, /* steps of the least depth to a ply */
    SHARE_DEPTH_FIRST = 3, /* the least depth at first */
};

struct share_queue {
    pthread_mutex_t lock;
    /* state, of who has the lock */
    atomic_uint count; /* any thread reads it */
    uint64_t namespace_id; /* the results' namespace: searchers of a process may have unlike jobs */
    struct tt_store list[CLIENT_SHARE_MAX];
    _Atomic uint64_t due_us; /* any thread reads it */
    uint64_t window_us, window_taken; /* since then, so many results came */
    uint8_t window_load; /* the highest load of a shard meanwhile */
    /* of any thread */
    atomic_uint least; /* results of at least so many steps are told */
};

void share_queue_init(struct share_queue *queue);
void share_queue_free(struct share_queue *queue);

#endif
