#include "proto/client/client_state.h"

#include <string.h>

/* ---- stores and releases ---- */

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
    if (!client_queue_room(c, owner, &q->store_count)) {
        if (where == owner) {
            client_queue_leak(c, owner);
        }
        return;
    }
    q->stores[q->store_count++] = *store;
    if (q->store_count == c->options.queue) {
        (void)client_queue_flush(c, owner);
    }
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
    if (!client_queue_room(c, where, &q->release_count)) {
        client_queue_leak(c, where);
        return;
    }
    q->releases[q->release_count++] = *release;
    if (q->release_count == c->options.queue) {
        (void)client_queue_flush(c, where);
    }
}

void client_flush(struct client *c, uint64_t now_us)
{
    client_advance(c, now_us);
    for (unsigned i = 0; i < c->up_count; i++) {
        (void)client_queue_flush(c, c->owners[i].shard);
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
                         .kind = (uint8_t)kind,
                         .asks = &t->one_ask,
                         .answers = &t->one_answer,
                         .owner = &t->one_owner};
    if (has_row) {
        const size_t at = (size_t)t->row * c->rows.size;
        t->asks = c->rows.asks != NULL ? c->rows.asks + at : NULL;
        t->answers = c->rows.answers != NULL ? c->rows.answers + at : NULL;
        t->peeked = c->rows.peeked + at;
        t->owner = c->rows.owner + at;
    }
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
    c->deferred_count -= t->is_deferred;
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
    client_part_expire(c);
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
    client_part_close(c, part);
}

void client_forget(struct client *c, uint32_t ticket)
{
    struct ticket *t = ticket_of(c, ticket);
    for (struct part *part = TAILQ_FIRST(&c->outstanding), *next; part != NULL; part = next) {
        next = TAILQ_NEXT(part, in_order);
        if (part->ticket == ticket) {
            client_part_close(c, part);
        }
    }
    ticket_close(c, t);
}

void client_cancel(struct client *c, uint32_t ticket)
{
    struct ticket *t = ticket_of(c, ticket);
    for (unsigned i = 0; t->kind == PART_ASK && i < t->count; i++) {
        const struct tt_ask *ask = &t->asks[i];
        enum tt_verdict verdict = t->answers[i].verdict;
        if (verdict != TT_CUT && verdict != TT_BUSY) {
            struct tt_release release = {ask->key, ask->depth, ask->slot};
            client_release(c, t->owner[i], &release);
        }
    }
    client_forget(c, ticket);
}

/* Sends a ticket's asks, or `peeks`. Returns its id, or 0 where nothing was sent, and it is closed.
 */
static uint32_t ticket_send(struct client *c, struct ticket *t, const struct tt_peek *peeks)
{
    const struct tt_ask *asks = peeks == NULL ? t->asks : NULL;
    const uint32_t id = t->id;
    uint64_t asked = 0; /* bit set: the owners of these nodes */

    /* 1. Whose is each node? */
    for (unsigned i = 0; i < t->count; i++) {
        t->owner[i] = (uint8_t)client_shard_owning(c, peeks != NULL ? peeks[i].key : asks[i].key,
                                                   c->owner_count);
        asked |= UINT64_C(1) << t->owner[i];
    }

    /* 2. One message to each owner, or as many as its batch_max needs, after what is queued for it.
     * A node that cannot be sent now has no owner. */
    for (; asked != 0; asked &= asked - 1) {
        const unsigned shard = (unsigned)__builtin_ctzll(asked);
        for (unsigned from = 0, i = 0; from < t->count; from = i) {
            struct proto_message m = {.type = asks != NULL ? PROTO_RETRIEVE_ASK : PROTO_PEEK};
            unsigned n = 0;
            for (; i < t->count && n < c->shards[shard].batch_max; i++) {
                if (t->owner[i] == shard && asks != NULL) {
                    c->gathered_asks[n++] = asks[i];
                } else if (t->owner[i] == shard) {
                    c->gathered[n++] = peeks[i];
                }
            }
            if (asks != NULL) {
                m.retrieve_ask.list = (struct proto_asks){n, c->gathered_asks};
            } else {
                m.peek.list = (struct proto_peeks){n, c->gathered};
            }
            struct part *part = n > 0 && client_queue_flush(c, shard)
                                    ? client_shard_query(c, shard, (enum part_kind)t->kind, &m)
                                    : NULL;
            for (unsigned k = from; part == NULL && k < i; k++) {
                t->owner[k] = t->owner[k] == shard ? CLIENT_NOWHERE : t->owner[k];
            }
            if (part != NULL) {
                part->ticket = id;
                part->first = (uint16_t)from;
                part->count = (uint16_t)n;
                t->waiting++;
                t->deadline_us =
                    part->deadline_us > t->deadline_us ? part->deadline_us : t->deadline_us;
                *(asks != NULL ? &c->counters.asks : &c->counters.peeks) += n;
            }
        }
    }

    /* 3. A ticket of which nothing was sent ends. */
    if (t->waiting == 0) {
        ticket_close(c, t);
        return 0;
    }
    return id;
}

/* ---- RetrieveAsk ---- */

uint32_t client_ask(struct client *c, const struct tt_ask *asks, unsigned count, uint64_t now_us,
                    uint8_t *where)
{
    CHECK(count > 0 && count <= c->options.ask_max);
    client_advance(c, now_us);
    memset(where, CLIENT_NOWHERE, count);
    struct ticket *t = c->owner_count == 0 ? NULL : ticket_open(c, PART_ASK, count, count > 1);
    if (!t) {
        return 0;
    }
    for (unsigned i = 0; i < count; i++) {
        CHECK(asks[i].alpha < asks[i].beta && asks[i].depth <= TT_DEPTH_MAX);
        t->asks[i] = asks[i];
        t->answers[i].verdict = (enum tt_verdict)CLIENT_UNANSWERED;
    }
    uint32_t id = ticket_send(c, t, NULL);
    memcpy(where, t->owner, count);
    return id;
}

/* An answer outside its range must not reach the search. */
void client_table_on_answer(struct client *c, unsigned shard, const struct proto_retrieve_answer *m)
{
    struct part *part = client_shard_answered(c, shard, PART_ASK, m->request);
    if (!part) {
        return;
    }
    struct ticket *t = ticket_of(c, part->ticket);
    unsigned good = 0, count = m->list.count == part->count ? part->count : 0;
    for (unsigned i = part->first, n = 0; n < count; i++) {
        if (t->owner[i] != shard) {
            continue;
        }
        const struct tt_ask *ask = &t->asks[i];
        const struct tt_answer *a = &m->list.at[n++];
        if ((a->verdict == TT_CUT && a->score >= TT_SCORE_MIN) ||
            (a->verdict == TT_BUSY && ask->flags & TT_EXCLUSIVE) ||
            (a->verdict == TT_OPEN && a->alpha >= ask->alpha && a->beta <= ask->beta &&
             a->alpha < a->beta)) {
            t->answers[i] = *a;
            good++;
        }
    }
    ticket_answered(c, t, part, good);
}

enum client_result client_answer(struct client *c, uint32_t ticket, uint64_t now_us,
                                 struct tt_answer *out)
{
    struct ticket *t = ticket_of(c, ticket);
    enum client_result result = ticket_poll(c, t, PART_ASK, now_us);
    if (result == CLIENT_READY) {
        memcpy(out, t->answers, t->count * sizeof *out);
    }
    return result;
}

void client_defer(struct client *c, uint32_t ticket)
{
    struct ticket *t = ticket_of(c, ticket);
    CHECK(t->kind == PART_ASK && t->row == ROW_NONE && !t->is_deferred);
    t->is_deferred = true;
    c->deferred_count++;
}

bool client_is_deferred(const struct client *c, uint32_t ticket)
{
    const struct ticket *t = &c->tickets[ticket & c->ticket_mask];
    return ticket != 0 && t->id == ticket && t->is_deferred;
}

unsigned client_deferred(const struct client *c)
{
    return c->deferred_count;
}

bool client_next_deferred(struct client *c, uint64_t now_us, struct tt_ask *ask,
                          struct tt_answer *answer)
{
    for (unsigned i = 0; c->deferred_count > 0 && i <= c->ticket_mask; i++) {
        struct ticket *t = &c->tickets[i];
        if (t->id != 0 && t->is_deferred && ticket_poll(c, t, PART_ASK, now_us) == CLIENT_READY) {
            *ask = t->one_ask;
            *answer = t->one_answer;
            return true;
        }
    }
    return false;
}

/* ---- Peek ---- */

uint32_t client_peek(struct client *c, const struct tt_peek *peeks, unsigned count, uint64_t now_us)
{
    CHECK(count > 0 && count <= c->options.peek_max);
    client_advance(c, now_us);
    struct ticket *t = c->owner_count == 0 ? NULL : ticket_open(c, PART_PEEK, count, true);
    if (!t) {
        return 0;
    }
    for (unsigned i = 0; i < count; i++) {
        t->peeked[i] = (struct tt_peeked){.lower = TT_SCORE_MIN, .upper = TT_SCORE_MAX};
    }
    return ticket_send(c, t, peeks);
}

void client_table_on_peek_answer(struct client *c, unsigned shard,
                                 const struct proto_peek_answer *m)
{
    struct part *part = client_shard_answered(c, shard, PART_PEEK, m->request);
    if (!part) {
        return;
    }
    struct ticket *t = ticket_of(c, part->ticket);
    bool ok = m->list.count == part->count;
    for (uint32_t i = 0; ok && i < m->list.count; i++) {
        ok = m->list.at[i].lower >= TT_SCORE_MIN && m->list.at[i].upper >= TT_SCORE_MIN;
    }
    for (unsigned i = part->first, n = 0; ok && n < part->count; i++) {
        if (t->owner[i] == shard) {
            t->peeked[i] = m->list.at[n++];
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
        memcpy(out, t->peeked, t->count * sizeof *out);
    }
    return result;
}
