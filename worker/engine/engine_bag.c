#include "worker/engine/engine_bag.h"

#include "common/clock.h"
#include "common/placement.h"
#include "common/rng.h"
#include "worker/engine/bag_letter.h"
#include "worker/engine/engine_state.h"
#include "worker/engine/line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PROGRESS_EVERY_US = 1000000,
    REPORT_EVERY_US = 250000,
    JOIN_EVERY_US = 100000,
    JOIN_SOON_EVERY_US = 10000, /* at first, for ... */
    JOIN_SOON_US = 200000,
    JOIN_EACH_US = 1000, /* more for each worker: the list grows with them */
    TICK_EVERY_US = 50000,
    IDLE_WAIT_MS = 1, /* letters come meanwhile */
    CALLER_WAIT_MS = 100,
    BARRED_MAX = 8, /* workers that are barred, of whom nobody was told yet; more are not named */
};

struct bag_answer {
    bool is_here;
    uint64_t address; /* of the worker that found it; 0: a thread of this process */
    struct search_result result;
    struct search_counters counters;
    uint64_t own_nodes, time_us;
};

/* Why a worker is given nothing more. */
struct bag_barred {
    uint64_t address;
    uint32_t item;
    const char *why;
};

struct bag_run;

struct bag_thread {
    struct bag_run *run;
    struct engine_thread *thread;
    unsigned index;
    struct env_port env;
    struct job job; /* under way */
    uint64_t deadline_us;
    struct searcher_totals before; /* the run */
    atomic_bool leave; /* nobody wants its position any more */
    bool has_begun; /* a position of this run */
};

struct bag_run {
    /* fixed */
    struct engine *e;
    const struct engine_bag *bag;
    struct job job; /* that is posted; its position is of the first */
    struct bag_thread *thread;
    uint32_t room; /* answers */
    /* of the first thread */
    uint64_t join_due_us, tick_due_us, report_due_us;
    unsigned peers;
    void *seen; /* a position of the game's, to look at what workers say */
    /* of the caller */
    uint32_t said; /* answers, in order */
    /* under the lock */
    pthread_mutex_t lock;
    pthread_cond_t changed; /* an answer came, or a position may be taken */
    struct bag_core core;
    bool is_due; /* workers that sent no letter may be owed positions */
    struct bag_answer *answer; /* a ring of `room`: of those that are not said */
    struct bag_barred barred[BARRED_MAX];
    unsigned barreds;
    enum err err; /* a thread could not go on */
};

/* ---- answers ---- */

static struct bag_answer *answer_of(const struct bag_run *r, uint32_t item)
{
    return &r->answer[item % r->room];
}

static bool is_stopped(const struct bag_run *r)
{
    return atomic_load_explicit(&r->e->stop, memory_order_relaxed);
}

/* The caller holds the lock. Nodes of threads that search it as well. */
static uint64_t own_nodes(const struct bag_run *r, unsigned except, uint32_t item)
{
    uint64_t nodes = 0;
    for (unsigned i = 0; i < r->core.locals; i++) {
        const struct bag_searcher *s = &r->core.searcher[i];
        if (i != except && s->count > 0 && s->assigned[0].item == item) {
            nodes += searcher_figures(&r->thread[i].thread->searcher).sum.nodes;
        }
    }
    return nodes;
}

/* The caller holds the lock. */
static void accept_found(struct bag_run *r, unsigned searcher, const struct bag_found *found,
                         uint64_t now_us)
{
    uint64_t others;
    if (found->item >= r->core.items) {
        return;
    }
    const uint64_t begun_us = r->core.item[found->item].begun_us;
    const unsigned sharers = bag_core_sharers(&r->core, found->item);
    const uint64_t own = own_nodes(r, searcher, found->item);
    if (!bag_core_done(&r->core, searcher, found->item, now_us, &others)) {
        return;
    }
    struct bag_answer *a = answer_of(r, found->item);
    const bool is_own = searcher < r->core.locals;
    *a = (struct bag_answer){.is_here = true,
                             .address = is_own ? 0 : r->core.searcher[searcher].address,
                             .result = found->result,
                             .counters = found->counters,
                             .time_us = found->time_us,
                             .own_nodes = own + (is_own ? found->counters.nodes : 0)};
    a->counters.nodes += own + others;
    if (sharers > 1 && begun_us != 0 && now_us - begun_us > a->time_us) {
        a->time_us = now_us - begun_us; /* others had begun it */
    }
    pthread_cond_broadcast(&r->changed);
}

/* What a worker says is true as far as can be seen: a move and a line that may be played, and a
 * score that the game has; then NULL is returned, else what is wrong. The line is cut where it may
 * not be played. */
static const char *fault_of(const struct bag_run *r, struct bag_found *found)
{
    struct job job = *r->bag->common;
    struct game_move list[GAME_MOVES_MAX];
    char text[GAME_TEXT_MAX], why[128];
    struct search_result *result = &found->result;
    const struct game *game = job.game;
    if (found->is_refused) {
        return "cannot search it";
    }
    job.position = r->seen;
    memset(r->seen, 0, game->position_size);
    r->bag->position(r->bag->self, found->item, text);
    const enum err err = game->parse(job.position, text, why, sizeof why);
    CHECK_THAT(err == ERR_OK, "a position is as its game writes it");
    const bool is_over = game->generate(job.position, list) == 0;
    if (result->depth < job_last_iteration(&job) && job.time_ms == 0) {
        return "answered with less depth than was asked for";
    }
    if (result->score > game->score_max || result->score < -game->score_max) {
        return "answered with a score that the game does not have";
    }
    if ((result->move == 0) != is_over ||
        (!is_over && !game_is_legal(game, job.position, result->move))) {
        return "answered with a move that is not legal";
    }
    unsigned made = 0;
    for (; made < result->pv.length && game_is_legal(game, job.position, result->pv.move[made]);
         made++) {
        game->make(job.position, result->pv.move[made]);
    }
    result->pv.length = (uint16_t)made;
    return NULL;
}

/* ---- letters: by the first thread, which holds the lock ---- */

static void send_letter(struct bag_run *r, unsigned searcher, const struct bag_letter *letter)
{
    uint8_t body[PROTO_BODY_MAX];
    struct remote *remote = r->e->thread[0].searcher.remote;
    const size_t length = bag_letter_write(letter, body);
    CHECK_THAT(length > 0, "a letter of a bag fits");
    client_mail(remote_client(remote), r->job.id, r->core.searcher[searcher].address, body, length,
                remote_now_us(remote));
}

static void send_work(struct bag_run *r, unsigned searcher, uint64_t now_us)
{
    uint32_t item;
    struct bag_letter letter = {.kind = BAG_WORK};
    size_t used = 3; /* bytes of kind and counts */
    while ((item = bag_core_take(&r->core, searcher, now_us)) != BAG_NONE) {
        char text[GAME_TEXT_MAX];
        r->bag->position(r->bag->self, item, text);
        if (used + 5 + strlen(text) > PROTO_BODY_MAX) {
            send_letter(r, searcher, &letter);
            letter.count = 0;
            used = 3;
        }
        letter.is_shared = bag_core_sharers(&r->core, item) > 1;
        letter.item[letter.count] = item;
        snprintf(letter.text[letter.count++], sizeof letter.text[0], "%s", text);
        used += 5 + strlen(text);
    }
    if (letter.count > 0) {
        send_letter(r, searcher, &letter);
    }
}

static void bar(struct bag_run *r, unsigned searcher, uint32_t item, const char *why,
                uint64_t now_us)
{
    if (r->barreds < BARRED_MAX) {
        r->barred[r->barreds++] =
            (struct bag_barred){r->core.searcher[searcher].address, item, why};
    }
    bag_core_bar(&r->core, searcher, now_us);
}

static void read_letters(struct bag_run *r, uint64_t now_us)
{
    struct bag_letter letter;
    uint64_t from;
    while (bag_inbox_next(r->e->inbox, &letter, &from)) {
        const unsigned i = bag_core_receive(&r->core, from, now_us);
        if (i == BAG_NONE || r->core.searcher[i].is_barred ||
            (letter.kind != BAG_HAS && letter.kind != BAG_FOUND)) {
            continue;
        }
        if (letter.kind == BAG_FOUND && letter.found.item < r->core.items &&
            !r->core.item[letter.found.item].is_done) {
            const char *fault = fault_of(r, &letter.found);
            if (fault == NULL) {
                accept_found(r, i, &letter.found, now_us);
            } else {
                bar(r, i, letter.found.item, fault, now_us);
            }
        }
        bag_core_has(&r->core, i, letter.item, letter.count, letter.nodes, now_us);
        send_work(r, i, now_us);
    }
}

static void send_drops(struct bag_run *r)
{
    struct bag_drop drop;
    while (bag_core_drop(&r->core, &drop)) {
        if (drop.searcher < r->core.locals) {
            struct bag_thread *t = &r->thread[drop.searcher];
            if (r->core.searcher[drop.searcher].count == 0) { /* else it has another by now */
                atomic_store(&t->leave, true);
                atomic_store_explicit(t->env.until_poll, 1, memory_order_release);
            }
        } else {
            const struct bag_letter letter = {.kind = BAG_DROP, .count = 1, .item = {drop.item}};
            send_letter(r, drop.searcher, &letter);
        }
    }
}

static void greet_workers(struct bag_run *r, uint64_t now_us)
{
    uint64_t peer[BAG_PEERS_MAX];
    struct remote *remote = r->e->thread[0].searcher.remote;
    if (now_us >= r->join_due_us) {
        r->join_due_us =
            now_us + r->peers * (uint64_t)JOIN_EACH_US +
            (now_us < r->e->begin_us + JOIN_SOON_US ? JOIN_SOON_EVERY_US : JOIN_EVERY_US);
        (void)client_mail_join(remote_client(remote), r->job.id, true, remote_now_us(remote));
    }
    const unsigned peers = bag_inbox_peers(r->e->inbox, peer);
    r->peers = peers > 0 ? peers : r->peers;
    for (unsigned i = 0; i < peers; i++) {
        (void)bag_core_present(&r->core, peer[i], now_us);
        r->is_due = true;
    }
}

static void fill_status(struct bag_run *r, uint64_t now_us, struct engine_status *out);

/* For who watches the cluster (engine.c: report). */
static void report(struct bag_run *r, uint64_t now_us)
{
    struct engine *e = r->e;
    struct engine_status status;
    if (now_us < r->report_due_us) {
        return;
    }
    r->report_due_us = now_us + REPORT_EVERY_US;
    fill_status(r, now_us, &status);
    const struct proto_job_report all = engine_report_of(r->job.id, &status);
    job_client_report(e->thread[0].searcher.jobs, &all);
}

/* By the first thread, at polls and while it has nothing to search. */
static void serve_workers(struct bag_run *r, uint64_t now_us)
{
    if (r->e->transport == NULL) {
        return;
    }
    engine_take_events(r->e);
    if (r->e->inbox == NULL) {
        return;
    }
    pthread_mutex_lock(&r->lock);
    greet_workers(r, now_us);
    read_letters(r, now_us);
    if (now_us >= r->tick_due_us) {
        r->tick_due_us = now_us + TICK_EVERY_US;
        bag_core_tick(&r->core, now_us);
        r->is_due = true;
    }
    for (unsigned i = r->core.locals; r->is_due && i < r->core.searchers; i++) {
        send_work(r, i, now_us);
    }
    r->is_due = false;
    send_drops(r);
    report(r, now_us);
    pthread_mutex_unlock(&r->lock);
}

/* ---- a thread ---- */

static bool poll_thread(void *self, struct search *search)
{
    struct bag_thread *t = self;
    struct bag_run *r = t->run;
    const uint64_t now_us = clock_us();
    searcher_serve(&t->thread->searcher, search, now_us);
    if (t->index == 0) {
        serve_workers(r, now_us);
    }
    if (atomic_load_explicit(&t->leave, memory_order_relaxed)) {
        return true;
    }
    /* Within a limit of time the first iteration is finished; after a stop nothing is wanted. */
    return is_stopped(r) ||
           (t->deadline_us != 0 && now_us >= t->deadline_us && search_iteration(search) > 1);
}

static void wait_for_change(struct bag_run *r, unsigned ms)
{
    (void)clock_wait(&r->changed, &r->lock, clock_us() + ms * UINT64_C(1000));
}

/* The next position for that thread; BAG_NONE: there will be none. `is_shared`: others search it.
 */
static uint32_t take_item(struct bag_thread *t, bool *is_shared)
{
    struct bag_run *r = t->run;
    uint32_t item = BAG_NONE;
    pthread_mutex_lock(&r->lock);
    while (!is_stopped(r) && r->err == ERR_OK && !bag_core_is_done(&r->core)) {
        atomic_store(&t->leave, false); /* of an earlier position */
        item = bag_core_take(&r->core, t->index, clock_us());
        if (item != BAG_NONE) {
            break;
        }
        if (t->index == 0 && r->e->transport != NULL) {
            pthread_mutex_unlock(&r->lock);
            remote_wait(t->thread->searcher.remote, IDLE_WAIT_MS);
            serve_workers(r, clock_us());
            pthread_mutex_lock(&r->lock);
        } else {
            wait_for_change(r, IDLE_WAIT_MS);
        }
    }
    *is_shared = item != BAG_NONE && bag_core_sharers(&r->core, item) > 1;
    pthread_mutex_unlock(&r->lock);
    return item;
}

static enum err search_item(struct bag_thread *t, uint32_t item, bool is_shared)
{
    struct bag_run *r = t->run;
    struct searcher *searcher = &t->thread->searcher;
    struct bag_found found = {.item = item};
    char text[GAME_TEXT_MAX], why[128];
    const uint64_t begin_us = clock_us();
    t->job = *r->bag->common;
    t->job.position = NULL;
    r->bag->position(r->bag->self, item, text);
    enum err err = job_set_position(&t->job, t->job.game, text, why, sizeof why);
    if (err != ERR_OK) {
        return err;
    }
    t->job.id = r->job.id;
    t->job.is_next = t->has_begun;
    t->job.alone_ms = is_shared ? 0 : BAG_ALONE_MS;
    t->deadline_us = t->job.time_ms == 0 ? 0 : begin_us + t->job.time_ms * UINT64_C(1000);
    err = searcher_begin(searcher, &t->job, &t->env, is_shared ? rng_mix(t->index + 1) : 0);
    if (err == ERR_OK) {
        t->has_begun = true;
        if (r->e->transport != NULL) {
            const struct remote_limit limit = {.until_us = t->deadline_us, .stop = &r->e->stop};
            remote_set_limit(searcher->remote, &limit);
        }
        search_run(searcher->search, NULL, NULL, &found.result);
        found.counters = *search_counters(searcher->search);
        searcher_end(searcher);
        searcher_extend_line(searcher, &t->job, &found.result.pv, found.result.depth);
    }
    const uint64_t now_us = clock_us();
    const bool is_over = err == ERR_OK && (found.result.depth >= job_last_iteration(&t->job) ||
                                           (t->deadline_us != 0 && now_us >= t->deadline_us));
    found.time_us = now_us - begin_us;
    pthread_mutex_lock(&r->lock);
    if (is_over) {
        accept_found(r, t->index, &found, now_us);
    }
    bag_core_return(&r->core, t->index, item, now_us);
    if (r->e->inbox == NULL) { /* else the first thread does, at its next poll */
        send_drops(r);
    }
    pthread_mutex_unlock(&r->lock);
    job_free(&t->job);
    return err;
}

static void *run_thread(void *context)
{
    struct bag_thread *t = context;
    struct bag_run *r = t->run;
    uint32_t item;
    bool is_shared;
    while ((item = take_item(t, &is_shared)) != BAG_NONE) {
        const enum err err = search_item(t, item, is_shared);
        if (err != ERR_OK) {
            pthread_mutex_lock(&r->lock);
            r->err = err;
            pthread_cond_broadcast(&r->changed);
            pthread_mutex_unlock(&r->lock);
        }
    }
    pthread_mutex_lock(&r->lock);
    for (unsigned i = 0; i < r->core.locals; i++) { /* all is done, or nothing more will be */
        atomic_store(&r->thread[i].leave, true);
    }
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

/* ---- what is said ---- */

/* Of all positions. */
static void fill_status(struct bag_run *r, uint64_t now_us, struct engine_status *out)
{
    struct engine *e = r->e;
    struct front_sum helped;
    pthread_mutex_lock(&e->lock);
    front_core_sum(&e->front, now_us, &helped);
    const unsigned refused = (unsigned)__builtin_popcountll(e->front.refused);
    pthread_mutex_unlock(&e->lock);
    struct engine_status s = {
        .time_us = now_us - e->begin_us,
        .all_us = (now_us - e->begin_us) * r->core.locals + helped.searched_us,
        .workers = helped.workers,
        .workers_refused = helped.refused,
        .shards = e->shards,
        .shards_up = atomic_load(&e->thread[0].searcher.shards_up),
        .refused = refused,
        .hash_permille = embedded_permille(e->table, r->job.namespace_id),
    };
    for (unsigned i = 0; i < r->core.locals; i++) {
        const struct searcher_totals now = searcher_totals(&r->thread[i].thread->searcher);
        const struct searcher_totals *before = &r->thread[i].before;
        s.own_nodes += now.sum.nodes - before->sum.nodes;
#define X(name, json, help) s.name += now.sum.name - before->sum.name;
        COUNTERS(X)
#undef X
        s.waited_us += now.waited_us - before->waited_us;
        s.bytes_sent += now.bytes_sent - before->bytes_sent;
        s.bytes +=
            now.bytes_sent - before->bytes_sent + now.bytes_received - before->bytes_received;
    }
#define X(name, json, help) s.name += helped.name;
    COUNTERS_REPORTED(X)
#undef X
    s.all_waited_us = s.waited_us + helped.waited_us;
    s.bytes_sent += helped.bytes_sent;
    s.bytes += helped.bytes_sent + helped.bytes_received;
    s.remote_depth = searcher_figures(&e->thread[0].searcher).remote_depth;
    atomic_store_explicit(&e->workers, s.workers, memory_order_relaxed);
    *out = s;
}

/* As the worker calls itself in its reports; `name` before the first of them. */
static void name_host(struct engine *e, uint64_t address, const char *name,
                      char out[CLIENT_NAME_MAX + 1])
{
    pthread_mutex_lock(&e->lock);
    for (unsigned i = 0; i < e->front.reports; i++) {
        if (e->front.report[i].last.instance == address) {
            name = e->front.report[i].name;
        }
    }
    snprintf(out, CLIENT_NAME_MAX + 1, "%s", name);
    pthread_mutex_unlock(&e->lock);
}

static void say_answer(struct bag_run *r, uint32_t item)
{
    struct engine *e = r->e;
    struct bag_answer *a = answer_of(r, item);
    struct job job = r->job;
    struct engine_result result = {.search = a->result};
    struct engine_status all;
    char text[GAME_TEXT_MAX], why[128];
    job.position = NULL;
    r->bag->position(r->bag->self, item, text);
    if (job_set_position(&job, job.game, text, why, sizeof why) != ERR_OK) {
        pthread_mutex_lock(&r->lock);
        r->err = ERR_NOMEM; /* it could be read before */
        pthread_mutex_unlock(&r->lock);
        return;
    }
    job.has_bag = false;
    line_finish(&job, e->table, 0, &result.search);
    pthread_mutex_lock(&r->lock);
    fill_status(r, clock_us(), &all);
    pthread_mutex_unlock(&r->lock);
    result.status = (struct engine_status){.time_us = a->time_us,
                                           .own_nodes = a->own_nodes,
                                           .all_us = a->time_us,
                                           .workers = all.workers,
                                           .workers_refused = all.workers_refused,
                                           .shards = all.shards,
                                           .shards_up = all.shards_up,
                                           .refused = all.refused,
                                           .remote_depth = all.remote_depth,
                                           .hash_permille = all.hash_permille,
                                           .depth = a->result.depth,
#define X(name, json, help) .name = a->counters.name,
                                           COUNTERS(X)
#undef X
    };
    e->host[0] = (struct front_host){.is_own = true,
                                     .searchers = r->core.locals,
                                     .nodes = a->own_nodes,
                                     .searched_us = a->time_us};
    memcpy(e->host[0].name, e->name, sizeof e->host[0].name);
    result.host = e->host;
    result.hosts = 1;
    if (a->address != 0) {
        e->host[1] = (struct front_host){
            .searchers = 1, .nodes = a->counters.nodes - a->own_nodes, .asks = a->counters.asks};
        name_host(e, a->address, "?", e->host[1].name);
        result.hosts = 2;
    }
    r->bag->done(r->bag->self, item, &job, &result);
    job_free(&job);
}

/* Its place is free. */
static void end_answer(struct bag_run *r, uint32_t item)
{
    pthread_mutex_lock(&r->lock);
    answer_of(r, item)->is_here = false;
    r->said = item + 1;
    bag_core_set_until(&r->core, r->said + r->room);
    pthread_mutex_unlock(&r->lock);
}

/* What is wrong with shards and workers. */
static void say_troubles(struct bag_run *r, const struct engine_status *status)
{
    struct engine *e = r->e;
    struct bag_barred barred[BARRED_MAX];
    char words[JOB_WHY_MAX], host[CLIENT_NAME_MAX + 1];
    unsigned shard, barreds;
    const char *why = NULL;
    for (bool is_changed = true; is_changed;) {
        pthread_mutex_lock(&e->lock);
        is_changed = engine_refusal(e, &shard, &why);
        snprintf(words, sizeof words, "%s", is_changed && why != NULL ? why : "");
        pthread_mutex_unlock(&e->lock);
        if (is_changed && r->bag->refused != NULL) {
            r->bag->refused(r->bag->self, shard, why != NULL ? words : NULL, status);
        }
    }
    pthread_mutex_lock(&r->lock);
    barreds = r->barreds;
    memcpy(barred, r->barred, sizeof barred);
    r->barreds = 0;
    pthread_mutex_unlock(&r->lock);
    for (unsigned i = 0; i < barreds && r->bag->barred != NULL; i++) {
        name_host(e, barred[i].address, "of unknown name", host);
        r->bag->barred(r->bag->self, barred[i].item, host, barred[i].why);
    }
}

static void fill_progress(struct bag_run *r, struct engine_bag_progress *out)
{
    pthread_mutex_lock(&r->lock);
    fill_status(r, clock_us(), &out->status);
    out->done = r->core.done;
    out->count = r->core.items;
    out->figures = r->core.figures;
    pthread_mutex_unlock(&r->lock);
}

/* Says answers in order as they come, until all are said or nothing searches any more. */
static void say_answers(struct bag_run *r)
{
    uint64_t progress_us = clock_us() + PROGRESS_EVERY_US;
    while (r->said < r->core.items) {
        const bool *is_here = &answer_of(r, r->said)->is_here;
        pthread_mutex_lock(&r->lock);
        const bool is_over = r->err != ERR_OK || is_stopped(r);
        if (!*is_here && !is_over) {
            wait_for_change(r, CALLER_WAIT_MS);
        }
        const bool is_next = *is_here;
        pthread_mutex_unlock(&r->lock);
        if (is_over && !is_next) {
            return;
        }
        if (is_next) {
            say_answer(r, r->said);
            end_answer(r, r->said);
        }
        if (clock_us() >= progress_us) {
            struct engine_bag_progress progress;
            progress_us = clock_us() + PROGRESS_EVERY_US;
            fill_progress(r, &progress);
            say_troubles(r, &progress.status);
            if (r->bag->progress != NULL) {
                r->bag->progress(r->bag->self, &progress);
            }
        }
    }
}

/* ---- a run ---- */

static enum err open_run(struct bag_run *r, struct engine *e, const struct engine_bag *bag)
{
    char text[GAME_TEXT_MAX], why[128];
    r->e = e;
    r->bag = bag;
    r->room = bag->count < ENGINE_BAG_ROOM ? bag->count : ENGINE_BAG_ROOM;
    pthread_mutex_init(&r->lock, NULL);
    clock_open_condition(&r->changed);
    r->answer = calloc(r->room, sizeof *r->answer);
    r->thread = calloc(e->options.threads, sizeof *r->thread);
    r->seen = calloc(1, bag->common->game->position_size);
    if (r->answer == NULL || r->thread == NULL || r->seen == NULL) {
        return ERR_NOMEM;
    }
    r->job = *bag->common;
    r->job.position = NULL;
    r->job.id = clock_unique();
    r->job.has_bag = true;
    bag->position(bag->self, 0, text);
    enum err err = job_set_position(&r->job, r->job.game, text, why, sizeof why);
    if (err == ERR_OK) {
        err = bag_core_open(&r->core, bag->count, e->options.threads);
    }
    if (err == ERR_OK) {
        bag_core_set_until(&r->core, r->room);
    }
    for (unsigned i = 0; i < e->options.threads && err == ERR_OK; i++) {
        struct bag_thread *t = &r->thread[i];
        *t = (struct bag_thread){.run = r, .thread = &e->thread[i], .index = i};
        t->before = searcher_totals(&e->thread[i].searcher);
        t->env = (struct env_port){.self = t,
                                   .poll = poll_thread,
                                   .until_poll = embedded_until_poll(&e->thread[i].searcher.local)};
    }
    return err;
}

static void close_run(struct bag_run *r)
{
    bag_core_close(&r->core);
    pthread_cond_destroy(&r->changed);
    pthread_mutex_destroy(&r->lock);
    job_free(&r->job);
    free(r->answer);
    free(r->thread);
    free(r->seen);
}

static void search_and_say(struct bag_run *r)
{
    struct engine *e = r->e;
    struct placement_thread started_as[EMBEDDED_SLOTS_MAX];
    unsigned started = 0;
    while (started < e->options.threads &&
           placement_create_thread(&started_as[started], started + 1, run_thread,
                                   &r->thread[started])) {
        started++;
    }
    if (started == 0) {
        r->err = ERR_FULL;
    }
    say_answers(r);
    for (unsigned i = 0; i < started; i++) {
        pthread_join(started_as[i].thread, NULL);
    }
}

enum err engine_run_bag(struct engine *e, const struct engine_bag *bag,
                        struct engine_bag_progress *total)
{
    struct bag_run r = {.err = ERR_OK};
    struct searcher *first = &e->thread[0].searcher;
    e->begin_us = clock_us();
    e->end_us = 0;
    e->said_refused = 0;
    enum err err = open_run(&r, e, bag);
    if (err != ERR_OK) {
        close_run(&r);
        return err;
    }
    front_core_begin(&e->front, r.job.id);
    engine_idle(e, 0); /* what came while nothing ran */
    if (e->inbox != NULL) {
        bag_inbox_begin(e->inbox, r.job.id);
        err = job_client_post(first->jobs, &r.job);
    }
    if (err == ERR_OK) {
        search_and_say(&r);
        err = r.err;
    }
    e->end_us = clock_us();
    if (e->inbox != NULL) {
        bag_inbox_begin(e->inbox, 0);
        (void)client_mail_join(remote_client(first->remote), r.job.id, false,
                               remote_now_us(first->remote));
        job_client_stop(first->jobs, r.job.id);
        front_core_await(&e->front, first, FRONT_WAIT_MS);
    }
    fill_progress(&r, total);
    say_troubles(&r, &total->status); /* of a run that was shorter than a second, say */
    total->status.time_us = e->end_us - e->begin_us;
    const uint32_t until = r.core.until;
    for (uint32_t i = r.said; is_stopped(&r) && i < until; i++) { /* beyond one that is not there */
        if (answer_of(&r, i)->is_here) {
            say_answer(&r, i);
        }
    }
    atomic_store_explicit(&e->workers, 0, memory_order_relaxed);
    close_run(&r);
    return err;
}
