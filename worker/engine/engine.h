/* engine: what a front-end searches with: threads over one embedded table, and the cluster behind
 * it.
 *
 * An observer may take as long as its terminal, pipe or GUI likes, so no searching thread calls it:
 * engine_run's caller does, in order, and of progress, of the root's moves and of what a shard says
 * of the job it tells only the newest. When very many lines wait, those of old iterations are left
 * out, all of an iteration together.
 *
 * Threads: engine_run blocks its caller, which reports to the observer, and searches only where no
 * thread can be started; engine_stop may be called by any thread and from a signal handler; the
 * rest by the owner while nothing runs. Memory: all tables in open. */
#ifndef WORKER_ENGINE_ENGINE_H
#define WORKER_ENGINE_ENGINE_H

#include "common/keys/keys.h"
#include "worker/engine/front_core.h"
#include "worker/engine/searcher.h"
#include "worker/lane/lanes.h"

enum {
    ENGINE_CONNECT_MS = 500, /* at start, for shards that do not answer */
    ENGINE_WHY_MAX = KEYS_WHY_MAX,
    ENGINE_PATIENCE_US = 3000000, /* time after which details interest those who watch, too */
};

struct engine_options {
    unsigned threads; /* 1..EMBEDDED_SLOTS_MAX */
    uint64_t hash_bytes;
    bool is_private; /* has no table in common with other processes of the host */
    uint8_t share_depth; /* results of at least this depth are broadcast; 0: none */
    struct lanes_address table; /* the one outside the process; zeroes: there is none */
    const char *program; /* says on stderr which shard refuses our keys; NULL: says nothing */
    const struct host_table_wait *wait; /* host_table.h; NULL: waits in silence */
};

struct engine_status {
    uint64_t time_us;
    uint32_t left_s; /* until the position is solved, about (search_nodes_left); 0: unknown */
    struct counters own; /* of this process's threads */
    struct counters sum; /* of all searchers: with what workers reported */
    uint64_t all_us; /* the time that all searchers had */
    unsigned workers; /* ttworker threads that live: reported in the last seconds */
    unsigned shards, shards_up, remote_depth;
    unsigned refused; /* shards that refused the job */
    unsigned workers_refused; /* workers that live and cannot search it: of another build */
    unsigned depth; /* iteration under way */
    unsigned hash_permille;
};

/* `why`: the shard's words; NULL: it refused the job before, and has taken it since. Others may
 * have taken it. */
typedef void engine_refused(void *self, unsigned shard, const char *why,
                            const struct engine_status *status);

/* Called by engine_run's caller, which does not search, while the search goes on. The job's
 * position is the observer's meanwhile. NULL in place of a function: nobody wants to know. */
struct engine_observer {
    void *self;
    /* Gets every line of each finished iteration, the best first (`line` 0), and of an iteration
     * under way a bound (result->bound) of line 0, without a move. After ENGINE_PATIENCE_US ... */
    void (*iteration)(void *self, unsigned line, const struct search_result *result,
                      const struct engine_status *status);
    /* ... the root's move that the first thread is at, when it changes. */
    void (*root_move)(void *self, uint16_t move, unsigned number,
                      const struct engine_status *status);
    /* About once a second; `best`: of the last finished iteration. */
    void (*progress)(void *self, const struct search_result *best,
                     const struct engine_status *status);
    engine_refused *refused; /* once for each shard and change */
};

struct engine_result {
    struct search_result search;
    struct engine_status status;
    bool stopped; /* set when engine_stop ended it, not the job's limits */
    /* What each process contributed, this one first; borrowed until the next run. */
    const struct front_host *host;
    unsigned hosts;
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
/* lanes_shard_name. */
void engine_shard_name(const struct engine *engine, unsigned shard, char out[LANES_NAME_MAX]);
/* Whether no shard is up of a table outside the process, in whose case `out` says so
 * (lanes_none_up). */
bool engine_none_up(const struct engine *engine, char out[LANES_NONE_UP_MAX]);
/* Why it shares no table with the other processes of the host, though it was to; else NULL. */
const char *engine_private_reason(const struct engine *engine);

/* Answers the job. `observer` may be NULL; what it does holds up no search, and engine_run returns
 * when it has been told all. ERR_NOMEM. */
enum err engine_run(struct engine *engine, struct job *job, const struct engine_observer *observer,
                    struct engine_result *out);
/* After a run of `job`, which is borrowed until end: searches single nodes below its root, with the
 * first searcher and the tables as the run left them (search_subtree). engine_stop ends such a
 * search. Nothing else runs meanwhile. ERR_NOMEM. */
enum err engine_subtrees_begin(struct engine *engine, const struct job *job);
enum search_status engine_subtree(struct engine *engine, const struct search_split *split,
                                  struct search_result *out);
void engine_subtrees_end(struct engine *engine);
/* Ends a run, or the next one at once: a stop is never lost. engine_arm takes it back. */
void engine_stop(struct engine *engine);
void engine_arm(struct engine *engine);
/* Serves the shards between searches, for about `wait_ms`: keeps sessions alive. */
void engine_idle(struct engine *engine, unsigned wait_ms);
/* Forgets the embedded table's results. */
void engine_clear(struct engine *engine);
/* Forgets these, and what its searchers learned from earlier searches. */
void engine_forget(struct engine *engine);

#endif
