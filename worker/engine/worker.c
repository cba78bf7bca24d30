#include "worker/engine/worker.h"

#include "worker/engine/mailbox.h"

#include "common/log.h"
#include "common/memory.h"
#include "common/rng.h"

#include <stdlib.h>

enum {
    IDLE_WAIT_MS = 50,
    WHY_MAX = 128,
    REFUSED_EVERY_US = 1000000,
    SAY_EVERY_US = 1000000,
};
_Static_assert((int)WORKER_LINE_BYTES <= (int)PROTO_TEXT_MAX, "a report has room for a line");

static const char program[] = "ttworker";

struct worker {
    /* fixed after open */
    struct searcher searcher;
    uint64_t seed;
    const atomic_bool *stop;
    worker_sources_changed *sources_changed; /* NULL: nobody is told */
    void *sources_self;
    struct peer_port peers; /* zeroes: none */
    struct mailboxes *mailboxes; /* NULL: none */
    /* state */
    struct worker_core core;
    struct job job; /* being searched, with ... */
    struct search_result result; /* ... its last finished iteration */
    unsigned line_depth; /* the iteration that `line` is of */
    char line[WORKER_LINE_BYTES];
    uint64_t refused_us; /* no line about a refused job until then */
    uint64_t up, said_up; /* bit i: source i is up; ... as was said */
    uint64_t say_us; /* nothing is said of sources until then */
};

static uint64_t now_us(const struct worker *w)
{
    return remote_now_us(w->searcher.remote);
}

/* Not often: a source may come and go as it likes. */
static void say_sources(struct worker *w)
{
    uint64_t changed = w->up ^ w->said_up;
    if (w->sources_changed == NULL || changed == 0 || now_us(w) < w->say_us) {
        return;
    }
    w->say_us = now_us(w) + SAY_EVERY_US;
    w->said_up = w->up;
    w->sources_changed(w->sources_self, changed, w->up);
}

static void take_events(struct worker *w)
{
    struct job_event event;
    while (job_client_poll(w->searcher.jobs, &event)) {
        if (event.kind == JOB_SOURCE_UP) {
            w->up |= UINT64_C(1) << event.source;
        } else if (event.kind == JOB_SOURCE_DOWN) {
            w->up &= ~(UINT64_C(1) << event.source);
        }
        worker_core_event(&w->core, &event, now_us(w));
    }
    say_sources(w);
}

static void act(struct worker *w, const struct worker_actions *actions)
{
    for (unsigned i = 0; i < actions->reports; i++) {
        job_client_report(w->searcher.jobs, &actions->report[i]);
    }
    if (actions->refresh) {
        job_client_refresh(w->searcher.jobs);
    }
}

/* ---- searching ---- */

static struct worker_progress progress_of(struct worker *w, const struct search *search)
{
    if (w->line_depth != w->result.depth) {
        struct search_line line = w->result.pv;
        searcher_extend_line(&w->searcher, &w->job, &line, w->result.depth);
        w->line_depth = w->result.depth;
        job_line_text(&w->job, &line, w->line, sizeof w->line);
    }
    const struct searcher_talk talk = searcher_talk(&w->searcher);
    return (struct worker_progress){.counters = search_counters(search),
#define X(name) .name = talk.name,
                                    COUNTERS_OF_TALK(X)
#undef X
                                        .result = &w->result,
                                    .line = w->line};
}

static bool poll_worker(void *self, struct search *search)
{
    struct worker *w = self;
    struct worker_actions actions;
    if (remote_pass(w->searcher.remote)) {
        return false;
    }
    searcher_serve(&w->searcher, search, now_us(w));
    take_events(w);
    struct worker_progress progress = progress_of(w, search);
    worker_core_poll(&w->core, &progress, now_us(w), &actions);
    act(w, &actions);
    return actions.leave || atomic_load_explicit(w->stop, memory_order_relaxed);
}

/* Anybody may post jobs that make no sense: their number does not fill the log. */
static void refuse(struct worker *w, struct worker_choice job, const char *why)
{
    struct worker_actions actions;
    if (!w->searcher.is_fiber && now_us(w) >= w->refused_us) {
        w->refused_us = now_us(w) + REFUSED_EVERY_US;
        log_line(program, "job refused: %s", why);
    }
    worker_core_refuse(&w->core, job, why, &actions);
    act(w, &actions);
}

static void search_job(struct worker *w, const struct job_offer *offer)
{
    struct worker_actions actions;
    struct env_port env = {
        .self = w, .poll = poll_worker, .until_poll = embedded_until_poll(&w->searcher.local)};
    struct peer_port peers = w->peers;
    char why[WHY_MAX];
    struct proto_job wire = job_offer_wire(offer);
    struct worker_choice name = {wire.job, wire.user};

    enum err err = job_from_wire(&wire, &w->job, why, sizeof why);
    if (err != ERR_OK) {
        refuse(w, name, why);
        return;
    }
    peers.job = w->job.id;
    env.peers = peers.send != NULL ? &peers : NULL;
    const bool needs_peers = algorithm_needs_peers(w->job.algorithm);
    if (w->mailboxes != NULL && needs_peers) {
        err = mailboxes_begin(w->mailboxes, w->job.id, false);
        env.peers = mailboxes_port(w->mailboxes, 0, env.until_poll);
    }
    if (needs_peers && env.peers == NULL) {
        refuse(w, name, "its searchers send each other letters, which this table does not pass on");
        job_free(&w->job);
        return;
    }
    if (err == ERR_OK) {
        err = searcher_begin(&w->searcher, &w->job, &env, w->seed);
    }
    if (err == ERR_OK) {
        worker_core_begin(&w->core, name, w->job.time_ms, now_us(w));
        w->line_depth = 0;
        w->line[0] = '\0';
        search_run(w->searcher.search, NULL, NULL, &w->result);
        searcher_end(&w->searcher);
        struct worker_progress progress = progress_of(w, w->searcher.search);
        worker_core_end(&w->core, &progress, w->result.depth >= job_last_iteration(&w->job),
                        &actions);
        act(w, &actions);
    } else {
        refuse(w, name, err_text(err));
    }
    if (w->mailboxes != NULL) {
        mailboxes_end(w->mailboxes);
    }
    job_free(&w->job);
}

void worker_run(struct worker *w)
{
    struct worker_actions actions;
    w->say_us = UINT64_MAX; /* who connects knows what is up at first */
    take_events(w);
    w->said_up = w->up;
    w->say_us = 0;
    while (!atomic_load(w->stop)) {
        take_events(w);
        worker_core_idle(&w->core, now_us(w), &actions);
        act(w, &actions);
        if (actions.search != NULL) {
            search_job(w, actions.search);
            remote_wait(w->searcher.remote, 0);
        } else {
            searcher_publish_shards(&w->searcher);
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
    w->sources_changed = options->sources_changed;
    w->sources_self = options->sources_self;
    w->seed = rng_mix(options->seed ^ instance) | 1;
    w->peers = options->peers;
    worker_core_open(&w->core, instance, &options->patience);
    searcher.client.role = PROTO_WORKER;
    enum err err = options->has_letters ? mailboxes_open(&w->mailboxes, 1, false) : ERR_OK;
    searcher.mailboxes = w->mailboxes;
    searcher.mailbox = 0;
    if (err == ERR_OK) {
        err = searcher_open(&w->searcher, &searcher);
    }
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
        mailboxes_close(&(*worker)->mailboxes);
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
