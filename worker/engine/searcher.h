/* searcher: one searcher: its search, its port to the table of the process, and, where there are
 * shards, its remote table. It knows no sockets and no clock: the shell brings both, so that the
 * same lines run in a thread of a worker and in a fiber of the virtual cluster.
 *
 * Threads: open and close by the process; the rest by the thread that searches, except
 * searcher_figures and searcher_totals, which any thread may call. Memory: a search (some 400 KiB)
 * when the first job of a game begins, none later. Blocking: as the table port (remote.h). */
#ifndef WORKER_ENGINE_SEARCHER_H
#define WORKER_ENGINE_SEARCHER_H

#include "common/memory.h"
#include "worker/engine/bag_letter.h"
#include "worker/engine/job_client.h"
#include "worker/search/search.h"
#include "worker/table/remote.h"

#include <stdatomic.h>

struct mailboxes;

struct searcher {
    /* fixed after open */
    _Alignas(MEMORY_LINE) unsigned index; /* searchers lie side by side in memory */
    unsigned poll_nodes;
    bool is_fiber;
    struct remote *remote; /* NULL: no shards */
    struct job_client *jobs; /* a front-end's or a worker's; else NULL */
    struct mailboxes *mailboxes; /* NULL: none; else of this one: */
    unsigned mailbox;
    struct bag_inbox *bag; /* NULL: none */
    struct embedded_port local;
    /* state */
    struct table_port table; /* the search's: of `remote`, or of `local` */
    struct search *search;
    const struct game *game;
    struct search_counters done; /* counts of searches that have ended, as is ... */
    uint64_t done_waited_us;
    uint64_t sent_before, received_before; /* bytes counted by the client when the search began */
    /* published: written by the searching thread, read by any */
    _Alignas(MEMORY_LINE) atomic_uint depth, remote_depth, shards_up;
#define X(name) _Atomic uint64_t name;
    COUNTERS_OF_TALK(X)
#undef X
#define X(name, json, help) _Atomic uint64_t name;
    COUNTERS(X)
#undef X
    /* ... of all searches so far */
    struct searcher_totals_published {
        _Atomic uint64_t waited_us, timeouts, searches, bytes_sent, bytes_received;
#define X(name, json, help) _Atomic uint64_t name;
        COUNTERS(X)
#undef X
        atomic_bool is_busy;
    } total;
};

/* With the shards, in one search. */
struct searcher_talk {
#define X(name) uint64_t name;
    COUNTERS_OF_TALK(X)
#undef X
};

struct searcher_figures {
    struct search_counters sum;
    struct searcher_talk talk;
    unsigned depth, remote_depth, shards_up;
};

/* Of all searches so far: they only grow. */
struct searcher_totals {
    struct search_counters sum;
    uint64_t waited_us;
    uint64_t timeouts; /* time-outs of requests to shards */
    uint64_t bytes_sent, bytes_received; /* bytes to and from shards, between searches, too */
    uint64_t searches; /* ended */
    bool is_busy; /* searches now */
    unsigned shards_up; /* when it last searched, or was idle */
};

struct searcher_options {
    struct embedded *table; /* borrowed */
    unsigned index; /* its slot in the table */
    unsigned neighbours; /* searchers with this table, itself included: one alone registers
                            nothing in it */
    const struct remote_shell *shell; /* copied, its `self` borrowed until close; NULL: no shards,
                                         and nothing below is used but is_fiber and poll_nodes */
    struct client_options client; /* rto_min_us 0: SEARCHER_RTO_MIN_US; hello_flags are set by the
                                     remote table; `instance` is random, one for each searcher; a
                                     front-end and a worker get a job client */
    struct mailboxes *mailboxes; /* borrowed until close; NULL: none; else this one is connected: */
    unsigned mailbox;
    struct bag_inbox *bag; /* borrowed until close: gets the letters of a bag; NULL: none */
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

/* From env.poll: serves the table (table_port.serve) and publishes the figures; the first time in a
 * search it may move the thread to another CPU (placement.h). `now_us`: CLOCK_MONOTONIC, or the
 * shell's clock in the virtual cluster. */
void searcher_serve(struct searcher *p, struct search *search, uint64_t now_us);
/* Publishes what the search has counted. */
void searcher_publish(struct searcher *p);
/* After the search, by its thread: publishes the figures, sends what waits to be sent, ends its
 * placement. */
void searcher_end(struct searcher *p);

/* Makes a line as long as its depth, as far as the process's table knows how it goes on: a result
 * of others that ended an iteration leaves a line of one move. Shards are not asked, which would
 * cost the search a round trip a move. Uses the job's position and leaves it as it was. */
void searcher_extend_line(const struct searcher *p, const struct job *job, struct search_line *line,
                          unsigned want);

/* In this search, until now; by its thread. */
struct searcher_talk searcher_talk(const struct searcher *p);

struct searcher_figures searcher_figures(const struct searcher *p);
struct searcher_totals searcher_totals(const struct searcher *p);
/* Which shards are up, as of now. To be called between searches, too: they come and go. */
void searcher_publish_shards(struct searcher *p);

#endif
