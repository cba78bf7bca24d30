/* minimal_tree: dynamic prediction of minimal trees (Ura, Tsuruoka, Chikayama 2014): tasks.h's
 * passes for the whole depth at once, after the master alone has searched half of it; a worker
 * leaves a task as soon as a more important one comes. `static`: workers report results of the full
 * depth alone, so that the prediction does not follow the shallower ones ("w/o updates" there).
 * Pure. */
#ifndef WORKER_SEARCH_MINIMAL_TREE_H
#define WORKER_SEARCH_MINIMAL_TREE_H

#include "worker/search/handover/tasks.h"

extern const struct task_rules minimal_tree_rules, minimal_tree_static_rules;

/* skips_iteration of algorithm.h: those between half of the limit and the limit. */
bool minimal_tree_skips(const struct search_options *options, unsigned depth);

#endif
