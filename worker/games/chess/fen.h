/* fen: positions as text (Forsyth-Edwards notation; Edwards, PGN standard 1994, section 16.1).
 *
 * Threads: any. Memory: none kept; a position (about 25 kB) on the stack. Nothing blocks. */
#ifndef WORKER_GAMES_CHESS_FEN_H
#define WORKER_GAMES_CHESS_FEN_H

#include "common/err.h"
#include "worker/games/chess/position.h"

#include <stddef.h>

#define CHESS_START "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"

enum { CHESS_COUNTER_MAX = 9999 }; /* of halfmoves, and of moves; written so where there are more */

/* Reads `startpos` or a FEN of three to six fields (the en-passant square and the clocks may be
 * missing). ERR_SYNTAX: not understood; ERR_ILLEGAL: no game reaches it, as far as cheap tests
 * tell, except for more promoted pieces than a game can have: other programs take these. Then `why`
 * holds one line without newline and the position is untouched. An en-passant square where no
 * capture is legal is dropped. On ERR_OK `why` is empty, or says in one line what was left out: a
 * castling right without king and rook at home, an en-passant square on another rank. */
enum err chess_position_parse(void *position, const char *text, char *why, size_t why_size);

/* Six fields; GAME_TEXT_MAX bytes at most with the end. */
void chess_position_format(const void *position, char *text);

#endif
