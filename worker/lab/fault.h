/* fault: when faults begin and end, and what they do to workers and shards; those between a worker
 * and a shard act in link.h. Threads: one at a time. */
#ifndef WORKER_LAB_FAULT_H
#define WORKER_LAB_FAULT_H

#include "worker/lab/world.h"

void lab_faults_schedule(struct lab *lab);
void lab_fault_begin(struct lab *lab, unsigned number);
void lab_fault_end(struct lab *lab, unsigned number);
/* Ends all but kills for ever. */
void lab_faults_heal(struct lab *lab);

#endif
