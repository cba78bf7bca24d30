/* share: which of several open jobs a worker takes, so that they have equally many.
 *
 * A shard gives its workers worker indexes 0, 1, 2 ... without gaps (PROTOCOL.md section 8). Seat s
 * takes the job of rank s mod n among n jobs in the order of their ids: the counts differ by one at
 * most, nobody keeps books, and whoever has the same worker indexes and jobs before him agrees.
 * Pure. */
#ifndef WORKER_ENGINE_SHARE_H
#define WORKER_ENGINE_SHARE_H

#include <stdint.h>

/* The index of the job for this worker_index. The ids differ from each other; jobs > 0. */
unsigned share_choose(const uint64_t *job, unsigned jobs, uint32_t worker_index);

#endif
