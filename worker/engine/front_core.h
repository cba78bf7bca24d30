/* front_core: what a front-end knows of the job it posted: which workers report on it, what they
 * did in all, which of them live, and whose last report it waits for after the stop. Time comes
 * with every call; engine.c is its shell, and the front-end of the virtual cluster.
 *
 *     idle ──begin──> posted ──stop──> stopped ──(all last reports are here, or the wait is over)
 *                                              ──> idle
 *
 * Threads: one at a time. Memory: allocates in open. Blocking: front_core_await; the rest is pure.
 */
#ifndef WORKER_ENGINE_FRONT_CORE_H
#define WORKER_ENGINE_FRONT_CORE_H

#include "worker/engine/searcher.h"

enum {
    /* Whose reports are kept apart. One more takes the place of the one silent longest: nobody
     * keeps others out by being there first. */
    FRONT_WORKERS_MAX = 4096,
    /* A worker that reported within this time lives. Idle ones repeat their report every second. */
    FRONT_ALIVE_MS = 3000,
    FRONT_WAIT_MS = 200, /* after the stop, for last reports */
    FRONT_WAIT_TIMED_MS = 10, /* the same for a job with a time limit: a clock is running */
};

struct front_report {
    uint64_t received_us;
    uint64_t searched_us; /* time from its first report to its last, as far as it searched then */
    struct proto_job_report last;
};

_Static_assert(JOB_SOURCES_MAX <= 64, "a bit for each source");

struct front_core {
    /* fixed after open */
    uint32_t alive_ms;
    struct front_report *report; /* FRONT_WORKERS_MAX */
    /* state */
    uint64_t job; /* its id; 0: idle */
    unsigned reports;
    uint64_t wait_until_us;
    uint64_t refused; /* bit i: source i has refused the job, and passed on no report since */
    char why[JOB_SOURCES_MAX][JOB_WHY_MAX]; /* reasons of those, in their words */
};

struct front_sum {
    unsigned workers; /* those that live and search the job, or have */
    unsigned refused; /* workers that live and cannot search it */
    /* of all workers, also of those that died */
#define X(name, json, help) uint64_t name;
    COUNTERS_REPORTED(X)
#undef X
    uint64_t waited_us, bytes; /* for shards; to and from them */
    uint64_t searched_us; /* the time that they had */
};

/* `alive_ms` 0: FRONT_ALIVE_MS. ERR_NOMEM. */
enum err front_core_open(struct front_core *core, uint32_t alive_ms);
/* Accepts a zeroed struct, and twice. */
void front_core_close(struct front_core *core);

/* The reports of the last job are forgotten. */
void front_core_begin(struct front_core *core, uint64_t job);
/* Takes reports and refusals of the job; all other events are passed over. */
void front_core_event(struct front_core *core, const struct job_event *event, uint64_t now_us);
void front_core_sum(const struct front_core *core, uint64_t now_us, struct front_sum *out);

/* The stop has been sent: last reports count until `wait_ms` from now. */
void front_core_stop(struct front_core *core, uint32_t wait_ms, uint64_t now_us);
/* Whether to wait on: a worker that lives has not sent its last report. */
bool front_core_waits(const struct front_core *core, unsigned sources_up, uint64_t now_us);

/* Takes all events that the searcher's job client has. */
void front_core_take(struct front_core *core, struct searcher *searcher);
/* front_core_stop, and serves the searcher's sockets as long as front_core_waits. */
void front_core_await(struct front_core *core, struct searcher *searcher, uint32_t wait_ms);

#endif
