/* engine: what a front-end searches with: threads over one embedded table, and the cluster behind
 * it.
 *
 * Threads: engine_run blocks its caller, which searches as searcher 0; engine_stop may be called
 * by any thread and from a signal handler; the rest by the owner while nothing runs. Memory: all
 * tables in open. */
#ifndef WORKER_ENGINE_ENGINE_H
#define WORKER_ENGINE_ENGINE_H

#include "common/keys.h"
#include "worker/engine/searcher.h"
#include "worker/table/transport.h"

enum {
    ENGINE_CONNECT_MS = 500, /* at start, for shards that do not answer */
    ENGINE_WHY_MAX = KEYS_WHY_MAX,
    ENGINE_PATIENCE_US = 3000000, /* of who watches a search: then details interest, too */
};

struct engine_options {
    unsigned threads; /* 1..EMBEDDED_SLOTS_MAX */
    uint64_t hash_bytes;
    bool is_private; /* has no table in common with other processes of the host */
    uint8_t share_depth; /* results of at least this depth are broadcast; 0: none */
    struct transport_address table; /* the one outside the process; zeroes: there is none */
    const char *program; /* says on stderr which shard refuses our keys; NULL: says nothing */
    const struct host_table_wait *wait; /* host_table.h; NULL: waits in silence */
};

/* Sums over this process and, where workers reported, over all. */
struct engine_status {
    uint64_t time_us;
    uint64_t own_nodes;
#define X(name, json, help) uint64_t name;
    COUNTERS(X)
#undef X
    uint64_t waited_us; /* for shards, of this process's threads */
    uint64_t all_waited_us, all_us; /* the same of all searchers, and the time that they had */
    uint64_t bytes; /* of messages between all searchers and the shards */
    unsigned workers; /* ttworker threads that live: reported in the last seconds */
    unsigned shards, shards_up, remote_depth;
    unsigned refused; /* shards that refused the job */
    unsigned workers_refused; /* workers that live and cannot search it: of another build */
    unsigned depth; /* iteration under way */
    unsigned hash_permille;
};

struct engine_result {
    struct search_result search;
    struct engine_status status;
    bool stopped; /* by engine_stop, not by the job's limits */
};

/* Called from searching threads, one at a time. */
struct engine_observer {
    void *self;
    /* Of each finished iteration every line, the best first, which is `line` 0, and of one
     * under way a bound (result->bound) of line 0, without a move. After ENGINE_PATIENCE_US ... */
    void (*iteration)(void *self, unsigned line, const struct search_result *result,
                      const struct engine_status *status);
    /* ... the root's move that the first thread is at, when it changes. */
    void (*root_move)(void *self, uint16_t move, unsigned number,
                      const struct engine_status *status);
    /* About once a second; `best`: of the last finished iteration. */
    void (*progress)(void *self, const struct search_result *best,
                     const struct engine_status *status);
    /* Once for each shard that refuses the job: `why` are its words; and once it has taken it
     * since, with NULL. Others may have taken it. */
    void (*refused)(void *self, unsigned shard, const char *why,
                    const struct engine_status *status);
};

struct engine;

/* Connects to the shards for up to ENGINE_CONNECT_MS. No shard being up is no error. On failure a
 * line for people is written to `why`. */
enum err engine_open(struct engine **out, const struct engine_options *options,
                     char why[ENGINE_WHY_MAX]);
void engine_close(struct engine **engine);
/* For those who count; any thread. Workers that live and help the search under way. */
unsigned engine_workers(const struct engine *engine);
const struct searcher *engine_searcher(const struct engine *engine, unsigned i);
unsigned engine_shards(const struct engine *engine);
unsigned engine_shards_up(const struct engine *engine);
/* transport_shard_name. */
void engine_shard_name(const struct engine *engine, unsigned shard, char out[TRANSPORT_NAME_MAX]);
/* Why it shares no table with the other processes of the host, though it was to; else NULL. */
const char *engine_private_reason(const struct engine *engine);

/* Answers the job. `observer` may be NULL. ERR_NOMEM. */
enum err engine_run(struct engine *engine, struct job *job, const struct engine_observer *observer,
                    struct engine_result *out);
/* Ends a run, or the next one at once: a stop is never lost. engine_arm takes it back. */
void engine_stop(struct engine *engine);
void engine_arm(struct engine *engine);
/* Serves the shards between searches, for about `wait_ms`: keeps sessions alive. */
void engine_idle(struct engine *engine, unsigned wait_ms);
/* Forgets the embedded table's results. */
void engine_clear(struct engine *engine);

#endif
