#include "worker/lab/world.h"

#include "common/rng.h"

enum { IDLE_MS = 20 };

/* ---- open and close ---- */

static void on_event(void *self, const struct client_event *event)
{
    struct lab_worker *w = self;
    front_core_event(&w->front.core, event, remote_now_us(w->front.searcher.remote));
}

enum err lab_front_open(struct lab_worker *w, const struct searcher_options *searcher)
{
    struct lab_front *f = &w->front;
    struct searcher_options options = *searcher;
    options.client.role = PROTO_FRONT;
    options.events = (struct remote_events){w, on_event};
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
    return lab->now_ns >= w->front.until_ns || w->front.is_stopped ||
           (lab->options.hooks->is_over != NULL && lab->options.hooks->is_over(w, search));
}

/* `context`: the machine. */
static void keep_iteration(void *context, const struct search_result *result,
                           const struct counters *counters)
{
    struct lab_worker *w = context;
    (void)counters;
    if (w->lab->options.hooks->iteration != NULL) {
        w->lab->options.hooks->iteration(w, result);
    }
    if (result->bound == TT_EXACT) {
        w->front.answer->iteration[result->depth] =
            (struct lab_iteration){w->lab->now_ns - w->front.begin_ns, result->score, result->move};
    }
}

void lab_front_post(struct lab_worker *w, const struct job *job, uint64_t until_ns,
                    struct lab_answer *answer)
{
    struct lab *lab = w->lab;
    struct lab_front *f = &w->front;
    f->begin_ns = lab->now_ns;
    f->until_ns = until_ns;
    f->is_stopped = false;
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
    CHECK(searcher_post(&f->searcher, &f->job) == ERR_OK);
    f->searching = true;
    search_run(f->searcher.search, keep_iteration, w, &answer->search);
    remote_wait(f->searcher.remote, 0); /* what is earlier than the answer happens */
    f->searching = false;
    answer->answered = answer->search.depth >= job_last_iteration(job);
    answer->time_ns = lab->now_ns - f->begin_ns;
    searcher_end(&f->searcher);
    searcher_stop(&f->searcher, f->job.id);
    front_core_await(&f->core, &f->searcher, lab->wait_ms);
    if (lab->options.hooks->posted != NULL) {
        lab->options.hooks->posted(w);
    }
}

/* ---- its life ---- */

static void idle(struct lab_worker *w, uint64_t until_ns)
{
    uint64_t ms = (until_ns - w->lab->now_ns) / 1000000 + 1;
    remote_wait(w->front.searcher.remote, ms < IDLE_MS ? (unsigned)ms : IDLE_MS);
}

void lab_front_idle(struct lab_worker *w, uint64_t until_ns)
{
    while (!w->lab->ended && w->lab->now_ns < until_ns) {
        idle(w, until_ns);
    }
}

static void post(struct lab_worker *w, const struct lab_post *post, struct lab_answer *answer)
{
    const uint64_t stop_ns = post->stop_ns;
    *answer = (struct lab_answer){.answered = false};
    lab_front_post(w, post->job, stop_ns != 0 ? w->lab->now_ns + stop_ns : UINT64_MAX, answer);
}

static void do_posts(struct lab_worker *w)
{
    struct lab *lab = w->lab;
    const struct lab_hooks *hooks = lab->options.hooks;
    struct lab_post next;
    struct lab_answer answer;
    for (unsigned i = 0; i < lab->options.posts; i++) {
        const struct lab_post *each = &lab->options.post[i];
        if (each->front == w->index) {
            lab_front_idle(w, each->at_ns);
        }
        if (each->front == w->index && !lab->ended) {
            post(w, each, &answer);
            lab->result.answer[i] = answer;
        }
    }
    while (hooks->next != NULL && !lab->ended && hooks->next(w, &next)) {
        post(w, &next, &answer);
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

void lab_fronts_stop(struct lab *lab)
{
    lab->ended = true;
    for (unsigned i = 0; i < lab->options.fronts; i++) {
        lab->worker[i].front.is_stopped = true;
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
        if (lab->options.hooks->idle != NULL) {
            lab->options.hooks->idle(w);
        }
    }
}
