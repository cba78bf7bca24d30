#include "worker/programs/sim/sim_engine.h"

#include "common/clock.h"
#include "common/signals.h"
#include "worker/engine/line.h"
#include "worker/lab/world.h"

#include <stdlib.h>

enum {
    FIRST_IDLE_NS = 20000000, /* in which the workers connect */
    IDLE_MOST_NS = 1000000000,
};

struct sim_engine {
    /* fixed after open */
    struct lab_options options;
    struct lab_hooks hooks;
    /* state */
    pthread_t thread; /* of the cluster, whose fibers need always the same */
    bool has_cluster; /* the thread is to be joined */
    atomic_bool stop;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* under the lock */
    bool is_searching; /* set from run's call until it may return */
    bool is_closing;
    enum err err; /* with which the cluster ended */
    /* of the search under way: its caller waits meanwhile */
    struct job own; /* the job, with a position of its own */
    const struct engine_observer *observer;
    struct engine_result *result;
    uint64_t begun_nodes;
};

static struct sim_engine *engine_of(const struct lab_worker *w)
{
    return w->lab->options.context;
}

/* Counts the nodes of the front-end's host that its searchers have published. */
static uint64_t nodes_of_host(const struct lab_worker *w)
{
    uint64_t nodes = 0;
    for (unsigned i = 0; i < w->lab->options.threads; i++) {
        nodes += searcher_figures(w->lab->worker[i].searcher).all.nodes;
    }
    return nodes;
}

static struct engine_status status_of(struct lab_worker *w)
{
    struct searcher *searcher = &w->front.searcher;
    struct front_sum helped;
    const struct searcher_figures figures = searcher_figures(searcher);
    const uint64_t time_us = (w->lab->now_ns - w->front.begin_ns) / 1000;
    front_core_sum(&w->front.core, remote_now_us(searcher->remote), &helped);
    struct engine_status s = {
        .time_us = time_us,
        .own = searcher_counters(searcher),
        .all_us = time_us + helped.searched_us,
        .workers = helped.workers,
        .workers_refused = helped.refused,
        .shards = w->lab->options.shards,
        .shards_up = figures.shards_up,
        .remote_depth = figures.remote_depth,
        .depth = figures.depth,
        .hash_permille = embedded_permille(w->host->table, w->front.job.namespace_id),
    };
    s.sum = s.own;
    counters_add(&s.sum, &helped.counters);
    return s;
}

/* ---- in the fiber of the front-end ---- */

static void report_line(struct lab_worker *w, unsigned line, const struct search_result *result)
{
    const struct engine_observer *to = engine_of(w)->observer; /* uci's */
    const struct engine_status status = status_of(w);
    to->iteration(to->self, line, result, &status);
}

/* Lines end as the engine's do. */
static void on_iteration(struct lab_worker *w, const struct search_result *result)
{
    struct sim_engine *e = engine_of(w);
    struct line_limit limit = {.nodes = LINE_NODES};
    unsigned lines = 1;
    const bool is_bound = result->bound != TT_EXACT;
    const struct search_result *line =
        is_bound ? result : search_lines(w->front.searcher.search, &lines);
    for (unsigned i = 0; i < lines || i == 0; i++) {
        struct search_result r = i == 0 ? *result : line[i];
        if (!is_bound) {
            searcher_extend_line(&w->front.searcher, &e->own, &r.pv, r.depth);
            (void)line_finish(&e->own, w->host->table, &limit, &r);
            e->result->search = i == 0 ? r : e->result->search;
        }
        report_line(w, i, &r);
    }
}

/* The first iteration is always finished, as in the engine. */
static bool is_over(struct lab_worker *w, const struct search *search)
{
    const struct sim_engine *e = engine_of(w);
    const uint64_t time_ns = w->lab->now_ns - w->front.begin_ns;
    const uint64_t limit_ns = e->own.time_ms * UINT64_C(1000000) - e->own.spare_us * UINT64_C(1000);
    return search_iteration(search) > 1 &&
           (atomic_load(&e->stop) || (e->own.time_ms != 0 && time_ns >= limit_ns) ||
            (e->own.nodes != 0 && nodes_of_host(w) - e->begun_nodes >= e->own.nodes));
}

static void end_search(struct sim_engine *e, enum err err)
{
    pthread_mutex_lock(&e->lock);
    e->err = err;
    e->is_searching = false;
    pthread_cond_broadcast(&e->changed);
    pthread_mutex_unlock(&e->lock);
}

/* As in the engine, what an iteration found before it was stopped counts. */
static void on_posted(struct lab_worker *w)
{
    struct sim_engine *e = engine_of(w);
    const struct lab_answer *answer = w->front.answer;
    uint64_t idle_ns = answer->time_ns < IDLE_MOST_NS ? answer->time_ns : IDLE_MOST_NS;
    const unsigned depth = e->result->search.depth;
    if (depth == 0) {
        e->result->search = answer->search;
    } else if (answer->search.unfinished > depth) {
        e->result->search = answer->search;
        e->result->search.depth = depth;
        report_line(w, 0, &e->result->search);
    }
    e->result->status = status_of(w);
    e->result->status.time_us = answer->time_ns / 1000;
    e->result->stopped = atomic_load(&e->stop);
    end_search(e, ERR_OK);
    lab_front_idle(w, w->lab->now_ns + idle_ns);
}

static bool next(struct lab_worker *w, struct lab_post *out)
{
    struct sim_engine *e = engine_of(w);
    if (w->front.jobs == 0) {
        lab_front_idle(w, w->lab->now_ns + FIRST_IDLE_NS);
    }
    pthread_mutex_lock(&e->lock);
    while (!e->is_searching && !e->is_closing) {
        pthread_cond_wait(&e->changed, &e->lock);
    }
    const bool goes_on = !e->is_closing;
    pthread_mutex_unlock(&e->lock);
    e->begun_nodes = nodes_of_host(w);
    *out = (struct lab_post){.job = &e->own};
    return goes_on;
}

/* ---- the thread of the cluster ---- */

static void *run_cluster(void *context)
{
    struct sim_engine *e = context;
    struct lab_result result;
    end_search(e, lab_run(&e->options, &result));
    return NULL;
}

static void close_cluster(struct sim_engine *e)
{
    if (e->has_cluster) {
        pthread_mutex_lock(&e->lock);
        e->is_closing = true;
        pthread_cond_broadcast(&e->changed);
        pthread_mutex_unlock(&e->lock);
        pthread_join(e->thread, NULL);
        e->has_cluster = e->is_closing = false;
    }
}

/* ---- what stands in for the engine ---- */

static enum err run(void *self, struct job *job, const struct engine_observer *observer,
                    struct engine_result *out)
{
    struct sim_engine *e = self;
    if (job_copy(&e->own, job) != ERR_OK) {
        return ERR_NOMEM;
    }
    job_set_repeatable_namespace(&e->own, 0);
    *out = (struct engine_result){.stopped = false};
    pthread_mutex_lock(&e->lock);
    e->observer = observer;
    e->result = out;
    e->has_cluster = e->has_cluster || signals_create_thread(&e->thread, run_cluster, e);
    e->err = e->has_cluster ? ERR_OK : ERR_NOMEM;
    e->is_searching = e->has_cluster;
    pthread_cond_broadcast(&e->changed);
    while (e->is_searching) {
        pthread_cond_wait(&e->changed, &e->lock);
    }
    const enum err err = e->err;
    pthread_mutex_unlock(&e->lock);
    if (err != ERR_OK) {
        close_cluster(e);
    }
    job_free(&e->own);
    return err;
}

static void stop(void *self)
{
    struct sim_engine *e = self;
    atomic_store(&e->stop, true);
}

static void arm(void *self)
{
    struct sim_engine *e = self;
    atomic_store(&e->stop, false);
}

static void forget(void *self)
{
    close_cluster(self);
}

enum err sim_engine_open(struct sim_engine **out, const struct lab_options *options)
{
    struct sim_engine *e = calloc(1, sizeof *e);
    if (e == NULL) {
        return ERR_NOMEM;
    }
    e->hooks = (struct lab_hooks){
        .next = next, .iteration = on_iteration, .is_over = is_over, .posted = on_posted};
    e->options = *options;
    e->options.hooks = &e->hooks;
    e->options.context = e;
    e->options.post = NULL;
    e->options.posts = 0;
    pthread_mutex_init(&e->lock, NULL);
    clock_open_condition(&e->changed);
    *out = e;
    return ERR_OK;
}

void sim_engine_close(struct sim_engine **engine)
{
    struct sim_engine *e = *engine;
    if (e == NULL) {
        return;
    }
    close_cluster(e);
    pthread_cond_destroy(&e->changed);
    pthread_mutex_destroy(&e->lock);
    free(e);
    *engine = NULL;
}

struct gui_stand_in sim_engine_stand_in(struct sim_engine *e)
{
    return (struct gui_stand_in){e, run, stop, arm, forget};
}
