/* processor: one searching thread: its search, its place in the process's table, its line to the
 * shards.
 *
 * Threads: open and close by the process; the rest by the thread that searches, except the
 * published figures, which anybody may read. Memory: a search (some 400 KiB) when the first job of
 * a game begins, none later. */
#ifndef WORKER_ENGINE_SEARCHER_H
#define WORKER_ENGINE_SEARCHER_H

#include "common/memory.h"
#include "worker/engine/job.h"
#include "worker/search/search.h"
#include "worker/table/wire.h"

#include <stdatomic.h>

struct searcher {
    /* fixed after open */
    _Alignas(MEMORY_LINE) unsigned index; /* processors lie side by side */
    struct wire *wire; /* NULL: no servers */
    struct remote *remote;
    struct embedded_port local;
    /* state */
    struct search *search;
    const struct game *game;
    /* published: written by the searching thread, read by any */
    _Alignas(MEMORY_LINE) _Atomic uint64_t waited_us;
#define X(name, json) _Atomic uint64_t name;
    COUNTERS(X)
#undef X
    atomic_uint depth, remote_depth, shards_up;
};

struct searcher_figures {
    struct search_counters sum;
    uint64_t waited_us;
    unsigned depth, remote_depth, shards_up;
};

struct searcher_options {
    struct embedded *table;
    unsigned index;
    unsigned neighbours; /* threads of this process: alone, one need not be counted below the
                            remote_depth */
    void *context; /* ZeroMQ; unused without servers */
    const struct options_host_port *server;
    unsigned servers; /* 0: the embedded table alone */
    enum proto_role role;
    uint64_t instance; /* random, one per processor */
    const char *name;
    struct client_sink sink;
    unsigned jobs;
    uint8_t share_depth; /* results of at least this depth are told to other tables; 0: none */
};

enum err searcher_open(struct searcher *p, const struct searcher_options *options);
/* Accepts a zeroed struct, and twice. */
void searcher_close(struct searcher *p);

/* Makes ready to search `job`; then search_run(p->search, ...). `seed` breaks ties; 0 breaks none.
 */
enum err searcher_begin(struct searcher *p, const struct job *job, const struct env_port *env,
                        uint64_t seed);

/* From env.poll: serves the sockets, hands on what others finished, publishes figures; the first
 * time in a search it may move the thread to another processor (placement.h). `now_us`:
 * CLOCK_MONOTONIC. */
void searcher_serve(struct searcher *p, struct search *search, uint64_t now_us);
/* Publishes what the search has counted. */
void searcher_publish(struct searcher *p);
/* After the search, by its thread: publishes, sends what waits to be sent, takes back where it said
 * it was. */
void searcher_end(struct searcher *p);

struct searcher_figures searcher_figures(const struct searcher *p);

#endif
