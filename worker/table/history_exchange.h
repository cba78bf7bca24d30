/* history_exchange: a searcher's part of the history table that all who search its root share: when
 * to send what it added, and which answers to use (PROTOCOL.md, HISTORY). A shard sums up what the
 * searchers of a root send.
 *
 * Threads: the searcher's own. Memory: none. Never blocks; a lost message costs some ordering. */
#ifndef WORKER_TABLE_HISTORY_EXCHANGE_H
#define WORKER_TABLE_HISTORY_EXCHANGE_H

#include "proto/client/client.h"
#include "worker/search/ports.h"

struct history_exchange {
    uint64_t root_key; /* root of the last request */
    bool asked; /* a request is not answered yet */
    bool answered; /* sum, count and halved are not handed to the search yet */
    uint64_t due_us; /* time of the next request */
    uint32_t pause_us;
    uint64_t boot; /* boot id of the shard that answered last */
    uint32_t epoch, cursor, halvings; /* as it said */
    struct tt_weight sum[PROTO_BATCH_MAX];
    unsigned count, halved;
};

/* A new search, perhaps of the same root: the shard is to send all of its sums again. */
void history_exchange_begin(struct history_exchange *history, uint64_t now_us);
/* An answer came, from the shard of that boot id. Copied. */
void history_exchange_take(struct history_exchange *history, uint64_t boot,
                           const struct proto_history_answer *answer, uint64_t now_us);
/* From env.poll: merges the last answer into the search's history; when it is time, sends what the
 * search added, or drops it where no shard is up. `round_trip_us`: of the slowest shard. */
void history_exchange_serve(struct history_exchange *history, struct client *client,
                            struct search *search, uint64_t now_us, uint64_t round_trip_us);

#endif
