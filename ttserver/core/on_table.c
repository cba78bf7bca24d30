/* The four operations, a batch at a time: check all and fetch their buckets, then do all. A batch
 * with one bad operation is refused whole, before anything is touched. docs/design.md section 2
 * says what an operation does, section 10 how it comes here. */
#include "common/rng.h"
#include "ttserver/core/core_state.h"

#include <string.h>

static const char too_deep[] = "depth above 250";

/* Answers ERROR: the batch is too long, or one of its operations is at fault. */
static void refuse_batch(struct ttcore_call *call, uint32_t request, uint32_t count,
                         const char *fault, const char *too_long)
{
    const bool is_too_long = count > call->core->options.batch_max;
    call->core->count.batches_refused += is_too_long;
    ttcore_refuse(call, is_too_long ? PROTO_ERR_LIMIT : PROTO_ERR_RANGE, request,
                  is_too_long ? too_long : fault);
}

void ttcore_on_ask(struct ttcore_call *call)
{
    struct ttcore *core = call->core;
    struct ttcore_user *user = call->session->user;
    const struct proto_retrieve_ask *ask = &call->message->retrieve_ask;
    const struct proto_asks *list = &ask->list;
    struct tt_answer *answer = call->actions->scratch->answer;
    uint64_t verdicts[3] = {0};
    const char *fault = NULL;

    /* 1. Check all, and fetch their buckets. */
    for (uint32_t i = 0; i < list->count && fault == NULL; i++) {
        const struct tt_ask *op = &list->at[i];
        fault = op->alpha < TT_SCORE_MIN                    ? "alpha below -32767"
                : op->alpha >= op->beta                     ? "alpha not below beta"
                : (op->flags & ~(TT_EXCLUSIVE | TT_STRICT)) ? "unknown flag"
                : op->depth > TT_DEPTH_MAX                  ? too_deep
                                                            : NULL;
        tt_results_prefetch(&core->results, op->key);
        tt_inflight_prefetch(&core->inflight, op->key, op->depth);
    }
    if (fault != NULL || list->count > core->options.batch_max) {
        refuse_batch(call, ask->request, list->count, fault,
                     "asks: more operations than batch_max");
        return;
    }
    core->count.batches++;
    core->count.asks += list->count;

    /* 2. CUT, BUSY, or OPEN: then the session joins the holders of the node. It is answered OPEN
     * but not registered when it has its quota, or its user half of all in-flight entries. */
    const uint32_t user_max = (core->options.inflight_max + 1) / 2;
    const uint32_t session_max = core->options.session_inflight_max;
    for (uint32_t i = 0; i < list->count; i++) {
        uint32_t before = core->inflight.entries;
        core->inflight.quota = user->inflight >= user_max ? 0
                               : session_max > 0          ? session_max
                                                          : UINT32_MAX;
        tt_ops_ask(&core->results, &core->inflight, &list->at[i], call->session->id, core->now_us,
                   &answer[i]);
        user->inflight += core->inflight.entries - before;
        verdicts[answer[i].verdict]++;
    }
    CHECK_THAT(user->inflight <= core->inflight.entries, "a user's entries are among all");
    core->count.opens += verdicts[TT_OPEN];
    core->count.cuts += verdicts[TT_CUT];
    core->count.busy += verdicts[TT_BUSY];

    /* 3. One RETRIEVE_ANSWER, in the order of the asks. */
    struct proto_message out = {.type = PROTO_RETRIEVE_ANSWER};
    out.retrieve_answer.request = ask->request;
    out.retrieve_answer.list = (struct proto_answers){list->count, answer};
    ttcore_reply(call, &out);
}

void ttcore_on_peek(struct ttcore_call *call)
{
    struct ttcore *core = call->core;
    const struct proto_peek *peek = &call->message->peek;
    const struct proto_peeks *list = &peek->list;
    struct tt_peeked *peeked = call->actions->scratch->peeked;
    const char *fault = NULL;
    for (uint32_t i = 0; i < list->count && fault == NULL; i++) {
        const struct tt_peek *op = &list->at[i];
        fault = op->depth > TT_DEPTH_MAX ? too_deep : NULL;
        tt_results_prefetch(&core->results, op->key);
        tt_inflight_prefetch(&core->inflight, op->key, op->depth);
    }
    if (fault != NULL || list->count > core->options.batch_max) {
        refuse_batch(call, peek->request, list->count, fault,
                     "peeks: more operations than batch_max");
        return;
    }
    core->count.batches++;
    core->count.peeks += list->count;
    for (uint32_t i = 0; i < list->count; i++) {
        tt_ops_peek(&core->results, &core->inflight, &list->at[i], &peeked[i]);
    }
    struct proto_message out = {.type = PROTO_PEEK_ANSWER};
    out.peek_answer.request = peek->request;
    out.peek_answer.list = (struct proto_peekeds){list->count, peeked};
    ttcore_reply(call, &out);
}

/* `before`: how many entries there were before the sender left nodes. */
static void count_left(struct ttcore_call *call, uint32_t before)
{
    uint32_t left = before - call->core->inflight.entries;
    CHECK_THAT(left <= call->session->user->inflight, "a user leaves no more nodes than it is in");
    call->session->user->inflight -= left;
}

void ttcore_on_release(struct ttcore_call *call)
{
    struct ttcore *core = call->core;
    const struct proto_releases *list = &call->message->release.list;
    const char *fault = NULL;
    for (uint32_t i = 0; i < list->count && fault == NULL; i++) {
        const struct tt_release *op = &list->at[i];
        fault = op->depth > TT_DEPTH_MAX ? too_deep : NULL;
        tt_inflight_prefetch(&core->inflight, op->key, op->depth);
    }
    if (fault != NULL || list->count > core->options.batch_max) {
        refuse_batch(call, 0, list->count, fault, "releases: more operations than batch_max");
        return;
    }
    core->count.batches++;
    core->count.releases += list->count;
    uint32_t before = core->inflight.entries;
    for (uint32_t i = 0; i < list->count; i++) {
        tt_ops_release(&core->inflight, &list->at[i], call->session->id);
    }
    count_left(call, before);
}

/* Once per session and node, however many of its slots are holders and however often the batch
 * stores it: the last result stands. */
static void add_notice(struct ttcore_scratch *scratch, uint32_t slot, const struct tt_store *result)
{
    if (scratch->notice_count == 0) {
        memset(scratch->notice_bucket, 0, sizeof scratch->notice_bucket);
    }
    uint64_t hash = rng_mix(result->key ^ scratch->seed) + ((uint64_t)slot << 8 | result->depth);
    uint32_t *bucket =
        &scratch->notice_bucket[hash * scratch->seed >> 32 & (TTCORE_NOTICE_BUCKETS - 1)];
    for (uint32_t at = *bucket; at != 0; at = scratch->notice[at - 1].chain) {
        struct ttcore_notice *known = &scratch->notice[at - 1];
        if (known->session == slot && known->result.key == result->key &&
            known->result.depth == result->depth) {
            known->result = *result;
            return;
        }
    }
    if (scratch->notice_count < TTCORE_NOTICES_MAX) { /* else it is found at the next ask */
        scratch->notice[scratch->notice_count] =
            (struct ttcore_notice){.result = *result, .session = slot, .chain = *bucket};
        *bucket = ++scratch->notice_count;
    }
}

void ttcore_on_store(struct ttcore_call *call)
{
    struct ttcore *core = call->core;
    struct ttcore_scratch *scratch = call->actions->scratch;
    const struct proto_stores *list = &call->message->store_hash.list;
    const uint64_t namespace_id = call->session->namespace_id;
    const char *fault = NULL;

    /* 1. Check all, and fetch their buckets. */
    for (uint32_t i = 0; i < list->count && fault == NULL; i++) {
        const struct tt_store *op = &list->at[i];
        const uint8_t bound = op->bound & (uint8_t)~TT_BESIDE;
        fault = op->score < TT_SCORE_MIN               ? "score below -32767"
                : bound < TT_LOWER || bound > TT_EXACT ? "unknown bound"
                : op->depth > TT_DEPTH_MAX             ? too_deep
                                                       : NULL;
        tt_results_prefetch(&core->results, op->key);
        tt_inflight_prefetch(&core->inflight, op->key, op->depth);
    }
    if (fault != NULL || list->count > core->options.batch_max) {
        refuse_batch(call, 0, list->count, fault, "stores: more operations than batch_max");
        return;
    }
    core->count.batches++;
    core->count.stores += list->count;

    /* 2. Write each result, in the present generation of its namespace, and leave the node. Note
     * the other sessions in it that want to know. */
    const uint8_t generation = tt_generations_of(
        &core->generations, tt_generations_use(&core->generations, namespace_id), namespace_id);
    const uint32_t before = core->inflight.entries;
    scratch->notice_count = 0;
    scratch->seed = rng_mix(core->options.secret) | 1;
    for (uint32_t i = 0; i < list->count; i++) {
        struct tt_store result = list->at[i];
        unsigned holders =
            tt_ops_store(&core->results, &core->inflight, &result, call->session->id, generation);
        if (holders > 0) {
            holders = tt_inflight_holders(&core->inflight, result.key, result.depth,
                                          scratch->holder, TTCORE_HOLDERS_MAX);
        }
        result.slot = 0;
        result.bound &= (uint8_t)~TT_BESIDE; /* how the table keeps it is not their affair */
        for (unsigned h = 0; h < holders; h++) {
            const struct ttcore_session *session =
                ttcore_sessions_by_id(&core->sessions, scratch->holder[h].session);
            CHECK(session != NULL);
            if (session->flags & PROTO_WANTS_NODE_DONE) {
                add_notice(scratch, ttcore_sessions_slot(&core->sessions, session), &result);
            }
        }
    }
    count_left(call, before);
    if (core->options.ledger != NULL) {
        ttcore_ledger_note(core->options.ledger, &core->results, list->at, list->count);
    }

    /* 3. One NODE_DONE to each session: that of the first notice, then of the first that is left
     * ...
     */
    for (unsigned messages = 0; scratch->notice_count > 0 && messages < TTCORE_NOTIFIED_MAX;
         messages++) {
        uint32_t slot = scratch->notice[0].session, count = 0, left = 0;
        struct proto_message out = {.type = PROTO_NODE_DONE};
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
        ttcore_send(call->actions, &core->sessions.slot[slot], &out);
    }
}
