/* lab_link: what a message meets between a worker and a shard: latency, jitter, loss, and the
 * faults of the pair. Threads: one at a time. */
#ifndef WORKER_LAB_LAB_LINK_H
#define WORKER_LAB_LAB_LINK_H

#include "worker/lab/world.h"

static inline bool lab_fault_is_of_links(const struct lab_fault *fault)
{
    return fault->kind == LAB_CUT || fault->kind == LAB_DELAY || fault->kind == LAB_LOSS ||
           fault->kind == LAB_RESET || fault->kind == LAB_HALF_OPEN || fault->kind == LAB_DEAF;
}

/* A message of that incarnation of a worker, or to it, leaves at `at_ns`. False: it gets lost. */
bool lab_send(struct lab *lab, unsigned worker, uint32_t incarnation, unsigned shard,
              enum lab_way way, uint64_t at_ns, const void *bytes, size_t length);
/* The two parts of that, for what is more than messages (lab_stream.h): whether what leaves now
 * passes, and what it is late by; when it arrives. */
bool lab_passes(struct lab *lab, unsigned worker, unsigned shard, enum lab_way way,
                uint64_t *delay_ns);
uint64_t lab_arrives(struct lab *lab, unsigned worker, unsigned shard, enum lab_way way,
                     uint64_t at_ns, uint64_t delay_ns, size_t length);
/* A message between two workers: latency, cards and loss as above, but no fault. */
void lab_send_to_peer(struct lab *lab, unsigned from, unsigned to, uint64_t at_ns,
                      const void *bytes, size_t length);
/* Whether the two are cut off that way now. */
bool lab_is_cut(const struct lab *lab, unsigned worker, unsigned shard, enum lab_way way);

/* Whether the worker reads nothing of the shard now. */
bool lab_is_deaf(const struct lab *lab, unsigned worker, unsigned shard);

/* Work of a card, from which on its host is to the shard on it as a peer that does not read: hints
 * are dropped. */
enum { LAB_CARD_WAIT_NS = 1000000 };
bool lab_card_is_full(const struct lab *lab, unsigned shard);

void lab_packets_free(struct lab_packet **list);

#endif
