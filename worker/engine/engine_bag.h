/* engine_bag: a front-end's search of many positions at once. Each of its threads, and each worker
 * of the cluster, searches positions of its own (bag_core.h) while there are enough of them; the
 * last are shared. Without shards, or without letters (a Redis), its threads do it alone.
 *
 *     caller                    thread 0 (and 1, 2 ...)             workers
 *     engine_run_bag            takes, searches, answers
 *       waits, says             reads letters, sends them <-------> search, say what they have
 *       `done` in order
 *
 * Threads: engine_run_bag blocks its caller, which searches nothing: so what the callbacks do holds
 * up no search. engine_stop ends it: what is under way then has no answer. Memory: some 500 bytes
 * for each position. */
#ifndef WORKER_ENGINE_ENGINE_BAG_H
#define WORKER_ENGINE_ENGINE_BAG_H

#include "worker/engine/bag_core.h"
#include "worker/engine/engine.h"

struct engine_bag_progress {
    unsigned done, count; /* positions */
    struct engine_status status; /* of all of them */
    struct bag_figures figures;
};

/* Called with `self`: but for `position` all by the caller of engine_run_bag. */
struct engine_bag {
    void *self;
    unsigned count;
    const struct job *common; /* what all positions have in common: all but id and position */
    const char *(*position)(void *self,
                            unsigned i); /* as the game writes it; borrowed; any thread */
    /* Position i has its answer: each once, in order. After engine_stop some are left out. `job`
     * has the position, to be used freely. */
    void (*done)(void *self, unsigned i, const struct job *job, const struct engine_result *result);
    /* About once a second. */
    void (*progress)(void *self, const struct engine_bag_progress *progress);
    /* As observer.h. */
    void (*refused)(void *self, unsigned shard, const char *why,
                    const struct engine_status *status);
};

/* `total`: at the end. ERR_NOMEM. */
enum err engine_run_bag(struct engine *engine, const struct engine_bag *bag,
                        struct engine_bag_progress *total);

#endif
