/* tt_history: the sums of a history table that several searchers fill together (Schaeffer 1983).
 *
 * Each of many searchers walks a small part of the tree, and would order its moves by that part
 * alone. So each publishes what it has added, now and then, and merges what all have. When a sum
 * becomes too large, all of them are halved. A lost update costs some move ordering and nothing
 * else. Pure. Threads: one at a time. Memory: allocates nothing; all zero is empty. */
#ifndef COMMON_TT_HISTORY_SUMS_H
#define COMMON_TT_HISTORY_SUMS_H

#include "common/tt/tt.h"

enum { TT_HISTORY_LIMIT = 1 << 19 };

struct tt_history {
    uint32_t now; /* grows with every update */
    uint32_t halvings;
    uint32_t weight[TT_WEIGHTS];
    uint32_t changed[TT_WEIGHTS]; /* `now` of its last update; 0: never */
};

/* Adds; indices below TT_WEIGHTS, repeated or not. Every sum is below TT_HISTORY_LIMIT after it. */
void tt_history_add(struct tt_history *history, const struct tt_weight *weight, uint32_t count);
/* What changed after `cursor` (a later one than now: everything), the heaviest when `room` is too
 * small: the others come when they change again. Returns how many. */
uint32_t tt_history_read(const struct tt_history *history, uint32_t cursor, struct tt_weight *out,
                         uint32_t room);

#endif
