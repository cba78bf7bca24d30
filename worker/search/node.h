/* node: one node of the search, quiescence included. Threads: the search's own. Memory: nothing is
 * allocated after search_open. */
#ifndef WORKER_SEARCH_NODE_H
#define WORKER_SEARCH_NODE_H

#include "worker/search/context.h"

enum {
    NODE_ANSWER_PLY = 1, /* the last ply where a move is chosen, the root's or its answer: none is
                            left out there, as a check that comes last may win the piece it hangs */
};

/* Searches a node that node_child or the start of the search prepared. The only place that pairs
 * ask with store or release. */
enum search_visit node_search(struct search *s, struct node *n);

/* The result of a node in the tables of this host: no round trip. */
void node_peek_here(struct search *s, const struct tt_peek *peek, struct tt_peeked *seen);

/* The best move of the position if the game solves it, as deep as it is; else, and at its end, 0.
 */
uint16_t node_solved_move(struct search *s);

/* Writes the moves of the node, which are to be searched, to the top of the stack of moves. */
void node_generate(struct search *s, struct node *n);

/* The moves of the root that are to be searched. */
unsigned node_generate_root(const struct search *s, struct game_move *list);

/* Counts nodes and polls the environment now and then. */
void node_count(struct search *s, const struct node *n, unsigned nodes);
/* Sets s->inflight_depth by what the table says now. */
void node_update_inflight_depth(struct search *s);

/* After a child's VISIT_STOP. True: it was stopped because search_narrow changed the window of `n`,
 * and is to be searched again. */
bool node_window_changed(struct search *s, const struct node *n);

/* Value of a quiet position near this one; alpha < beta; fail-soft. Check search_halted() after it.
 */
int quiesce(struct search *s, struct node *n, int alpha, int beta);

/* Returns the key of the root. A root with other moves has another key. */
uint64_t node_root_key(const struct search *s);

#endif
