/* select: forward pruning for play (selection "full"): reverse futility, razoring, null move,
 * futility, late-move pruning and reductions, pruning by static exchange, singular extensions; and
 * for games with a deviation ProbCut alone.
 * Selection "plain" never calls select_node, so that a plain strict value depends on position and
 * depth alone. Depths and margins come from the game. Sources: Goetsch and Campbell 1990 (null
 * move); Heinz 1998 (futility); Buro 1995 (ProbCut); the usual late-move rules. Threads: the
 * search's own. */
#ifndef WORKER_SEARCH_SELECT_H
#define WORKER_SEARCH_SELECT_H

#include "worker/search/context.h"

/* Weighs the node before its moves are generated. VISIT_VALUE: node->best is a lower bound that
 * cuts it off, or an upper one at alpha; VISIT_CONTINUE: nothing is decided, search the children;
 * VISIT_STOP. Sets what the node has for selection full; may make it a ply less deep. */
enum search_visit select_node(struct search *s, struct node *n, uint16_t table_move);

/* What a node without its excluded move has in its key; 0 for others. */
uint64_t select_variant(const struct node *n);

/* If the moves from `at` on come too late to be worth a visit, only captures are left of them. */
void select_drop_late(const struct search *s, struct node *n, unsigned at);

/* Whether the move at `at` (not the eldest) is not worth a visit. */
bool select_skips(const struct search *s, const struct node *n, unsigned at);

/* Plies taken off the scout of the move at `at`; the position is the one after it. */
int select_reduction(const struct search *s, const struct node *n, unsigned at, bool gives_check);

/* The depth of the search that forecasts one of `depth` (ProbCut): about half, and even or odd as
 * it is, because the same side has moved last then. */
static inline int select_forecast_depth(int depth)
{
    return depth / 4 * 2 + (depth & 1);
}

#endif
