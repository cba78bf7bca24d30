#include "proto/client/client_core.h"

#include <string.h>

void queue_leak(struct client *c, unsigned shard)
{
    c->counters.leaks++;
    c->shards[shard].leaked = c->shards[shard].hello_owed = true;
    c->shards[shard].hello_request = 0;
}

/* The shard may come back with our session: the results are lost, but its entries must be released.
 */
void queue_abandon_stores(struct client *c, unsigned shard)
{
    struct queue *q = &c->shards[shard].queue;
    for (unsigned i = 0; i < q->store_count; i++) {
        const struct tt_store *store = &q->stores[i];
        if (q->release_count == c->options.queue) {
            queue_leak(c, shard);
            break;
        }
        q->releases[q->release_count++] =
            (struct tt_release){store->key, store->depth, store->slot};
    }
    c->counters.dropped += q->store_count;
    q->store_count = 0;
}

void queue_drop_releases(struct client *c, unsigned shard)
{
    c->counters.dropped += c->shards[shard].queue.release_count;
    c->shards[shard].queue.release_count = 0;
}

/* Between two flushes nothing is asked, and both kinds only leave sets: stores may go first. */
bool queue_flush(struct client *c, unsigned shard)
{
    const struct shard *s = &c->shards[shard];
    struct queue *q = &c->shards[shard].queue;
    while (q->store_count + q->release_count > 0) {
        bool is_store = q->store_count > 0;
        unsigned *count = is_store ? &q->store_count : &q->release_count;
        unsigned n = *count < s->batch_max ? *count : s->batch_max;
        struct proto_message m = {.type = is_store ? PROTO_STORE_HASH : PROTO_RELEASE};
        if (is_store) {
            m.store_hash.list = (struct proto_stores){n, q->stores};
        } else {
            m.release.list = (struct proto_releases){n, q->releases};
        }
        if (s->state != CLIENT_UP || !client_send(c, shard, &m)) {
            return false;
        }
        *count -= n;
        if (is_store) {
            c->counters.stores += n;
            memmove(q->stores, q->stores + n, *count * sizeof *q->stores);
        } else {
            c->counters.releases += n;
            memmove(q->releases, q->releases + n, *count * sizeof *q->releases);
        }
    }
    return true;
}

bool queue_room(struct client *c, unsigned shard, const unsigned *count)
{
    struct queue *q = &c->shards[shard].queue;
    if (q->store_count + q->release_count == 0) {
        q->oldest_us = c->now_us;
    }
    if (*count == c->options.queue) {
        (void)queue_flush(c, shard);
    }
    c->counters.dropped += *count == c->options.queue;
    return *count < c->options.queue;
}

/* A shard that is out may come back with our session and its in-flight entries: they are released
 * then. */
void client_release(struct client *c, unsigned where, const struct tt_release *release)
{
    if (where == CLIENT_NOWHERE) {
        return;
    }
    CHECK(where < c->options.shards);
    struct shard *s = &c->shards[where];
    struct queue *q = &s->queue;
    if (!s->known || s->state == CLIENT_LEFT) {
        return;
    }
    if (!queue_room(c, where, &q->release_count)) {
        queue_leak(c, where);
        return;
    }
    q->releases[q->release_count++] = *release;
    if (q->release_count == c->options.queue) {
        (void)queue_flush(c, where);
    }
}
