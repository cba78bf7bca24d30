#include "worker/lab/world.h"

#include "common/rng.h"

#include <stdlib.h>
#include <string.h>

static void schedule_tick(struct lab *lab, unsigned index)
{
    lab_heap_push(&lab->heap, (struct lab_event){.time_ns = lab->now_ns + lab_shard_tick_ns(lab),
                                                 .kind = LAB_TICK,
                                                 .who = index,
                                                 .epoch = lab->shard[index].incarnation});
}

static uint64_t clock_us(const struct lab *lab, unsigned index, uint64_t time_ns)
{
    return lab_us(lab, lab->programs + index, time_ns);
}

enum err lab_shard_start(struct lab *lab, unsigned index)
{
    const struct lab_options *o = &lab->options;
    struct lab_shard *s = &lab->shard[index];
    struct ttcore_options options = ttcore_defaults();
    options.boot = rng_mix(o->seed * 64 + index + ((uint64_t)++s->incarnation << 40)) | 1;
    options.start_us = clock_us(lab, index, lab->now_ns);
    options.results_bytes = o->results_bytes / o->shards;
    options.inflight_max = o->inflight_max;
    options.sessions_max = lab_shard_sessions(lab);
    options.jobs_max = LAB_SHARD_JOBS;
    options.heartbeat_ms = o->heartbeat_ms;
    options.inflight_age_max_ms = o->inflight_age_max_ms;
    options.outside = &s->outside;
    const enum err err = o->hooks->open_core != NULL ? o->hooks->open_core(lab, index, &options)
                                                     : ttcore_open(&s->core, &options);
    s->alive = err == ERR_OK;
    s->free_ns = lab->now_ns;
    if (s->alive) {
        schedule_tick(lab, index);
    }
    return err;
}

void lab_shard_kill(struct lab *lab, unsigned index)
{
    struct lab_shard *s = &lab->shard[index];
    lab->result.busy_ns += s->busy_ns;
    if (s->busy_ns > lab->result.busy_most_ns) {
        lab->result.busy_most_ns = s->busy_ns;
    }
    s->busy_ns = 0;
    s->alive = false;
    ttcore_close(&s->core);
}

void lab_route(uint32_t who, uint32_t incarnation, uint8_t route[LAB_ROUTE_BYTES])
{
    memcpy(route, &who, sizeof who);
    memcpy(route + sizeof who, &incarnation, sizeof incarnation);
}

static void deliver(struct lab *lab, unsigned shard, const struct ttcore_target *target,
                    const struct ttcore_message *message, uint64_t at_ns)
{
    const struct lab_hooks *hooks = lab->options.hooks;
    uint32_t who, incarnation;
    memcpy(&who, target->route, sizeof who);
    memcpy(&incarnation, target->route + sizeof who, sizeof incarnation);
    if (hooks->deliver != NULL && hooks->deliver(lab, shard, target, message, at_ns)) {
        return;
    }
    if (message->may_drop && lab_card_is_full(lab, shard)) {
        lab->shard[shard].outside.hints_dropped++;
        return;
    }
    (void)lab_send(lab, who, incarnation, shard, LAB_TO_WORKERS, at_ns, message->bytes,
                   message->length);
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

uint64_t lab_shard_step(struct lab *lab, unsigned index, const struct ttcore_event *event,
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

/* How many operations a message carries, for the service time. */
static uint64_t operations(struct lab *lab, const struct lab_packet *packet)
{
    struct proto_message m;
    if (lab->options.service_operation_ns == 0 ||
        proto_decode(lab->decoder, packet->bytes, packet->length, &m) != ERR_OK) {
        return 0;
    }
    switch (m.type) {
    case PROTO_RETRIEVE_ASK:
        return m.retrieve_ask.list.count;
    case PROTO_SHARE:
        return m.share.list.count;
    case PROTO_PEEK:
        return m.peek.list.count;
    case PROTO_STORE_HASH:
        return m.store_hash.list.count;
    case PROTO_RELEASE:
        return m.release.list.count;
    default:
        return 0;
    }
}

void lab_shard_serve(struct lab *lab, unsigned index, struct lab_packet *packet)
{
    struct lab_shard *s = &lab->shard[index];
    uint8_t route[LAB_ROUTE_BYTES];
    const uint64_t begin = s->free_ns > lab->now_ns ? s->free_ns : lab->now_ns;
    lab_route(packet->from, packet->epoch, route);
    const struct ttcore_event event = {
        .kind = TTCORE_MESSAGE,
        .now_us = clock_us(lab, index, begin),
        .route = route,
        .route_length = sizeof route,
        .bytes = packet->bytes,
        .length = packet->length,
    };
    s->free_ns = begin + lab->options.service_ns +
                 lab->options.service_operation_ns * operations(lab, packet);
    s->free_ns = lab_shard_step(lab, index, &event, s->free_ns);
    s->busy_ns += s->free_ns - begin;
    free(packet);
}

void lab_shard_receive(struct lab *lab, unsigned index, struct lab_packet *packet)
{
    struct lab_worker *w = &lab->worker[packet->from];
    if (w->incarnation == packet->epoch) {
        CHECK(packet->number > w->last_out[index]);
        w->last_out[index] = packet->number;
    }
    lab_shard_serve(lab, index, packet);
}

void lab_shard_tick(struct lab *lab, unsigned index, uint32_t incarnation)
{
    const struct lab_shard *s = &lab->shard[index];
    const struct ttcore_event event = {.kind = TTCORE_TICK,
                                       .now_us = clock_us(lab, index, lab->now_ns)};
    if (s->alive && s->incarnation == incarnation) {
        (void)lab_shard_step(lab, index, &event, lab->now_ns);
        schedule_tick(lab, index);
    }
}
