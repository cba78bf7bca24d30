#include "tests/chaos/chaos_faults.h"

#include "common/rng.h"
#include "tests/chaos/chaos_link.h"
#include "tests/chaos/chaos_planted.h"
#include "tests/chaos/lab_dealer.h"
#include "tests/chaos/lab_keep.h"
#include "tests/chaos/lab_liar.h"
#include "tests/chaos/lab_service.h"
#include "tests/chaos/lab_watcher.h"

#include <stdlib.h>

enum { FOR_EVER_MS = UINT32_MAX / 8 };

/* ---- starts ---- */

/* The first front-end is never the victim. */
static struct lab_want *want_of(const struct lab *lab, unsigned who)
{
    return lab->ended || who == 0 ? NULL : &chaos_of(lab)->want;
}

static enum err start_program(struct lab *lab, unsigned who)
{
    struct chaos_world *c = chaos_of(lab);
    struct lab_worker *w = &lab->worker[who];
    c->program[who] = (struct chaos_program){.faults = c->program[who].faults};
    (void)lab_want_set(want_of(lab, who));
    const enum err err = lab_worker_start(lab, who);
    (void)lab_want_set(NULL);
    if (err == ERR_OK) {
        if (c->net != NULL) {
            lab_dealers_open(w);
        }
        lab_worker_wake_at(w, lab->now_ns);
    } else {
        w->host = c->options.planted.half_made ? NULL : w->host;
        chaos_kill(w);
    }
    return err;
}

enum err chaos_start(struct lab *lab, unsigned who)
{
    struct chaos_world *c = chaos_of(lab);
    const bool is_shard = who >= lab->programs;
    const unsigned shard = is_shard ? who - lab->programs : 0;
    const enum err err = is_shard ? lab_shard_start(lab, shard) : start_program(lab, who);
    const bool lacks_memory = err == ERR_NOMEM && c->want.ppm > 0 && !lab->ended;
    const bool is_put_off = lacks_memory || (err == ERR_IO && is_shard);
    *(is_shard ? &c->shard[shard].is_put_off : &c->program[who].is_put_off) = is_put_off;
    if (!is_put_off) {
        return err;
    }
    /* Somebody watches over it, and starts it again. */
    uint64_t after_ns = lab->options.heartbeat_ms * UINT64_C(1000000);
    after_ns += rng_next(&c->want.random) % (2 * after_ns);
    c->result.starts_failed++;
    lab_heap_push(
        &lab->heap,
        (struct lab_event){.time_ns = lab->now_ns + after_ns, .kind = LAB_AGAIN, .who = who});
    return ERR_OK;
}

void chaos_start_again(struct lab *lab, unsigned who)
{
    const struct chaos_world *c = chaos_of(lab);
    if (who >= lab->programs ? c->shard[who - lab->programs].is_put_off
                             : c->program[who].is_put_off) {
        CHECK(chaos_start(lab, who) == ERR_OK);
    }
}

static void schedule_keep(struct lab *lab, unsigned shard, uint64_t at_ns)
{
    if (chaos_of(lab)->shard[shard].keep.disk != NULL) {
        lab_heap_push(&lab->heap, (struct lab_event){.time_ns = at_ns,
                                                     .kind = LAB_KEEP,
                                                     .who = shard,
                                                     .epoch = lab->shard[shard].incarnation});
    }
}

enum err chaos_open_core(struct lab *lab, unsigned shard, struct ttcore_options *options)
{
    struct chaos_world *c = chaos_of(lab);
    struct chaos_shard *s = &c->shard[shard];
    enum err err;
    if (c->options.planted.never_expire_sessions) {
        options->heartbeat_ms = FOR_EVER_MS;
    }
    if (c->options.planted.never_expire) {
        options->inflight_age_max_ms = FOR_EVER_MS;
    }
    if (!lab_keep_start(lab, shard, options)) {
        return ERR_IO;
    }
    if (c->net != NULL) {
        err = lab_service_open(lab, shard, options);
    } else {
        struct lab_want *outer = lab_want_set(lab->ended ? NULL : &c->want);
        err = ttcore_open(&lab->shard[shard].core, options);
        (void)lab_want_set(outer);
    }
    if (err == ERR_OK) {
        struct ttcore_figures f;
        ttcore_figures(lab->shard[shard].core, &f);
        s->memory_bytes = f.memory_bytes;
        lab_keep_fill(lab, shard);
        schedule_keep(lab, shard, lab->now_ns + c->options.keep_ns);
    } else {
        lab_keep_give_up(lab, shard);
    }
    for (unsigned i = 0; i < lab->programs; i++) { /* it never knew them */
        c->program[i].lossy &= ~(UINT64_C(1) << shard);
    }
    return err;
}

void chaos_keep(struct lab *lab, unsigned shard, uint32_t incarnation)
{
    const struct lab_shard *s = &lab->shard[shard];
    if (s->alive && s->incarnation == incarnation) {
        /* What would have been written while it stands still, is later. */
        const bool is_still = chaos_of(lab)->shard[shard].faults.stalls > 0;
        const uint64_t beat_ns = (uint64_t)lab->options.heartbeat_ms * 1000000;
        schedule_keep(lab, shard, is_still ? lab->now_ns + beat_ns : lab_keep_write(lab, shard));
    }
}

/* ---- ends ---- */

void chaos_kill(struct lab_worker *w)
{
    lab_dealers_close(w);
    lab_worker_kill(w);
    lab_watcher_close(w);
    program_of(w)->is_postponed = false;
}

void chaos_kill_shard(struct lab *lab, unsigned shard, bool loses_power)
{
    struct chaos_world *c = chaos_of(lab);
    struct lab_shard *s = &lab->shard[shard];
    if (s->alive) {
        lab_keep_kill(lab, shard, loses_power);
        const struct ttcore_figures f = lab_shard_figures(lab, shard);
        c->result.expired_sessions += f.sessions_expired;
        c->result.grown += f.memory_bytes != c->shard[shard].memory_bytes || f.dropped > 0;
    }
    s->alive = false;
    lab_service_close(lab, shard);
    lab_shard_kill(lab, shard);
    lab_queue_free(&c->shard[shard].backlog);
}

/* To all sessions, as before it ends in good order; nothing if it stands still or is dead. */
static void say_bye(struct lab *lab, unsigned shard)
{
    const struct ttcore_event event = {.kind = TTCORE_STOP,
                                       .now_us = lab_shard_us(lab, shard, lab->now_ns)};
    if (lab_net_of(lab) != NULL) {
        lab_service_dismiss(lab, shard);
    } else if (lab->shard[shard].alive && chaos_of(lab)->shard[shard].faults.stalls == 0) {
        (void)lab_shard_step(lab, shard, &event, lab->now_ns);
    }
}

/* ---- who stands still ---- */

void chaos_resume(struct lab_worker *w)
{
    struct chaos_program *p = program_of(w);
    if (p->faults.stalls > 0) {
        p->is_postponed = true;
        return;
    }
    (void)lab_want_set(w->worker != NULL ? want_of(w->lab, w->index) : NULL);
    fiber_resume(w->fiber);
    (void)lab_want_set(NULL);
}

static void go_on(struct lab_worker *w)
{
    struct chaos_program *p = program_of(w);
    if (w->alive && p->is_postponed) {
        p->is_postponed = false;
        lab_worker_wake_at(w, w->lab->now_ns);
    }
    lab_dealers_go_on(w);
}

/* A packet arrives at a shard that lives and is not cut off; false: it is gone. */
static bool reaches(struct lab *lab, unsigned shard, struct lab_packet *packet)
{
    lab_liar_overhear(lab, packet->from, packet->bytes, packet->length);
    if (chaos_planted_at_shard(lab, shard, packet)) {
        free(packet);
        return false;
    }
    return true;
}

bool chaos_shard_misses(struct lab *lab, unsigned shard, uint32_t incarnation,
                        struct lab_packet *packet)
{
    struct chaos_world *c = chaos_of(lab);
    struct chaos_shard *s = &c->shard[shard];
    if (lab->shard[shard].incarnation != incarnation) {
        return false;
    }
    const bool lost = lab_is_cut(lab, packet->from, shard, LAB_TO_SHARDS);
    if (lab->worker[packet->from].incarnation == packet->epoch) {
        c->program[packet->from].lossy |= (uint64_t)lost << shard;
    }
    lab->result.lost += lost;
    if (lost || !lab->shard[shard].alive) {
        free(packet);
        return true;
    }
    if (s->faults.stalls > 0) {
        lab_queue_put(&s->backlog, packet);
        return true;
    }
    return !reaches(lab, shard, packet);
}

static void serve_backlog(struct lab *lab, unsigned shard)
{
    struct chaos_shard *s = &chaos_of(lab)->shard[shard];
    if (lab_net_of(lab) != NULL) {
        lab_service_turn(lab, shard);
    }
    for (struct lab_packet *packet; (packet = lab_queue_take(&s->backlog)) != NULL;) {
        if (reaches(lab, shard, packet)) {
            lab_shard_receive(lab, shard, packet);
        }
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
    chaos_of(lab)->result.faults[f->kind] += begins && is_only;
    chaos_of(lab)->result.restarts += !begins && is_only && is_kill(f);
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

/* Changes the clock of each thread of a host, whose clock is one. */
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
    struct chaos_program *p = &chaos_of(lab)->program[index];
    change_clock(lab, f, begins, lab_clock_of(lab, index));
    if (f->kind == LAB_SUSPEND && !begins) {
        lab_worker_rebase(w, lab->now_ns);
    }
    if (!changes(lab, f, begins, &p->faults)) {
        return;
    }
    if (is_kill(f) && begins) {
        p->is_put_off = false;
        if (f->kind == LAB_UPGRADE && w->alive && p->faults.stalls == 0) {
            if (lab_worker_ns(w) < lab->now_ns) { /* asleep: its own time is behind */
                lab_worker_rebase(w, lab->now_ns);
            }
            client_bye(remote_client(w->searcher->remote), lab_us(lab, index, lab_worker_ns(w)));
        }
        chaos_kill(w);
    } else if (is_kill(f)) {
        CHECK(chaos_start(lab, index) == ERR_OK);
    } else if (!begins) {
        go_on(w);
    }
}

static void change_shard(struct lab *lab, const struct lab_fault *f, bool begins, unsigned index)
{
    change_clock(lab, f, begins, &chaos_of(lab)->shard[index].clock);
    if (f->kind == LAB_SUSPEND && !begins) {
        lab_shard_catch_up(lab, index);
    }
    if (!changes(lab, f, begins, &chaos_of(lab)->shard[index].faults)) {
        return;
    }
    if (is_kill(f) && begins) {
        chaos_of(lab)->shard[index].is_put_off = false;
        if (f->kind == LAB_UPGRADE) {
            say_bye(lab, index);
        }
        chaos_kill_shard(lab, index, false);
    } else if (is_kill(f)) {
        CHECK(chaos_start(lab, lab->programs + index) == ERR_OK);
    } else if (!begins) {
        serve_backlog(lab, index);
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
            lab_clock_of(lab, i)->wall_ns += (int64_t)f->amount;
            chaos_of(lab)->result.faults[f->kind]++;
        }
    }
    for (unsigned i = 0; i < f->shards; i++) {
        chaos_of(lab)->shard[f->shard + i].clock.wall_ns += (int64_t)f->amount;
        chaos_of(lab)->result.faults[f->kind]++;
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
    chaos_of(lab)->result.all_workers_dead += lab->machines > 1 && workers == 0;
    chaos_of(lab)->result.all_shards_dead += shards == 0;
}

/* Begins or ends a fault of a connection; without connections it does nothing. */
static void change_pair(struct lab *lab, const struct lab_fault *f, bool begins, unsigned worker,
                        unsigned shard)
{
    struct lab_worker *w = &lab->worker[worker];
    struct lab_stream *s = w->alive ? chaos_of(lab)->program[worker].dealer[shard].stream : NULL;
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
    for (unsigned i = 0; lab_net_of(lab) != NULL && i < f->workers * f->shards; i++) {
        change_pair(lab, f, begins, f->worker + i / f->shards, f->shard + i % f->shards);
    }
}

void chaos_begin_fault(struct lab *lab, unsigned number)
{
    const struct lab_fault *f = &chaos_of(lab)->options.fault[number];
    chaos_of(lab)->active[number] = true;
    if (lab_fault_is_of_links(f)) {
        chaos_of(lab)->links++;
        chaos_of(lab)->result.faults[f->kind] += f->workers * f->shards;
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

void chaos_end_fault(struct lab *lab, unsigned number)
{
    const struct lab_fault *f = &chaos_of(lab)->options.fault[number];
    if (!chaos_of(lab)->active[number]) {
        return;
    }
    chaos_of(lab)->active[number] = false;
    if (lab_fault_is_of_links(f)) {
        chaos_of(lab)->links--;
        change_pairs(lab, f, false);
    } else if (f->kind != LAB_JUMP) {
        change_victims(lab, f, false);
    }
}

void chaos_heal(struct lab *lab)
{
    const struct chaos_options *o = &chaos_of(lab)->options;
    for (unsigned i = 0; i < o->faults; i++) {
        if (o->fault[i].kind != LAB_KILL || o->fault[i].lasts_ns < LAB_FOR_EVER) {
            chaos_end_fault(lab, i);
        }
    }
    for (unsigned i = 0; i < lab->programs + lab->options.shards; i++) {
        chaos_start_again(lab, i);
    }
}
