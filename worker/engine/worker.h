/* worker: a thread that helps. It is told of jobs by the shards, searches one from the root, and
 * holds nothing that matters: kill it and only its unfinished nodes are searched again.
 *
 * Threads: worker_open and worker_close by the process, worker_run by the worker's own thread until
 * `stop`. Memory: allocates in open and when a job of another game begins. */
#ifndef WORKER_ENGINE_WORKER_H
#define WORKER_ENGINE_WORKER_H

#include "worker/engine/searcher.h"

enum {
    WORKER_JOBS_MAX = 64, /* open jobs a worker remembers; it asks for the others when one ends */
    WORKER_CONNECT_MS = 500,
    WORKER_REPORT_MS = 200,
    WORKER_MOVE_MS =
        150, /* it belongs to another job at two looks at least so far apart: it goes */
    WORKER_REPEAT_MS = 1000, /* of the last report on a finished job that is still open */
    /* A job no shard vouches for is dropped after this long: when the last one fell silent; when it
     * said that it does not know the job. A shard that has just restarted says that too, and the
     * front-end posts to it again within a heartbeat. */
    WORKER_ORPHAN_MS = 10000,
    WORKER_UNKNOWN_JOB_MS = 2000,
};

struct worker;

struct worker_options {
    struct searcher_options searcher; /* role and sink are set by the worker */
    uint64_t instance_seed; /* breaks ties differently in every worker */
    const atomic_bool *stop; /* borrowed */
};

enum err worker_open(struct worker **out, const struct worker_options *options);
void worker_close(struct worker **worker);

/* Tries every shard for up to WORKER_CONNECT_MS; returns how many are up. */
unsigned worker_connect(struct worker *worker);
/* Serves until *stop; worker_close says BYE. */
void worker_run(struct worker *worker);

#endif
