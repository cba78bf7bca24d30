/* gui: a program that a GUI drives: lines come on standard input, answers go to standard output,
 * and searches run in a thread of their own meanwhile. One wait is for input and for the search's
 * end. The program ends after a command that says so, with the input (what was asked before is
 * answered), by a signal, and when nobody reads its answers any more.
 *
 * Threads: all calls from one thread; the observer is called by the thread of the search, which
 * calls engine_run. Memory: a buffer that grows to the longest line, at most
 * GUI_LINE_MAX bytes. Blocking: gui_loop; gui_stop until the search has ended. */
#ifndef WORKER_PROGRAMS_GUI_H
#define WORKER_PROGRAMS_GUI_H

#include "worker/engine/engine.h"
#include "worker/programs/line_reader.h"

#include <pthread.h>

enum { GUI_LINE_MAX = (1 << 20) - 2 }; /* a game of 200,000 plies in UCI */

/* What searches in place of an engine: functions with the contracts of engine_run, engine_stop,
 * engine_arm and engine_forget. */
struct gui_stand_in {
    void *self;
    enum err (*run)(void *self, struct job *job, const struct engine_observer *observer,
                    struct engine_result *out);
    void (*stop)(void *self);
    void (*arm)(void *self);
    void (*forget)(void *self);
};

struct gui {
    /* fixed before gui_open */
    void *self; /* of the functions */
    const struct gui_stand_in *stand_in; /* borrowed; NULL: `engine` searches */
    bool is_ordered; /* a line that comes during a search waits for its end */
    /* A line without its end; changed. False: the program ends. */
    bool (*obey)(void *self, char *line);
    /* The search has ended with `result`; `is_stopped`: by us, so that nothing is to follow it. */
    void (*answer)(void *self, bool is_stopped);
    /* A line is too long, and skipped. `start` is its beginning. */
    void (*refuse)(void *self, const char *start, const char *why);
    /* state */
    struct engine *engine; /* the caller's; NULL: none yet */
    const atomic_bool *quitting; /* set by a signal */
    bool is_held; /* the answer waits for gui_stop or for this to be false */
    uint64_t stop_us; /* time at which the search is stopped; 0: none */
    struct engine_result result; /* of the last search; depth 0 and move 0: it failed */
    bool is_running; /* set from gui_begin until the answer */
    /* private */
    bool has_ended; /* nothing is searched: the result is there */
    int ended[2]; /* a pipe */
    pthread_t thread;
    struct job *job;
    struct engine_observer observer;
    struct line_reader input;
};

/* From now on a signal ends the program, and each line of output goes out at once. False after a
 * message of `program`: no memory, or no pipe. */
bool gui_open(struct gui *gui, const char *program);
/* Accepts a zeroed struct, and twice. */
void gui_close(struct gui *gui);

/* Until the program is to end. A search under way is stopped and answered then. */
void gui_loop(struct gui *gui);
/* Arms the engine and begins. The job is borrowed until the answer, which comes at once where no
 * thread can be created. */
void gui_begin(struct gui *gui, struct job *job, const struct engine_observer *observer);
/* Ends the search under way, if there is one, with its answer. */
void gui_stop(struct gui *gui);
/* Lets the search under way end; gui_loop answers. Any thread. */
void gui_end_search(struct gui *gui);

#endif
