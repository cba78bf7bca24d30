#include "worker/table/notices.h"

#include <string.h>

void notices_put(struct notices *n, const struct tt_store *result)
{
    pthread_mutex_lock(&n->lock);
    unsigned count = atomic_load_explicit(&n->count, memory_order_relaxed);
    if (count < NOTICES_MAX) {
        n->result[count] = *result;
        atomic_store_explicit(&n->count, count + 1, memory_order_relaxed);
        /* A searcher that polls because of this sees the result. */
        atomic_store_explicit(&n->until_poll, 1, memory_order_release);
    }
    pthread_mutex_unlock(&n->lock);
}

bool notices_are_none(const struct notices *n)
{
    return atomic_load_explicit(&n->count, memory_order_relaxed) == 0;
}

unsigned notices_take(struct notices *n, struct tt_store *out, unsigned room)
{
    if (notices_are_none(n)) {
        return 0;
    }
    pthread_mutex_lock(&n->lock);
    unsigned count = atomic_load_explicit(&n->count, memory_order_relaxed);
    count = count < room ? count : room;
    memcpy(out, n->result, count * sizeof *out);
    atomic_store_explicit(&n->count, 0, memory_order_relaxed);
    pthread_mutex_unlock(&n->lock);
    return count;
}
