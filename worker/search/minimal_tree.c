#include "worker/search/minimal_tree.h"

const struct task_rules minimal_tree_rules = {.reports = true, .preempts = true};
const struct task_rules minimal_tree_static_rules = {.preempts = true};

bool minimal_tree_skips(unsigned number, unsigned depth, unsigned limit)
{
    (void)number;
    return depth > limit / 2 && depth < limit;
}
