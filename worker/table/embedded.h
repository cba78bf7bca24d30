/* embedded: the table inside one process, shared by its threads: the results of a shard, and who is
 * inside which node behind a lock for each few of them (inside.h). A front-end without servers uses
 * it alone; every process uses it below the inflight_depth and when no shard is up. The results,
 * but not who is inside, may be shared with other processes of the host (host.h).
 *
 * Threads: open, close, clear and begin while nobody searches; the port's functions from the thread
 * that owns the port. Memory: allocates in open. Never blocks but on a node's lock (inside.h), in
 * store on that of another thread's mailbox, both held for some 20 to 200 ns, and in
 * embedded_update_placement.
 */
#ifndef WORKER_TABLE_EMBEDDED_H
#define WORKER_TABLE_EMBEDDED_H

#include "common/err.h"
#include "common/placement.h"
#include "worker/search/ports.h"

#include <stddef.h>

enum {
    EMBEDDED_SLOTS_MAX = 256, /* threads */
    EMBEDDED_INFLIGHT_DEPTH = 3, /* below, keeping count costs more than it saves */
    EMBEDDED_INFLIGHT_PLIES = 4, /* below the root, where iterations count by their size: children
                                   of the root and three plies more */
    EMBEDDED_NEVER = 255,
};

struct embedded;

struct embedded_port {
    struct embedded *table;
    uint16_t slot;
    /* fixed while a search runs */
    uint8_t inflight_depth_max; /* nodes of at least this depth are counted by nproc; or NEVER */
    bool inflight_by_size; /* and where an iteration is small, smaller ones (COUNTED_PLIES): threads
                            in different iterations then differ in what they count, which saves
                            less and harms nothing */
    /* state, of embedded.c and embedded_begin_inflight */
    struct placement_slot place; /* but for its name, which is fixed */
    bool is_placed; /* in this search */
    uint8_t inflight_depth;
    uint32_t heard; /* of the lessons: so far */
};

/* `bytes` of results, at least one bucket; room for `slots` threads. ERR_NOMEM, ERR_RANGE. */
enum err embedded_open(struct embedded **out, size_t bytes, unsigned slots);
/* The same, with the results of the processes of this host that open the same `group`
 * (host_group) and size; with results of its own where that cannot be (embedded_is_shared). */
enum err embedded_open_shared(struct embedded **out, size_t bytes, unsigned slots, uint64_t group);
bool embedded_is_shared(const struct embedded *table);
/* errno of why it is not, though it was to be; else 0. */
int embedded_private_reason(const struct embedded *table);
void embedded_close(struct embedded **table);
/* Forgets all results, unless another process has them as well. */
void embedded_clear(struct embedded *table);
/* A new search: older results of its namespace are replaced first (common/tt/generation.h). Once
 * for all who share the table and begin the same `job`, of the last few; always for job 0. */
void embedded_begin(struct embedded *table, uint64_t job, uint64_t namespace_id);
/* The same while others may be searching: any thread. */
void embedded_advance(struct embedded *table, uint64_t job, uint64_t namespace_id);
/* Holds at this moment, over all nodes; 0 when nobody searches. */
unsigned embedded_inflight(struct embedded *table);
/* Share of a sample of the table used by the running search. */
unsigned embedded_permille(struct embedded *table);

/* Takes the NODE_DONE news left for this slot (results of nodes it is inside), up to `room`; the
 * rest is dropped. */
unsigned embedded_node_done(struct embedded_port *port, struct tt_store *out, unsigned room);

/* The calling thread searches with this port: again and again, so that those who share the table
 * begin on processors of their own (placement.h). The first call after embedded_listen may move the
 * thread to another. `now_us`: CLOCK_MONOTONIC. */
void embedded_update_placement(struct embedded_port *port, uint64_t now_us);
/* It searches no more. */
void embedded_placement_end(struct embedded_port *port);

/* For env_port.until_poll of the search that uses this port: becomes 1 when there is such news.
 * Lives as long as the table. */
atomic_uint *embedded_until_poll(const struct embedded_port *port);

/* Lessons of those who search the root `root_key` and share this table (lessons.h): tells `count`,
 * at most LESSONS_KEPT, and hears up to `room` that others told since the last call, or since
 * embedded_listen; `out` may be the room of `given`. One who has the table alone hears nothing. */
void embedded_listen(struct embedded_port *port);
unsigned embedded_lessons(struct embedded_port *port, uint64_t root_key,
                          const struct tt_weight *given, unsigned count, struct tt_weight *out,
                          unsigned room);

/* Only what is known, without counting: used by the remote table below its inflight_depth and as
 * its cache. */
bool embedded_find(struct embedded *table, const struct tt_ask *ask, struct tt_answer *answer);
void embedded_put(struct embedded *table, const struct tt_store *store);

/* A table_id that tells this table from those of others, as results carry it that are told to
 * others.
 */
uint64_t embedded_table_id(const struct embedded *table);
/* It is random unless set, before anybody uses a table of one's own. */
void embedded_set_table_id(struct embedded *table, uint64_t table_id);
/* Searchers with another table were heard of, which counts until then; and when it does. Any
 * thread of any process that shares the table. */
void embedded_saw_other_table(struct embedded *table, uint64_t until_us);
uint64_t embedded_other_table_until_us(const struct embedded *table);

/* After inflight_depth_max was set anew, inside no node; a new table port begins so, too. */
void embedded_begin_inflight(struct embedded_port *port);
/* `port` must outlive the table port made of it. */
struct table_port embedded_table_port(struct embedded_port *port);

#endif
