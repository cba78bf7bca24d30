/* engine_state: what an engine is made of, for the files that make it work. engine_run.c opens and
 * closes it, and has what all runs share and the run in which all threads search one position. In
 * engine_bag.c, which calls it, each thread searches its own. In both runs the threads search, and
 * the caller tells its observer what they find.
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
    struct counters before; /* of all its searches before the run */
    /* where it searches positions of its own */
    struct job job; /* the one under way */
    uint64_t deadline_us;
    bool has_begun; /* a position of this run */
    atomic_bool leave; /* nobody wants its position any more */
};

struct engine_line {
    unsigned number;
    struct search_result result;
    struct engine_status status;
};

enum { ENGINE_LINES_MAX = 2 * SEARCH_LINES_MAX };

struct engine_lines { /* zeroed: empty */
    unsigned first, count;
    struct engine_line ring[ENGINE_LINES_MAX]; /* from `first` on, the oldest first */
};

struct engine {
    /* fixed after open */
    struct engine_options options;
    struct embedded *table;
    struct lanes *lanes; /* NULL: no table outside the process */
    unsigned shards;
    struct mailboxes *mailboxes; /* of algorithms whose searchers send each other messages ... */
    bool has_letters; /* ... to those of other processes, too: shards pass them on */
    struct engine_thread *thread; /* the first has the jobs */
    struct front_host *host; /* FRONT_WORKERS_MAX and its own: of the last run */
    char name[CLIENT_NAME_MAX + 1]; /* the process's among hosts */
    uint64_t instance; /* of the front-end's session */
    /* fixed during a run */
    const struct job *job; /* NULL between runs */
    bool is_posted; /* to the shards */
    unsigned searchers; /* threads that search, if all could be started */
    void (*search)(struct engine_thread *thread);
    /* Takes an event of the first thread's client, under the lock; NULL: front_core does alone. */
    void (*event)(void *run, const struct client_event *event);
    void *run; /* what these need besides */
    uint64_t begin_us;
    /* state of a run */
    atomic_bool stop;
    atomic_uint workers; /* that help, as far as known */
    uint64_t next_report_us; /* of the first thread */
    pthread_mutex_t lock; /* of the rest; engine_bag.c has more under it */
    pthread_cond_t changed; /* there is something to tell, or nothing any more */
    struct front_core front;
    uint64_t said_refused; /* bit i: the caller told of shard i's refusal */
    uint64_t end_us; /* 0: the first thread searches */
    unsigned searching; /* threads */
    bool is_reporting; /* the caller has something to tell, or will: threads that are done wait */
    /* of one position */
    struct job own; /* `job`, with a position of its own: the observer has the other's */
    atomic_bool ended;
    unsigned last_iteration; /* of the job */
    uint64_t deadline_us;
    struct engine_lines lines; /* with what follows under the lock */
    struct search_result best;
    const struct engine_thread *speaker; /* has the lines of `best`; NULL: nobody */
    bool lacks_line; /* a mate of them is without its line */
    uint16_t root_move; /* by the first thread, 0 at first; place in the order of moves: */
    unsigned root_number;
};

/* Copies all. Where there is no room for the lines of an iteration, those of earlier ones are left
 * out that were not begun to be told, and where there is none for a bound, the bound. */
void engine_lines_put(struct engine_lines *lines, unsigned number,
                      const struct search_result *result, const struct engine_status *status);
/* The oldest; false: none waits. */
bool engine_lines_take(struct engine_lines *lines, struct engine_line *out);

/* A run of `job`, borrowed until engine_end, by so many threads. The caller then sets `event` and
 * `run`, if it wants events. */
void engine_begin(struct engine *engine, const struct job *job, unsigned searchers, bool is_posted);
/* searcher_begin; no answer of a shard is waited for after `until_us` (0: no limit) or a stop. */
enum err engine_begin_search(struct engine_thread *thread, const struct job *job,
                             const struct env_port *env, uint64_t seed, uint64_t until_us);
/* Runs `search` in the threads, and `report` in the caller's until it returns, which it does when
 * nobody searches (the lock's `searching`) and all is told. Threads that are done serve the shards
 * until then. The first thread sends the stop when it is done. False: no thread could be started,
 * and nothing was called. */
bool engine_search(struct engine *engine, void (*search)(struct engine_thread *thread),
                   void (*report)(struct engine *engine, void *self), void *self);
void engine_end(struct engine *engine);

/* By the first thread at its polls, without the lock: a few times a second those who watch the
 * cluster are told what the user sees. `has_best`: of one position. */
void engine_report(struct engine *engine, uint64_t now_us, bool has_best);

/* For the three that follow the caller holds the lock. */
void engine_fill_status(struct engine *engine, struct engine_status *out);
/* Whether there is a refusal to report: of a shard, or that it has taken the job since. */
bool engine_has_refusal(const struct engine *engine);
/* Tells it, if anybody wants to know (`refused` is not NULL); without the lock meanwhile. */
void engine_report_refusal(struct engine *engine, engine_refused *refused, void *self);

#endif
