/* uidpabs: Unsynchronized Iteratively Deepening Parallel Alpha-Beta Search (Newborn 1988), by the
 * description in Ura 2014, section 2.2: the moves of the root are tasks, and each worker goes
 * deeper in its own without waiting for the others. Here the answer is of one depth for all. Pure.
 */
#ifndef WORKER_SEARCH_UIDPABS_H
#define WORKER_SEARCH_UIDPABS_H

#include "worker/search/handover/tasks.h"

extern const struct task_rules uidpabs_rules;

#endif
