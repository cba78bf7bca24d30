/* deferred: asks whose answers the search does not wait for (deferred reads: Kuszmaul 1995, section
 * 4). The search begins such a node with what is known here and gets the answer when it has come.
 *
 * Threads: the searcher's own. Memory: none. Never blocks. */
#ifndef WORKER_TABLE_DEFERRED_H
#define WORKER_TABLE_DEFERRED_H

#include "proto/client.h"
#include "worker/search/ports.h"

enum { DEFERRED_MAX = 32 };

struct deferred {
    unsigned count;
    struct {
        struct tt_ask ask;
        uint32_t request; /* the client's ticket */
    } at[DEFERRED_MAX];
};

static inline bool deferred_is_full(const struct deferred *deferred)
{
    return deferred->count == DEFERRED_MAX;
}

/* Requires that it is not full. */
void deferred_add(struct deferred *deferred, const struct tt_ask *ask, uint32_t request);
/* Whether the ask of that ticket is among them. */
bool deferred_has(const struct deferred *deferred, const struct table_ticket *ticket);
/* The node of that ticket is left: its answer is of no use any more. */
void deferred_forget(struct deferred *deferred, const struct table_ticket *ticket,
                     struct client *client);
void deferred_cancel_all(struct deferred *deferred, struct client *client);

/* Takes out one ask that was answered; those that got lost are dropped. False: the others still
 * wait. */
bool deferred_next(struct deferred *deferred, struct client *client, uint64_t now_us,
                   struct tt_ask *ask, struct tt_answer *answer);

#endif
