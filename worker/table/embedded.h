/* embedded: the table inside one process, shared by its threads: results, and the in-flight entries
 * of common/tt in stripes, each behind a lock of its own. A front-end without servers uses it
 * alone; elsewhere the threads of a process meet in it at all depths, before the shards are asked.
 * The results may be shared with other processes of the host (host_table.h); the in-flight entries
 * are not, but an exclusive ask is BUSY where a thread of another process has claimed the node, or
 * where another host has (a foreign claim, share.h).
 *
 * Threads: open, close and clear while no thread searches; begin and the figures from any thread; a
 * port's functions from the thread that owns the port. Memory: allocates in open and for a solver.
 * Blocking, but for a solver's memory: only on a stripe's lock and that of another thread's
 * notices, both held for some 20 to 200 ns, and in embedded_update_placement. A table of one slot
 * takes no lock. */
#ifndef WORKER_TABLE_EMBEDDED_H
#define WORKER_TABLE_EMBEDDED_H

#include "common/err.h"
#include "common/placement.h"
#include "proto/client/feed.h"
#include "worker/search/ports.h"
#include "worker/table/notices.h"

#include <stddef.h>

enum {
    EMBEDDED_SLOTS_MAX = 256, /* threads */
    EMBEDDED_INFLIGHT_DEPTH = 3, /* below, in-flight entries cost more than they save */
    EMBEDDED_INFLIGHT_PLIES = 4, /* in small iterations: children of the root and three plies more
                                    are registered, too */
    EMBEDDED_NEVER = 255,
    EMBEDDED_FOREIGN_RECENT_MS = 50, /* a claim comes from hosts that claim at least so often */
};

struct embedded;
struct host_table_wait;

/* Results that the searchers of a process found and no other host knows yet (share.h, which is
 * how it is used). */
struct share_queue {
    pthread_mutex_t lock;
    uint64_t namespace_id; /* the results' namespace: searchers of a process may have unlike jobs */
    struct feed feed;
};

struct embedded_port {
    struct embedded *table;
    uint16_t slot;
    /* fixed while a search runs */
    uint8_t
        inflight_depth_max; /* nodes of at least this depth are registered in flight; or NEVER */
    int score_max; /* the game's: what others say beyond it is not kept; 0: no bound */
    bool is_full; /* selection full: a node of a depth costs a small part of another search's */
    bool is_strict; /* results of several depths of a key stay beside each other */
    bool results_only; /* nothing is registered: the depths only say what is searched beside others
                        */
    bool inflight_by_size; /* smaller ones in small iterations (EMBEDDED_INFLIGHT_PLIES). Threads in
                              different iterations then register different nodes, which saves less
                              and harms nothing */
    bool counts_foreign; /* foreign claims of nodes of CLAIMS_FOREIGN_DEPTH and more count */
    /* state */
    uint64_t now_us; /* for foreign claims: who uses the port sets it now and then */
    uint64_t job; /* begun last */
    uint64_t namespace_id; /* the job's, and its index in the generations */
    uint8_t namespace_index;
    struct placement_slot place; /* but for its name, which is fixed */
    bool is_placed; /* in this search */
    uint8_t inflight_depth;
};

/* `bytes` of results, at least one bucket; room for `slots` threads. ERR_NOMEM, ERR_RANGE. */
enum err embedded_open(struct embedded **out, size_t bytes, unsigned slots);
/* The same, with the results of the processes of this host that open the same `group`
 * (lanes_group) and size; with results of its own where that fails (embedded_is_on_host).
 * `wait` (host_table.h) may be NULL; ERR_IO when it ended the wait. */
enum err embedded_open_on_host(struct embedded **out, size_t bytes, unsigned slots, uint64_t group,
                               const struct host_table_wait *wait);
bool embedded_is_on_host(const struct embedded *table);
/* errno of why it is not, though it was to be; else 0. */
int embedded_private_reason(const struct embedded *table);
void embedded_close(struct embedded **table);
/* Forgets all results, unless another process has them as well. */
void embedded_clear(struct embedded *table);
/* In-flight entries at this moment; 0 when nobody searches. */
unsigned embedded_inflight(struct embedded *table);

/* The port's thread begins a search: older results of its namespace are replaced first
 * (common/tt/generation.h). Once for all who share the table and begin the same `job`, of the last
 * few, and once for a port that begins the same `job` again and again (the positions of a bag);
 * always for job 0. */
void embedded_begin(struct embedded_port *port, uint64_t job, uint64_t namespace_id);
/* The fraction of the table (of a sample) that results of the namespace's last job fill, in
 * thousandths. Any thread. */
unsigned embedded_permille(const struct embedded *table, uint64_t namespace_id);

/* Reads and writes results without registering anything. A score that the game does not have is not
 * written: at the same depth it would outlive true ones. */
bool embedded_find(struct embedded *table, const struct tt_ask *ask, struct tt_answer *answer);
void embedded_put(const struct embedded_port *port, const struct tt_store *store);

/* The same for results that other hosts found: also tells the searchers of this table that are in
 * these nodes, but in those of less than EMBEDDED_INFLIGHT_DEPTH. And for foreign claims: of two
 * hosts that claim a node at the same time both see which one goes before the other. They are kept
 * for all processes with this table, whether they count for this port or not. `now_us`: now. */
void embedded_take(const struct embedded_port *port, const struct tt_store *results, unsigned count,
                   uint64_t now_us);
/* Whether a searcher with this table is in the node, of any process. */
bool embedded_is_in_flight(const struct embedded_port *port, uint64_t key, uint8_t depth);
/* Whether other hosts claim nodes: the last claim came less than EMBEDDED_FOREIGN_RECENT_MS ago. */
bool embedded_receives_claims(const struct embedded *table, uint64_t now_us);
/* As if one had come: at the begin of a search they may be on their way. */
void embedded_expect_claims(struct embedded *table, uint64_t now_us);

/* What the searchers of this table have in common for their game's solver: `bytes`, aligned to a
 * cache line, zero at first. Where the results are the host's, so is this, of all processes with
 * the same group and layout. Made by the first call, which may wait for another process for some
 * hundred milliseconds. As long as the table lives. NULL: no memory, or it is of another layout.
 * Any thread. */
void *embedded_solver_memory(struct embedded *table, size_t bytes, uint64_t layout);

unsigned embedded_slots(const struct embedded *table);
/* Results that this process is to publish to other hosts (share.h). */
struct share_queue *embedded_share_queue(struct embedded *table);

/* Tells this table from those of others; broadcast results carry it. */
uint64_t embedded_table_id(const struct embedded *table);
/* What this table's host is called in foreign claims; two may have the same name. */
uint16_t embedded_host_name(const struct embedded *table);
/* It is random unless set, before the first search, in a table that is not the host's. */
void embedded_set_table_id(struct embedded *table, uint64_t table_id);
/* A peer with another table was seen, which counts until then; and until when it does. Any thread
 * of any process that shares the table. */
void embedded_saw_other_table(struct embedded *table, uint64_t until_us);
uint64_t embedded_other_table_until_us(const struct embedded *table);

/* From env.poll: hands completion notices (search_node_done) and foreign claims
 * (search_node_claimed) to the search, and keeps its namespace in use. Never waits. */
void embedded_serve(struct embedded_port *port, struct search *search);
/* Completion notices for this port's searcher. */
struct notices *embedded_notices(const struct embedded_port *port);
/* For env_port.until_poll of the search that uses this port: becomes 1 when a notice comes. Lives
 * as long as the table. */
atomic_uint *embedded_until_poll(const struct embedded_port *port);

/* Called again and again by the thread that searches with this port, so that the threads that share
 * the table begin on CPUs of their own (placement.h). The first call of a search may move the
 * thread to another CPU. `now_us`: CLOCK_MONOTONIC. */
void embedded_update_placement(struct embedded_port *port, uint64_t now_us);
/* The search is over. */
void embedded_end_placement(struct embedded_port *port);

/* For one search, begun anew for each: the in-flight depth is the port's maximum again, old notices
 * are dropped. `port` must outlive it and be registered in no node. */
struct table_port embedded_table_port(struct embedded_port *port);
/* Its functions (ports.h); `port` is a struct embedded_port. embedded_ask only brings the
 * entry near; embedded_await asks, also without it. */
void embedded_prefetch(void *port, uint64_t key);
bool embedded_ask(void *port, const struct tt_ask *ask, struct table_ticket *ticket,
                  struct tt_answer *answer);
void embedded_await(void *port, const struct tt_ask *ask, struct table_ticket *ticket,
                    struct tt_answer *answer);
void embedded_store(void *port, const struct table_ticket *ticket, const struct tt_store *store);
void embedded_release(void *port, const struct table_ticket *ticket,
                      const struct tt_release *release);
void embedded_peek(void *port, const struct tt_peek *peek, unsigned count, bool near,
                   struct tt_peeked *out);
unsigned embedded_inflight_depth(void *port, unsigned iteration, bool *sees_foreign);

#endif
