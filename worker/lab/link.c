#include "worker/lab/link.h"

#include "common/rng.h"

#include <stdlib.h>
#include <string.h>

static bool covers(const struct lab_fault *f, unsigned worker, unsigned shard, enum lab_way way)
{
    return worker - f->worker < f->workers && shard - f->shard < f->shards && (f->ways & way) != 0;
}

bool lab_is_cut(const struct lab *lab, unsigned worker, unsigned shard, enum lab_way way)
{
    for (unsigned i = 0; lab->links > 0 && i < lab->options.faults; i++) {
        const struct lab_fault *f = &lab->options.fault[i];
        if (lab->active[i] && f->kind == LAB_CUT && covers(f, worker, shard, way)) {
            return true;
        }
    }
    return false;
}

static bool happens(struct lab *lab, uint64_t ppm)
{
    return ppm > 0 && rng_below(&lab->random, 1000000) < ppm;
}

/* Draws what happens to a message that leaves now. */
static bool pass(struct lab *lab, unsigned worker, unsigned shard, enum lab_way way,
                 uint64_t *delay_ns)
{
    const struct lab_options *o = &lab->options;
    bool lost = !lab->ended && happens(lab, o->loss_ppm);
    *delay_ns = o->jitter_ns ? rng_next(&lab->random) % (o->jitter_ns + 1) : 0;
    *delay_ns += o->rtt_ns / 2;
    for (unsigned i = 0; lab->links > 0 && i < o->faults; i++) {
        const struct lab_fault *f = &o->fault[i];
        if (lab->active[i] && covers(f, worker, shard, way)) {
            lost |= f->kind == LAB_CUT || (f->kind == LAB_LOSS && happens(lab, f->amount));
            *delay_ns += f->kind == LAB_DELAY ? f->amount : 0;
        }
    }
    lab->result.lost += lost;
    return !lost;
}

bool lab_send(struct lab *lab, unsigned worker, uint32_t incarnation, unsigned shard,
              enum lab_way way, uint64_t at_ns, const void *bytes, size_t length)
{
    struct lab_worker *w = &lab->worker[worker];
    uint64_t delay_ns;
    lab->result.messages++;
    lab->result.bytes += length;
    if (!pass(lab, worker, shard, way, &delay_ns) ||
        (way == LAB_TO_SHARDS && !lab->shard[shard].alive)) {
        return false;
    }
    uint64_t *last_ns = way == LAB_TO_SHARDS ? &w->last_out_ns[shard] : &w->last_in_ns[shard];
    *last_ns = at_ns + delay_ns > *last_ns ? at_ns + delay_ns : *last_ns; /* none overtakes */
    struct lab_packet *packet = malloc(sizeof *packet + length);
    CHECK(packet != NULL);
    packet->next = NULL;
    packet->from = way == LAB_TO_SHARDS ? worker : shard;
    packet->epoch = incarnation;
    packet->length = (uint32_t)length;
    packet->number = ++lab->packets;
    memcpy(packet->bytes, bytes, length);
    struct lab_event e = {.time_ns = *last_ns, .packet = packet};
    if (way == LAB_TO_SHARDS) {
        e.kind = LAB_TO_SHARD;
        e.who = shard;
        e.epoch = lab->shard[shard].incarnation;
    } else {
        e.kind = LAB_TO_WORKER;
        e.who = worker;
        e.epoch = shard;
    }
    lab_heap_push(&lab->heap, e);
    return true;
}

void lab_packets_free(struct lab_packet **list)
{
    while (*list != NULL) {
        struct lab_packet *next = (*list)->next;
        free(*list);
        *list = next;
    }
}
