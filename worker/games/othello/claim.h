/* claim: "this board is worth at least (at most) so much" (docs/proof.md), and a plain solver that
 * says whether it is true; and the same as a game, so that a search, and so a cluster, answers it:
 * a position is a claim, whose score is 1 if it is true and -1 if not.
 *
 * The solver is alpha-beta with moves after which the opponent has fewest answers first, without a
 * table or an evaluation. Threads: any. Memory: none. Pure. */
#ifndef WORKER_GAMES_OTHELLO_CLAIM_H
#define WORKER_GAMES_OTHELLO_CLAIM_H

#include "worker/games/game.h"
#include "worker/games/othello/board.h"

enum { OTHELLO_CLAIM_TEXT_MAX = 80 };

struct othello_claim {
    struct othello_board board;
    int8_t value;
    bool is_lower; /* at least `value`; else at most */
    bool is_black; /* side to move, for texts */
    bool is_made; /* in a set of claims: its place is not empty (proof.h) */
};

/* Adds to `nodes`. `solver` counts them and may say stop (game.h); NULL: nobody does. False: it was
 * stopped. */
bool othello_claim_solve(const struct othello_claim *claim, const struct game_solver *solver,
                         uint64_t *nodes, bool *is_true);
/* "BOARD SIDE >= +2" */
void othello_claim_format(const struct othello_claim *claim, char text[OTHELLO_CLAIM_TEXT_MAX]);

extern const struct game game_othello_claim;

#endif
