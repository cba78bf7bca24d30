#include "worker/lab/lab_front.h"

#include "common/rng.h"

#include <stdlib.h>

enum { IDLE_MS = 20 };

/* ---- open and close ---- */

enum err lab_front_open(struct lab_worker *w, const struct searcher_options *searcher)
{
    struct lab_front *f = &w->front;
    struct searcher_options options = *searcher;
    options.client.role = PROTO_FRONT;
    w->searcher = &f->searcher;
    enum err err = front_core_open(&f->core, w->lab->alive_ms);
    return err == ERR_OK ? searcher_open(&f->searcher, &options) : err;
}

void lab_front_close(struct lab_front *f)
{
    searcher_close(&f->searcher);
    front_core_close(&f->core);
}

/* ---- a job ---- */

static bool poll_front(void *self, struct search *search)
{
    struct lab_worker *w = self;
    struct lab *lab = w->lab;
    if (remote_pass(w->front.searcher.remote)) {
        return lab->now_ns >= w->front.until_ns;
    }
    searcher_serve(&w->front.searcher, search, remote_now_us(w->front.searcher.remote));
    front_core_take(&w->front.core, &w->front.searcher);
    return lab->now_ns >= w->front.until_ns || (lab->ended && !lab->probing);
}

/* During this post it dropped a message of a job, as its queue was full. */
static bool has_dropped(const struct lab_worker *w, const struct lab_front *f)
{
    return w->unsent_ns != 0 && w->unsent_ns >= f->begin_ns;
}

/* The worker that reports under that alias still searches the job, or dropped what it said of it.
 * How soon workers leave is checked elsewhere (drain.c). */
static bool is_excused(const struct lab *lab, const struct lab_front *f, uint64_t alias)
{
    bool is = false;
    for (unsigned i = lab->options.fronts; i < lab->machines; i++) {
        const struct lab_worker *w = &lab->worker[i];
        is = is || (w->alias == alias && (lab_searches(w) == f->job.id || has_dropped(w, f)));
    }
    return is;
}

static unsigned last_reports_missing(const struct lab *lab, const struct lab_front *f)
{
    unsigned missing = 0;
    for (unsigned i = 0; i < f->core.reports; i++) {
        const struct proto_job_report *last = &f->core.report[i].last;
        missing += last->state == PROTO_JOB_SEARCHING && !is_excused(lab, f, last->instance);
    }
    return missing;
}

/* What is said of hosts adds up to what all reported. */
static unsigned hosts_wrong(struct lab_worker *w)
{
    const struct lab_front *f = &w->front;
    struct front_host *host = calloc(FRONT_WORKERS_MAX, sizeof *host);
    unsigned searchers = 0, reporters = 0;
    uint64_t nodes = 0, reported = 0;
    CHECK(host != NULL);
    const unsigned hosts = front_core_hosts(&f->core, lab_worker_us(w->lab, w->index), host);
    for (unsigned i = 0; i < hosts; i++) {
        searchers += host[i].searchers;
        nodes += host[i].nodes;
    }
    free(host);
    for (unsigned i = 0; i < f->core.reports; i++) {
        const struct proto_job_report *last = &f->core.report[i].last;
        reporters += last->state != PROTO_JOB_REFUSED;
        reported += last->state != PROTO_JOB_REFUSED ? last->nodes : 0;
    }
    return (searchers != reporters) + (nodes != reported);
}

/* Every report that was sent must have arrived. */
static bool is_undisturbed(const struct lab *lab, const struct lab_worker *front)
{
    uint64_t downs = 0;
    for (unsigned i = 0; i < lab->machines; i++) {
        const struct searcher *searcher = lab->worker[i].searcher;
        downs += searcher != NULL ? client_counters(remote_client(searcher->remote))->downs : 0;
    }
    /* Through a card that cannot keep up a report may come later than it is waited for. */
    return !has_dropped(front, &front->front) &&
           (lab->ended || (lab->options.faults == 0 && lab->options.loss_ppm == 0 &&
                           lab->options.lie_ns == 0 && lab->options.bandwidth == 0 && downs == 0));
}

/* `context`: the machine. */
static void keep_iteration(void *context, const struct search_result *result,
                           const struct search_counters *counters)
{
    const struct lab_worker *w = context;
    (void)counters;
    if (result->bound == TT_EXACT) {
        w->front.answer->iteration[result->depth] =
            (struct lab_iteration){w->lab->now_ns - w->front.begin_ns, result->score, result->move};
    }
}

static void search_post(struct lab_worker *w, const struct job *job, struct lab_answer *answer)
{
    struct lab *lab = w->lab;
    struct lab_front *f = &w->front;
    f->begin_ns = lab->now_ns;
    f->answer = answer;
    f->job = *job;
    f->job.id = rng_mix(lab->options.seed ^ (uint64_t)w->index << 48 ^
                        (uint64_t)w->incarnation << 32 ^ ++f->jobs) |
                1;
    f->env = (struct env_port){
        .self = w, .poll = poll_front, .until_poll = embedded_until_poll(&f->searcher.local)};
    f->peers.job = f->job.id;
    f->env.peers = &f->peers;
    front_core_begin(&f->core, f->job.id);
    CHECK(searcher_begin(&f->searcher, &f->job, &f->env, 0) == ERR_OK);
    CHECK(job_client_post(f->searcher.jobs, &f->job) == ERR_OK);
    f->searching = true;
    search_run(f->searcher.search, keep_iteration, w, &answer->search);
    remote_wait(f->searcher.remote, 0); /* what is earlier than the answer happens */
    f->searching = false;
    answer->answered = answer->search.depth >= job_last_iteration(job);
    answer->time_ns = lab->now_ns - f->begin_ns;
    searcher_end(&f->searcher);
    if (!lab->options.planted.skip_stop) {
        job_client_stop(f->searcher.jobs, f->job.id);
    }
    front_core_await(&f->core, &f->searcher, lab->wait_ms);
    lab->result.miscounted += lab->options.drain ? hosts_wrong(w) : 0;
    lab->result.reports_missing += is_undisturbed(lab, w) ? last_reports_missing(lab, f) : 0;
}

/* ---- its life ---- */

static void idle(struct lab_worker *w, uint64_t until_ns)
{
    uint64_t ms = (until_ns - w->lab->now_ns) / 1000000 + 1;
    remote_wait(w->front.searcher.remote, ms < IDLE_MS ? (unsigned)ms : IDLE_MS);
    front_core_take(&w->front.core, &w->front.searcher);
}

static void do_posts(struct lab_worker *w)
{
    struct lab *lab = w->lab;
    for (unsigned i = 0; i < lab->options.posts; i++) {
        const struct lab_post *post = &lab->options.post[i];
        while (post->front == w->index && !lab->ended && lab->now_ns < post->at_ns) {
            idle(w, post->at_ns);
        }
        if (post->front == w->index && !lab->ended) {
            struct lab_answer answer = {.answered = false};
            w->front.until_ns = post->stop_ns != 0 ? lab->now_ns + post->stop_ns : UINT64_MAX;
            search_post(w, post->job, &answer);
            lab->result.answer[i] = answer;
        }
    }
}

void lab_fronts_check(struct lab *lab)
{
    bool any = false;
    for (unsigned i = 0; i < lab->options.fronts; i++) {
        const struct lab_worker *w = &lab->worker[i];
        any = any || (w->alive && !w->front.done);
    }
    if (!any && !lab->ended) {
        lab->ended = true;
        lab->result.end_ns = lab->now_ns;
    }
}

void lab_front_run(struct lab_worker *w)
{
    struct lab *lab = w->lab;
    remote_connect(w->front.searcher.remote, lab->options.connect_ms);
    do_posts(w);
    w->front.done = true;
    lab_fronts_check(lab);
    for (;;) {
        idle(w, UINT64_MAX);
        if (lab->probing && !w->front.probed) {
            struct lab_answer answer;
            w->front.probed = true;
            w->front.until_ns = UINT64_MAX;
            search_post(w, &lab->probe, &answer);
        }
    }
}
