#include "proto/client/client_state.h"

#include <string.h>

bool client_send(struct client *c, unsigned shard, const struct proto_message *message)
{
    size_t length = proto_encode(message, c->scratch, c->scratch_size);
    CHECK(length > 0);
    bool is_sent = c->send(c->self, shard, c->scratch, length);
    c->counters.messages_sent += is_sent;
    c->counters.bytes_sent += is_sent ? length : 0;
    if (is_sent && message->type == PROTO_RETRIEVE_ASK) {
        c->counters.ask_messages++;
        c->counters.ask_bytes += length;
    } else if (is_sent && message->type == PROTO_STORE_HASH) {
        c->counters.store_messages++;
        c->counters.store_bytes += length;
    }
    return is_sent;
}

/* ---- outstanding requests ---- */

/* The table of parts is at least half empty: a few ids are skipped at most. */
uint32_t client_next_request(struct client *c)
{
    while (c->next_request == 0 || c->parts[c->next_request & c->part_mask].kind != PART_FREE) {
        c->next_request++;
    }
    return c->next_request++;
}

struct part *client_part_open(struct client *c, enum part_kind kind, unsigned shard)
{
    struct shard *s = &c->shards[shard];
    bool is_full = s->outstanding - s->hellos >= c->options.tickets + OTHERS_MAX;
    const unsigned limit =
        c->part_limit - (kind == PART_HELLO ? 0 : c->options.shards * HELLOS_MAX);
    if (c->part_count >= limit || (kind != PART_HELLO && is_full)) {
        return NULL;
    }
    uint32_t request = client_next_request(c);
    struct part *part = &c->parts[request & c->part_mask];
    *part = (struct part){
        .kind = (uint8_t)kind,
        .request = request,
        .shard = (uint8_t)shard,
        .sent_us = c->now_us,
        .deadline_us = c->now_us + s->rtt.timeout_us,
    };
    TAILQ_INSERT_TAIL(&c->outstanding, part, in_order);
    c->part_count++;
    s->outstanding++;
    s->hellos += kind == PART_HELLO;
    /* The silence after a HELLO counts against nobody, so its repeats must not defer heartbeats. */
    s->request_us = kind == PART_HELLO ? s->request_us : c->now_us;
    if (part->deadline_us < c->next_expiry_us) {
        c->next_expiry_us = part->deadline_us;
    }
    return part;
}

void client_part_close(struct client *c, struct part *part)
{
    struct shard *s = &c->shards[part->shard];
    TAILQ_REMOVE(&c->outstanding, part, in_order);
    c->next_expiry_us = --c->part_count > 0 ? c->next_expiry_us : UINT64_MAX;
    s->outstanding--;
    s->hellos -= part->kind == PART_HELLO;
    part->kind = PART_FREE;
}

struct part *client_part_find(struct client *c, uint32_t request, unsigned shard)
{
    struct part *part = &c->parts[request & c->part_mask];
    bool found = part->kind != PART_FREE && part->request == request && part->shard == shard;
    return found ? part : NULL;
}

void client_part_lose(struct client *c, struct part *part)
{
    uint32_t ticket = part->ticket;
    client_part_close(c, part);
    if (ticket != 0) {
        ticket_of(c, ticket)->waiting--;
    }
}

void client_part_lose_all_of(struct client *c, unsigned shard)
{
    for (struct part *part = TAILQ_FIRST(&c->outstanding), *next; part != NULL; part = next) {
        next = TAILQ_NEXT(part, in_order);
        if (part->shard == shard) {
            client_part_lose(c, part);
        }
    }
}

/* ---- stores and releases, queued until they are sent ---- */

void client_queue_leak(struct client *c, unsigned shard)
{
    c->counters.leaks++;
    c->shards[shard].leaked = c->shards[shard].hello_owed = true;
    c->shards[shard].hello_request = 0;
}

/* The shard may come back with our session: the results are lost, but its entries must be released.
 */
void client_queue_abandon_stores(struct client *c, unsigned shard)
{
    struct queue *q = &c->shards[shard].queue;
    for (unsigned i = 0; i < q->store_count; i++) {
        const struct tt_store *store = &q->stores[i];
        if (q->release_count == c->options.queue) {
            client_queue_leak(c, shard);
            break;
        }
        q->releases[q->release_count++] =
            (struct tt_release){store->key, store->depth, store->slot};
    }
    c->counters.dropped += q->store_count;
    q->store_count = 0;
}

/* Between two flushes nothing is asked, and both kinds only leave sets: stores may go first. */
bool client_queue_flush(struct client *c, unsigned shard)
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

bool client_queue_room(struct client *c, unsigned shard, const unsigned *count)
{
    struct queue *q = &c->shards[shard].queue;
    if (q->store_count + q->release_count == 0) {
        q->oldest_us = c->now_us;
    }
    if (*count == c->options.queue) {
        (void)client_queue_flush(c, shard);
    }
    c->counters.dropped += *count == c->options.queue;
    return *count < c->options.queue;
}
