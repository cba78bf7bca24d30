#include "ttserver/core/history.h"

#include "ttserver/core/state.h"

#include <stdlib.h>
#include <string.h>

enum { US_PER_MS = 1000, PAGE_BYTES = 4096 };

enum err ttcore_histories_open(struct ttcore_histories *histories, uint32_t max)
{
    size_t bytes = max * sizeof *histories->slot;
    volatile uint8_t *room = calloc(1, bytes);
    histories->slot = (struct ttcore_history *)room;
    histories->max = max;
    for (size_t at = 0; room != NULL && at < bytes; at += PAGE_BYTES) {
        room[at] = 0; /* taken from the system now: what a shard uses does not grow with its jobs */
    }
    return room != NULL ? ERR_OK : ERR_NOMEM;
}

void ttcore_histories_close(struct ttcore_histories *histories)
{
    free(histories->slot);
    memset(histories, 0, sizeof *histories);
}

struct ttcore_history *ttcore_histories_of(struct ttcore_histories *histories, uint64_t root_key,
                                           uint64_t now_us)
{
    struct ttcore_history *oldest = &histories->slot[0];
    for (uint32_t i = 0; i < histories->max; i++) {
        struct ttcore_history *h = &histories->slot[i];
        if (h->epoch != 0 && h->root_key == root_key) {
            h->used_us = now_us;
            return h;
        }
        if (oldest->epoch != 0 && (h->epoch == 0 || h->used_us < oldest->used_us)) {
            oldest = h;
        }
    }
    if (oldest->epoch != 0 && oldest->used_us + TTCORE_HISTORY_KEEP_US > now_us) {
        return NULL;
    }
    if (oldest->epoch != 0) {
        memset(oldest, 0, sizeof *oldest);
    }
    oldest->root_key = root_key;
    oldest->used_us = now_us;
    histories->epochs += histories->epochs + 1 != 0 ? 1 : 2;
    oldest->epoch = histories->epochs;
    return oldest;
}

/* The more speak, the rarer each should: a shard spends a small part of its time on this. */
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

/* Telling looks at all entries: a session that asks too often, or for a root_key when there is no
 * room, is told nothing. */
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
        h = ttcore_histories_of(&core->histories, m->root_key, core->now_us);
    }
    core->count.history_refused += h == NULL;
    if (h != NULL) {
        struct tt_weight *weight = call->actions->scratch->decoder.weights;
        tt_history_add(&h->sums, m->list.at, m->list.count);
        core->count.history_published += m->list.count;
        /* The list given is no longer needed: its room takes the answer. */
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
