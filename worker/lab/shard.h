/* lab_shard: a shard of the virtual cluster: the real core (ttserver/core), with a service time.
 * Threads: one at a time. */
#ifndef WORKER_LAB_SHARD_H
#define WORKER_LAB_SHARD_H

#include "worker/lab/world.h"

enum err lab_shard_start(struct lab *lab, unsigned index);
void lab_shard_kill(struct lab *lab, unsigned index);
/* A packet arrives; takes it. */
void lab_shard_receive(struct lab *lab, unsigned index, struct lab_packet *packet);
/* It stands still no longer. */
void lab_shard_unstall(struct lab *lab, unsigned index);
void lab_shard_tick(struct lab *lab, unsigned index, uint32_t incarnation);

/* In-flight entries of one worker there. */
unsigned lab_shard_inflight_of(const struct lab *lab, unsigned index, const struct lab_worker *w);
/* Zeroes for a dead one. */
struct ttcore_figures lab_shard_figures(const struct lab *lab, unsigned index);

#endif
