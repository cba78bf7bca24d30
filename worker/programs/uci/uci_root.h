/* uci_root: which moves of the root a "go" searches. Threads: one at a time, while nothing is
 * searched. Memory: none. Source: the UCI protocol, April 2006. */
#ifndef WORKER_PROGRAMS_UCI_UCI_ROOT_H
#define WORKER_PROGRAMS_UCI_UCI_ROOT_H

#include "worker/engine/job.h"
#include "worker/games/chess/tablebase.h"
#include "worker/programs/uci/uci_limits.h"

/* Sets the job's root moves to those of "searchmoves", or to all where none are named. A word that
 * is no legal move is said on stdout as an info string. False: moves were named, and none is legal.
 */
bool uci_root_searchmoves(struct job *job, const struct uci_limits *limits);

/* What endgame tables know of the root's moves. */
struct uci_root_values {
    struct chess_tablebase_move move[GAME_MOVES_MAX];
    unsigned count; /* 0: nothing */
};

/* Where endgame tables know the position and no moves were named: has only those moves searched
 * that keep its value or, where more lines are wanted, as many of the best. The job's lines become
 * as many as it takes to have the best of the moves. */
void uci_root_tablebase(struct job *job, struct uci_root_values *values);
/* The score of a root's move: the tables' or the search's (`score`), whichever says more: a mate
 * says more than a win. */
int uci_root_score(const struct uci_root_values *values, uint16_t move, int score);

#endif
