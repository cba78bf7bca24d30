#include "proto/client_core.h"

#include <string.h>

/* ---- queues of stores and releases ---- */

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

static unsigned at_most(unsigned value, unsigned limit)
{
    return value < limit ? value : limit;
}

static bool flush_stores(struct client *c, unsigned shard)
{
    struct queue *q = &c->shards[shard].queue;
    while (q->store_count > 0) {
        unsigned n = at_most(q->store_count, c->shards[shard].batch_max);
        struct proto_message m = {.type = PROTO_STORE_HASH};
        m.store_hash.list = (struct proto_stores){n, q->stores};
        if (!client_send(c, shard, &m)) {
            return false;
        }
        c->counters.stores += n;
        q->store_count -= n;
        memmove(q->stores, q->stores + n, q->store_count * sizeof *q->stores);
    }
    return true;
}

static bool flush_releases(struct client *c, unsigned shard)
{
    struct queue *q = &c->shards[shard].queue;
    while (q->release_count > 0) {
        unsigned n = at_most(q->release_count, c->shards[shard].batch_max);
        struct proto_message m = {.type = PROTO_RELEASE};
        m.release.list = (struct proto_releases){n, q->releases};
        if (!client_send(c, shard, &m)) {
            return false;
        }
        q->release_count -= n;
        memmove(q->releases, q->releases + n, q->release_count * sizeof *q->releases);
    }
    return true;
}

/* Between two flushes nothing is asked, and both kinds only leave sets: stores may go first. */
bool queue_flush(struct client *c, unsigned shard)
{
    struct shard *s = &c->shards[shard];
    return s->state == CLIENT_UP ? flush_stores(c, shard) && flush_releases(c, shard)
                                 : s->queue.store_count + s->queue.release_count == 0;
}

/* Makes room for one more; false: there is none. */
static bool queue_room(struct client *c, unsigned shard, const unsigned *count)
{
    struct queue *q = &c->shards[shard].queue;
    if (q->store_count + q->release_count == 0) {
        q->oldest_us = c->now_us;
    }
    if (*count == c->options.queue) {
        (void)queue_flush(c, shard);
    }
    if (*count == c->options.queue) {
        c->counters.dropped++;
        return false;
    }
    return true;
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

static struct ticket *ticket_of(const struct client *c, uint32_t id)
{
    struct ticket *t = &c->tickets[id & c->ticket_mask];
    CHECK(id != 0 && t->id == id);
    return t;
}

static size_t ticket_row(const struct client *c, const struct ticket *t)
{
    return (size_t)(t - c->tickets) * c->options.peek_max;
}

void ticket_part_lost(struct client *c, const struct part *part)
{
    if (part->ticket != 0) {
        ticket_of(c, part->ticket)->waiting--;
    }
}

/* Opens the request of a ticket; NULL when the shard may not be asked now. What is queued for the
 * shard goes first. */
static struct part *request_open(struct client *c, struct ticket *t, unsigned shard)
{
    struct part *part = NULL;
    const struct shard *s = &c->shards[shard];
    if (s->state == CLIENT_UP && queue_flush(c, shard)) {
        part = part_open(c, (enum part_kind)t->kind, shard);
    }
    if (part) {
        part->ticket = t->id;
    }
    return part;
}

static bool request_send(struct client *c, struct ticket *t, struct part *part,
                         const struct proto_message *m)
{
    if (!shard_request(c, part, m)) {
        return false;
    }
    t->waiting++;
    t->deadline_us = part->deadline_us > t->deadline_us ? part->deadline_us : t->deadline_us;
    return true;
}

uint64_t client_deadline(const struct client *c, uint32_t ticket)
{
    return ticket_of(c, ticket)->deadline_us;
}

static enum client_result ticket_end(struct client *c, struct ticket *t)
{
    if (t->waiting > 0) {
        return CLIENT_WAITING;
    }
    enum client_result result = t->answered > 0 ? CLIENT_READY : CLIENT_LOST;
    ticket_close(c, t);
    return result;
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
    struct part *part = request_open(c, t, shard);
    t->ask = *ask;
    t->shard = (uint8_t)shard;
    struct proto_message m = {.type = PROTO_RETRIEVE_ASK};
    m.retrieve_ask.request = part ? part->request : 0;
    m.retrieve_ask.list = (struct proto_asks){1, &t->ask};
    if (!part || !request_send(c, t, part, &m)) {
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
        return true;
    }
    return false;
}

void table_on_answer(struct client *c, unsigned shard, const struct proto_retrieve_answer *m)
{
    struct part *part = part_find(c, m->request, shard);
    if (!part || part->kind != PART_ASK) {
        shard_late(c, shard);
        return;
    }
    shard_answered(c, part);
    struct ticket *t = ticket_of(c, part->ticket);
    if (m->list.count != 1 || !plausible(&m->list.at[0], &t->ask)) {
        c->counters.malformed++;
        part_lose(c, part);
        return;
    }
    t->answer = m->list.at[0];
    t->answered++;
    t->waiting--;
    part_close(c, part);
}

enum client_result client_answer(struct client *c, uint32_t ticket, uint64_t now_us,
                                 struct tt_answer *out)
{
    struct ticket *t = ticket_of(c, ticket);
    CHECK(t->kind == PART_ASK);
    client_advance(c, now_us);
    part_expire(c);
    enum client_result result = ticket_end(c, t);
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
    struct part *part = n > 0 ? request_open(c, t, shard) : NULL;
    if (part) {
        struct proto_message m = {.type = PROTO_PEEK};
        m.peek.request = part->request;
        m.peek.list = (struct proto_peeks){n, c->gathered};
        part->first = (uint16_t)from;
        part->count = (uint16_t)n;
        c->counters.peeks += request_send(c, t, part, &m) ? n : 0;
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
    struct part *part = part_find(c, m->request, shard);
    if (!part || part->kind != PART_PEEK) {
        shard_late(c, shard);
        return;
    }
    shard_answered(c, part);
    struct ticket *t = ticket_of(c, part->ticket);
    bool ok = m->list.count == part->count;
    for (uint32_t i = 0; ok && i < m->list.count; i++) {
        ok = m->list.at[i].lower >= TT_SCORE_MIN && m->list.at[i].upper >= TT_SCORE_MIN;
    }
    if (!ok) {
        c->counters.malformed++;
        part_lose(c, part);
        return;
    }
    size_t row = ticket_row(c, t);
    for (unsigned i = part->first, n = 0; n < part->count; i++) {
        if (c->peek_owner[row + i] == shard) {
            c->peeked[row + i] = m->list.at[n++];
        }
    }
    t->answered++;
    t->waiting--;
    part_close(c, part);
}

enum client_result client_peeked(struct client *c, uint32_t ticket, uint64_t now_us,
                                 struct tt_peeked *out)
{
    struct ticket *t = ticket_of(c, ticket);
    CHECK(t->kind == PART_PEEK);
    client_advance(c, now_us);
    part_expire(c);
    enum client_result result = ticket_end(c, t);
    if (result == CLIENT_READY) {
        memcpy(out, c->peeked + ticket_row(c, t), t->count * sizeof *out);
    }
    return result;
}
