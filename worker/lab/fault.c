#include "worker/lab/fault.h"

#include "worker/lab/lab_worker.h"
#include "worker/lab/link.h"
#include "worker/lab/shard.h"

void lab_faults_schedule(struct lab *lab)
{
    for (unsigned i = 0; i < lab->options.faults; i++) {
        lab_heap_push(&lab->heap, (struct lab_event){.time_ns = lab->options.fault[i].at_ns,
                                                     .kind = LAB_FAULT,
                                                     .who = i});
    }
}

/* ---- kill and stall ---- */

static void hit_worker(struct lab *lab, const struct lab_fault *f, unsigned index)
{
    struct lab_worker *w = &lab->worker[index];
    if (f->kind == LAB_STALL) {
        lab->result.faults[LAB_STALL] += w->stalls++ == 0;
    } else if (index != 0 && w->kills++ == 0) {
        lab_worker_kill(w);
        lab->result.faults[LAB_KILL]++;
    }
}

static void hit_shard(struct lab *lab, const struct lab_fault *f, unsigned index)
{
    struct lab_shard *s = &lab->shard[index];
    if (f->kind == LAB_STALL) {
        lab->result.faults[LAB_STALL] += s->stalls++ == 0;
    } else if (s->kills++ == 0) {
        lab_shard_kill(lab, index);
        lab->result.faults[LAB_KILL]++;
    }
}

static void spare_worker(struct lab *lab, const struct lab_fault *f, unsigned index)
{
    struct lab_worker *w = &lab->worker[index];
    if (f->kind == LAB_STALL && --w->stalls == 0) {
        lab_worker_unstall(w);
    } else if (f->kind == LAB_KILL && index != 0 && --w->kills == 0) {
        CHECK(lab_worker_start(lab, index) == ERR_OK);
        lab->result.restarts++;
    }
}

static void spare_shard(struct lab *lab, const struct lab_fault *f, unsigned index)
{
    struct lab_shard *s = &lab->shard[index];
    if (f->kind == LAB_STALL && --s->stalls == 0) {
        lab_shard_unstall(lab, index);
    } else if (f->kind == LAB_KILL && --s->kills == 0) {
        CHECK(lab_shard_start(lab, index) == ERR_OK);
        lab->result.restarts++;
    }
}

typedef void hit_fn(struct lab *lab, const struct lab_fault *f, unsigned index);

static void all_of(struct lab *lab, const struct lab_fault *f, hit_fn *worker, hit_fn *shard)
{
    for (unsigned i = 0; i < f->workers; i++) {
        worker(lab, f, f->worker + i);
    }
    for (unsigned i = 0; i < f->shards; i++) {
        shard(lab, f, f->shard + i);
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

/* ---- beginning and end ---- */

void lab_fault_begin(struct lab *lab, unsigned number)
{
    const struct lab_fault *f = &lab->options.fault[number];
    lab->active[number] = true;
    if (lab_fault_is_of_links(f)) {
        lab->links++;
        lab->result.faults[f->kind] += f->workers * f->shards;
    } else {
        all_of(lab, f, hit_worker, hit_shard);
        count_the_dead(lab);
    }
    if (f->lasts_ns < LAB_FOR_EVER) {
        lab_heap_push(&lab->heap, (struct lab_event){.time_ns = lab->now_ns + f->lasts_ns,
                                                     .kind = LAB_REPAIR,
                                                     .who = number});
    }
}

void lab_fault_end(struct lab *lab, unsigned number)
{
    const struct lab_fault *f = &lab->options.fault[number];
    if (!lab->active[number]) {
        return;
    }
    lab->active[number] = false;
    if (lab_fault_is_of_links(f)) {
        lab->links--;
    } else {
        all_of(lab, f, spare_worker, spare_shard);
    }
}

void lab_faults_heal(struct lab *lab)
{
    for (unsigned i = 0; i < lab->options.faults; i++) {
        const struct lab_fault *f = &lab->options.fault[i];
        if (f->kind != LAB_KILL || f->lasts_ns < LAB_FOR_EVER) {
            lab_fault_end(lab, i);
        }
    }
}
