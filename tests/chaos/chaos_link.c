#include "tests/chaos/chaos_link.h"

#include "common/rng.h"

static bool covers(const struct lab_fault *f, unsigned worker, unsigned shard, enum lab_way way)
{
    return worker - f->worker < f->workers && shard - f->shard < f->shards && (f->ways & way) != 0;
}

static bool is_upon(const struct lab *lab, enum lab_fault_kind kind, unsigned worker,
                    unsigned shard, enum lab_way way)
{
    const struct chaos_world *c = chaos_of(lab);
    for (unsigned i = 0; c->links > 0 && i < c->options.faults; i++) {
        const struct lab_fault *f = &c->options.fault[i];
        if (c->active[i] && f->kind == kind && covers(f, worker, shard, way)) {
            return true;
        }
    }
    return false;
}

bool lab_is_cut(const struct lab *lab, unsigned worker, unsigned shard, enum lab_way way)
{
    return is_upon(lab, LAB_CUT, worker, shard, way);
}

bool lab_is_deaf(const struct lab *lab, unsigned worker, unsigned shard)
{
    return is_upon(lab, LAB_DEAF, worker, shard, LAB_BOTH_WAYS);
}

bool chaos_passes(struct lab *lab, unsigned worker, unsigned shard, enum lab_way way,
                  uint64_t *delay_ns)
{
    const struct chaos_world *c = chaos_of(lab);
    bool lost = false;
    for (unsigned i = 0; c->links > 0 && i < c->options.faults; i++) {
        const struct lab_fault *f = &c->options.fault[i];
        if (c->active[i] && covers(f, worker, shard, way)) {
            lost |= f->kind == LAB_CUT ||
                    (f->kind == LAB_LOSS && rng_below(&lab->random, 1000000) < f->amount);
            *delay_ns += f->kind == LAB_DELAY ? f->amount : 0;
        }
    }
    return !lost;
}
