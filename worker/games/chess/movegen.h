/* movegen: the legal moves of a position, listed or counted.
 *
 * Moves come out legal: checks and pins are worked out first and mask the targets, so nothing is
 * made to be tested. Threads: any. Memory: never allocates; lists have room for GAME_MOVES_MAX,
 * which no position of a game exceeds; of a position that is_unreal the rest is left out. */
#ifndef WORKER_GAMES_CHESS_MOVEGEN_H
#define WORKER_GAMES_CHESS_MOVEGEN_H

#include "worker/games/chess/position.h"

unsigned chess_movegen_all(const void *position, struct game_move *list);
/* Captures and promotions to a queen; when in check, all evasions. */
unsigned chess_movegen_noisy(const void *position, struct game_move *list);
/* How many moves chess_movegen_all would list, without listing them. */
unsigned chess_movegen_count(const struct chess_position *position);

/* Leaves of the legal move tree at exactly `depth` plies; depth 0 counts the position itself. */
uint64_t chess_perft(struct chess_position *position, unsigned depth);

#endif
