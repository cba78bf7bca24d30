/* last: the exact value of a board with few empty squares, in a null window, without a hash.
 *
 * The side to move wants to know whether it gets more than alpha discs. Final values are even, so
 * alpha is even too, and "more than alpha" is "alpha + 2 or more". Values are fail-soft: a value
 * above alpha is a lower bound of the true one, another is an upper bound.
 *
 * Up to four empty squares no moves are generated: the squares are tried one after the other, those
 * alone in their quadrant first (parity: who moves last in a region gains by it). What the very
 * last disc turns is counted by a table of lines, for both colours at once, as all other squares
 * are full. Ideas: G. Andersson (Zebra), R. Delorme (Edax), T. Okuhara (Edax on AVX).
 *
 * Threads: any. Memory: none. Pure. */
#ifndef WORKER_GAMES_OTHELLO_LAST_H
#define WORKER_GAMES_OTHELLO_LAST_H

#include "worker/games/othello/board.h"

enum { OTHELLO_LAST_MAX = 6 }; /* empty squares */

/* `empties` of them, at most OTHELLO_LAST_MAX. Adds the boards visited to `nodes`. */
int othello_last(struct othello_board board, unsigned empties, int alpha, unsigned *nodes);

#endif
