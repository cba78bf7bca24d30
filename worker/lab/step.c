#include "worker/lab/step.h"

#include "common/rng.h"
#include "worker/lab/fault.h"
#include "worker/lab/lab_worker.h"
#include "worker/lab/shard.h"

#include <stdlib.h>

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
    struct lab_worker *w = &lab->worker[e->who];
    switch (e->kind) {
    case LAB_WAKE:
        if (w->alive && w->epoch == e->epoch) {
            lab_worker_wake(w);
        }
        break;
    case LAB_TO_WORKER:
        lab_worker_receive(w, e->packet, e->epoch);
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
            lab_fault_begin(lab, e->who);
        }
        break;
    case LAB_REPAIR:
        lab_fault_end(lab, e->who);
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
