/* embedded: the table inside one process, shared by its threads: the same results and in-flight
 * code as a shard, behind striped locks. A front-end without servers uses it alone; every process
 * uses it below the horizon and when no shard is up.
 *
 * Threads: open, close, clear and begin while nobody searches; the port's functions from the thread
 * that owns the port. Memory: allocates in open. Never blocks but on a stripe's lock (some 100 ns).
 */
#ifndef WORKER_TABLE_EMBEDDED_H
#define WORKER_TABLE_EMBEDDED_H

#include "common/err.h"
#include "worker/search/ports.h"

#include <stddef.h>

enum {
    EMBEDDED_SLOTS_MAX = 256, /* threads */
    EMBEDDED_COUNTED_DEPTH = 4, /* below, keeping count costs more than it saves */
    EMBEDDED_NEVER = 255,
};

struct embedded;

struct embedded_port {
    struct embedded *table;
    uint16_t slot;
    uint8_t counted_depth; /* nodes of at least this depth are counted by nproc */
    uint32_t birth, since, halvings; /* of the last embedded_history; 0: tell all again */
};

/* `bytes` of results, at least one bucket; room for `slots` threads. ERR_NOMEM, ERR_RANGE. */
enum err embedded_open(struct embedded **out, size_t bytes, unsigned slots);
void embedded_close(struct embedded **table);
/* Forgets all results. */
void embedded_clear(struct embedded *table);
/* A new search: older results are replaced first. */
void embedded_begin(struct embedded *table);
/* The same while others may be searching: any thread. */
void embedded_advance(struct embedded *table);
/* Holds at this moment, over all nodes; 0 when nobody searches. */
unsigned embedded_holds(struct embedded *table);
/* Share of a sample of the table used by the running search. */
unsigned embedded_permille(struct embedded *table);

/* Takes the NODE_DONE news left for this slot (results of nodes it is inside), up to `room`; the
 * rest is dropped. */
unsigned embedded_node_done(struct embedded_port *port, struct tt_store *out, unsigned room);

/* The history table of those who search the root `topic`: gives `count` weights, and is told up to
 * `room` sums that changed since the last call, which may be in the same room; *halvings: of all
 * sums, since then. Nothing is told to one thread alone. */
unsigned embedded_history(struct embedded_port *port, uint64_t topic, const struct tt_weight *given,
                          unsigned count, struct tt_weight *out, unsigned room, unsigned *halvings);

/* Only what is known, without counting: used by the remote table below its horizon and as its
 * cache. */
bool embedded_find(struct embedded *table, const struct tt_ask *ask, struct tt_answer *answer);
void embedded_put(struct embedded *table, const struct tt_store *store);

/* `port` must outlive the table port made of it. */
struct table_port embedded_table_port(struct embedded_port *port);

#endif
