/* Asks, stores, releases, peeks: checked here, because the client takes its caller's word. */
#include "worker/lib/lib.h"

#include "common/tt/ops.h"

#include <stdlib.h>

_Static_assert((int)ABDADA_OPEN == TT_OPEN && (int)ABDADA_CUT == TT_CUT &&
                   (int)ABDADA_BUSY == TT_BUSY && (int)ABDADA_LOWER == TT_LOWER &&
                   (int)ABDADA_UPPER == TT_UPPER && (int)ABDADA_EXACT == TT_EXACT &&
                   (int)ABDADA_BESIDE == TT_BESIDE && (int)ABDADA_EXCLUSIVE == TT_EXCLUSIVE &&
                   (int)ABDADA_STRICT == TT_STRICT && (int)ABDADA_ANY_DEPTH == TT_DEPTH_MAX,
               "the header's numbers are those of messages");

bool lib_table_open(struct lib *l)
{
    unsigned size = 1;
    while (size < l->tickets_max + LIB_LISTS + LIB_RENEWALS) { /* as the client's */
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

static int16_t in_range(int score)
{
    score = score < TT_SCORE_MIN ? TT_SCORE_MIN : score;
    return (int16_t)(score > TT_SCORE_MAX ? TT_SCORE_MAX : score);
}

static bool is_ask(unsigned depth, int alpha, int beta, unsigned flags)
{
    return depth <= TT_DEPTH_MAX && is_score(alpha) && is_score(beta) && alpha < beta &&
           (flags & ~(unsigned)(TT_EXCLUSIVE | TT_STRICT)) == 0;
}

static bool is_result(unsigned depth, int score, unsigned bound, unsigned move)
{
    unsigned proved = bound & ~(unsigned)TT_BESIDE;
    return depth <= TT_DEPTH_MAX && is_score(score) && proved >= TT_LOWER && proved <= TT_EXACT &&
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

/* `ticket`: as lib_node.ticket. */
static void register_node(struct lib *l, const struct lib_asked *a, uint32_t ticket,
                          uint64_t now_us)
{
    struct lib_node node = {.key = a->ask.key,
                            .asked_us = now_us,
                            .ticket = ticket,
                            .slot = a->ask.slot,
                            .depth = a->ask.depth,
                            .where = a->where};
    lib_nodes_add(&l->nodes, &node);
}

/* The shard may have counted us from now on. */
static void enter_node(struct lib *l, struct lib_asked *a, uint64_t now_us)
{
    const struct tt_ask *ask = &a->ask;
    struct lib_node *node = lib_nodes_find(&l->nodes, ask->key, ask->depth, ask->slot);
    a->is_move = false;
    if (node == NULL) {
        register_node(l, a, a->id, now_us);
        return;
    }
    if (node->where != a->where) { /* another shard owns the key by now */
        lib_leave_node_at(l, node->where, ask->key, ask->depth, ask->slot);
        a->is_move = node->ticket == 0;
    }
    node->ticket = node->ticket != 0 ? a->id : 0;
    node->where = a->where;
    node->asked_us = now_us;
}

/* 0: not sent. */
static uint32_t send_ask(struct lib *l, const struct tt_ask *ask)
{
    struct lib_asked asked = {.ask = *ask};
    uint64_t now = lib_now(l);
    asked.id = client_ask(l->lane.client, ask, 1, now, &asked.where);
    if (asked.id != 0) {
        enter_node(l, &asked, now);
        l->ticket[asked.id & l->ticket_mask] = asked;
        l->tickets++;
    }
    return asked.id;
}

static struct lib_asked *ticket_of(const struct lib *l, uint32_t id)
{
    struct lib_asked *t = &l->ticket[id & l->ticket_mask];
    return id != 0 && t->id == id ? t : NULL;
}

/* NULL: it was left since the ask. */
static struct lib_node *node_of(const struct lib *l, const struct lib_asked *t)
{
    return lib_nodes_find(&l->nodes, t->ask.key, t->ask.depth, t->ask.slot);
}

/* Registers us, or not: forgets the node then, unless we were in it before. */
static void on_verdict(struct lib *l, const struct lib_asked *t, bool is_open)
{
    struct lib_node *node = node_of(l, t);
    if (node == NULL) {
        if (is_open && t->is_awaited) { /* it is in the list twice, and was BUSY the first time */
            register_node(l, t, 0, lib_now(l));
        }
        return;
    }
    if (is_open) {
        node->ticket = node->where == t->where ? 0 : node->ticket;
    } else if (node->ticket == t->id || (t->is_move && node->where == t->where)) {
        lib_nodes_remove(&l->nodes, node);
    }
}

/* There will be no verdict, and the shard may have counted us. What the caller was in before it
 * is in still: asked for again at once. */
static void on_loss(struct lib *l, const struct lib_asked *t)
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

static void end_ticket(struct lib *l, struct lib_asked *t)
{
    t->id = 0;
    l->tickets--;
}

/* What an ask was answered; its loss, too, has an answer. True: it was not lost. */
static bool on_answer(struct lib *l, const struct lib_asked *t, bool is_ready,
                      const struct tt_answer *answer, struct abdada_answer *out)
{
    if (!is_ready || (int)answer->verdict == CLIENT_UNANSWERED) {
        *out = alone(&t->ask);
        on_loss(l, t);
        return false;
    }
    *out = (struct abdada_answer){answer->score,
                                  answer->alpha,
                                  answer->beta,
                                  answer->move,
                                  answer->nproc,
                                  (uint8_t)answer->verdict,
                                  0};
    if (answer->verdict == TT_CUT) {
        out->bound = (uint8_t)tt_bound_of(answer->score, t->ask.alpha, t->ask.beta);
    }
    on_verdict(l, t, answer->verdict == TT_OPEN);
    return true;
}

static int poll_answer(struct lib *l, struct lib_asked *t, struct abdada_answer *out)
{
    struct tt_answer answer;
    enum client_result result = client_answer(l->lane.client, t->id, lib_now(l), &answer);
    if (result == CLIENT_WAITING) {
        return ABDADA_WAITING;
    }
    bool is_answered = on_answer(l, t, result == CLIENT_READY, &answer, out);
    end_ticket(l, t);
    return is_answered ? ABDADA_OK : ABDADA_E_UNAVAILABLE;
}

static int await_answer(struct lib *l, struct lib_asked *t, uint64_t until_us,
                        struct abdada_answer *out)
{
    lib_receive(l);
    for (;;) {
        int result = poll_answer(l, t, out);
        if (result != ABDADA_WAITING || lib_now(l) >= until_us) {
            return result;
        }
        uint64_t ends = client_deadline(l->lane.client, t->id);
        lib_wait(l, ends < until_us ? ends : until_us);
    }
}

int abdada_ask_send(struct abdada *t, const struct abdada_ask_op *op, abdada_ticket *ticket)
{
    /* Another thread may change it after the check. Zeroes are no ask. */
    const struct abdada_ask_op copy = op != NULL ? *op : (struct abdada_ask_op){.depth = 0};
    bool is_right = ticket != NULL && is_ask(copy.depth, copy.alpha, copy.beta, copy.flags);
    LIB_ENTER_OR_RETURN(t, is_right, l);
    if (l->tickets == l->tickets_max) {
        return lib_leave(t, ABDADA_E_FULL);
    }
    struct tt_ask ask = ask_of(l, &copy);
    uint32_t id = send_ask(l, &ask);
    if (id != 0) {
        *ticket = id;
        lib_receive(l); /* what is queued leaves */
    }
    return lib_leave(t, id != 0 ? ABDADA_OK : ABDADA_E_UNAVAILABLE);
}

int abdada_ask_await(struct abdada *t, abdada_ticket id, int timeout_ms,
                     struct abdada_answer *answer)
{
    struct lib *l;
    int result = lib_enter(t, answer != NULL, &l);
    struct lib_asked *ticket = result == ABDADA_OK ? ticket_of(l, id) : NULL;
    if (ticket != NULL) {
        uint64_t until = timeout_ms < 0 ? UINT64_MAX : lib_now(l) + (uint64_t)timeout_ms * 1000;
        return lib_leave(t, await_answer(l, ticket, until, answer));
    }
    if (answer != NULL) {
        *answer = (struct abdada_answer){.verdict = ABDADA_ALONE};
    }
    return result == ABDADA_OK ? lib_leave(t, ABDADA_E_TICKET) : result;
}

int abdada_ask_poll(struct abdada *t, abdada_ticket ticket, struct abdada_answer *answer)
{
    return abdada_ask_await(t, ticket, 0, answer);
}

static void end_by_loss(struct lib *l, struct lib_asked *t)
{
    client_forget(l->lane.client, t->id);
    on_loss(l, t);
    end_ticket(l, t);
}

int abdada_cancel(struct abdada *t, abdada_ticket id)
{
    LIB_ENTER_OR_RETURN(t, true, l);
    struct lib_asked *ticket = ticket_of(l, id);
    if (ticket == NULL) {
        return lib_leave(t, ABDADA_E_TICKET);
    }
    end_by_loss(l, ticket);
    return lib_leave(t, ABDADA_OK);
}

/* ---- lists of asks: one message a shard ---- */

static void send_list(struct lib *l, struct lib_list *list, const struct abdada_ask_op *op,
                      size_t count)
{
    struct tt_ask *ask = list->ask;
    uint64_t now = lib_now(l);
    for (size_t i = 0; i < count; i++) {
        ask[i] = ask_of(l, &op[i]);
        /* The caller's array may have changed after it was checked. */
        if (!is_ask(ask[i].depth, ask[i].alpha, ask[i].beta, 0)) {
            ask[i].alpha = 0;
            ask[i].beta = 1;
            ask[i].depth = 1;
        }
    }
    list->id = client_ask(l->lane.client, ask, (unsigned)count, now, list->where);
    for (size_t i = 0; i < count; i++) {
        list->is_move[i] = false;
        if (list->where[i] != CLIENT_NOWHERE) {
            struct lib_asked asked = {.ask = ask[i], .id = list->id, .where = list->where[i]};
            enter_node(l, &asked, now);
            list->is_move[i] = asked.is_move;
        }
    }
}

/* Returns how many were answered. */
static size_t await_list(struct lib *l, const struct lib_list *list, size_t count,
                         struct abdada_answer *out)
{
    struct tt_answer answer[LIB_LIST_MAX];
    enum client_result result = CLIENT_LOST;
    size_t answered = 0;
    lib_receive(l);
    while (list->id != 0 && (result = client_answer(l->lane.client, list->id, lib_now(l),
                                                    answer)) == CLIENT_WAITING) {
        lib_wait(l, client_deadline(l->lane.client, list->id));
    }
    for (size_t i = 0; i < count; i++) {
        struct lib_asked asked = {list->ask[i], list->id, list->where[i], list->is_move[i], true};
        if (asked.where == CLIENT_NOWHERE) {
            out[i] = alone(&asked.ask);
        } else {
            answered += on_answer(l, &asked, result == CLIENT_READY, &answer[i], &out[i]);
        }
    }
    return answered;
}

static size_t at_most(size_t a, size_t b)
{
    return a < b ? a : b;
}

static int ask_all(struct lib *l, const struct abdada_ask_op *op, size_t count,
                   struct abdada_answer *answer)
{
    struct lib_list *list = l->list;
    size_t lists = (count + LIB_LIST_MAX - 1) / LIB_LIST_MAX, sent = 0, answered = 0;
    for (size_t i = 0; i < lists; i++) {
        for (; sent < lists && sent - i < LIB_LISTS; sent++) {
            size_t from = sent * LIB_LIST_MAX;
            send_list(l, &list[sent % LIB_LISTS], op + from, at_most(count - from, LIB_LIST_MAX));
        }
        size_t from = i * LIB_LIST_MAX;
        answered +=
            await_list(l, &list[i % LIB_LISTS], at_most(count - from, LIB_LIST_MAX), answer + from);
    }
    return answered > 0 || count == 0 ? ABDADA_OK : ABDADA_E_UNAVAILABLE;
}

int abdada_ask_many(struct abdada *t, const struct abdada_ask_op *op, size_t count,
                    struct abdada_answer *answer)
{
    struct lib *l;
    bool is_right = count == 0 || (op != NULL && answer != NULL);
    for (size_t i = 0; is_right && i < count; i++) {
        is_right = is_ask(op[i].depth, op[i].alpha, op[i].beta, op[i].flags);
    }
    int result = lib_enter(t, is_right, &l);
    if (result == ABDADA_OK && l->tickets < l->tickets_max) {
        return lib_leave(t, ask_all(l, op, count, answer));
    }
    return ask_error(result == ABDADA_OK ? lib_leave(t, ABDADA_E_FULL) : result, op, count, answer);
}

int abdada_ask(struct abdada *t, uint64_t key, unsigned depth, int alpha, int beta, unsigned flags,
               struct abdada_answer *answer)
{
    struct abdada_ask_op op = {key, in_range(alpha), in_range(beta), (uint8_t)depth, (uint8_t)flags,
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
        return client_owner(l->lane.client, key);
    }
    unsigned where = node->where;
    lib_nodes_remove(&l->nodes, node);
    return where;
}

/* Many leave at once: the shard takes them while the caller goes on. */
static int end_leaves(struct lib *l, size_t count)
{
    if (count >= LIB_FLUSH_FROM) {
        client_flush(l->lane.client, lib_now(l));
    }
    return count > 0 && client_shards_up(l->lane.client) == 0 ? ABDADA_E_UNAVAILABLE : ABDADA_OK;
}

int abdada_store_many(struct abdada *t, const struct abdada_store_op *op, size_t count)
{
    bool is_right = count == 0 || op != NULL;
    for (size_t i = 0; is_right && i < count; i++) {
        is_right = is_result(op[i].depth, op[i].score, op[i].bound, op[i].move);
    }
    LIB_ENTER_OR_RETURN(t, is_right, l);
    for (size_t i = 0; i < count; i++) {
        struct tt_store store = {op[i].key ^ l->mix, op[i].score, op[i].depth,
                                 op[i].bound,        op[i].move,  op[i].slot};
        unsigned where = leave_node(l, store.key, store.depth, store.slot);
        client_store(l->lane.client, where, &store);
    }
    return lib_leave(t, end_leaves(l, count));
}

/* False: an argument is out of range. */
static bool make_result(struct abdada_store_op *out, uint64_t key, unsigned depth, int score,
                        unsigned bound, unsigned move)
{
    *out = (struct abdada_store_op){key, (int16_t)score, (uint16_t)move,
                                    0,   (uint8_t)depth, (uint8_t)bound};
    return is_result(depth, score, bound, move);
}

int abdada_store(struct abdada *t, uint64_t key, unsigned depth, int score, unsigned bound,
                 unsigned move)
{
    struct abdada_store_op op;
    return make_result(&op, key, depth, score, bound, move) ? abdada_store_many(t, &op, 1)
                                                            : lib_wrong(t);
}

int abdada_release_many(struct abdada *t, const struct abdada_release_op *op, size_t count)
{
    bool is_right = count == 0 || op != NULL;
    for (size_t i = 0; is_right && i < count; i++) {
        is_right = op[i].depth <= TT_DEPTH_MAX;
    }
    LIB_ENTER_OR_RETURN(t, is_right, l);
    for (size_t i = 0; i < count; i++) {
        uint64_t key = op[i].key ^ l->mix;
        lib_leave_node_at(l, leave_node(l, key, op[i].depth, op[i].slot), key, op[i].depth,
                          op[i].slot);
    }
    return lib_leave(t, end_leaves(l, count));
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
    LIB_ENTER_OR_RETURN(t, true, l);
    client_flush(l->lane.client, lib_now(l));
    lib_receive(l);
    return lib_leave(t, client_shards_up(l->lane.client) > 0 ? ABDADA_OK : ABDADA_E_UNAVAILABLE);
}

/* ---- the feed ---- */

int abdada_share_many(struct abdada *t, const struct abdada_store_op *op, size_t count)
{
    struct lib_feed *f = NULL;
    bool is_right = count == 0 || op != NULL;
    for (size_t i = 0; is_right && i < count; i++) {
        is_right = is_result(op[i].depth, op[i].score, op[i].bound, op[i].move);
    }
    int result = is_right ? lib_feed_of(t, &f) : lib_wrong(t);
    for (size_t i = 0; f != NULL && i < count; i++) {
        const struct abdada_store_op copy = op[i]; /* which may have changed since the check */
        if (is_result(copy.depth, copy.score, copy.bound, copy.move)) {
            result = lib_feed_put(f, &copy) ? result : ABDADA_E_FULL;
        }
    }
    return result;
}

int abdada_share(struct abdada *t, uint64_t key, unsigned depth, int score, unsigned bound,
                 unsigned move)
{
    struct abdada_store_op op;
    return make_result(&op, key, depth, score, bound, move) ? abdada_share_many(t, &op, 1)
                                                            : lib_wrong(t);
}

int abdada_take_shared(struct abdada *t, struct abdada_store_op *out, size_t capacity)
{
    LIB_ENTER_OR_RETURN(t, out != NULL || capacity == 0, l);
    return lib_leave(t, l->feed != NULL ? lib_feed_take(l, out, capacity) : ABDADA_E_ROLE);
}

/* ---- peeks ---- */

static uint32_t send_peek(struct lib *l, const struct abdada_peek_op *op, size_t count)
{
    struct tt_peek peek[LIB_LIST_MAX];
    for (size_t i = 0; i < count; i++) {
        peek[i] = (struct tt_peek){op[i].key ^ l->mix, op[i].depth};
    }
    return client_peek(l->lane.client, peek, (unsigned)count, lib_now(l));
}

static bool await_peek(struct lib *l, uint32_t id, size_t count, struct abdada_peeked *out)
{
    struct tt_peeked peeked[LIB_LIST_MAX];
    enum client_result result;
    lib_receive(l);
    while ((result = client_peeked(l->lane.client, id, lib_now(l), peeked)) == CLIENT_WAITING) {
        lib_wait(l, client_deadline(l->lane.client, id));
    }
    for (size_t i = 0; result == CLIENT_READY && i < count; i++) {
        const struct tt_peeked *p = &peeked[i];
        out[i] = (struct abdada_peeked){p->lower, p->upper, p->move, p->nproc, p->depth, {0}};
    }
    return result == CLIENT_READY;
}

static int peek_all(struct lib *l, const struct abdada_peek_op *op, size_t count,
                    struct abdada_peeked *out)
{
    uint32_t id[LIB_LISTS];
    size_t messages = (count + LIB_LIST_MAX - 1) / LIB_LIST_MAX, sent = 0, answered = 0;
    for (size_t i = 0; i < messages; i++) {
        for (; sent < messages && sent - i < LIB_LISTS; sent++) {
            size_t from = sent * LIB_LIST_MAX;
            id[sent % LIB_LISTS] = send_peek(l, op + from, at_most(count - from, LIB_LIST_MAX));
        }
        size_t from = i * LIB_LIST_MAX, n = at_most(count - from, LIB_LIST_MAX);
        for (size_t k = from; k < from + n; k++) {
            out[k] = (struct abdada_peeked){.lower = TT_SCORE_MIN, .upper = TT_SCORE_MAX};
        }
        if (id[i % LIB_LISTS] != 0) {
            answered += await_peek(l, id[i % LIB_LISTS], n, out + from);
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
    int result = lib_enter(t, is_right, &l);
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

void lib_table_clear(struct lib *l)
{
    for (unsigned i = 0; i <= l->ticket_mask; i++) {
        if (l->ticket[i].id != 0) {
            end_by_loss(l, &l->ticket[i]);
        }
    }
    while (l->nodes.count > 0) {
        struct lib_node *node = l->nodes.at;
        lib_leave_node_at(l, node->where, node->key, node->depth, node->slot);
        lib_nodes_remove(&l->nodes, node);
    }
}

/* ---- what shards send without being asked ---- */

void lib_table_on_node_done(struct lib *l, const struct proto_node_done *done)
{
    for (uint32_t i = 0; l->node_done != NULL && i < done->list.count; i++) {
        const struct tt_store *result = &done->list.at[i];
        struct abdada_store_op op = {result->key ^ l->mix, result->score, result->move,
                                     result->slot,         result->depth, result->bound};
        l->node_done(l->self, &op);
    }
}
