/* drain: after the end, what is left behind, and whether the healed cluster serves jobs as it
 * should: the second half of lab_result. Threads: one at a time. */
#ifndef WORKER_LAB_DRAIN_H
#define WORKER_LAB_DRAIN_H

#include "worker/lab/world.h"

void lab_drain(struct lab *lab);

#endif
