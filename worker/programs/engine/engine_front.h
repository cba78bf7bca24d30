/* engine_front: a GUI's side of engines on several machines (`abdada uci --engine`). It acts like
 * the one engine that it runs itself, whose name, options and lines the GUI sees, and posts each
 * "go" as a job for workers with an engine of that name. All vote for the move.
 *
 *     idle ──go──> searching ──(own bestmove, stop, time)──> closing ──(last reports)──> idle
 *
 * There is one bestmove for each "go", in its time, whatever dies: the own engine is started again
 * and searches on; without one the workers' moves count; without these the last line it printed.
 * A move of others is played only if it is legal by our own rules or, where these do not know the
 * game, if the own engine named it itself.
 *
 * Threads: the main thread. Memory: grows with the longest line of the GUI. Blocking: until the
 * GUI ends it. */
#ifndef WORKER_PROGRAMS_ENGINE_ENGINE_FRONT_H
#define WORKER_PROGRAMS_ENGINE_ENGINE_FRONT_H

#include "worker/programs/cli.h"

/* Returns the exit status. The table may be none. */
int engine_front_serve(const char *program, const char *command, const struct cli_table *table);

#endif
