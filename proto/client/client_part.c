#include "proto/client/client_core.h"

bool client_send_bytes(struct client *c, unsigned shard, const uint8_t *bytes, size_t length)
{
    bool is_sent = c->send(c->self, shard, bytes, length);
    c->counters.messages_sent += is_sent;
    c->counters.bytes_sent += is_sent ? length : 0;
    return is_sent;
}

bool client_send(struct client *c, unsigned shard, const struct proto_message *message)
{
    size_t length = proto_encode(message, c->scratch, c->scratch_size);
    CHECK(length > 0);
    bool is_sent = client_send_bytes(c, shard, c->scratch, length);
    if (is_sent && message->type == PROTO_RETRIEVE_ASK) {
        c->counters.ask_messages++;
        c->counters.ask_bytes += length;
    } else if (is_sent && message->type == PROTO_STORE_HASH) {
        c->counters.store_messages++;
        c->counters.store_bytes += length;
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

void part_close(struct client *c, struct part *part)
{
    struct shard *s = &c->shards[part->shard];
    TAILQ_REMOVE(&c->outstanding, part, in_order);
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
    for (struct part *part = TAILQ_FIRST(&c->outstanding), *next; part != NULL; part = next) {
        next = TAILQ_NEXT(part, in_order);
        if (part->shard == shard) {
            part_lose(c, part);
        }
    }
}

/* ---- events ---- */

void event_put(struct client *c, struct client_event event)
{
    CHECK_THAT(!c->has_event, "client: a message is one event");
    c->event = event;
    c->has_event = true;
}

bool client_next(struct client *c, struct client_event *out)
{
    /* A fall that was not said before the shard rose again comes first. */
    uint64_t falls = c->said_up & c->fell, rises = c->up & ~c->said_up;
    if ((falls | rises) != 0) {
        *out =
            (struct client_event){.kind = falls != 0 ? CLIENT_SHARD_DOWN : CLIENT_SHARD_UP,
                                  .shard = (unsigned)__builtin_ctzll(falls != 0 ? falls : rises)};
        c->said_up ^= UINT64_C(1) << out->shard;
        c->fell &= ~(UINT64_C(1) << out->shard);
        return true;
    }
    bool any = c->has_event;
    if (any) {
        *out = c->event;
        c->has_event = false;
    }
    return any;
}
