#include "common/rng.h"
#include "worker/lab/world.h"

static bool is_of_links(const struct lab_fault *f)
{
    return f->kind == LAB_CUT || f->kind == LAB_DELAY || f->kind == LAB_LOSS;
}

static bool covers(const struct lab_fault *f, unsigned processor, unsigned shard, enum lab_way way)
{
    return processor - f->processor < f->processors && shard - f->shard < f->shards &&
           (f->ways & way) != 0;
}

void lab_faults_schedule(struct lab *lab)
{
    for (unsigned i = 0; i < lab->options.faults; i++) {
        lab_heap_push(&lab->heap, (struct lab_event){.time_ns = lab->options.fault[i].at_ns,
                                                     .kind = LAB_FAULT,
                                                     .who = i});
    }
}

/* ---- on the way ---- */

bool lab_is_cut(const struct lab *lab, unsigned processor, unsigned shard, enum lab_way way)
{
    for (unsigned i = 0; lab->links > 0 && i < lab->options.faults; i++) {
        const struct lab_fault *f = &lab->options.fault[i];
        if (lab->active[i] && f->kind == LAB_CUT && covers(f, processor, shard, way)) {
            return true;
        }
    }
    return false;
}

static bool happens(struct lab *lab, uint64_t ppm)
{
    return ppm > 0 && rng_below(&lab->random, 1000000) < ppm;
}

struct lab_passage lab_pass(struct lab *lab, unsigned processor, unsigned shard, enum lab_way way)
{
    const struct lab_options *o = &lab->options;
    struct lab_passage passage = {.lost = !lab->ended && happens(lab, o->loss_ppm)};
    passage.delay_ns = o->jitter_ns ? rng_next(&lab->random) % (o->jitter_ns + 1) : 0;
    passage.delay_ns += o->rtt_ns / 2;
    for (unsigned i = 0; lab->links > 0 && i < o->faults; i++) {
        const struct lab_fault *f = &o->fault[i];
        if (lab->active[i] && covers(f, processor, shard, way)) {
            passage.lost |= f->kind == LAB_CUT || (f->kind == LAB_LOSS && happens(lab, f->amount));
            passage.delay_ns += f->kind == LAB_DELAY ? f->amount : 0;
        }
    }
    lab->result.lost += passage.lost;
    return passage;
}

/* ---- kill and stall ---- */

static void hit_processor(struct lab *lab, const struct lab_fault *f, unsigned index)
{
    struct lab_worker *p = &lab->processor[index];
    if (f->kind == LAB_STALL) {
        lab->result.faults[LAB_STALL] += p->stalls++ == 0;
    } else if (index != 0 && p->kills++ == 0) { /* without the front-end there is no question */
        lab_worker_kill(p);
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

static void spare_processor(struct lab *lab, const struct lab_fault *f, unsigned index)
{
    struct lab_worker *p = &lab->processor[index];
    if (f->kind == LAB_STALL && --p->stalls == 0) {
        lab_worker_unstall(p);
    } else if (f->kind == LAB_KILL && index != 0 && --p->kills == 0) {
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

static void all_of(struct lab *lab, const struct lab_fault *f, hit_fn *processor, hit_fn *shard)
{
    for (unsigned i = 0; i < f->processors; i++) {
        processor(lab, f, f->processor + i);
    }
    for (unsigned i = 0; i < f->shards; i++) {
        shard(lab, f, f->shard + i);
    }
}

static void count_the_dead(struct lab *lab)
{
    unsigned workers = 0, shards = 0;
    for (unsigned i = 1; i < lab->options.workers; i++) {
        workers += lab->processor[i].alive;
    }
    for (unsigned i = 0; i < lab->options.shards; i++) {
        shards += lab->shard[i].alive;
    }
    lab->result.all_workers_dead += lab->options.workers > 1 && workers == 0;
    lab->result.all_shards_dead += shards == 0;
}

/* ---- beginning and end ---- */

void lab_fault_begin(struct lab *lab, unsigned number)
{
    const struct lab_fault *f = &lab->options.fault[number];
    lab->active[number] = true;
    if (is_of_links(f)) {
        lab->links++;
        lab->result.faults[f->kind] += f->processors * f->shards;
    } else {
        all_of(lab, f, hit_processor, hit_shard);
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
    if (is_of_links(f)) {
        lab->links--;
    } else {
        all_of(lab, f, spare_processor, spare_shard);
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
