/* The table over Redis: of the four operations a batch becomes one call, its answer one message;
 * SCAN and FLUSH. */
#include "common/rng.h"
#include "common/tt/ops.h"
#include "worker/redis/redis_shell_state.h"

#include <stdlib.h>
#include <string.h>

enum { ENTRY_BYTES = 8 + REDIS_RESULT_BYTES };

static struct redis_pending begin(struct redis_shell *s, unsigned shard, enum redis_script script,
                                  uint32_t request, unsigned count)
{
    struct redis_pending p = redis_shell_pending(s, shard, script, request, 0);
    p.count = (uint16_t)count;
    redis_shell_begin(s, &p);
    s->body = s->ops;
    return p;
}

/* ---- keys of nodes ---- */

/* A batch may name a node twice: then both operations are on one key, and the second finds what the
 * first has done. */
static unsigned node_key(struct redis_shell *s, unsigned shard, const char *kind,
                         const uint8_t *bytes, size_t length)
{
    unsigned at = (unsigned)rng_mix(redis_get((const char *)bytes, 8) + bytes[length - 1]);
    if (!s->is_hashed) {
        memset(s->place, 0, sizeof s->place);
        s->is_hashed = true;
    }
    for (;; at++) {
        uint16_t *place = &s->place[at % REDIS_PLACES];
        if (*place == 0) {
            *place = (uint16_t)redis_shell_key(s, shard, kind, bytes, length);
            return *place;
        }
        unsigned prefix = s->shard[shard].prefix_length;
        size_t kind_length = strlen(kind), whole = prefix + kind_length + length;
        const char *known = s->arg[*place - 1];
        if (s->arg_length[*place - 1] == whole && memcmp(known + prefix, kind, kind_length) == 0 &&
            memcmp(known + prefix + kind_length, bytes, length) == 0) {
            return *place;
        }
    }
}

/* Adds the keys of a node's result (unless `is_left`: it has none) and of who is in it, and writes
 * the keys' places. */
static uint8_t *put_keys(struct redis_shell *s, unsigned shard, uint64_t key, uint8_t depth,
                         bool is_left, uint8_t *to)
{
    uint8_t bytes[9];
    redis_put(redis_put(bytes, key, 8), depth, 1);
    to = is_left ? to : redis_put(to, node_key(s, shard, "r:", bytes, 8), 2);
    return redis_put(to, node_key(s, shard, "i:", bytes, 9), 2);
}

/* ---- RETRIEVE_ASK ---- */

bool redis_on_ask(struct redis_shell *s, unsigned shard, const struct proto_message *m)
{
    const struct proto_asks *list = &m->retrieve_ask.list;
    struct redis_pending p = begin(s, shard, REDIS_ASK, m->retrieve_ask.request, list->count);
    uint8_t *to = s->ops;
    for (uint32_t i = 0; i < list->count; i++) {
        const struct tt_ask *ask = &list->at[i];
        to = put_keys(s, shard, ask->key, ask->depth, false, to);
        to = redis_put(to, (uint16_t)ask->alpha, 2);
        to = redis_put(to, (uint16_t)ask->beta, 2);
        to = redis_put(to, ask->depth, 1);
        to = redis_put(to, ask->flags, 1);
        to = redis_put(to, ask->slot, 2);
    }
    s->body_length = (size_t)(to - s->ops);
    if (list->count == 1) {
        p.ask = list->at[0];
    } else if (list->count > 1) {
        p.asks = malloc(list->count * sizeof *p.asks);
        if (p.asks == NULL) {
            return false;
        }
        memcpy(p.asks, list->at, list->count * sizeof *p.asks);
    }
    bool sent = redis_shell_send(s, &p);
    if (!sent) {
        free(p.asks);
    }
    return sent;
}

/* False: no table has such an entry, and nothing was found. */
static bool read_result(const char *bytes, struct tt_found *out)
{
    static const struct tt_found nothing = {.lower = TT_SCORE_MIN, .upper = TT_SCORE_MAX};
    *out = (struct tt_found){
        .depth = (uint8_t)bytes[0],
        .lower = (int16_t)redis_get(bytes + 1, 2),
        .upper = (int16_t)redis_get(bytes + 3, 2),
        .move = (uint16_t)redis_get(bytes + 5, 2),
    };
    bool is_entry = tt_is_entry(out->lower, out->upper, out->depth);
    *out = is_entry ? *out : nothing;
    return is_entry;
}

/* The server says whether it is CUT, because it registers the asker unless it is; what follows from
 * the entry is the common rule's (common/tt/ops.h). Where the two do not agree, nothing was found.
 */
static void read_answer(const char *bytes, const struct tt_ask *ask, struct tt_answer *out)
{
    struct tt_found found;
    const bool is_sound = read_result(bytes + 1, &found);
    const uint8_t verdict = (uint8_t)bytes[0];
    *out = (struct tt_answer){
        .alpha = ask->alpha,
        .beta = ask->beta,
        .move = found.move,
        .nproc = (uint16_t)redis_get(bytes + 1 + REDIS_RESULT_BYTES, 2),
    };
    bool is_cut = tt_ops_judge(&found, ask, out) == TT_CUT;
    out->verdict = (enum tt_verdict)verdict;
    if (!is_sound || verdict > TT_BUSY || is_cut != (verdict == TT_CUT) ||
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
        of->figure[REDIS_FIGURE_asks] += p->count;
        REDIS_GIVE_ANSWER(s, p, RETRIEVE_ANSWER, retrieve_answer, .list = {p->count, answer});
    }
}

/* ---- PEEK ---- */

bool redis_on_peek(struct redis_shell *s, unsigned shard, const struct proto_message *m)
{
    const struct proto_peeks *list = &m->peek.list;
    struct redis_pending p = begin(s, shard, REDIS_PEEK, m->peek.request, list->count);
    for (uint32_t i = 0; i < list->count; i++) {
        uint8_t bytes[9];
        redis_put(redis_put(bytes, list->at[i].key, 8), list->at[i].depth, 1);
        redis_shell_key(s, shard, "r:", bytes, 8);
        redis_shell_key(s, shard, "i:", bytes, 9);
    }
    return redis_shell_send(s, &p);
}

void redis_peeked(struct redis_shell *s, const struct redis_pending *p, const struct redisReply *r)
{
    struct tt_peeked *peeked = s->answers.peekeds;
    struct proto_text text;
    bool ok = redis_reply_text(redis_reply_at(r, 0), &text) &&
              text.length == (size_t)p->count * REDIS_PEEKED_BYTES;
    for (unsigned i = 0; ok && i < p->count; i++) {
        const char *at = text.at + (size_t)i * REDIS_PEEKED_BYTES;
        struct tt_found found;
        (void)read_result(at, &found);
        peeked[i] = (struct tt_peeked){
            .lower = found.lower,
            .upper = found.upper,
            .depth = found.depth,
            .move = found.move,
            .nproc = (uint16_t)redis_get(at + REDIS_RESULT_BYTES, 2),
        };
    }
    if (ok) {
        s->shard[p->shard].figure[REDIS_FIGURE_peeks] += p->count;
        REDIS_GIVE_ANSWER(s, p, PEEK_ANSWER, peek_answer, .list = {p->count, peeked});
    }
}

/* ---- STORE_HASH, RELEASE ---- */

bool redis_on_store(struct redis_shell *s, unsigned shard, const struct proto_message *m)
{
    const struct proto_stores *list = &m->store_hash.list;
    struct redis_pending p = begin(s, shard, REDIS_STORE, 0, list->count);
    uint8_t *to = s->ops;
    for (uint32_t i = 0; i < list->count; i++) {
        const struct tt_store *store = &list->at[i];
        to = redis_put(to, store->key, 8);
        to = redis_put(to, store->depth, 1);
        to = redis_put(to, (uint16_t)store->score, 2);
        to = redis_put(to, store->bound, 1);
        to = redis_put(to, store->move, 2);
        to = redis_put(to, store->slot, 2);
        to = put_keys(s, shard, store->key, store->depth, false, to);
    }
    s->body_length = (size_t)(to - s->ops);
    return redis_shell_send(s, &p);
}

bool redis_on_release(struct redis_shell *s, unsigned shard, const struct proto_message *m)
{
    const struct proto_releases *list = &m->release.list;
    struct redis_pending p = begin(s, shard, REDIS_RELEASE, 0, list->count);
    uint8_t *to = s->ops;
    for (uint32_t i = 0; i < list->count; i++) {
        const struct tt_release *release = &list->at[i];
        to = redis_put(to, release->slot, 2);
        to = put_keys(s, shard, release->key, release->depth, true, to);
    }
    s->body_length = (size_t)(to - s->ops);
    return redis_shell_send(s, &p);
}

void redis_stored(struct redis_shell *s, const struct redis_pending *p, const struct redisReply *r)
{
    struct redis_shard *of = &s->shard[p->shard];
    bool is_store = p->script == REDIS_STORE;
    of->figure[is_store ? REDIS_FIGURE_stores : REDIS_FIGURE_releases] += p->count;
    of->figure[REDIS_FIGURE_node_dones] += (uint32_t)redis_reply_number_at(r, 0, UINT32_MAX);
    redis_shell_complain_of(s, r, 1);
}

/* ---- SCAN, FLUSH ---- */

/* Redis's own SCAN goes through all keys of the server, of all shards and anybody else's, a page a
 * call. */
bool redis_on_scan(struct redis_shell *s, unsigned shard, const struct proto_message *m)
{
    struct redis_pending p =
        redis_shell_pending(s, shard, REDIS_SCAN, m->scan.request, m->scan.cursor);
    p.count = m->scan.depth;
    return redis_shell_call(s, &p);
}

bool redis_on_flush(struct redis_shell *s, unsigned shard, const struct proto_message *m)
{
    struct redis_pending p = redis_shell_pending(s, shard, REDIS_SCAN, m->flush.request, 0);
    p.is_flush = true;
    return redis_shell_call(s, &p);
}

static void give_page(struct redis_shell *s, const struct redis_pending *p, uint64_t next,
                      struct proto_text entries)
{
    struct tt_scanned *out = s->answers.scanneds;
    uint32_t count = entries.length / ENTRY_BYTES;
    count = count < PROTO_BATCH_MAX ? count : PROTO_BATCH_MAX;
    uint32_t sound = 0;
    for (uint32_t i = 0; i < count; i++) {
        const char *at = entries.at + (size_t)i * ENTRY_BYTES;
        struct tt_found found;
        const bool is_sound = read_result(at + 8, &found);
        out[sound] = (struct tt_scanned){.key = redis_get(at, 8),
                                         .depth = found.depth,
                                         .lower = found.lower,
                                         .upper = found.upper,
                                         .move = found.move};
        sound += is_sound;
    }
    REDIS_GIVE_ANSWER(s, p, SCANNED, scanned, .next = next, .list = {sound, out});
}

void redis_scanned(struct redis_shell *s, const struct redis_pending *p, const struct redisReply *r)
{
    uint64_t cursor;
    struct proto_text entries;
    if (!redis_reply_number(redis_reply_at(r, 0), &cursor) || cursor > REDIS_CURSOR_MAX ||
        !redis_reply_text(redis_reply_at(r, 1), &entries)) {
        redis_shell_refuse(s, p->shard, PROTO_ERR_LIMIT, p->request, "no page of a Redis");
        return;
    }
    uint64_t next =
        cursor == 0 ? 0 : ((p->id >> REDIS_PAGE_SHIFT) + 1) << REDIS_PAGE_SHIFT | cursor;
    if (!p->is_flush) {
        give_page(s, p, next, entries);
    } else if (next != 0) {
        struct redis_pending more = *p;
        more.id = next;
        if (!redis_shell_call(s, &more)) {
            redis_shell_refuse(s, p->shard, PROTO_ERR_LIMIT, p->request, "the Redis is busy");
        }
    } else {
        REDIS_GIVE_ANSWER(s, p, FLUSHED, flushed, );
    }
}
