#include "worker/lab/world.h"

#include "common/rng.h"
#include "worker/lab/lab_dealer.h"
#include "worker/lab/lab_intruder.h"
#include "worker/lab/lab_liar.h"
#include "worker/lab/lab_link.h"
#include "worker/lab/lab_service.h"
#include "worker/lab/lab_shard.h"
#include "worker/lab/lab_worker.h"

#include <stdlib.h>

/* ---- starts ---- */

enum err lab_start(struct lab *lab, unsigned who)
{
    const bool is_shard = who >= lab->programs;
    const unsigned shard = is_shard ? who - lab->programs : 0;
    const enum err err = is_shard ? lab_shard_start(lab, shard) : lab_worker_start(lab, who);
    const bool lacks_memory = err == ERR_NOMEM && lab->want.ppm > 0 && !lab->ended;
    const bool is_put_off = lacks_memory || (err == ERR_IO && is_shard);
    *(is_shard ? &lab->shard[shard].is_put_off : &lab->worker[who].is_put_off) = is_put_off;
    if (!is_put_off) {
        return err;
    }
    /* Somebody watches over it, and starts it again. */
    uint64_t after_ns = lab->options.heartbeat_ms * UINT64_C(1000000);
    after_ns += rng_next(&lab->want.random) % (2 * after_ns);
    lab->result.starts_failed++;
    lab_heap_push(
        &lab->heap,
        (struct lab_event){.time_ns = lab->now_ns + after_ns, .kind = LAB_AGAIN, .who = who});
    return ERR_OK;
}

static void start_again(struct lab *lab, unsigned who)
{
    if (who >= lab->programs ? lab->shard[who - lab->programs].is_put_off
                             : lab->worker[who].is_put_off) {
        CHECK(lab_start(lab, who) == ERR_OK);
    }
}

/* ---- faults ---- */

static bool is_kill(const struct lab_fault *f)
{
    return f->kind == LAB_KILL || f->kind == LAB_UPGRADE;
}

/* True: no other fault of its kind is upon the victim, so that this one changes it. */
static bool changes(struct lab *lab, const struct lab_fault *f, bool begins,
                    struct lab_faults *victim)
{
    unsigned *count = is_kill(f) ? &victim->kills : &victim->stalls;
    bool is_only = begins ? (*count)++ == 0 : --*count == 0;
    lab->result.faults[f->kind] += begins && is_only;
    lab->result.restarts += !begins && is_only && is_kill(f);
    return is_only;
}

/* True: it hits machines, with all that runs there. A kill does not hit that of the first
 * front-end.
 */
static bool is_hit(struct lab *lab, const struct lab_fault *f, unsigned worker)
{
    const struct lab_host *host = lab_host_of(lab, worker);
    if (f->kind == LAB_STALL) {
        return worker - f->worker < f->workers;
    }
    for (unsigned i = 0; i < f->workers; i++) {
        if (lab_host_of(lab, f->worker + i) == host) {
            return !is_kill(f) || host != lab_host_of(lab, 0);
        }
    }
    return false;
}

/* Of each thread of a host, whose clock is one. */
static void change_clock(const struct lab *lab, const struct lab_fault *f, bool begins,
                         struct lab_clock *clock)
{
    if (f->kind == LAB_SUSPEND && begins) {
        lab_clock_suspend(clock, lab->now_ns);
    } else if (f->kind == LAB_SUSPEND) {
        lab_clock_resume(clock, lab->now_ns);
    }
}

static void change_worker(struct lab *lab, const struct lab_fault *f, bool begins, unsigned index)
{
    struct lab_worker *w = &lab->worker[index];
    if (f->kind == LAB_UPGRADE && begins) {
        lab_host_of(lab, index)->version = (uint32_t)f->amount;
    }
    change_clock(lab, f, begins, &lab_host_of(lab, index)->clock);
    if (f->kind == LAB_SUSPEND && !begins) {
        lab_worker_resume(w);
    }
    if (!changes(lab, f, begins, &w->faults)) {
        return;
    }
    if (is_kill(f) && begins) {
        w->is_put_off = false;
        if (f->kind == LAB_UPGRADE) {
            lab_worker_say_bye(w);
        }
        lab_worker_kill(w);
    } else if (is_kill(f)) {
        CHECK(lab_start(lab, index) == ERR_OK);
    } else if (!begins) {
        lab_worker_unstall(w);
    }
}

static void change_shard(struct lab *lab, const struct lab_fault *f, bool begins, unsigned index)
{
    if (f->kind == LAB_UPGRADE && begins) {
        lab->shard[index].version = (uint32_t)f->amount;
    }
    change_clock(lab, f, begins, &lab->shard[index].clock);
    if (f->kind == LAB_SUSPEND && !begins) {
        lab_shard_catch_up(lab, index);
    }
    if (!changes(lab, f, begins, &lab->shard[index].faults)) {
        return;
    }
    if (is_kill(f) && begins) {
        lab->shard[index].is_put_off = false;
        if (f->kind == LAB_UPGRADE) {
            lab_shard_say_bye(lab, index);
        }
        lab_shard_kill(lab, index, false);
    } else if (is_kill(f)) {
        CHECK(lab_start(lab, lab->programs + index) == ERR_OK);
    } else if (!begins) {
        lab_shard_unstall(lab, index);
    }
}

static void change_victims(struct lab *lab, const struct lab_fault *f, bool begins)
{
    for (unsigned i = 0; i < lab->programs; i++) { /* watchers are suspended with their host */
        if (is_hit(lab, f, i)) {
            change_worker(lab, f, begins, i);
        }
    }
    for (unsigned i = 0; i < f->shards; i++) {
        change_shard(lab, f, begins, f->shard + i);
    }
}

/* Nothing else happens to them. */
static void jump(struct lab *lab, const struct lab_fault *f)
{
    for (unsigned i = 0; i < lab->machines; i++) {
        if (is_hit(lab, f, i) && lab_place_of(lab, i) % lab->options.threads == 0) {
            lab_host_of(lab, i)->clock.wall_ns += (int64_t)f->amount;
            lab->result.faults[f->kind]++;
        }
    }
    for (unsigned i = 0; i < f->shards; i++) {
        lab->shard[f->shard + i].clock.wall_ns += (int64_t)f->amount;
        lab->result.faults[f->kind]++;
    }
}

static void count_the_dead(struct lab *lab)
{
    unsigned workers = 0, shards = 0;
    for (unsigned i = 1; i < lab->machines; i++) {
        workers += lab->worker[i].alive;
    }
    for (unsigned i = 0; i < lab->options.shards; i++) {
        shards += lab->shard[i].alive;
    }
    lab->result.all_workers_dead += lab->machines > 1 && workers == 0;
    lab->result.all_shards_dead += shards == 0;
}

/* Of connections; without them it does nothing. */
static void change_pair(struct lab *lab, const struct lab_fault *f, bool begins, unsigned worker,
                        unsigned shard)
{
    struct lab_worker *w = &lab->worker[worker];
    struct lab_stream *s = w->alive ? w->dealer[shard].stream : NULL;
    if (f->kind == LAB_DEAF && !begins) {
        lab_dealers_go_on(w);
    } else if (f->kind == LAB_RESET && begins && s != NULL) {
        lab_stream_reset(s);
    } else if (f->kind == LAB_HALF_OPEN && begins && s != NULL) {
        s->is_dead = true;
    }
}

static void change_pairs(struct lab *lab, const struct lab_fault *f, bool begins)
{
    for (unsigned i = 0; lab->net != NULL && i < f->workers * f->shards; i++) {
        change_pair(lab, f, begins, f->worker + i / f->shards, f->shard + i % f->shards);
    }
}

static void begin_fault(struct lab *lab, unsigned number)
{
    const struct lab_fault *f = &lab->options.fault[number];
    lab->active[number] = true;
    if (lab_fault_is_of_links(f)) {
        lab->links++;
        lab->result.faults[f->kind] += f->workers * f->shards;
        change_pairs(lab, f, true);
    } else if (f->kind == LAB_JUMP) {
        jump(lab, f);
    } else {
        change_victims(lab, f, true);
        count_the_dead(lab);
    }
    if (f->lasts_ns < LAB_FOR_EVER) {
        lab_heap_push(&lab->heap, (struct lab_event){.time_ns = lab->now_ns + f->lasts_ns,
                                                     .kind = LAB_REPAIR,
                                                     .who = number});
    }
}

static void end_fault(struct lab *lab, unsigned number)
{
    const struct lab_fault *f = &lab->options.fault[number];
    if (!lab->active[number]) {
        return;
    }
    lab->active[number] = false;
    if (lab_fault_is_of_links(f)) {
        lab->links--;
        change_pairs(lab, f, false);
    } else if (f->kind != LAB_JUMP) {
        change_victims(lab, f, false);
    }
}

void lab_faults_schedule(struct lab *lab)
{
    for (unsigned i = 0; i < lab->options.faults; i++) {
        lab_heap_push(&lab->heap, (struct lab_event){.time_ns = lab->options.fault[i].at_ns,
                                                     .kind = LAB_FAULT,
                                                     .who = i});
    }
}

void lab_faults_heal(struct lab *lab)
{
    for (unsigned i = 0; i < lab->options.faults; i++) {
        const struct lab_fault *f = &lab->options.fault[i];
        if (f->kind != LAB_KILL || f->lasts_ns < LAB_FOR_EVER) {
            end_fault(lab, i);
        }
    }
    for (unsigned i = 0; i < lab->programs + lab->options.shards; i++) {
        start_again(lab, i);
    }
}

/* ---- events ---- */

static void record(struct lab *lab, const struct lab_event *e)
{
    struct lab_result *r = &lab->result;
    uint64_t what = e->time_ns ^ (uint64_t)e->kind << 56 ^ (uint64_t)e->who << 32;
    if (e->packet != NULL && e->kind == LAB_STREAM && lab->net->has_keys) {
        what ^= (uint64_t)e->packet->length << 24; /* what is sealed is so by random keys */
    } else if (e->packet != NULL) {
        for (uint32_t i = 0; i < e->packet->length; i++) {
            what = (what ^ e->packet->bytes[i]) * UINT64_C(0x100000001b3);
        }
    }
    r->trace = rng_mix(r->trace ^ what);
    r->events++;
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

static void act(struct lab *lab, struct lab_event *e)
{
    struct lab_worker *w = e->kind == LAB_STREAM ? NULL : &lab->worker[e->who];
    switch (e->kind) {
    case LAB_WAKE:
        if (w->alive && w->epoch == e->epoch) {
            lab_worker_wake(w);
        }
        break;
    case LAB_TO_WORKER:
        lab_worker_receive(w, e->packet, e->epoch);
        break;
    case LAB_TO_PEER:
        lab_worker_receive_letter(w, e->packet);
        break;
    case LAB_TO_SHARD:
        if (lab->shard[e->who].incarnation == e->epoch) {
            lab_shard_receive(lab, e->who, e->packet);
        } else {
            free(e->packet); /* its connection went with the shard that died */
        }
        break;
    case LAB_TICK:
        lab_shard_tick(lab, e->who, e->epoch);
        break;
    case LAB_FAULT:
        if (!lab->ended) {
            begin_fault(lab, e->who);
        }
        break;
    case LAB_REPAIR:
        end_fault(lab, e->who);
        break;
    case LAB_AGAIN:
        start_again(lab, e->who);
        break;
    case LAB_LIE:
        lab_liar_act(lab);
        if (lab->net != NULL) {
            lab_intruder_act(lab);
        }
        break;
    case LAB_STREAM:
        take_segment(lab, e);
        break;
    case LAB_TURN:
        if (lab->shard[e->who].incarnation == e->epoch) {
            lab_service_turn(lab, e->who);
        }
        break;
    case LAB_DIAL:
        lab_dealer_dial(w, e->epoch);
        break;
    case LAB_KEEP:
        lab_shard_keep(lab, e->who, e->epoch);
        break;
    }
}

void lab_run_until(struct lab *lab, uint64_t until_ns, bool to_end)
{
    struct lab_event e;
    while (!(to_end && lab->ended) && lab->heap.count > 0 && lab->heap.at[0].time_ns <= until_ns &&
           lab_heap_pop(&lab->heap, &e)) {
        lab->now_ns = e.time_ns;
        record(lab, &e);
        act(lab, &e);
    }
}
