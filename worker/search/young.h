/* young: young brothers, the least helped first (design section 4; ours).
 *
 * While nobody else is known to be inside the node its children are visited in order, exclusively.
 * Once others are met, one batched peek before each visit tells who is where: children that are
 * finished are taken for nothing, and of the rest one with the fewest processors inside is visited,
 * ties at random. Who does not wait for answers (random_order) goes into any one that is left while
 * a peek travels. Drawing among all free brothers, not the first, keeps processors apart whose news
 * are one round trip old (docs/experiments.md). Threads: the search's own. */
#ifndef WORKER_SEARCH_YOUNG_H
#define WORKER_SEARCH_YOUNG_H

#include "worker/search/node.h"

/* The eldest, then the young. Never VISIT_BUSY. */
enum search_visit young_brothers(struct search *s, unsigned ply, int depth, struct outcome *o);

#endif
