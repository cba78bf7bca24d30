/* The four operations, a batch at a time: check all, fetch all buckets, then do all. A batch with
 * one bad operation is refused whole, before anything is touched. */
#include "common/rng.h"
#include "ttserver/core/call.h"

#include <string.h>

/* Each check says what is wrong with an operation; NULL: nothing. */
static const char *depth_fault(uint8_t depth)
{
    return depth <= TT_DEPTH_MAX ? NULL : "depth above 250";
}

static const char *ask_fault(const struct tt_ask *ask)
{
    if (ask->alpha < TT_SCORE_MIN || ask->alpha >= ask->beta) {
        return ask->alpha < TT_SCORE_MIN ? "alpha below -32767" : "alpha not below beta";
    }
    return (ask->flags & ~(TT_EXCLUSIVE | TT_STRICT)) != 0 ? "unknown flag"
                                                           : depth_fault(ask->depth);
}

static const char *store_fault(const struct tt_store *store)
{
    if (store->score < TT_SCORE_MIN) {
        return "score below -32767";
    }
    uint8_t bound = store->bound & (uint8_t)~TT_BESIDE;
    return bound < TT_LOWER || bound > TT_EXACT ? "unknown bound" : depth_fault(store->depth);
}

static const char *release_fault(const struct tt_release *release)
{
    return depth_fault(release->depth);
}

static const char *peek_fault(const struct tt_peek *peek)
{
    return depth_fault(peek->depth);
}

/* Defines LIST_are_ready(): false, and an ERROR sent, unless every operation may be done; then the
 * buckets are on the way. */
#define READY(list, element, fault_of, needs_results)                        \
    static bool list##_are_ready(struct ttcore_call *call, uint32_t request, \
                                 const struct proto_##list *batch)           \
    {                                                                        \
        struct ttcore *core = call->core;                                    \
        const char *fault = NULL;                                            \
        if (batch->count > core->options.batch_max) {                        \
            core->count.batches_refused++;                                   \
            ttcore_refuse(call, PROTO_ERR_LIMIT, request,                    \
                          #list ": more operations than batch_max");         \
            return false;                                                    \
        }                                                                    \
        for (uint32_t i = 0; i < batch->count && fault == NULL; i++) {       \
            fault = fault_of(&batch->at[i]);                                 \
        }                                                                    \
        if (fault != NULL) {                                                 \
            ttcore_refuse(call, PROTO_ERR_RANGE, request, fault);            \
            return false;                                                    \
        }                                                                    \
        for (uint32_t i = 0; i < batch->count; i++) {                        \
            const element *op = &batch->at[i];                               \
            if (needs_results) {                                             \
                tt_results_prefetch(&core->results, op->key);                \
            }                                                                \
            tt_inflight_prefetch(&core->inflight, op->key, op->depth);       \
        }                                                                    \
        core->count.batches++;                                               \
        core->count.list += batch->count;                                    \
        return true;                                                         \
    }
READY(asks, struct tt_ask, ask_fault, true)
READY(stores, struct tt_store, store_fault, true)
READY(releases, struct tt_release, release_fault, false)
READY(peeks, struct tt_peek, peek_fault, true)

/* Of a session, now: half of all is for one user. */
static uint32_t inflight_quota(const struct ttcore *core, const struct ttcore_user *user)
{
    const struct ttcore_options *o = &core->options;
    if (user->inflight >= (o->inflight_max + 1) / 2) {
        return 0;
    }
    return o->session_inflight_max > 0 ? o->session_inflight_max : UINT32_MAX;
}

void ttcore_on_ask(struct ttcore_call *call)
{
    struct ttcore *core = call->core;
    const struct proto_retrieve_ask *ask = &call->message->retrieve_ask;
    struct tt_answer *answer = call->actions->scratch->answer;
    uint64_t verdicts[3] = {0};
    if (!asks_are_ready(call, ask->request, &ask->list)) {
        return;
    }
    struct ttcore_user *user = call->session->user;
    for (uint32_t i = 0; i < ask->list.count; i++) {
        uint32_t before = core->inflight.entries;
        core->inflight.quota = inflight_quota(core, user);
        tt_ops_ask(&core->results, &core->inflight, &ask->list.at[i], call->session->id,
                   core->now_us, &answer[i]);
        user->inflight += core->inflight.entries - before;
        verdicts[answer[i].verdict]++;
    }
    CHECK_THAT(user->inflight <= core->inflight.entries, "a user's entries are among all");
    core->count.opens += verdicts[TT_OPEN];
    core->count.cuts += verdicts[TT_CUT];
    core->count.busy += verdicts[TT_BUSY];
    struct proto_message out = {.type = PROTO_RETRIEVE_ANSWER};
    out.retrieve_answer.request = ask->request;
    out.retrieve_answer.list = (struct proto_answers){ask->list.count, answer};
    ttcore_reply(call, &out);
}

void ttcore_on_peek(struct ttcore_call *call)
{
    struct ttcore *core = call->core;
    const struct proto_peek *peek = &call->message->peek;
    struct tt_peeked *peeked = call->actions->scratch->peeked;
    if (!peeks_are_ready(call, peek->request, &peek->list)) {
        return;
    }
    for (uint32_t i = 0; i < peek->list.count; i++) {
        tt_ops_peek(&core->results, &core->inflight, &peek->list.at[i], &peeked[i]);
    }
    struct proto_message out = {.type = PROTO_PEEK_ANSWER};
    out.peek_answer.request = peek->request;
    out.peek_answer.list = (struct proto_peekeds){peek->list.count, peeked};
    ttcore_reply(call, &out);
}

static void count_left(struct ttcore_user *user, uint32_t entries)
{
    CHECK_THAT(entries <= user->inflight, "a user leaves no more nodes than it is in");
    user->inflight -= entries;
}

void ttcore_on_release(struct ttcore_call *call)
{
    const struct proto_release *release = &call->message->release;
    if (!releases_are_ready(call, 0, &release->list)) {
        return;
    }
    uint32_t before = call->core->inflight.entries;
    for (uint32_t i = 0; i < release->list.count; i++) {
        tt_ops_release(&call->core->inflight, &release->list.at[i], call->session->id);
    }
    count_left(call->session->user, before - call->core->inflight.entries);
}

/* ---- stores, and the completion notices to other holders ---- */

static uint32_t *bucket_of(struct ttcore_scratch *scratch, uint32_t slot,
                           const struct tt_store *result)
{
    uint64_t hash = rng_mix(result->key ^ scratch->seed) + ((uint64_t)slot << 8 | result->depth);
    hash *= scratch->seed;
    return &scratch->notice_bucket[hash >> 32 & (TTCORE_NOTICE_BUCKETS - 1)];
}

static struct ttcore_notice *find_notice(struct ttcore_scratch *scratch, uint32_t slot,
                                         const struct tt_store *result)
{
    uint32_t at = scratch->notice_count > 0 ? *bucket_of(scratch, slot, result) : 0;
    for (; at != 0; at = scratch->notice[at - 1].chain) {
        struct ttcore_notice *notice = &scratch->notice[at - 1];
        if (notice->session == slot && notice->result.key == result->key &&
            notice->result.depth == result->depth) {
            return notice;
        }
    }
    return NULL;
}

/* Once per session and node, however many of its slots are holders and however often the batch
 * stores it: the last result stands. */
static void add_notice(struct ttcore_scratch *scratch, uint32_t slot, const struct tt_store *result)
{
    struct ttcore_notice *known = find_notice(scratch, slot, result);
    if (known != NULL) {
        known->result = *result;
        return;
    }
    if (scratch->notice_count == TTCORE_NOTICES_MAX) {
        return; /* NODE_DONE is a hint: the node is found finished at the next ask anyway */
    }
    if (scratch->notice_count == 0) {
        memset(scratch->notice_bucket, 0, sizeof scratch->notice_bucket);
    }
    uint32_t *bucket = bucket_of(scratch, slot, result);
    scratch->notice[scratch->notice_count] =
        (struct ttcore_notice){.result = *result, .session = slot, .chain = *bucket};
    *bucket = ++scratch->notice_count;
}

static void notify_holders(struct ttcore_call *call, const struct tt_store *store)
{
    struct ttcore *core = call->core;
    struct ttcore_scratch *scratch = call->actions->scratch;
    unsigned holders = tt_inflight_holders(&core->inflight, store->key, store->depth,
                                           scratch->holder, TTCORE_HOLDERS_MAX);
    for (unsigned i = 0; i < holders; i++) {
        const struct ttcore_session *session =
            ttcore_sessions_by_id(&core->sessions, scratch->holder[i].session);
        CHECK(session != NULL);
        if (session->flags & PROTO_WANTS_NODE_DONE) {
            struct tt_store result = *store;
            result.slot = 0;
            result.bound &= (uint8_t)~TT_BESIDE; /* how the table keeps it is not their affair */
            add_notice(scratch, ttcore_sessions_slot(&core->sessions, session), &result);
        }
    }
}

/* A message to each session: those of the first notice, then of the first that is left, ... */
static void send_notices(struct ttcore_call *call)
{
    struct ttcore *core = call->core;
    struct ttcore_scratch *scratch = call->actions->scratch;
    for (unsigned messages = 0; scratch->notice_count > 0 && messages < TTCORE_NOTIFIED_MAX;
         messages++) {
        uint32_t slot = scratch->notice[0].session;
        const struct ttcore_session *session = &core->sessions.slot[slot];
        struct proto_message out = {.type = PROTO_NODE_DONE};
        uint32_t count = 0, left = 0;
        for (uint32_t i = 0; i < scratch->notice_count; i++) {
            if (scratch->notice[i].session == slot) {
                scratch->list[count++] = scratch->notice[i].result;
            } else {
                scratch->notice[left++] = scratch->notice[i];
            }
        }
        scratch->notice_count = left;
        core->count.node_dones += count;
        out.node_done.list = (struct proto_stores){count, scratch->list};
        uint32_t first = ttcore_actions_target(call->actions, session->route, session->route_length,
                                               session->version);
        ttcore_actions_send(call->actions, &out, first, 1);
    }
}

void ttcore_on_store(struct ttcore_call *call)
{
    struct ttcore *core = call->core;
    struct ttcore_scratch *scratch = call->actions->scratch;
    const struct proto_stores *batch = &call->message->store_hash.list;
    if (!stores_are_ready(call, 0, batch)) {
        return;
    }
    uint64_t namespace_id = call->session->namespace_id;
    uint8_t generation = tt_generations_of(
        &core->generations, tt_generations_use(&core->generations, namespace_id), namespace_id);
    scratch->notice_count = 0;
    scratch->seed = rng_mix(core->options.secret) | 1;
    uint32_t before = core->inflight.entries;
    for (uint32_t i = 0; i < batch->count; i++) {
        unsigned others = tt_ops_store(&core->results, &core->inflight, &batch->at[i],
                                       call->session->id, generation);
        if (others > 0) {
            notify_holders(call, &batch->at[i]);
        }
    }
    count_left(call->session->user, before - core->inflight.entries);
    if (core->options.ledger != NULL) {
        ttcore_ledger_note(core->options.ledger, &core->results, batch->at, batch->count);
    }
    send_notices(call);
}
