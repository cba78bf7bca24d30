/* ttbench: the load generator's inside, shared by the files of `abdada ttbench`.
 *
 * A load is a list of visits: an ask, and the store that ended it. Clients (a thread with a socket
 * for each shard) replay it lap after lap, each lap with keys of its own, all clients of a lap with
 * the same. Threads: a load is read by all; a client belongs to its thread between start and join.
 */
#ifndef WORKER_CLI_TTBENCH_H
#define WORKER_CLI_TTBENCH_H

#include "common/histogram.h"
#include "proto/codec.h"
#include "worker/cli/cli.h"

#include <stdatomic.h>

enum { TTBENCH_VISITS = 1 << 15, TTBENCH_WINDOW_MAX = 256, TTBENCH_ADDRESS = 280 };

struct ttbench_visit {
    struct tt_ask ask;
    int16_t score; /* of its store */
    uint16_t move;
    uint8_t bound;
    bool is_stored; /* false: it was answered CUT, or released: a store here is made up */
};

struct ttbench_load {
    struct ttbench_visit *visit;
    unsigned count; /* 1..TTBENCH_VISITS */
};

/* Asks and stores of one thread's chess search, in its order: keys, depths, windows, exclusivity.
 * Takes about a second. ERR_NOMEM. */
enum err ttbench_record(struct ttbench_load *load);
/* Uniform random keys, depths from 4 to 12. ERR_NOMEM. */
enum err ttbench_invent(struct ttbench_load *load, uint64_t seed);
void ttbench_forget(struct ttbench_load *load);

struct ttbench_mix {
    uint32_t asks, stores; /* asks 0: as the load says */
};

struct ttbench_shard {
    char address[TTBENCH_ADDRESS]; /* for people */
    char endpoint[TTBENCH_ADDRESS + 8];
    /* The shard's own counters before and after. */
    uint64_t asks, stores, releases, cuts, busy, opens;
};

/* What is counted, per client and over all. */
#define TTBENCH_ANSWERS(X) X(asks) X(cuts) X(busy) X(opens) X(stores) X(releases)
#define TTBENCH_TRAFFIC(X) \
    X(messages_out)        \
    X(messages_in)         \
    X(bytes_out)           \
    X(bytes_in) X(ask_messages) X(ask_bytes) X(store_messages) X(store_bytes) X(waited_ns)
#define TTBENCH_ERRORS(X) X(lost) X(refused) X(malformed) X(unsent)
#define TTBENCH_COUNTERS(X) TTBENCH_ANSWERS(X) TTBENCH_TRAFFIC(X) TTBENCH_ERRORS(X)

struct ttbench_counters {
#define X(name) uint64_t name;
    TTBENCH_COUNTERS(X)
#undef X
};

struct ttbench_plan {
    const struct ttbench_load *load;
    struct ttbench_shard *shard;
    unsigned shards;
    uint32_t clients, batch, window;
    struct ttbench_mix mix;
    uint64_t namespace_id; /* another run's results are not met */
    void *context; /* ZeroMQ */
    atomic_bool *stop; /* no new asks from now on */
};

struct ttbench_client;

/* Says HELLO to every shard and waits up to `wait_ms` for all. On ERR_DOWN *shard is one that did
 * not answer. ERR_NOMEM, ERR_IO. */
enum err ttbench_client_open(struct ttbench_client **out, const struct ttbench_plan *plan,
                             unsigned index, unsigned wait_ms, unsigned *shard);
/* The thread: asks and stores until `stop`, then until what is out has been answered or is lost. */
void *ttbench_client_run(void *client);
/* Adds to both. */
void ttbench_client_read(const struct ttbench_client *client, struct ttbench_counters *sum,
                         struct histogram *latency_ns);
/* BYE. Accepts NULL; nulls. */
void ttbench_client_close(struct ttbench_client **client);

/* Adds `sign` times the shards' counters, asked for through this client's sockets. ERR_DOWN. */
enum err ttbench_client_stats(struct ttbench_client *client, int sign);

#endif
