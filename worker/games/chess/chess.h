/* chess: the game port of chess, and its moves as coordinate text.
 *
 * Positions are read and written as FEN (or `startpos`), moves as UCI writes them: e2e4, e7e8q,
 * castling as the king's move. Threads and memory: as game.h says. */
#ifndef WORKER_GAMES_CHESS_CHESS_H
#define WORKER_GAMES_CHESS_CHESS_H

#include "worker/games/game.h"

extern const struct game game_chess;

#endif
