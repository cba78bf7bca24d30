#include "common/tt/ops.h"

static bool is_deep_enough(const struct tt_found *found, unsigned depth, bool strict)
{
    return strict ? found->depth == depth : found->depth >= depth;
}

bool tt_ops_resolves(const struct tt_found *found, unsigned depth, bool strict, int alpha, int beta,
                     int *score)
{
    if (!is_deep_enough(found, depth, strict)) {
        return false;
    }
    if (found->lower >= beta || found->lower == found->upper) {
        *score = found->lower;
        return true;
    }
    if (found->upper <= alpha) {
        *score = found->upper;
        return true;
    }
    return false;
}

enum tt_bound tt_bound_of(int score, int alpha, int beta)
{
    return score <= alpha ? TT_UPPER : score >= beta ? TT_LOWER : TT_EXACT;
}

enum tt_verdict tt_ops_judge(const struct tt_found *found, const struct tt_ask *ask,
                             struct tt_answer *answer)
{
    bool strict = ask->flags & TT_STRICT;
    int score;
    if (tt_ops_resolves(found, ask->depth, strict, ask->alpha, ask->beta, &score)) {
        answer->score = (int16_t)score;
        return TT_CUT;
    }
    if (is_deep_enough(found, ask->depth, strict)) {
        answer->alpha = found->lower > answer->alpha ? found->lower : answer->alpha;
        answer->beta = found->upper < answer->beta ? found->upper : answer->beta;
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
    bool is_busy = false;

    CHECK(ask->alpha < ask->beta && ask->depth <= TT_DEPTH_MAX);
    const unsigned depth = ask->flags & TT_STRICT ? ask->depth : TT_DEPTH_MAX; /* the deepest */
    if (tt_results_find(results, ask->key, depth, &found)) {
        said.move = found.move;
        said.verdict = tt_ops_judge(&found, ask, &said);
    }
    if (inflight != NULL && said.verdict == TT_OPEN) {
        count = tt_inflight_visit(inflight, ask->key, ask->depth, self, ask->flags & TT_EXCLUSIVE,
                                  now_us, &is_busy);
        said.verdict = is_busy ? TT_BUSY : TT_OPEN;
    } else if (inflight != NULL) {
        count = tt_inflight_count(inflight, ask->key, ask->depth);
    }
    CHECK_THAT(said.verdict == TT_CUT || said.alpha < said.beta, "ask: what is open has a window");
    CHECK_THAT(said.verdict != TT_BUSY || count > 0, "ask: a node is busy with somebody");
    said.nproc = (uint16_t)(count < UINT16_MAX ? count : UINT16_MAX);
    *answer = said;
}

unsigned tt_ops_store(struct tt_results *results, struct tt_inflight *inflight,
                      const struct tt_store *store, uint32_t session, uint8_t generation)
{
    struct tt_holder self = {session, store->slot};
    tt_results_store(results, store, generation);
    return tt_inflight_leave(inflight, store->key, store->depth, self);
}

void tt_ops_release(struct tt_inflight *inflight, const struct tt_release *release,
                    uint32_t session)
{
    struct tt_holder self = {session, release->slot};
    tt_inflight_leave(inflight, release->key, release->depth, self);
}

void tt_ops_peek(const struct tt_results *results, const struct tt_inflight *inflight,
                 const struct tt_peek *peek, struct tt_peeked *out)
{
    struct tt_found found;
    unsigned count = tt_inflight_count(inflight, peek->key, peek->depth);
    *out = (struct tt_peeked){.lower = TT_SCORE_MIN, .upper = TT_SCORE_MAX};
    if (tt_results_find(results, peek->key, peek->depth, &found)) {
        out->lower = found.lower;
        out->upper = found.upper;
        out->depth = found.depth;
        out->move = found.move;
    }
    out->nproc = (uint16_t)(count < UINT16_MAX ? count : UINT16_MAX);
}
