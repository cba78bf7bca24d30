/* order: in which order the moves of a node are searched, and the histories that it comes from
 * (Marsland 1986; Schaeffer 1983). Threads: the search's own. Memory: order_histories only. */
#ifndef WORKER_SEARCH_ORDER_H
#define WORKER_SEARCH_ORDER_H

#include "worker/search/context.h"

/* Weighs every move: table move, good captures, killers, history, bad captures. */
void order_moves(struct search *s, struct node *n, uint16_t table_move);
/* Brings the best of moves[at..move_count) to `at`; bad captures are found out only here. */
void order_pick(struct search *s, struct node *n, unsigned at);
/* Sorts all moves. */
void order_sort(struct search *s, struct node *n);
/* The move refuted a node of this ply, here or, as an answer says, at another searcher: each of
 * many searchers walks a small part of the tree and orders its moves by what it has seen. */
void order_refuted(struct search *s, const struct node *n, uint16_t move, int depth);
/* The quiet move at `at` refuted the node here; those before it did not, or were passed over. */
void order_reward(struct search *s, struct node *n, unsigned at);
/* Selection full: the worth of a quiet move, as order_moves found it, by what it did after other
 * moves and elsewhere: the sum of up to three histories; 0 for a killer. */
int order_worth(const struct game_move *move);
/* Selection full: the node has its value, which says how far the static evaluation was off. */
void order_correct(struct search *s, const struct node *n, enum tt_bound bound);
/* What is to be added to the evaluation of the position. */
int order_correction(const struct search *s);
/* Zeroes, of which only what is used costs memory. NULL: there is none. */
struct histories *order_histories(void);
/* Accepts a null. */
void order_histories_free(struct histories *histories);
/* Forgets all histories, as before the first search. */
void order_forget(struct search *s);
/* Draws the searcher's tie-breaking. */
void order_seed(struct search *s);
void order_age(struct search *s);

#endif
