#include "worker/lab/lab_worker.h"

#include "common/rng.h"
#include "proto/alias.h"
#include "worker/lab/lab_dealer.h"
#include "worker/lab/lab_front.h"
#include "worker/lab/lab_link.h"
#include "worker/lab/lab_shard.h"
#include "worker/lab/lab_watcher.h"

#include <stdlib.h>
#include <string.h>

enum {
    STACK_BYTES = 1 << 20, /* mapped; only what is touched costs */
    IDLE_MS = 100,
    CLIENT_TICKETS = 48,
    PEER_WAIT_NS = 1000000,
};

/* ---- what it counted ---- */

static void add(struct search_counters *sum, const struct search_counters *c)
{
#define X(name, json, help) sum->name += c->name;
    COUNTERS(X)
#undef X
}

static void add_to_host(const struct lab_worker *w, const struct search_counters *c,
                        const struct searcher_talk *talk)
{
    const struct lab_options *o = &w->lab->options;
    if (o->contribution != NULL) {
        struct lab_contribution *host =
            &o->contribution[lab_place_of(w->lab, w->index) / o->threads];
        host->nodes += c->nodes;
        host->asks += c->asks;
#define X(name) host->name += talk->name;
        COUNTERS_OF_TALK(X)
#undef X
    }
}

/* ---- want of memory ---- */

/* The first front-end is never the victim. */
static struct lab_want *want_of(const struct lab_worker *w)
{
    return w->lab->ended || w->index == 0 ? NULL : &w->lab->want;
}

/* ---- time ---- */

static uint64_t nodes_of(const struct lab_worker *w)
{
    bool any = w->searcher != NULL && w->searcher->search != NULL;
    return any ? search_counters(w->searcher->search)->nodes : 0;
}

/* Each search counts from 0: what the one before has counted is what the searcher published. */
static uint64_t local_ns(struct lab_worker *w)
{
    uint64_t nodes = nodes_of(w);
    if (nodes < w->base_nodes) {
        struct searcher_figures figures = searcher_figures(w->searcher);
        add(&w->lab->result.sum, &figures.sum);
        add_to_host(w, &figures.sum, &figures.talk);
        w->lab->result.waited_ns += figures.talk.waited_us * 1000;
        w->base_nodes = 0;
    }
    uint64_t search_ns = (nodes - w->base_nodes) * w->lab->node_ns;
    bool is_bounded = search_ns > w->lab->poll_ns && w->searcher->game->solves != NULL;
    return w->base_ns + (is_bounded ? w->lab->poll_ns : search_ns);
}

/* For the messages of results that it took, and the operations in all messages, since the last
 * call. */
static void charge(struct lab_worker *w)
{
    const struct lab_options *o = &w->lab->options;
    if (w->watcher != NULL) {
        return;
    }
    const struct client_counters *n = client_counters(remote_client(w->searcher->remote));
    uint64_t operations = n->asks + n->peeks + n->stores + n->shared + n->shared_taken;
    w->base_ns += (operations - w->charged) * o->operation_ns +
                  (n->shares_taken - w->charged_messages) * (o->message_ns / 2);
    w->charged = operations;
    w->charged_messages = n->shares_taken;
}

static void rebase(struct lab_worker *w, uint64_t now_ns)
{
    w->base_nodes = nodes_of(w);
    w->base_ns = now_ns;
}

/* An alarm set earlier is off. */
static void wake_at(struct lab_worker *w, uint64_t time_ns)
{
    struct lab_want *outer = lab_want_set(NULL);
    lab_heap_push(&w->lab->heap,
                  (struct lab_event){
                      .time_ns = time_ns, .kind = LAB_WAKE, .who = w->index, .epoch = ++w->epoch});
    (void)lab_want_set(outer);
}

/* Lets everything that is earlier than this worker's own time happen. */
static void catch_up(struct lab_worker *w)
{
    uint64_t own = local_ns(w);
    if (own > w->lab->now_ns) {
        wake_at(w, own);
        fiber_yield();
    }
    rebase(w, w->lab->now_ns);
}

/* ---- the shell of its remote table ---- */

/* What the clock of its host shows. */
static uint64_t shell_now(void *self)
{
    struct lab_worker *w = self;
    return lab_clock_us(&lab_host_of(w->lab, w->index)->clock, local_ns(w));
}

/* Over a simulated connection: what it does not take is lost, and the sender knows. */
static bool send_wired(struct lab_worker *w, unsigned shard, const uint8_t *bytes, size_t length)
{
    bool sent = lab_shard_overhear(w->lab, w->index, bytes, length) ||
                lab_dealer_send(w, shard, local_ns(w), bytes, length);
    w->lossy |= sent ? 0 : UINT64_C(1) << shard;
    return sent;
}

static bool shell_send(void *self, unsigned shard, const uint8_t *bytes, size_t length)
{
    struct lab_worker *w = self;
    if (!w->alive) {
        return false;
    }
    struct lab_want *outer = lab_want_set(NULL);
    w->base_ns += w->lab->options.message_ns;
    bool is_taken = true; /* as with TCP the sender does not learn of a loss */
    if (w->lab->net != NULL) {
        is_taken = send_wired(w, shard, bytes, length);
    } else if (!lab_send(w->lab, w->index, w->incarnation, shard, LAB_TO_SHARDS, local_ns(w), bytes,
                         length)) {
        w->lossy |= UINT64_C(1) << shard;
    }
    (void)lab_want_set(outer);
    return is_taken;
}

static bool shell_receive(void *self, struct client *client)
{
    struct lab_worker *w = self;
    if (!w->is_reading) {
        catch_up(w);
    }
    lab_packets_free(&w->packet);
    struct lab_packet *packet = w->inbox;
    w->is_reading = packet != NULL;
    if (packet == NULL) {
        charge(w);
        return false;
    }
    w->inbox = packet->next;
    if (w->inbox == NULL) {
        w->inbox_end = &w->inbox;
    }
    packet->next = NULL;
    w->packet = packet;
    client_receive(client, packet->from, packet->bytes, packet->length,
                   lab_worker_us(w->lab, w->index));
    return true;
}

static void shell_sleep(void *self, uint64_t until_us)
{
    struct lab_worker *w = self;
    struct lab *lab = w->lab;
    const struct lab_clock *clock = &lab_host_of(lab, w->index)->clock;
    uint64_t stood_ns, until_ns;
    catch_up(w);
    do { /* again, where its clock stood still meanwhile */
        stood_ns = clock->stood_ns;
        until_ns = lab_clock_when_ns(clock, until_us);
        if (w->inbox != NULL || until_ns <= lab->now_ns) {
            return;
        }
        w->sleeping = true;
        wake_at(w, until_ns);
        fiber_yield();
        w->sleeping = false;
        rebase(w, lab->now_ns);
    } while (clock->stood_ns != stood_ns && w->letters == NULL);
}

static bool shell_pass(void *self)
{
    struct lab_worker *w = self;
    catch_up(w);
    if (w->lab->now_ns < w->serve_due_ns) {
        return true;
    }
    w->serve_due_ns = w->lab->now_ns + w->lab->options.poll_ns;
    return false;
}

void lab_worker_wake(struct lab_worker *w)
{
    if (w->faults.stalls > 0) { /* the machine stands still: later */
        w->postponed = true;
    } else {
        (void)lab_want_set(w->worker != NULL ? want_of(w) : NULL);
        fiber_resume(w->fiber);
        (void)lab_want_set(NULL);
    }
}

void lab_worker_resume(struct lab_worker *w)
{
    rebase(w, w->lab->now_ns);
}

void lab_worker_unstall(struct lab_worker *w)
{
    if (w->alive && w->postponed) {
        w->postponed = false;
        wake_at(w, w->lab->now_ns);
    }
    lab_dealers_go_on(w);
}

/* A planted fault: it has a worker index and is given no other. */
static bool is_planted(struct lab_worker *w, const struct lab_packet *packet, unsigned shard)
{
    struct proto_message m;
    if (!w->lab->options.planted.stale_index ||
        proto_decode(w->lab->decoder, packet->bytes, packet->length, &m) != ERR_OK ||
        m.type != PROTO_WORKER_INDEX) {
        return false;
    }
    bool is_first = (w->indexed >> shard & 1) == 0;
    w->indexed |= UINT64_C(1) << shard;
    return !is_first;
}

void lab_worker_receive(struct lab_worker *w, struct lab_packet *packet, unsigned shard)
{
    bool lost = w->lab->net == NULL && lab_is_cut(w->lab, w->index, shard, LAB_TO_WORKERS);
    if (!w->alive || packet->epoch != w->incarnation || lost) {
        w->lab->result.lost += lost;
        free(packet);
        return;
    }
    CHECK(packet->number > w->last_in[shard]);
    w->last_in[shard] = packet->number;
    if (is_planted(w, packet, shard)) {
        free(packet);
        return;
    }
    packet->next = NULL;
    packet->from = shard;
    *w->inbox_end = packet;
    w->inbox_end = &packet->next;
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
    struct lab_want *outer = lab_want_set(NULL);
    lab_send_to_peer(w->lab, w->index, to, local_ns(w), m, peer_message_size(m));
    (void)lab_want_set(outer);
}

static bool peer_receive(void *self, struct peer_message *out)
{
    struct lab_worker *w = self;
    catch_up(w);
    struct lab_packet *packet = w->letters;
    if (packet == NULL) {
        return false;
    }
    memcpy(out, packet->bytes, packet->length);
    w->letters = packet->next;
    w->letters_end = w->letters == NULL ? &w->letters : w->letters_end;
    free(packet);
    return true;
}

static void peer_wait(void *self)
{
    struct lab_worker *w = self;
    catch_up(w);
    if (w->letters == NULL) {
        uint64_t began_ns = w->lab->now_ns;
        w->sleeping = true; /* whatever else may have come: the next poll sees to it */
        wake_at(w, began_ns + PEER_WAIT_NS);
        fiber_yield();
        w->sleeping = false;
        rebase(w, w->lab->now_ns);
        w->lab->result.idle_ns += w->lab->now_ns - began_ns;
    }
}

static uint64_t peer_now_us(void *self)
{
    return shell_now(self);
}

void lab_worker_receive_letter(struct lab_worker *w, struct lab_packet *packet)
{
    if (!w->alive || packet->epoch != w->incarnation) {
        free(packet);
        return;
    }
    *w->letters_end = packet;
    w->letters_end = &packet->next;
    if (w->sleeping) {
        w->epoch++;
        lab_worker_wake(w);
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
                              .now_us = peer_now_us};
}

/* ---- its life ---- */

/* When it is killed, at the end of the cluster at the latest. */
static void collect(struct lab_worker *w)
{
    struct lab_result *r = &w->lab->result;
    const struct client_counters *n = client_counters(remote_client(w->searcher->remote));
    if (w->searcher->search != NULL) {
        (void)local_ns(w); /* the search before, if this one has just begun */
        add(&r->sum, search_counters(w->searcher->search));
        const struct searcher_talk talk = searcher_talk(w->searcher);
        add_to_host(w, search_counters(w->searcher->search), &talk);
        r->waited_ns += talk.waited_us * 1000;
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
    if (w->watcher != NULL) {
        lab_watcher_run(w);
    }
    if (lab_is_front(w)) {
        lab_front_run(w);
    }
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

static void leave_host(struct lab_worker *w)
{
    if (w->host != NULL && --w->host->users == 0) {
        embedded_close(&w->host->table);
    }
    w->host = NULL;
}

static enum err open_parts(struct lab_worker *w)
{
    struct lab *lab = w->lab;
    const struct lab_options *o = &lab->options;
    uint64_t seed = rng_mix(o->seed ^ (uint64_t)w->index << 32 ^ w->incarnation);
    w->alias = proto_alias(seed | 1);
    struct remote_shell shell = {.self = w,
                                 .now = shell_now,
                                 .send = shell_send,
                                 .receive = shell_receive,
                                 .sleep = shell_sleep,
                                 .pass = o->threads > 1 ? shell_pass : NULL,
                                 .shares_reach_all = true,
                                 .version = lab_host_of(lab, w->index)->version,
                                 .ask_cost_us = (uint32_t)(o->message_ns * 2 / 1000)};
    if (w->index >= lab->machines) {
        enum err opened = lab_watcher_open(w, &shell);
        return opened == ERR_OK ? fiber_open(&w->fiber, STACK_BYTES, run, w) : opened;
    }
    enum err err = join_host(w, seed);
    if (err == ERR_OK) {
        err = peers_open_work(&w->peers);
    }
    if (err != ERR_OK) {
        return err;
    }
    struct worker_options options = {
        .searcher = {.table = w->host->table,
                     .index = lab_place_of(lab, w->index) % o->threads,
                     .neighbours = o->threads,
                     .shell = &shell,
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
        err = lab_front_open(w, &options.searcher);
    } else {
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
        .faults = w->faults,
        .base_ns = lab->now_ns,
    };
    w->inbox_end = &w->inbox;
    w->letters_end = &w->letters;
    struct lab_want *outer = lab_want_set(want_of(w));
    enum err err = open_parts(w);
    (void)lab_want_set(outer);
    w->alive = err == ERR_OK;
    if (err == ERR_OK) {
        if (lab->net != NULL) {
            lab_dealers_open(w);
        }
        wake_at(w, lab->now_ns);
    } else {
        w->host = lab->options.planted.half_made ? NULL : w->host;
        lab_worker_kill(w);
    }
    return err;
}

void lab_worker_say_bye(struct lab_worker *w)
{
    if (w->alive && w->faults.stalls == 0) {
        client_bye(remote_client(w->searcher->remote), shell_now(w));
    }
}

void lab_worker_kill(struct lab_worker *w)
{
    bool was_alive = w->alive;
    if (was_alive && w->watcher == NULL) {
        collect(w);
    }
    w->alive = false; /* from here on it sends nothing, not even BYE */
    w->epoch++;
    lab_dealers_close(w);
    fiber_free(&w->fiber);
    worker_close(&w->worker);
    lab_watcher_close(w);
    lab_front_close(&w->front);
    peers_close_work(&w->peers);
    leave_host(w);
    w->searcher = NULL;
    lab_packets_free(&w->inbox);
    lab_packets_free(&w->packet);
    lab_packets_free(&w->letters);
    w->inbox_end = &w->inbox;
    w->letters_end = &w->letters;
    w->postponed = w->front.searching = false;
    if (was_alive && lab_is_front(w)) {
        lab_fronts_check(w->lab);
    }
}
