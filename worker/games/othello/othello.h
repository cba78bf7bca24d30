/* othello: the game port of Othello.
 *
 * A move is a square and one, or OTHELLO_PASS; a pass is the only move where the side to move has
 * none and the other has. It costs no depth, so a search as deep as there are empty squares is
 * exact. Scores are discs, in a finished game with the empty squares for the winner.
 *
 * Positions are texts of 64 squares and a side to move (board.h), or `startpos`. Equal boards seen
 * from the side to move have equal keys, whatever the colours; symmetric ones have unlike keys.
 *
 * Threads: any, each with its own position. Memory: none. Pure. */
#ifndef WORKER_GAMES_OTHELLO_OTHELLO_H
#define WORKER_GAMES_OTHELLO_OTHELLO_H

#include "worker/games/game.h"
#include "worker/games/othello/board.h"

enum {
    OTHELLO_PASS = OTHELLO_SQUARES + 1,
    OTHELLO_UNDO_MAX = 128, /* 60 discs and as many passes */
};

struct othello_position {
    struct othello_board board; /* the side to move's view */
    bool is_black;
    unsigned made;
    struct {
        uint64_t flips;
        uint16_t move;
    } undo[OTHELLO_UNDO_MAX];
};

extern const struct game game_othello;
/* The same with scores 1 (won), 0 and -1: what wins is proved sooner than by how much. */
extern const struct game game_othello_wld;

/* The number of move sequences of `depth` moves, passes included; a finished game counts one. */
uint64_t othello_perft(const struct othello_position *position, unsigned depth);

#endif
