/* The four operations over Redis: a batch becomes one call, its answer one message. */
#include "common/tt/ops.h"
#include "worker/redis/redis_shell_core.h"

#include <stdlib.h>
#include <string.h>

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
    uint8_t *to = s->ops, namespace_id[8];
    redis_shell_begin(s, shard);
    redis_put(namespace_id, s->namespace_id, sizeof namespace_id);
    redis_shell_key(s, shard, "g:", namespace_id, sizeof namespace_id);
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
