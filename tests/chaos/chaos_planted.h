/* chaos_planted: planted faults (chaos_lab.h) that lose messages. Each function says whether one
 * does so to this message. Threads: one at a time. */
#ifndef TESTS_CHAOS_CHAOS_PLANTED_H
#define TESTS_CHAOS_CHAOS_PLANTED_H

#include "tests/chaos/chaos_world.h"

/* A front-end or worker says it. */
bool chaos_planted_in(const struct lab_worker *w, const uint8_t *bytes, size_t length);
/* It arrives at a shard; with connections of their own it is not asked. */
bool chaos_planted_at_shard(struct lab *lab, unsigned shard, const struct lab_packet *packet);
/* It arrives at a front-end or worker. */
bool chaos_planted_at_worker(struct lab_worker *w, unsigned shard, const struct lab_packet *packet);

#endif
