/* engine_state: what an engine is made of, for the files that make it work: engine.c, where all of
 * its threads search one position, and engine_bag.c, where each searches its own.
 *
 * Threads: as engine.h says of each function; fields by their groups. Memory: engine_open's. */
#ifndef WORKER_ENGINE_ENGINE_STATE_H
#define WORKER_ENGINE_ENGINE_STATE_H

#include "worker/engine/engine.h"

#include <pthread.h>

struct mailboxes;

struct engine_thread {
    struct searcher searcher;
    struct engine *engine;
    struct env_port env;
};

struct engine {
    /* fixed after open */
    struct engine_options options;
    struct embedded *table;
    struct transport *transport; /* NULL: no table outside the process */
    unsigned shards;
    struct mailboxes *mailboxes; /* of algorithms whose searchers send each other messages ... */
    bool has_letters; /* ... to those of other processes, too: shards pass them on */
    struct bag_inbox *inbox; /* of the first thread; NULL: there are no letters */
    struct engine_thread *thread; /* the first has the jobs */
    struct observer *observer; /* notes are written under `lock` */
    struct front_host *host; /* FRONT_WORKERS_MAX and its own: of the last run */
    char name[CLIENT_NAME_MAX + 1]; /* the process's among hosts */
    uint64_t instance; /* of the front-end's session */
    /* state of a run */
    atomic_bool stop, ended;
    atomic_uint workers; /* that help, as far as known */
    struct job own; /* with a position of its own: the observer has the other's */
    const struct job *job; /* that, or NULL */
    unsigned last_iteration; /* of the job */
    uint64_t begin_us, deadline_us;
    uint64_t end_us; /* 0: it goes on */
    uint64_t next_progress_us, next_report_us; /* of the first thread */
    uint16_t said_root_move; /* by it */
    uint64_t said_refused; /* bit i: shard i's refusal was told to the observer */
    pthread_mutex_t lock;
    struct front_core front; /* with `best`: under the lock */
    struct search_result best;
};

/* What the front-end reports of a run, without what it found. */
struct proto_job_report engine_report_of(uint64_t job, const struct engine_status *status);

/* The next shard that refuses the job, or has taken it since (`why` is NULL then), of which nobody
 * was told; false: there is none. The caller holds the lock, on which `why` hangs. */
bool engine_refusal(struct engine *engine, unsigned *shard, const char **why);

/* By the first thread: what came of jobs and shards. */
void engine_take_events(struct engine *engine);

#endif
