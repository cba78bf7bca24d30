#include "common/tt/ops.h"

enum tt_verdict tt_ops_judge(const struct tt_found *found, const struct tt_ask *ask,
                             struct tt_answer *answer)
{
    bool counts = ask->flags & TT_STRICT ? found->depth == ask->depth : found->depth >= ask->depth;
    if (!counts) {
        return TT_OPEN;
    }
    if (found->lower >= ask->beta || found->lower == found->upper) {
        answer->score = found->lower;
        return TT_CUT;
    }
    if (found->upper <= ask->alpha) {
        answer->score = found->upper;
        return TT_CUT;
    }
    if (found->lower > answer->alpha) {
        answer->alpha = found->lower;
    }
    if (found->upper < answer->beta) {
        answer->beta = found->upper;
    }
    return TT_OPEN;
}

void tt_ops_ask(const struct tt_results *results, struct tt_inflight *inflight,
                const struct tt_ask *ask, uint32_t session, uint64_t now_us,
                struct tt_answer *answer)
{
    struct tt_answer said = {.verdict = TT_OPEN, .alpha = ask->alpha, .beta = ask->beta};
    struct tt_holder self = {session, ask->slot};
    struct tt_found found;
    unsigned count = 0;
    bool is_busy = false, is_holder;

    CHECK(ask->alpha < ask->beta && ask->depth <= TT_DEPTH_MAX);
    if (tt_results_find(results, ask->key, &found)) {
        said.move = found.move;
        said.verdict = tt_ops_judge(&found, ask, &said);
    }
    if (inflight != NULL && said.verdict == TT_OPEN) {
        count = tt_inflight_visit(inflight, ask->key, ask->depth, self, ask->flags & TT_EXCLUSIVE,
                                  now_us, &is_busy);
        said.verdict = is_busy ? TT_BUSY : TT_OPEN;
    } else if (inflight != NULL) {
        count = tt_inflight_count(inflight, ask->key, ask->depth, self, &is_holder);
    }
    said.nproc = (uint16_t)(count < UINT16_MAX ? count : UINT16_MAX);
    *answer = said;
}

unsigned tt_ops_store(struct tt_results *results, struct tt_inflight *inflight,
                      const struct tt_store *store, uint32_t session, uint8_t generation)
{
    struct tt_holder self = {session, store->slot};
    bool was_holder;

    tt_results_store(results, store, generation);
    return inflight == NULL
               ? 0
               : tt_inflight_leave(inflight, store->key, store->depth, self, &was_holder);
}

void tt_ops_release(struct tt_inflight *inflight, const struct tt_release *release,
                    uint32_t session)
{
    struct tt_holder self = {session, release->slot};
    bool was_holder;

    if (inflight != NULL) {
        tt_inflight_leave(inflight, release->key, release->depth, self, &was_holder);
    }
}

void tt_ops_peek(const struct tt_results *results, const struct tt_inflight *inflight,
                 const struct tt_peek *peek, struct tt_peeked *out)
{
    struct tt_found found;
    struct tt_holder nobody = {0, 0};
    bool inside;

    *out = (struct tt_peeked){.lower = TT_SCORE_MIN, .upper = TT_SCORE_MAX};
    if (tt_results_find(results, peek->key, &found)) {
        out->lower = found.lower;
        out->upper = found.upper;
        out->depth = found.depth;
        out->move = found.move;
    }
    if (inflight != NULL) {
        unsigned count = tt_inflight_count(inflight, peek->key, peek->depth, nobody, &inside);
        out->nproc = (uint16_t)(count < UINT16_MAX ? count : UINT16_MAX);
    }
}
