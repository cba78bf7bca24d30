/* The table over Redis: of the four operations a batch becomes one call, its answer one message;
 * the sums of history tables; SCAN and FLUSH. */
#include "common/rng.h"
#include "common/tt/ops.h"
#include "worker/redis/redis_shell_core.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WEIGHT_BYTES = 6, /* index, weight */
    WAIT_MIN_MS = 20, /* between two HISTORYs of a client */
    WAIT_EACH_MS = 10, /* for each session: everybody reads what all have added */
    WAIT_ALONE_MS = 100,
    PAGE_SHIFT = 40, /* a cursor of ours grows (PROTOCOL.md): above Redis's is the page's number */
    ENTRY_BYTES = 8 + REDIS_RESULT_BYTES,
};

/* The arguments that all scripts with in-flight entries begin with: boot, who asks, the prefix of
 * sessions. */
static void begin_args(struct redis_shell *s, unsigned shard)
{
    redis_shell_begin_args(s, shard);
    redis_shell_session_arg(s, s->shard[shard].session);
    redis_shell_prefix_arg(s, shard, "s:");
}

static struct redis_pending batch_of(const struct redis_shell *s, unsigned shard,
                                     enum redis_script script, uint32_t request, unsigned count)
{
    struct redis_pending p = redis_shell_pending(s, shard, script, request);
    p.count = (uint16_t)count;
    return p;
}

/* ---- RETRIEVE_ASK ---- */

bool redis_on_ask(struct redis_shell *s, unsigned shard, const struct proto_message *m)
{
    const struct proto_asks *list = &m->retrieve_ask.list;
    struct redis_pending p = batch_of(s, shard, REDIS_ASK, m->retrieve_ask.request, list->count);
    uint8_t *to = s->ops;
    redis_shell_begin(s, shard);
    for (uint32_t i = 0; i < list->count; i++) {
        const struct tt_ask *ask = &list->at[i];
        to = redis_put(to, redis_shell_result_key(s, shard, ask->key), 2);
        to = redis_put(to, redis_shell_inflight_key(s, shard, ask->key, ask->depth), 2);
        to = redis_put(to, (uint16_t)ask->alpha, 2);
        to = redis_put(to, (uint16_t)ask->beta, 2);
        to = redis_put(to, ask->depth, 1);
        to = redis_put(to, ask->flags, 1);
        to = redis_put(to, ask->slot, 2);
    }
    begin_args(s, shard);
    redis_shell_number_arg(s, REDIS_AGE_S);
    redis_shell_arg(s, s->ops, (size_t)(to - s->ops));
    if (list->count == 1) {
        p.ask = list->at[0];
    } else if (list->count > 1) {
        p.asks = malloc(list->count * sizeof *p.asks);
        if (p.asks == NULL) {
            return false;
        }
        memcpy(p.asks, list->at, list->count * sizeof *p.asks);
    }
    bool sent = redis_shell_call(s, &p);
    if (!sent) {
        free(p.asks);
    }
    return sent;
}

static struct tt_found found_of(const char *bytes)
{
    return (struct tt_found){
        .depth = (uint8_t)bytes[0],
        .lower = (int16_t)redis_get(bytes + 1, 2),
        .upper = (int16_t)redis_get(bytes + 3, 2),
        .move = (uint16_t)redis_get(bytes + 5, 2),
    };
}

static const struct tt_found nothing = {.lower = TT_SCORE_MIN, .upper = TT_SCORE_MAX};

static bool is_sound(const struct tt_found *found)
{
    return found->depth <= TT_DEPTH_MAX && found->lower >= TT_SCORE_MIN &&
           found->lower <= found->upper;
}

/* The server says whether it is CUT, because it registers the asker unless it is; what follows from
 * the entry is the common rule's (common/tt/ops.h). Where the two do not agree, nothing was found.
 */
static void read_answer(const char *bytes, const struct tt_ask *ask, struct tt_answer *out)
{
    struct tt_found found = found_of(bytes + 1);
    uint8_t verdict = (uint8_t)bytes[0];
    *out = (struct tt_answer){
        .alpha = ask->alpha,
        .beta = ask->beta,
        .move = found.move,
        .nproc = (uint16_t)redis_get(bytes + 1 + REDIS_RESULT_BYTES, 2),
    };
    bool is_cut = tt_ops_judge(&found, ask, out) == TT_CUT;
    out->verdict = (enum tt_verdict)verdict;
    if (!is_sound(&found) || verdict > TT_BUSY || is_cut != (verdict == TT_CUT) ||
        out->alpha >= out->beta) {
        *out = (struct tt_answer){
            .verdict = TT_OPEN, .alpha = ask->alpha, .beta = ask->beta, .nproc = out->nproc};
    }
}

void redis_asked(struct redis_shell *s, const struct redis_pending *p, const struct redisReply *r)
{
    struct tt_answer *answer = s->answers.answers;
    struct redis_shard *of = &s->shard[p->shard];
    struct proto_text text;
    static const enum redis_figure figure[] = {REDIS_FIGURE_opens, REDIS_FIGURE_cuts,
                                               REDIS_FIGURE_busy};
    bool ok = redis_reply_text(redis_reply_at(r, 0), &text) &&
              text.length == (size_t)p->count * REDIS_ANSWER_BYTES;
    for (unsigned i = 0; ok && i < p->count; i++) {
        const struct tt_ask *ask = p->asks != NULL ? &p->asks[i] : &p->ask;
        read_answer(text.at + (size_t)i * REDIS_ANSWER_BYTES, ask, &answer[i]);
        of->figure[figure[answer[i].verdict]]++;
    }
    redis_shell_complain_of(s, r, 1);
    if (ok) {
        struct proto_message m = {.type = PROTO_RETRIEVE_ANSWER};
        m.retrieve_answer.request = p->request;
        m.retrieve_answer.list = (struct proto_answers){p->count, answer};
        of->figure[REDIS_FIGURE_asks] += p->count;
        redis_shell_give(s, p->shard, &m);
    }
}

/* ---- PEEK ---- */

bool redis_on_peek(struct redis_shell *s, unsigned shard, const struct proto_message *m)
{
    const struct proto_peeks *list = &m->peek.list;
    struct redis_pending p = batch_of(s, shard, REDIS_PEEK, m->peek.request, list->count);
    redis_shell_begin(s, shard);
    for (uint32_t i = 0; i < list->count; i++) {
        uint8_t bytes[9];
        redis_put(bytes, list->at[i].key, 8);
        bytes[8] = list->at[i].depth;
        redis_shell_key(s, shard, "r:", bytes, 8);
        redis_shell_key(s, shard, "i:", bytes, 9);
    }
    begin_args(s, shard);
    return redis_shell_call(s, &p);
}

void redis_peeked(struct redis_shell *s, const struct redis_pending *p, const struct redisReply *r)
{
    struct tt_peeked *peeked = s->answers.peekeds;
    struct proto_text text;
    bool ok = redis_reply_text(redis_reply_at(r, 0), &text) &&
              text.length == (size_t)p->count * REDIS_PEEKED_BYTES;
    for (unsigned i = 0; ok && i < p->count; i++) {
        const char *at = text.at + (size_t)i * REDIS_PEEKED_BYTES;
        struct tt_found found = found_of(at);
        found = is_sound(&found) ? found : nothing;
        peeked[i] = (struct tt_peeked){
            .lower = found.lower,
            .upper = found.upper,
            .depth = found.depth,
            .move = found.move,
            .nproc = (uint16_t)redis_get(at + REDIS_RESULT_BYTES, 2),
        };
    }
    if (ok) {
        struct proto_message m = {.type = PROTO_PEEK_ANSWER};
        m.peek_answer.request = p->request;
        m.peek_answer.list = (struct proto_peekeds){p->count, peeked};
        s->shard[p->shard].figure[REDIS_FIGURE_peeks] += p->count;
        redis_shell_give(s, p->shard, &m);
    }
}

/* ---- STORE_HASH, RELEASE ---- */

bool redis_on_store(struct redis_shell *s, unsigned shard, const struct proto_message *m)
{
    const struct proto_stores *list = &m->store_hash.list;
    struct redis_pending p = batch_of(s, shard, REDIS_STORE, 0, list->count);
    uint8_t *to = s->ops;
    redis_shell_begin(s, shard);
    redis_shell_number_key(s, shard, "g:", s->namespace_id);
    for (uint32_t i = 0; i < list->count; i++) {
        const struct tt_store *store = &list->at[i];
        to = redis_put(to, store->key, 8);
        to = redis_put(to, store->depth, 1);
        to = redis_put(to, (uint16_t)store->score, 2);
        to = redis_put(to, store->bound, 1);
        to = redis_put(to, store->move, 2);
        to = redis_put(to, store->slot, 2);
        to = redis_put(to, redis_shell_result_key(s, shard, store->key), 2);
        to = redis_put(to, redis_shell_inflight_key(s, shard, store->key, store->depth), 2);
    }
    begin_args(s, shard);
    redis_shell_number_arg(s, REDIS_AGE_S);
    redis_shell_arg(s, s->ops, (size_t)(to - s->ops));
    redis_shell_header_arg(s, shard);
    redis_shell_number_arg(s, REDIS_RESULT_S);
    return redis_shell_call(s, &p);
}

bool redis_on_release(struct redis_shell *s, unsigned shard, const struct proto_message *m)
{
    const struct proto_releases *list = &m->release.list;
    struct redis_pending p = batch_of(s, shard, REDIS_RELEASE, 0, list->count);
    uint8_t *to = s->ops;
    redis_shell_begin(s, shard);
    for (uint32_t i = 0; i < list->count; i++) {
        const struct tt_release *release = &list->at[i];
        to = redis_put(to, release->slot, 2);
        to = redis_put(to, redis_shell_inflight_key(s, shard, release->key, release->depth), 2);
    }
    begin_args(s, shard);
    redis_shell_number_arg(s, REDIS_AGE_S);
    redis_shell_arg(s, s->ops, (size_t)(to - s->ops));
    return redis_shell_call(s, &p);
}

void redis_stored(struct redis_shell *s, const struct redis_pending *p, const struct redisReply *r)
{
    struct redis_shard *of = &s->shard[p->shard];
    bool is_store = p->script == REDIS_STORE;
    of->figure[is_store ? REDIS_FIGURE_stores : REDIS_FIGURE_releases] += p->count;
    of->figure[REDIS_FIGURE_node_dones] += (uint32_t)redis_reply_number_at(r, 0, UINT32_MAX);
    redis_shell_complain_of(s, r, 1);
}

/* ---- HISTORY ---- */

/* Redis keeps updates, and each client adds them up: a call then costs the server what it is long,
 * and the sums need no script. A client that comes late has what is left of the stream. */
static void begin_history(struct redis_shell *s, unsigned shard, uint64_t root_key)
{
    struct redis_history *h = &s->history;
    memset(h, 0, sizeof *h);
    h->root_key = root_key;
    h->shard = shard;
    h->epoch = (uint32_t)rng_next(&s->random) | 1;
    snprintf(h->last, sizeof h->last, "0-0");
}

bool redis_on_history(struct redis_shell *s, unsigned shard, const struct proto_message *m)
{
    const struct proto_history *asked = &m->history;
    struct redis_pending p = redis_shell_pending(s, shard, REDIS_HISTORY, asked->request);
    uint8_t *to = s->ops;
    if (s->history.root_key != asked->root_key || s->history.shard != shard ||
        s->history.epoch == 0) {
        begin_history(s, shard, asked->root_key);
    }
    p.id = asked->root_key;
    p.epoch = asked->epoch;
    p.cursor = asked->cursor;
    p.reads = s->history.reads;
    for (uint32_t i = 0; i < asked->list.count; i++) {
        to = redis_put(to, asked->list.at[i].index, 2);
        to = redis_put(to, asked->list.at[i].weight, 4);
    }
    s->shard[shard].figure[REDIS_FIGURE_history_published] += asked->list.count;
    redis_shell_begin(s, shard);
    redis_shell_number_key(s, shard, "h:", asked->root_key);
    redis_shell_named_key(s, shard, "m");
    redis_shell_begin_args(s, shard);
    redis_shell_text(s, s->history.last);
    redis_shell_arg(s, s->ops, (size_t)(to - s->ops));
    return redis_shell_call(s, &p);
}

static void add_weights(struct tt_history *sums, struct proto_text bytes)
{
    for (uint32_t at = 0; at + WEIGHT_BYTES <= bytes.length; at += WEIGHT_BYTES) {
        struct tt_weight one = {
            .index = (uint16_t)redis_get(bytes.at + at, 2),
            .weight = (uint32_t)redis_get(bytes.at + at + 2, 4),
        };
        if (one.index < TT_WEIGHTS) {
            tt_history_add(sums, &one, 1);
        }
    }
}

static uint32_t history_wait_ms(uint64_t sessions)
{
    uint64_t wait = sessions * WAIT_EACH_MS;
    return sessions <= 1 ? WAIT_ALONE_MS : wait < WAIT_MIN_MS ? WAIT_MIN_MS : (uint32_t)wait;
}

/* An answer that an earlier one has overtaken would be added twice. */
void redis_history_read(struct redis_shell *s, const struct redis_pending *p,
                        const struct redisReply *r)
{
    struct redis_history *h = &s->history;
    struct proto_message m = {.type = PROTO_HISTORY_ANSWER};
    struct proto_history_answer *answer = &m.history_answer;
    struct proto_text last, weights;
    bool is_next = h->root_key == p->id && h->shard == p->shard && h->reads == p->reads &&
                   redis_reply_text(redis_reply_at(r, 0), &last) &&
                   redis_reply_text(redis_reply_at(r, 1), &weights);
    *answer = (struct proto_history_answer){
        .request = p->request,
        .root_key = p->id,
        .epoch = p->epoch,
        .cursor = p->cursor,
        .now = p->cursor,
        .wait_ms = history_wait_ms(redis_reply_number_at(r, 2, UINT16_MAX)),
    };
    redis_shell_complain_of(s, r, 3);
    if (is_next) {
        snprintf(h->last, sizeof h->last, "%.*s", (int)(last.length < 31 ? last.length : 31),
                 last.at);
        h->reads++;
        add_weights(&h->sums, weights);
        answer->cursor = p->epoch == h->epoch ? p->cursor : 0;
        answer->list.at = s->answers.weights;
        answer->list.count =
            tt_history_read(&h->sums, answer->cursor, s->answers.weights, PROTO_BATCH_MAX);
        answer->epoch = h->epoch;
        answer->now = h->sums.now;
        answer->halvings = h->sums.halvings;
        s->shard[p->shard].figure[REDIS_FIGURE_history_sent] += answer->list.count;
    }
    redis_shell_give(s, p->shard, &m);
}

/* ---- SCAN, FLUSH ---- */

/* Redis's own SCAN goes through all keys of the server, of all shards and anybody else's, a page a
 * call. */
static const uint64_t cursor_mask = (UINT64_C(1) << PAGE_SHIFT) - 1;

static bool call_scan(struct redis_shell *s, const struct redis_pending *p)
{
    char pattern[REDIS_KEY_MAX];
    int n = snprintf(pattern, sizeof pattern, "%sr:*", s->shard[p->shard].prefix);
    redis_shell_begin(s, p->shard);
    s->keys = s->args = 1; /* boot alone */
    redis_shell_begin_args(s, p->shard);
    redis_shell_number_arg(s, p->id & cursor_mask);
    redis_shell_arg(s, pattern, (size_t)n);
    redis_shell_number_arg(s, (uint64_t)n - 1);
    redis_shell_number_arg(s, p->count); /* the least depth */
    redis_shell_text(s, p->is_flush ? "1" : "0");
    return redis_shell_call(s, p);
}

bool redis_on_scan(struct redis_shell *s, unsigned shard, const struct proto_message *m)
{
    struct redis_pending p = redis_shell_pending(s, shard, REDIS_SCAN, m->scan.request);
    p.id = m->scan.cursor;
    p.count = m->scan.depth;
    return call_scan(s, &p);
}

bool redis_on_flush(struct redis_shell *s, unsigned shard, const struct proto_message *m)
{
    struct redis_pending p = redis_shell_pending(s, shard, REDIS_SCAN, m->flush.request);
    p.is_flush = true;
    return call_scan(s, &p);
}

static void give_page(struct redis_shell *s, const struct redis_pending *p, uint64_t next,
                      struct proto_text entries)
{
    struct proto_message m = {.type = PROTO_SCANNED};
    struct tt_scanned *out = s->answers.scanneds;
    uint32_t count = entries.length / ENTRY_BYTES;
    count = count < PROTO_BATCH_MAX ? count : PROTO_BATCH_MAX;
    for (uint32_t i = 0, from = 0, end = count; from < end; from++) {
        const char *at = entries.at + (size_t)from * ENTRY_BYTES;
        out[i] = (struct tt_scanned){
            .key = redis_get(at, 8),
            .depth = (uint8_t)at[8],
            .lower = (int16_t)redis_get(at + 9, 2),
            .upper = (int16_t)redis_get(at + 11, 2),
            .move = (uint16_t)redis_get(at + 13, 2),
        };
        bool is_sound = out[i].depth <= TT_DEPTH_MAX && out[i].lower >= TT_SCORE_MIN &&
                        out[i].lower <= out[i].upper;
        i += is_sound ? 1 : 0;
        count -= is_sound ? 0 : 1;
    }
    m.scanned.request = p->request;
    m.scanned.next = next;
    m.scanned.list = (struct proto_scanneds){count, out};
    redis_shell_give(s, p->shard, &m);
}

void redis_scanned(struct redis_shell *s, const struct redis_pending *p, const struct redisReply *r)
{
    uint64_t cursor;
    struct proto_text entries;
    if (!redis_reply_number(redis_reply_at(r, 0), &cursor) || cursor > cursor_mask ||
        !redis_reply_text(redis_reply_at(r, 1), &entries)) {
        redis_shell_refuse(s, p->shard, PROTO_ERR_LIMIT, p->request, "no page of a Redis");
        return;
    }
    uint64_t next = cursor == 0 ? 0 : ((p->id >> PAGE_SHIFT) + 1) << PAGE_SHIFT | cursor;
    if (!p->is_flush) {
        give_page(s, p, next, entries);
    } else if (next != 0) {
        struct redis_pending more = *p;
        more.id = next;
        if (!call_scan(s, &more)) {
            redis_shell_refuse(s, p->shard, PROTO_ERR_LIMIT, p->request, "the Redis is busy");
        }
    } else {
        struct proto_message m = {.type = PROTO_FLUSHED};
        m.flushed.request = p->request;
        redis_shell_give(s, p->shard, &m);
    }
}
