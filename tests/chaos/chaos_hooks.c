#include "tests/chaos/chaos_lab.h"

#include "common/rng.h"
#include "tests/chaos/chaos_faults.h"
#include "tests/chaos/chaos_link.h"
#include "tests/chaos/chaos_planted.h"
#include "tests/chaos/drain.h"
#include "tests/chaos/lab_dealer.h"
#include "tests/chaos/lab_intruder.h"
#include "tests/chaos/lab_keep.h"
#include "tests/chaos/lab_liar.h"
#include "tests/chaos/lab_service.h"
#include "tests/chaos/lab_watcher.h"

#include <stdlib.h>
#include <string.h>

/* ---- open and close ---- */

static enum err open_world(struct lab *lab)
{
    struct chaos_world *c = chaos_of(lab);
    const struct chaos_options *o = &c->options;
    c->program = calloc(lab->programs, sizeof *c->program);
    c->shard = calloc(o->lab.shards, sizeof *c->shard);
    c->clock = calloc(lab->hosts, sizeof *c->clock);
    if (c->program == NULL || c->shard == NULL || c->clock == NULL) {
        return ERR_NOMEM;
    }
    c->want = (struct lab_want){rng_mix(o->lab.seed ^ UINT64_C(0x3a27)), o->want_ppm, 0};
    c->planted = rng_mix(o->lab.seed ^ UINT64_C(0x91a27));
    for (unsigned i = 0; i < lab->hosts; i++) {
        c->clock[i] = lab_clock_draw(o->lab.seed ^ (uint64_t)i << 32, o->drift_ppm);
    }
    for (unsigned i = 0; i < o->lab.shards; i++) {
        const uint64_t number = LAB_WORKERS_MAX + i;
        c->shard[i].clock = lab_clock_draw(o->lab.seed ^ number << 32, o->drift_ppm);
        lab_keep_open(lab, i);
    }
    return o->is_wired ? lab_net_open(lab) : ERR_OK;
}

static void begin(struct lab *lab)
{
    const struct chaos_options *o = &chaos_of(lab)->options;
    for (unsigned i = 0; i < o->faults; i++) {
        lab_heap_push(&lab->heap, (struct lab_event){
                                      .time_ns = o->fault[i].at_ns, .kind = LAB_FAULT, .who = i});
    }
    lab_liar_start(lab);
}

static void close_world(struct lab *lab)
{
    struct chaos_world *c = chaos_of(lab);
    const bool is_open = c->program != NULL && c->shard != NULL && c->clock != NULL;
    c->result.simulated_ns = lab->now_ns;
    for (unsigned i = 0; is_open && i < lab->programs; i++) {
        if (lab->worker[i].lab != NULL) {
            chaos_kill(&lab->worker[i]);
        }
    }
    lab_intruder_close(lab);
    for (unsigned i = 0; is_open && i < lab->options.shards; i++) {
        for (unsigned who = 0; who < LAB_LIAR_SESSIONS; who++) {
            lab_liar_close(lab, i, who);
        }
        chaos_kill_shard(lab, i, false);
        lab_keep_close(lab, i);
        lab_service_free(lab, i);
    }
    lab_net_close(lab);
    c->result.wants = c->want.refused;
    for (unsigned i = 0; is_open && i < lab->hosts; i++) {
        embedded_close(&lab->host[i].table); /* a planted fault leaves them open */
    }
    free(c->program);
    free(c->shard);
    free(c->clock);
}

/* ---- what happens ---- */

static bool worker_misses(struct lab *lab, unsigned worker, unsigned shard,
                          struct lab_packet *packet)
{
    const bool lost = lab_net_of(lab) == NULL && lab_is_cut(lab, worker, shard, LAB_TO_WORKERS);
    lab->result.lost += lost;
    if (lost || chaos_planted_at_worker(&lab->worker[worker], shard, packet)) {
        free(packet);
        return true;
    }
    return false;
}

/* Shards with connections of their own tick otherwise, and to one that stands still no time
 * passes. */
static bool tick(struct lab *lab, const struct lab_event *e)
{
    const struct lab_shard *s = &lab->shard[e->who];
    const bool is_wired = lab_net_of(lab) != NULL;
    if (!s->alive || s->incarnation != e->epoch ||
        (!is_wired && chaos_of(lab)->shard[e->who].faults.stalls == 0)) {
        return false;
    }
    if (is_wired) {
        lab_service_tick(lab, e->who);
    }
    lab_heap_push(&lab->heap, (struct lab_event){.time_ns = lab->now_ns + lab_shard_tick_ns(lab),
                                                 .kind = LAB_TICK,
                                                 .who = e->who,
                                                 .epoch = e->epoch});
    return true;
}

static void take_segment(struct lab *lab, const struct lab_event *e)
{
    enum lab_end at;
    struct lab_stream *s = lab_stream_arrive(lab, e, &at);
    if (s != NULL && at == LAB_SERVER) {
        lab_service_turn(lab, s->shard);
    } else if (s != NULL) {
        lab_dealer_ready(lab, s);
    }
}

static bool take_event(struct lab *lab, const struct lab_event *e)
{
    switch (e->kind) {
    case LAB_TO_WORKER:
        return worker_misses(lab, e->who, e->epoch, e->packet);
    case LAB_TO_SHARD:
        return chaos_shard_misses(lab, e->who, e->epoch, e->packet);
    case LAB_TICK:
        return tick(lab, e);
    case LAB_FAULT:
        if (!lab->ended) {
            chaos_begin_fault(lab, e->who);
        }
        return true;
    case LAB_REPAIR:
        chaos_end_fault(lab, e->who);
        return true;
    case LAB_AGAIN:
        chaos_start_again(lab, e->who);
        return true;
    case LAB_LIE:
        lab_liar_act(lab);
        if (lab_net_of(lab) != NULL) {
            lab_intruder_act(lab);
        }
        return true;
    case LAB_STREAM:
        take_segment(lab, e);
        return true;
    case LAB_TURN:
        if (lab->shard[e->who].incarnation == e->epoch) {
            lab_service_turn(lab, e->who);
        }
        return true;
    case LAB_DIAL:
        lab_dealer_dial(&lab->worker[e->who], e->epoch);
        return true;
    case LAB_KEEP:
        chaos_keep(lab, e->who, e->epoch);
        return true;
    default:
        return false;
    }
}

/* To the liar, who does not listen to more than whether it is refused; what planted faults lose, or
 * make another. */
static bool deliver(struct lab *lab, unsigned shard, const struct ttcore_target *target,
                    const struct ttcore_message *message, uint64_t at_ns)
{
    uint8_t other[PROTO_MESSAGE_MAX];
    uint32_t who, incarnation;
    size_t length = message->length;
    struct proto_message m;
    memcpy(&who, target->route, sizeof who);
    memcpy(&incarnation, target->route + sizeof who, sizeof incarnation);
    if (who >= lab->programs) {
        const bool is_read =
            proto_decode(lab->decoder, message->bytes, message->length, &m) == ERR_OK;
        chaos_of(lab)->liar.refused |= !is_read || m.type == PROTO_ERROR;
        return true;
    }
    const uint32_t meant = who;
    const bool is_other =
        lab_watcher_spoil(lab, message->bytes, message->length, &who, other, &length);
    if (!is_other && who == meant) {
        return false;
    }
    (void)lab_send(lab, who, incarnation, shard, LAB_TO_WORKERS, at_ns,
                   is_other ? other : message->bytes, length);
    return true;
}

/* ---- what a program's client needs of the world ---- */

/* As with TCP it does not learn of a loss, but that a connection of its own takes nothing. */
static bool send_message(void *self, unsigned shard, const uint8_t *bytes, size_t length)
{
    struct lab_worker *w = self;
    struct lab *lab = w->lab;
    bool is_taken = true, is_lost = false;
    if (!w->alive) {
        return false;
    }
    struct lab_want *outer = lab_want_set(NULL);
    w->base_ns += lab->options.message_ns;
    if (lab_net_of(lab) != NULL) {
        lab_liar_overhear(lab, w->index, bytes, length);
    }
    if (chaos_planted_in(w, bytes, length)) {
        /* nobody learns of it */
    } else if (lab_net_of(lab) != NULL) {
        is_taken = lab_dealer_send(w, shard, lab_worker_ns(w), bytes, length);
        is_lost = !is_taken;
    } else {
        is_lost = !lab_send(lab, w->index, w->incarnation, shard, LAB_TO_SHARDS, lab_worker_ns(w),
                            bytes, length);
    }
    program_of(w)->lossy |= (uint64_t)is_lost << shard;
    (void)lab_want_set(outer);
    return is_taken;
}

static void sleep_until(void *self, uint64_t until_us)
{
    struct lab_worker *w = self;
    const struct lab_clock *clock = lab_clock_of(w->lab, w->index);
    uint64_t stood_ns, until_ns;
    lab_worker_catch_up(w);
    do { /* again, where its clock stood still meanwhile */
        stood_ns = clock->stood_ns;
        until_ns = lab_clock_when_ns(clock, until_us);
        if (w->inbox.first != NULL || until_ns <= w->lab->now_ns) {
            return;
        }
        lab_worker_sleep(w, until_ns);
    } while (clock->stood_ns != stood_ns && w->letters.first == NULL);
}

static enum err equip(struct lab_worker *w, struct lane *lane)
{
    lane->send = send_message;
    lane->sleep = sleep_until;
    if (w->index < w->lab->machines) {
        return ERR_OK;
    }
    w->run = lab_watcher_run;
    return lab_watcher_open(w, lane);
}

static uint64_t clock_us(const struct lab *lab, unsigned who, uint64_t time_ns)
{
    return who < lab->programs ? lab_clock_us(lab_clock_of(lab, who), time_ns)
                               : lab_shard_us(lab, who - lab->programs, time_ns);
}

/* ---- all of it ---- */

static bool are_valid(const struct chaos_options *o)
{
    const struct lab_options *lab = &o->lab;
    const unsigned fronts = lab->fronts != 0 ? lab->fronts : 1;
    const unsigned links = lab->workers + fronts - 1 + o->watchers;
    bool ok =
        o->faults <= LAB_FAULTS_MAX && o->drift_ppm < 1000000 && o->watchers <= LAB_WATCHERS_MAX;
    for (unsigned i = 0; ok && i < o->faults; i++) {
        const struct lab_fault *f = &o->fault[i];
        ok = (unsigned)f->kind < LAB_FAULT_KINDS && f->worker <= links &&
             f->workers <= links - f->worker && f->shard <= lab->shards &&
             f->shards <= lab->shards - f->shard;
    }
    return ok;
}

enum err chaos_lab_run(const struct chaos_options *options, struct chaos_result *out)
{
    static const struct lab_hooks hooks = {
        .open = open_world,
        .start = chaos_start,
        .begin = begin,
        .end = chaos_drain,
        .close = close_world,
        .event = take_event,
        .passes = chaos_passes,
        .open_core = chaos_open_core,
        .deliver = deliver,
        .equip = equip,
        .resume = chaos_resume,
        .clock_us = clock_us,
        .posted = chaos_check_post,
        .idle = chaos_probe,
    };
    struct lab_options lab = options->lab;
    struct chaos_world *c = calloc(1, sizeof *c);
    if (c == NULL) {
        return ERR_NOMEM;
    }
    c->options = *options;
    lab.hooks = &hooks;
    lab.context = c;
    lab.guests = options->watchers;
    const enum err err = are_valid(options) ? lab_run(&lab, &c->result.lab) : ERR_RANGE;
    if (err == ERR_OK) {
        *out = c->result;
    }
    free(c);
    return err;
}
