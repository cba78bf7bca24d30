/* lazy_smp: Lazy SMP, as chess engines use it: all searchers start at the root and share results,
 * nothing is deferred, and the searchers are kept apart by the iterations that each leaves out.
 *
 * There is no paper: it spread from Cheng (2013, by Daniel Homan) and from Stockfish 7 (2016),
 * whose table of skipped iterations this is. In strict mode a result answers only at its own depth,
 * so that searchers in other iterations give each other the order of moves, and results only when
 * they come to the same depth. An iteration that a searcher ends has its exact value. Pure. */
#ifndef WORKER_SEARCH_LAZY_SMP_H
#define WORKER_SEARCH_LAZY_SMP_H

#include "worker/search/search.h"

/* skips_iteration of algorithm.h: number 0 leaves out none; the others leave out blocks of 1 to 4
 * iterations in turn, by 20 patterns. */
bool lazy_smp_skips(const struct search_options *options, unsigned depth);
/* The same for every second searcher of other processes than the front-end's; the others leave out
 * none. ABDADA's: those who run ahead find the move to begin with, and where many searchers wait
 * for a network they are in each other's way less. On threads of one process it brings nothing.
 * Not in games that are searched to their end, whose iterations are of unlike size: there it costs
 * more than it brings (docs/comparison.md). */
bool lazy_smp_half_skips(const struct search_options *options, unsigned depth);

#endif
