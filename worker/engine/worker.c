#include "worker/engine/worker.h"

#include "common/clock.h"
#include "common/log.h"
#include "common/memory.h"
#include "common/rng.h"
#include "worker/engine/share.h"

#include <stdlib.h>
#include <string.h>

enum { IDLE_WAIT_MS = 50, WHY_MAX = 128 };

static const char program[] = "ttworker";

/* A job some shard told of. The message's texts point into `text`. */
struct open_job {
    struct proto_job wire;
    char game[JOB_GAME_MAX], algorithm[JOB_ALGORITHM_MAX], position[GAME_TEXT_MAX];
    uint64_t shards; /* bit i: shard i vouches for it */
    uint64_t orphan_until_us; /* nobody does: when it is dropped; 0: somebody does */
    bool finished; /* searched to its end by this worker, or not understood */
    uint64_t deadline_us; /* of a job with a time limit, from the first time on; 0: none, or not
                             begun */
    /* What this worker did for the job, up to the last report; repeated while it does nothing: a
     * shard that knows the job no more says so. A worker that returns to a job adds to `before`. */
    struct proto_job_report last, before;
};

/* What a shard told of our place among its workers. */
struct worker_index {
    bool known;
    uint32_t number;
};

struct worker {
    /* fixed after open */
    struct searcher searcher;
    uint64_t instance, seed;
    unsigned servers;
    const atomic_bool *stop;
    /* state */
    struct open_job job[WORKER_JOBS_MAX];
    unsigned jobs;
    bool missed; /* a job there was no room for */
    struct worker_index worker_index[CLIENT_SHARDS_MAX];
    uint64_t namespace_id; /* of the last HELLO */
    uint64_t running; /* id of the job being searched; 0: none */
    uint64_t deadline_us, next_report_us;
    uint64_t reassigned_us; /* since when another job is ours; 0: the running one is */
    bool moving; /* the search ends for that reason */
};

/* ---- jobs: what the shards say ---- */

static struct open_job *find_job(struct worker *w, uint64_t id)
{
    for (unsigned i = 0; i < w->jobs; i++) {
        if (w->job[i].wire.job == id) {
            return &w->job[i];
        }
    }
    return NULL;
}

static void forget_job(struct worker *w, struct open_job *job)
{
    w->jobs--;
    if (job != &w->job[w->jobs]) {
        *job = w->job[w->jobs];
        job->wire.game.at = job->game;
        job->wire.algorithm.at = job->algorithm;
        job->wire.position.at = job->position;
    }
}

static void take_job(void *self, const struct proto_job *message, unsigned shard)
{
    struct worker *w = self;
    struct open_job *job = find_job(w, message->job);
    if (job == NULL) {
        if (w->jobs == WORKER_JOBS_MAX) {
            w->missed = true;
            return;
        }
        job = &w->job[w->jobs];
        *job = (struct open_job){.wire = *message};
        if (!proto_text_copy(message->game, job->game, sizeof job->game) ||
            !proto_text_copy(message->algorithm, job->algorithm, sizeof job->algorithm) ||
            !proto_text_copy(message->position, job->position, sizeof job->position)) {
            return; /* longer than any name or position we know */
        }
        w->jobs++;
        job->wire.game = proto_text_of(job->game);
        job->wire.algorithm = proto_text_of(job->algorithm);
        job->wire.position = proto_text_of(job->position);
    }
    job->shards |= UINT64_C(1) << shard;
    job->orphan_until_us = 0;
}

/* A shard no longer vouches for a job: another may, for a while nobody need. The shortest patience
 * stands, however often a shard repeats itself. */
static void unvouch(struct open_job *job, unsigned shard, unsigned patience_ms)
{
    uint64_t until_us = clock_us() + patience_ms * UINT64_C(1000);
    job->shards &= ~(UINT64_C(1) << shard);
    if (job->shards == 0 && (job->orphan_until_us == 0 || until_us < job->orphan_until_us)) {
        job->orphan_until_us = until_us;
    }
}

static void take_stop(void *self, uint64_t id, uint8_t reason, unsigned shard)
{
    struct worker *w = self;
    struct open_job *job = find_job(w, id);
    if (job == NULL) {
        return;
    }
    bool vouched = job->shards >> shard & 1;
    unvouch(job, shard, WORKER_UNKNOWN_JOB_MS);
    /* The last shard that vouched saw the front-end go: others wait for us. A shard that never did
     * may have restarted, and the job may be posted to it again in a moment. */
    if (reason == PROTO_STOP_OWNER || (vouched && job->shards == 0)) {
        forget_job(w, job);
    }
}

static void take_shard_down(void *self, unsigned shard)
{
    struct worker *w = self;
    w->worker_index[shard].known = false;
    for (unsigned i = 0; i < w->jobs; i++) {
        unvouch(&w->job[i], shard, WORKER_ORPHAN_MS);
    }
}

/* Its open jobs follow; what is not among them and known to nobody else ended unheard. */
static void take_shard_up(void *self, unsigned shard)
{
    struct worker *w = self;
    for (unsigned i = 0; i < w->jobs; i++) {
        if (w->job[i].orphan_until_us != 0) {
            unvouch(&w->job[i], shard, WORKER_UNKNOWN_JOB_MS);
        }
    }
}

static void take_worker_index(void *self, unsigned shard, uint32_t worker_index, uint32_t workers)
{
    struct worker *w = self;
    (void)workers;
    w->worker_index[shard] = (struct worker_index){true, worker_index};
}

static void drop_orphans(struct worker *w, uint64_t now)
{
    for (unsigned i = w->jobs; i > 0; i--) {
        struct open_job *job = &w->job[i - 1];
        if (job->orphan_until_us != 0 && now >= job->orphan_until_us) {
            forget_job(w, job);
        }
    }
}

/* All workers go by the worker indexes of the same shard: of those that are up, the one of the
 * smallest boot id. Before any told a worker_index, chance decides. */
static uint32_t worker_index_of(const struct worker *w)
{
    const struct client *client = remote_client(w->searcher.remote);
    uint32_t worker_index = (uint32_t)rng_mix(w->instance);
    uint64_t smallest = UINT64_MAX;
    for (unsigned i = 0; i < w->servers; i++) {
        uint64_t boot = client_shard_boot(client, i);
        if (w->worker_index[i].known && boot <= smallest) {
            smallest = boot;
            worker_index = w->worker_index[i].number;
        }
    }
    return worker_index;
}

/* The job this worker belongs to among those it has not finished. One that nobody vouches for is
 * not begun. */
static struct open_job *choose_job(struct worker *w)
{
    uint64_t id[WORKER_JOBS_MAX];
    unsigned ready = 0;
    for (unsigned i = 0; i < w->jobs; i++) {
        const struct open_job *job = &w->job[i];
        if ((!job->finished || job->wire.job == w->running) && job->orphan_until_us == 0) {
            id[ready++] = job->wire.job;
        }
    }
    return ready == 0 ? NULL : find_job(w, id[share_choose(id, ready, worker_index_of(w))]);
}

/* A short job, or a shard that was out of peek_ticket for a moment, moves nobody. */
static bool belongs_elsewhere(struct worker *w, uint64_t now)
{
    const struct open_job *job = w->jobs > 1 ? choose_job(w) : NULL;
    if (job == NULL || job->wire.job == w->running) {
        w->reassigned_us = 0;
        return false;
    }
    w->reassigned_us = w->reassigned_us != 0 ? w->reassigned_us : now;
    return now - w->reassigned_us >= WORKER_MOVE_MS * UINT64_C(1000);
}

/* ---- searching ---- */

static void report(struct worker *w, uint64_t id, enum proto_job_state state)
{
    static const struct proto_job_report nothing;
    struct searcher_figures f = searcher_figures(&w->searcher);
    struct open_job *job = find_job(w, id);
    const struct proto_job_report *before = job != NULL ? &job->before : &nothing;
    struct proto_job_report message = {.job = id,
                                       .instance = w->instance,
                                       .state = (uint8_t)state,
                                       .depth = f.depth > before->depth ? (uint8_t)f.depth
                                                                        : before->depth,
#define X(name, json) .name = before->name + f.sum.name,
                                       COUNTERS_REPORTED(X)
#undef X
    };
    if (job != NULL) {
        job->last = message;
    }
    client_job_report(remote_client(w->searcher.remote), &message, clock_us());
}

/* A stop that got lost is found out: the shard answers a report on a job it does not know. */
static void repeat_reports(struct worker *w, uint64_t now)
{
    if (now < w->next_report_us) {
        return;
    }
    w->next_report_us = now + WORKER_REPEAT_MS * UINT64_C(1000);
    for (unsigned i = 0; i < w->jobs; i++) {
        if (w->job[i].last.job != 0) {
            client_job_report(remote_client(w->searcher.remote), &w->job[i].last, now);
        }
    }
}

static bool poll_worker(void *self, struct search *search)
{
    struct worker *w = self;
    uint64_t now = clock_us();
    searcher_serve(&w->searcher, search, now);
    drop_orphans(w, now);
    if (now >= w->next_report_us) {
        w->next_report_us = now + WORKER_REPORT_MS * UINT64_C(1000);
        report(w, w->running, PROTO_JOB_SEARCHING);
        w->moving = belongs_elsewhere(w, now);
    }
    return w->moving || atomic_load_explicit(w->stop, memory_order_relaxed) ||
           find_job(w, w->running) == NULL || (w->deadline_us != 0 && now >= w->deadline_us);
}

static void say_hello(struct worker *w, uint64_t namespace_id)
{
    w->namespace_id = namespace_id;
    w->missed = false; /* all open jobs follow the WELCOME */
    client_hello(remote_client(w->searcher.remote), PROTO_WORKER, namespace_id, clock_us());
}

static void leave_job(struct worker *w, uint64_t id, bool done)
{
    struct open_job *job = find_job(w, id);
    if (job != NULL && w->moving && !done) {
        job->finished = false;
        job->before = job->last;
    }
}

static void search_job(struct worker *w, struct open_job *open)
{
    struct job job;
    struct search_result result;
    struct env_port env = {
        .self = w, .poll = poll_worker, .until_poll = embedded_until_poll(&w->searcher.local)};
    char why[WHY_MAX];
    uint64_t id = open->wire.job;

    open->finished = true; /* whatever happens, it is not begun twice, unless others need us more */
    enum err err = job_from_wire(&open->wire, &job, why, sizeof why);
    if (err != ERR_OK) {
        log_line(program, "job refused: %s", why);
        open->last =
            (struct proto_job_report){.job = id, .instance = w->instance, .state = PROTO_JOB_ENDED};
        return;
    }
    w->running = id;
    w->next_report_us = clock_us(); /* at once: the front-end counts its helpers */
    if (job.time_ms != 0 && open->deadline_us == 0) {
        open->deadline_us = clock_us() + job.time_ms * UINT64_C(1000);
    }
    w->deadline_us = open->deadline_us;
    w->reassigned_us = 0;
    w->moving = false;
    say_hello(w, job.namespace_id);
    embedded_advance(w->searcher.local.table, id);
    err = searcher_begin(&w->searcher, &job, &env, w->seed);
    if (err == ERR_OK) {
        search_run(w->searcher.search, NULL, NULL, &result);
        searcher_end(&w->searcher);
        report(w, id, PROTO_JOB_ENDED);
        leave_job(w, id, result.depth >= job.depth);
    } else {
        log_line(program, "job refused: %s", err_text(err));
    }
    w->running = 0;
    job_free(&job);
}

/* ---- life ---- */

enum err worker_open(struct worker **out, const struct worker_options *options)
{
    struct worker *w = memory_lines(sizeof *w);
    if (w == NULL) {
        return ERR_NOMEM;
    }
    struct searcher_options searcher = options->searcher;
    searcher.client.role = PROTO_WORKER;
    searcher.client.instance = w->instance = clock_unique();
    searcher.sink = (struct client_sink){
        .self = w,
        .job = take_job,
        .job_stop = take_stop,
        .worker_index = take_worker_index,
        .shard_up = take_shard_up,
        .shard_down = take_shard_down,
    };
    w->servers = searcher.client.shards;
    w->stop = options->stop;
    w->seed = rng_mix(options->instance_seed ^ w->instance) | 1;
    enum err err = searcher_open(&w->searcher, &searcher);
    if (err != ERR_OK) {
        worker_close(&w);
        return err;
    }
    *out = w;
    return ERR_OK;
}

void worker_close(struct worker **worker)
{
    if (*worker != NULL) {
        searcher_close(&(*worker)->searcher);
        free(*worker);
        *worker = NULL;
    }
}

unsigned worker_connect(struct worker *w)
{
    return remote_connect(w->searcher.remote, WORKER_CONNECT_MS);
}

void worker_run(struct worker *w)
{
    while (!atomic_load(w->stop)) {
        drop_orphans(w, clock_us());
        struct open_job *job = choose_job(w);
        if (job != NULL) {
            search_job(w, job);
        } else {
            if (w->missed && w->jobs < WORKER_JOBS_MAX) {
                say_hello(w, w->namespace_id);
            }
            repeat_reports(w, clock_us());
            remote_wait(w->searcher.remote, IDLE_WAIT_MS);
        }
    }
}
