/* uci_root: which moves of the root a "go" searches. Threads: one at a time, while nothing is
 * searched. Memory: none. Source: the UCI protocol, April 2006. */
#ifndef WORKER_PROGRAMS_UCI_UCI_ROOT_H
#define WORKER_PROGRAMS_UCI_UCI_ROOT_H

#include "worker/engine/job.h"
#include "worker/games/chess/tablebase.h"
#include "worker/programs/uci/uci_limits.h"

/* Those of "searchmoves"; all where there are none. What is no legal move is said on stdout as an
 * info string. False: moves were named, and none of them is legal. */
bool uci_root_searchmoves(struct job *job, const struct uci_limits *limits);

/* What endgame tables know of the root's moves. */
struct uci_root_values {
    struct chess_tablebase_move move[GAME_MOVES_MAX];
    unsigned count; /* 0: nothing */
};

/* In a position that they know: only moves that keep its value are searched, and where more lines
 * are wanted the best so many; unless moves were named. The job's lines become as many as it takes
 * to have the best of them. */
void uci_root_tablebase(struct job *job, struct uci_root_values *values);
/* The score of a root's move, of which the search says `score`. Of a mate and a win it is the one
 * that says more. */
int uci_root_score(const struct uci_root_values *values, uint16_t move, int score);

#endif
