#include "proto/client/client_core.h"

bool client_send_bytes(struct client *c, unsigned shard, const uint8_t *bytes, size_t length)
{
    bool is_sent = c->port.send(c->port.self, shard, bytes, length);
    c->counters.messages_sent += is_sent;
    c->counters.bytes_sent += is_sent ? length : 0;
    return is_sent;
}

static void count_message(struct client *c, enum proto_type type, size_t length)
{
    if (type == PROTO_RETRIEVE_ASK) {
        c->counters.ask_messages++;
        c->counters.ask_bytes += length;
    } else if (type == PROTO_STORE_HASH) {
        c->counters.store_messages++;
        c->counters.store_bytes += length;
    }
}

bool client_send(struct client *c, unsigned shard, const struct proto_message *message)
{
    size_t length = proto_encode_as(c->shards[shard].version, message, c->scratch, c->scratch_size);
    CHECK(length > 0);
    bool is_sent = client_send_bytes(c, shard, c->scratch, length);
    if (is_sent) {
        count_message(c, message->type, length);
    }
    return is_sent;
}

/* The table of parts is at least half empty: a few ids are skipped at most. */
uint32_t request_next(struct client *c)
{
    while (c->next_request == 0 || c->parts[c->next_request & c->part_mask].kind != PART_FREE) {
        c->next_request++;
    }
    return c->next_request++;
}

struct part *part_open(struct client *c, enum part_kind kind, unsigned shard)
{
    struct shard *s = &c->shards[shard];
    bool is_full = s->outstanding - s->hellos >= c->options.tickets + OTHERS_MAX;
    const unsigned limit =
        c->part_limit - (kind == PART_HELLO ? 0 : c->options.shards * HELLOS_MAX);
    if (c->part_count >= limit || (kind != PART_HELLO && is_full)) {
        return NULL;
    }
    uint32_t request = request_next(c);
    uint16_t index = (uint16_t)(request & c->part_mask);
    struct part *part = &c->parts[index];
    *part = (struct part){
        .kind = (uint8_t)kind,
        .request = request,
        .shard = (uint8_t)shard,
        .sent_us = c->now_us,
        .deadline_us = c->now_us + s->rtt.timeout_us,
        .previous = c->newest,
        .next = PART_NONE,
    };
    if (c->newest != PART_NONE) {
        c->parts[c->newest].next = index;
    } else {
        c->oldest = index;
    }
    c->newest = index;
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

void part_close(struct client *c, struct part *part)
{
    struct shard *s = &c->shards[part->shard];
    if (part->previous != PART_NONE) {
        c->parts[part->previous].next = part->next;
    } else {
        c->oldest = part->next;
    }
    if (part->next != PART_NONE) {
        c->parts[part->next].previous = part->previous;
    } else {
        c->newest = part->previous;
    }
    c->next_expiry_us = --c->part_count > 0 ? c->next_expiry_us : UINT64_MAX;
    s->outstanding--;
    s->hellos -= part->kind == PART_HELLO;
    part->kind = PART_FREE;
}

struct part *part_find(struct client *c, uint32_t request, unsigned shard)
{
    struct part *part = &c->parts[request & c->part_mask];
    bool found = part->kind != PART_FREE && part->request == request && part->shard == shard;
    return found ? part : NULL;
}

void part_lose(struct client *c, struct part *part)
{
    uint32_t ticket = part->ticket;
    part_close(c, part);
    if (ticket != 0) {
        ticket_of(c, ticket)->waiting--;
    }
}

void part_lose_all_of(struct client *c, unsigned shard)
{
    for (uint16_t i = c->oldest, next; i != PART_NONE; i = next) {
        next = c->parts[i].next;
        if (c->parts[i].shard == shard) {
            part_lose(c, &c->parts[i]);
        }
    }
}
