/* history: a processor's part of the history table that all who search its root share: when to give
 * what it learnt, and what of the answers to believe (PROTOCOL.md, HISTORY).
 *
 * Threads: the processor's own. Memory: none. Never waits; what gets lost costs some ordering. */
#ifndef WORKER_TABLE_HISTORY_H
#define WORKER_TABLE_HISTORY_H

#include "proto/client.h"
#include "worker/search/ports.h"

struct shared_history {
    uint64_t root_key; /* what was asked of last */
    bool asked; /* and not answered yet */
    bool answered; /* not handed on yet: sum, count, halved */
    uint64_t due_us; /* when to ask again */
    uint32_t pause_us;
    uint64_t boot; /* of the shard that answered last */
    uint32_t epoch, cursor, halvings; /* as it said */
    struct tt_weight sum[PROTO_BATCH_MAX];
    unsigned count, halved;
};

/* A new search, perhaps of the same root: all is to be told again. */
void history_begin(struct shared_history *history, uint64_t now_us);
/* An answer came, from the shard of that boot id. Copied. */
void history_take(struct shared_history *history, uint64_t boot,
                  const struct proto_history_answer *answer, uint64_t now_us);
/* From env.poll: hands what came to the search; when it is time, gives what the search learnt and
 * asks, or drops it where no shard is. `round_trip_us`: of the slowest shard. */
void history_exchange(struct shared_history *history, struct client *client, struct search *search,
                      uint64_t now_us, uint64_t round_trip_us);

#endif
