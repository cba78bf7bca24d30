/* eval: how good a chess position looks without searching.
 *
 * A function of pieces, squares and the side to move only, never of counters or castling rights,
 * and the same for both colours: mirrored positions score alike.
 * Threads: any. Memory: none; no caches. */
#ifndef WORKER_GAMES_CHESS_EVAL_H
#define WORKER_GAMES_CHESS_EVAL_H

#include "worker/games/chess/position.h"

/* Centipawns from the side to move; |score| < CHESS_EVAL_MAX < GAME_MATE_MIN. */
enum { CHESS_EVAL_MAX = 20000 };

int chess_eval(const struct chess_position *position);

#endif
