/* worker_core: what a worker knows of the open jobs, and what it decides: which job to search, when
 * to leave it, what to report. Time comes with every call; worker.c is its shell.
 *
 * A job as a worker sees it:
 *
 *     offered ──> vouched for by sources <──(offered again)──┐
 *                     │       └──(no source left)──> orphaned ──(patience over)──> gone
 *                     └──(its owner stops it at one of them; the last saw the owner go)──> gone
 *
 * An orphaned job is searched on for a while, because a source that has just restarted does not
 * know it until the front-end posts again, but it is not begun.
 *
 * Pure. Threads: one at a time. Memory: all in the struct. */
#ifndef WORKER_ENGINE_WORKER_CORE_H
#define WORKER_ENGINE_WORKER_CORE_H

#include "worker/engine/job.h"
#include "worker/search/search.h"

enum {
    /* Open jobs a worker remembers. Where there is no room for a user's, one of the user with most
     * is forgotten. What had no room is asked for as soon as one of those 64 is gone, not before:
     * it would have no room again. */
    WORKER_JOBS_MAX = 64,
    WORKER_LINE_BYTES = SEARCH_PV_MAX * GAME_MOVE_TEXT_MAX,
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

/* A job's name: ids are chosen by who posts, so two users may have the same. Names differ. */
struct worker_job_name {
    uint64_t job, user;
};

struct worker_index {
    bool known;
    uint32_t number;
    uint64_t source_id; /* its boot id */
};

struct worker_job {
    struct job_offer offer;
    uint64_t sources; /* bit i: source i vouches for it */
    uint64_t orphan_until_us; /* nobody does: when it is dropped; 0: somebody does */
    bool finished; /* searched to its end by this worker, or not understood */
    uint64_t deadline_us; /* of a job with a time limit, from its begin; 0: none, or not begun */
    /* What this worker did for it up to the last report, which is repeated while it is idle: a
     * source that does not know the job says so. One that returns to a job adds to `before`. */
    struct proto_job_report last, before; /* their line, or why the job was refused, is: */
    char line[WORKER_LINE_BYTES];
};

/* What the search under way has done so far. */
struct worker_progress {
    struct counters counters; /* of this search alone */
    const struct search_result *result; /* its last finished iteration; depth 0: none */
    const char *line; /* of `result`, in the game's text; borrowed by the report */
};

struct worker_core {
    /* fixed after open */
    uint64_t instance;
    struct worker_patience patience;
    /* state */
    uint64_t up; /* bit i: source i is up */
    struct worker_job job[WORKER_JOBS_MAX];
    unsigned jobs;
    bool missed; /* there was no room for a job */
    uint64_t next_refresh_us;
    struct worker_index index[CLIENT_SHARDS_MAX];
    struct worker_job_name running; /* the job being searched; id 0: none */
    struct proto_job_report before; /* of the running job, also when it is gone */
    uint64_t deadline_us, next_report_us;
    uint64_t reassigned_us; /* since when another job is its own; 0: the running one is */
    bool moving; /* the search ends for that reason */
};

struct worker_actions {
    const struct job_offer *search; /* to be begun; borrowed until the next call; NULL: none */
    bool refresh; /* remote_refresh: something was missed, and there is room for it */
    bool leave; /* the search under way ends */
    unsigned reports;
    struct proto_job_report report[WORKER_JOBS_MAX]; /* lines borrowed until the next call */
};

/* `instance` is random, one for each worker. */
void worker_core_open(struct worker_core *core, uint64_t instance,
                      const struct worker_patience *patience);

/* Takes what the client says of jobs and shards, which are the sources of jobs: each keeps the open
 * jobs by itself and offers them to every worker, so a job comes from several. `boot`: the shard's
 * (struct client_shard). */
void worker_core_event(struct worker_core *core, const struct client_event *event, uint64_t boot,
                       uint64_t now_us);

/* Nothing is being searched: what to do. A job in `search` is begun or refused next. */
void worker_core_idle(struct worker_core *core, uint64_t now_us, struct worker_actions *out);
void worker_core_refuse(struct worker_core *core, struct worker_job_name job, const char *why,
                        struct worker_actions *out);
void worker_core_begin(struct worker_core *core, struct worker_job_name job, uint32_t time_ms,
                       uint64_t now_us);
/* While it is searched. A report is due every report_ms, and when it alone has searched the nodes
 * that all together were to. */
void worker_core_poll(struct worker_core *core, const struct worker_progress *progress,
                      uint64_t now_us, struct worker_actions *out);
/* The search has ended; `done`: it reached the job's depth. Gives the last report on the job. */
void worker_core_end(struct worker_core *core, const struct worker_progress *progress, bool done,
                     struct worker_actions *out);

/* Which of several jobs a worker takes, so that users have equally many workers, and so have the
 * jobs of a user: a source numbers its workers without gaps (PROTOCOL.md section 8). Worker w takes
 * the user of rank w mod U among U users, and of the n jobs of that user, in the order of their
 * ids, that of rank (w / U) mod n. Of users, and of jobs of a user, the counts differ by one at
 * most; nobody keeps books, and all who see the same jobs and indexes agree. The order of the users
 * is that of rng_mix(user ^ source_id): where workers are fewer than users the last of them wait,
 * and since the source draws its id anew at each start no key is made to come first for good.
 * Returns an index into `choice`; choices > 0. */
unsigned worker_core_choose(const struct worker_job_name *choice, unsigned choices,
                            uint32_t worker_index, uint64_t source_id);

#endif
