#include "worker/search/dts.h"

#include "worker/search/node.h"

enum { CUT_NODE_MOVES = 3 };

static unsigned comes_first(const struct node *n)
{
    return !node_is_null_window(n) ? 1 : n->cut_node ? CUT_NODE_MOVES : 0;
}

const struct steal_rules dts_rules = {.comes_first = comes_first};
