#include "worker/search/pvs.h"

#include "worker/search/node.h"

/* How many moves of the path, from its begin on, lead to the eldest child. */
static unsigned eldest_plies(const struct search *s, const struct node *n)
{
    unsigned ply = s->start_ply;
    while (ply < n->ply && s->node[ply].move_now == s->node[ply].moves[0].move) {
        ply++;
    }
    return ply;
}

static bool is_leftmost(const struct search *s, const struct node *n)
{
    return s->start_ply == 0 && eldest_plies(s, n) == n->ply;
}

/* The leftmost path, and every second ply below it: what was given away begins at a node that is
 * divided. */
static bool is_at_second_ply(const struct search *s, const struct node *n)
{
    const unsigned divided = s->start_ply == 0 ? eldest_plies(s, n) : s->start_ply;
    return (n->ply - divided) % 2 == 0;
}

const struct steal_rules pvs_rules = {.divides = is_leftmost};
const struct steal_rules epvs_rules = {.divides = is_at_second_ply};
