#include "worker/lab/world.h"

#include "common/rng.h"
#include "proto/alias.h"

#include <stdlib.h>
#include <string.h>

enum {
    STACK_BYTES = 1 << 20, /* mapped; only what is touched costs */
    IDLE_MS = 100,
    CLIENT_TICKETS = 48,
    PEER_WAIT_NS = 1000000,
};

/* ---- what it counted ---- */

static void add(const struct lab_worker *w, const struct counters *c)
{
    const struct lab_options *o = &w->lab->options;
    counters_add(&w->lab->result.sum, c);
    if (o->contribution != NULL) {
        counters_add(&o->contribution[lab_place_of(w->lab, w->index) / o->threads], c);
    }
}

/* ---- time ---- */

static uint64_t nodes_of(const struct lab_worker *w)
{
    bool any = w->searcher != NULL && w->searcher->search != NULL;
    return any ? search_counters(w->searcher->search)->nodes : 0;
}

/* Each search counts from 0: what the one before has counted is what the searcher published. */
uint64_t lab_worker_ns(struct lab_worker *w)
{
    uint64_t nodes = nodes_of(w);
    if (nodes < w->base_nodes) {
        const struct counters before = searcher_figures(w->searcher).now;
        add(w, &before);
        w->base_nodes = 0;
    }
    uint64_t search_ns = (nodes - w->base_nodes) * w->lab->options.node_ns;
    bool is_bounded = search_ns > w->lab->poll_ns && w->searcher->game->solves != NULL;
    return w->base_ns + (is_bounded ? w->lab->poll_ns : search_ns);
}

/* For the messages of results that it took, and the operations in all messages, since the last
 * call. */
static void charge(struct lab_worker *w)
{
    const struct lab_options *o = &w->lab->options;
    if (w->searcher == NULL) {
        return;
    }
    const struct client_counters *n = client_counters(remote_client(w->searcher->remote));
    uint64_t operations = n->asks + n->peeks + n->stores + n->shared + n->shared_taken;
    w->base_ns += (operations - w->charged) * o->operation_ns +
                  (n->shares_taken - w->charged_messages) * (o->message_ns / 2);
    w->charged = operations;
    w->charged_messages = n->shares_taken;
}

void lab_worker_rebase(struct lab_worker *w, uint64_t now_ns)
{
    w->base_nodes = nodes_of(w);
    w->base_ns = now_ns;
}

void lab_worker_wake_at(struct lab_worker *w, uint64_t time_ns)
{
    lab_heap_push(&w->lab->heap,
                  (struct lab_event){
                      .time_ns = time_ns, .kind = LAB_WAKE, .who = w->index, .epoch = ++w->epoch});
}

void lab_worker_catch_up(struct lab_worker *w)
{
    uint64_t own = lab_worker_ns(w);
    if (own > w->lab->now_ns) {
        lab_worker_wake_at(w, own);
        fiber_yield();
    }
    lab_worker_rebase(w, w->lab->now_ns);
}

void lab_worker_sleep(struct lab_worker *w, uint64_t until_ns)
{
    w->sleeping = true;
    lab_worker_wake_at(w, until_ns);
    fiber_yield();
    w->sleeping = false;
    lab_worker_rebase(w, w->lab->now_ns);
}

/* ---- the lane of its remote table ---- */

/* What the clock of its host shows. */
static uint64_t shell_now(void *self)
{
    struct lab_worker *w = self;
    return lab_us(w->lab, w->index, lab_worker_ns(w));
}

/* As with TCP it does not learn of a loss. */
static bool shell_send(void *self, unsigned shard, const uint8_t *bytes, size_t length)
{
    struct lab_worker *w = self;
    if (!w->alive) {
        return false;
    }
    w->base_ns += w->lab->options.message_ns;
    (void)lab_send(w->lab, w->index, w->incarnation, shard, LAB_TO_SHARDS, lab_worker_ns(w), bytes,
                   length);
    return true;
}

static bool shell_receive(void *self, struct client *client)
{
    struct lab_worker *w = self;
    if (!w->is_reading) {
        lab_worker_catch_up(w);
    }
    free(w->packet);
    struct lab_packet *packet = w->packet = lab_queue_take(&w->inbox);
    w->is_reading = packet != NULL;
    if (packet == NULL) {
        charge(w);
        return false;
    }
    client_receive(client, packet->from, packet->bytes, packet->length,
                   lab_us(w->lab, w->index, w->lab->now_ns));
    return true;
}

static void shell_sleep(void *self, uint64_t until_us)
{
    struct lab_worker *w = self;
    const uint64_t until_ns = until_us > UINT64_MAX / 2000 ? UINT64_MAX / 2 : until_us * 1000;
    lab_worker_catch_up(w);
    if (w->inbox.first == NULL && until_ns > w->lab->now_ns) {
        lab_worker_sleep(w, until_ns);
    }
}

static bool shell_pass(void *self)
{
    struct lab_worker *w = self;
    lab_worker_catch_up(w);
    if (w->lab->now_ns < w->serve_due_ns) {
        return true;
    }
    w->serve_due_ns = w->lab->now_ns + w->lab->options.poll_ns;
    return false;
}

void lab_worker_wake(struct lab_worker *w)
{
    const struct lab_hooks *hooks = w->lab->options.hooks;
    if (hooks->resume != NULL) {
        hooks->resume(w);
    } else {
        fiber_resume(w->fiber);
    }
}

void lab_worker_receive(struct lab_worker *w, struct lab_packet *packet, bool is_letter)
{
    if (!w->alive || packet->epoch != w->incarnation) {
        free(packet);
        return;
    }
    if (!is_letter) {
        CHECK(packet->number > w->last_in[packet->from]);
        w->last_in[packet->from] = packet->number;
    }
    lab_queue_put(is_letter ? &w->letters : &w->inbox, packet);
    if (w->sleeping) {
        w->epoch++; /* its own alarm is off */
        lab_worker_wake(w);
    }
}

/* ---- its peer port ---- */

static void peer_send(void *self, unsigned to, const struct peer_message *m)
{
    struct lab_worker *w = self;
    if (lab_host_of(w->lab, to) != w->host) {
        w->base_ns += w->lab->options.message_ns;
    }
    lab_send_to_peer(w->lab, w->index, to, lab_worker_ns(w), m, peer_message_size(m));
}

static bool peer_receive(void *self, struct peer_message *out)
{
    struct lab_worker *w = self;
    lab_worker_catch_up(w);
    struct lab_packet *packet = lab_queue_take(&w->letters);
    if (packet == NULL) {
        return false;
    }
    memcpy(out, packet->bytes, packet->length);
    free(packet);
    return true;
}

static void peer_wait(void *self)
{
    struct lab_worker *w = self;
    lab_worker_catch_up(w);
    if (w->letters.first == NULL) { /* whatever else may have come: the next poll sees to it */
        const uint64_t began_ns = w->lab->now_ns;
        lab_worker_sleep(w, began_ns + PEER_WAIT_NS);
        w->lab->result.idle_ns += w->lab->now_ns - began_ns;
    }
}

static struct peer_port peer_port_of(struct lab_worker *w, bool owns_root)
{
    return (struct peer_port){.self = w,
                              .peers = &w->peers,
                              .address = w->index + 1,
                              .secret = rng_mix((uint64_t)w->incarnation << 32 | w->index),
                              .index = w->index,
                              .count = w->lab->machines,
                              .owns_root = owns_root,
                              .send = peer_send,
                              .receive = peer_receive,
                              .wait = peer_wait,
                              .now_us = shell_now};
}

/* ---- its life ---- */

/* When it is killed, at the end of the cluster at the latest. */
static void collect(struct lab_worker *w)
{
    struct lab_result *r = &w->lab->result;
    const struct client_counters *n = client_counters(remote_client(w->searcher->remote));
    if (w->searcher->search != NULL) {
        (void)lab_worker_ns(w); /* the search before, if this one has just begun */
        const struct counters c = searcher_counters(w->searcher);
        add(w, &c);
    }
    r->asks += n->asks;
    r->peeks += n->peeks;
    r->stores += n->stores;
    r->shared += n->shared;
    r->shared_taken += n->shared_taken;
    r->downs += n->downs;
    r->timeouts += n->timeouts;
}

static void run(void *context)
{
    struct lab_worker *w = context;
    w->run(w);
}

static void run_worker(struct lab_worker *w)
{
    worker_connect(w->worker, w->lab->options.connect_ms);
    worker_run(w->worker);
    for (;;) { /* halted: its session lives on */
        remote_wait(w->searcher->remote, IDLE_MS);
    }
}

/* The first of a host's threads opens its table, the last one closes it. */
static enum err join_host(struct lab_worker *w, uint64_t seed)
{
    const struct lab_options *o = &w->lab->options;
    struct lab_host *host = lab_host_of(w->lab, w->index);
    if (host->users == 0) {
        enum err err = embedded_open(&host->table, o->local_bytes, o->threads);
        if (err != ERR_OK) {
            return err;
        }
        embedded_set_table_id(host->table, rng_mix(seed) | 1); /* repeatable; 0 is none */
    }
    host->users++;
    w->host = host;
    return ERR_OK;
}

static enum err open_parts(struct lab_worker *w)
{
    struct lab *lab = w->lab;
    const struct lab_options *o = &lab->options;
    uint64_t seed = rng_mix(o->seed ^ (uint64_t)w->index << 32 ^ w->incarnation);
    w->alias = proto_alias(seed | 1);
    struct lane lane = {.self = w,
                        .now = shell_now,
                        .send = shell_send,
                        .receive = shell_receive,
                        .sleep = shell_sleep,
                        .pass = o->threads > 1 ? shell_pass : NULL,
                        .shares_reach_all = true,
                        .ask_cost_us = (uint32_t)(o->message_ns * 2 / 1000)};
    enum err err = o->hooks->equip != NULL ? o->hooks->equip(w, &lane) : ERR_OK;
    if (err == ERR_OK && w->index >= lab->machines) {
        return fiber_open(&w->fiber, STACK_BYTES, run, w);
    }
    err = err ? err : join_host(w, seed);
    err = err ? err : algorithms_open_work(&w->peers);
    if (err != ERR_OK) {
        return err;
    }
    struct worker_options options = {
        .searcher = {.table = w->host->table,
                     .index = lab_place_of(lab, w->index) % o->threads,
                     .neighbours = o->threads,
                     .lane = &lane,
                     .client = {.shards = o->shards,
                                .instance = seed | 1,
                                .name = "lab",
                                .decoder = lab->decoder,
                                .tickets = CLIENT_TICKETS,
                                .rto_min_us = o->rto_min_us,
                                .rto_max_us = o->rto_max_us,
                                .probe_us = o->probe_us,
                                .jobs = LAB_POSTS_MAX + 1},
                     .share_depth = o->share_depth,
                     .is_fiber = true,
                     .poll_nodes = lab->poll_nodes},
        .patience = lab->patience,
        .seed = o->seed,
        .stop = &lab->halt,
        .peers = peer_port_of(w, false),
    };
    if (lab_is_front(w)) {
        w->front.peers = peer_port_of(w, true);
        w->run = lab_front_run;
        err = lab_front_open(w, &options.searcher);
    } else {
        w->run = run_worker;
        err = worker_open(&w->worker, &options);
        w->searcher = err == ERR_OK ? worker_searcher(w->worker) : NULL;
    }
    return err == ERR_OK ? fiber_open(&w->fiber, STACK_BYTES, run, w) : err;
}

enum err lab_worker_start(struct lab *lab, unsigned index)
{
    struct lab_worker *w = &lab->worker[index];
    *w = (struct lab_worker){
        .lab = lab,
        .index = index,
        .incarnation = w->incarnation + 1,
        .epoch = w->epoch,
        .base_ns = lab->now_ns,
    };
    const enum err err = open_parts(w);
    w->alive = err == ERR_OK;
    return err;
}

void lab_worker_kill(struct lab_worker *w)
{
    bool was_alive = w->alive;
    if (was_alive && w->searcher != NULL) {
        collect(w);
    }
    w->alive = false; /* from here on it sends nothing, not even BYE */
    w->epoch++;
    fiber_free(&w->fiber);
    worker_close(&w->worker);
    lab_front_close(&w->front);
    algorithms_close_work(&w->peers);
    if (w->host != NULL && --w->host->users == 0) {
        embedded_close(&w->host->table);
    }
    w->host = NULL;
    w->searcher = NULL;
    lab_queue_free(&w->inbox);
    lab_queue_free(&w->letters);
    free(w->packet);
    w->packet = NULL;
    w->front.searching = false;
    if (was_alive && lab_is_front(w)) {
        lab_fronts_check(w->lab);
    }
}
