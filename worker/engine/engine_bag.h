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
 * up no search, until ENGINE_BAG_ROOM answers wait for the caller. engine_stop ends it: what is
 * under way then has no answer. Memory: 16 bytes for each position, and 500 for each answer that
 * waits. */
#ifndef WORKER_ENGINE_ENGINE_BAG_H
#define WORKER_ENGINE_ENGINE_BAG_H

#include "worker/engine/bag_core.h"
#include "worker/engine/engine.h"

enum { ENGINE_BAG_ROOM = 1 << 16 };

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
    void (*position)(void *self, unsigned i,
                     char text[GAME_TEXT_MAX]); /* as the game writes it; any thread */
    /* Position i has its answer: each once, in order. After engine_stop some are left out. `job`
     * has the position, to be used freely. */
    void (*done)(void *self, unsigned i, const struct job *job, const struct engine_result *result);
    /* NULL in place of what follows: nobody wants to know. About once a second. */
    void (*progress)(void *self, const struct engine_bag_progress *progress);
    engine_refused *refused; /* engine.h */
    /* A worker is given nothing more, because of what it said of position i: `host` is what it
     * calls itself, or "of unknown name"; `why` goes on after that. Of more than eight a second
     * some are left out. */
    void (*barred)(void *self, unsigned i, const char *host, const char *why);
};

/* `total`: at the end. ERR_NOMEM; ERR_FULL: no thread could be started, or no further job be
 * posted. */
enum err engine_run_bag(struct engine *engine, const struct engine_bag *bag,
                        struct engine_bag_progress *total);

#endif
