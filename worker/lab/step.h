/* step: takes events in order of virtual time. Threads: one at a time. */
#ifndef WORKER_LAB_STEP_H
#define WORKER_LAB_STEP_H

#include "worker/lab/world.h"

/* Everything up to `until_ns` happens, or, with `to_end`, up to the end of all posts. */
void lab_run_until(struct lab *lab, uint64_t until_ns, bool to_end);

#endif
