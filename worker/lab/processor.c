#include "common/rng.h"
#include "worker/lab/world.h"

#include <stdlib.h>
#include <string.h>

enum {
    STACK_BYTES = 1 << 20, /* mapped; only what is touched costs */
    POLL_EVERY_NS = 50000, /* how often a processor looks at the network while it searches */
    IDLE_MS = 100,
    NOTICES = 32,
    CLIENT_TICKETS = 48,
};

/* ---- time ---- */

static uint64_t local_ns(const struct lab_worker *p)
{
    uint64_t nodes = p->search != NULL ? search_counters(p->search)->nodes : 0;
    return p->base_ns + (nodes - p->base_nodes) * p->lab->options.node_ns;
}

static void rebase(struct lab_worker *p, uint64_t now_ns)
{
    p->base_nodes = p->search != NULL ? search_counters(p->search)->nodes : 0;
    p->base_ns = now_ns;
}

/* Lets everything that is earlier than this processor's own time happen. */
static void catch_up(struct lab_worker *p)
{
    struct lab *lab = p->lab;
    uint64_t own = local_ns(p);
    if (own > lab->now_ns) {
        lab_heap_push(&lab->heap,
                      (struct lab_event){
                          .time_ns = own, .kind = LAB_WAKE, .who = p->index, .epoch = ++p->epoch});
        fiber_yield();
    }
    rebase(p, lab->now_ns);
}

/* ---- the shell of its remote table ---- */

static uint64_t shell_now(void *self)
{
    return local_ns(self) / 1000;
}

static bool shell_send(void *self, unsigned shard, const uint8_t *bytes, size_t length)
{
    struct lab_worker *p = self;
    struct lab *lab = p->lab;
    const struct lab_options *o = &lab->options;

    if (!p->alive) {
        return false;
    }
    p->base_ns += o->message_ns;
    lab->result.messages++;
    lab->result.bytes += length;
    struct lab_passage way = lab_pass(lab, p->index, shard, LAB_TO_SHARDS);
    if (way.lost || !lab->shard[shard].alive) {
        p->lossy |= UINT64_C(1) << shard;
        return true; /* as TCP does: the sender learns nothing */
    }
    uint64_t arrival = local_ns(p) + way.delay_ns;
    arrival = arrival > p->last_out_ns[shard] ? arrival : p->last_out_ns[shard];
    p->last_out_ns[shard] = arrival;
    struct lab_packet *packet = malloc(sizeof *packet + length);
    CHECK(packet != NULL);
    packet->next = NULL;
    packet->from = p->index;
    packet->epoch = p->incarnation;
    packet->length = (uint32_t)length;
    packet->number = ++lab->packets;
    memcpy(packet->bytes, bytes, length);
    lab_heap_push(&lab->heap, (struct lab_event){.time_ns = arrival,
                                                 .kind = LAB_TO_SHARD,
                                                 .who = shard,
                                                 .epoch = lab->shard[shard].incarnation,
                                                 .packet = packet});
    return true;
}

static bool shell_drain(void *self, struct client *client)
{
    struct lab_worker *p = self;
    bool any = false;
    catch_up(p);
    while (p->inbox != NULL) {
        struct lab_packet *packet = p->inbox;
        p->inbox = packet->next;
        if (p->inbox == NULL) {
            p->inbox_end = &p->inbox;
        }
        client_receive(client, packet->from, packet->bytes, packet->length, p->lab->now_ns / 1000);
        free(packet);
        any = true;
    }
    return any;
}

static void shell_sleep(void *self, uint64_t until_us)
{
    struct lab_worker *p = self;
    struct lab *lab = p->lab;
    uint64_t until_ns = until_us > UINT64_MAX / 2000 ? UINT64_MAX / 2 : until_us * 1000;
    catch_up(p);
    if (p->inbox != NULL || until_ns <= lab->now_ns) {
        return;
    }
    p->sleeping = true;
    lab_heap_push(&lab->heap,
                  (struct lab_event){
                      .time_ns = until_ns, .kind = LAB_WAKE, .who = p->index, .epoch = ++p->epoch});
    fiber_yield();
    p->sleeping = false;
    rebase(p, lab->now_ns);
}

void lab_worker_wake(struct lab_worker *p)
{
    if (p->stalls > 0) { /* the machine stands still: later */
        p->postponed = true;
    } else {
        fiber_resume(p->fiber);
    }
}

void lab_worker_unstall(struct lab_worker *p)
{
    if (p->alive && p->postponed) {
        p->postponed = false;
        lab_heap_push(&p->lab->heap, (struct lab_event){.time_ns = p->lab->now_ns,
                                                        .kind = LAB_WAKE,
                                                        .who = p->index,
                                                        .epoch = ++p->epoch});
    }
}

void lab_worker_take(struct lab_worker *p, struct lab_packet *packet, unsigned shard)
{
    bool lost = lab_is_cut(p->lab, p->index, shard, LAB_TO_WORKERS);
    if (!p->alive || packet->epoch != p->incarnation || lost) {
        p->lab->result.lost += lost;
        free(packet);
        return;
    }
    CHECK(packet->number > p->last_in[shard]);
    p->last_in[shard] = packet->number;
    packet->next = NULL;
    packet->from = shard;
    *p->inbox_end = packet;
    p->inbox_end = &packet->next;
    if (p->sleeping) {
        p->epoch++; /* its own alarm is off */
        lab_worker_wake(p);
    }
}

/* ---- its life ---- */

static bool poll_lab(void *self, struct search *search)
{
    struct lab_worker *p = self;
    struct tt_store notice[NOTICES];
    remote_poll(p->remote);
    remote_settle(p->remote, search);
    unsigned n = remote_notices(p->remote, notice, NOTICES);
    for (unsigned i = 0; i < n; i++) {
        search_node_done(search, &notice[i]);
    }
    return p->lab->ended;
}

static void collect(struct lab_worker *p)
{
    struct search_counters *sum = &p->lab->result.sum;
    const struct search_counters *c = search_counters(p->search);
#define X(name, json) sum->name += c->name;
    COUNTERS(X)
#undef X
    p->lab->result.waited_ns += remote_times(p->remote).waited_us * 1000;
    const struct client_counters *n = client_counters(remote_client(p->remote));
    p->lab->result.asks += n->asks;
    p->lab->result.peeks += n->peeks;
    p->lab->result.stores += n->stores;
    p->lab->result.downs += n->downs;
    p->lab->result.timeouts += n->timeouts;
}

static void run(void *context)
{
    struct lab_worker *p = context;
    struct lab *lab = p->lab;
    struct search_result result = {0};

    remote_connect(p->remote, lab->options.connect_ms);
    if (p->index == 0) {
        lab->begin_ns = local_ns(p);
    }
    remote_begin(p->remote, lab->options.job->remote_depth, lab->options.job->algorithm->counted,
                 lab->options.job->waits);
    p->searching = !lab->ended; /* one that was started anew may come too late */
    if (p->searching) {
        search_run(p->search, NULL, NULL, &result);
        catch_up(p);
        p->searching = false;
    }
    if (p->index == 0 && !lab->ended) {
        lab->result.search = result;
        lab->result.answered = result.depth >= lab->options.job->depth;
        lab->result.time_ns = lab->now_ns - lab->begin_ns;
        lab->result.end_ns = lab->now_ns;
        lab->ended = true;
    }
    for (;;) { /* idle, as a worker between jobs: its session lives on */
        remote_wait(p->remote, IDLE_MS);
    }
}

static enum err open_parts(struct lab_worker *p)
{
    struct lab *lab = p->lab;
    const struct job *job = lab->options.job;
    uint64_t seed = rng_mix(lab->options.seed ^ (uint64_t)p->index << 32 ^ p->incarnation);
    uint64_t poll = POLL_EVERY_NS / lab->options.node_ns;
    struct remote_options remote = {
        .shell = {.self = p,
                  .now = shell_now,
                  .send = shell_send,
                  .drain = shell_drain,
                  .sleep = shell_sleep,
                  .ask_cost_us = (uint32_t)(lab->options.message_ns * 2 / 1000)},
        .client = {.shards = lab->options.shards,
                   .role = PROTO_CLIENT,
                   .namespace_id = job->namespace_id,
                   .instance = seed | 1,
                   .name = "lab",
                   .decoder = lab->decoder,
                   .tickets = CLIENT_TICKETS,
                   .rto_min_us = lab->options.rto_min_us,
                   .rto_max_us = lab->options.rto_max_us,
                   .probe_us = lab->options.probe_us,
                   .jobs = 1},
        .local = &p->local,
        .share_depth = lab->options.share_depth,
    };
    enum err err = embedded_open(&p->table, lab->options.local_bytes, 1);
    p->local = (struct embedded_port){.table = p->table, .inflight_depth_max = EMBEDDED_NEVER};
    if (err == ERR_OK) {
        embedded_set_table_id(p->table, rng_mix(seed)); /* repeatable */
        err = remote_open(&p->remote, &remote);
    }
    if (err != ERR_OK) {
        return err;
    }
    struct search_options options = {
        .game = job->game,
        .algorithm = job->algorithm,
        .strict = job->strict,
        .full = job->full,
        .salt = job->namespace_id,
        .seed = p->index == 0 ? 0 : seed | 1,
        .random_order = !job->waits,
        .depth_limit = job->depth,
        .poll_nodes = poll < 1                   ? 1
                      : poll > SEARCH_POLL_NODES ? SEARCH_POLL_NODES
                                                 : (unsigned)poll,
    };
    p->env = (struct env_port){.self = p, .poll = poll_lab};
    struct table_port table = remote_table_port(p->remote);
    err = search_open(&p->search, &options, &table, &p->env);
    if (err == ERR_OK) {
        search_set_position(p->search, job->position);
        err = fiber_open(&p->fiber, STACK_BYTES, run, p);
    }
    return err;
}

enum err lab_worker_start(struct lab *lab, unsigned index)
{
    struct lab_worker *p = &lab->processor[index];
    uint32_t incarnation = p->incarnation + 1, epoch = p->epoch;
    unsigned kills = p->kills, stalls = p->stalls;
    *p = (struct lab_worker){
        .lab = lab,
        .index = index,
        .incarnation = incarnation,
        .epoch = epoch + 1,
        .kills = kills,
        .stalls = stalls,
        .base_ns = lab->now_ns,
    };
    p->inbox_end = &p->inbox;
    enum err err = open_parts(p);
    p->alive = err == ERR_OK;
    if (err == ERR_OK) {
        lab_heap_push(&lab->heap, (struct lab_event){.time_ns = lab->now_ns,
                                                     .kind = LAB_WAKE,
                                                     .who = index,
                                                     .epoch = p->epoch});
    } else {
        lab_worker_kill(p);
    }
    return err;
}

void lab_worker_kill(struct lab_worker *p)
{
    if (p->alive) {
        collect(p);
    }
    p->alive = false; /* from here on it sends nothing, not even BYE */
    p->epoch++;
    fiber_free(&p->fiber);
    search_free(&p->search);
    remote_close(&p->remote);
    embedded_close(&p->table);
    while (p->inbox != NULL) {
        struct lab_packet *next = p->inbox->next;
        free(p->inbox);
        p->inbox = next;
    }
    p->inbox_end = &p->inbox;
    p->postponed = p->searching = false;
}
