/* chess: the game port of chess, and its moves as coordinate text.
 *
 * Positions are read and written as FEN (or `startpos`), moves as UCI writes them: e2e4, e7e8q,
 * castling as the king's move. Threads and memory: as game.h says. */
#ifndef WORKER_GAMES_CHESS_CHESS_H
#define WORKER_GAMES_CHESS_CHESS_H

#include "worker/games/game.h"

/* Goes into game_chess.namespace_id. Bump the number whenever a search could see a difference:
 * rules, draws, keys, evaluation, SEE values or the meaning of the move bits; then put the hash
 * that tests/unit/test_chess_port.c prints into chess.c. */
#define CHESS_VERSION "chess/1"

extern const struct game game_chess;

#endif
