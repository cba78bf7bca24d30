/* ops: the four operations on results and in-flight sets together: the whole meaning of the table.
 *
 * RetrieveAsk: CUT when an entry of depth >= asked (== asked with TT_STRICT) closes the window;
 * else BUSY when exclusive and somebody else is inside (key, depth); else OPEN: the window narrowed
 * by such an entry, and the asker counted inside. StoreHash writes the result and leaves; Release
 * leaves; Peek joins nothing. All are idempotent per (session, slot). Source: Weill 1996, figure 2;
 * deliberate differences in design section 2. Threads: as tt_inflight. `inflight` may be NULL: then
 * nobody is counted and nothing is ever BUSY. */
#ifndef COMMON_TT_OPS_H
#define COMMON_TT_OPS_H

#include "common/tt/inflight.h"
#include "common/tt/results.h"

/* Requires alpha < beta and depth <= TT_DEPTH_MAX. When the in-flight table is full, or the
 * session has its quota, the answer is OPEN and unregistered (nproc counts the others only). */
void tt_ops_ask(const struct tt_results *results, struct tt_inflight *inflight,
                const struct tt_ask *ask, uint32_t session, uint64_t now_us,
                struct tt_answer *answer);

/* Returns how many others are still inside (key, depth). */
unsigned tt_ops_store(struct tt_results *results, struct tt_inflight *inflight,
                      const struct tt_store *store, uint32_t session, uint8_t generation);

void tt_ops_release(struct tt_inflight *inflight, const struct tt_release *release,
                    uint32_t session);

void tt_ops_peek(const struct tt_results *results, const struct tt_inflight *inflight,
                 const struct tt_peek *peek, struct tt_peeked *out);

/* Whether an entry settles an ask: TT_CUT with the score, or TT_OPEN with the window narrowed.
 * Shared with searches that look into a peeked entry. */
enum tt_verdict tt_ops_judge(const struct tt_found *found, const struct tt_ask *ask,
                             struct tt_answer *answer);

#endif
