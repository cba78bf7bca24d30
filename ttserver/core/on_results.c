/* The results as a whole: SCAN reads them, FLUSH forgets them; both a piece at a time, so that asks
 * need not wait. */
#include "ttserver/core/core_state.h"

void ttcore_on_scan(struct ttcore_call *call)
{
    struct ttcore *core = call->core;
    const struct tt_results *results = &core->results;
    const struct proto_scan asked = call->message->scan;
    struct tt_scanned *entry = call->actions->scratch->scanned;
    uint64_t at = asked.cursor < results->buckets ? asked.cursor : results->buckets;
    uint64_t left = results->buckets - at;
    uint64_t end = at + (left < TTCORE_SCAN_BUCKETS ? left : TTCORE_SCAN_BUCKETS);
    uint32_t count = 0;
    if (asked.depth > TT_DEPTH_MAX) {
        ttcore_refuse(call, PROTO_ERR_RANGE, asked.request, "SCAN: depth above 250");
        return;
    }
    for (; at < end && count + TT_BUCKET_ENTRIES <= PROTO_BATCH_MAX; at++) {
        for (unsigned i = 0; i < TT_BUCKET_ENTRIES; i++) {
            bool is_there = tt_results_entry(results, at, i, &entry[count]);
            count += is_there && entry[count].depth >= asked.depth;
        }
    }
    core->count.scanned += count;
    struct proto_message answer = {.type = PROTO_SCANNED};
    answer.scanned.request = asked.request;
    answer.scanned.next = at < results->buckets ? at : 0;
    answer.scanned.list = (struct proto_scanneds){count, entry};
    ttcore_reply(call, &answer);
}

/* At its begin, so that nobody reads or writes more of what it clears, and at its end. */
static void note_flush(const struct ttcore *core)
{
    if (core->options.ledger != NULL) {
        ttcore_ledger_add(&core->options.ledger->flushed, 1);
        ttcore_ledger_add(&core->options.ledger->changes, 1);
    }
}

/* Round and round, as long as somebody waits: each has what it wants when all buckets were cleared
 * once since it asked. */
void ttcore_flush_some(struct ttcore *core, struct ttcore_actions *actions)
{
    uint64_t buckets = core->results.buckets - core->next_cleared;
    buckets = buckets < TTCORE_FLUSH_BUCKETS ? buckets : TTCORE_FLUSH_BUCKETS;
    if (core->flushes == 0) {
        return;
    }
    tt_results_clear_some(&core->results, core->next_cleared, buckets);
    core->next_cleared += buckets;
    core->next_cleared = core->next_cleared < core->results.buckets ? core->next_cleared : 0;
    for (unsigned i = 0; i < TTCORE_FLUSHES_MAX; i++) {
        struct ttcore_flush *flush = &core->flush[i];
        if (flush->left > 0 && flush->left <= buckets) {
            note_flush(core);
            const struct ttcore_session *asker =
                ttcore_sessions_by_id(&core->sessions, flush->session);
            const struct proto_message answer = {.type = PROTO_FLUSHED,
                                                 .flushed = {flush->request}};
            if (asker != NULL) { /* else its session has ended */
                ttcore_send(actions, asker, &answer);
            }
            CHECK_THAT(core->flushes > 0, "a flush that is answered was under way");
            core->flushes--;
        }
        flush->left -= flush->left < buckets ? flush->left : buckets;
    }
}

/* Only where there are no keys may anybody: it costs all others what they have found. */
void ttcore_on_flush(struct ttcore_call *call)
{
    struct ttcore *core = call->core;
    uint32_t request = call->message->flush.request;
    struct ttcore_flush *room = NULL;
    if (!(call->peer.may & TTCORE_MAY_FLUSH)) {
        core->count.role_refused++;
        ttcore_refuse(call, PROTO_ERR_ROLE, request, "FLUSH: for administrators only");
        return;
    }
    for (unsigned i = 0; i < TTCORE_FLUSHES_MAX && room == NULL; i++) {
        room = core->flush[i].left == 0 ? &core->flush[i] : NULL;
    }
    if (room == NULL) {
        ttcore_refuse(call, PROTO_ERR_LIMIT, request, "FLUSH: too many are under way");
        return;
    }
    *room = (struct ttcore_flush){call->session->id, request, core->results.buckets};
    core->flushes++;
    core->count.flushes++;
    note_flush(core);
    ttcore_flush_some(core, call->actions);
}
