/* san: moves as players write them (standard algebraic notation; Edwards, PGN standard 1994,
 * section 8.2.3).
 *
 * Threads: any. Memory: none. */
#ifndef WORKER_GAMES_CHESS_SAN_H
#define WORKER_GAMES_CHESS_SAN_H

#include "common/err.h"
#include "worker/games/chess/position.h"

/* Reads more than the standard writes: any tail of + # ! ?, castling with zeros or small letters,
 * more disambiguation than needed, x or = left out, / for =, a small letter after it, e.p. after a
 * capture. ERR_SYNTAX: not a move's text; ERR_ILLEGAL: names no legal move here, or more than
 * one. */
enum err chess_san_parse(const struct chess_position *position, const char *text, uint16_t *move);

enum { CHESS_SAN_MAX = 8 }; /* Qa1xb2#, exd8=Q#: seven characters and the end */

/* The shortest text that names the legal move here, with + or #. */
void chess_san_format(const struct chess_position *position, uint16_t move,
                      char text[CHESS_SAN_MAX]);

#endif
