/* ops: the four operations on results and in-flight sets together: the whole meaning of the table.
 *
 * RetrieveAsk: CUT when an entry of depth >= asked (== asked with TT_STRICT) closes the window;
 * else BUSY if exclusive and another holder has (key, depth) in flight; else OPEN: the window
 * narrowed by such an entry, and the asker registered in flight. StoreHash writes the result and
 * takes the asker out of flight; Release only takes it out; Peek registers nothing. All are
 * idempotent per (session, slot). Source: Weill 1996, figure 2; deliberate differences in design
 * section 2. Threads: as tt_inflight. */
#ifndef COMMON_TT_OPS_H
#define COMMON_TT_OPS_H

#include "common/tt/inflight.h"
#include "common/tt/results.h"

/* Requires alpha < beta and depth <= TT_DEPTH_MAX. `inflight` may be NULL: then nobody is counted
 * and nothing is ever BUSY. When the in-flight table is full, or the session has its quota, the
 * answer is OPEN and unregistered (nproc counts the others only). */
void tt_ops_ask(const struct tt_results *results, struct tt_inflight *inflight,
                const struct tt_ask *ask, uint32_t session, uint64_t now_us,
                struct tt_answer *answer);

/* Returns how many others still have (key, depth) in flight. */
unsigned tt_ops_store(struct tt_results *results, struct tt_inflight *inflight,
                      const struct tt_store *store, uint32_t session, uint8_t generation);

void tt_ops_release(struct tt_inflight *inflight, const struct tt_release *release,
                    uint32_t session);

void tt_ops_peek(const struct tt_results *results, const struct tt_inflight *inflight,
                 const struct tt_peek *peek, struct tt_peeked *out);

/* Whether an entry answers an ask: TT_CUT with the score, or TT_OPEN with the window narrowed. */
enum tt_verdict tt_ops_judge(const struct tt_found *found, const struct tt_ask *ask,
                             struct tt_answer *answer);

/* ---- the one rule what an entry proves, for tables and searches alike ---- */

/* Whether an entry resolves a node of `depth` in the window alpha < beta: it is deep enough (of
 * this very depth if `strict`), and exact or a bound outside the window. *score: the node's value
 * then. */
bool tt_ops_resolves(const struct tt_found *found, unsigned depth, bool strict, int alpha, int beta,
                     int *score);

/* What a value found in the window alpha < beta proves. */
enum tt_bound tt_bound_of(int score, int alpha, int beta);

#endif
