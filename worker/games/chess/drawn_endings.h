/* drawn_endings: endings that no side can win, and advantages that are worth less than they look.
 *
 * King and pawn against king is known whole, by a table of 32 KiB that is made before main() in
 * a tenth of a millisecond: backwards from the promotions, all squares of the other king at a time.
 * Functions of pieces, squares and the side to move, the same for both colours.
 * Threads: any. Memory: static. */
#ifndef WORKER_GAMES_CHESS_DRAWN_ENDINGS_H
#define WORKER_GAMES_CHESS_DRAWN_ENDINGS_H

#include "worker/games/chess/position.h"

/* No moves lead to mate: a knight or bishop against the bare king, or bishops that all stand on
 * squares of one colour. */
bool chess_draws_dead(const struct chess_position *position);

/* With best play nobody mates: a dead position, king and pawn against king, or the king in the
 * corner against rook pawns and bishops that do not attack it. Never a position that is won or lost
 * already. */
bool chess_draws_known(const struct chess_position *position);

/* Returns the factor, in 1/64, for an advantage of `strong`. */
int chess_draws_scale_64(const struct chess_position *position, unsigned strong);

/* True for at most five pieces when the stronger side can hardly win. */
bool chess_draws_likely(const struct chess_position *position);

#endif
