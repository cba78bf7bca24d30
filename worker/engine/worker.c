#include "worker/engine/worker.h"

#include "worker/engine/mailbox.h"

#include "common/log.h"
#include "common/memory.h"
#include "common/rng.h"

#include <stdlib.h>
#include <string.h>

enum {
    IDLE_WAIT_MS = 50,
    WHY_MAX = 128,
    REFUSED_EVERY_US = 1000000,
    SAY_EVERY_US = 1000000,
    BAG_SAY_EVERY_US = 200000, /* what it has, of a bag */
    BAG_WAIT_MS = 2, /* for letters, while it has nothing */
};
_Static_assert((int)WORKER_LINE_BYTES <= (int)PROTO_TEXT_MAX, "a report has room for a line");

static const char program[] = "ttworker";

/* What a worker has of a bag of positions (bag_core.h). */
struct worker_bag {
    struct mail_join join;
    uint64_t front; /* address of who gave the last positions; 0: nobody did */
    uint64_t say_due_us;
    struct bag_letter has; /* positions; the first is searched, or will be */
    uint64_t deadline_us; /* of the first; 0: none */
    bool is_searching;
    bool is_dropped; /* the first, while it is searched */
    bool leaves; /* the job is another's, or over */
    struct counters counters; /* of the positions before */
};

struct worker {
    /* fixed after open */
    struct searcher searcher;
    uint64_t seed;
    const atomic_bool *stop;
    worker_sources_changed *sources_changed; /* NULL: nobody is told */
    void *sources_self;
    struct peer_port peers; /* zeroes: none */
    struct mailboxes *mailboxes; /* NULL: shards pass on no letters */
    /* state */
    struct worker_core core;
    struct worker_bag bag;
    struct job job; /* being searched, with ... */
    struct search_result result; /* ... its last finished iteration */
    unsigned line_depth; /* the iteration that `line` is of */
    char line[WORKER_LINE_BYTES];
    uint64_t refused_us; /* no line about a refused job until then */
    uint64_t said_up; /* the core's `up` as was said */
    uint64_t say_us; /* nothing is said of sources until then */
};

static uint64_t now_us(const struct worker *w)
{
    return remote_now_us(w->searcher.remote);
}

/* Not often: a source may come and go as it likes. */
static void say_sources(struct worker *w)
{
    uint64_t changed = w->core.up ^ w->said_up;
    if (w->sources_changed == NULL || changed == 0 || now_us(w) < w->say_us) {
        return;
    }
    w->say_us = now_us(w) + SAY_EVERY_US;
    w->said_up = w->core.up;
    w->sources_changed(w->sources_self, changed, w->core.up);
}

static void act(struct worker *w, const struct worker_actions *actions)
{
    for (unsigned i = 0; i < actions->reports; i++) {
        searcher_report(&w->searcher, &actions->report[i]);
    }
    if (actions->refresh) {
        remote_refresh(w->searcher.remote);
    }
}

/* ---- searching ---- */

static struct worker_progress progress_of(struct worker *w)
{
    if (w->line_depth != w->result.depth) {
        struct search_line line = w->result.pv;
        searcher_extend_line(&w->searcher, &w->job, &line, w->result.depth);
        w->line_depth = w->result.depth;
        job_line_text(&w->job, &line, w->line, sizeof w->line);
    }
    return (struct worker_progress){
        .counters = searcher_counters(&w->searcher), .result = &w->result, .line = w->line};
}

static bool poll_worker(void *self, struct search *search)
{
    struct worker *w = self;
    struct worker_actions actions;
    if (remote_pass(w->searcher.remote)) {
        return false;
    }
    searcher_serve(&w->searcher, search, now_us(w));
    say_sources(w);
    struct worker_progress progress = progress_of(w);
    CHECK_THAT(w->core.running.job == w->job.id, "the job that is searched is the core's");
    worker_core_poll(&w->core, &progress, now_us(w), &actions);
    act(w, &actions);
    return actions.leave || atomic_load_explicit(w->stop, memory_order_relaxed);
}

/* Anybody may post jobs that make no sense: their number does not fill the log. */
static void refuse(struct worker *w, struct worker_job_name job, const char *why)
{
    struct worker_actions actions;
    if (!w->searcher.is_fiber && now_us(w) >= w->refused_us) {
        w->refused_us = now_us(w) + REFUSED_EVERY_US;
        log_line(program, "job refused: %s", why);
    }
    worker_core_refuse(&w->core, job, why, &actions);
    act(w, &actions);
}

/* ---- a bag of positions ---- */

static void send_bag_letter(struct worker *w, struct bag_letter *letter)
{
    struct worker_bag *bag = &w->bag;
    letter->count = bag->has.count;
    memcpy(letter->item, bag->has.item, sizeof letter->item);
    bag->say_due_us = now_us(w) + BAG_SAY_EVERY_US;
    if (bag->front != 0) {
        mailbox_send(w->searcher.remote, w->job.id, bag->front, letter);
    }
}

static void remove_item(struct bag_letter *has, unsigned at)
{
    CHECK_THAT(at < has->count && has->count <= BAG_ASSIGNED_MAX, "a position that goes was here");
    has->count--;
    memmove(&has->item[at], &has->item[at + 1], (has->count - at) * sizeof has->item[0]);
    memmove(&has->text[at], &has->text[at + 1], (has->count - at) * sizeof has->text[0]);
}

static void on_bag_letter(struct worker *w, uint64_t from, const struct bag_letter *letter)
{
    struct worker_bag *bag = &w->bag;
    struct bag_letter *has = &bag->has;
    if (letter->kind == BAG_WORK && has->count == 0) { /* its address may be another now */
        bag->front = from;
    }
    if (from != bag->front) {
        return;
    }
    for (unsigned i = 0; letter->kind == BAG_WORK && i < letter->count; i++) {
        if (has->count < BAG_ASSIGNED_MAX &&
            !bag_is_listed(has->item, has->count, letter->item[i])) {
            has->is_shared = letter->is_shared; /* what is shared comes alone */
            has->item[has->count] = letter->item[i];
            memcpy(has->text[has->count++], letter->text[i], sizeof has->text[0]);
        }
    }
    for (unsigned at = has->count; letter->kind == BAG_KEEP && at-- > 0;) {
        if (bag_is_listed(letter->item, letter->count, has->item[at])) {
            continue;
        }
        if (at == 0 && bag->is_searching) {
            bag->is_dropped = true; /* its search ends, and then removes it */
        } else {
            remove_item(has, at);
        }
    }
    mail_join_after(&bag->join, MAIL_JOIN_LONGEST_MS, now_us(w));
}

static struct worker_progress bag_progress(const struct worker *w)
{
    static const struct search_result none;
    struct worker_progress progress = {.counters = w->bag.counters, .result = &none, .line = ""};
    if (w->bag.is_searching) {
        const struct counters now = searcher_counters(&w->searcher);
        counters_add(&progress.counters, &now);
    }
    return progress;
}

/* Letters, reports, and whether the job goes on. */
static void serve_bag(struct worker *w)
{
    struct worker_bag *bag = &w->bag;
    struct worker_actions actions;
    say_sources(w);
    if (mail_join_is_due(&bag->join, now_us(w))) {
        mailbox_join(w->searcher.remote, w->job.id, true);
    }
    if (now_us(w) >= bag->say_due_us) {
        struct bag_letter letter = {.kind = BAG_HAS};
        letter.nodes = bag->is_searching ? search_counters(w->searcher.search)->nodes : 0;
        send_bag_letter(w, &letter);
    }
    const struct worker_progress progress = bag_progress(w);
    CHECK_THAT(w->core.running.job == w->job.id, "the bag that is searched is the core's job");
    worker_core_poll(&w->core, &progress, now_us(w), &actions);
    act(w, &actions);
    bag->leaves = actions.leave || atomic_load_explicit(w->stop, memory_order_relaxed);
}

static bool poll_bag(void *self, struct search *search)
{
    struct worker *w = self;
    struct worker_bag *bag = &w->bag;
    if (remote_pass(w->searcher.remote)) {
        return false;
    }
    searcher_serve(&w->searcher, search, now_us(w));
    serve_bag(w);
    return bag->leaves || bag->is_dropped ||
           (bag->deadline_us != 0 && now_us(w) >= bag->deadline_us && search_iteration(search) > 1);
}

/* Searches the first position, and answers. */
static void search_item(struct worker *w, const struct env_port *env)
{
    struct worker_bag *bag = &w->bag;
    struct bag_letter letter = {.kind = BAG_FOUND, .found = {.item = bag->has.item[0]}};
    struct bag_found *found = &letter.found;
    char why[WHY_MAX];
    const uint64_t begin_us = now_us(w);
    bag->is_searching = true;
    bag->is_dropped = false;
    bag->deadline_us = w->job.time_ms == 0 ? 0 : begin_us + w->job.time_ms * UINT64_C(1000);
    enum err err = job_set_position(&w->job, w->job.game, bag->has.text[0], why, sizeof why);
    w->job.is_next = true; /* search_bag said HELLO */
    w->job.alone_ms = bag->has.is_shared ? 0 : BAG_ALONE_MS;
    err = err ? err : searcher_begin(&w->searcher, &w->job, env, bag->has.is_shared ? w->seed : 0);
    found->is_refused = err != ERR_OK;
    if (err == ERR_OK) {
        search_run(w->searcher.search, NULL, NULL, &found->result);
        searcher_end(&w->searcher);
        found->counters = *search_counters(w->searcher.search);
        searcher_extend_line(&w->searcher, &w->job, &found->result.pv, found->result.depth);
        bag->counters = bag_progress(w).counters;
    }
    bag->is_searching = false;
    found->time_us = now_us(w) - begin_us;
    remove_item(&bag->has, 0);
    const bool is_over = found->result.depth >= job_last_iteration(&w->job) ||
                         (bag->deadline_us != 0 && now_us(w) >= bag->deadline_us);
    if (found->is_refused || is_over) {
        send_bag_letter(w, &letter);
    } else {
        bag->say_due_us = 0; /* that it has it no more */
    }
    if (bag->has.count == 0) {
        mail_join_after(&bag->join, MAIL_JOIN_AWAIT_MS, now_us(w));
    }
}

/* Until the job is over, or another one is this worker's. */
static void search_bag(struct worker *w, struct worker_job_name name)
{
    struct worker_actions actions;
    struct worker_bag *bag = &w->bag;
    const struct env_port env = {
        .self = w, .poll = poll_bag, .until_poll = embedded_until_poll(&w->searcher.local)};
    *bag = (struct worker_bag){.front = 0};
    mail_join_begin(&bag->join);
    remote_hello(w->searcher.remote, w->job.namespace_id);
    worker_core_begin(&w->core, name, 0, now_us(w));
    for (serve_bag(w); !bag->leaves; serve_bag(w)) {
        if (bag->has.count > 0) {
            search_item(w, &env);
            remote_wait(w->searcher.remote, 0);
        } else {
            remote_wait(w->searcher.remote, BAG_WAIT_MS);
        }
    }
    struct bag_letter none = {.kind = BAG_HAS};
    bag->has.count = 0;
    send_bag_letter(w, &none); /* others take what it had */
    mailbox_join(w->searcher.remote, w->job.id, false);
    const struct worker_progress progress = bag_progress(w);
    worker_core_end(&w->core, &progress, false, &actions);
    act(w, &actions);
}

static void search_job(struct worker *w, const struct job_offer *offer)
{
    struct worker_actions actions;
    struct env_port env = {
        .self = w, .poll = poll_worker, .until_poll = embedded_until_poll(&w->searcher.local)};
    struct peer_port peers = w->peers;
    char why[WHY_MAX];
    const struct worker_job_name name = {offer->wire.job, offer->wire.user};

    enum err err = job_from_offer(offer, &w->job, why, sizeof why);
    if (err != ERR_OK) {
        refuse(w, name, why);
        return;
    }
    if (w->job.has_bag) {
        if (w->mailboxes == NULL) {
            refuse(w, name, "it is a bag of positions, which come in letters");
        } else {
            search_bag(w, name);
        }
        job_free(&w->job);
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
    err = err ? err : searcher_begin(&w->searcher, &w->job, &env, w->seed);
    if (err == ERR_OK) {
        worker_core_begin(&w->core, name, w->job.time_ms, now_us(w));
        w->line_depth = 0;
        w->line[0] = '\0';
        search_run(w->searcher.search, NULL, NULL, &w->result);
        searcher_end(&w->searcher);
        struct worker_progress progress = progress_of(w);
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
    w->said_up = w->core.up; /* who connects knows what is up at first */
    while (!atomic_load(w->stop)) {
        say_sources(w);
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

/* While messages are read: in the middle of nodes, too. */
static void on_event(void *self, const struct client_event *event)
{
    struct worker *w = self;
    struct bag_letter letter;
    if (event->kind == CLIENT_JOB && job_is_for_engines(event->job)) {
        return;
    }
    worker_core_event(&w->core, event,
                      client_shard(remote_client(w->searcher.remote), event->shard).boot,
                      now_us(w));
    if (w->mailboxes != NULL) {
        mailboxes_event(w->mailboxes, 0, event);
    }
    if (event->kind == CLIENT_SHARD_UP || event->kind == CLIENT_SHARD_DOWN) {
        mail_join_begin(&w->bag.join);
    } else if (event->kind == CLIENT_MAIL && w->job.has_bag &&
               event->mail->job == w->core.running.job &&
               bag_letter_read(event->mail->body.at, event->mail->body.length, &letter)) {
        on_bag_letter(w, event->mail->from, &letter);
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
    searcher.events = (struct remote_events){w, on_event};
    enum err err = options->has_letters ? mailboxes_open(&w->mailboxes, 1, false) : ERR_OK;
    err = err ? err : searcher_open(&w->searcher, &searcher);
    if (err == ERR_OK && w->mailboxes != NULL) {
        mailboxes_connect(w->mailboxes, 0, w->searcher.remote, instance);
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
