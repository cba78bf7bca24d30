/* front_core: what a front-end knows of the job it posted: which workers report on it, what they
 * did in all, which of them live, and whose last report it waits for after the stop. Time comes
 * with every call. Its shells are engine_run.c, engine_bag.c, programs/engine/engine_front.c and
 * the front-end of the virtual cluster.
 *
 *     idle ──begin──> posted ──stop──> stopped ──(all last reports are here, or the wait is over)
 *                                              ──> idle
 *
 * Threads: one at a time. Memory: allocates in open. Blocking: front_core_await; the rest is pure.
 */
#ifndef WORKER_ENGINE_FRONT_CORE_H
#define WORKER_ENGINE_FRONT_CORE_H

#include "worker/engine/process_name.h"
#include "worker/engine/searcher.h"

enum {
    /* Whose reports are kept apart. One more takes the place of the one silent longest: nobody
     * keeps others out by being there first. */
    FRONT_WORKERS_MAX = 4096,
    /* A worker that reported within this time lives. Idle ones repeat their report every second. */
    FRONT_ALIVE_MS = 3000,
    FRONT_SILENT_MS = 1000, /* one that searches reports every 200: after that it is gone */
    FRONT_WAIT_MS = 200, /* after the stop, for last reports; who sends none by then is gone */
    FRONT_WHY_MAX = 128,
    FRONT_WAIT_TIMED_MS = 10, /* the same for a job with a time limit: a clock is running */
};

struct front_report {
    uint64_t received_us;
    uint64_t searched_us; /* time from its first report to its last, as far as it searched then */
    struct proto_job_report last; /* without its texts */
    char name[CLIENT_NAME_MAX + 1]; /* printable, one word */
};

_Static_assert(CLIENT_SHARDS_MAX <= 64, "a bit for each shard");

struct front_core {
    /* fixed after open */
    uint32_t alive_ms;
    struct front_report *report; /* FRONT_WORKERS_MAX, as of ... */
    struct process_thread *thread; /* ... each, when hosts are asked for */
    /* state */
    uint64_t job; /* its id; 0: idle */
    unsigned reports;
    uint64_t wait_until_us;
    uint64_t missing_us; /* whose last report is not here by then is gone; 0: not stopped, or there
                            was no time for last reports */
    uint64_t refused; /* bit i: shard i has refused the job, and passed on no report since */
    char why[CLIENT_SHARDS_MAX][FRONT_WHY_MAX]; /* reasons of those: their words, as far as they
                                                   fit, printable */
};

struct front_sum {
    unsigned workers; /* those that live and search the job, or have */
    unsigned refused; /* workers that live and cannot search it */
    /* of all workers, also of those that died */
    struct counters counters; /* as reported */
    uint64_t searched_us; /* the time that they had */
};

/* What one process contributes to a search: the front-end's own, or the workers of one. */
struct front_host {
    char name[CLIENT_NAME_MAX + 1]; /* of the process, printable, one word */
    bool is_own;
    bool is_gone; /* none of its workers reports any more, though they should; the figures are
                     those of their last reports */
    unsigned searchers;
    struct counters sum; /* of its own all, of others what is reported */
    uint64_t searched_us; /* the time that its searchers had, summed */
    uint64_t silent_us; /* time since its last report */
};

/* `alive_ms` 0: FRONT_ALIVE_MS. ERR_NOMEM. */
enum err front_core_open(struct front_core *core, uint32_t alive_ms);
/* Accepts a zeroed struct, and twice. */
void front_core_close(struct front_core *core);

/* The reports of the last job are forgotten. */
void front_core_begin(struct front_core *core, uint64_t job);
/* Takes reports and refusals of the job; all other events are passed over. */
void front_core_event(struct front_core *core, const struct client_event *event, uint64_t now_us);
void front_core_sum(const struct front_core *core, uint64_t now_us, struct front_sum *out);

/* Fills in a row for each process with workers that search the job, or have, most nodes first.
 * `out` has room for FRONT_WORKERS_MAX; returns how many rows there are. */
unsigned front_core_hosts(const struct front_core *core, uint64_t now_us, struct front_host *out);

/* The part of its searchers' time that went into talk with the shards; below 0: not known. */
double front_host_talking(const struct front_host *host);

/* The stop has been sent: last reports count until `wait_ms` from now. */
void front_core_stop(struct front_core *core, uint32_t wait_ms, uint64_t now_us);
/* Whether to wait on: a worker that lives has not sent its last report. */
bool front_core_waits(const struct front_core *core, unsigned shards_up, uint64_t now_us);

/* front_core_stop, and serves the searcher's sockets, from which events come, as long as
 * front_core_waits. */
void front_core_await(struct front_core *core, struct searcher *searcher, uint32_t wait_ms);

#endif
