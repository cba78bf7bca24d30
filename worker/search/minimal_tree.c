#include "worker/search/minimal_tree.h"

const struct task_rules minimal_tree_rules = {.reports = true, .preempts = true};
const struct task_rules minimal_tree_static_rules = {.preempts = true};

bool minimal_tree_skips(const struct search_options *options, unsigned depth)
{
    return depth > options->depth_limit / 2 && depth < options->depth_limit;
}
