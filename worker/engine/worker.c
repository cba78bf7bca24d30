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
    struct bag_inbox *inbox; /* NULL: no letters are passed on, or there was no bag so far */
    uint64_t front; /* address of who gave the last positions; 0: nobody did */
    uint64_t say_due_us;
    unsigned count; /* positions; the first is searched, or will be */
    uint32_t item[BAG_ASSIGNED_MAX];
    bool is_shared[BAG_ASSIGNED_MAX];
    char text[BAG_ASSIGNED_MAX][GAME_TEXT_MAX];
    uint64_t deadline_us; /* of the first; 0: none */
    bool is_dropped; /* the first, while it is searched */
    bool leaves; /* the job is another's, or over */
    /* of the positions before */
    struct search_counters counters;
    struct searcher_talk talk;
};

struct worker {
    /* fixed after open */
    struct searcher searcher;
    uint64_t seed;
    const atomic_bool *stop;
    worker_sources_changed *sources_changed; /* NULL: nobody is told */
    void *sources_self;
    struct peer_port peers; /* zeroes: none */
    struct mailboxes *mailboxes; /* NULL: none */
    bool has_letters; /* shards pass them on */
    /* state */
    struct worker_core core;
    struct worker_bag bag;
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

/* ---- a bag of positions ---- */

static void send_bag_letter(struct worker *w, struct bag_letter *letter)
{
    uint8_t body[PROTO_BODY_MAX];
    struct worker_bag *bag = &w->bag;
    letter->count = bag->count;
    memcpy(letter->item, bag->item, sizeof letter->item);
    bag->say_due_us = now_us(w) + BAG_SAY_EVERY_US;
    if (bag->front != 0) {
        client_mail(remote_client(w->searcher.remote), w->job.id, bag->front, body,
                    bag_letter_write(letter, body), now_us(w));
    }
}

static void remove_item(struct worker_bag *bag, unsigned at)
{
    bag->count--;
    for (unsigned i = at; i < bag->count; i++) {
        bag->item[i] = bag->item[i + 1];
        bag->is_shared[i] = bag->is_shared[i + 1];
        memcpy(bag->text[i], bag->text[i + 1], sizeof bag->text[i]);
    }
}

/* The first is left by its search, which then removes it. */
static void drop_item(struct worker_bag *bag, uint32_t item, bool is_searching)
{
    for (unsigned i = 0; i < bag->count; i++) {
        if (bag->item[i] == item && i == 0 && is_searching) {
            bag->is_dropped = true;
        } else if (bag->item[i] == item) {
            remove_item(bag, i);
            return;
        }
    }
}

static void add_item(struct worker_bag *bag, const struct bag_letter *letter, unsigned i)
{
    unsigned at = 0;
    while (at < bag->count && bag->item[at] != letter->item[i]) {
        at++;
    }
    if (at == bag->count && at < BAG_ASSIGNED_MAX) {
        bag->item[at] = letter->item[i];
        bag->is_shared[at] = letter->is_shared;
        memcpy(bag->text[at], letter->text[i], sizeof bag->text[at]);
        bag->count++;
    }
}

static void read_bag_letters(struct worker *w, bool is_searching)
{
    struct worker_bag *bag = &w->bag;
    struct bag_letter letter;
    uint64_t from;
    while (bag_inbox_next(bag->inbox, &letter, &from)) {
        if (letter.kind == BAG_WORK) {
            if (bag->count == 0 && !is_searching) { /* the front-end's address may be another now */
                bag->front = from;
            }
            for (unsigned i = 0; i < letter.count && from == bag->front; i++) {
                add_item(bag, &letter, i);
            }
        } else if (letter.kind == BAG_DROP && from == bag->front) {
            for (unsigned i = 0; i < letter.count; i++) {
                drop_item(bag, letter.item[i], is_searching);
            }
        }
        if (from == bag->front) {
            bag_inbox_answered(bag->inbox, now_us(w));
        }
    }
}

static struct worker_progress bag_progress(struct worker *w, const struct search *search,
                                           struct search_counters *sum)
{
    static const struct search_result none;
    struct worker_bag *bag = &w->bag;
    *sum = bag->counters;
    struct searcher_talk talk = bag->talk;
    if (search != NULL) {
        const struct search_counters *c = search_counters(search);
        const struct searcher_talk now = searcher_talk(&w->searcher);
#define X(name, json, help) sum->name += c->name;
        COUNTERS(X)
#undef X
#define X(name) talk.name += now.name;
        COUNTERS_OF_TALK(X)
#undef X
    }
    return (struct worker_progress){.counters = sum,
#define X(name) .name = talk.name,
                                    COUNTERS_OF_TALK(X)
#undef X
                                        .result = &none,
                                    .line = ""};
}

/* Letters, reports, and whether the job goes on; `search` is NULL between positions. */
static void serve_bag(struct worker *w, const struct search *search)
{
    struct worker_bag *bag = &w->bag;
    struct worker_actions actions;
    struct search_counters sum;
    take_events(w);
    if (bag_inbox_join_is_due(bag->inbox, now_us(w))) {
        (void)client_mail_join(remote_client(w->searcher.remote), w->job.id, true, now_us(w));
    }
    read_bag_letters(w, search != NULL);
    if (now_us(w) >= bag->say_due_us) {
        struct bag_letter letter = {.kind = BAG_HAS,
                                    .nodes = search != NULL ? search_counters(search)->nodes : 0};
        send_bag_letter(w, &letter);
    }
    const struct worker_progress progress = bag_progress(w, search, &sum);
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
    serve_bag(w, search);
    return bag->leaves || bag->is_dropped ||
           (bag->deadline_us != 0 && now_us(w) >= bag->deadline_us && search_iteration(search) > 1);
}

/* Searches the first position, and answers. */
static void search_item(struct worker *w, const struct env_port *env)
{
    struct worker_bag *bag = &w->bag;
    struct bag_letter letter = {.kind = BAG_FOUND, .found = {.item = bag->item[0]}};
    struct bag_found *found = &letter.found;
    char why[WHY_MAX];
    const uint64_t begin_us = now_us(w);
    bag->is_dropped = false;
    bag->deadline_us = w->job.time_ms == 0 ? 0 : begin_us + w->job.time_ms * UINT64_C(1000);
    enum err err = job_set_position(&w->job, w->job.game, bag->text[0], why, sizeof why);
    w->job.is_next = true; /* search_bag said HELLO */
    w->job.alone_ms = bag->is_shared[0] ? 0 : BAG_ALONE_MS;
    if (err == ERR_OK) {
        err = searcher_begin(&w->searcher, &w->job, env, bag->is_shared[0] ? w->seed : 0);
    }
    found->is_refused = err != ERR_OK;
    if (err == ERR_OK) {
        search_run(w->searcher.search, NULL, NULL, &found->result);
        searcher_end(&w->searcher);
        found->counters = *search_counters(w->searcher.search);
        searcher_extend_line(&w->searcher, &w->job, &found->result.pv, found->result.depth);
        struct search_counters sum;
        const struct worker_progress p = bag_progress(w, w->searcher.search, &sum);
        bag->counters = sum;
#define X(name) bag->talk.name = p.name;
        COUNTERS_OF_TALK(X)
#undef X
    }
    found->time_us = now_us(w) - begin_us;
    remove_item(bag, 0);
    const bool is_over = found->result.depth >= job_last_iteration(&w->job) ||
                         (bag->deadline_us != 0 && now_us(w) >= bag->deadline_us);
    if (found->is_refused || is_over) {
        send_bag_letter(w, &letter);
    } else {
        bag->say_due_us = 0; /* that it has it no more */
    }
    if (bag->count == 0) {
        bag_inbox_await(bag->inbox, now_us(w));
    }
}

static enum err begin_bag(struct worker *w)
{
    struct bag_inbox *inbox = w->bag.inbox;
    enum err err = inbox != NULL ? ERR_OK : bag_inbox_open(&inbox);
    w->bag = (struct worker_bag){.inbox = inbox};
    if (err == ERR_OK) {
        w->searcher.bag = inbox;
        bag_inbox_begin(inbox, w->job.id);
    }
    return err;
}

/* Until the job is over, or another one is this worker's. */
static void search_bag(struct worker *w, struct worker_choice name)
{
    struct worker_actions actions;
    struct worker_bag *bag = &w->bag;
    struct search_counters sum;
    const struct env_port env = {
        .self = w, .poll = poll_bag, .until_poll = embedded_until_poll(&w->searcher.local)};
    remote_hello(w->searcher.remote, w->job.namespace_id);
    worker_core_begin(&w->core, name, 0, now_us(w));
    for (serve_bag(w, NULL); !bag->leaves; serve_bag(w, NULL)) {
        if (bag->count > 0) {
            search_item(w, &env);
            remote_wait(w->searcher.remote, 0);
        } else {
            remote_wait(w->searcher.remote, BAG_WAIT_MS);
        }
    }
    struct bag_letter none = {.kind = BAG_HAS};
    bag->count = 0;
    send_bag_letter(w, &none); /* others take what it had */
    bag_inbox_begin(bag->inbox, 0);
    (void)client_mail_join(remote_client(w->searcher.remote), w->job.id, false, now_us(w));
    const struct worker_progress progress = bag_progress(w, NULL, &sum);
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
    struct proto_job wire = job_offer_wire(offer);
    struct worker_choice name = {wire.job, wire.user};

    enum err err = job_from_wire(&wire, &w->job, why, sizeof why);
    if (err != ERR_OK) {
        refuse(w, name, why);
        return;
    }
    if (w->job.has_bag) {
        if (!w->has_letters || begin_bag(w) != ERR_OK) {
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
    w->has_letters = options->has_letters;
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
        bag_inbox_close(&(*worker)->bag.inbox);
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
