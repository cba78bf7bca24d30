/* worker: a searcher that helps. Shards offer it jobs; it searches one from the root and
 * holds nothing that matters: kill it and only its unfinished nodes are searched again. What it
 * decides is in worker_core.h; this is the shell: searching, messages, waiting.
 *
 * Threads: worker_open and worker_close by the process, worker_connect and worker_run by the
 * worker's own thread (or fiber). Memory: allocates in open and when a job of another game begins.
 * Blocking: worker_connect and worker_run; everything else returns at once. */
#ifndef WORKER_ENGINE_WORKER_H
#define WORKER_ENGINE_WORKER_H

#include "worker/engine/searcher.h"
#include "worker/engine/worker_core.h"
#include "worker/search/handover/peers.h"

enum { WORKER_CONNECT_MS = 500 };

struct worker;

/* Bit i: source i changed; is up now. By the worker's thread, at most once a second. */
typedef void worker_sources_changed(void *self, uint64_t changed, uint64_t up);

struct worker_options {
    struct searcher_options searcher; /* with a lane; the worker sets the role */
    struct worker_patience patience; /* zeroes: the defaults */
    uint64_t seed; /* breaks ties differently in every worker */
    const atomic_bool *stop; /* borrowed */
    worker_sources_changed *sources_changed; /* NULL: nobody is told */
    void *sources_self;
    struct peer_port peers; /* of the virtual cluster; zeroes: none, and jobs of algorithms that
                               need one are refused unless it ... */
    bool has_letters; /* ... opens one: shards pass on letters between searchers */
};

enum err worker_open(struct worker **out, const struct worker_options *options);
/* Says BYE. Accepts NULL; nulls. */
void worker_close(struct worker **worker);

/* Tries every shard for up to `wait_ms`; returns how many are up. */
unsigned worker_connect(struct worker *worker, unsigned wait_ms);
/* Serves until *stop. */
void worker_run(struct worker *worker);

/* Borrowed. The state is for its own thread only, a searcher also for others (searcher.h). */
const struct worker_core *worker_state(const struct worker *worker);
struct searcher *worker_searcher(struct worker *worker);

#endif
