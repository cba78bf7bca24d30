/* link: what a message meets between a worker and a shard: latency, jitter, loss, and the faults
 * of the pair. Threads: one at a time. */
#ifndef WORKER_LAB_LINK_H
#define WORKER_LAB_LINK_H

#include "worker/lab/world.h"

struct lab_passage {
    bool lost;
    uint64_t delay_ns;
};

static inline bool lab_fault_is_of_links(const struct lab_fault *fault)
{
    return fault->kind == LAB_CUT || fault->kind == LAB_DELAY || fault->kind == LAB_LOSS;
}

/* Draws what happens to a message that leaves now. */
struct lab_passage lab_pass(struct lab *lab, unsigned worker, unsigned shard, enum lab_way way);
/* Whether the two are cut off that way now. */
bool lab_is_cut(const struct lab *lab, unsigned worker, unsigned shard, enum lab_way way);

/* A packet of `length` bytes; the rest of it is the caller's to set. No memory is a CHECK. */
struct lab_packet *lab_packet(struct lab *lab, const void *bytes, size_t length);
void lab_packets_free(struct lab_packet **list);

#endif
