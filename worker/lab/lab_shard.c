#include "worker/lab/lab_shard.h"

#include "common/rng.h"
#include "worker/lab/lab_dealer.h"
#include "worker/lab/lab_keep.h"
#include "worker/lab/lab_link.h"
#include "worker/lab/lab_service.h"
#include "worker/lab/lab_watcher.h"

#include <stdlib.h>
#include <string.h>

enum { HISTORIES_MAX = 16, TICKS_PER_HEARTBEAT = 4, FOR_EVER_MS = UINT32_MAX / 8 };

static void schedule_tick(struct lab *lab, unsigned index)
{
    uint64_t tick_ns = (uint64_t)lab->options.heartbeat_ms * 1000000 / TICKS_PER_HEARTBEAT;
    lab_heap_push(&lab->heap, (struct lab_event){.time_ns = lab->now_ns + tick_ns,
                                                 .kind = LAB_TICK,
                                                 .who = index,
                                                 .epoch = lab->shard[index].incarnation});
}

static void schedule_keep(struct lab *lab, unsigned index, uint64_t at_ns)
{
    if (lab->shard[index].keep.disk != NULL) {
        lab_heap_push(&lab->heap, (struct lab_event){.time_ns = at_ns,
                                                     .kind = LAB_KEEP,
                                                     .who = index,
                                                     .epoch = lab->shard[index].incarnation});
    }
}

enum err lab_shard_start(struct lab *lab, unsigned index)
{
    struct lab_shard *s = &lab->shard[index];
    struct ttcore_options options = ttcore_defaults();
    options.boot = rng_mix(lab->options.seed * 64 + index + ((uint64_t)++s->incarnation << 40)) | 1;
    options.start_us = lab_shard_us(lab, index, lab->now_ns);
    options.results_bytes = lab->options.results_bytes / lab->options.shards;
    options.inflight_max = lab->options.inflight_max;
    options.sessions_max = lab_shard_sessions(lab);
    options.jobs_max = LAB_SHARD_JOBS;
    options.histories_max = HISTORIES_MAX;
    options.heartbeat_ms =
        lab->options.planted.never_expire_sessions ? FOR_EVER_MS : lab->options.heartbeat_ms;
    options.inflight_age_max_ms =
        lab->options.planted.never_expire ? FOR_EVER_MS : lab->options.inflight_age_max_ms;
    options.outside = &s->outside;
    options.version = s->version;
    if (!lab_keep_start(lab, index, &options)) {
        return ERR_IO;
    }
    enum err err;
    if (lab->net != NULL) {
        err = lab_service_open(lab, index, &options);
    } else {
        struct lab_want *outer = lab_want_set(lab->ended ? NULL : &lab->want);
        err = ttcore_open(&s->core, &options);
        (void)lab_want_set(outer);
    }
    s->alive = err == ERR_OK;
    s->free_ns = lab->now_ns;
    s->backlog_end = &s->backlog;
    if (err == ERR_OK) {
        s->memory_bytes = lab_shard_figures(lab, index).memory_bytes;
        lab_keep_fill(lab, index);
        schedule_tick(lab, index);
        schedule_keep(lab, index, lab->now_ns + lab->options.keep_ns);
    } else {
        lab_keep_give_up(lab, index);
    }
    for (unsigned i = 0; i < lab->programs; i++) { /* it never knew them */
        lab->worker[i].lossy &= ~(UINT64_C(1) << index);
    }
    return err;
}

void lab_shard_keep(struct lab *lab, unsigned index, uint32_t incarnation)
{
    const struct lab_shard *s = &lab->shard[index];
    if (s->alive && s->incarnation == incarnation) {
        const bool is_still =
            s->faults.stalls > 0; /* what would have been written then, is later */
        const uint64_t tick_ns = (uint64_t)lab->options.heartbeat_ms * 1000000;
        schedule_keep(lab, index, is_still ? lab->now_ns + tick_ns : lab_keep_write(lab, index));
    }
}

void lab_shard_kill(struct lab *lab, unsigned index, bool loses_power)
{
    struct lab_shard *s = &lab->shard[index];
    if (s->alive) {
        lab_keep_kill(lab, index, loses_power);
        struct ttcore_figures f = lab_shard_figures(lab, index);
        lab->result.expired_sessions += f.sessions_expired;
        lab->result.busy_ns += s->busy_ns;
        if (s->busy_ns > lab->result.busy_most_ns) {
            lab->result.busy_most_ns = s->busy_ns;
        }
        s->busy_ns = 0;
        lab->result.grown += f.memory_bytes != s->memory_bytes || f.dropped > 0;
    }
    s->alive = false;
    lab_service_close(lab, index);
    ttcore_close(&s->core);
    lab_packets_free(&s->backlog);
}

/* The ROUTER id of a worker's incarnation. */
enum { LAB_ROUTE_BYTES = CONNECTION_ROUTE };

static void make_route(uint32_t who, uint32_t incarnation, uint8_t route[LAB_ROUTE_BYTES])
{
    memcpy(route, &who, sizeof who);
    memcpy(route + sizeof who, &incarnation, sizeof incarnation);
}

static bool knows(const struct ttcore *core, const struct connection *c)
{
    uint8_t route[CONNECTION_ROUTE];
    connection_route(c, route);
    return ttcore_knows(core, route, sizeof route);
}

/* A planted fault: nobody hears of versions. */
static bool is_lost(struct lab *lab, const struct ttcore_message *message)
{
    struct proto_message m;
    return lab->options.planted.lose_versions &&
           proto_decode(lab->decoder, message->bytes, message->length, &m) == ERR_OK &&
           m.type == PROTO_ERROR && m.error.code == PROTO_ERR_VERSION;
}

static void deliver(struct lab *lab, unsigned shard, const struct ttcore_target *target,
                    const struct ttcore_message *message, uint64_t at_ns)
{
    uint32_t who, incarnation;
    memcpy(&who, target->route, sizeof who);
    memcpy(&incarnation, target->route + sizeof who, sizeof incarnation);
    if (who >= lab->programs) { /* the liar does not listen to more than that */
        struct proto_message m;
        bool is_read = proto_decode(lab->decoder, message->bytes, message->length, &m) == ERR_OK;
        lab->liar.refused = lab->liar.refused || !is_read || m.type == PROTO_ERROR;
        return;
    }
    if (is_lost(lab, message)) {
        return;
    }
    uint8_t other[PROTO_MESSAGE_MAX];
    const void *bytes = message->bytes;
    size_t length = message->length;
    if (lab_watcher_spoil(lab, shard, message->bytes, message->length, &who, other, &length)) {
        bytes = other;
    }
    if (message->may_drop && lab_card_is_full(lab, shard)) {
        lab->shard[shard].outside.hints_dropped++;
        return;
    }
    (void)lab_send(lab, who, incarnation, shard, LAB_TO_WORKERS, at_ns, bytes, length);
}

/* One after the other; returns when the last leaves. */
static uint64_t deliver_all(struct lab *lab, unsigned index, uint64_t at_ns)
{
    const struct ttcore_actions *actions = &lab->actions;
    bool is_first = true; /* it is part of the work on what the shard took */
    for (uint32_t m = 0; m < actions->messages; m++) {
        const struct ttcore_message *message = &actions->message[m];
        for (uint32_t t = 0; t < message->targets; t++) {
            at_ns += is_first ? 0 : lab->options.service_ns;
            is_first = false;
            deliver(lab, index, &actions->target[message->first + t], message, at_ns);
        }
    }
    return at_ns;
}

/* Returns when all that it sends has left. */
static uint64_t step(struct lab *lab, unsigned index, const struct ttcore_event *event,
                     uint64_t at_ns)
{
    struct ttcore *core = lab->shard[index].core;
    const struct ttcore_event more = {.kind = TTCORE_MORE, .now_us = event->now_us};
    ttcore_step(core, event, &lab->actions);
    at_ns = deliver_all(lab, index, at_ns);
    while (ttcore_has_more(core)) {
        ttcore_step(core, &more, &lab->actions);
        at_ns = deliver_all(lab, index, at_ns);
    }
    return at_ns;
}

/* The planted faults that lose a message. */
static bool is_planted(struct lab *lab, const struct proto_message *m)
{
    const struct lab_options *o = &lab->options;
    bool leaves = m->type == PROTO_STORE_HASH || m->type == PROTO_RELEASE;
    bool is_last = m->type == PROTO_JOB_REPORT && m->job_report.state != PROTO_JOB_SEARCHING;
    return (is_last && o->planted.lose_reports) ||
           (leaves && o->planted.skip_release_ppm > 0 &&
            rng_below(&lab->planted, 1000000) < o->planted.skip_release_ppm);
}

static void note_asks(struct lab *lab, const struct proto_asks *list)
{
    for (uint32_t i = 0; i < list->count; i++) {
        lab->liar.node[lab->liar.received++ % LAB_LIAR_NODES] = list->at[i];
    }
}

/* How many operations a message carries, for the service time. */
static uint64_t operations(struct lab *lab, uint32_t from, const uint8_t *bytes, size_t length,
                           bool *forgotten)
{
    const struct lab_options *o = &lab->options;
    struct proto_message m;
    if ((o->service_operation_ns == 0 && o->planted.skip_release_ppm == 0 &&
         !o->planted.lose_reports && o->lie_ns == 0) ||
        proto_decode(lab->decoder, bytes, length, &m) != ERR_OK) {
        return 0;
    }
    *forgotten = from < lab->machines && is_planted(lab, &m);
    const bool is_seen = from < lab->machines || from >= lab->programs;
    switch (m.type) {
    case PROTO_RETRIEVE_ASK:
        if (is_seen) { /* what watchers store is their own */
            note_asks(lab, &m.retrieve_ask.list);
        }
        return m.retrieve_ask.list.count;
    case PROTO_SHARE:
        return m.share.list.count;
    case PROTO_PEEK:
        return m.peek.list.count;
    case PROTO_STORE_HASH:
        return m.store_hash.list.count;
    case PROTO_RELEASE:
        return m.release.list.count;
    case PROTO_HISTORY: /* both ways sums in order, without a miss of the cache */
        return 1 + m.history.list.count / 16;
    default:
        return 0;
    }
}

/* A planted fault: a message is old when its sender's clock is behind. */
static bool seems_old(struct lab *lab, unsigned index, const struct lab_packet *packet)
{
    return lab->options.planted.compare_clocks && packet->from < lab->machines &&
           lab_worker_us(lab, packet->from) + lab->options.heartbeat_ms * UINT64_C(1000) <
               lab_shard_us(lab, index, lab->now_ns);
}

/* A planted fault: a watcher is told that its FLUSH was done. */
static bool is_flush_lost(struct lab *lab, unsigned index, const struct lab_packet *packet)
{
    uint8_t bytes[64];
    struct proto_message m;
    if (!lab->options.planted.lose_flushes || packet->from < lab->machines ||
        packet->from >= lab->programs ||
        proto_decode(lab->decoder, packet->bytes, packet->length, &m) != ERR_OK ||
        m.type != PROTO_FLUSH) {
        return false;
    }
    const struct proto_message answer = {.type = PROTO_FLUSHED, .flushed = {m.flush.request}};
    const size_t length = proto_encode_as(lab->shard[index].version, &answer, bytes, sizeof bytes);
    (void)lab_send(lab, packet->from, packet->epoch, index, LAB_TO_WORKERS,
                   lab->shard[index].free_ns, bytes, length);
    return true;
}

static void serve(struct lab *lab, unsigned index, struct lab_packet *packet)
{
    struct lab_shard *s = &lab->shard[index];
    uint8_t route[LAB_ROUTE_BYTES];
    uint64_t begin = s->free_ns > lab->now_ns ? s->free_ns : lab->now_ns;
    bool forgotten = false;
    uint64_t count = operations(lab, packet->from, packet->bytes, packet->length, &forgotten);
    s->free_ns = begin + lab->options.service_ns + lab->options.service_operation_ns * count;
    make_route(packet->from, packet->epoch, route);
    struct ttcore_event event = {
        .kind = TTCORE_MESSAGE,
        .now_us = lab_shard_us(lab, index, begin),
        .route = route,
        .route_length = sizeof route,
        .bytes = packet->bytes,
        .length = packet->length,
    };
    if (!forgotten && !seems_old(lab, index, packet) && !is_flush_lost(lab, index, packet)) {
        s->free_ns = step(lab, index, &event, s->free_ns);
    }
    s->busy_ns += s->free_ns - begin;
    free(packet);
}

void lab_shard_receive(struct lab *lab, unsigned index, struct lab_packet *packet)
{
    struct lab_shard *s = &lab->shard[index];
    struct lab_worker *w = &lab->worker[packet->from];
    bool lost = lab_is_cut(lab, packet->from, index, LAB_TO_SHARDS);
    if (w->incarnation == packet->epoch) {
        CHECK(packet->number > w->last_out[index]);
        w->last_out[index] = packet->number;
        w->lossy |= (uint64_t)lost << index;
    }
    lab->result.lost += lost;
    if (!s->alive || lost) {
        free(packet);
    } else if (s->faults.stalls > 0) {
        packet->next = NULL;
        *s->backlog_end = packet;
        s->backlog_end = &packet->next;
    } else {
        serve(lab, index, packet);
    }
}

bool lab_shard_overhear(struct lab *lab, unsigned from, const uint8_t *bytes, size_t length)
{
    bool forgotten = false;
    (void)operations(lab, from, bytes, length, &forgotten);
    return forgotten;
}

/* ---- the liar ---- */

/* Who is refused a handshake tries again with the next lie. */
static struct lab_visit *meet_liar(struct lab *lab, unsigned index, unsigned who)
{
    struct lab_visit **visit = &lab->liar.visit[index][who];
    struct in6_addr from = {.s6_addr = {[10] = 0xff, [11] = 0xff, [12] = 10, [13] = 9}};
    from.s6_addr[15] = (uint8_t)who;
    if (*visit != NULL && (*visit)->stream->half[LAB_CLIENT].is_ended) {
        lab_visit_end(visit);
    }
    if (*visit == NULL) {
        *visit = lab_visit_begin(lab, index, from,
                                 lab->net->has_keys ? lab_net_keys_of_liar(lab, who) : NULL);
    }
    return *visit;
}

void lab_shard_close_liar(struct lab *lab, unsigned index, unsigned who)
{
    lab_visit_end(&lab->liar.visit[index][who]);
}

/* As a frame of its connection; it reads what it is sent, and heeds nothing. */
static bool say_lie(struct lab *lab, unsigned index, unsigned who, const uint8_t *bytes,
                    size_t length)
{
    struct lab_visit *visit = meet_liar(lab, index, who);
    if (visit == NULL) {
        return false;
    }
    struct ttcore_figures before = lab_shard_figures(lab, index);
    bool ok = lab_visit_say(visit, bytes, length);
    struct ttcore_figures after = lab_shard_figures(lab, index);
    bool is_ignored = after.ignored > before.ignored;
    if (is_ignored) {
        lab_shard_close_liar(lab, index, who);
    }
    return ok && !is_ignored && after.malformed == before.malformed &&
           after.refused == before.refused;
}

bool lab_shard_knows_liar(const struct lab *lab, unsigned index, unsigned who)
{
    const struct lab_shard *s = &lab->shard[index];
    uint8_t route[LAB_ROUTE_BYTES];
    if (lab->net != NULL) {
        const struct lab_visit *visit = lab->liar.visit[index][who];
        return visit != NULL && visit->stream->connection != NULL &&
               knows(s->core, visit->stream->connection);
    }
    make_route(lab->programs + who, lab->liar.connection[index][who], route);
    return s->alive && ttcore_knows(s->core, route, sizeof route);
}

bool lab_shard_take_lie(struct lab *lab, unsigned index, unsigned who, const uint8_t *bytes,
                        size_t length)
{
    if (lab->net != NULL) {
        return say_lie(lab, index, who, bytes, length);
    }
    struct lab_packet *packet = malloc(sizeof *packet + length);
    if (packet == NULL) {
        return false;
    }
    *packet = (struct lab_packet){.from = lab->programs + who,
                                  .epoch = lab->liar.connection[index][who],
                                  .length = (uint32_t)length};
    memcpy(packet->bytes, bytes, length);
    struct ttcore_figures before = lab_shard_figures(lab, index);
    lab->liar.refused = false;
    serve(lab, index, packet);
    struct ttcore_figures after = lab_shard_figures(lab, index);
    bool is_ignored = after.ignored > before.ignored;
    lab->liar.connection[index][who] += is_ignored;
    return !lab->liar.refused && !is_ignored && after.malformed == before.malformed;
}

void lab_shard_say_bye(struct lab *lab, unsigned index)
{
    const struct lab_shard *s = &lab->shard[index];
    const struct ttcore_event event = {.kind = TTCORE_STOP,
                                       .now_us = lab_shard_us(lab, index, lab->now_ns)};
    if (lab->net != NULL) {
        lab_service_dismiss(lab, index);
    } else if (s->alive && s->faults.stalls == 0) {
        (void)step(lab, index, &event, lab->now_ns);
    }
}

void lab_shard_unstall(struct lab *lab, unsigned index)
{
    struct lab_shard *s = &lab->shard[index];
    if (lab->net != NULL) {
        lab_service_turn(lab, index);
    }
    while (s->backlog != NULL) {
        struct lab_packet *packet = s->backlog;
        s->backlog = packet->next;
        serve(lab, index, packet);
    }
    s->backlog_end = &s->backlog;
}

void lab_shard_tick(struct lab *lab, unsigned index, uint32_t incarnation)
{
    struct lab_shard *s = &lab->shard[index];
    if (!s->alive || s->incarnation != incarnation) {
        return;
    }
    struct ttcore_event event = {.kind = TTCORE_TICK,
                                 .now_us = lab_shard_us(lab, index, lab->now_ns)};
    if (lab->net != NULL) {
        lab_service_tick(lab, index);
    } else if (s->faults.stalls == 0) { /* a stalled shard does not see time pass */
        (void)step(lab, index, &event, lab->now_ns);
    }
    schedule_tick(lab, index);
}

unsigned lab_shard_inflight_of(const struct lab *lab, unsigned index, const struct lab_worker *w)
{
    uint8_t route[LAB_ROUTE_BYTES];
    make_route(w->index, w->incarnation, route);
    if (lab->net != NULL) {
        const struct connection *c = lab_dealer_connection(w, index);
        if (c == NULL) {
            return 0;
        }
        connection_route(c, route);
    }
    return ttcore_inflight_of(lab->shard[index].core, route, sizeof route);
}

struct ttcore_figures lab_shard_figures(const struct lab *lab, unsigned index)
{
    struct ttcore_figures f = {0};
    if (lab->shard[index].alive) {
        ttcore_figures(lab->shard[index].core, &f);
    }
    return f;
}
