#include "worker/engine/worker.h"

#include "common/log.h"
#include "common/memory.h"
#include "common/rng.h"

#include <stdlib.h>

enum {
    IDLE_WAIT_MS = 50,
    WHY_MAX = 128,
    REFUSED_EVERY_US = 1000000,
    LINE_BYTES = SEARCH_PV_MAX * GAME_MOVE_TEXT_MAX,
};
_Static_assert((int)LINE_BYTES <= (int)PROTO_TEXT_MAX, "a report has room for a line");

static const char program[] = "ttworker";

struct worker {
    /* fixed after open */
    struct searcher searcher;
    uint64_t seed;
    const atomic_bool *stop;
    /* state */
    struct worker_core core;
    struct job job; /* being searched, with ... */
    struct search_result result; /* ... its last finished iteration */
    unsigned line_depth; /* the iteration that `line` is of */
    char line[LINE_BYTES];
    uint64_t refused_us; /* no line about a refused job until then */
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

static bool is_legal(const struct job *job, uint16_t move)
{
    struct game_move list[GAME_MOVES_MAX];
    for (unsigned i = job->game->generate(job->position, list); i > 0; i--) {
        if (list[i - 1].move == move) {
            return true;
        }
    }
    return false;
}

/* An iteration that a result of others ended has a line of one move: this process's table may know
 * how it goes on. Shards are not asked, which would cost the search a round trip for each move. */
static void extend_line(const struct worker *w, struct search_line *line, unsigned want)
{
    const struct job *job = &w->job;
    unsigned made = 0;
    for (; made < line->length; made++) {
        job->game->make(job->position, line->move[made]);
    }
    for (; made > 0 && made < want && made < SEARCH_PV_MAX; made++) {
        const struct tt_ask ask = {.key = job->game->key(job->position) ^ job->namespace_id,
                                   .alpha = TT_SCORE_MIN,
                                   .beta = TT_SCORE_MAX};
        struct tt_answer known = {.move = 0};
        (void)embedded_find(w->searcher.local.table, &ask, &known);
        if (known.move == 0 || !is_legal(job, known.move)) {
            break;
        }
        line->move[line->length++] = known.move;
        job->game->make(job->position, known.move);
    }
    while (made > 0) {
        job->game->unmake(job->position, line->move[--made]);
    }
}

static struct worker_progress progress_of(struct worker *w, const struct search *search)
{
    if (w->line_depth != w->result.depth) {
        struct search_line line = w->result.pv;
        extend_line(w, &line, w->result.depth);
        w->line_depth = w->result.depth;
        job_line_text(&w->job, &line, w->line, sizeof w->line);
    }
    return (struct worker_progress){search_counters(search), &w->result, w->line};
}

static bool poll_worker(void *self, struct search *search)
{
    struct worker *w = self;
    struct worker_actions actions;
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
    worker_core_refuse(&w->core, job, &actions);
    act(w, &actions);
}

static void search_job(struct worker *w, const struct job_offer *offer)
{
    struct worker_actions actions;
    struct env_port env = {
        .self = w, .poll = poll_worker, .until_poll = embedded_until_poll(&w->searcher.local)};
    char why[WHY_MAX];
    struct proto_job wire = job_offer_wire(offer);
    struct worker_choice name = {wire.job, wire.user};

    enum err err = job_from_wire(&wire, &w->job, why, sizeof why);
    if (err != ERR_OK) {
        refuse(w, name, why);
        return;
    }
    err = searcher_begin(&w->searcher, &w->job, &env, w->seed);
    if (err == ERR_OK) {
        worker_core_begin(&w->core, name, w->job.time_ms, now_us(w));
        w->line_depth = 0;
        w->line[0] = '\0';
        search_run(w->searcher.search, NULL, NULL, &w->result);
        searcher_end(&w->searcher);
        struct worker_progress progress = progress_of(w, w->searcher.search);
        worker_core_end(&w->core, &progress, w->result.depth >= w->job.depth, &actions);
        act(w, &actions);
    } else {
        refuse(w, name, err_text(err));
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
