/* children: in which order, and beside which searchers, the children of a node are searched. One
 * function for each way; an algorithm names one of them.
 *
 * Each searches the ordered moves of the node into node->best until all are done, the node is cut
 * off (VISIT_VALUE) or the search halts (VISIT_STOP). Threads: the search's own. */
#ifndef WORKER_SEARCH_CHILDREN_H
#define WORKER_SEARCH_CHILDREN_H

#include "worker/search/node.h"

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
