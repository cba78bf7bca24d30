/* notices: completion notices for one searcher: results of nodes that others finished while it was
 * registered in them. They only save work: a full list drops what comes.
 *
 * Threads: put by any thread; take by the searcher; the table makes the list. Memory: none. put and
 * take hold a lock for some 20 to 200 ns. */
#ifndef WORKER_TABLE_NOTICES_H
#define WORKER_TABLE_NOTICES_H

#include "common/memory.h"
#include "common/tt/tt.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { NOTICES_MAX = 32 };

struct notices {
    _Alignas(MEMORY_LINE) atomic_uint until_poll; /* counted down by the searcher (env_port) */
    /* state, of the thread that has `lock`; `count` may be read without it */
    atomic_uint count;
    pthread_mutex_t lock;
    struct tt_store result[NOTICES_MAX];
};

/* Also makes the searcher poll at its next node. */
void notices_put(struct notices *notices, const struct tt_store *result);
bool notices_are_none(const struct notices *notices);
/* Copies up to `room` of them and drops the rest; returns how many it copied. */
unsigned notices_take(struct notices *notices, struct tt_store *out, unsigned room);

#endif
