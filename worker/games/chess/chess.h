/* chess: the game port of chess, and its moves as coordinate text.
 *
 * Positions are read and written as FEN (or `startpos`), moves as UCI writes them: e2e4, e7e8q,
 * castling as the king's move; in Chess960, which a position is by where its rooks and kings have
 * the right to castle (X-FEN), or by letters of files (Shredder-FEN), as the king's move to the
 * rook. Threads and memory: as game.h says. */
#ifndef WORKER_GAMES_CHESS_CHESS_H
#define WORKER_GAMES_CHESS_CHESS_H

#include "worker/games/game.h"

extern const struct game game_chess;

/* Makes a move of a game, which may have more moves than a position has room for: after 600 plies
 * the position forgets those that no draw can depend on any more. The move cannot be unmade. */
void chess_play(void *position, uint16_t move);

#endif
