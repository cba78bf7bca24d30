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

/* `has_row`: as a list of asks or a peek has. */
static struct ticket *ticket_open(struct client *c, enum part_kind kind, unsigned count,
                                  bool has_row)
{
    if (c->ticket_count >= c->options.tickets || (has_row && c->rows.free_count == 0)) {
        c->counters.exhausted++;
        return NULL;
    }
    while (c->next_ticket == 0 || c->tickets[c->next_ticket & c->ticket_mask].id != 0) {
        c->next_ticket++;
    }
    struct ticket *t = &c->tickets[c->next_ticket & c->ticket_mask];
    *t = (struct ticket){.id = c->next_ticket++,
                         .count = (uint16_t)count,
                         .row = has_row ? c->rows.free[--c->rows.free_count] : ROW_NONE,
                         .kind = (uint8_t)kind};
    c->ticket_count++;
    return t;
}

static void ticket_close(struct client *c, struct ticket *t)
{
    if (t->row != ROW_NONE) {
        c->rows.free[c->rows.free_count++] = t->row;
    }
    t->id = 0;
    c->ticket_count--;
}

/* ---- what a ticket is about ---- */

static size_t row_of(const struct client *c, const struct ticket *t)
{
    return (size_t)t->row * c->rows.size;
}

static struct tt_ask *asks_of(const struct client *c, struct ticket *t)
{
    return t->row == ROW_NONE ? &t->ask : c->rows.asks + row_of(c, t);
}

static struct tt_answer *answers_of(const struct client *c, struct ticket *t)
{
    return t->row == ROW_NONE ? &t->answer : c->rows.answers + row_of(c, t);
}

static uint8_t *owners_of(const struct client *c, struct ticket *t)
{
    return t->row == ROW_NONE ? &t->owner : c->rows.owner + row_of(c, t);
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

/* A part was answered, so many of it in a way that may reach the search. */
static void ticket_answered(struct client *c, struct ticket *t, struct part *part, unsigned good)
{
    c->counters.malformed += good < part->count;
    t->answered = (uint16_t)(t->answered + good);
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
    struct ticket *t = ticket_of(c, ticket);
    for (unsigned i = 0; t->kind == PART_ASK && i < t->count; i++) {
        const struct tt_ask *ask = &asks_of(c, t)[i];
        enum tt_verdict verdict = answers_of(c, t)[i].verdict;
        if (verdict != TT_CUT && verdict != TT_BUSY) {
            struct tt_release release = {ask->key, ask->depth, ask->slot};
            client_release(c, owners_of(c, t)[i], &release);
        }
    }
    client_forget(c, ticket);
}

/* ---- RetrieveAsk ---- */

/* Sends up to batch_max of the ticket's asks that belong to `shard`, from the `from`th on. Returns
 * where the next message begins. Those that are all its own, and fit, are sent from where they are.
 */
static unsigned ask_send(struct client *c, struct ticket *t, unsigned shard, unsigned from,
                         bool owns_all)
{
    struct tt_ask *asks = asks_of(c, t);
    uint8_t *owner = owners_of(c, t);
    bool is_whole = owns_all && t->count <= c->shards[shard].batch_max;
    unsigned n = is_whole ? t->count : 0, i = is_whole ? t->count : from;
    for (; i < t->count && n < c->shards[shard].batch_max; i++) {
        if (owner[i] == shard) {
            c->gathered_asks[n++] = asks[i];
        }
    }
    struct proto_message m = {.type = PROTO_RETRIEVE_ASK};
    m.retrieve_ask.list = (struct proto_asks){n, is_whole ? asks : c->gathered_asks};
    struct part *part = n > 0 ? request_send(c, t, shard, &m) : NULL;
    if (part) {
        part->first = (uint16_t)from;
        part->count = (uint16_t)n;
        c->counters.asks += n;
        return i;
    }
    for (unsigned k = from; k < i; k++) {
        owner[k] = owner[k] == shard ? CLIENT_NOWHERE : owner[k];
    }
    return i;
}

uint32_t client_ask(struct client *c, const struct tt_ask *asks, unsigned count, uint64_t now_us,
                    uint8_t *where)
{
    uint64_t sent = c->counters.asks;
    uint64_t asked = 0; /* bit set: the owners of these nodes */
    CHECK(count > 0 && count <= c->options.ask_max);
    client_advance(c, now_us);
    memset(where, CLIENT_NOWHERE, count);
    struct ticket *t = c->owner_count == 0 ? NULL : ticket_open(c, PART_ASK, count, count > 1);
    if (!t) {
        return 0;
    }
    struct tt_ask *kept = asks_of(c, t);
    struct tt_answer *answers = answers_of(c, t);
    uint8_t *owner = owners_of(c, t);
    for (unsigned i = 0; i < count; i++) {
        CHECK(asks[i].alpha < asks[i].beta && asks[i].depth <= TT_DEPTH_MAX);
        kept[i] = asks[i];
        answers[i].verdict = (enum tt_verdict)CLIENT_UNANSWERED;
        owner[i] = (uint8_t)client_owner(c, asks[i].key);
        asked |= UINT64_C(1) << owner[i];
    }
    for (unsigned s = 0; s < c->options.shards; s++) {
        bool owns = asked >> s & 1;
        for (unsigned from = 0; owns && from < count;) {
            from = ask_send(c, t, s, from, (asked & (asked - 1)) == 0);
        }
    }
    memcpy(where, owner, count);
    if (c->counters.asks == sent) {
        ticket_close(c, t);
        return 0;
    }
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
    if (!part) {
        return;
    }
    struct ticket *t = ticket_of(c, part->ticket);
    const struct tt_ask *asks = asks_of(c, t);
    struct tt_answer *answers = answers_of(c, t);
    const uint8_t *owner = owners_of(c, t);
    unsigned good = 0, count = m->list.count == part->count ? part->count : 0;
    for (unsigned i = part->first, n = 0; n < count; i++) {
        if (owner[i] == shard) {
            const struct tt_answer *answer = &m->list.at[n++];
            if (plausible(answer, &asks[i])) {
                answers[i] = *answer;
                good++;
            }
        }
    }
    ticket_answered(c, t, part, good);
}

enum client_result client_answer(struct client *c, uint32_t ticket, uint64_t now_us,
                                 struct tt_answer *out)
{
    struct ticket *t = ticket_of(c, ticket);
    const struct tt_answer *answers = answers_of(c, t);
    enum client_result result = ticket_poll(c, t, PART_ASK, now_us);
    if (result == CLIENT_READY) {
        memcpy(out, answers, t->count * sizeof *out);
    }
    return result;
}

/* ---- Peek ---- */

/* Sends up to batch_max of the ticket's positions that belong to `shard`, from the `from`th on.
 * Returns where the next message begins. */
static unsigned peek_send(struct client *c, struct ticket *t, unsigned shard,
                          const struct tt_peek *peeks, unsigned from)
{
    const uint8_t *owner = owners_of(c, t);
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
    struct ticket *t = c->owner_count == 0 ? NULL : ticket_open(c, PART_PEEK, count, true);
    if (!t) {
        return 0;
    }
    struct tt_peeked *peeked = c->rows.peeked + row_of(c, t);
    uint8_t *owner = owners_of(c, t);
    for (unsigned i = 0; i < count; i++) {
        owner[i] = (uint8_t)client_owner(c, peeks[i].key);
        peeked[i] = (struct tt_peeked){.lower = TT_SCORE_MIN, .upper = TT_SCORE_MAX};
        asked |= UINT64_C(1) << owner[i];
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
    struct tt_peeked *peeked = c->rows.peeked + row_of(c, t);
    const uint8_t *owner = owners_of(c, t);
    bool ok = m->list.count == part->count;
    for (uint32_t i = 0; ok && i < m->list.count; i++) {
        ok = m->list.at[i].lower >= TT_SCORE_MIN && m->list.at[i].upper >= TT_SCORE_MIN;
    }
    for (unsigned i = part->first, n = 0; ok && n < part->count; i++) {
        if (owner[i] == shard) {
            peeked[i] = m->list.at[n++];
        }
    }
    ticket_answered(c, t, part, ok ? part->count : 0);
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
        memcpy(out, c->rows.peeked + row_of(c, t), t->count * sizeof *out);
    }
    return result;
}
