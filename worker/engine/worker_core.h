/* worker_core: what a worker knows of the open jobs, and what it decides: which job to search, when
 * to leave it, what to report. Time comes with every call; worker.c is its shell.
 *
 * A job as a worker sees it:
 *
 *     offered ──> vouched for by sources <──(offered again)──┐
 *                     │       └──(no source left)──> orphaned ──(patience over)──> gone
 *                     └──(its owner stops it; the last source saw the owner go)──> gone
 *
 * An orphaned job is searched on for a while, because a source that has just restarted does not
 * know it until the front-end posts again, but it is not begun.
 *
 * Pure. Threads: one at a time. Memory: all in the struct. */
#ifndef WORKER_ENGINE_WORKER_CORE_H
#define WORKER_ENGINE_WORKER_CORE_H

#include "worker/engine/job_port.h"
#include "worker/search/search.h"

enum {
    WORKER_JOBS_MAX = 64, /* open jobs a worker remembers; it asks for the others later */
    WORKER_REPORT_MS = 200,
    WORKER_MOVE_MS = 150,
    WORKER_REPEAT_MS = 1000,
    WORKER_ORPHAN_MS = 10000,
    WORKER_UNKNOWN_MS = 2000,
};

/* Zero means the default, WORKER_..._MS. */
struct worker_patience {
    uint32_t report_ms; /* between reports on the job being searched */
    uint32_t move_ms; /* so long a job must be another's turn before the worker moves to it */
    uint32_t repeat_ms; /* between repeated last reports, while idle */
    uint32_t orphan_ms; /* a job is orphaned that long when the last source fell silent */
    uint32_t unknown_ms; /* ... when the last source said that it does not know it */
};

struct worker_job {
    struct job_offer offer;
    uint64_t sources; /* bit i: source i vouches for it */
    uint64_t orphan_until_us; /* nobody does: when it is dropped; 0: somebody does */
    bool finished; /* searched to its end by this worker, or not understood */
    uint64_t deadline_us; /* of a job with a time limit, from its begin; 0: none, or not begun */
    /* What this worker did for it up to the last report, which is repeated while it is idle: a
     * source that does not know the job says so. One that returns to a job adds to `before`. */
    struct proto_job_report last, before;
};

struct worker_core {
    /* fixed after open */
    uint64_t instance;
    struct worker_patience patience;
    /* state */
    struct worker_job job[WORKER_JOBS_MAX];
    unsigned jobs;
    bool missed; /* there was no room for a job */
    uint64_t next_refresh_us;
    struct {
        bool known;
        uint32_t number;
        uint64_t source_id;
    } index[JOB_SOURCES_MAX];
    uint64_t running; /* id of the job being searched; 0: none */
    struct proto_job_report before; /* of the running job, also when it is gone */
    uint64_t deadline_us, next_report_us;
    uint64_t reassigned_us; /* since when another job is its own; 0: the running one is */
    bool moving; /* the search ends for that reason */
};

struct worker_actions {
    const struct job_offer *search; /* to be begun; borrowed until the next call; NULL: none */
    bool refresh; /* job_port.refresh */
    bool leave; /* the search under way ends */
    unsigned reports;
    struct proto_job_report report[WORKER_JOBS_MAX];
};

/* `instance` is random, one for each worker. */
void worker_core_open(struct worker_core *core, uint64_t instance,
                      const struct worker_patience *patience);

/* What the job port says. */
void worker_core_event(struct worker_core *core, const struct job_event *event, uint64_t now_us);

/* Nothing is being searched: what to do. A job in `search` is begun or refused next. */
void worker_core_idle(struct worker_core *core, uint64_t now_us, struct worker_actions *out);
void worker_core_refuse(struct worker_core *core, uint64_t job);
void worker_core_begin(struct worker_core *core, uint64_t job, uint32_t time_ms, uint64_t now_us);
/* While it is searched; the counters are those of this search alone. */
void worker_core_poll(struct worker_core *core, const struct search_counters *counters,
                      unsigned depth, uint64_t now_us, struct worker_actions *out);
/* The search has ended; `done`: it reached the job's depth. Gives the last report on the job. */
void worker_core_end(struct worker_core *core, const struct search_counters *counters,
                     unsigned depth, bool done, struct worker_actions *out);

/* Which of several jobs a worker takes, so that they have equally many workers: a source numbers
 * its workers without gaps (PROTOCOL.md section 8), and worker w takes the job of rank w mod n
 * among n jobs in the order of their ids. The counts differ by one at most, nobody keeps books, and
 * all who see the same jobs and indexes agree. Returns an index into `job`; the ids differ; jobs >
 * 0. */
unsigned worker_core_choose(const uint64_t *job, unsigned jobs, uint32_t worker_index);

#endif
