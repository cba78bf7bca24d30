#include "worker/engine/engine_state.h"

#include "common/clock.h"
#include "common/memory.h"
#include "common/placement.h"
#include "common/rng.h"
#include "worker/engine/line.h"
#include "worker/engine/mailbox.h"
#include "worker/engine/process.h"
#include "worker/table/host_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    PROGRESS_EVERY_US = 1000000,
    REPORT_EVERY_US = 250000,
    OBSERVER_WAIT_MS = 20, /* between what shards are owed, while the observer is told the last */
    SHORT_MS = 1000, /* a search of less waits for nobody before it begins */
};

/* ---- reports of workers ---- */

static unsigned searching_threads(const struct engine *e)
{
    return e->job->algorithm->uses_searchers ? e->options.threads : 1;
}

/* The caller holds the lock. */
static void fill_status(struct engine *e, struct engine_status *out)
{
    uint64_t now = clock_us();
    uint64_t time_us = (e->end_us != 0 ? e->end_us : now) - e->begin_us;
    struct front_sum helped;
    front_core_sum(&e->front, now, &helped);
    struct engine_status s = {
        .time_us = time_us,
        .all_us = time_us * searching_threads(e) + helped.searched_us,
        .workers = helped.workers,
        .workers_refused = helped.refused,
        .shards = e->shards,
        .shards_up = atomic_load(&e->thread[0].searcher.shards_up),
        .refused = (unsigned)__builtin_popcountll(e->front.refused),
        .hash_permille = embedded_permille(e->table, e->job->namespace_id),
    };
    for (unsigned i = 0; i < e->options.threads; i++) {
        struct searcher_figures f = searcher_figures(&e->thread[i].searcher);
        s.own_nodes += f.sum.nodes;
#define X(name, json, help) s.name += f.sum.name;
        COUNTERS(X)
#undef X
        s.waited_us += f.talk.waited_us;
        s.bytes_sent += f.talk.bytes_sent;
        s.bytes += f.talk.bytes_sent + f.talk.bytes_received;
        s.remote_depth = f.remote_depth;
        s.depth = f.depth > s.depth ? f.depth : s.depth;
    }
#define X(name, json, help) s.name += helped.name;
    COUNTERS_REPORTED(X)
#undef X
    s.all_waited_us = s.waited_us + helped.waited_us;
    s.bytes_sent += helped.bytes_sent;
    s.bytes += helped.bytes_sent + helped.bytes_received;
    atomic_store_explicit(&e->workers, s.workers, memory_order_relaxed);
    *out = s;
}

bool engine_refusal(struct engine *e, unsigned *shard, const char **why)
{
    const uint64_t changed = e->front.refused ^ e->said_refused;
    if (changed == 0) {
        return false;
    }
    *shard = (unsigned)__builtin_ctzll(changed);
    *why = e->front.refused >> *shard & 1 ? e->front.why[*shard] : NULL;
    e->said_refused ^= UINT64_C(1) << *shard;
    return true;
}

/* The caller holds the lock. */
static void note_refusals(struct engine *e)
{
    struct engine_status status;
    unsigned shard;
    const char *why;
    while (engine_refusal(e, &shard, &why)) {
        fill_status(e, &status);
        observer_note_refusal(e->observer, shard, why, &status);
    }
}

void engine_take_events(struct engine *e)
{
    if (e->transport != NULL) {
        pthread_mutex_lock(&e->lock); /* any thread may be summing up */
        front_core_take(&e->front, &e->thread[0].searcher);
        if (e->job != NULL) {
            note_refusals(e);
        }
        pthread_mutex_unlock(&e->lock);
    }
}

/* ---- what a searching thread sees ---- */

static void watch_progress(struct engine *e, uint64_t now)
{
    struct engine_status status;
    if (now < e->next_progress_us) {
        return;
    }
    e->next_progress_us = now + PROGRESS_EVERY_US;
    pthread_mutex_lock(&e->lock);
    fill_status(e, &status);
    observer_note_progress(e->observer, &e->best, &status);
    pthread_mutex_unlock(&e->lock);
}

static void watch_root(struct engine *e, const struct search *search, uint64_t now)
{
    struct engine_status status;
    unsigned number;
    uint16_t move = search_root_move(search, &number);
    if (move == 0 || move == e->said_root_move || now < e->begin_us + ENGINE_PATIENCE_US) {
        return;
    }
    e->said_root_move = move;
    pthread_mutex_lock(&e->lock);
    fill_status(e, &status);
    observer_note_root_move(e->observer, move, number, &status);
    pthread_mutex_unlock(&e->lock);
}

/* Of this process alone: a searcher beside the workers, for who watches the cluster. */
static struct proto_job_report own_report(const struct engine *e)
{
    struct proto_job_report own = {
        .job = e->job->id, .instance = e->instance, .state = PROTO_JOB_SEARCHING};
    for (unsigned i = 0; i < e->options.threads; i++) {
        struct searcher_figures f = searcher_figures(&e->thread[i].searcher);
#define X(name, json, help) own.name += f.sum.name;
        COUNTERS_REPORTED(X)
#undef X
#define X(name) own.name += f.talk.name;
        COUNTERS_OF_TALK(X)
#undef X
    }
    own.waited_us /= searching_threads(e); /* a session's, and so never more than its time */
    own.talked_us /= searching_threads(e);
    return own;
}

/* When a run has ended. */
static unsigned fill_hosts(struct engine *e)
{
    struct front_host *own = &e->host[0];
    *own = (struct front_host){.is_own = true, .searchers = searching_threads(e)};
    memcpy(own->name, e->name, sizeof own->name);
    own->searched_us = (e->end_us - e->begin_us) * own->searchers;
    for (unsigned i = 0; i < e->options.threads; i++) {
        struct searcher_figures f = searcher_figures(&e->thread[i].searcher);
        own->nodes += f.sum.nodes;
        own->asks += f.sum.asks;
#define X(name) own->name += f.talk.name;
        COUNTERS_OF_TALK(X)
#undef X
    }
    return 1 + front_core_hosts(&e->front, clock_us(), &e->host[1]);
}

struct proto_job_report engine_report_of(uint64_t job, const struct engine_status *status)
{
    return (struct proto_job_report){
        .job = job,
        .state = PROTO_JOB_SEARCHING,
#define X(name, json, help) .name = status->name,
        COUNTERS_REPORTED(X)
#undef X
            .waited_us = status->all_waited_us,
        .bytes_sent = status->bytes_sent,
        .bytes_received = status->bytes - status->bytes_sent,
        .line = proto_text_of(""),
    };
}

/* So that who watches the cluster sees what the user sees. */
static void report(struct engine *e, uint64_t now)
{
    struct engine_status status;
    char text[PROTO_TEXT_MAX + 1];
    if (e->transport == NULL || !e->job->algorithm->uses_shards || now < e->next_report_us) {
        return;
    }
    e->next_report_us = now + REPORT_EVERY_US;
    pthread_mutex_lock(&e->lock);
    fill_status(e, &status);
    job_line_text(e->job, &e->best.pv, text, sizeof text);
    struct proto_job_report message = engine_report_of(e->job->id, &status);
    message.depth = (uint8_t)e->best.depth;
    message.score = (int16_t)e->best.score;
    message.move = e->best.move;
    message.line = proto_text_of(text);
    pthread_mutex_unlock(&e->lock);
    struct job_client *jobs = e->thread[0].searcher.jobs;
    const struct proto_job_report own = own_report(e);
    job_client_report(jobs, &own);
    job_client_report(jobs, &message);
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
        nodes += atomic_load_explicit(&e->thread[i].searcher.nodes, memory_order_relaxed);
    }
    return nodes >= e->job->nodes;
}

static bool poll_engine(void *self, struct search *search)
{
    struct engine_thread *thread = self;
    struct engine *e = thread->engine;
    uint64_t now = clock_us();
    searcher_serve(&thread->searcher, search, now);
    if (thread == e->thread) {
        engine_take_events(e);
        watch_progress(e, now);
        watch_root(e, search, now);
        report(e, now);
    }
    if (atomic_load_explicit(&e->ended, memory_order_relaxed)) {
        return true;
    }
    /* The first iteration is always finished: it is small, and any move is better than none. */
    return search_iteration(search) > 1 &&
           (atomic_load_explicit(&e->stop, memory_order_relaxed) || over_limits(e, now));
}

/* The caller holds the lock. */
static void finish_line(struct engine *e, const struct engine_thread *thread,
                        struct search_result *r)
{
    searcher_extend_line(&thread->searcher, e->job, &r->pv, r->depth);
    line_finish(e->job, e->table, e->deadline_us, r);
}

/* The caller holds the lock. */
static void report_lines(struct engine *e, const struct engine_thread *thread)
{
    struct engine_status status;
    unsigned lines;
    const struct search_result *line = search_lines(thread->searcher.search, &lines);
    fill_status(e, &status);
    observer_note_line(e->observer, 0, &e->best, &status);
    for (unsigned i = 1; i < lines; i++) {
        struct search_result r = line[i];
        finish_line(e, thread, &r);
        observer_note_line(e->observer, i, &r, &status);
    }
}

/* The caller holds the lock. */
static void report_bound(struct engine *e, const struct search_result *outside)
{
    struct engine_status status;
    fill_status(e, &status);
    observer_note_line(e->observer, 0, outside, &status);
}

/* The first searcher to finish an iteration speaks for all. */
static void take_iteration(void *context, const struct search_result *result,
                           const struct search_counters *counters)
{
    struct engine_thread *thread = context;
    struct engine *e = thread->engine;
    (void)counters;
    searcher_publish(&thread->searcher);
    pthread_mutex_lock(&e->lock);
    if (result->depth > e->best.depth && result->bound != TT_EXACT) {
        report_bound(e, result);
    } else if (result->depth > e->best.depth) {
        const struct search_result before = e->best;
        e->best = *result;
        if (before.depth > 0 && before.move == result->move && before.score == result->score &&
            line_is_mate(e->job, &before)) {
            e->best.pv = before.pv; /* the line to the mate is at hand */
        }
        finish_line(e, thread, &e->best);
        report_lines(e, thread);
    }
    pthread_mutex_unlock(&e->lock);
}

static void *search_thread(void *context)
{
    struct engine_thread *thread = context;
    struct engine *e = thread->engine;
    struct search_result result;
    search_run(thread->searcher.search, take_iteration, thread, &result);
    searcher_end(&thread->searcher);
    if (result.depth >= e->last_iteration) {
        atomic_store(&e->ended, true);
    }
    pthread_mutex_lock(&e->lock);
    if (e->best.depth == 0 && (result.depth > 0 || e->best.move == 0)) {
        e->best = result;
    }
    pthread_mutex_unlock(&e->lock);
    return NULL;
}

/* ---- open and close ---- */

static enum err open_thread(struct engine *e, struct engine_thread *thread, const char *name)
{
    unsigned index = (unsigned)(thread - e->thread);
    struct remote_shell shell;
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
        .mailboxes = e->has_letters ? e->mailboxes : NULL,
        .mailbox = index,
        .bag = index == 0 ? e->inbox : NULL,
        .share_depth = e->options.share_depth,
    };
    thread->engine = e;
    if (e->transport != NULL) {
        enum err err = transport_lane(e->transport, e->options.table.keys, &shell);
        if (err != ERR_OK) {
            return err;
        }
        options.shell = &shell;
    }
    enum err err = searcher_open(&thread->searcher, &options);
    thread->env = (struct env_port){.self = thread,
                                    .poll = poll_engine,
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
    for (unsigned i = 0; i < e->options.threads && err == ERR_OK && e->transport != NULL; i++) {
        /* They connect at the same time: only the first waits for shards that are not there. */
        uint64_t now = clock_us();
        remote_connect(e->thread[i].searcher.remote,
                       now < deadline ? (unsigned)((deadline - now) / 1000) : 0);
    }
    return err;
}

_Static_assert((int)ENGINE_WHY_MAX >= (int)TRANSPORT_WHY_MAX, "a transport's words fit");

enum err engine_open(struct engine **out, const struct engine_options *options,
                     char why[ENGINE_WHY_MAX])
{
    struct engine *e = calloc(1, sizeof *e);
    if (e == NULL) {
        snprintf(why, ENGINE_WHY_MAX, "%s", err_text(ERR_NOMEM));
        return ERR_NOMEM;
    }
    why[0] = '\0';
    bool is_alone = !transport_is_given(&options->table);
    uint64_t group = is_alone || options->is_private ? 0 : transport_group(&options->table);
    e->options = *options;
    pthread_mutex_init(&e->lock, NULL);
    e->thread = memory_lines(options->threads * sizeof *e->thread);
    process_default_name(e->name);
    e->host = calloc(FRONT_WORKERS_MAX + 1, sizeof *e->host);
    enum err err = front_core_open(&e->front, 0);
    if (err == ERR_OK) {
        err = observer_open(&e->observer);
    }
    if (err == ERR_OK) {
        err = mailboxes_open(&e->mailboxes, options->threads, true);
    }
    e->has_letters = !is_alone && options->table.redis == NULL;
    if (err == ERR_OK && e->has_letters) {
        err = bag_inbox_open(&e->inbox);
    }
    if (e->thread == NULL || e->host == NULL) {
        err = ERR_NOMEM;
    }
    if (err == ERR_OK && !is_alone) {
        err =
            transport_open(&e->transport, &options->table, options->threads, options->program, why);
        e->shards = err == ERR_OK ? transport_shards(e->transport) : 0;
    }
    if (err == ERR_OK) {
        err = embedded_open_on_host(&e->table, options->hash_bytes, options->threads, group,
                                    options->wait);
    }
    if (err == ERR_OK) {
        err = open_threads(e);
    }
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
    bag_inbox_close(&e->inbox);
    transport_close(&e->transport);
    embedded_close(&e->table);
    observer_close(&e->observer);
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

unsigned engine_shards_up(const struct engine *e)
{
    return e->transport == NULL ? 0 : job_client_sources_up(e->thread[0].searcher.jobs);
}

void engine_shard_name(const struct engine *e, unsigned shard, char out[TRANSPORT_NAME_MAX])
{
    transport_shard_name(e->transport, shard, out);
}

void engine_none_up(const struct engine *e, char out[TRANSPORT_NONE_UP_MAX])
{
    transport_none_up(e->transport, out);
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
    for (unsigned i = 0; i < e->options.threads && e->transport != NULL; i++) {
        remote_wait(e->thread[i].searcher.remote, i == 0 ? wait_ms : 0);
        searcher_publish_shards(&e->thread[i].searcher);
    }
    engine_take_events(e);
}

void engine_clear(struct engine *e)
{
    embedded_clear(e->table);
}

/* ---- a run ---- */

static enum err prepare_threads(struct engine *e)
{
    enum err err = ERR_OK;
    for (unsigned i = 0; i < e->options.threads && err == ERR_OK; i++) {
        struct engine_thread *thread = &e->thread[i];
        /* The first keeps the plain order; the others break ties each in its own way. */
        uint64_t seed = i == 0 ? 0 : rng_mix(i);
        err = searcher_begin(&thread->searcher, e->job, &thread->env, seed);
        if (err == ERR_OK && e->transport != NULL) {
            struct remote_limit limit = {.until_us = e->deadline_us, .stop = &e->stop};
            remote_set_limit(thread->searcher.remote, &limit);
        }
    }
    return err;
}

static void search_all(struct engine *e)
{
    struct placement_thread started_as[EMBEDDED_SLOTS_MAX];
    unsigned started = 1;
    unsigned want = searching_threads(e);
    /* Before the others choose a place. */
    embedded_update_placement(&e->thread[0].searcher.local, clock_us());
    while (started < want && placement_create_thread(&started_as[started], started, search_thread,
                                                     &e->thread[started])) {
        started++;
    }
    search_thread(&e->thread[0]);
    atomic_store(&e->ended, true); /* limits met by one are met by all */
    mailboxes_wake(e->mailboxes);
    for (unsigned i = 1; i < started; i++) {
        pthread_join(started_as[i].thread, NULL);
    }
}

enum err engine_run(struct engine *e, struct job *job, const struct engine_observer *observer,
                    struct engine_result *out)
{
    struct searcher *first = &e->thread[0].searcher;
    const bool needs_peers = algorithm_needs_peers(job->algorithm);
    const bool is_posted =
        e->transport != NULL && job->algorithm->uses_shards && (e->has_letters || !needs_peers);
    job->id = clock_unique();
    if (job_copy(&e->own, job) != ERR_OK) {
        return ERR_NOMEM;
    }
    e->job = &e->own;
    e->last_iteration = job_last_iteration(job);
    e->best = (struct search_result){0};
    e->begin_us = clock_us();
    e->end_us = 0;
    e->next_progress_us = e->begin_us + PROGRESS_EVERY_US;
    e->said_root_move = 0;
    e->next_report_us = e->begin_us + REPORT_EVERY_US;
    e->deadline_us =
        job->time_ms == 0 ? 0 : e->begin_us + job->time_ms * UINT64_C(1000) - job->spare_us;
    atomic_store(&e->ended, false);
    front_core_begin(&e->front, job->id);
    e->said_refused = 0;
    enum err err = needs_peers ? mailboxes_begin(e->mailboxes, job->id, !is_posted) : ERR_OK;
    observer_begin(e->observer, observer);
    engine_idle(e, 0); /* what came while nothing ran */
    if (err == ERR_OK) {
        err = prepare_threads(e);
    }
    if (err == ERR_OK && is_posted) {
        err = job_client_post(first->jobs, job);
    }
    if (err == ERR_OK) {
        if (job->time_ms == 0 || job->time_ms >= SHORT_MS) {
            mailboxes_await_first(e->mailboxes);
        }
        search_all(e);
        mailboxes_end(e->mailboxes);
        CHECK(embedded_inflight(e->table) == 0);
        e->end_us = clock_us();
        if (is_posted) { /* the workers' last figures, if they come soon */
            job_client_stop(first->jobs, job->id);
            front_core_await(&e->front, first,
                             job->at_once        ? 0
                             : job->time_ms != 0 ? FRONT_WAIT_TIMED_MS
                                                 : FRONT_WAIT_MS);
            engine_take_events(e);
        }
    } else {
        mailboxes_end(e->mailboxes);
    }
    while (!observer_end(e->observer, OBSERVER_WAIT_MS)) {
        engine_idle(e, 0);
    }
    if (err == ERR_OK) {
        *out = (struct engine_result){.search = e->best, .stopped = atomic_load(&e->stop)};
        fill_status(e, &out->status);
        out->host = e->host;
        out->hosts = fill_hosts(e);
    }
    job_free(&e->own);
    e->job = NULL;
    atomic_store_explicit(&e->workers, 0, memory_order_relaxed);
    return err;
}

/* ---- single nodes, after a run ---- */

static bool poll_subtree(void *self, struct search *search)
{
    struct engine_thread *thread = self;
    searcher_serve(&thread->searcher, search, clock_us());
    engine_take_events(thread->engine);
    return atomic_load_explicit(&thread->engine->stop, memory_order_relaxed);
}

enum err engine_subtrees_begin(struct engine *e, const struct job *job)
{
    struct engine_thread *first = e->thread;
    const struct env_port env = {.self = first, .poll = poll_subtree};
    enum err err = searcher_begin(&first->searcher, job, &env, 0);
    if (err == ERR_OK && e->transport != NULL) {
        const struct remote_limit limit = {.stop = &e->stop};
        remote_set_limit(first->searcher.remote, &limit);
    }
    return err;
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
