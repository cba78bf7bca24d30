#include "worker/engine/engine_bag.h"

#include "common/clock.h"
#include "common/rng.h"
#include "worker/engine/engine_state.h"
#include "worker/engine/line.h"
#include "worker/engine/mailbox.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PROGRESS_EVERY_US = 1000000,
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
    uint64_t own_nodes;
    struct bag_found found;
};

/* Why a worker is given nothing more. */
struct bag_barred {
    uint64_t address;
    uint32_t item;
    const char *why;
};

struct bag_run {
    /* fixed */
    struct engine *e;
    const struct engine_bag *bag;
    struct job job; /* that is posted; its position is of the first */
    uint32_t room; /* answers */
    /* of the first thread */
    uint64_t join_due_us, tick_due_us;
    unsigned peers;
    void *seen; /* a position of the game's, to look at what workers say */
    /* of the caller */
    uint32_t said; /* answers, in order */
    /* under the engine's lock; `changed`: an answer came, or a position may be taken */
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
            nodes += searcher_figures(&r->e->thread[i].searcher).now.nodes;
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
    const unsigned sharers = r->core.item[found->item].sharers;
    const uint64_t own = own_nodes(r, searcher, found->item);
    if (!bag_core_done(&r->core, searcher, found->item, now_us, &others)) {
        return;
    }
    struct bag_answer *a = answer_of(r, found->item);
    CHECK_THAT(!a->is_here && found->item >= r->said && found->item - r->said < r->room,
               "an answer has a place until it is said");
    const bool is_own = searcher < r->core.locals;
    *a = (struct bag_answer){
        .is_here = true, .address = r->core.address[searcher], .own_nodes = own, .found = *found};
    a->own_nodes += is_own ? found->counters.nodes : 0;
    a->found.counters.nodes += own + others;
    if (sharers > 1 && begun_us != 0 && now_us - begun_us > a->found.time_us) {
        a->found.time_us = now_us - begun_us; /* others had begun it */
    }
    pthread_cond_broadcast(&r->e->changed);
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
    result->pv.length = (uint16_t)job_make_line(&job, &result->pv, result->pv.length);
    return NULL;
}

/* ---- letters: by the first thread, which holds the lock ---- */

static void send_letter(struct bag_run *r, unsigned searcher, const struct bag_letter *letter)
{
    mailbox_send(r->e->thread[0].searcher.remote, r->job.id, r->core.address[searcher], letter);
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
        letter.is_shared = r->core.item[item].sharers > 1;
        letter.item[letter.count] = item;
        snprintf(letter.text[letter.count++], sizeof letter.text[0], "%s", text);
        used += 5 + strlen(text);
    }
    if (letter.count > 0) {
        send_letter(r, searcher, &letter);
    }
}

static void take_letter(struct bag_run *r, uint64_t from, struct bag_letter *letter,
                        uint64_t now_us)
{
    const unsigned i = bag_core_receive(&r->core, from, now_us);
    if (i == BAG_NONE || r->core.searcher[i].is_barred ||
        (letter->kind != BAG_HAS && letter->kind != BAG_FOUND)) {
        return;
    }
    if (letter->kind == BAG_FOUND && letter->found.item < r->core.items &&
        !r->core.item[letter->found.item].is_done) {
        const char *fault = fault_of(r, &letter->found);
        if (fault == NULL) {
            accept_found(r, i, &letter->found, now_us);
        } else {
            if (r->barreds < BARRED_MAX) {
                r->barred[r->barreds++] = (struct bag_barred){from, letter->found.item, fault};
            }
            bag_core_bar(&r->core, i, now_us);
        }
    }
    bag_core_has(&r->core, i, letter->item, letter->count, letter->nodes, now_us);
    send_work(r, i, now_us);
}

/* While messages are read. */
static void take_event(void *run, const struct client_event *event)
{
    struct bag_run *r = run;
    struct bag_letter letter;
    const uint64_t now_us = clock_us();
    if (is_stopped(r) || r->err != ERR_OK) { /* nothing more is given */
        return;
    }
    if (event->kind == CLIENT_CORRESPONDENTS && event->correspondents->job == r->job.id) {
        const struct proto_correspondents *list = &event->correspondents->list;
        for (uint32_t i = 0; i < list->count; i++) {
            (void)bag_core_present(&r->core, list->at[i].alias, now_us);
        }
        r->peers = list->count;
        r->is_due = true;
    } else if (event->kind == CLIENT_MAIL && event->mail->job == r->job.id &&
               bag_letter_read(event->mail->body.at, event->mail->body.length, &letter)) {
        take_letter(r, event->mail->from, &letter, now_us);
    }
}

/* Tells who has what nobody wants from it any more. */
static void send_surplus(struct bag_run *r)
{
    unsigned i;
    while ((i = bag_core_next_surplus(&r->core)) != BAG_NONE) {
        const struct bag_searcher *s = &r->core.searcher[i];
        if (i >= r->core.locals) {
            struct bag_letter letter = {.kind = BAG_KEEP, .count = s->count};
            for (unsigned k = 0; k < s->count; k++) {
                letter.item[k] = s->assigned[k].item;
            }
            send_letter(r, i, &letter);
        } else if (s->count == 0) { /* else it has another by now */
            struct engine_thread *t = &r->e->thread[i];
            atomic_store(&t->leave, true);
            atomic_store_explicit(embedded_until_poll(&t->searcher.local), 1, memory_order_release);
        }
    }
}

/* By the first thread, at polls and while it has nothing to search. */
static void serve_workers(struct bag_run *r, uint64_t now_us)
{
    if (!r->e->is_posted) {
        return;
    }
    if (now_us >= r->join_due_us) {
        r->join_due_us =
            now_us + r->peers * (uint64_t)JOIN_EACH_US +
            (now_us < r->e->begin_us + JOIN_SOON_US ? JOIN_SOON_EVERY_US : JOIN_EVERY_US);
        mailbox_join(r->e->thread[0].searcher.remote, r->job.id, true);
    }
    pthread_mutex_lock(&r->e->lock);
    if (now_us >= r->tick_due_us) {
        r->tick_due_us = now_us + TICK_EVERY_US;
        bag_core_tick(&r->core, now_us);
        r->is_due = true;
    }
    for (unsigned i = r->core.locals; r->is_due && i < r->core.searchers; i++) {
        send_work(r, i, now_us);
    }
    r->is_due = false;
    send_surplus(r);
    pthread_mutex_unlock(&r->e->lock);
    engine_report(r->e, now_us, false);
}

/* ---- a thread ---- */

static bool poll_thread(void *self, struct search *search)
{
    struct engine_thread *t = self;
    struct bag_run *r = t->engine->run;
    const uint64_t now_us = clock_us();
    searcher_serve(&t->searcher, search, now_us);
    if (t == t->engine->thread) {
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
    (void)clock_wait(&r->e->changed, &r->e->lock, clock_us() + ms * UINT64_C(1000));
}

/* The next position for that thread; BAG_NONE: there will be none. `is_shared`: others search it.
 */
static uint32_t take_item(struct engine_thread *t, bool *is_shared)
{
    struct bag_run *r = t->engine->run;
    const unsigned index = t->searcher.index;
    uint32_t item = BAG_NONE;
    pthread_mutex_lock(&r->e->lock);
    while (!is_stopped(r) && r->err == ERR_OK && r->core.done < r->core.items) {
        atomic_store(&t->leave, false); /* of an earlier position */
        item = bag_core_take(&r->core, index, clock_us());
        if (item != BAG_NONE) {
            break;
        }
        if (index == 0 && r->e->lanes != NULL) {
            pthread_mutex_unlock(&r->e->lock);
            remote_wait(t->searcher.remote, IDLE_WAIT_MS);
            serve_workers(r, clock_us());
            pthread_mutex_lock(&r->e->lock);
        } else {
            wait_for_change(r, IDLE_WAIT_MS);
        }
    }
    *is_shared = item != BAG_NONE && r->core.item[item].sharers > 1;
    pthread_mutex_unlock(&r->e->lock);
    return item;
}

static enum err search_item(struct engine_thread *t, uint32_t item, bool is_shared)
{
    struct bag_run *r = t->engine->run;
    struct searcher *searcher = &t->searcher;
    struct bag_found found = {.item = item};
    char text[GAME_TEXT_MAX], why[128];
    const struct env_port env = {
        .self = t, .poll = poll_thread, .until_poll = embedded_until_poll(&searcher->local)};
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
    err = engine_begin_search(t, &t->job, &env, is_shared ? rng_mix(searcher->index + 1) : 0,
                              t->deadline_us);
    if (err == ERR_OK) {
        t->has_begun = true;
        search_run(searcher->search, NULL, NULL, &found.result);
        found.counters = *search_counters(searcher->search);
        searcher_end(searcher);
        searcher_extend_line(searcher, &t->job, &found.result.pv, found.result.depth);
    }
    const uint64_t now_us = clock_us();
    const bool is_over = err == ERR_OK && (found.result.depth >= job_last_iteration(&t->job) ||
                                           (t->deadline_us != 0 && now_us >= t->deadline_us));
    found.time_us = now_us - begin_us;
    pthread_mutex_lock(&r->e->lock);
    if (is_over) {
        accept_found(r, searcher->index, &found, now_us);
    }
    bag_core_return(&r->core, searcher->index, item, now_us);
    if (!r->e->is_posted) { /* else the first thread does, at its next poll */
        send_surplus(r);
    }
    pthread_mutex_unlock(&r->e->lock);
    job_free(&t->job);
    return err;
}

static void search_items(struct engine_thread *t)
{
    struct bag_run *r = t->engine->run;
    uint32_t item;
    bool is_shared;
    while ((item = take_item(t, &is_shared)) != BAG_NONE) {
        const enum err err = search_item(t, item, is_shared);
        if (err != ERR_OK) {
            pthread_mutex_lock(&r->e->lock);
            r->err = err;
            pthread_cond_broadcast(&r->e->changed);
            pthread_mutex_unlock(&r->e->lock);
        }
    }
    pthread_mutex_lock(&r->e->lock);
    for (unsigned i = 0; i < r->core.locals; i++) { /* all is done, or nothing more will be */
        atomic_store(&r->e->thread[i].leave, true);
    }
    pthread_cond_broadcast(&r->e->changed);
    pthread_mutex_unlock(&r->e->lock);
}

/* ---- what is said ---- */

/* As the worker calls itself in its reports; `name` before the first of them. */
static void name_host(struct engine *e, uint64_t address, const char *name,
                      char out[CLIENT_NAME_MAX + 1])
{
    for (unsigned i = 0; i < e->front.reports; i++) {
        if (e->front.report[i].last.instance == address) {
            name = e->front.report[i].name;
        }
    }
    snprintf(out, CLIENT_NAME_MAX + 1, "%s", name);
}

static void say_answer(struct bag_run *r, uint32_t item)
{
    struct engine *e = r->e;
    struct bag_answer *a = answer_of(r, item);
    struct job job = r->job;
    struct engine_result result = {.search = a->found.result, .host = e->host, .hosts = 1};
    struct engine_status *status = &result.status;
    char text[GAME_TEXT_MAX], why[128];
    job.position = NULL;
    r->bag->position(r->bag->self, item, text);
    if (job_set_position(&job, job.game, text, why, sizeof why) != ERR_OK) {
        pthread_mutex_lock(&r->e->lock);
        r->err = ERR_NOMEM; /* it could be read before */
        pthread_mutex_unlock(&r->e->lock);
        return;
    }
    job.has_bag = false;
    struct line_limit limit = {.nodes = LINE_NODES, .stop = &e->stop};
    (void)line_finish(&job, e->table, &limit, &result.search);
    pthread_mutex_lock(&e->lock);
    engine_fill_status(e, status);
    if (a->address != 0) {
        e->host[1] = (struct front_host){.searchers = 1,
                                         .sum = {.nodes = a->found.counters.nodes - a->own_nodes,
                                                 .asks = a->found.counters.asks}};
        name_host(e, a->address, "?", e->host[1].name);
        result.hosts = 2;
    }
    pthread_mutex_unlock(&e->lock);
    status->time_us = status->all_us = a->found.time_us;
    status->own = (struct counters){.nodes = a->own_nodes};
    status->sum = a->found.counters;
    status->depth = a->found.result.depth;
    e->host[0] = (struct front_host){.is_own = true,
                                     .searchers = r->core.locals,
                                     .sum = status->own,
                                     .searched_us = a->found.time_us};
    memcpy(e->host[0].name, e->name, sizeof e->host[0].name);
    r->bag->done(r->bag->self, item, &job, &result);
    job_free(&job);
}

/* What is wrong with shards and workers. */
static void say_troubles(struct bag_run *r)
{
    struct engine *e = r->e;
    char host[CLIENT_NAME_MAX + 1];
    pthread_mutex_lock(&e->lock);
    while (engine_has_refusal(e)) {
        engine_report_refusal(e, r->bag->refused, r->bag->self);
    }
    while (r->barreds > 0) {
        const struct bag_barred barred = r->barred[0];
        r->barreds--;
        memmove(&r->barred[0], &r->barred[1], r->barreds * sizeof r->barred[0]);
        name_host(e, barred.address, "of unknown name", host);
        pthread_mutex_unlock(&e->lock);
        if (r->bag->barred != NULL) {
            r->bag->barred(r->bag->self, barred.item, host, barred.why);
        }
        pthread_mutex_lock(&e->lock);
    }
    pthread_mutex_unlock(&e->lock);
}

static void fill_progress(struct bag_run *r, struct engine_bag_progress *out)
{
    pthread_mutex_lock(&r->e->lock);
    engine_fill_status(r->e, &out->status);
    out->done = r->core.done;
    out->count = r->core.items;
    out->figures = r->core.figures;
    pthread_mutex_unlock(&r->e->lock);
}

/* Says answers in order as they come, until all are said or nothing searches any more. */
static void say_answers(struct engine *e, void *self)
{
    struct bag_run *r = self;
    uint64_t progress_us = clock_us() + PROGRESS_EVERY_US;
    while (r->said < r->core.items) {
        const bool *is_here = &answer_of(r, r->said)->is_here;
        pthread_mutex_lock(&e->lock);
        const bool is_over = r->err != ERR_OK || is_stopped(r);
        if (!*is_here && !is_over) {
            wait_for_change(r, CALLER_WAIT_MS);
        }
        const bool is_next = *is_here;
        pthread_mutex_unlock(&e->lock);
        if (is_over && !is_next) {
            return;
        }
        if (is_next) {
            CHECK_THAT(r->core.item[r->said].is_done, "what is said is done");
            say_answer(r, r->said);
            pthread_mutex_lock(&e->lock);
            answer_of(r, r->said++)->is_here = false; /* its place is free */
            bag_core_set_until(&r->core, r->said + r->room);
            pthread_mutex_unlock(&e->lock);
        }
        if (clock_us() >= progress_us) {
            struct engine_bag_progress progress;
            progress_us = clock_us() + PROGRESS_EVERY_US;
            fill_progress(r, &progress);
            say_troubles(r);
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
    r->answer = calloc(r->room, sizeof *r->answer);
    r->seen = calloc(1, bag->common->game->position_size);
    if (r->answer == NULL || r->seen == NULL) {
        return ERR_NOMEM;
    }
    r->job = *bag->common;
    r->job.position = NULL;
    r->job.id = clock_unique();
    r->job.has_bag = true;
    bag->position(bag->self, 0, text);
    enum err err = job_set_position(&r->job, r->job.game, text, why, sizeof why);
    err = err ? err : bag_core_open(&r->core, bag->count, e->options.threads);
    if (err == ERR_OK) {
        bag_core_set_until(&r->core, r->room);
    }
    for (unsigned i = 0; i < e->options.threads; i++) {
        e->thread[i].has_begun = false;
    }
    return err;
}

static void close_run(struct bag_run *r)
{
    bag_core_close(&r->core);
    job_free(&r->job);
    free(r->answer);
    free(r->seen);
}

enum err engine_run_bag(struct engine *e, const struct engine_bag *bag,
                        struct engine_bag_progress *total)
{
    struct bag_run r = {.err = ERR_OK};
    enum err err = open_run(&r, e, bag);
    if (err != ERR_OK) {
        close_run(&r);
        return err;
    }
    struct searcher *first = &e->thread[0].searcher;
    engine_begin(e, &r.job, e->options.threads, e->has_letters);
    e->run = &r;
    e->event = take_event;
    if (e->is_posted) {
        err = searcher_post(first, &r.job);
    }
    if (err == ERR_OK && !engine_search(e, search_items, say_answers, &r)) {
        r.err = ERR_FULL; /* of threads, of which the first would have stopped the job */
        if (e->is_posted) {
            searcher_stop(first, r.job.id);
        }
    }
    err = err == ERR_OK ? r.err : err;
    if (e->is_posted) {
        mailbox_join(first->remote, r.job.id, false);
        front_core_await(&e->front, first, FRONT_WAIT_MS);
    }
    fill_progress(&r, total);
    say_troubles(&r); /* of a run that was shorter than a second, say */
    const uint32_t until = r.core.until;
    for (uint32_t i = r.said; is_stopped(&r) && i < until; i++) { /* beyond one that is not there */
        if (answer_of(&r, i)->is_here) {
            say_answer(&r, i);
        }
    }
    engine_end(e);
    e->run = NULL;
    close_run(&r);
    return err;
}
