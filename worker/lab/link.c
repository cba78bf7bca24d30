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

struct lab_passage lab_pass(struct lab *lab, unsigned worker, unsigned shard, enum lab_way way)
{
    const struct lab_options *o = &lab->options;
    struct lab_passage passage = {.lost = !lab->ended && happens(lab, o->loss_ppm)};
    passage.delay_ns = o->jitter_ns ? rng_next(&lab->random) % (o->jitter_ns + 1) : 0;
    passage.delay_ns += o->rtt_ns / 2;
    for (unsigned i = 0; lab->links > 0 && i < o->faults; i++) {
        const struct lab_fault *f = &o->fault[i];
        if (lab->active[i] && covers(f, worker, shard, way)) {
            passage.lost |= f->kind == LAB_CUT || (f->kind == LAB_LOSS && happens(lab, f->amount));
            passage.delay_ns += f->kind == LAB_DELAY ? f->amount : 0;
        }
    }
    lab->result.lost += passage.lost;
    return passage;
}

struct lab_packet *lab_packet(struct lab *lab, const void *bytes, size_t length)
{
    struct lab_packet *packet = malloc(sizeof *packet + length);
    CHECK(packet != NULL);
    packet->next = NULL;
    packet->length = (uint32_t)length;
    packet->number = ++lab->packets;
    memcpy(packet->bytes, bytes, length);
    return packet;
}

void lab_packets_free(struct lab_packet **list)
{
    while (*list != NULL) {
        struct lab_packet *next = (*list)->next;
        free(*list);
        *list = next;
    }
}
