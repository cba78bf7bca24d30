/* background: a search in a thread of its own, while the main thread goes on to read commands. A
 * pipe says when it has ended, so that one poll() waits for that and for input.
 *
 * Threads: all calls from one thread; the observer is called by the engine's thread for that
 * (observer.h), and by none that searches. Memory: none but the pipe. Blocking: await and join,
 * until the search has ended. */
#ifndef WORKER_PROGRAMS_BACKGROUND_H
#define WORKER_PROGRAMS_BACKGROUND_H

#include "worker/engine/engine.h"

#include <pthread.h>

struct background {
    struct engine_result result; /* what the last search found; depth 0 and move 0: it failed */
    bool is_running; /* set from begin to join */
    bool has_ended; /* set while nothing is searched: the result is there */
    /* private but for ended[0], which can be read when the search has ended */
    int ended[2];
    pthread_t thread;
    struct engine *engine;
    struct job *job;
    struct engine_observer observer;
};

/* False with errno: there is no pipe. */
bool background_open(struct background *background);
void background_close(struct background *background);

/* Arms the engine and begins. Engine and job are borrowed until join. Where no thread can be
 * created it searches at once: then is_running is false after it, and the result is there. */
void background_begin(struct background *background, struct engine *engine, struct job *job,
                      const struct engine_observer *observer);
/* After poll() said that ended[0] can be read. */
void background_await(struct background *background);
/* Waits for the end of the search that is running. */
void background_join(struct background *background);

#endif
