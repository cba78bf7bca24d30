#include "worker/lab/lab.h"

#include "common/rng.h"
#include "worker/lab/world.h"

#include <stdlib.h>
#include <string.h>

enum { HEARTBEAT_MS = 1000, INFLIGHT_AGE_MAX_MS = 60000, CONNECT_MS = 50 };

static bool is_valid(const struct lab_fault *f, const struct lab_options *o)
{
    return (unsigned)f->kind < LAB_FAULT_KINDS && f->processor + f->processors <= o->workers &&
           f->shard + f->shards <= o->shards && f->processors <= o->workers &&
           f->shards <= o->shards;
}

static bool are_valid(const struct lab_options *o)
{
    bool ok = o->workers >= 1 && o->workers <= LAB_WORKERS_MAX && o->shards >= 1 &&
              o->shards <= LAB_SHARDS_MAX && o->node_ns >= 1 && o->faults <= LAB_FAULTS_MAX &&
              o->loss_ppm <= 1000000;
    for (unsigned i = 0; ok && i < o->faults; i++) {
        ok = is_valid(&o->fault[i], o);
    }
    return ok;
}

static void set_default(uint32_t *value, uint32_t usual)
{
    *value = *value != 0 ? *value : usual;
}

static void record(struct lab *lab, const struct lab_event *e)
{
    struct lab_result *r = &lab->result;
    uint64_t what = e->time_ns ^ (uint64_t)e->kind << 56 ^ (uint64_t)e->who << 32;
    if (e->packet != NULL) {
        for (uint32_t i = 0; i < e->packet->length; i++) {
            what = (what ^ e->packet->bytes[i]) * UINT64_C(0x100000001b3);
        }
    }
    r->trace = rng_mix(r->trace ^ what);
    r->events++;
}

static void act(struct lab *lab, struct lab_event *e)
{
    struct lab_worker *p = &lab->processor[e->who];
    switch (e->kind) {
    case LAB_WAKE:
        if (p->alive && p->epoch == e->epoch) {
            lab_worker_wake(p);
        }
        break;
    case LAB_TO_WORKER:
        lab_worker_take(p, e->packet, e->epoch);
        break;
    case LAB_TO_SHARD:
        if (lab->shard[e->who].incarnation == e->epoch) {
            lab_shard_take(lab, e->who, e->packet);
        } else {
            free(e->packet); /* its connection went with the shard that died */
        }
        break;
    case LAB_TICK:
        lab_shard_tick(lab, e->who, e->epoch);
        break;
    case LAB_FAULT:
        if (!lab->ended) {
            lab_fault_begin(lab, e->who);
        }
        break;
    case LAB_REPAIR:
        lab_fault_end(lab, e->who);
        break;
    }
}

void lab_run_until(struct lab *lab, uint64_t until_ns, bool to_answer)
{
    struct lab_event e;
    while (!(to_answer && lab->ended) && lab->heap.count > 0 &&
           lab->heap.at[0].time_ns <= until_ns && lab_heap_pop(&lab->heap, &e)) {
        lab->now_ns = e.time_ns;
        record(lab, &e);
        act(lab, &e);
    }
}

static enum err build(struct lab *lab)
{
    const struct lab_options *o = &lab->options;
    lab->decoder = malloc(sizeof *lab->decoder);
    lab->processor = calloc(o->workers, sizeof *lab->processor);
    lab->shard = calloc(o->shards, sizeof *lab->shard);
    if (lab->decoder == NULL || lab->processor == NULL || lab->shard == NULL) {
        return ERR_NOMEM;
    }
    enum err err = ttcore_actions_open(&lab->actions, 2 * o->workers + 16, 4);
    for (unsigned i = 0; i < o->shards && err == ERR_OK; i++) {
        err = lab_shard_start(lab, i);
    }
    for (unsigned i = 0; i < o->workers && err == ERR_OK; i++) {
        err = lab_worker_start(lab, i);
    }
    return err;
}

static void tear_down(struct lab *lab)
{
    for (unsigned i = 0; lab->processor != NULL && i < lab->options.workers; i++) {
        lab_worker_kill(&lab->processor[i]);
    }
    for (unsigned i = 0; lab->shard != NULL && i < lab->options.shards; i++) {
        lab_shard_kill(lab, i);
    }
    ttcore_actions_close(&lab->actions);
    lab_heap_close(&lab->heap);
    free(lab->decoder);
    free(lab->processor);
    free(lab->shard);
}

enum err lab_run(const struct lab_options *options, struct lab_result *out)
{
    struct lab *lab = calloc(1, sizeof *lab);
    if (lab == NULL) {
        return ERR_NOMEM;
    }
    lab->options = *options;
    if (!are_valid(&lab->options)) {
        free(lab);
        return ERR_RANGE;
    }
    set_default(&lab->options.heartbeat_ms, HEARTBEAT_MS);
    set_default(&lab->options.inflight_age_max_ms, INFLIGHT_AGE_MAX_MS);
    set_default(&lab->options.connect_ms, CONNECT_MS);
    lab->random = rng_mix(options->seed ^ UINT64_C(0x17e7));
    lab->planted = rng_mix(options->seed ^ UINT64_C(0x91a27));
    enum err err = build(lab);
    if (err == ERR_OK) {
        lab_faults_schedule(lab);
        lab_run_until(lab, options->limit_ns, true);
        lab->ended = true;
        if (options->drain) {
            lab_drain(lab);
        }
    }
    tear_down(lab); /* sums what the processors counted */
    if (err == ERR_OK) {
        *out = lab->result;
    }
    free(lab);
    return err;
}
