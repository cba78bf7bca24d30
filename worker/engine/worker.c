#include "worker/engine/worker.h"

#include "common/log.h"
#include "common/memory.h"
#include "common/rng.h"

#include <stdlib.h>

enum { IDLE_WAIT_MS = 50, WHY_MAX = 128 };

static const char program[] = "ttworker";

struct worker {
    /* fixed after open */
    struct searcher searcher;
    uint64_t seed;
    const atomic_bool *stop;
    /* state */
    struct worker_core core;
    struct job job; /* being searched */
};

static uint64_t now_us(const struct worker *w)
{
    return remote_now_us(w->searcher.remote);
}

static void take_events(struct worker *w)
{
    struct job_event event;
    while (w->searcher.port.poll(w->searcher.port.self, &event)) {
        worker_core_event(&w->core, &event, now_us(w));
    }
}

static void act(struct worker *w, const struct worker_actions *actions)
{
    for (unsigned i = 0; i < actions->reports; i++) {
        w->searcher.port.report(w->searcher.port.self, &actions->report[i]);
    }
    if (actions->refresh) {
        w->searcher.port.refresh(w->searcher.port.self);
    }
}

/* ---- searching ---- */

static bool poll_worker(void *self, struct search *search)
{
    struct worker *w = self;
    struct worker_actions actions;
    searcher_serve(&w->searcher, search, now_us(w));
    take_events(w);
    worker_core_poll(&w->core, search_counters(search), search_iteration(search), now_us(w),
                     &actions);
    act(w, &actions);
    return actions.leave || atomic_load_explicit(w->stop, memory_order_relaxed);
}

static void search_job(struct worker *w, const struct job_offer *offer)
{
    struct search_result result;
    struct worker_actions actions;
    struct env_port env = {
        .self = w, .poll = poll_worker, .until_poll = embedded_until_poll(&w->searcher.local)};
    char why[WHY_MAX];
    struct proto_job wire = job_offer_wire(offer);
    uint64_t id = wire.job;

    enum err err = job_from_wire(&wire, &w->job, why, sizeof why);
    if (err != ERR_OK) {
        log_line(program, "job refused: %s", why);
        worker_core_refuse(&w->core, id);
        return;
    }
    err = searcher_begin(&w->searcher, &w->job, &env, w->seed);
    if (err == ERR_OK) {
        worker_core_begin(&w->core, id, w->job.time_ms, now_us(w));
        search_run(w->searcher.search, NULL, NULL, &result);
        searcher_end(&w->searcher);
        worker_core_end(&w->core, search_counters(w->searcher.search),
                        search_iteration(w->searcher.search), result.depth >= w->job.depth,
                        &actions);
        act(w, &actions);
    } else {
        log_line(program, "job refused: %s", err_text(err));
        worker_core_refuse(&w->core, id);
    }
    job_free(&w->job);
}

void worker_run(struct worker *w)
{
    struct worker_actions actions;
    while (!atomic_load(w->stop)) {
        take_events(w);
        worker_core_idle(&w->core, now_us(w), &actions);
        act(w, &actions);
        if (actions.search != NULL) {
            search_job(w, actions.search);
            remote_wait(w->searcher.remote, 0);
        } else {
            remote_wait(w->searcher.remote, IDLE_WAIT_MS);
        }
    }
}

/* ---- open and close ---- */

enum err worker_open(struct worker **out, const struct worker_options *options)
{
    struct worker *w = memory_lines(sizeof *w);
    if (w == NULL) {
        return ERR_NOMEM;
    }
    struct searcher_options searcher = options->searcher;
    uint64_t instance = searcher.client.instance;
    w->stop = options->stop;
    w->seed = rng_mix(options->seed ^ instance) | 1;
    worker_core_open(&w->core, instance, &options->patience);
    searcher.client.role = PROTO_WORKER;
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
        job_free(&(*worker)->job);
        searcher_close(&(*worker)->searcher);
        free(*worker);
        *worker = NULL;
    }
}

unsigned worker_connect(struct worker *w, unsigned wait_ms)
{
    return remote_connect(w->searcher.remote, wait_ms);
}

const struct worker_core *worker_state(const struct worker *w)
{
    return &w->core;
}

struct searcher *worker_searcher(struct worker *w)
{
    return &w->searcher;
}
