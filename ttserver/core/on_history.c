/* HISTORY: sums of history tables, kept for all searchers of a root key. */
#include "ttserver/core/call.h"

enum { US_PER_MS = 1000 };

/* The more searchers, the longer: a shard spends a small part of its time on this. */
static uint32_t wait_ms(const struct ttcore *core)
{
    uint32_t searchers = core->sessions.live, wait = searchers / 2;
    return searchers == 1                  ? TTCORE_HISTORY_ALONE_MS
           : wait < TTCORE_HISTORY_WAIT_MS ? TTCORE_HISTORY_WAIT_MS
                                           : wait;
}

static bool history_is_ready(struct ttcore_call *call, const struct proto_history *m)
{
    if (m->list.count > call->core->options.batch_max) {
        call->core->count.batches_refused++;
        ttcore_refuse(call, PROTO_ERR_LIMIT, m->request, "history: more weights than batch_max");
        return false;
    }
    if (!proto_weights_in_range(&m->list)) {
        ttcore_refuse(call, PROTO_ERR_RANGE, m->request, "index above 8191");
        return false;
    }
    return true;
}

/* Reading the sums goes through all entries: a session that asks too often, or for a root key when
 * there is no room, gets none. */
void ttcore_on_history(struct ttcore_call *call)
{
    struct ttcore *core = call->core;
    const struct proto_history *m = &call->message->history;
    struct ttcore_history *h = NULL;
    struct proto_message out = {.type = PROTO_HISTORY_ANSWER};
    struct proto_history_answer *answer = &out.history_answer;
    if (!history_is_ready(call, m)) {
        return;
    }
    *answer = (struct proto_history_answer){
        .request = m->request,
        .root_key = m->root_key,
        .epoch = m->epoch,
        .cursor = m->cursor,
        .now = m->cursor,
        .wait_ms = wait_ms(core),
    };
    bool is_early = core->now_us < call->session->history_due_us;
    if (!is_early) {
        h = ttcore_histories_of(&core->histories, m->root_key, call->session->user->id,
                                core->now_us);
    }
    core->count.history_refused += h == NULL;
    if (h != NULL) {
        struct tt_weight *weight = call->actions->scratch->decoder.weights;
        tt_history_add(&h->sums, m->list.at, m->list.count);
        core->count.history_published += m->list.count;
        /* The list that came is no longer needed: its room takes the answer. */
        answer->cursor = m->epoch == h->epoch ? m->cursor : 0;
        answer->list.count = tt_history_read(&h->sums, answer->cursor, weight, TTCORE_HISTORY_SENT);
        answer->list.at = weight;
        answer->epoch = h->epoch;
        answer->now = h->sums.now;
        answer->halvings = h->sums.halvings;
        core->count.history_sent += answer->list.count;
        call->session->history_due_us = core->now_us + answer->wait_ms * (US_PER_MS / 2);
    }
    ttcore_reply(call, &out);
}
