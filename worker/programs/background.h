/* background: a search in a thread of its own, while the main thread goes on to read commands. One
 * wait is for its end and for input.
 *
 * Threads: all calls from one thread; the observer is called by the engine's thread for that
 * (observer.h), and by none that searches. Memory: none but the pipe. Blocking: wait, and join
 * until the search has ended. */
#ifndef WORKER_PROGRAMS_BACKGROUND_H
#define WORKER_PROGRAMS_BACKGROUND_H

#include "worker/engine/engine.h"

#include <pthread.h>

enum { BACKGROUND_PATIENCE_MS = 100 }; /* a signal that comes right before a wait does not end it */

enum background_event {
    BACKGROUND_OTHER, /* the search has ended, or a signal came */
    BACKGROUND_INPUT,
    BACKGROUND_GONE,
    BACKGROUND_QUIET, /* nothing came */
};

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
/* Waits up to `timeout_ms` for a line's bytes on standard input (if it `reads`), or for the end of
 * the search, whose result is there then. GONE: nobody reads standard output any more
 * (commands_output_is_gone). */
enum background_event background_wait(struct background *background, bool reads, int timeout_ms);
/* Waits for the end of the search that is running. */
void background_join(struct background *background);

#endif
