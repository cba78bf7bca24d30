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

/* Two plies below a node that is divided: what was given away begins at such a node. */
static bool is_two_below(const struct search *s, const struct node *n)
{
    const unsigned divided = s->start_ply == 0 ? eldest_plies(s, n) : s->start_ply;
    return (n->ply - divided) % 2 == 0;
}

static bool divides_more(const struct search *s, const struct node *n)
{
    return is_leftmost(s, n) || is_two_below(s, n);
}

const struct steal_rules pvs_rules = {.divides = is_leftmost};
const struct steal_rules epvs_rules = {.divides = divides_more};
