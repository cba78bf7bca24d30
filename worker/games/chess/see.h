/* see: static exchange evaluation, what a capture wins when both sides go on capturing on its
 * square with their least valuable piece and may stop at any time. Pieces behind others join in;
 * pins are not seen. Pure: any thread, no memory. */
#ifndef WORKER_GAMES_CHESS_SEE_H
#define WORKER_GAMES_CHESS_SEE_H

#include "worker/games/chess/position.h"

/* Whether the legal move wins at least `threshold` centipawns. Castling wins 0. */
bool chess_see_at_least(const void *position, uint16_t move, int threshold);

#endif
