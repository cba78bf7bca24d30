/* eval: how good a chess position looks without searching.
 *
 * A function of pieces, squares and the side to move only, never of counters or castling rights,
 * and the same for both colours: mirrored positions score alike.
 * Threads: any. Memory: none; no caches. */
#ifndef WORKER_GAMES_CHESS_EVAL_H
#define WORKER_GAMES_CHESS_EVAL_H

#include "worker/games/chess/network.h"
#include "worker/games/chess/position.h"

/* Centipawns from the side to move; |score| < CHESS_EVAL_MAX. */
enum { CHESS_EVAL_MAX = GAME_PROVED_MIN };

int chess_eval(const void *position);

/* The same by the network, for play: what cannot be won is about 0, and a bare king is driven as
 * chess_eval has it, because the games that the network learned from end before. Of the counters,
 * that of a draw matters where it is part of counted_key (game.h). */
int chess_eval_full(const void *position, void *sums);

#endif
