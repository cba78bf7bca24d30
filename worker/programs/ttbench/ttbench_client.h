/* ttbench_client: one client of `abdada ttbench`, a thread with a client of the protocol
 * (proto/client/client.h).
 *
 * Clients replay a load in laps; in a lap all clients use the same keys, in the next lap other
 * ones. Threads: a client belongs to its thread from ttbench_client_run until that is joined.
 * Memory: a client owns its connections and buffers. */
#ifndef WORKER_PROGRAMS_TTBENCH_TTBENCH_CLIENT_H
#define WORKER_PROGRAMS_TTBENCH_TTBENCH_CLIENT_H

#include "common/histogram.h"
#include "common/keys/keys.h"
#include "common/options.h"
#include "proto/transport/zeromq.h"
#include "worker/programs/ttbench/ttbench_load.h"

#include <stdatomic.h>

enum { TTBENCH_WINDOW_MAX = 256 };

struct ttbench_mix {
    uint32_t asks, stores; /* asks == 0: as in the load */
};

/* Counters of a client, and of all together. */
#define TTBENCH_ANSWERS(X) X(asks) X(cuts) X(busy) X(opens) X(stores) X(releases)
#define TTBENCH_ERRORS(X) X(lost) X(refused) X(malformed) X(unsent)
/* Those that are counted here, and those of the client of the protocol, with its name for each. */
#define TTBENCH_OWN(X) X(asks) X(cuts) X(busy) X(opens) X(lost) X(waited_ns)
#define TTBENCH_OF_CLIENT(X)          \
    X(stores, stores)                 \
    X(releases, releases)             \
    X(refused, refused)               \
    X(malformed, malformed)           \
    X(unsent, dropped)                \
    X(messages_out, messages_sent)    \
    X(messages_in, messages_received) \
    X(bytes_out, bytes_sent)          \
    X(bytes_in, bytes_received)       \
    X(ask_messages, ask_messages)     \
    X(ask_bytes, ask_bytes)           \
    X(store_messages, store_messages) \
    X(store_bytes, store_bytes)

struct ttbench_counters {
#define X(name, ...) uint64_t name;
    TTBENCH_OWN(X) TTBENCH_OF_CLIENT(X)
#undef X
};

/* What shards counted between two calls of ttbench_client_stats. */
struct ttbench_answers {
#define X(name) uint64_t name;
    TTBENCH_ANSWERS(X)
#undef X
};

struct ttbench_plan {
    const struct ttbench_load *load;
    const struct options_servers *servers;
    const struct keys_client *keys; /* NULL: no encryption */
    struct ttbench_answers *shards; /* their counters, summed by ttbench_client_stats */
    uint32_t clients, batch, window;
    struct ttbench_mix mix;
    uint64_t namespace_id; /* of this run: results of others do not count */
    void *context; /* ZeroMQ */
    atomic_bool *stop; /* no new asks from now on */
};

struct ttbench_client;

/* Says HELLO to every shard and waits up to `wait_ms` for all. `first`: that of index 0, closed
 * last; NULL for itself. On ERR_DOWN *shard is one that did not answer, and *why says that it
 * refused our keys, or is NULL. ERR_NOMEM, ERR_IO. */
enum err ttbench_client_open(struct ttbench_client **out, const struct ttbench_plan *plan,
                             const struct ttbench_client *first, unsigned index, unsigned wait_ms,
                             unsigned *shard, const char **why);
/* The thread: asks and stores until `stop`, then waits until each message was answered or is lost.
 */
void *ttbench_client_run(void *client);
/* Adds the client's counters and latencies to both. */
void ttbench_client_read(const struct ttbench_client *client, struct ttbench_counters *sum,
                         struct histogram *latency_ns);
/* BYE. Accepts NULL; nulls. */
void ttbench_client_close(struct ttbench_client **client);

/* Asks the shards for their counters and adds `sign` times these to plan.shards. ERR_DOWN. */
enum err ttbench_client_stats(struct ttbench_client *client, int sign);

#endif
