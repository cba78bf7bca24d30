/* step: takes events in order of virtual time, and does to workers and shards what faults do; what
 * faults between a worker and a shard do is in link.h. Threads: one at a time. */
#ifndef WORKER_LAB_STEP_H
#define WORKER_LAB_STEP_H

#include "worker/lab/world.h"

/* Everything up to `until_ns` happens, or, with `to_end`, up to the end of all posts. */
void lab_run_until(struct lab *lab, uint64_t until_ns, bool to_end);

/* Before the first event. */
void lab_faults_schedule(struct lab *lab);
/* Ends all but kills for ever. */
void lab_faults_heal(struct lab *lab);

#endif
