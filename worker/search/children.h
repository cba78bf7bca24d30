/* children: in which order, and beside which searchers, the children of a node are searched. One
 * function for each way, an algorithm names one of them; and what such a function is made of.
 *
 * Each searches the moves of the node, ordered by order_pick or order_sort (order.h), into
 * node->best until all are done or the node is cut off (VISIT_VALUE), or until a visit of a child
 * ends without a value (VISIT_STOP, VISIT_ABORTED). Threads: the search's own. */
#ifndef WORKER_SEARCH_CHILDREN_H
#define WORKER_SEARCH_CHILDREN_H

#include "worker/search/context.h"

/* Searches moves[at] and takes its value: the first in the open window, the others in a null window
 * first (NegaScout). VISIT_BUSY only if `exclusive`. `split_id`, unless 0, names the child for
 * search_abort and search_narrow. */
enum search_visit children_visit(struct search *s, struct node *n, unsigned at, bool exclusive,
                                 uint64_t split_id);

/* The same in two parts: the null-window search, which says in `lacks_value` that the child's value
 * lies in the window and is not known yet; then the search in the window. */
enum search_visit children_test(struct search *s, struct node *n, unsigned at, bool *lacks_value);
enum search_visit children_value(struct search *s, struct node *n, unsigned at);

/* Takes a value of that move, seen from the node; n[1].pv is the line below, or of length 0. */
void children_take_value(struct node *n, uint16_t move, int value);

/* Whether the next child may follow that visit; else the child has no value. */
static inline bool children_go_on(enum search_visit visit)
{
    return visit == VISIT_VALUE || visit == VISIT_BUSY;
}

/* Whether a child's result that is known here refutes the node (enhanced transposition cut-off:
 * Plaat 1996): then the node has its value. */
bool children_refute(struct search *s, struct node *n);

/* One pass in order, none exclusive. */
enum search_visit children_in_order(struct search *s, struct node *n);

/* The eldest, then the young in order and exclusively; the second pass goes over all moves again,
 * where the table answers those that are finished (Weill 1996, figure 1). */
enum search_visit children_two_passes(struct search *s, struct node *n);

/* The eldest first. While no other searcher is known to be in the node, the young follow in order,
 * exclusively. Then a peek before each visit says which are finished, and of the rest the one with
 * the fewest searchers is visited, ties at random: a draw among all free children, not the first,
 * keeps searchers apart whose peeks are one round trip old. */
enum search_visit children_least_helped(struct search *s, struct node *n);

#endif
