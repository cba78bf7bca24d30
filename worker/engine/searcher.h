/* searcher: one searcher: its search, its port to the table of the process, and, where there are
 * shards, its remote table. It knows no sockets and no clock: the lane brings both, so that the
 * same lines run in a thread of a worker and in a fiber of the virtual cluster.
 *
 * Threads: open and close by the process; the rest by the thread that searches, except
 * searcher_figures, which any thread may call. Memory: a search (some 400 KiB)
 * when the first job of a game begins, none later. Blocking: as the table port (remote.h). */
#ifndef WORKER_ENGINE_SEARCHER_H
#define WORKER_ENGINE_SEARCHER_H

#include "common/memory.h"
#include "worker/engine/job.h"
#include "worker/search/search.h"
#include "worker/table/remote.h"

#include <stdatomic.h>

struct searcher {
    /* fixed after open */
    _Alignas(MEMORY_LINE) unsigned index; /* searchers lie side by side in memory */
    unsigned poll_nodes;
    bool is_fiber;
    bool is_thread; /* of a front-end, and not its first */
    struct remote *remote; /* NULL: no shards */
    struct embedded_port local;
    /* state */
    struct table_port table; /* the search's: of `remote`, or of `local` */
    struct search *search;
    const struct game *game;
    struct counters before; /* of all searches before this one; bytes: when it began */
    /* published: written by the searching thread, read by any */
    _Alignas(MEMORY_LINE) atomic_uint depth, remote_depth, shards_up;
    _Atomic uint64_t nodes_left;
    struct counters_shared now, all; /* as in searcher_figures */
    _Atomic uint64_t timeouts, searches;
    atomic_bool is_busy;
};

struct searcher_figures {
    struct counters now; /* of the search under way, or the last one */
    struct counters all; /* of all searches so far; bytes: between searches, too. They only grow */
    uint64_t timeouts; /* time-outs of requests to shards */
    uint64_t searches; /* ended */
    bool is_busy; /* searches now */
    unsigned depth, remote_depth;
    uint64_t nodes_left; /* search_nodes_left */
    unsigned shards_up; /* when it last searched, or was idle */
};

struct searcher_options {
    struct embedded *table; /* borrowed */
    unsigned index; /* its slot in the table */
    unsigned neighbours; /* searchers with this table, itself included: one alone registers
                            nothing in it */
    const struct lane *lane; /* copied, its `self` borrowed until close; NULL: no shards,
                                         and nothing below is used but is_fiber and poll_nodes */
    struct client_options client; /* rto_min_us 0: SEARCHER_RTO_MIN_US; hello_flags are set by the
                                     remote table; `instance` is random, one for each searcher */
    struct remote_events events;
    uint8_t share_depth; /* results of at least this depth are broadcast; 0: none */
    bool is_fiber; /* set in the virtual cluster: there is no thread to place on a CPU */
    unsigned poll_nodes; /* between two polls of the search; 0: SEARCH_POLL_NODES */
};

/* A busy machine may keep a shard off its CPUs that long; asks need not wait for it. */
enum { SEARCHER_RTO_MIN_US = 5000 };

enum err searcher_open(struct searcher *p, const struct searcher_options *options);
/* Accepts a zeroed struct, and twice. */
void searcher_close(struct searcher *p);

/* Makes ready to search `job`, with the shards in its namespace (is_next: they know it); then
 * search_run(p->search, ...).
 * `seed` breaks ties; 0 breaks none. */
enum err searcher_begin(struct searcher *p, const struct job *job, const struct env_port *env,
                        uint64_t seed);

/* From env.poll: serves the table and publishes the figures; the first time in a search it may move
 * the thread to another CPU (placement.h). `now_us`: CLOCK_MONOTONIC, or the lane's clock in the
 * virtual cluster. */
void searcher_serve(struct searcher *p, struct search *search, uint64_t now_us);
/* Publishes what the search has counted. */
void searcher_publish(struct searcher *p);
/* After the search, by its thread: publishes the figures, sends what waits to be sent, ends its
 * placement. */
void searcher_end(struct searcher *p);

/* Posts to every shard, now or as soon as it is up, until the stop. Copies. As client_job_post. */
enum err searcher_post(struct searcher *p, const struct job *job);
void searcher_stop(struct searcher *p, uint64_t job);
void searcher_report(struct searcher *p, const struct proto_job_report *report);

/* Makes a line as long as its depth, as far as the process's table knows how it goes on: a result
 * of others that ended an iteration leaves a line of one move. Shards are not asked, which would
 * cost the search a round trip a move. Uses the job's position and leaves it as it was. */
void searcher_extend_line(const struct searcher *p, const struct job *job, struct search_line *line,
                          unsigned want);

/* What this search has counted until now, its talk with the shards included; by its thread. */
struct counters searcher_counters(const struct searcher *p);

struct searcher_figures searcher_figures(const struct searcher *p);
/* Which shards are up, as of now. To be called between searches, too: they come and go. */
void searcher_publish_shards(struct searcher *p);

#endif
