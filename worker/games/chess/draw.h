/* draw: the draws that a position's moves do not show. Threads: any. Memory: none. */
#ifndef WORKER_GAMES_CHESS_DRAW_H
#define WORKER_GAMES_CHESS_DRAW_H

#include "worker/games/chess/position.h"

#include <stdbool.h>

/* An equal position earlier among the moves made here (once is enough: a search that comes back
 * can come back again); a hundred halfmoves without capture or pawn move, unless the last one
 * mates; or K, K+N or K+B against K. Stalemate is left to the move generator. */
bool chess_drawn(const struct chess_position *position);

#endif
