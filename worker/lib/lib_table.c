/* Asks, stores, releases, peeks: checked here, because the client takes its caller's word. */
#include "worker/lib/lib.h"

#include <stdlib.h>

_Static_assert((int)ABDADA_OPEN == TT_OPEN && (int)ABDADA_CUT == TT_CUT &&
                   (int)ABDADA_BUSY == TT_BUSY && (int)ABDADA_LOWER == TT_LOWER &&
                   (int)ABDADA_UPPER == TT_UPPER && (int)ABDADA_EXACT == TT_EXACT &&
                   (int)ABDADA_EXCLUSIVE == TT_EXCLUSIVE && (int)ABDADA_STRICT == TT_STRICT,
               "the header's numbers are those of messages");

bool lib_table_open(struct lib *l)
{
    unsigned size = 1;
    while (size < l->tickets_max + LIB_PEEKS + LIB_RENEWALS) { /* as the client's */
        size *= 2;
    }
    l->ticket_mask = size - 1;
    l->ticket = calloc(size, sizeof *l->ticket);
    return l->ticket != NULL && lib_nodes_open(&l->nodes);
}

void lib_table_close(struct lib *l)
{
    free(l->ticket);
    lib_nodes_free(&l->nodes);
}

/* ---- in their range ---- */

static bool is_score(int score)
{
    return score >= TT_SCORE_MIN && score <= TT_SCORE_MAX;
}

static bool is_ask(unsigned depth, int alpha, int beta, unsigned flags)
{
    return depth <= TT_DEPTH_MAX && is_score(alpha) && is_score(beta) && alpha < beta &&
           (flags & ~(unsigned)(TT_EXCLUSIVE | TT_STRICT)) == 0;
}

static bool is_store(unsigned depth, int score, unsigned bound, unsigned move)
{
    return depth <= TT_DEPTH_MAX && is_score(score) && bound >= TT_LOWER && bound <= TT_EXACT &&
           move <= UINT16_MAX;
}

static struct tt_ask ask_of(const struct lib *l, const struct abdada_ask_op *op)
{
    return (struct tt_ask){op->key ^ l->mix, op->alpha, op->beta, op->depth, op->flags, op->slot};
}

/* ---- asks ---- */

static struct abdada_answer alone(const struct tt_ask *ask)
{
    return (struct abdada_answer){.alpha = ask->alpha, .beta = ask->beta, .verdict = ABDADA_ALONE};
}

/* A caller that does not check the code goes on alone. */
static int ask_error(int error, const struct abdada_ask_op *op, size_t count,
                     struct abdada_answer *answer)
{
    for (size_t i = 0; error != ABDADA_OK && op != NULL && answer != NULL && i < count; i++) {
        answer[i] = (struct abdada_answer){
            .alpha = op[i].alpha, .beta = op[i].beta, .verdict = ABDADA_ALONE};
    }
    return error;
}

/* The shard may have counted us from now on. 0: not sent. */
static uint32_t send_ask(struct lib *l, const struct tt_ask *ask)
{
    uint8_t where;
    uint64_t now = lib_now(l);
    uint32_t id = client_ask(l->client, ask, now, &where);
    if (id == 0) {
        return 0;
    }
    struct lib_ticket *t = &l->ticket[id & l->ticket_mask];
    *t = (struct lib_ticket){.id = id, .where = where, .ask = *ask};
    struct lib_node *node = lib_nodes_find(&l->nodes, ask->key, ask->depth, ask->slot);
    if (node == NULL) {
        struct lib_node entered = {ask->key, now, id, ask->slot, ask->depth, where};
        lib_nodes_add(&l->nodes, &entered);
    } else {
        if (node->where != where) { /* another shard owns the key by now */
            lib_leave_node_at(l, node->where, ask->key, ask->depth, ask->slot);
            t->is_move = node->ticket == 0;
        }
        node->ticket = node->ticket != 0 ? id : 0;
        node->where = where;
        node->asked_us = now;
    }
    l->tickets++;
    return id;
}

static struct lib_ticket *ticket_of(const struct lib *l, uint32_t id)
{
    struct lib_ticket *t = &l->ticket[id & l->ticket_mask];
    return id != 0 && t->id == id ? t : NULL;
}

/* NULL: it was left since the ask. */
static struct lib_node *node_of(const struct lib *l, const struct lib_ticket *t)
{
    return lib_nodes_find(&l->nodes, t->ask.key, t->ask.depth, t->ask.slot);
}

/* Registers us, or not: forgets the node then, unless we were in it before. */
static void take_verdict(struct lib *l, const struct lib_ticket *t, bool is_open)
{
    struct lib_node *node = node_of(l, t);
    if (node == NULL) {
        return;
    }
    if (is_open) {
        node->ticket = node->where == t->where ? 0 : node->ticket;
    } else if (node->ticket == t->id || (t->is_move && node->where == t->where)) {
        lib_nodes_remove(&l->nodes, node);
    }
}

/* There will be no verdict, and the shard may have counted us. A node that the caller was in before
 * this ask is still its: it is asked for again at once. */
static void take_loss(struct lib *l, const struct lib_ticket *t)
{
    struct lib_node *node = node_of(l, t);
    if (node != NULL && node->where == t->where && node->ticket != t->id) {
        if (node->ticket == 0) {
            lib_renew_now(l, node);
        }
        return; /* else another ask decides */
    }
    lib_leave_node_at(l, t->where, t->ask.key, t->ask.depth, t->ask.slot);
    if (node != NULL && node->ticket == t->id) {
        lib_nodes_remove(&l->nodes, node);
    }
}

static void end_ticket(struct lib *l, struct lib_ticket *t)
{
    t->id = 0;
    l->tickets--;
}

static int take_answer(struct lib *l, struct lib_ticket *t, struct abdada_answer *out)
{
    struct tt_answer answer;
    enum client_result result = client_answer(l->client, t->id, lib_now(l), &answer);
    if (result == CLIENT_WAITING) {
        return ABDADA_WAITING;
    }
    if (result == CLIENT_READY) {
        *out = (struct abdada_answer){answer.score,
                                      answer.alpha,
                                      answer.beta,
                                      answer.move,
                                      answer.nproc,
                                      (uint8_t)answer.verdict,
                                      0};
        take_verdict(l, t, answer.verdict == TT_OPEN);
    } else {
        *out = alone(&t->ask);
        take_loss(l, t);
    }
    end_ticket(l, t);
    return result == CLIENT_READY ? ABDADA_OK : ABDADA_E_UNAVAILABLE;
}

static int await_answer(struct lib *l, struct lib_ticket *t, uint64_t until_us,
                        struct abdada_answer *out)
{
    (void)l->shell.drain(l->shell.self, l->client);
    for (;;) {
        int result = take_answer(l, t, out);
        if (result != ABDADA_WAITING || lib_now(l) >= until_us) {
            return result;
        }
        uint64_t ends = client_deadline(l->client, t->id);
        lib_wait(l, ends < until_us ? ends : until_us);
    }
}

int abdada_ask_send(struct abdada *t, const struct abdada_ask_op *op, abdada_ticket *ticket)
{
    struct lib *l;
    if (op == NULL || ticket == NULL || !is_ask(op->depth, op->alpha, op->beta, op->flags)) {
        return lib_wrong(t);
    }
    int result = lib_enter(t, &l);
    if (result != ABDADA_OK) {
        return result;
    }
    if (l->tickets == l->tickets_max) {
        return lib_leave(t, ABDADA_E_FULL);
    }
    struct tt_ask ask = ask_of(l, op);
    uint32_t id = send_ask(l, &ask);
    if (id != 0) {
        *ticket = id;
        (void)l->shell.drain(l->shell.self, l->client); /* what is queued leaves */
    }
    return lib_leave(t, id != 0 ? ABDADA_OK : ABDADA_E_UNAVAILABLE);
}

static int ask_take(struct abdada *t, abdada_ticket id, int timeout_ms,
                    struct abdada_answer *answer)
{
    struct lib *l;
    if (answer == NULL) {
        return lib_wrong(t);
    }
    int result = lib_enter(t, &l);
    if (result != ABDADA_OK) {
        return result;
    }
    struct lib_ticket *ticket = ticket_of(l, id);
    if (ticket == NULL) {
        return lib_leave(t, ABDADA_E_TICKET);
    }
    uint64_t until = timeout_ms < 0 ? UINT64_MAX : lib_now(l) + (uint64_t)timeout_ms * 1000;
    return lib_leave(t, await_answer(l, ticket, until, answer));
}

int abdada_ask_await(struct abdada *t, abdada_ticket ticket, int timeout_ms,
                     struct abdada_answer *answer)
{
    int result = ask_take(t, ticket, timeout_ms, answer);
    if (result < 0 && result != ABDADA_E_UNAVAILABLE && answer != NULL) {
        *answer = (struct abdada_answer){.verdict = ABDADA_ALONE};
    }
    return result;
}

int abdada_ask_poll(struct abdada *t, abdada_ticket ticket, struct abdada_answer *answer)
{
    return abdada_ask_await(t, ticket, 0, answer);
}

int abdada_cancel(struct abdada *t, abdada_ticket id)
{
    struct lib *l;
    int result = lib_enter(t, &l);
    if (result != ABDADA_OK) {
        return result;
    }
    struct lib_ticket *ticket = ticket_of(l, id);
    if (ticket == NULL) {
        return lib_leave(t, ABDADA_E_TICKET);
    }
    client_forget(l->client, id);
    take_loss(l, ticket);
    end_ticket(l, ticket);
    return lib_leave(t, ABDADA_OK);
}

/* As many under way as tickets are free. */
static int ask_all(struct lib *l, const struct abdada_ask_op *op, size_t count,
                   struct abdada_answer *answer)
{
    uint32_t id[LIB_TICKETS_MAX];
    unsigned room = l->tickets_max - l->tickets;
    size_t sent = 0, answered = 0;
    for (size_t i = 0; i < count; i++) {
        for (; sent < count && sent - i < room; sent++) {
            struct tt_ask ask = ask_of(l, &op[sent]);
            id[sent % room] = send_ask(l, &ask);
        }
        struct lib_ticket *ticket = ticket_of(l, id[i % room]);
        struct tt_ask ask = ask_of(l, &op[i]);
        answer[i] = alone(&ask);
        if (ticket != NULL) {
            answered += await_answer(l, ticket, UINT64_MAX, &answer[i]) == ABDADA_OK;
        }
    }
    return answered > 0 || count == 0 ? ABDADA_OK : ABDADA_E_UNAVAILABLE;
}

static int ask_many(struct abdada *t, const struct abdada_ask_op *op, size_t count,
                    struct abdada_answer *answer)
{
    struct lib *l;
    bool is_right = count == 0 || (op != NULL && answer != NULL);
    for (size_t i = 0; is_right && i < count; i++) {
        is_right = is_ask(op[i].depth, op[i].alpha, op[i].beta, op[i].flags);
    }
    if (!is_right) {
        return lib_wrong(t);
    }
    int result = lib_enter(t, &l);
    if (result != ABDADA_OK) {
        return result;
    }
    if (l->tickets == l->tickets_max) {
        return lib_leave(t, ABDADA_E_FULL);
    }
    return lib_leave(t, ask_all(l, op, count, answer));
}

int abdada_ask_many(struct abdada *t, const struct abdada_ask_op *op, size_t count,
                    struct abdada_answer *answer)
{
    int result = ask_many(t, op, count, answer);
    return result == ABDADA_E_UNAVAILABLE ? result : ask_error(result, op, count, answer);
}

int abdada_ask(struct abdada *t, uint64_t key, unsigned depth, int alpha, int beta, unsigned flags,
               struct abdada_answer *answer)
{
    struct abdada_ask_op op = {key, (int16_t)alpha, (int16_t)beta, (uint8_t)depth, (uint8_t)flags,
                               0};
    if (!is_ask(depth, alpha, beta, flags)) {
        return ask_error(lib_wrong(t), &op, 1, answer);
    }
    return abdada_ask_many(t, &op, 1, answer);
}

/* ---- stores and releases ---- */

/* Where it is registered; the owner of the key if we do not know. */
static unsigned leave_node(struct lib *l, uint64_t key, uint8_t depth, uint16_t slot)
{
    struct lib_node *node = lib_nodes_find(&l->nodes, key, depth, slot);
    if (node == NULL) {
        return client_owner(l->client, key);
    }
    unsigned where = node->where;
    lib_nodes_remove(&l->nodes, node);
    return where;
}

int abdada_store_many(struct abdada *t, const struct abdada_store_op *op, size_t count)
{
    struct lib *l;
    bool is_right = count == 0 || op != NULL;
    for (size_t i = 0; is_right && i < count; i++) {
        is_right = is_store(op[i].depth, op[i].score, op[i].bound, op[i].move);
    }
    if (!is_right) {
        return lib_wrong(t);
    }
    int result = lib_enter(t, &l);
    if (result != ABDADA_OK) {
        return result;
    }
    for (size_t i = 0; i < count; i++) {
        struct tt_store store = {op[i].key ^ l->mix, op[i].score, op[i].depth,
                                 op[i].bound,        op[i].move,  op[i].slot};
        unsigned where = leave_node(l, store.key, store.depth, store.slot);
        client_store(l->client, where, &store);
    }
    bool is_lost = count > 0 && client_shards_up(l->client) == 0;
    return lib_leave(t, is_lost ? ABDADA_E_UNAVAILABLE : ABDADA_OK);
}

int abdada_store(struct abdada *t, uint64_t key, unsigned depth, int score, unsigned bound,
                 unsigned move)
{
    if (!is_store(depth, score, bound, move)) {
        return lib_wrong(t);
    }
    struct abdada_store_op op = {key, (int16_t)score, (uint16_t)move,
                                 0,   (uint8_t)depth, (uint8_t)bound};
    return abdada_store_many(t, &op, 1);
}

int abdada_release_many(struct abdada *t, const struct abdada_release_op *op, size_t count)
{
    struct lib *l;
    bool is_right = count == 0 || op != NULL;
    for (size_t i = 0; is_right && i < count; i++) {
        is_right = op[i].depth <= TT_DEPTH_MAX;
    }
    if (!is_right) {
        return lib_wrong(t);
    }
    int result = lib_enter(t, &l);
    if (result != ABDADA_OK) {
        return result;
    }
    for (size_t i = 0; i < count; i++) {
        uint64_t key = op[i].key ^ l->mix;
        lib_leave_node_at(l, leave_node(l, key, op[i].depth, op[i].slot), key, op[i].depth,
                          op[i].slot);
    }
    bool is_lost = count > 0 && client_shards_up(l->client) == 0;
    return lib_leave(t, is_lost ? ABDADA_E_UNAVAILABLE : ABDADA_OK);
}

int abdada_release(struct abdada *t, uint64_t key, unsigned depth)
{
    struct abdada_release_op op = {.key = key, .depth = (uint8_t)depth};
    if (depth > TT_DEPTH_MAX) {
        return lib_wrong(t);
    }
    return abdada_release_many(t, &op, 1);
}

int abdada_flush(struct abdada *t)
{
    struct lib *l;
    int result = lib_enter(t, &l);
    if (result != ABDADA_OK) {
        return result;
    }
    client_flush(l->client, lib_now(l));
    (void)l->shell.drain(l->shell.self, l->client);
    return lib_leave(t, client_shards_up(l->client) > 0 ? ABDADA_OK : ABDADA_E_UNAVAILABLE);
}

/* ---- peeks ---- */

static uint32_t send_peek(struct lib *l, const struct abdada_peek_op *op, size_t count)
{
    struct tt_peek peek[LIB_PEEK_MAX];
    for (size_t i = 0; i < count; i++) {
        peek[i] = (struct tt_peek){op[i].key ^ l->mix, op[i].depth};
    }
    return client_peek(l->client, peek, (unsigned)count, lib_now(l));
}

static bool await_peek(struct lib *l, uint32_t id, size_t count, struct abdada_peeked *out)
{
    struct tt_peeked peeked[LIB_PEEK_MAX];
    enum client_result result;
    (void)l->shell.drain(l->shell.self, l->client);
    while ((result = client_peeked(l->client, id, lib_now(l), peeked)) == CLIENT_WAITING) {
        lib_wait(l, client_deadline(l->client, id));
    }
    for (size_t i = 0; result == CLIENT_READY && i < count; i++) {
        const struct tt_peeked *p = &peeked[i];
        out[i] = (struct abdada_peeked){p->lower, p->upper, p->move, p->nproc, p->depth, {0}};
    }
    return result == CLIENT_READY;
}

static size_t at_most(size_t a, size_t b)
{
    return a < b ? a : b;
}

static int peek_all(struct lib *l, const struct abdada_peek_op *op, size_t count,
                    struct abdada_peeked *out)
{
    uint32_t id[LIB_PEEKS];
    size_t messages = (count + LIB_PEEK_MAX - 1) / LIB_PEEK_MAX, sent = 0, answered = 0;
    for (size_t i = 0; i < messages; i++) {
        for (; sent < messages && sent - i < LIB_PEEKS; sent++) {
            size_t from = sent * LIB_PEEK_MAX;
            id[sent % LIB_PEEKS] = send_peek(l, op + from, at_most(count - from, LIB_PEEK_MAX));
        }
        size_t from = i * LIB_PEEK_MAX, n = at_most(count - from, LIB_PEEK_MAX);
        for (size_t k = from; k < from + n; k++) {
            out[k] = (struct abdada_peeked){.lower = TT_SCORE_MIN, .upper = TT_SCORE_MAX};
        }
        if (id[i % LIB_PEEKS] != 0) {
            answered += await_peek(l, id[i % LIB_PEEKS], n, out + from);
        }
    }
    return answered > 0 || count == 0 ? ABDADA_OK : ABDADA_E_UNAVAILABLE;
}

int abdada_peek_many(struct abdada *t, const struct abdada_peek_op *op, size_t count,
                     struct abdada_peeked *peeked)
{
    struct lib *l;
    bool is_right = count == 0 || (op != NULL && peeked != NULL);
    for (size_t i = 0; is_right && i < count; i++) {
        is_right = op[i].depth <= TT_DEPTH_MAX;
    }
    if (!is_right) {
        return lib_wrong(t);
    }
    int result = lib_enter(t, &l);
    return result == ABDADA_OK ? lib_leave(t, peek_all(l, op, count, peeked)) : result;
}

int abdada_peek(struct abdada *t, uint64_t key, unsigned depth, struct abdada_peeked *peeked)
{
    struct abdada_peek_op op = {.key = key, .depth = (uint8_t)depth};
    if (depth > TT_DEPTH_MAX) {
        return lib_wrong(t);
    }
    return abdada_peek_many(t, &op, 1, peeked);
}

/* ---- what shards send without being asked ---- */

void lib_table_on_node_done(void *self, const struct tt_store *result)
{
    struct lib *l = self;
    if (l->node_done != NULL) {
        struct abdada_store_op op = {result->key ^ l->mix, result->score, result->move,
                                     result->slot,         result->depth, result->bound};
        l->node_done(l->self, &op);
    }
}
