/* solver: the exact value of an Othello board near the end of the game.
 *
 * A null-window search (NegaScout, Reinefeld 1983) that keeps bounds of boards in a private hash,
 * tries replies that the hash or stable discs refute first (enhanced transposition cut-offs), then
 * moves after which the opponent has fewest (fastest first, Buro and Weill). Before it there is a
 * selective search of the same board (ProbCut, Buro 1995), which takes a tenth of its nodes, and
 * another one before each node of many empty squares: they leave moves in the hash, which are tried
 * first, and bounds that only another selective search believes. Several searchers of one board
 * say in the hash what they are in (ABDADA, Weill 1996). The last squares are in last.h. Ideas as
 * in Edax (R. Delorme, T. Okuhara) and Zebra (G. Andersson).
 *
 * Threads: any; several may use one memory, also threads of several processes. Memory: the
 * caller's; nothing is allocated. Pure: a value is a function of board and window's answer alone,
 * exact whatever the hash has in it; only how far a fail-soft bound lies beyond the window, and
 * which of several best moves is found, depend on what was solved before. */
#ifndef WORKER_GAMES_OTHELLO_SOLVER_H
#define WORKER_GAMES_OTHELLO_SOLVER_H

#include "worker/games/game.h"
#include "worker/games/othello/board.h"

enum { OTHELLO_NO_MOVE = OTHELLO_SQUARES };

/* Bounds of boards, with all their discs: never those of another board. Bytes of value 0 are an
 * empty memory. It may be used on from call to call, for any boards; what a process that was killed
 * left in it is whole or is not found. */
struct othello_memory;

/* A power of two; the bytes are aligned to 64. */
size_t othello_memory_bytes(void);

/* The value of `board` in the window alpha < beta, from the side to move, in discs: -64..64, empty
 * squares for the winner. Fail-soft: a value >= beta is a lower bound of the true one, a value <=
 * alpha an upper bound, one between is exact. `move`: if the value is above alpha, one that has it;
 * else any; OTHELLO_NO_MOVE where there is none (a pass, or the end of the game).
 *
 * A node is a board on which moves are tried or whose end is evaluated, that with the last empty
 * square included. `solver` (may be NULL) counts them every thousand or so, or as it says, and once
 * at the end. If it says that a selective value is enough, there is no exact search: the value and
 * what it says of the window are right in most cases, and depend on what the memory has in it.
 * False: it said stop; value and move are untouched, and what is in memory by then is right. */
bool othello_solve(struct othello_memory *memory, struct othello_board board, int alpha, int beta,
                   const struct game_solver *solver, int *value, unsigned *move);

/* How good the move to this square may be for a search to the end, higher first: few answers of the
 * opponent's, the parity of empty regions and, with many empty squares, a shallow search. */
int othello_order(struct othello_board board, unsigned square);

#endif
