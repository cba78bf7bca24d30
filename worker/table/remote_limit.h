/* remote_limit: until when a search waits for the answers of shards. One that died would cost its
 * time-out, while the clock of a game runs.
 *
 * Threads: the searcher's own; any thread sets what `stop` points to. Memory: none. Pure. */
#ifndef WORKER_TABLE_REMOTE_LIMIT_H
#define WORKER_TABLE_REMOTE_LIMIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { REMOTE_LIMIT_STOP_US = 5000 }; /* how often one who waits sees whether it is to stop */

struct remote_limit {
    uint64_t until_us; /* 0: no limit of time */
    const atomic_bool *stop; /* NULL: nobody stops it; borrowed */
};

static inline bool remote_limit_is_over(const struct remote_limit *limit, uint64_t now_us)
{
    return (limit->until_us != 0 && now_us >= limit->until_us) ||
           (limit->stop != NULL && atomic_load_explicit(limit->stop, memory_order_relaxed));
}

/* When a searcher that waits until `until_us` is to wake by itself. */
static inline uint64_t remote_limit_wake_us(const struct remote_limit *limit, uint64_t until_us,
                                            uint64_t now_us)
{
    uint64_t stop_us = limit->stop != NULL ? now_us + REMOTE_LIMIT_STOP_US : until_us;
    uint64_t wake_us = stop_us < until_us ? stop_us : until_us;
    return limit->until_us != 0 && limit->until_us < wake_us ? limit->until_us : wake_us;
}

#endif
