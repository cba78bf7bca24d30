#include "proto/client/client_core.h"

#include <string.h>

void client_store(struct client *c, unsigned where, const struct tt_store *store)
{
    unsigned owner = client_owner(c, store->key);
    if (where != owner) {
        struct tt_release release = {.key = store->key, .depth = store->depth, .slot = store->slot};
        client_release(c, where, &release);
    }
    if (owner == CLIENT_NOWHERE) {
        c->counters.dropped++;
        return;
    }
    struct queue *q = &c->shards[owner].queue;
    if (!queue_room(c, owner, &q->store_count)) {
        if (where == owner) {
            queue_leak(c, owner);
        }
        return;
    }
    q->stores[q->store_count++] = *store;
    if (q->store_count == c->options.queue) {
        (void)queue_flush(c, owner);
    }
}

void client_flush(struct client *c, uint64_t now_us)
{
    client_advance(c, now_us);
    for (unsigned i = 0; i < c->up_count; i++) {
        (void)queue_flush(c, c->owners[i].shard);
    }
}

/* ---- tickets ---- */

static struct ticket *ticket_open(struct client *c, enum part_kind kind)
{
    if (c->ticket_count >= c->options.tickets) {
        c->counters.exhausted++;
        return NULL;
    }
    while (c->next_ticket == 0 || c->tickets[c->next_ticket & c->ticket_mask].id != 0) {
        c->next_ticket++;
    }
    struct ticket *t = &c->tickets[c->next_ticket & c->ticket_mask];
    *t = (struct ticket){.id = c->next_ticket++, .kind = (uint8_t)kind, .shard = CLIENT_NOWHERE};
    c->ticket_count++;
    return t;
}

static void ticket_close(struct client *c, struct ticket *t)
{
    t->id = 0;
    c->ticket_count--;
}

static size_t ticket_row(const struct client *c, const struct ticket *t)
{
    return (size_t)(t - c->tickets) * c->options.peek_max;
}

/* Sends a request of a ticket, after what is queued for the shard. NULL: it may not be asked now.
 */
static struct part *request_send(struct client *c, struct ticket *t, unsigned shard,
                                 struct proto_message *m)
{
    struct part *part =
        queue_flush(c, shard) ? shard_query(c, shard, (enum part_kind)t->kind, m) : NULL;
    if (part) {
        part->ticket = t->id;
        t->waiting++;
        t->deadline_us = part->deadline_us > t->deadline_us ? part->deadline_us : t->deadline_us;
    }
    return part;
}

uint64_t client_deadline(const struct client *c, uint32_t ticket)
{
    return ticket_of(c, ticket)->deadline_us;
}

/* READY and LOST close the ticket; what it was answered stays readable until the next call. */
static enum client_result ticket_poll(struct client *c, struct ticket *t, enum part_kind kind,
                                      uint64_t now_us)
{
    CHECK(t->kind == kind);
    client_advance(c, now_us);
    part_expire(c);
    if (t->waiting > 0) {
        return CLIENT_WAITING;
    }
    ticket_close(c, t);
    return t->answered > 0 ? CLIENT_READY : CLIENT_LOST;
}

/* A part was answered; not `ok`: by something that must not reach the search. */
static void ticket_answered(struct client *c, struct ticket *t, struct part *part, bool ok)
{
    c->counters.malformed += !ok;
    t->answered += ok;
    t->waiting--;
    part_close(c, part);
}

void client_forget(struct client *c, uint32_t ticket)
{
    struct ticket *t = ticket_of(c, ticket);
    for (uint16_t i = c->oldest, next; i != PART_NONE; i = next) {
        next = c->parts[i].next;
        if (c->parts[i].ticket == ticket) {
            part_close(c, &c->parts[i]);
        }
    }
    ticket_close(c, t);
}

void client_cancel(struct client *c, uint32_t ticket)
{
    const struct ticket *t = ticket_of(c, ticket);
    if (t->kind == PART_ASK && (t->answered == 0 || t->answer.verdict == TT_OPEN)) {
        struct tt_release release = {t->ask.key, t->ask.depth, t->ask.slot};
        client_release(c, t->shard, &release);
    }
    client_forget(c, ticket);
}

/* ---- RetrieveAsk ---- */

uint32_t client_ask(struct client *c, const struct tt_ask *ask, uint64_t now_us, uint8_t *where)
{
    CHECK(ask->alpha < ask->beta && ask->depth <= TT_DEPTH_MAX);
    client_advance(c, now_us);
    unsigned shard = client_owner(c, ask->key);
    struct ticket *t = shard == CLIENT_NOWHERE ? NULL : ticket_open(c, PART_ASK);
    *where = CLIENT_NOWHERE;
    if (!t) {
        return 0;
    }
    t->ask = *ask;
    t->shard = (uint8_t)shard;
    struct proto_message m = {.type = PROTO_RETRIEVE_ASK};
    m.retrieve_ask.list = (struct proto_asks){1, &t->ask};
    if (!request_send(c, t, shard, &m)) {
        ticket_close(c, t);
        return 0;
    }
    c->counters.asks++;
    *where = (uint8_t)shard;
    return t->id;
}

/* An answer outside its range must not reach the search. */
static bool plausible(const struct tt_answer *a, const struct tt_ask *ask)
{
    switch (a->verdict) {
    case TT_CUT:
        return a->score >= TT_SCORE_MIN;
    case TT_OPEN:
        return a->alpha >= ask->alpha && a->beta <= ask->beta && a->alpha < a->beta;
    case TT_BUSY:
        return ask->flags & TT_EXCLUSIVE;
    }
    return false;
}

void table_on_answer(struct client *c, unsigned shard, const struct proto_retrieve_answer *m)
{
    struct part *part = shard_answered(c, shard, PART_ASK, m->request);
    if (part) {
        struct ticket *t = ticket_of(c, part->ticket);
        bool ok = m->list.count == 1 && plausible(&m->list.at[0], &t->ask);
        t->answer = ok ? m->list.at[0] : t->answer;
        ticket_answered(c, t, part, ok);
    }
}

enum client_result client_answer(struct client *c, uint32_t ticket, uint64_t now_us,
                                 struct tt_answer *out)
{
    struct ticket *t = ticket_of(c, ticket);
    enum client_result result = ticket_poll(c, t, PART_ASK, now_us);
    if (result == CLIENT_READY) {
        *out = t->answer;
    }
    return result;
}

/* ---- Peek ---- */

/* Sends up to batch_max of the ticket's positions that belong to `shard`, from the `from`th on.
 * Returns where the next message begins. */
static unsigned peek_send(struct client *c, struct ticket *t, unsigned shard,
                          const struct tt_peek *peeks, unsigned from)
{
    const uint8_t *owner = c->peek_owner + ticket_row(c, t);
    unsigned n = 0, i = from;
    for (; i < t->count && n < c->shards[shard].batch_max; i++) {
        if (owner[i] == shard) {
            c->gathered[n++] = peeks[i];
        }
    }
    struct proto_message m = {.type = PROTO_PEEK};
    m.peek.list = (struct proto_peeks){n, c->gathered};
    struct part *part = n > 0 ? request_send(c, t, shard, &m) : NULL;
    if (part) {
        part->first = (uint16_t)from;
        part->count = (uint16_t)n;
        c->counters.peeks += n;
    }
    return i;
}

uint32_t client_peek(struct client *c, const struct tt_peek *peeks, unsigned count, uint64_t now_us)
{
    uint64_t asked = 0; /* bit set: the owners of these positions */
    CHECK(count > 0 && count <= c->options.peek_max);
    client_advance(c, now_us);
    struct ticket *t = c->owner_count == 0 ? NULL : ticket_open(c, PART_PEEK);
    if (!t) {
        return 0;
    }
    size_t row = ticket_row(c, t);
    t->count = (uint16_t)count;
    for (unsigned i = 0; i < count; i++) {
        unsigned owner = client_owner(c, peeks[i].key);
        c->peek_owner[row + i] = (uint8_t)owner;
        c->peeked[row + i] = (struct tt_peeked){.lower = TT_SCORE_MIN, .upper = TT_SCORE_MAX};
        asked |= UINT64_C(1) << owner;
    }
    for (unsigned s = 0; s < c->options.shards; s++) {
        bool owns = asked >> s & 1;
        for (unsigned from = 0; owns && from < count;) {
            from = peek_send(c, t, s, peeks, from);
        }
    }
    if (t->waiting == 0) {
        ticket_close(c, t);
        return 0;
    }
    return t->id;
}

void table_on_peek_answer(struct client *c, unsigned shard, const struct proto_peek_answer *m)
{
    struct part *part = shard_answered(c, shard, PART_PEEK, m->request);
    if (!part) {
        return;
    }
    struct ticket *t = ticket_of(c, part->ticket);
    size_t row = ticket_row(c, t);
    bool ok = m->list.count == part->count;
    for (uint32_t i = 0; ok && i < m->list.count; i++) {
        ok = m->list.at[i].lower >= TT_SCORE_MIN && m->list.at[i].upper >= TT_SCORE_MIN;
    }
    for (unsigned i = part->first, n = 0; ok && n < part->count; i++) {
        if (c->peek_owner[row + i] == shard) {
            c->peeked[row + i] = m->list.at[n++];
        }
    }
    ticket_answered(c, t, part, ok);
}

bool client_is_waiting(const struct client *c, uint32_t ticket, uint64_t now_us)
{
    const struct ticket *t = ticket_of(c, ticket);
    return t->waiting > 0 && now_us < t->deadline_us;
}

enum client_result client_peeked(struct client *c, uint32_t ticket, uint64_t now_us,
                                 struct tt_peeked *out)
{
    struct ticket *t = ticket_of(c, ticket);
    enum client_result result = ticket_poll(c, t, PART_PEEK, now_us);
    if (result == CLIENT_READY) {
        memcpy(out, c->peeked + ticket_row(c, t), t->count * sizeof *out);
    }
    return result;
}
