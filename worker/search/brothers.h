/* brothers: in which order, and beside whom, the children of a node are searched.
 *
 * The eldest is searched first whatever the others do (young brothers wait); then the policy of the
 * algorithm chooses. Weill 1996, section 2 (three phases); "least helped" is ours (design section
 * 4). Threads: the search's own. */
#ifndef WORKER_SEARCH_BROTHERS_H
#define WORKER_SEARCH_BROTHERS_H

#include "worker/search/node.h"

/* Searches the ordered moves of frame `ply` into `o` until done, cut off or stopped.
 * `counted`: the children are counted by nproc.
 * Never returns VISIT_BUSY. */
enum search_visit brothers_search(struct search *s, unsigned ply, int depth, struct outcome *o,
                                  bool counted);

/* All in order, none exclusive. */
enum search_visit brothers_in_order(struct search *s, unsigned ply, int depth, struct outcome *o);

#endif
