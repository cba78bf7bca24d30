/* aphid: Asynchronous Parallel Hierarchical Iterative Deepening (Brockington 1998), by the
 * description in Ura 2014, section 2.2: tasks.h's passes in every iteration of the root; a worker
 * leaves the iteration of a task only if the task is dropped or wanted in another window. Without
 * Brockington's masters in the middle. Pure. */
#ifndef WORKER_SEARCH_APHID_H
#define WORKER_SEARCH_APHID_H

#include "worker/search/handover/tasks.h"

extern const struct task_rules aphid_rules;

#endif
