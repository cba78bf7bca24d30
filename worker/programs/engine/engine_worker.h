/* engine_worker: a worker that has an engine of somebody else in place of our search. Shards offer
 * it jobs; it takes those for engines of that name (engine_job.h). It holds nothing that matters:
 * kill it and its engine ends with it. What it decides is in worker_core.h.
 *
 * Threads: the main thread. Memory: some hundred KiB. Blocking: until it is told to stop. */
#ifndef WORKER_PROGRAMS_ENGINE_ENGINE_WORKER_H
#define WORKER_PROGRAMS_ENGINE_ENGINE_WORKER_H

#include "worker/programs/cli.h"
#include "worker/programs/engine/engine_job.h"

#include <stdatomic.h>

struct engine_worker_options {
    const char *program;
    const char *command; /* of the engine */
    const struct engine_settings *owners; /* set by the command line: no job changes them */
    const struct cli_table *table;
    const char *name; /* NULL: HOST:PID */
    const char *log;
    const struct options_host_port *metrics;
    uint32_t threads;
    uint64_t hash_mib;
    const atomic_bool *stop;
};

/* An option of the command line, NAME=VALUE, into struct engine_settings. */
enum err engine_worker_parse_option(const char *text, void *settings);

/* Until *stop. Returns the exit status. */
int engine_worker_serve(const struct engine_worker_options *options);

#endif
