#include "worker/engine/engine_state.h"

#include "common/clock.h"
#include "common/memory.h"
#include "common/placement.h"
#include "common/rng.h"
#include "worker/engine/line.h"
#include "worker/engine/mailbox.h"
#include "worker/engine/process_name.h"
#include "worker/table/host_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    REPORT_EVERY_US = 250000,
    SERVE_EVERY_US = 20000, /* by threads that are done, while the caller tells */
    SHORT_MS = 1000, /* a search of less waits for nobody before it begins */
};

/* ---- what is known of a run ---- */

void engine_fill_status(struct engine *e, struct engine_status *out)
{
    const uint64_t now = clock_us();
    const uint64_t time_us = (e->end_us != 0 ? e->end_us : now) - e->begin_us;
    struct front_sum helped;
    CHECK_THAT(e->job != NULL && e->front.job == e->job->id, "reports are of the job that runs");
    front_core_sum(&e->front, now, &helped);
    struct engine_status s = {
        .time_us = time_us,
        .all_us = time_us * e->searchers + helped.searched_us,
        .workers = helped.workers,
        .workers_refused = helped.refused,
        .shards = e->shards,
        .refused = (unsigned)__builtin_popcountll(e->front.refused),
        .hash_permille = embedded_permille(e->table, e->job->namespace_id),
    };
    for (unsigned i = e->options.threads; i-- > 0;) {
        const struct searcher_figures f = searcher_figures(&e->thread[i].searcher);
        counters_add(&s.own, &f.all);
        counters_subtract(&s.own, &e->thread[i].before);
        s.depth = f.depth > s.depth ? f.depth : s.depth;
        s.shards_up = f.shards_up; /* at last the first thread's */
        s.remote_depth = f.remote_depth;
        const double left_s =
            f.now.nodes > 0 ? (double)f.nodes_left * (double)time_us / 1e6 / (double)f.now.nodes
                            : 0;
        s.left_s = left_s < UINT32_MAX ? (uint32_t)left_s : UINT32_MAX;
    }
    s.sum = s.own;
    counters_add(&s.sum, &helped.counters);
    atomic_store_explicit(&e->workers, s.workers, memory_order_relaxed);
    *out = s;
}

/* Each thread calls it when it reads. Another thread may be adding up the reports meanwhile. */
static void on_event(void *self, const struct client_event *event)
{
    struct engine_thread *thread = self;
    struct engine *e = thread->engine;
    if (e->has_letters) {
        mailboxes_event(e->mailboxes, thread->searcher.index, event);
    }
    if (thread != e->thread) {
        return;
    }
    pthread_mutex_lock(&e->lock);
    front_core_event(&e->front, event, clock_us());
    if (e->event != NULL) {
        e->event(e->run, event);
    }
    if (engine_has_refusal(e)) {
        pthread_cond_broadcast(&e->changed);
    }
    pthread_mutex_unlock(&e->lock);
}

bool engine_has_refusal(const struct engine *e)
{
    return e->front.refused != e->said_refused;
}

void engine_report_refusal(struct engine *e, engine_refused *refused, void *self)
{
    struct engine_status status;
    char why[FRONT_WHY_MAX];
    CHECK_THAT(engine_has_refusal(e), "there is a refusal to report");
    const unsigned shard = (unsigned)__builtin_ctzll(e->front.refused ^ e->said_refused);
    const bool is_refused = e->front.refused >> shard & 1;
    e->said_refused ^= UINT64_C(1) << shard;
    if (refused != NULL) {
        memcpy(why, e->front.why[shard], sizeof why);
        engine_fill_status(e, &status);
        pthread_mutex_unlock(&e->lock);
        refused(self, shard, is_refused ? why : NULL, &status);
        pthread_mutex_lock(&e->lock);
    }
}

void engine_report(struct engine *e, uint64_t now_us, bool has_best)
{
    struct searcher *searcher = &e->thread[0].searcher;
    struct engine_status status;
    char text[PROTO_TEXT_MAX + 1] = "";
    if (!e->is_posted || now_us < e->next_report_us) {
        return;
    }
    e->next_report_us = now_us + REPORT_EVERY_US;
    pthread_mutex_lock(&e->lock);
    engine_fill_status(e, &status);
    const struct search_result best = e->best;
    if (has_best) {
        job_line_text(e->job, &best.pv, text, sizeof text);
    }
    pthread_mutex_unlock(&e->lock);
    struct proto_job_report all = {.job = e->job->id, .state = PROTO_JOB_SEARCHING};
    job_report_set(&all, &status.sum);
    all.talked_us = 0; /* is known of each searcher */
    if (has_best) {
        /* Figures of this process alone, a searcher beside the workers. */
        struct proto_job_report own = {
            .job = e->job->id, .instance = e->instance, .state = PROTO_JOB_SEARCHING};
        job_report_set(&own, &status.own);
        own.waited_us /= e->searchers; /* a session's, and so never more than its time */
        own.talked_us /= e->searchers;
        searcher_report(searcher, &own);
        all.left_s = status.left_s; /* a bag's time is that of many positions */
        all.depth = (uint8_t)best.depth;
        all.score = (int16_t)best.score;
        all.move = best.move;
    }
    all.line = proto_text_of(text);
    searcher_report(searcher, &all);
}

/* When a run has ended. */
static unsigned fill_hosts(struct engine *e, const struct engine_status *status)
{
    struct front_host *own = &e->host[0];
    *own = (struct front_host){.is_own = true, .searchers = e->searchers, .sum = status->own};
    memcpy(own->name, e->name, sizeof own->name);
    own->searched_us = (e->end_us - e->begin_us) * own->searchers;
    return 1 + front_core_hosts(&e->front, clock_us(), &e->host[1]);
}

/* ---- lines that wait to be told ---- */

static struct engine_line *line_at(struct engine_lines *l, unsigned i)
{
    CHECK_THAT(l->first < ENGINE_LINES_MAX && l->count <= ENGINE_LINES_MAX,
               "the lines are in their ring");
    return &l->ring[(l->first + i) % ENGINE_LINES_MAX];
}

void engine_lines_put(struct engine_lines *l, unsigned number, const struct search_result *result,
                      const struct engine_status *status)
{
    const bool has_room = l->count <= ENGINE_LINES_MAX - SEARCH_LINES_MAX;
    if (!has_room && result->bound != TT_EXACT) {
        return;
    }
    if (!has_room && number == 0) {
        unsigned rest = 0; /* of the iteration that is being told */
        while (rest < l->count && line_at(l, rest)->number > 0) {
            rest++;
        }
        l->count = rest;
    }
    CHECK_THAT(l->count < ENGINE_LINES_MAX, "there is room for the lines of an iteration");
    *line_at(l, l->count++) = (struct engine_line){number, *result, *status};
}

bool engine_lines_take(struct engine_lines *l, struct engine_line *out)
{
    if (l->count == 0) {
        return false;
    }
    *out = *line_at(l, 0);
    l->first = (l->first + 1) % ENGINE_LINES_MAX;
    l->count--;
    return true;
}

/* ---- the lines of the best moves ---- */

/* All lines share the limit: each may use half of what is left, the last one all. The caller holds
 * the lock. */
static void note_lines(struct engine *e, const struct engine_thread *thread,
                       struct line_limit *limit)
{
    struct engine_status status;
    unsigned lines, i = 0;
    const struct search_result *line = search_lines(thread->searcher.search, &lines);
    CHECK_THAT(lines <= SEARCH_LINES_MAX && thread == e->speaker, "the speaker has the best lines");
    do {
        struct search_result r = i == 0 ? e->best : line[i];
        const unsigned left = limit->nodes, share = i + 1 < lines ? left / 2 : left;
        if (i > 0) {
            searcher_extend_line(&thread->searcher, e->job, &r.pv, r.depth);
        }
        limit->nodes = share;
        e->lacks_line |= !line_finish(e->job, e->table, limit, &r);
        limit->nodes += left - share;
        if (i == 0) {
            e->best = r;
        }
        engine_fill_status(e, &status);
        engine_lines_put(&e->lines, i, &r, &status);
    } while (++i < lines);
    pthread_cond_broadcast(&e->changed);
}

static void serve(struct engine_thread *thread, unsigned wait_ms)
{
    if (thread->engine->lanes != NULL) {
        remote_wait(thread->searcher.remote, wait_ms);
        searcher_publish_shards(&thread->searcher);
    }
}

/* The caller holds the lock. */
static void serve_unlocked(void *context)
{
    struct engine_thread *thread = context;
    pthread_mutex_unlock(&thread->engine->lock);
    serve(thread, 0);
    pthread_mutex_lock(&thread->engine->lock);
}

/* After the last iteration there is time to find the lines of its mates: a small part of what the
 * limits leave. By the thread that searches last, which holds the lock: whoever is told need not
 * have read what was found before. */
static void seek_lines(struct engine_thread *thread)
{
    enum { PART = 16 };
    struct engine *e = thread->engine;
    const uint64_t now = clock_us();
    struct line_limit limit = {
        .nodes = LINE_NODES_LAST, .stop = &e->stop, .serve = serve_unlocked, .context = thread};
    if (e->deadline_us > now) {
        limit.until_us = now + (e->deadline_us - now) / PART;
    }
    if (e->best.depth >= e->last_iteration && !atomic_load(&e->stop) &&
        (e->deadline_us == 0 || limit.until_us != 0)) {
        note_lines(e, e->speaker, &limit);
    }
}

/* ---- a run, of one position or of many ---- */

void engine_begin(struct engine *e, const struct job *job, unsigned searchers, bool is_posted)
{
    CHECK_THAT(e->job == NULL && searchers <= e->options.threads, "one run at a time");
    e->job = job;
    e->is_posted = is_posted;
    e->searchers = searchers;
    e->begin_us = clock_us();
    e->end_us = 0;
    e->next_report_us = e->begin_us + REPORT_EVERY_US;
    e->said_refused = 0;
    e->lacks_line = false;
    front_core_begin(&e->front, job->id);
    engine_idle(e, 0); /* what came while nothing ran */
    for (unsigned i = 0; i < e->options.threads; i++) {
        e->thread[i].before = searcher_figures(&e->thread[i].searcher).all;
    }
}

enum err engine_begin_search(struct engine_thread *thread, const struct job *job,
                             const struct env_port *env, uint64_t seed, uint64_t until_us)
{
    const enum err err = searcher_begin(&thread->searcher, job, env, seed);
    if (err == ERR_OK && thread->engine->lanes != NULL) {
        const struct remote_limit limit = {.until_us = until_us, .stop = &thread->engine->stop};
        remote_set_limit(thread->searcher.remote, &limit);
    }
    return err;
}

static void *run_thread(void *context)
{
    struct engine_thread *thread = context;
    struct engine *e = thread->engine;
    e->search(thread);
    if (thread == e->thread && e->is_posted) {
        searcher_stop(&thread->searcher, e->job->id);
        remote_flush(thread->searcher.remote);
    }
    pthread_mutex_lock(&e->lock);
    CHECK_THAT(e->searching > 0, "a thread that is done has searched");
    e->end_us = thread == e->thread ? clock_us() : e->end_us;
    if (e->searching == 1 && e->lacks_line) {
        seek_lines(thread);
    }
    e->searching--;
    pthread_cond_broadcast(&e->changed);
    uint64_t serve_us = clock_us() + SERVE_EVERY_US;
    while (e->is_reporting) {
        if (!clock_wait(&e->changed, &e->lock, serve_us)) {
            pthread_mutex_unlock(&e->lock);
            serve(thread, 0);
            serve_us = clock_us() + SERVE_EVERY_US;
            pthread_mutex_lock(&e->lock);
        }
    }
    pthread_mutex_unlock(&e->lock);
    return NULL;
}

bool engine_search(struct engine *e, void (*search)(struct engine_thread *thread),
                   void (*report)(struct engine *e, void *self), void *self)
{
    struct placement_thread started_as[EMBEDDED_SLOTS_MAX];
    unsigned started = 0;
    e->search = search;
    e->is_reporting = true;
    pthread_mutex_lock(&e->lock); /* none is done before all are counted */
    while (started < e->searchers && placement_create_thread(&started_as[started], started + 1,
                                                             run_thread, &e->thread[started])) {
        started++;
    }
    e->searching = started;
    pthread_mutex_unlock(&e->lock);
    if (started > 0) {
        report(e, self);
    }
    pthread_mutex_lock(&e->lock);
    CHECK_THAT(started == 0 || e->is_reporting, "the caller alone ends its reports");
    e->is_reporting = false;
    pthread_cond_broadcast(&e->changed);
    pthread_mutex_unlock(&e->lock);
    for (unsigned i = 0; i < started; i++) {
        pthread_join(started_as[i].thread, NULL);
    }
    CHECK_THAT(e->searching == 0, "nobody searches when all threads are joined");
    return started > 0;
}

void engine_end(struct engine *e)
{
    e->job = NULL;
    e->event = NULL;
    atomic_store_explicit(&e->workers, 0, memory_order_relaxed);
}

/* ---- what a searching thread sees ---- */

static void watch_root(struct engine *e, const struct search *search, uint64_t now)
{
    unsigned number;
    const uint16_t move = search_root_move(search, &number);
    if (move == 0 || move == e->root_move || now < e->begin_us + ENGINE_PATIENCE_US) {
        return;
    }
    pthread_mutex_lock(&e->lock);
    e->root_move = move;
    e->root_number = number;
    pthread_cond_broadcast(&e->changed);
    pthread_mutex_unlock(&e->lock);
}

static bool over_limits(struct engine *e, uint64_t now)
{
    if (e->deadline_us != 0 && now >= e->deadline_us) {
        return true;
    }
    if (e->job->nodes == 0) {
        return false;
    }
    uint64_t nodes = 0;
    for (unsigned i = 0; i < e->options.threads; i++) {
        nodes += atomic_load_explicit(&e->thread[i].searcher.now.at[COUNTER_nodes],
                                      memory_order_relaxed);
    }
    return nodes >= e->job->nodes;
}

static bool poll_one(void *self, struct search *search)
{
    struct engine_thread *thread = self;
    struct engine *e = thread->engine;
    uint64_t now = clock_us();
    searcher_serve(&thread->searcher, search, now);
    if (thread == e->thread) {
        watch_root(e, search, now);
        engine_report(e, now, true);
    }
    if (atomic_load_explicit(&e->ended, memory_order_relaxed)) {
        return true;
    }
    /* The first iteration is always finished: it is small, and any move is better than none. */
    return search_iteration(search) > 1 &&
           (atomic_load_explicit(&e->stop, memory_order_relaxed) || over_limits(e, now));
}

/* The first searcher to finish an iteration speaks for all. */
static void on_iteration(void *context, const struct search_result *result,
                         const struct counters *counters)
{
    struct engine_thread *thread = context;
    struct engine *e = thread->engine;
    enum { LINES = 3 }; /* the effort for all is no more than for so many */
    (void)counters;
    searcher_publish(&thread->searcher);
    pthread_mutex_lock(&e->lock);
    if (result->depth > e->best.depth && result->bound != TT_EXACT) {
        struct engine_status status;
        engine_fill_status(e, &status);
        engine_lines_put(&e->lines, 0, result, &status);
        pthread_cond_broadcast(&e->changed);
    } else if (result->depth > e->best.depth) {
        const struct search_result before = e->best;
        e->best = *result;
        if (before.depth > 0 && before.move == result->move && before.score == result->score &&
            line_is_mate(e->job, &before)) {
            e->best.pv = before.pv; /* the line to the mate is at hand */
        }
        e->speaker = thread;
        e->lacks_line = false;
        searcher_extend_line(&thread->searcher, e->job, &e->best.pv, e->best.depth);
        const unsigned lines = e->job->lines > LINES ? LINES : e->job->lines;
        struct line_limit limit = {.nodes = LINE_NODES * (lines > 0 ? lines : 1),
                                   .until_us = e->deadline_us};
        note_lines(e, thread, &limit);
    }
    pthread_mutex_unlock(&e->lock);
}

static void search_one(struct engine_thread *thread)
{
    struct engine *e = thread->engine;
    struct search_result result;
    search_run(thread->searcher.search, on_iteration, thread, &result);
    searcher_end(&thread->searcher);
    if (thread == e->thread || result.depth >= e->last_iteration) {
        atomic_store(&e->ended, true); /* limits met by the first are met by all */
        mailboxes_wake(e->mailboxes);
    }
    pthread_mutex_lock(&e->lock);
    if (e->best.depth == 0 && (result.depth > 0 || e->best.move == 0)) {
        e->best = result;
    } else if (result.unfinished > e->best.depth &&
               (result.unfinished > e->best.unfinished ||
                (result.unfinished == e->best.unfinished && result.score > e->best.score))) {
        struct engine_status status;
        result.depth = e->best.depth;
        e->best = result;
        engine_fill_status(e, &status);
        engine_lines_put(&e->lines, 0, &result, &status);
    }
    pthread_mutex_unlock(&e->lock);
}

/* ---- what the caller tells ---- */

static void report_progress(struct engine *e, void *self)
{
    enum { PROGRESS_EVERY_US = 1000000 };
    const struct engine_observer *to = self;
    struct engine_line line;
    struct engine_status status;
    uint16_t said_root_move = 0;
    uint64_t progress_us = e->begin_us + PROGRESS_EVERY_US;
    pthread_mutex_lock(&e->lock);
    for (;;) {
        if (engine_lines_take(&e->lines, &line)) {
            pthread_mutex_unlock(&e->lock);
            if (to->iteration != NULL) {
                to->iteration(to->self, line.number, &line.result, &line.status);
            }
            pthread_mutex_lock(&e->lock);
        } else if (engine_has_refusal(e)) {
            engine_report_refusal(e, to->refused, to->self);
        } else if (e->searching == 0) {
            break;
        } else if (e->root_move != said_root_move) {
            const unsigned number = e->root_number;
            said_root_move = e->root_move;
            engine_fill_status(e, &status);
            pthread_mutex_unlock(&e->lock);
            if (to->root_move != NULL) {
                to->root_move(to->self, said_root_move, number, &status);
            }
            pthread_mutex_lock(&e->lock);
        } else if (clock_us() >= progress_us) {
            const struct search_result best = e->best;
            progress_us = clock_us() + PROGRESS_EVERY_US;
            engine_fill_status(e, &status);
            pthread_mutex_unlock(&e->lock);
            if (to->progress != NULL) {
                to->progress(to->self, &best, &status);
            }
            pthread_mutex_lock(&e->lock);
        } else {
            (void)clock_wait(&e->changed, &e->lock, progress_us);
        }
    }
    pthread_mutex_unlock(&e->lock);
}

/* ---- open and close ---- */

static enum err open_thread(struct engine *e, struct engine_thread *thread, const char *name)
{
    unsigned index = (unsigned)(thread - e->thread);
    struct lane lane;
    uint64_t instance = clock_unique();
    e->instance = index == 0 ? instance : e->instance;
    struct searcher_options options = {
        .table = e->table,
        .index = index,
        .neighbours = e->options.threads,
        .client = {.shards = e->shards,
                   .role = index == 0 ? PROTO_FRONT : PROTO_CLIENT,
                   .instance = instance,
                   .name = name, /* copied */
                   .jobs = 2},
        .events = {thread, on_event},
        .share_depth = e->options.share_depth,
    };
    thread->engine = e;
    if (e->lanes != NULL) {
        enum err err = lanes_add(e->lanes, e->options.table.keys, &lane);
        if (err != ERR_OK) {
            return err;
        }
        options.lane = &lane;
    }
    enum err err = searcher_open(&thread->searcher, &options);
    if (err == ERR_OK && e->has_letters) {
        mailboxes_connect(e->mailboxes, index, thread->searcher.remote, instance);
    }
    thread->env = (struct env_port){.self = thread,
                                    .poll = poll_one,
                                    .until_poll = embedded_until_poll(&thread->searcher.local)};
    thread->env.peers = mailboxes_port(e->mailboxes, index, thread->env.until_poll);
    return err;
}

static enum err open_threads(struct engine *e)
{
    enum err err = ERR_OK;
    uint64_t deadline = clock_us() + ENGINE_CONNECT_MS * UINT64_C(1000);
    char name[CLIENT_NAME_MAX + 1];
    snprintf(name, sizeof name, "abdada:%d", (int)getpid());
    for (unsigned i = 0; i < e->options.threads && err == ERR_OK; i++) {
        err = open_thread(e, &e->thread[i], name);
    }
    for (unsigned i = 0; i < e->options.threads && err == ERR_OK && e->lanes != NULL; i++) {
        /* They connect at the same time: only the first waits for shards that are not there. */
        uint64_t now = clock_us();
        remote_connect(e->thread[i].searcher.remote,
                       now < deadline ? (unsigned)((deadline - now) / 1000) : 0);
    }
    return err;
}

_Static_assert((int)ENGINE_WHY_MAX >= (int)LANES_WHY_MAX, "the lanes' words fit");

enum err engine_open(struct engine **out, const struct engine_options *options,
                     char why[ENGINE_WHY_MAX])
{
    struct engine *e = calloc(1, sizeof *e);
    if (e == NULL) {
        return err_say(ERR_NOMEM, why, ENGINE_WHY_MAX, "%s", err_text(ERR_NOMEM));
    }
    why[0] = '\0';
    bool is_alone = !lanes_is_given(&options->table);
    uint64_t group = is_alone || options->is_private ? 0 : lanes_group(&options->table);
    e->options = *options;
    pthread_mutex_init(&e->lock, NULL);
    clock_open_condition(&e->changed);
    e->thread = memory_lines(options->threads * sizeof *e->thread);
    process_name_default(e->name);
    e->host = calloc(FRONT_WORKERS_MAX + 1, sizeof *e->host);
    enum err err = front_core_open(&e->front, 0);
    err = err ? err : mailboxes_open(&e->mailboxes, options->threads, true);
    e->has_letters = !is_alone && options->table.redis == NULL;
    if (e->thread == NULL || e->host == NULL) {
        err = ERR_NOMEM;
    }
    if (err == ERR_OK && !is_alone) {
        err = lanes_open(&e->lanes, &options->table, options->threads, options->program, why);
        e->shards = err == ERR_OK ? lanes_shards(e->lanes) : 0;
    }
    err = err ? err
              : embedded_open_on_host(&e->table, options->hash_bytes, options->threads, group,
                                      options->wait);
    err = err ? err : open_threads(e);
    e->options.table.keys = NULL;
    if (err != ERR_OK) {
        if (why[0] == '\0') {
            snprintf(why, ENGINE_WHY_MAX, "%s", err_text(err));
        }
        engine_close(&e);
        return err;
    }
    *out = e;
    return ERR_OK;
}

void engine_close(struct engine **engine)
{
    struct engine *e = *engine;
    if (e == NULL) {
        return;
    }
    for (unsigned i = 0; i < e->options.threads && e->thread != NULL; i++) {
        searcher_close(&e->thread[i].searcher);
    }
    mailboxes_close(&e->mailboxes);
    lanes_close(&e->lanes);
    embedded_close(&e->table);
    pthread_cond_destroy(&e->changed);
    pthread_mutex_destroy(&e->lock);
    front_core_close(&e->front);
    free(e->host);
    free(e->thread);
    free(e);
    *engine = NULL;
}

unsigned engine_workers(const struct engine *e)
{
    return atomic_load_explicit(&e->workers, memory_order_relaxed);
}

const struct searcher *engine_searcher(const struct engine *e, unsigned i)
{
    return &e->thread[i].searcher;
}

unsigned engine_shards(const struct engine *e)
{
    return e->shards;
}

void engine_shard_name(const struct engine *e, unsigned shard, char out[LANES_NAME_MAX])
{
    lanes_shard_name(e->lanes, shard, out);
}

bool engine_none_up(const struct engine *e, char out[LANES_NONE_UP_MAX])
{
    if (e->lanes != NULL) {
        lanes_none_up(e->lanes, out);
    }
    return e->lanes != NULL && client_shards_up(remote_client(e->thread[0].searcher.remote)) == 0;
}

const char *engine_private_reason(const struct engine *e)
{
    int reason = embedded_private_reason(e->table);
    return reason != 0 ? host_table_reason(reason) : NULL;
}

void engine_stop(struct engine *e)
{
    atomic_store(&e->stop, true);
}

void engine_arm(struct engine *e)
{
    atomic_store(&e->stop, false);
}

void engine_idle(struct engine *e, unsigned wait_ms)
{
    for (unsigned i = 0; i < e->options.threads && e->lanes != NULL; i++) {
        serve(&e->thread[i], i == 0 ? wait_ms : 0);
    }
}

void engine_clear(struct engine *e)
{
    embedded_clear(e->table);
}

void engine_forget(struct engine *e)
{
    engine_clear(e);
    for (unsigned i = 0; i < e->options.threads; i++) {
        search_forget(e->thread[i].searcher.search);
    }
}

/* ---- a run of one position ---- */

enum err engine_run(struct engine *e, struct job *job, const struct engine_observer *observer,
                    struct engine_result *out)
{
    struct engine_observer to = observer != NULL ? *observer : (struct engine_observer){NULL};
    const bool needs_peers = algorithm_needs_peers(job->algorithm);
    const bool is_posted =
        e->lanes != NULL && job->algorithm->uses_shards && (e->has_letters || !needs_peers);
    job->id = clock_unique();
    if (job_copy(&e->own, job) != ERR_OK) {
        return ERR_NOMEM;
    }
    engine_begin(e, &e->own, job->algorithm->uses_searchers ? e->options.threads : 1, is_posted);
    e->last_iteration = job_last_iteration(job);
    e->lines.count = 0;
    e->best = (struct search_result){0};
    e->root_move = 0;
    e->deadline_us =
        job->time_ms == 0 ? 0 : e->begin_us + job->time_ms * UINT64_C(1000) - job->spare_us;
    atomic_store(&e->ended, false);
    enum err err = needs_peers ? mailboxes_begin(e->mailboxes, job->id, !is_posted) : ERR_OK;
    for (unsigned i = 0; i < e->options.threads && err == ERR_OK; i++) {
        /* The first keeps the plain order; the others break ties each in its own way. */
        err = engine_begin_search(&e->thread[i], e->job, &e->thread[i].env, i == 0 ? 0 : rng_mix(i),
                                  e->deadline_us);
    }
    if (err == ERR_OK && is_posted) {
        err = searcher_post(&e->thread[0].searcher, job);
    }
    if (err == ERR_OK) {
        if (job->time_ms == 0 || job->time_ms >= SHORT_MS) {
            mailboxes_await_first(e->mailboxes);
        }
        if (!engine_search(e, search_one, report_progress, &to)) {
            e->searching = 1; /* the caller's thread is as good; it tells afterwards */
            run_thread(e->thread);
        }
        mailboxes_end(e->mailboxes);
        CHECK_THAT(embedded_inflight(e->table) == 0, "nothing is in flight when nobody searches");
        if (is_posted) { /* the workers' last figures, if they come soon */
            front_core_await(&e->front, &e->thread[0].searcher,
                             job->at_once        ? 0
                             : job->time_ms != 0 ? FRONT_WAIT_TIMED_MS
                                                 : FRONT_WAIT_MS);
        }
        report_progress(e, &to); /* what came since */
        *out = (struct engine_result){.search = e->best, .stopped = atomic_load(&e->stop)};
        engine_fill_status(e, &out->status);
        out->host = e->host;
        out->hosts = fill_hosts(e, &out->status);
    } else {
        mailboxes_end(e->mailboxes);
    }
    engine_end(e);
    job_free(&e->own);
    return err;
}

/* ---- single nodes, after a run ---- */

static bool poll_subtree(void *self, struct search *search)
{
    struct engine_thread *thread = self;
    searcher_serve(&thread->searcher, search, clock_us());
    return atomic_load_explicit(&thread->engine->stop, memory_order_relaxed);
}

enum err engine_subtrees_begin(struct engine *e, const struct job *job)
{
    struct engine_thread *first = e->thread;
    const struct env_port env = {.self = first, .poll = poll_subtree};
    return engine_begin_search(first, job, &env, 0, 0);
}

enum search_status engine_subtree(struct engine *e, const struct search_split *split,
                                  struct search_result *out)
{
    return search_subtree(e->thread[0].searcher.search, split, out);
}

void engine_subtrees_end(struct engine *e)
{
    searcher_end(&e->thread[0].searcher);
}
