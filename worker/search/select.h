/* select: forward pruning for play (selection "full"): reverse futility, null move, futility,
 * late-move pruning and reductions. Selection "plain" never comes here, so that a plain strict
 * value depends on position and depth alone. Sources: Goetsch and Campbell 1990 (null move); Heinz
 * 1998 (futility); the usual late-move rules. Threads: the search's own. */
#ifndef WORKER_SEARCH_SELECT_H
#define WORKER_SEARCH_SELECT_H

#include "worker/search/node.h"

/* Weighs the node before its moves are looked at. VISIT_VALUE: o->best settles it as a lower bound;
 * VISIT_BUSY: nothing settled, search it; VISIT_STOP. Sets the frame's `calm` and `standing`. */
enum search_visit select_node(struct search *s, unsigned ply, int depth, struct outcome *o);

/* Whether the quiet move at `at` (not the eldest) is not worth a look. */
bool select_skips(const struct search *s, unsigned ply, int depth, const struct outcome *o,
                  unsigned at);

/* Plies taken off the scout of the move at `at`; the position is the one after it. */
int select_reduction(const struct search *s, unsigned ply, int depth, const struct outcome *o,
                     unsigned at, bool gives_check);

#endif
